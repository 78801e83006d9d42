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
from memory_client.credentials import Credentials
from memory_client.grant_calls import ForgottenGrant, GrantPage, InspectedToken, IssuedToken, TokenKeys, WhoAmI
from memoryd.errors import (
    AmbiguousId,
    Conflict,
    GrantNotFound,
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
    TrustTooLow,
    Unauthenticated,
    Unavailable,
)
from memoryd.grant import Door, Grant, GrantSpec, GrantStatus, GrantUsage, Permission, Quota, check_permissions
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
from memoryd.token import Caveats, attenuate

__all__ = [
    "AddResult",
    "AmbiguousId",
    "AsyncMemoryClient",
    "BuiltContext",
    "Caveats",
    "Conflict",
    "ContextItem",
    "ContextSection",
    "Credentials",
    "Deleted",
    "Door",
    "Draft",
    "Filter",
    "ForgottenGrant",
    "GcReport",
    "Grant",
    "GrantNotFound",
    "GrantPage",
    "GrantSpec",
    "GrantStatus",
    "GrantUsage",
    "Hit",
    "IdentityMissing",
    "InspectedToken",
    "InternalError",
    "InvalidArgument",
    "IssuedToken",
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
    "Permission",
    "PermissionDenied",
    "Quota",
    "RequestIdReused",
    "Scope",
    "ScopeMismatch",
    "SearchResult",
    "ServerInfo",
    "Source",
    "State",
    "Stats",
    "TimedOut",
    "TokenKeys",
    "Trust",
    "TrustTooLow",
    "Unauthenticated",
    "Unavailable",
    "WhoAmI",
    "attenuate",
    "check_permissions",
]
