"""What pages show that no call of the daemon answers: its audit log, its backups, and how its figures have moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd.inspector.figures import Figures

__all__ = ["Sources"]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where these come from."""

    audit: Callable[[int, Callable[[dict[str, Any]], bool]], Sequence[dict[str, Any]]]
    """The last records of the audit log that a condition lets through, newest first; OSError where none can be read."""
    backups: Callable[[str], Sequence[Mapping[str, Any]]]
    """The chains of a folder of backups; a damaged one is a `fault`. StoreRefused, OSError where none is there."""
    figures: Figures
    now: Callable[[], datetime]
