"""The states that a chain leads to; of a busy day a million, so they are kept in columns."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple, overload

__all__ = ["Point", "Points"]


class Point(NamedTuple):
    """A state that a chain leads to."""

    commit_seq: int
    time_us: int
    generation: int
    log_end: int
    """The bytes of the generation's log that lead to it."""

    @property
    def time(self) -> datetime:
        """When its last transaction was written (UTC)."""
        return datetime.fromtimestamp(self.time_us / 1e6, UTC)


class Points(Sequence[Point]):
    """States, the oldest first; 32 bytes each."""

    def __init__(self, *, in_brief: bool = False) -> None:
        """Begin with none; `in_brief`: only the first and the last are kept."""
        self._columns = [array("q") for _ in Point._fields]
        self._in_brief = in_brief
        self.state_count = 0
        """How many transactions they lead to, also where only two are kept."""

    def append(self, point: Point) -> None:
        """Add the next one."""
        if not self or self[-1].commit_seq != point.commit_seq:
            self.state_count += 1
        if self._in_brief and len(self) > 1:
            for column in self._columns:
                column.pop()
        for column, value in zip(self._columns, point, strict=True):
            column.append(value)

    def __len__(self) -> int:
        return len(self._columns[0])

    @overload
    def __getitem__(self, place: int) -> Point: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Point]: ...
    def __getitem__(self, place: int | slice) -> Point | Sequence[Point]:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(len(self)))]
        return Point(*(column[place] for column in self._columns))
