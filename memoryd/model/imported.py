"""What an import brings: statements with times and ids of their own, and what becomes of each."""

from __future__ import annotations

import hashlib
from base64 import b32encode
from dataclasses import dataclass
from datetime import datetime

from memoryd.errors import InvalidArgument
from memoryd.model.memory import Draft
from memoryd.model.note import NoteDraft
from memoryd.model.open_enum import OpenEnum
from memoryd.model.scope import Owner
from memoryd.model.validation import check_id, check_time

__all__ = [
    "IMPORT_CHANNEL",
    "ImportDraft",
    "ImportOutcome",
    "ImportReport",
    "ImportResult",
    "ImportedNote",
    "imported_id",
]

IMPORT_CHANNEL = "import"
"""The source.channel of what is imported, where the import names no other."""
ID_BYTES = 16  # as of the ids that are random


class ImportOutcome(OpenEnum):
    """What became of one item of an import."""

    STORED = "stored"
    KNOWN = "known"
    """It came before, and says the same: it stays as it is now, also where it was replaced since."""
    KEPT = "kept"
    """Something else is here under that id, key or path, and stays."""
    REPEATED = "repeated"
    """The same is stated here already, by another memory."""
    ERASED = "erased"
    """It came before and was erased for good; it stays erased."""
    REJECTED = "rejected"
    """Policy declines it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportDraft:
    """A statement that an import brings."""

    draft: Draft
    external_id: str
    """What the other system calls it; the same id is the same statement, however often it comes."""
    create_time: datetime | None = None
    """When it was stored there; None: now."""
    supersede_time: datetime | None = None
    """When it was replaced there; None: it holds."""
    superseded_by: str = ""
    """The external id of what replaced it, if that is known."""

    def __post_init__(self) -> None:
        """Check every field; InvalidArgument or LimitExceeded names the first that is wrong."""
        put = object.__setattr__
        for name in ("external_id", "superseded_by"):
            put(self, name, check_id(getattr(self, name), name))
        if not self.external_id:
            raise InvalidArgument("external_id is empty; give each item the id that it has where it comes from",
                                  field="external_id")  # fmt: skip
        for name in ("create_time", "supersede_time"):
            put(self, name, check_time(getattr(self, name), name))
        if self.superseded_by and self.supersede_time is None:
            raise InvalidArgument("superseded_by needs a supersede_time: when was it replaced?", field="supersede_time")
        if self.supersede_time is not None and self.create_time is not None and self.supersede_time < self.create_time:
            raise InvalidArgument("supersede_time is before create_time", field="supersede_time")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedNote:
    """A note that an import brings."""

    draft: NoteDraft
    create_time: datetime | None = None
    """When it was first put there; None: now."""
    update_time: datetime | None = None
    """When it was last changed there; None: the create time."""

    def __post_init__(self) -> None:
        """Check the times; InvalidArgument names the one that is wrong."""
        for name in ("create_time", "update_time"):
            object.__setattr__(self, name, check_time(getattr(self, name), name))


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What became of one item."""

    outcome: ImportOutcome
    id: str = ""
    """The memory, message or note that says it, or has its place; empty: there is none."""
    rejection: str = ""
    """Why it was rejected: "secret", "disabled", "forgotten", "expired" or "full"."""
    untaken_fields: tuple[str, ...] = ()
    """Of a repetition: the fields that came with it and were not taken."""
    masked: bool = False
    """Whether a message was stored with a credential masked."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of the items of one call, in their order."""

    results: tuple[ImportResult, ...]
    dry_run: bool = False


def imported_id(owner: Owner, import_id: str, external_id: str) -> str:
    """
    Return the id of a memory or note that an import brings: 26 characters, the same whenever and wherever it comes.

    It is a hash (BLAKE2b, 128 bits), so that to know an item again takes no table that could be lost.
    """
    named = repr((owner.agent_id, owner.scope.user_id, owner.scope.chat_id, import_id, external_id))
    digest = hashlib.blake2b(named.encode(), digest_size=ID_BYTES, person=b"memoryd import").digest()
    return b32encode(digest).decode().rstrip("=").lower()
