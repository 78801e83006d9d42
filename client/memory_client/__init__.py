"""
The client of memoryd.

>>> from memory_client import MemoryClient
>>> with MemoryClient(user_id="alice") as memory:          # doctest: +SKIP
...     memory.add("I'm allergic to peanuts")
...     memory.search("What should I avoid eating?").hits[0].memory.content
"I'm allergic to peanuts"
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory_client.aio import AsyncMemoryClient
    from memory_client.aio_conversations import AsyncConversation
    from memory_client.client import MemoryClient
    from memory_client.conversations import Conversation
    from memory_client.credentials import Credentials
    from memory_client.grant_calls import GrantPage, InspectedToken, IssuedToken, TokenKeys, WhoAmI
    from memoryd.errors import (
        AmbiguousId,
        AmbiguousName,
        Conflict,
        ConnectionLost,
        EntityNotFound,
        GrantNotFound,
        IdentityMissing,
        InternalError,
        InvalidArgument,
        LimitExceeded,
        MemorydError,
        NoteNotFound,
        NotFound,
        PageTokenInvalid,
        PermissionDenied,
        ProposalNotFound,
        RequestIdReused,
        RunNotFound,
        ScopeMismatch,
        StoreDamaged,
        ThreadNotFound,
        TimedOut,
        TrustTooLow,
        Unauthenticated,
        Unavailable,
    )
    from memoryd.model.context import BuiltContext, ContextItem, ContextRequest, ContextSection
    from memoryd.model.conversation import Message, Role, Session, SessionState, Thread, ToolCall, WorkingMemory
    from memoryd.model.entity import EntityRef, EntityType, Profile
    from memoryd.model.grant import (
        Door,
        Grant,
        GrantSpec,
        GrantStatus,
        GrantUsage,
        Permission,
        Quota,
        check_permissions,
    )
    from memoryd.model.imported import ImportDraft, ImportedNote, ImportOutcome, ImportReport, ImportResult
    from memoryd.model.learnt import MemoryConflict, Proposal, Resolution, SaidFact, SessionMessages, Stands
    from memoryd.model.memory import Draft, Judgement, Kind, Outcome, Source, State
    from memoryd.model.memory import ShownMemory as Memory
    from memoryd.model.message_draft import MessageDraft
    from memoryd.model.note import DeletedNotes, MovedNotes, Note, NoteDraft, NotePage, NoteVersion
    from memoryd.model.query import Filter
    from memoryd.model.reports import (
        Compaction,
        Decayed,
        Enriched,
        EntityMemories,
        ErasedUser,
        ExportPart,
        Faded,
        ForgottenGrant,
        ForgottenPerson,
        GcReport,
        ImportedRecords,
        JobStatus,
        Merged,
        OwnerSize,
        OwnerSizes,
        ParkedThread,
        PeoplePage,
        Proof,
        Reembedding,
        ServerInfo,
        Trace,
    )
    from memoryd.model.results import (
        AddResult,
        Confirmed,
        Deleted,
        DeletedMany,
        History,
        Hit,
        Leg,
        LegScore,
        MemoryCount,
        Page,
        ProfileItem,
        SearchResult,
        Stats,
    )
    from memoryd.model.scope import Scope
    from memoryd.model.talk import (
        Appended,
        AppendedMessage,
        CompactedThread,
        ErasedMessages,
        ErasedThread,
        FoundMessages,
        MessageHit,
        MessagePage,
        MessageSearch,
        SessionPage,
        StartedSession,
        Summary,
        ThreadPage,
    )
    from memoryd.model.token import Caveats, attenuate
    from memoryd.model.trust import Trust
    from memoryd.model.work import Run, RunState

__all__ = [
    "AddResult",
    "AmbiguousId",
    "AmbiguousName",
    "Appended",
    "AppendedMessage",
    "AsyncConversation",
    "AsyncMemoryClient",
    "BuiltContext",
    "Caveats",
    "CompactedThread",
    "Compaction",
    "Confirmed",
    "Conflict",
    "ConnectionLost",
    "ContextItem",
    "ContextRequest",
    "ContextSection",
    "Conversation",
    "Credentials",
    "Decayed",
    "Deleted",
    "DeletedMany",
    "DeletedNotes",
    "Door",
    "Draft",
    "Enriched",
    "EntityMemories",
    "EntityNotFound",
    "EntityRef",
    "EntityType",
    "ErasedMessages",
    "ErasedThread",
    "ErasedUser",
    "ExportPart",
    "Faded",
    "Filter",
    "ForgottenGrant",
    "ForgottenPerson",
    "FoundMessages",
    "GcReport",
    "Grant",
    "GrantNotFound",
    "GrantPage",
    "GrantSpec",
    "GrantStatus",
    "GrantUsage",
    "History",
    "Hit",
    "IdentityMissing",
    "ImportDraft",
    "ImportOutcome",
    "ImportReport",
    "ImportResult",
    "ImportedNote",
    "ImportedRecords",
    "InspectedToken",
    "InternalError",
    "InvalidArgument",
    "IssuedToken",
    "JobStatus",
    "Judgement",
    "Kind",
    "Leg",
    "LegScore",
    "LimitExceeded",
    "Memory",
    "MemoryClient",
    "MemoryConflict",
    "MemoryCount",
    "MemorydError",
    "Merged",
    "Message",
    "MessageDraft",
    "MessageHit",
    "MessagePage",
    "MessageSearch",
    "MovedNotes",
    "NotFound",
    "Note",
    "NoteDraft",
    "NoteNotFound",
    "NotePage",
    "NoteVersion",
    "Outcome",
    "OwnerSize",
    "OwnerSizes",
    "Page",
    "PageTokenInvalid",
    "ParkedThread",
    "PeoplePage",
    "Permission",
    "PermissionDenied",
    "Profile",
    "ProfileItem",
    "Proof",
    "Proposal",
    "ProposalNotFound",
    "Quota",
    "Reembedding",
    "RequestIdReused",
    "Resolution",
    "Role",
    "Run",
    "RunNotFound",
    "RunState",
    "SaidFact",
    "Scope",
    "ScopeMismatch",
    "SearchResult",
    "ServerInfo",
    "Session",
    "SessionMessages",
    "SessionPage",
    "SessionState",
    "Source",
    "Stands",
    "StartedSession",
    "State",
    "Stats",
    "StoreDamaged",
    "Summary",
    "Thread",
    "ThreadNotFound",
    "ThreadPage",
    "TimedOut",
    "TokenKeys",
    "ToolCall",
    "Trace",
    "Trust",
    "TrustTooLow",
    "Unauthenticated",
    "Unavailable",
    "WhoAmI",
    "WorkingMemory",
    "attenuate",
    "check_permissions",
]

# What is asked for is imported then: a command that searches needs a quarter of all this. Most wanted first.
_MODULES = (
    "memoryd.errors",
    "memoryd.model.memory",
    "memoryd.model.query",
    "memoryd.model.results",
    "memory_client.client",
    "memory_client.credentials",
    "memoryd.model.scope",
    "memoryd.model.trust",
    "memoryd.model.entity",
    "memoryd.model.grant",
    "memoryd.model.reports",
    "memoryd.model.context",
    "memoryd.model.conversation",
    "memoryd.model.message_draft",
    "memoryd.model.talk",
    "memoryd.model.note",
    "memoryd.model.token",
    "memoryd.model.imported",
    "memoryd.model.learnt",
    "memoryd.model.work",
    "memory_client.grant_calls",
    "memory_client.conversations",
    "memory_client.notes",
    "memory_client.aio_notes",
    "memory_client.aio_conversations",
    "memory_client.operations",
    "memory_client.aio_operations",
    "memory_client.aio",
)


_PARTS = ("admin_calls", "aio", "aio_conversations", "aio_notes", "aio_operations", "calls", "client",
          "conversation_calls", "conversations", "credentials", "endpoint", "failures", "grant_calls",
          "import_calls", "json_text", "knowledge_calls", "note_calls", "notes", "operations")  # fmt: skip


_SHOWN_AS = {"Memory": "ShownMemory"}
"""What is called otherwise here: whoever calls gets memories as answers show them."""


def __getattr__(name: str) -> Any:
    """Return one of the names above, or a module of the package; see PEP 562."""
    if name in __all__:
        defined = _SHOWN_AS.get(name, name)
        for module in map(import_module, _MODULES):
            if defined in vars(module):
                globals()[name] = vars(module)[defined]
                return globals()[name]
    if name in _PARTS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
