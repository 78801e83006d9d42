"""How much a source of memories is trusted."""

from __future__ import annotations

from enum import Enum

__all__ = ["Trust"]


class Trust(Enum):
    """Which door a memory came through."""

    HOST = "host"
    SANDBOX = "sandbox"
    IMPORTED = "imported"

    @property
    def weight(self) -> int:
        """What it weighs: the host before imports before sandboxes."""
        return _WEIGHTS[self.value]

    def outranks(self, other: Trust) -> bool:
        """Whether it weighs more."""
        return self.weight > other.weight


_WEIGHTS = {"host": 2, "imported": 1, "sandbox": 0}
