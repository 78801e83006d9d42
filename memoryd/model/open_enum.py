"""Enums of the contract: a value that a later version adds is kept and shown, and never taken for another one."""

from __future__ import annotations

from enum import Enum
from typing import Any, Self

__all__ = ["OpenEnum"]


class OpenEnum(Enum):
    """An enum that can hold a value that this version does not know."""

    @classmethod
    def stranger(cls, code: int) -> Self:
        """Return the value for a code of a later version: `unknown_17`; it is none of the members."""
        one = object.__new__(cls)
        one._name_, one._value_ = f"UNKNOWN_{code}", f"unknown_{code}"
        one._stranger_code = code  # type: ignore[attr-defined]
        return one

    @property
    def code(self) -> int | None:
        """The code of a value of a later version; None for a member."""
        code: int | None = self.__dict__.get("_stranger_code")
        return code

    def __eq__(self, other: object) -> bool:
        """Whether both are one member, or stand for one code."""
        return self is other or (type(self) is type(other) and self.code is not None and self.code == other.code)

    def __hash__(self) -> int:
        """Hash as enums do."""
        return hash(self._name_)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Let a stranger be copied and pickled too."""
        return (type(self), (self._value_,)) if self.code is None else (type(self).stranger, (self.code,))
