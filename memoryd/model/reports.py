"""What the daemon tells operators and the host: of people, of grants, of its upkeep and of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from memoryd.model.conversation import Message
from memoryd.model.entity import Profile
from memoryd.model.memory import ShownMemory
from memoryd.model.trust import Trust
from memoryd.model.work import Run

__all__ = [
    "Compaction",
    "Decayed",
    "Enriched",
    "EntityMemories",
    "ErasedUser",
    "ExportPart",
    "Faded",
    "ForgottenGrant",
    "ForgottenPerson",
    "GcReport",
    "ImportedRecords",
    "JobStatus",
    "Merged",
    "OwnerContents",
    "ParkedThread",
    "PeoplePage",
    "Proof",
    "Reembedding",
    "ServerInfo",
    "Trace",
]

_OWN = {"internal": True}  # a field that the daemon keeps for itself


@dataclass(frozen=True, slots=True)
class GcReport:
    """What garbage collection erased, or would."""

    expired_count: int = 0
    superseded_count: int = 0
    deleted_count: int = 0
    request_count: int = 0
    dry_run: bool = False
    grant_count: int = 0
    held: str = ""
    """Why nothing was erased, or would be; empty unless the clock is in doubt."""
    note_count: int = 0
    """Notes that have expired."""


@dataclass(frozen=True, slots=True)
class PeoplePage:
    """People, those named most often first, and the token of the next page; empty at the end."""

    people: tuple[Profile, ...]
    next_page_token: str = ""


@dataclass(frozen=True, slots=True)
class EntityMemories:
    """An entity and the memories that name it, newest first."""

    entity: Profile
    memories: tuple[ShownMemory, ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """The entity that two are now, and the id to take the first out by again."""

    entity: Profile
    merged_id: str


@dataclass(frozen=True, slots=True)
class OwnerContents:
    """What an owner has in the store, counted; of ids the first thousand, newest memories and oldest messages first."""

    memory_count: int = 0
    message_count: int = 0
    thread_count: int = 0
    memory_ids: tuple[str, ...] = ()
    message_ids: tuple[str, ...] = ()
    trusts: frozenset[Trust] = frozenset()
    """Every class of trust of memories, people, threads, working memory and notes."""
    note_count: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing at all."""
        return not self.trusts


@dataclass(frozen=True, slots=True)
class OwnerSize:
    """How much is stored of a user or of a chat, with one agent."""

    agent_id: str
    user_id: str
    chat_id: str
    memory_count: int
    """In every state."""
    message_count: int
    content_bytes: int
    """Of the text of both and of notes, in UTF-8."""
    new_memory_count: int = 0
    """Of the memories, those that were made lately: in the last 7 days, where a daemon answers."""
    new_message_count: int = 0


@dataclass(frozen=True, slots=True)
class OwnerSizes:
    """Those with most text first, as many as were asked for, and how many there are."""

    owners: tuple[OwnerSize, ...]
    owner_count: int


@dataclass(frozen=True, slots=True)
class ErasedUser:
    """The receipt of a user of one agent whose things were all erased, or would be; ids are the first thousand."""

    agent_id: str
    memory_count: int
    message_count: int
    thread_count: int
    memory_ids: tuple[str, ...] = ()
    message_ids: tuple[str, ...] = ()
    purge_time: datetime | None = None
    backups: tuple[str, ...] = ()
    dry_run: bool = False
    note_count: int = 0


@dataclass(frozen=True, slots=True)
class ForgottenPerson:
    """The receipt of a person who was forgotten, or would be; fields as in ForgetPersonResponse."""

    entity: Profile
    purged_ids: tuple[str, ...]
    purged_count: int
    mentioning_ids: tuple[str, ...] = ()
    purge_time: datetime | None = None
    backups: tuple[str, ...] = ()
    dry_run: bool = False
    memories: tuple[ShownMemory, ...] = ()
    mentioning_memories: tuple[ShownMemory, ...] = ()
    message_ids: tuple[str, ...] = ()
    """Messages that name the person: erased with `with_messages`, else they stay."""
    message_count: int = 0
    thread_ids: tuple[str, ...] = ()
    """Threads whose summary or working memory names them."""
    in_working_memory: bool = False
    """Whether the working memory of the user or chat does."""
    with_messages: bool = False
    messages: tuple[Message, ...] = ()
    """In a dry run, the first hundred messages that name the person."""
    note_paths: tuple[str, ...] = ()
    """Notes that name them, now or before."""


@dataclass(frozen=True, slots=True)
class ForgottenGrant:
    """How many memories of a grant went, what they had replaced, and until when they can be restored."""

    deleted_count: int
    superseded_ids: tuple[str, ...] = ()
    purge_time: datetime | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Faded:
    """A memory that has faded: whose it is (a user or a chat), and what its confidence has become."""

    id: str
    owner: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Decayed:
    """What has faded and was forgotten, or would be, least confidence first; fields as in RunDecayResponse."""

    examined_count: int
    decayed_count: int
    faded: tuple[Faded, ...]
    dry_run: bool = False
    held: str = ""
    """Why nothing went, or would go; empty unless the clock is in doubt."""


@dataclass(frozen=True, slots=True)
class Enriched:
    """What looking again for entities has found, or why nothing was done; fields as in RunEnrichmentResponse."""

    examined_count: int = 0
    linked_count: int = 0
    skipped: str = ""
    dry_run: bool = False
    denied_count: int = 0
    remaining_count: int = 0


@dataclass(frozen=True, slots=True)
class Reembedding:
    """How far the re-embedding is; fields as in RunReembeddingResponse."""

    pending_count: int = 0
    embedded_count: int = 0
    failed_count: int = 0
    running: bool = False
    fault: str = ""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A job, when it runs next and how its last run went; fields as in `job_service.proto`."""

    name: str
    meaning: str
    schedule: str = ""
    next_time: datetime | None = None
    last_run: Run | None = None
    waiting_count: int = 0
    parked_count: int = 0
    attempts: int = 0
    has_dry_run: bool = True


@dataclass(frozen=True, slots=True)
class ParkedThread:
    """A thread that a job cannot read; fields as in `job_service.proto`."""

    job: str
    agent_id: str
    user_id: str
    chat_id: str
    thread_id: str
    seq: int
    attempts: int
    error: str
    fail_time: datetime | None


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction did: bytes before and after, and for how long writes waited."""

    before_bytes: int
    after_bytes: int
    pause: timedelta
    backups: tuple[str, ...] = ()
    purged_meanwhile: bool = False
    """Whether something was purged while it went on: its bytes are in the file until the next one."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Where something of a purged memory was found, and what removes it."""

    place: str
    detail: str


@dataclass(frozen=True, slots=True)
class Proof:
    """
    Every trace of a purged memory (none: it is gone), and how much was read to find it.

    The times are the audit log's: when it begins, when it first names the id, when the memory was purged; None where
    it does not say. The backups are those that may still hold it, each with the day on which it goes.
    """

    traces: tuple[Trace, ...]
    file_count: int
    byte_count: int
    log_start_time: datetime | None = None
    seen_time: datetime | None = None
    purge_time: datetime | None = None
    backups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What runs, on which data, and how it fares; fields as in `admin_service.proto`."""

    version: str
    uptime: timedelta
    store_path: str
    store_id: str
    schema_version: int
    commit_seq: int
    store_bytes: int
    memory_count: int
    embedding_provider: str
    embedding_fingerprint: str
    embedding_dimensions: int
    index_scopes: int
    index_bytes: int
    rss_bytes: int
    sandbox_count: int
    audit_path: str
    unembedded_count: int
    message_count: int
    unembedded_message_count: int
    max_loop_lag: timedelta
    warnings: tuple[str, ...]
    backup_path: str = ""
    backup_shipped_time: datetime | None = None
    backup_proved_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class ExportPart:
    """A part of all that is stored."""

    records: tuple[str, ...]
    """Lines of JSON, without their ends."""
    next_cursor: str
    """After what the next part begins; empty: this is the last one."""


@dataclass(frozen=True, slots=True)
class ImportedRecords:
    """What came of lines of an export, by type."""

    new_counts: Mapping[str, int]
    known_counts: Mapping[str, int]
    """The same are there already."""
    kept_counts: Mapping[str, int]
    """Others of the same id are there, and stay."""
    dry_run: bool = False
    erased_counts: Mapping[str, int] = field(default_factory=dict)
    """The store was told to erase them after they were made: they stay erased."""
