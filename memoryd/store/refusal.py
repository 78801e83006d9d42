"""Why a store is not opened."""

from __future__ import annotations

from memoryd.errors import StartupError

__all__ = ["StoreInUse", "StoreRefused"]


class StoreRefused(StartupError):
    """The files are not opened; the message says why and what to do. Nothing was changed."""


class StoreInUse(StoreRefused):
    """Another memoryd has them open."""
