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
from memory_client.knowledge_calls import (
    Compaction,
    Confirmed,
    Decayed,
    DeletedMany,
    Enriched,
    EntityMemories,
    Faded,
    ForgottenPerson,
    History,
    Merged,
    PeoplePage,
    Proof,
    Trace,
)
from memoryd.errors import (
    AmbiguousId,
    AmbiguousName,
    Conflict,
    EntityNotFound,
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
    StoreDamaged,
    TimedOut,
    TrustTooLow,
    Unauthenticated,
    Unavailable,
)
from memoryd.model.entity import EntityRef, EntityType, Profile
from memoryd.model.grant import Door, Grant, GrantSpec, GrantStatus, GrantUsage, Permission, Quota, check_permissions
from memoryd.model.memory import Draft, Judgement, Kind, Memory, Outcome, Source, State
from memoryd.model.query import Filter
from memoryd.model.results import (
    AddResult,
    ContextItem,
    ContextSection,
    GcReport,
    Hit,
    Leg,
    LegScore,
    MemoryCount,
    Stats,
)
from memoryd.model.scope import Scope
from memoryd.model.token import Caveats, attenuate
from memoryd.model.trust import Trust

__all__ = [
    "AddResult",
    "AmbiguousId",
    "AmbiguousName",
    "AsyncMemoryClient",
    "BuiltContext",
    "Caveats",
    "Compaction",
    "Confirmed",
    "Conflict",
    "ContextItem",
    "ContextSection",
    "Credentials",
    "Decayed",
    "Deleted",
    "DeletedMany",
    "Door",
    "Draft",
    "Enriched",
    "EntityMemories",
    "EntityNotFound",
    "EntityRef",
    "EntityType",
    "Faded",
    "Filter",
    "ForgottenGrant",
    "ForgottenPerson",
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
    "Merged",
    "NotFound",
    "Outcome",
    "Page",
    "PageTokenInvalid",
    "PeoplePage",
    "Permission",
    "PermissionDenied",
    "Profile",
    "Proof",
    "Quota",
    "RequestIdReused",
    "Scope",
    "ScopeMismatch",
    "SearchResult",
    "ServerInfo",
    "Source",
    "State",
    "Stats",
    "StoreDamaged",
    "TimedOut",
    "TokenKeys",
    "Trace",
    "Trust",
    "TrustTooLow",
    "Unauthenticated",
    "Unavailable",
    "WhoAmI",
    "attenuate",
    "check_permissions",
]
