"""Enums of the contract: what a later version adds is kept and shown as such, and never taken for something else."""

from __future__ import annotations

from enum import Enum
from typing import Any, Self

__all__ = ["OpenEnum"]

_strangers: dict[tuple[type, int], Any] = {}


class OpenEnum(Enum):
    """An enum that can hold a value that this version does not know."""

    @classmethod
    def stranger(cls, code: int) -> Self:
        """Return what stands for a code of a later version: `unknown_17`; it is none of the members."""
        known: Self | None = _strangers.get((cls, code))
        if known is None:
            known = object.__new__(cls)
            known._name_, known._value_ = f"UNKNOWN_{code}", f"unknown_{code}"
            _strangers[cls, code] = known
        return known

    @property
    def code(self) -> int | None:
        """The code that it stands for, of a value of a later version; None for a member."""
        number = str(self.value).removeprefix("unknown_")
        return int(number) if self.name.startswith("UNKNOWN_") and number.isdigit() else None
