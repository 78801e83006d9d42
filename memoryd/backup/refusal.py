"""Why a backup is not read."""

from __future__ import annotations

from memoryd.errors import EXIT_DAMAGED
from memoryd.store.refusal import StoreRefused

__all__ = ["BackupDamaged", "NotForUs"]


class BackupDamaged(StoreRefused):
    """A file of a chain is not what was written; the message names it."""

    exit_code = EXIT_DAMAGED


class NotForUs(StoreRefused):
    """What is encrypted cannot be read with what was given."""
