"""
The commits of late, by owner: what an index needs that has fallen behind, and how far each owner's commits have come.

Both are bounded, and a purge leaves nothing of its owner. Of an owner who is no longer known, a later commit is told
than the last one: then a decision is made, or an index loaded, once more than needed, and nothing is missed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from datetime import datetime

from memoryd.errors import Contended
from memoryd.model.change import Applied, ChangeSet, Entry, Head
from memoryd.model.scope import Owner

__all__ = ["RecentChanges"]

MOST_BYTES = 16 << 20  # of change sets that are kept, all owners together
MOST_HEADS = 65_536  # owners whose number is known exactly: 20 MB
BYTES_AN_ENTRY = 1024  # of objects around a text and a vector, measured roughly
BYTES_A_CHANGE = 512


class RecentChanges:
    """Follows the commits of one store; one thread adds, others may ask at the same time."""

    def __init__(self, start: Head, *, most_bytes: int = MOST_BYTES, most_heads: int = MOST_HEADS) -> None:
        """Begin at a head that no owner is past."""
        self._floor = start
        self._most_bytes, self._most_heads = most_bytes, most_heads
        self._heads: OrderedDict[Owner, Head] = OrderedDict()
        self._kept: dict[int, tuple[Owner, Applied, int]] = {}
        """Whose commit, and its bytes; numbered in the order in which they came."""
        self._of: dict[Owner, deque[int]] = {}
        self._number = 0
        self._bytes = 0
        self._lock = threading.Lock()

    def head(self, owner: Owner) -> Head:
        """Return how far an owner's commits have come."""
        with self._lock:
            return self._heads.get(owner, self._floor)

    def since(self, owner: Owner, commit_seq: int) -> list[Applied] | None:
        """Return the commits of an owner after a number, oldest first; None where not all of them are known."""
        with self._lock:
            known = (self._kept[number][1] for number in self._of.get(owner, ()))
            later = [applied for applied in known if applied.commit_seq > commit_seq]
            after = later[0].after if later else self._heads.get(owner, self._floor).commit_seq
            return later if after <= commit_seq else None

    def check(self, changes: Sequence[ChangeSet]) -> None:
        """Raise Contended if one of these change sets was decided before the last commit of its owner."""
        committing: set[Owner] = set()  # by these change sets themselves, in their order
        for change in changes:
            owner = change.owner
            if owner is None:
                continue
            if change.based_on is not None and (owner in committing or self.head(owner).commit_seq > change.based_on):
                raise Contended("others have changed the scope at the same time; nothing was written: try again")
            committing.add(owner)

    def add(self, commit_seq: int, change: ChangeSet) -> Applied:
        """Take in a commit, and return it as those who follow learn of it."""
        owner = change.owner
        if owner is None:
            return Applied(commit_seq, change)
        with self._lock:
            before = self._heads.pop(owner, self._floor)
            times = [entry.memory.create_time for entry in change.inserts]
            self._heads[owner] = Head(commit_seq, _latest(*times, before.newest_create_time))
            applied = Applied(commit_seq, change, before.commit_seq)
            if change.purges or change.forget_entities:
                self._drop(owner)
            else:
                self._keep(owner, applied)
            self._shrink()
        return applied

    def _keep(self, owner: Owner, applied: Applied) -> None:
        size = BYTES_A_CHANGE + sum(map(_bytes_of, (*applied.change.inserts, *applied.change.updates)))
        self._number += 1
        self._kept[self._number] = (owner, applied, size)
        self._of.setdefault(owner, deque()).append(self._number)
        self._bytes += size

    def _drop(self, owner: Owner) -> None:
        """Keep nothing of an owner: it may say what was purged now."""
        for number in self._of.pop(owner, ()):
            self._bytes -= self._kept.pop(number)[2]

    def _shrink(self) -> None:
        while self._bytes > self._most_bytes:
            owner, _, size = self._kept.pop(next(iter(self._kept)))
            self._bytes -= size
            self._of[owner].popleft()
            if not self._of[owner]:
                del self._of[owner]
        if len(self._heads) > self._most_heads:  # many at a time, as each rise of the floor costs loads of indexes
            for _ in range(self._most_heads // 4 + 1):
                _, oldest = self._heads.popitem(last=False)
                newest = _latest(oldest.newest_create_time, self._floor.newest_create_time)
                self._floor = Head(max(oldest.commit_seq, self._floor.commit_seq), newest)


def _latest(*times: datetime | None) -> datetime | None:
    return max((time for time in times if time is not None), default=None)


def _bytes_of(entry: Entry) -> int:
    vector = 0 if entry.vector is None else entry.vector.nbytes
    return BYTES_AN_ENTRY + entry.memory.text_bytes + len(entry.terms) + vector
