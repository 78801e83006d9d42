"""How places and room are shared by trust: a part is for higher trust, as far as there is so much of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["FIFTH", "HALF", "Room", "first_places", "for_higher_trust"]

HALF, FIFTH = 2, 5
"""Every second place, or every fifth, is for higher trust."""
T = TypeVar("T")


def for_higher_trust(size: int, share: int = HALF) -> int:
    """Return how much of some room is for higher trust, as far as that needs it."""
    return -(-size // share)


class Room:
    """Places, characters or tokens: half is for higher trust, as far as that needs it."""

    def __init__(self, size: int, needed: int, *, kept: int | None = None) -> None:
        """Begin with all of it; `needed` is how much higher trust could take, `kept` at the most (unset: half)."""
        self.left = size
        self._left_for_lower = size - min(needed, size // HALF if kept is None else kept)

    @classmethod
    def of_places(cls, most: int, needed: int) -> Room:
        """Return so many places; of an odd number one more is for higher trust."""
        return cls(most, needed, kept=for_higher_trust(most))

    def left_for(self, *, is_lower: bool) -> int:
        """Return how much there is for something of lower trust, or of higher."""
        return min(self.left, self._left_for_lower) if is_lower else self.left

    def take(self, size: int, *, is_lower: bool) -> None:
        """Take so much of it."""
        self.left -= size
        self._left_for_lower -= size if is_lower else 0


def first_places(found: Sequence[T], most: int, is_lower: Callable[[T], bool], *, keeps_free: bool = False) -> list[T]:
    """
    Return the first of some, in order, at most so many; those of lower trust take no place that others need.

    `keeps_free`: they take half of the places at the most, also where no one else needs the rest.
    """
    each = [(one, is_lower(one)) for one in found]
    room = Room.of_places(most, most if keeps_free else sum(not lower for _, lower in each))
    kept: list[T] = []
    for one, lower in each:
        if room.left_for(is_lower=lower) > 0:
            room.take(1, is_lower=lower)
            kept.append(one)
    return kept
