"""
The commits of late, by owner: what an index needs that has fallen behind, and how far each owner's commits have come.

Both are bounded, and a purge leaves nothing of its owner. For an owner that was dropped from memory, a number is
returned that is higher than that of its last commit. Then a decision is made, or an index loaded, once more than
needed; nothing is missed.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.errors import Contended
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.commits import Applied, Head, merged
from memoryd.model.scope import Owner

__all__ = ["Heads", "RecentChanges"]

Announce = Callable[[Applied], None]

MOST_BYTES = 16 << 20  # of change sets that are kept, all owners together
MOST_HEADS = 65_536  # owners whose number is known exactly: 20 MB
BYTES_AN_ENTRY = 1024  # of objects around a text and a vector, measured roughly
BYTES_A_MENTION = 150
BYTES_A_CHANGE = 1024
BYTES_A_ROW = 512  # of an entity or a tombstone


class Heads:
    """How far the commits of each owner have come."""

    def __init__(self, start: Head, *, most: int = MOST_HEADS) -> None:
        """Begin at a head that no owner is past."""
        self._floor = start
        self._most = most
        self._of: OrderedDict[Owner, Head] = OrderedDict()
        self.grants = 0
        """How many changes of grants and of keys there were."""

    def of(self, owner: Owner) -> Head:
        """Return the head of an owner."""
        return self._of.get(owner, self._floor)

    def check(self, changes: Sequence[ChangeSet], committing: set[Owner | None]) -> None:
        """
        Raise Contended if one of these change sets was decided before the last commit of its owner, or of grants.

        `committing` are owners, and None for grants, that others change in the same transaction before; if nothing is
        raised, it grows by these.
        """
        owners: set[Owner | None] = set()
        for change in changes:
            if change.grants_seen is not None and (
                None in committing or None in owners or self.grants != change.grants_seen
            ):
                raise Contended("grants have changed at the same time; nothing was written: try again")
            if change.changes_grants:
                owners.add(None)
            owner = change.decided_of
            if owner is None:
                continue
            known = owner in committing or owner in owners
            if change.based_on is not None and (known or self.of(owner).commit_seq > change.based_on):
                raise Contended("others have changed the scope at the same time; nothing was written: try again")
            owners.add(owner)
        committing |= owners

    def advance(self, owner: Owner, commit_seq: int, change: ChangeSet) -> Head:
        """Take in a commit of an owner, and return the head before it."""
        before = self._of.pop(owner, self._floor)
        times = [entry.memory.create_time for entry in change.inserts]
        purge_seq = commit_seq if change.erases else before.purge_seq
        self._of[owner] = Head(commit_seq, _latest(*times, before.newest_create_time), purge_seq)
        if len(self._of) > self._most:  # many at a time, as each rise of the floor costs loads of indexes
            for _ in range(self._most // 4 + 1):
                _, oldest = self._of.popitem(last=False)
                newest = _latest(oldest.newest_create_time, self._floor.newest_create_time)
                seq = max(oldest.commit_seq, self._floor.commit_seq)
                self._floor = Head(seq, newest, seq)
        return before


class RecentChanges:
    """Follows the commits of one store, of memories, of messages or of notes, and tells those who follow it."""

    def __init__(self, start: Head, *, most_bytes: int = MOST_BYTES, most_heads: int = MOST_HEADS) -> None:
        """Begin at a head that no owner is past."""
        self.heads = Heads(start, most=most_heads)
        self.followers: list[Announce] = []
        """They are called on the event loop, after each commit and before its waiter goes on."""
        self._most_bytes = most_bytes
        self._kept: OrderedDict[int, tuple[Owner, Applied, int]] = OrderedDict()
        """Whose commit, and its bytes; numbered in the order in which they came."""
        self._of: dict[Owner, deque[int]] = {}
        self._number = 0
        self._bytes = 0

    def since(self, owner: Owner, commit_seq: int) -> Applied | None:
        """Return what brings an owner from a number to now, as one change set; None where not all of it is known."""
        later: list[Applied] = []
        for number in reversed(self._of.get(owner, ())):
            applied = self._kept[number][1]
            if applied.commit_seq <= commit_seq:
                break
            later.append(applied)
        after = later[-1].after if later else self.heads.of(owner).commit_seq
        if after > commit_seq:
            return None
        if len(later) == 1:
            return later[0]
        change = merged([applied.change for applied in reversed(later)])
        return Applied(later[0].commit_seq if later else commit_seq, change, commit_seq)

    def add(self, commit_seq: int, change: ChangeSet) -> Applied:
        """Take in a commit, and return it as those who follow learn of it."""
        self.heads.grants += change.changes_grants
        owner = change.decided_of
        if owner is None:
            return Applied(commit_seq, change)
        applied = Applied(commit_seq, change, self.heads.advance(owner, commit_seq, change).commit_seq)
        if change.erases:
            self._drop(owner)
        else:
            self._keep(owner, applied)
        self._shrink()
        return applied

    def tell(self, commit_seq: int, change: ChangeSet, loop: asyncio.AbstractEventLoop) -> None:
        """Take in a commit and tell of it; what is committed is acknowledged, whatever goes wrong with a follower."""
        applied = self.add(commit_seq, change)
        for announce in self.followers:
            try:
                announce(applied)
            except Exception as error:  # noqa: BLE001  see above
                loop.call_exception_handler({"message": "a follower of commits failed", "exception": error})

    def _keep(self, owner: Owner, applied: Applied) -> None:
        change = replace(applied.change, request=None)  # no one follows requests, and their ids may be purged elsewhere
        applied = replace(applied, change=change)
        rows = len(change.entities) + len(change.tombstones) + len(change.lift) + len(change.embeddings)
        size = BYTES_A_CHANGE + rows * BYTES_A_ROW + sum(map(_bytes_of, (*change.inserts, *change.updates)))
        size += sum(
            embedding.vector.nbytes + len(embedding.tokens) + len(embedding.windows) for embedding in change.embeddings
        )
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
            _, (owner, _, size) = self._kept.popitem(last=False)
            self._bytes -= size
            self._of[owner].popleft()
            if not self._of[owner]:
                del self._of[owner]


def _latest(*times: datetime | None) -> datetime | None:
    return max((time for time in times if time is not None), default=None)


def _bytes_of(entry: Entry) -> int:
    vectors = (0 if entry.vector is None else entry.vector.nbytes) + len(entry.tokens) + len(entry.windows)
    names = len(entry.memory.mentions) * BYTES_A_MENTION
    return BYTES_AN_ENTRY + len(entry.memory.content) + len(entry.terms) + vectors + names
