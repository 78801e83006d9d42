"""How places are shared by trust: half of them are for more than a sandbox's, as far as there is so much of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from memoryd.model.trust import Trust

__all__ = ["SHARE_OF_TRUST", "first_places", "for_higher_trust"]

SHARE_OF_TRUST = 2  # every second place, or half of the room, is for higher trust than a sandbox's
T = TypeVar("T")


def for_higher_trust(places: int) -> int:
    """Return how many of some places are for higher trust than a sandbox's, as far as that needs them."""
    return -(-places // SHARE_OF_TRUST)


def first_places(found: Iterable[T], most: int, trust_of: Callable[[T], Trust]) -> list[T]:
    """Return the first of some, in order, at most so many; a sandbox's take no place of those of higher trust."""
    all_of_it = [(one, trust_of(one).is_sandbox) for one in found]
    others = sum(not sandboxed for _, sandboxed in all_of_it)
    places = most - min(others, for_higher_trust(most))
    kept: list[T] = []
    for one, sandboxed in all_of_it:
        if len(kept) == most or (sandboxed and not places):
            continue
        places -= sandboxed
        kept.append(one)
    return kept
