"""
The client of memoryd.

>>> from memory_client import MemoryClient
>>> with MemoryClient(user_id="alice") as memory:          # doctest: +SKIP
...     memory.add("I'm allergic to peanuts")
...     memory.search("What should I avoid eating?").hits[0].memory.content
"I'm allergic to peanuts"
"""

from memory_client.aio import AsyncMemoryClient
from memory_client.calls import BuiltContext, Deleted, Page, SearchResult, ServerInfo
from memory_client.client import MemoryClient
from memoryd.errors import (
    AmbiguousId,
    Conflict,
    IdentityMissing,
    InternalError,
    InvalidArgument,
    LimitExceeded,
    MemorydError,
    NotFound,
    PageTokenInvalid,
    PermissionDenied,
    RequestIdReused,
    ScopeMismatch,
    TimedOut,
    Unauthenticated,
    Unavailable,
)
from memoryd.model import (
    AddResult,
    ContextItem,
    ContextSection,
    Draft,
    Filter,
    GcReport,
    Hit,
    Judgement,
    Kind,
    Leg,
    LegScore,
    Memory,
    MemoryCount,
    Outcome,
    Scope,
    Source,
    State,
    Stats,
    Trust,
)

__all__ = [
    "AddResult",
    "AmbiguousId",
    "AsyncMemoryClient",
    "BuiltContext",
    "Conflict",
    "ContextItem",
    "ContextSection",
    "Deleted",
    "Draft",
    "Filter",
    "GcReport",
    "Hit",
    "IdentityMissing",
    "InternalError",
    "InvalidArgument",
    "Judgement",
    "Kind",
    "Leg",
    "LegScore",
    "LimitExceeded",
    "Memory",
    "MemoryClient",
    "MemoryCount",
    "MemorydError",
    "NotFound",
    "Outcome",
    "Page",
    "PageTokenInvalid",
    "PermissionDenied",
    "RequestIdReused",
    "Scope",
    "ScopeMismatch",
    "SearchResult",
    "ServerInfo",
    "Source",
    "State",
    "Stats",
    "TimedOut",
    "Trust",
    "Unauthenticated",
    "Unavailable",
]
