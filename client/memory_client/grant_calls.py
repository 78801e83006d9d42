"""The RPCs of identity as values: who one is, and what the host gives and takes back; see `calls`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from memory_client.calls import Call, build, count, stamped
from memory_client.endpoint import Identity
from memoryd.errors import InvalidArgument
from memoryd.model.grant import Door, Grant, GrantSpec, GrantStatus, GrantUsage, Permission, Quota
from memoryd.model.reports import ForgottenGrant
from memoryd.model.results import Page
from memoryd.v1 import grant_service_pb2, identity_service_pb2
from memoryd.wire.grant import (
    DOOR,
    grant_from_pb,
    permissions_from_pb,
    quota_from_pb,
    spec_to_pb,
    status_from_pb,
    usage_from_pb,
)
from memoryd.wire.memory import memory_from_pb, set_time, time_from_pb

__all__ = ["GrantPage", "InspectedToken", "IssuedToken", "TokenKeys", "WhoAmI"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WhoAmI:
    """The identity that calls have, and what they may do; fields as in `identity_service.proto`."""

    door: Door
    agent_id: str
    user_id: str
    chat_id: str
    chat_ids: tuple[str, ...]
    permissions: frozenset[Permission]
    grant_id: str
    expire_time: datetime | None
    quota: Quota
    usage: GrantUsage
    agent_disabled: bool = False


@dataclass(frozen=True, slots=True)
class GrantPage:
    """Grants with what came of them, newest first, and the token of the next page; empty at the end."""

    grants: tuple[GrantStatus, ...]
    next_page_token: str = ""


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token, which is shown this once; its id; its grant."""

    token: str
    token_id: str
    grant: Grant

    def __repr__(self) -> str:
        """Leave the secret out of every trace."""
        return f"IssuedToken({self.token_id})"


@dataclass(frozen=True, slots=True)
class InspectedToken:
    """Whether a token counts and why not, its parts, and what is left of its grant under its caveats."""

    valid: bool
    refusal: str
    token_id: str
    key_id: str
    caveats: tuple[str, ...]
    grant: Grant | None


@dataclass(frozen=True, slots=True)
class TokenKeys:
    """The key that signs from now on, and the older ones that still verify."""

    key_id: str
    older_key_ids: tuple[str, ...]


def _call(method: str, request: Any, response: Any, parse: Callable[[Any], T], *, retryable: bool = True) -> Call[T]:
    return Call("GrantService", method, request, response, parse, retryable)


def _spec(spec: GrantSpec) -> Any:
    if not isinstance(spec, GrantSpec):
        raise InvalidArgument(f"spec must be a GrantSpec, not {type(spec).__name__}", field="spec")
    return spec_to_pb(spec)


def whoami(identity: Identity) -> Call[WhoAmI]:
    """WhoAmI."""
    pb = identity_service_pb2

    def parse(answer: Any) -> WhoAmI:
        return WhoAmI(
            door=DOOR.from_pb(answer.door),
            agent_id=answer.agent_id,
            user_id=answer.user_id,
            chat_id=answer.chat_id,
            chat_ids=tuple(answer.chat_ids),
            permissions=permissions_from_pb(answer.permissions),
            grant_id=answer.grant_id,
            expire_time=time_from_pb(answer, "expire_time"),
            quota=quota_from_pb(answer.quota),
            usage=usage_from_pb(answer.usage),
            agent_disabled=answer.agent_disabled,
        )

    return Call("IdentityService", "WhoAmI", stamped(pb.WhoAmIRequest(), identity), pb.WhoAmIResponse, parse)


def open_sandbox(spec: GrantSpec) -> Call[GrantStatus]:
    """OpenSandbox."""
    pb = grant_service_pb2
    request = build(lambda: pb.OpenSandboxRequest(spec=_spec(spec)))
    return _call(
        "OpenSandbox", request, pb.OpenSandboxResponse, lambda answer: status_from_pb(answer.status), retryable=False
    )


def grants(*, page_size: int, page_token: str, include_ended: bool, listeners_only: bool) -> Call[GrantPage]:
    """ListGrants."""
    pb = grant_service_pb2
    request = build(
        lambda: pb.ListGrantsRequest(
            page_size=count(page_size, "page_size"),
            page_token=page_token,
            include_ended=include_ended,
            listeners_only=listeners_only,
        )
    )
    return _call(
        "ListGrants",
        request,
        pb.ListGrantsResponse,
        lambda answer: GrantPage(tuple(map(status_from_pb, answer.grants)), answer.next_page_token),
    )


def revoke_grant(grant_id: str) -> Call[Grant]:
    """RevokeGrant."""
    pb = grant_service_pb2
    request = build(lambda: pb.RevokeGrantRequest(grant_id=grant_id))
    return _call("RevokeGrant", request, pb.RevokeGrantResponse, lambda answer: grant_from_pb(answer.grant))


def issue_token(target: GrantSpec | str, *, expire_time: datetime | None, via: str) -> Call[IssuedToken]:
    """IssueToken."""
    pb = grant_service_pb2

    def make() -> Any:
        request = pb.IssueTokenRequest(via=via)
        if isinstance(target, str):
            request.grant_id = target
        else:
            request.spec.CopyFrom(_spec(target))
        set_time(request, "expire_time", expire_time)
        return request

    return _call(
        "IssueToken",
        build(make),
        pb.IssueTokenResponse,
        lambda answer: IssuedToken(answer.token, answer.token_id, grant_from_pb(answer.grant)),
        retryable=False,
    )


def inspect_token(token: str) -> Call[InspectedToken]:
    """InspectToken."""
    pb = grant_service_pb2

    def parse(answer: Any) -> InspectedToken:
        grant = grant_from_pb(answer.grant) if answer.HasField("grant") else None
        return InspectedToken(
            answer.valid, answer.refusal, answer.token_id, answer.key_id, tuple(answer.caveats), grant
        )

    return _call("InspectToken", build(lambda: pb.InspectTokenRequest(token=token)), pb.InspectTokenResponse, parse)


def rotate_token_keys(*, drop_older: bool) -> Call[TokenKeys]:
    """RotateTokenKeys."""
    pb = grant_service_pb2
    return _call(
        "RotateTokenKeys",
        pb.RotateTokenKeysRequest(drop_older=drop_older),
        pb.RotateTokenKeysResponse,
        lambda answer: TokenKeys(answer.key_id, tuple(answer.older_key_ids)),
        retryable=False,
    )


def grant_memories(grant_id: str, *, page_size: int, page_token: str, include_deleted: bool) -> Call[Page]:
    """ListGrantMemories."""
    pb = grant_service_pb2
    request = build(
        lambda: pb.ListGrantMemoriesRequest(
            grant_id=grant_id,
            page_size=count(page_size, "page_size"),
            page_token=page_token,
            include_deleted=include_deleted,
        )
    )
    return _call(
        "ListGrantMemories",
        request,
        pb.ListGrantMemoriesResponse,
        lambda answer: Page(tuple(map(memory_from_pb, answer.memories)), answer.next_page_token),
    )


def delete_grant_memories(grant_id: str, *, dry_run: bool, purge: bool) -> Call[ForgottenGrant]:
    """DeleteGrantMemories."""
    pb = grant_service_pb2
    request = build(lambda: pb.DeleteGrantMemoriesRequest(grant_id=grant_id, dry_run=dry_run, purge=purge))

    def parse(answer: Any) -> ForgottenGrant:
        return ForgottenGrant(
            answer.deleted_count, tuple(answer.superseded_ids), time_from_pb(answer, "purge_time"), answer.dry_run
        )

    return _call("DeleteGrantMemories", request, pb.DeleteGrantMemoriesResponse, parse)
