"""A figure that is read when a scraper asks for it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Sample"]


@dataclass(frozen=True, slots=True)
class Sample:
    """A figure that is read when it is asked for; its name ends in _total if it only grows."""

    name: str
    meaning: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()
