"""Notes: named texts of an owner, which are put, read and erased by their path."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from memoryd.errors import InvalidArgument
from memoryd.model import limits
from memoryd.model.grant import GrantText
from memoryd.model.memory import Kind, Memory
from memoryd.model.scope import Owner, Scope
from memoryd.model.short_repr import ShortRepr
from memoryd.model.trust import Trust
from memoryd.model.validation import check_count, check_text, check_written_out

__all__ = [
    "DeletedNotes",
    "MovedNotes",
    "Note",
    "NoteDraft",
    "NotePage",
    "NoteVersion",
    "check_path",
    "check_prefix",
]

JOINERS = "\u200c\u200d"  # letters of Persian names and parts of emoji are joined or parted by them
CUT = " …"  # where the rest of a text is left out
_OWN = {"internal": True}  # a field that the daemon keeps for itself


@dataclass(frozen=True, slots=True)
class NoteVersion:
    """A note as it was from one change to the next."""

    revision: int
    """1 is the first."""
    update_time: datetime
    text_bytes: int
    is_json: bool = False
    """Whether the text is a JSON value."""
    trust: Trust = Trust.HOST
    grant_id: str = field(default="", metadata=_OWN)
    author: str = ""
    """Whose call wrote it, in a chat; empty: not known, or it is the user's own."""
    id: str = field(default="", metadata=_OWN)
    """What its text is stored by."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Note(ShortRepr):
    """One note of one scope; its text is there where it was asked for."""

    id: str
    """Its own, for as long as it is there, also when it is moved."""
    agent_id: str
    scope: Scope
    path: str
    create_time: datetime
    versions: tuple[NoteVersion, ...] = ()
    """The newest first, at most limits.MAX_NOTE_VERSIONS: what it is now, and what it was."""
    text: str = ""
    expire_time: datetime | None = None
    """From when on it is not there any more."""
    expire_after_access_s: int = 0
    """How long after it was last read; 0: reading changes nothing."""
    end_time: datetime | None = None
    """From when on it is not there, however often it is read."""
    is_searched: bool = False
    """Whether a search for notes finds it."""
    terms_length: int = field(default=0, metadata=_OWN)
    """Characters of the analysed words by which it is found."""

    @property
    def owner(self) -> Owner:
        """Whose it is."""
        return Owner(self.agent_id, self.scope)

    @property
    def now(self) -> NoteVersion:
        """What it is now."""
        return self.versions[0]

    @property
    def revision(self) -> int:
        """How often it was changed, and 1."""
        return self.now.revision

    @property
    def update_time(self) -> datetime:
        """When it was last changed."""
        return self.now.update_time

    @property
    def value(self) -> Any:
        """The JSON value; of a text the text."""
        return json.loads(self.text) if self.now.is_json else self.text

    @property
    def grant_texts(self) -> tuple[GrantText, ...]:
        """What of it, with its former versions, counts to the quotas of grants."""
        return tuple(
            GrantText(version.grant_id, version.update_time.date(), version.text_bytes)
            for version in self.versions
            if version.grant_id
        )

    def as_memory(self, text: str) -> Memory:
        """Return it, with the beginning of its text, as what an index holds: a memory of kind NOTE, keyed by path."""
        content = f"{self.path}\n{text}"
        return Memory(
            id=self.id,
            agent_id=self.agent_id,
            scope=self.scope,
            content=content if len(content) <= limits.MAX_CONTENT_BYTES else content[: limits.MAX_CONTENT_BYTES] + CUT,
            create_time=self.update_time,
            event_time=self.update_time,
            kind=Kind.NOTE,
            key=self.path,
            expire_time=self.expire_time,
            trust=self.now.trust,
            grant_id=self.now.grant_id,
            author=self.now.author,
        )

    def read_at(self, now: datetime) -> Note:
        """Return it with the time when it expires that is read now: never earlier, never past its end."""
        if not self.expire_after_access_s or self.expire_time is None:
            return self
        later = now + timedelta(seconds=self.expire_after_access_s)
        if self.end_time is not None:
            later = min(later, self.end_time)
        return replace(self, expire_time=max(later, self.expire_time))

    def is_expired(self, now: datetime) -> bool:
        """Whether it is not there any more."""
        return self.expire_time is not None and self.expire_time <= now

    def version(self, revision: int) -> NoteVersion | None:
        """Return one of its versions; None where that is not kept."""
        return next((version for version in self.versions if version.revision == revision), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteDraft:
    """A note that is offered: checked, in NFC."""

    path: str
    text: str = ""
    is_json: bool = False
    """Whether the text is a JSON value."""
    expire_after_s: int = 0
    """0: never."""
    expire_after_access_s: int = 0
    is_searched: bool = False
    """Whether a search for notes finds it, by the words and the meaning of its beginning."""
    expected_revision: int | None = None
    """It is written only where it is this one; 0: only where there is none; None: in any case."""

    def __post_init__(self) -> None:
        """Check every field; InvalidArgument or LimitExceeded names the first that is wrong."""
        put = object.__setattr__
        put(self, "path", check_path(self.path))
        name = "value" if self.is_json else "text"
        put(self, "text", check_text(self.text, name, limit=limits.MAX_NOTE_BYTES))
        if self.is_json:
            _check_json(self.text)
        for seconds in ("expire_after_s", "expire_after_access_s"):
            check_count(getattr(self, seconds), seconds, default=0, limit=limits.MAX_EXPIRES_DAYS * 86_400)
        if 0 < self.expire_after_access_s < limits.LEAST_ACCESS_S:
            raise InvalidArgument(
                f"expire_after_access_s is {self.expire_after_access_s}; the least is {limits.LEAST_ACCESS_S}",
                field="expire_after_access_s",
            )
        if self.expected_revision is not None and self.expected_revision < 0:
            raise InvalidArgument(
                f"expected_revision is {self.expected_revision}; 0 means that there is none yet",
                field="expected_revision",
            )

    @classmethod
    def of(cls, path: str, content: object, **more: Any) -> NoteDraft:
        """Return the draft of a text, or of any other value as JSON; InvalidArgument for what is no JSON."""
        if isinstance(content, str):
            return cls(path=path, text=content, **more)
        try:
            text = json.dumps(content, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArgument(f"value cannot be written as JSON: {error}", field="value") from None
        return cls(path=path, text=text, is_json=True, **more)

    def expires(self, now: datetime) -> dict[str, Any]:
        """Return the fields of a note that say when it expires, if it is written now."""
        seconds = [one for one in (self.expire_after_s, self.expire_after_access_s) if one]
        return {
            "expire_time": now + timedelta(seconds=min(seconds)) if seconds else None,
            "end_time": now + timedelta(seconds=self.expire_after_s) if self.expire_after_s else None,
            "expire_after_access_s": self.expire_after_access_s,
        }


@dataclass(frozen=True, slots=True)
class NotePage:
    """Some notes in the order of their paths, and the token of the rest."""

    notes: tuple[Note, ...]
    next_page_token: str = ""


@dataclass(frozen=True, slots=True)
class DeletedNotes:
    """What notes went, or would go: all are counted, the first thousand are named."""

    paths: tuple[str, ...]
    deleted_count: int
    backups: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class MovedNotes:
    """Where notes are now, the first thousand, and how many were moved."""

    paths: tuple[str, ...]
    moved_count: int


def check_path(path: str, name: str = "path") -> str:
    """Return a path, `plans/summer`, in NFC; InvalidArgument where it is none, LimitExceeded above 512 bytes."""
    text = check_text(path, name, limit=limits.MAX_PATH_BYTES, required=True)
    parts = text.split("/")
    if "" in parts or not {".", ".."}.isdisjoint(parts):
        raise InvalidArgument(
            f"{name} must be names with / between them, such as plans/summer: none empty, none . or ..", field=name
        )
    return _printable(text, name)


def check_prefix(prefix: str, name: str = "prefix") -> str:
    """Return what paths begin with, as it stands; empty: all do."""
    return _printable(check_text(prefix, name, limit=limits.MAX_PATH_BYTES), name)


def _printable(text: str, name: str) -> str:
    for letter in text:
        if not letter.isprintable() and letter not in JOINERS:
            raise InvalidArgument(
                f"{name} has U+{ord(letter):04X}, which cannot be seen, or turns the order of others; leave it out",
                field=name,
            )
    return text


def _check_json(text: str) -> None:
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InvalidArgument("value is not valid JSON", field="value") from None
    check_written_out(text, "value")


def _refuse_constant(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity are no JSON
