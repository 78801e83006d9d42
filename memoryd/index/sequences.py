"""
What was said one after the other: each document's neighbours in its session.

Messages and memories of kind EPISODE stand in one: in the order of their times, of equal times as they came. Statements
stand alone.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from memoryd.index.arrays import Growable
from memoryd.model.batch import Batch
from memoryd.model.memory import AT_ONCE_US, Kind, Memory
from memoryd.model.times import DAY_US, to_us
from memoryd.model.trust import Trust

__all__ = ["NOBODY", "Loading", "Sequences", "sequence_of"]

NOBODY = -1
NO_ROWS: NDArray[np.int64] = np.zeros((0, 5), dtype=np.int64)
BYTES_A_SEQUENCE = 500  # a key, three arrays


def sequence_of(memory: Memory) -> Hashable:
    """Return in which session a document stands; None: it stands alone."""
    if memory.kind is not Kind.EPISODE:
        return None
    source = memory.source
    return session_of(source.thread_id, source.session_id, to_us(memory.event_time), to_us(memory.create_time))


def session_of(thread_id: str, session_id: str, happened: int, created: int) -> Hashable:
    """Return the session of what was said, its times in microseconds: without one, its own day; None: it has none."""
    if thread_id or session_id:
        return thread_id, session_id
    return happened // DAY_US if abs(happened - created) >= AT_ONCE_US else None


class Loading:
    """What was said where, of the documents that are loaded."""

    def __init__(self) -> None:
        self.sessions: dict[Hashable, int] = {}
        """The sessions, with a number for each."""
        self.rows: list[NDArray[np.int64]] = [np.zeros((0, 5), dtype=np.int64)]
        """Of each document that stands in a session: its session, event time, create time, itself, and its trust."""
        self.count = 0

    def add(self, batch: Batch) -> None:
        """Take the next documents."""
        if batch.said:
            happened, created = batch.times.happened.tolist(), batch.times.created.tolist()
            trusts = batch.trusts.tolist()
            rows = []
            for place, provenance in batch.said:
                key = session_of(provenance.thread_id, provenance.session_id, happened[place], created[place])
                if key is not None:
                    number = self.sessions.setdefault(key, len(self.sessions))
                    rows.append((number, happened[place], created[place], self.count + place, trusts[place]))
            self.rows.append(np.array(rows, dtype=np.int64).reshape(-1, 5))
        self.count += len(batch.ids)


class Sequences:
    """
    Which texts stand side by side in a session.

    A sandbox's text stands next to all. What is of higher trust stands next to its like alone: so a sandbox neither
    lends it an answer by what it puts next to it, nor comes between two that belong together.
    """

    def __init__(self, loading: Loading | None = None) -> None:
        """Begin with what is loaded."""
        loading = loading or Loading()
        rows = np.concatenate(loading.rows)
        sessions = list(loading.sessions)
        trusted = rows[:, 4] > Trust.SANDBOX.weight
        self._all = _Chains(loading.count, rows, sessions)
        self._trusted = self._all if trusted.all() else _Chains(loading.count, rows[trusted], sessions)
        """The chains without what sandboxes said; the same object until a sandbox says something."""

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies, estimated."""
        return self._all.nbytes + (0 if self._trusted is self._all else self._trusted.nbytes)

    @property
    def are_any(self) -> bool:
        """Whether any document stands in a session."""
        return self._all.are_any

    def append(self, document: int, memory: Memory) -> None:
        """Put the next document in its place."""
        self._all.append()
        if self._trusted is not self._all:
            self._trusted.append()
        key = sequence_of(memory)
        if key is None:
            return
        if memory.trust.is_sandbox and self._trusted is self._all:
            self._trusted = self._all.copy()
        self._all.place(document, memory, key)
        if self._trusted is not self._all and not memory.trust.is_sandbox:
            self._trusted.place(document, memory, key)

    def remove(self, document: int, memory: Memory) -> None:
        """Take a document out; its neighbours are each other's from now on."""
        key = sequence_of(memory)
        self._all.remove(document, memory, key)
        if self._trusted is not self._all and not memory.trust.is_sandbox:
            self._trusted.remove(document, memory, key)

    def beside(self, rows: NDArray[np.int64], step: int, count: int, trusted: NDArray[np.bool_]) -> NDArray[np.int64]:
        """
        Return who stands `step` places after each of some documents (before them, if it is negative), or NOBODY.

        Of the first `count` documents alone: those that come meanwhile are joined to them, and not seen. `trusted`
        tells of all of those which are of higher trust than a sandbox's.
        """
        found = self._all.beside(rows, step, count)
        if self._trusted is self._all:
            return found
        return np.where(trusted[rows], self._trusted.beside(rows, step, count), found)


class _Chains:
    """For each document the one before it and the one after it; NOBODY where there is none."""

    def __init__(self, count: int = 0, rows: NDArray[np.int64] = NO_ROWS, sessions: Sequence[Hashable] = ()) -> None:
        """Begin with so many documents, some in sessions: rows as of Loading, in any order."""
        before, after = (np.full(count, NOBODY, dtype=np.int32) for _ in range(2))
        rows = rows[np.lexsort((rows[:, 3], rows[:, 2], rows[:, 1], rows[:, 0]))]
        numbers, documents = rows[:, 0], rows[:, 3]
        joined = numbers[1:] == numbers[:-1]
        before[documents[1:][joined]] = documents[:-1][joined]
        after[documents[:-1][joined]] = documents[1:][joined]
        self._before = Growable(np.int32, values=before)
        self._after = Growable(np.int32, values=after)
        self._of: dict[Hashable, tuple[array[int], array[int], array[int]]] = {}
        """By session: event times in order, of equal ones the create times in order, and whose they are."""
        starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
        for first, end in pairwise([*starts, len(rows)]):
            happened, created, theirs = rows[first:end, 1], rows[first:end, 2], documents[first:end].astype(np.int32)
            arrays = array("q", happened.tobytes()), array("q", created.tobytes()), array("i", theirs.tobytes())
            self._of[sessions[numbers[first]]] = arrays
        self._standing = len(rows)  # documents in sessions

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies, estimated."""
        return 8 * len(self._before) + 20 * self._standing + len(self._of) * BYTES_A_SEQUENCE

    @property
    def are_any(self) -> bool:
        """Whether any document stands in a session."""
        return bool(self._of)

    def append(self) -> None:
        """Let one more stand, alone."""
        self._before.append(NOBODY)
        self._after.append(NOBODY)

    def place(self, document: int, memory: Memory, key: Hashable) -> None:
        """Put a document that stands alone in its place."""
        happened, created, documents = self._of.setdefault(key, (array("q"), array("q"), array("i")))
        place = _place_of(memory, happened, created)
        self._join(documents[place - 1] if place else NOBODY, document)
        self._join(document, documents[place] if place < len(documents) else NOBODY)
        happened.insert(place, to_us(memory.event_time))
        created.insert(place, to_us(memory.create_time))
        documents.insert(place, document)
        self._standing += 1

    def remove(self, document: int, memory: Memory, key: Hashable) -> None:
        """Take a document out; its neighbours are each other's from now on."""
        if key is None:
            return
        happened, created, documents = self._of[key]
        place = documents.index(document, 0, _place_of(memory, happened, created))
        del happened[place], created[place], documents[place]
        self._standing -= 1
        if not documents:
            del self._of[key]
        before, after = int(self._before.view()[document]), int(self._after.view()[document])
        self._join(before, after)
        self._before.view()[document] = self._after.view()[document] = NOBODY

    def copy(self) -> _Chains:
        """Return the same once more, to go on by itself."""
        other = _Chains()
        other._before, other._after = (
            Growable(np.int32, values=column.view().copy()) for column in (self._before, self._after)
        )
        other._standing = self._standing
        other._of = {key: (a[:], b[:], c[:]) for key, (a, b, c) in self._of.items()}
        return other

    def _join(self, first: int, second: int) -> None:
        if first != NOBODY:
            self._after.view()[first] = second
        if second != NOBODY:
            self._before.view()[second] = first

    def beside(self, rows: NDArray[np.int64], step: int, count: int) -> NDArray[np.int64]:
        """
        Return who stands `step` places after each of some documents (before them, if it is negative), or NOBODY.

        Of the first `count` documents alone: those that come meanwhile are joined to them, and not seen.
        """
        column = (self._after if step > 0 else self._before).view(count)
        found = rows
        for _ in range(abs(step)):
            found = np.where(found == NOBODY, NOBODY, column[found]).astype(np.int64)
            found[found >= count] = NOBODY
        return found


def _place_of(memory: Memory, happened: array[int], created: array[int]) -> int:
    """Return the place after all that happened earlier, or at the same time and came earlier."""
    time = to_us(memory.event_time)
    first, last = bisect_left(happened, time), bisect_right(happened, time)
    return bisect_right(created, to_us(memory.create_time), first, last)
