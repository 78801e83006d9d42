"""Between grants and the messages of the contract; shared by the service and the client."""

from __future__ import annotations

from typing import Any

from memoryd.model.grant import (
    Door,
    Grant,
    GrantSpec,
    GrantStatus,
    GrantUsage,
    Permission,
    Quota,
    check_permissions,
    permission_names,
)
from memoryd.v1 import grant_pb2, grant_service_pb2
from memoryd.wire.memory import EnumCodes, set_time, time_from_pb

__all__ = [
    "DOOR",
    "PERMISSION",
    "grant_from_pb",
    "grant_to_pb",
    "permissions_from_pb",
    "permissions_to_pb",
    "quota_from_pb",
    "quota_to_pb",
    "spec_from_pb",
    "spec_to_pb",
    "status_from_pb",
    "status_to_pb",
    "usage_from_pb",
    "usage_to_pb",
]

PERMISSION = EnumCodes(Permission, grant_pb2, "PERMISSION")
DOOR = EnumCodes(Door, grant_pb2, "DOOR")
_QUOTAS = tuple(Quota.__dataclass_fields__)
_USAGES = tuple(GrantUsage.__dataclass_fields__)


def permissions_to_pb(permissions: frozenset[Permission]) -> list[Any]:
    """Return permissions in the order of the contract."""
    known = [PERMISSION.to_pb(permission) for permission in Permission if permission in permissions]
    return known + sorted(permission.code for permission in permissions if permission.code is not None)


def permissions_from_pb(codes: Any) -> frozenset[Permission]:
    """Return the permissions of codes."""
    return frozenset(map(PERMISSION.from_pb, codes))


def quota_to_pb(quota: Quota) -> grant_pb2.Quota:
    """Return a quota as message."""
    return grant_pb2.Quota(**{name: getattr(quota, name) for name in _QUOTAS})


def quota_from_pb(message: grant_pb2.Quota) -> Quota:
    """Return a message as quota."""
    return Quota(**{name: getattr(message, name) for name in _QUOTAS})


def usage_to_pb(usage: GrantUsage) -> grant_pb2.GrantUsage:
    """Return a usage as message."""
    return grant_pb2.GrantUsage(**{name: getattr(usage, name) for name in _USAGES})


def usage_from_pb(message: grant_pb2.GrantUsage) -> GrantUsage:
    """Return a message as usage."""
    return GrantUsage(**{name: getattr(message, name) for name in _USAGES})


def grant_to_pb(grant: Grant) -> grant_pb2.Grant:
    """Return a grant as message."""
    message = grant_pb2.Grant(
        id=grant.id,
        listener=grant.listener,
        agent_id=grant.agent_id,
        user_id=grant.user_id,
        chat_ids=grant.chat_ids,
        permissions=permissions_to_pb(grant.permissions),
        quota=quota_to_pb(grant.quota),
        label=grant.label,
    )
    for name in ("create_time", "expire_time", "revoke_time"):
        set_time(message, name, getattr(grant, name))
    return message


def grant_from_pb(message: grant_pb2.Grant) -> Grant:
    """Return a message as grant."""
    return Grant(
        id=message.id,
        listener=message.listener,
        agent_id=message.agent_id,
        user_id=message.user_id,
        chat_ids=tuple(message.chat_ids),
        permissions=permissions_from_pb(message.permissions),
        quota=quota_from_pb(message.quota),
        label=message.label,
        create_time=time_from_pb(message, "create_time"),  # type: ignore[arg-type]  # the daemon sets it always
        expire_time=time_from_pb(message, "expire_time"),
        revoke_time=time_from_pb(message, "revoke_time"),
    )


def status_to_pb(status: GrantStatus) -> grant_pb2.GrantStatus:
    """Return a grant with what came of it as message."""
    return grant_pb2.GrantStatus(
        grant=grant_to_pb(status.grant),
        usage=usage_to_pb(status.usage),
        directory=status.directory,
        refusal=status.refusal,
    )


def status_from_pb(message: grant_pb2.GrantStatus) -> GrantStatus:
    """Return a message as grant with what came of it."""
    return GrantStatus(grant_from_pb(message.grant), usage_from_pb(message.usage), message.directory, message.refusal)


def _has(message: Any, name: str) -> bool:
    return bool(message.HasField(name))


def spec_to_pb(spec: GrantSpec) -> grant_service_pb2.GrantSpec:
    """Return a grant that is asked for as message."""
    message = grant_service_pb2.GrantSpec(
        agent_id=spec.agent_id,
        user_id=spec.user_id,
        chat_ids=spec.chat_ids,
        permissions=permission_names(spec.permissions),
        quota=grant_service_pb2.QuotaSpec(**dict(spec.quota)),  # type: ignore[arg-type]  # its fields by their names
        label=spec.label,
    )
    set_time(message, "expire_time", spec.expire_time)
    return message


def spec_from_pb(message: grant_service_pb2.GrantSpec) -> GrantSpec:
    """Return a message as grant that is asked for, checked."""
    return GrantSpec(
        agent_id=message.agent_id,
        user_id=message.user_id,
        chat_ids=tuple(message.chat_ids),
        permissions=check_permissions(message.permissions),
        quota={name: getattr(message.quota, name) for name in _QUOTAS if _has(message.quota, name)},
        label=message.label,
        expire_time=time_from_pb(message, "expire_time"),
    )
