"""
Every way in which a call can fail.

MemorydError
├── InvalidArgument      fix the request; `field` says which part
│   ├── IdentityMissing      say who asks
│   ├── PageTokenInvalid     list again from the start
│   ├── AmbiguousId          give more of the id
│   └── AmbiguousName        several are called so; name one by its id
├── NotFound             stop; also said of what exists and is not yours
│   ├── GrantNotFound        no grant has that id
│   ├── ThreadNotFound       no thread or session of that name
│   ├── RunNotFound          no run of a job has that id
│   ├── NoteNotFound         no note has that path
│   ├── ProposalNotFound     nothing that waits to be approved has that id
│   └── EntityNotFound       no one and nothing is known by that name
├── Unauthenticated      get a new token
├── PermissionDenied     stop
│   ├── ScopeMismatch        a named identity is not the bound one
│   └── TrustTooLow          what holds the key came from higher up
├── LimitExceeded        shrink the request or wait; `limit` says which
├── Conflict             read again, then retry
│   └── RequestIdReused      make a new request_id
├── Unavailable          nothing was written; retry with backoff
│   └── Contended            others changed the scope meanwhile, again and again; the same
├── TimedOut             no answer in time; a write may have happened: retry with the same request_id
│   └── ConnectionLost       the connection broke in mid-call; the same
├── StoreDamaged         tell the operator: part of the database cannot be read; retrying does not help
└── InternalError        report it, with the id in the message
    └── OutcomeUnknown       the commit was sent and not answered: whether it was written is not known

The daemon raises them, the wire carries code and reason, the client raises them again.

StartupError           the daemon does not start; the message says why and what to do
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

__all__ = [
    "EXIT_DAMAGED",
    "EXIT_LATER",
    "EXIT_REFUSED",
    "AmbiguousId",
    "AmbiguousName",
    "Conflict",
    "ConnectionLost",
    "Contended",
    "EntityNotFound",
    "GrantNotFound",
    "IdentityMissing",
    "InternalError",
    "InvalidArgument",
    "LimitExceeded",
    "MemorydError",
    "NotFound",
    "NoteNotFound",
    "OutcomeUnknown",
    "PageTokenInvalid",
    "PermissionDenied",
    "ProposalNotFound",
    "RequestIdReused",
    "RunNotFound",
    "ScopeMismatch",
    "StartupError",
    "StoreDamaged",
    "TextRefused",
    "TimedOut",
    "TrustTooLow",
    "Unauthenticated",
    "Unavailable",
    "by_reason",
    "in_part",
]


class MemorydError(Exception):
    """A failure with a canonical code and one reason of `ErrorReason`; the message has the fact and the way out."""

    code: ClassVar[str] = "INTERNAL"
    reason: ClassVar[str] = "INTERNAL"

    def __init__(self, message: str, *, field: str = "", limit: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.limit = limit

    def within(self, part: str) -> MemorydError:
        """Return the same error with its field named as that of a part of the request: `requests[3]` + `content`."""
        field = f"{part}.{self.field}" if self.field else part
        return type(self)(f"{part}: {self.message}", field=field, limit=self.limit)


@contextmanager
def in_part(part: str) -> Iterator[None]:
    """Let errors name the part of the request that they are about, as `MemorydError.within` does."""
    try:
        yield
    except MemorydError as error:
        raise error.within(part) from None


class InvalidArgument(MemorydError):
    """The request is malformed; `field` names the part."""

    code = "INVALID_ARGUMENT"
    reason = "INVALID_FIELD"


class IdentityMissing(InvalidArgument):
    """Neither user_id nor chat_id says who asks."""

    reason = "IDENTITY_MISSING"


class PageTokenInvalid(InvalidArgument):
    """The page token is forged, damaged or of another query."""

    reason = "PAGE_TOKEN_INVALID"


class AmbiguousId(InvalidArgument):
    """Several memories begin with the given prefix."""

    reason = "ID_AMBIGUOUS"


class _NamesPeople(MemorydError):
    """A failure whose message names people of the scope, which not every caller may read."""

    def __init__(self, message: str, *, names: str = "", field: str = "", limit: str = "") -> None:
        super().__init__(message + names, field=field, limit=limit)
        self.unnamed = message

    def without_names(self) -> MemorydError:
        """Return the same error for who may not read names."""
        return type(self)(self.unnamed, field=self.field, limit=self.limit)


class AmbiguousName(_NamesPeople, InvalidArgument):
    """Several entities are called so."""

    reason = "NAME_AMBIGUOUS"


class NotFound(MemorydError):
    """It is not there, or not visible to the caller, which is the same."""

    code = "NOT_FOUND"
    reason = "MEMORY_NOT_FOUND"


class EntityNotFound(_NamesPeople, NotFound):
    """No one and nothing is known by that name."""

    reason = "ENTITY_NOT_FOUND"


class ThreadNotFound(NotFound):
    """The caller has no thread or session of that name."""

    reason = "THREAD_NOT_FOUND"


class NoteNotFound(NotFound):
    """No note of the owner has that path, or its version is no longer kept."""

    reason = "NOTE_NOT_FOUND"


class ProposalNotFound(NotFound):
    """Nothing that waits to be approved has that id: it may have been decided, or its conversation is gone."""

    reason = "PROPOSAL_NOT_FOUND"


class RunNotFound(NotFound):
    """No run of a job has that id; it may be too old."""

    reason = "RUN_NOT_FOUND"


class GrantNotFound(NotFound):
    """No grant has that id."""

    reason = "GRANT_NOT_FOUND"


class Unauthenticated(MemorydError):
    """Who calls could not be established."""

    code = "UNAUTHENTICATED"
    reason = "UNAUTHENTICATED"


class PermissionDenied(MemorydError):
    """The caller may not do that."""

    code = "PERMISSION_DENIED"
    reason = "PERMISSION_DENIED"


class ScopeMismatch(PermissionDenied):
    """A named identity is not the one that the caller is bound to."""

    reason = "SCOPE_MISMATCH"


class TrustTooLow(PermissionDenied):
    """The key is held by a memory of higher trust."""

    reason = "TRUST_TOO_LOW"


class LimitExceeded(MemorydError):
    """Something is larger or more than allowed; `limit` names the limit."""

    code = "RESOURCE_EXHAUSTED"
    reason = "LIMIT_EXCEEDED"


class Conflict(MemorydError):
    """The state of the store does not allow it now."""

    code = "ABORTED"
    reason = "CONFLICT"


class RequestIdReused(Conflict):
    """The request_id came with another request before."""

    reason = "REQUEST_ID_REUSED"


class Unavailable(MemorydError):
    """It cannot be served now, and nothing was written."""

    code = "UNAVAILABLE"
    reason = "UNAVAILABLE"


class Contended(Unavailable):
    """Others changed the scope while the call decided what to write. Nothing was written; the daemon decides again."""


class TextRefused(Unavailable):
    """The model cannot embed this text; others it can."""


class StoreDamaged(MemorydError):
    """Part of the database cannot be read; only an operator can help."""

    code = "DATA_LOSS"
    reason = "STORE_DAMAGED"


class TimedOut(MemorydError):
    """No answer came in time; raised by the client alone."""

    code = "DEADLINE_EXCEEDED"
    reason = "TIMED_OUT"


class ConnectionLost(TimedOut):
    """The connection broke in mid-call; what carries a request_id is sent again. Raised by the client alone."""


class InternalError(MemorydError):
    """A fault of the daemon."""


class OutcomeUnknown(InternalError):
    """The commit was sent to the store and not answered: whether it was written is not known."""


def by_reason(reason: str) -> type[MemorydError] | None:
    """Return the class whose reason it is; None for a reason of a later version."""
    pending: list[type[MemorydError]] = [MemorydError]
    while pending:
        cls = pending.pop()
        if cls is not MemorydError and cls.reason == reason:
            return cls
        pending.extend(cls.__subclasses__())
    return None


EXIT_LATER = 75  # EX_TEMPFAIL of sysexits(3): starting again later may help
EXIT_DAMAGED = 65  # EX_DATAERR of sysexits(3): a file is not what was written
EXIT_REFUSED = 78  # EX_CONFIG of sysexits(3): starting again would not help


class StartupError(Exception):
    """The daemon cannot start as things are; the message says why and what to do."""

    exit_code: ClassVar[int] = EXIT_REFUSED
