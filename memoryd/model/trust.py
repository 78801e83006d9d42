"""How much a source of memories is trusted."""

from __future__ import annotations

from memoryd.model.open_enum import OpenEnum

__all__ = ["Trust"]


class Trust(OpenEnum):
    """Which door a memory came through."""

    HOST = "host"
    SANDBOX = "sandbox"
    IMPORTED = "imported"

    @property
    def weight(self) -> int:
        """What it weighs: the host before imports before sandboxes; a class of a later version less than all."""
        return _WEIGHTS.get(self.value, -1)

    @property
    def is_sandbox(self) -> bool:
        """Whether it weighs no more than a sandbox's: what is of it must not change how anything above it is found."""
        return self.weight <= _WEIGHTS["sandbox"]

    def outranks(self, other: Trust) -> bool:
        """Whether it weighs more."""
        return self.weight > other.weight

    @staticmethod
    def highest(*trusts: Trust) -> Trust:
        """Return the one that weighs most."""
        return max(trusts, key=lambda trust: trust.weight)


_WEIGHTS = {"host": 2, "imported": 1, "sandbox": 0}
