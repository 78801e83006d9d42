"""IdentityService: who one is."""

from __future__ import annotations

from memoryd.domain.policy import Policy
from memoryd.identity.grants import Grants
from memoryd.model.grant import NO_LIMITS, GrantUsage
from memoryd.service.gate import Call
from memoryd.v1 import identity_service_pb2 as pb
from memoryd.wire.grant import DOOR, permissions_to_pb, quota_to_pb, usage_to_pb
from memoryd.wire.memory import set_time

__all__ = ["IdentityService"]


class IdentityService:
    """The RPC of identity_service.proto; the gate has checked the caller."""

    def __init__(self, grants: Grants, policy: Policy) -> None:
        self._grants, self._policy = grants, policy

    async def WhoAmI(self, request: pb.WhoAmIRequest, call: Call) -> pb.WhoAmIResponse:  # noqa: ARG002  it only asserts
        session, grant = call.session, call.session.grant
        agent_id, user_id, chat_id = call.identity
        response = pb.WhoAmIResponse(
            door=DOOR.to_pb(session.door),
            agent_id=agent_id,
            user_id=user_id,
            chat_id=chat_id,
            chat_ids=session.chat_ids,
            permissions=permissions_to_pb(session.permissions),
            grant_id=grant.id if grant else "",
            quota=quota_to_pb(grant.quota if grant else NO_LIMITS),
            agent_disabled=not self._policy.of(agent_id).enabled,
            usage=usage_to_pb(await self._grants.usage(grant.id, call.now) if grant else GrantUsage()),
        )
        set_time(response, "expire_time", session.expire_time)
        return response
