"""
Every RPC as a value: the request, where it goes, and what its answer becomes.

The two clients only differ in how they send it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from memory_client.endpoint import Identity
from memoryd.errors import InvalidArgument, LimitExceeded
from memoryd.model.context import BuiltContext, ContextRequest
from memoryd.model.memory import Draft, ShownMemory
from memoryd.model.query import Filter
from memoryd.model.results import AddResult, Deleted, Page, ProfileItem, SearchResult, Stats
from memoryd.model.validation import check_time
from memoryd.v1 import context_service_pb2, memory_service_pb2
from memoryd.wire.context import context_from_pb, request_to_pb
from memoryd.wire.contract import writes_of
from memoryd.wire.memory import (
    draft_to_pb,
    filter_to_pb,
    hit_from_pb,
    legs_from_pb,
    memory_from_pb,
    miss_from_pb,
    result_from_pb,
    set_time,
    time_from_pb,
)
from memoryd.wire.profile import profile_from_pb
from memoryd.wire.stats import stats_from_pb

__all__ = [
    "ATTEMPTS",
    "Call",
    "backoff_s",
    "build",
    "count",
    "filter_of",
    "memory_call",
    "request_id_of",
    "stamped",
]

T = TypeVar("T")
ATTEMPTS = 3
_BACKOFF_S = (0.05, 0.25)


def backoff_s(attempt: int) -> float:
    """Return how long to wait after a failed attempt, counted from 0: half to all of its time, so that many spread."""
    import random  # on retries only, as the command's start counts

    return _BACKOFF_S[min(attempt, len(_BACKOFF_S) - 1)] * random.uniform(0.5, 1.0)  # noqa: S311  no secret


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One RPC; `retryable` says that sending it twice does what sending it once does."""

    service: str
    method: str
    request: Any
    response: Any
    parse: Callable[[Any], T]
    retryable: bool = True

    @property
    def writes(self) -> bool:
        """Whether it may change what is stored."""
        service = self.request.DESCRIPTOR.file.services_by_name[self.service]
        return writes_of(service.methods_by_name[self.method]) and not getattr(self.request, "dry_run", False)

    @property
    def path(self) -> str:
        """The name on the wire."""
        return f"/memoryd.v1.{self.service}/{self.method}"


def stamped(request: Any, identity: Identity) -> Any:
    """Return a request that says who asks."""
    request.agent_id, request.user_id, request.chat_id = identity.agent_id, identity.user_id, identity.chat_id
    return request


LEAST_INT32, MOST_INT32 = -(2**31), 2**31 - 1


def count(value: int, name: str) -> int:
    """Return a count that the wire can carry; the daemon says what it allows."""
    if not isinstance(value, int):
        raise InvalidArgument(f"{name} must be a whole number, not {value!r}", field=name)
    if value > MOST_INT32:
        raise LimitExceeded(f"{name} is {value}, which is more than any limit", field=name, limit=name)
    return max(value, LEAST_INT32)


def filter_of(wanted: Filter) -> Filter:
    """Return a filter; InvalidArgument for anything else."""
    if not isinstance(wanted, Filter):
        raise InvalidArgument(f"filter must be a Filter, not {type(wanted).__name__}", field="filter")
    return wanted


def build(make: Callable[[], Any], identity: Identity | None = None) -> Any:
    """Return the request that is made, saying who asks; InvalidArgument if the wire cannot carry a value."""
    try:
        return make() if identity is None else stamped(make(), identity)
    except UnicodeEncodeError:
        raise InvalidArgument("a text contains a lone surrogate, which is not Unicode; decode it properly") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(str(error)) from None


def request_id_of(given: str) -> str:
    """Return the id that was given, or a new one."""
    return given or os.urandom(16).hex()


def memory_call(
    method: str, request: Any, response: Any, parse: Callable[[Any], T], *, retryable: bool = True
) -> Call[T]:
    """Return a call of MemoryService."""
    return Call("MemoryService", method, request, response, parse, retryable)


def add(identity: Identity, draft: Draft, request_id: str) -> Call[AddResult]:
    """AddMemory."""
    pb = memory_service_pb2

    def make() -> Any:
        request = draft_to_pb(draft)
        request.request_id = request_id_of(request_id)
        return request

    request = build(make, identity)
    return memory_call("AddMemory", request, pb.AddMemoryResponse, lambda answer: result_from_pb(answer.result))


def add_batch(identity: Identity, drafts: Sequence[Draft], request_id: str) -> Call[list[AddResult]]:
    """BatchAddMemories."""
    pb = memory_service_pb2

    def make() -> Any:
        if not all(isinstance(draft, Draft) for draft in drafts):
            raise InvalidArgument("add_batch takes a list of Draft", field="requests")
        return pb.BatchAddMemoriesRequest(
            requests=[draft_to_pb(draft) for draft in drafts], request_id=request_id_of(request_id)
        )

    return memory_call(
        "BatchAddMemories",
        build(make, identity),
        pb.BatchAddMemoriesResponse,
        lambda answer: [result_from_pb(result) for result in answer.results],
    )


def search(  # noqa: PLR0913  one argument for each field of the contract
    identity: Identity,
    query: str,
    *,
    limit: int,
    wanted: Filter,
    min_score: float | None,
    explain: bool,
    as_of: datetime | None,
    why_not: str,
    without_recall: bool = False,
) -> Call[SearchResult]:
    """SearchMemories."""
    pb = memory_service_pb2

    def make() -> Any:
        request = pb.SearchMemoriesRequest(
            query=query,
            limit=count(limit, "limit"),
            filter=filter_to_pb(filter_of(wanted)),
            min_score=min_score,
            include_expired=wanted.include_expired,
            include_superseded=wanted.include_superseded,
            explain=explain,
            why_not=why_not,
            without_recall=without_recall,
        )
        set_time(request, "as_of", check_time(as_of or wanted.as_of, "as_of"))
        return request

    def parse(answer: Any) -> SearchResult:
        miss = miss_from_pb(answer.miss) if answer.HasField("miss") else None
        return SearchResult(tuple(map(hit_from_pb, answer.hits)), legs_from_pb(answer.unavailable_legs), miss)

    return memory_call("SearchMemories", build(make, identity), pb.SearchMemoriesResponse, parse)


def page(identity: Identity, *, page_size: int, page_token: str, wanted: Filter) -> Call[Page]:
    """ListMemories."""
    pb = memory_service_pb2

    def make() -> Any:
        return pb.ListMemoriesRequest(
            page_size=count(page_size, "page_size"),
            page_token=page_token,
            filter=filter_to_pb(filter_of(wanted)),
            include_expired=wanted.include_expired,
            include_superseded=wanted.include_superseded,
        )

    def parse(answer: Any) -> Page:
        return Page(tuple(map(memory_from_pb, answer.memories)), answer.next_page_token)

    return memory_call("ListMemories", build(make, identity), pb.ListMemoriesResponse, parse)


def get(identity: Identity, memory_id: str) -> Call[ShownMemory]:
    """GetMemory."""
    pb = memory_service_pb2
    request = build(lambda: pb.GetMemoryRequest(id=memory_id), identity)
    return memory_call("GetMemory", request, pb.GetMemoryResponse, lambda answer: memory_from_pb(answer.memory))


def delete(identity: Identity, memory_id: str, *, allow_missing: bool, purge: bool, request_id: str) -> Call[Deleted]:
    """DeleteMemory."""
    pb = memory_service_pb2

    def make() -> Any:
        return pb.DeleteMemoryRequest(
            id=memory_id, allow_missing=allow_missing, purge=purge, request_id=request_id_of(request_id)
        )

    def parse(answer: Any) -> Deleted:
        return Deleted(tuple(answer.deleted_ids), time_from_pb(answer, "purge_time"))

    # a purge erases the note of its request too, so that a second one finds nothing
    return memory_call(
        "DeleteMemory", build(make, identity), pb.DeleteMemoryResponse, parse, retryable=allow_missing or not purge
    )


def restore(identity: Identity, memory_id: str, request_id: str) -> Call[ShownMemory]:
    """RestoreMemory."""
    pb = memory_service_pb2
    request = build(lambda: pb.RestoreMemoryRequest(id=memory_id, request_id=request_id_of(request_id)), identity)
    return memory_call("RestoreMemory", request, pb.RestoreMemoryResponse, lambda answer: memory_from_pb(answer.memory))


def stats(identity: Identity) -> Call[Stats]:
    """GetMemoryStats."""
    pb = memory_service_pb2
    return memory_call(
        "GetMemoryStats", build(pb.GetMemoryStatsRequest, identity), pb.GetMemoryStatsResponse, stats_from_pb
    )


def profile(identity: Identity) -> Call[list[ProfileItem]]:
    """GetUserProfile."""
    pb = memory_service_pb2
    return memory_call(
        "GetUserProfile", build(pb.GetUserProfileRequest, identity), pb.GetUserProfileResponse, profile_from_pb
    )


def context(identity: Identity, **asked: Any) -> Call[BuiltContext]:
    """BuildContext; arguments as the fields of ContextRequest."""
    pb = context_service_pb2
    for name in ("exclude_thread_ids", "exclude_session_ids", "sections"):
        asked[name] = asked[name] if isinstance(asked[name], str) else tuple(asked[name])
    return Call(
        "ContextService",
        "BuildContext",
        build(lambda: request_to_pb(ContextRequest(**asked)), identity),
        pb.BuildContextResponse,
        context_from_pb,
        True,
    )
