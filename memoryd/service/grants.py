"""GrantService: giving identities and taking them back, on the admin socket only."""

from __future__ import annotations

from memoryd.domain.forgetting.forget import forget_grant
from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.browse import page_of_grant
from memoryd.errors import InvalidArgument
from memoryd.identity.grants import Grants
from memoryd.identity.issuer import GrantIssuer
from memoryd.model import limits
from memoryd.model.validation import check_text
from memoryd.service.gate import Call
from memoryd.turns import in_turns
from memoryd.v1 import grant_service_pb2 as pb
from memoryd.wire.grant import grant_to_pb, spec_from_pb, status_to_pb
from memoryd.wire.memory import memory_to_pb, set_time, time_from_pb

__all__ = ["GrantService"]


class GrantService:
    """The RPCs of grant_service.proto."""

    def __init__(self, ports: Ports, grants: Grants, issuer: GrantIssuer) -> None:
        self._ports = ports
        self._grants = grants
        self._issuer = issuer

    async def OpenSandbox(self, request: pb.OpenSandboxRequest, call: Call) -> pb.OpenSandboxResponse:
        status = await self._issuer.open_sandbox(spec_from_pb(request.spec), call.now)
        return pb.OpenSandboxResponse(status=status_to_pb(status))

    async def ListGrants(self, request: pb.ListGrantsRequest, call: Call) -> pb.ListGrantsResponse:
        statuses, token = await self._issuer.page(
            call.now,
            page_size=request.page_size,
            page_token=request.page_token,
            include_ended=request.include_ended,
            listeners_only=request.listeners_only,
        )
        return pb.ListGrantsResponse(grants=map(status_to_pb, statuses), next_page_token=token)

    async def RevokeGrant(self, request: pb.RevokeGrantRequest, call: Call) -> pb.RevokeGrantResponse:
        grant = await self._issuer.revoke(request.grant_id, call.now)
        call.touched([grant.id])
        return pb.RevokeGrantResponse(grant=grant_to_pb(grant))

    async def IssueToken(self, request: pb.IssueTokenRequest, call: Call) -> pb.IssueTokenResponse:
        if request.HasField("spec") == bool(request.grant_id):
            raise InvalidArgument("give one of spec and grant_id", field="grant_id")
        token, grant = await self._issuer.issue(
            request.grant_id or spec_from_pb(request.spec),
            call.now,
            expire_time=time_from_pb(request, "expire_time"),
            via=request.via,
        )
        call.touched([grant.id])
        call.call_context.token_id = token.token_id
        return pb.IssueTokenResponse(token=token.text(), token_id=token.token_id, grant=grant_to_pb(grant))

    async def InspectToken(self, request: pb.InspectTokenRequest, call: Call) -> pb.InspectTokenResponse:
        token = self._issuer.inspect(
            check_text(request.token, "token", limit=limits.MAX_TOKEN_BYTES, required=True), call.now
        )
        return pb.InspectTokenResponse(
            valid=not token.refusal,
            refusal=token.refusal,
            token_id=token.token.token_id,
            key_id=token.token.key_id,
            caveats=token.token.caveats,
            grant=None if token.grant is None else grant_to_pb(token.grant),
        )

    async def RotateTokenKeys(self, request: pb.RotateTokenKeysRequest, call: Call) -> pb.RotateTokenKeysResponse:
        *older, newest = await self._issuer.rotate_keys(call.now, drop_older=request.drop_older)
        return pb.RotateTokenKeysResponse(key_id=newest, older_key_ids=older)

    async def ListGrantMemories(self, request: pb.ListGrantMemoriesRequest, call: Call) -> pb.ListGrantMemoriesResponse:
        grant = self._grants.find(request.grant_id)
        page = await page_of_grant(
            grant.id,
            self._ports,
            page_size=request.page_size,
            page_token=request.page_token,
            deleted=request.include_deleted,
            now=call.now,
        )
        call.touched([memory.id for memory in page.memories])
        return pb.ListGrantMemoriesResponse(
            memories=[memory_to_pb(memory) async for memory in in_turns(page.memories)],
            next_page_token=page.next_page_token,
        )

    async def DeleteGrantMemories(
        self, request: pb.DeleteGrantMemoriesRequest, call: Call
    ) -> pb.DeleteGrantMemoriesResponse:
        grant = self._grants.find(request.grant_id)
        gone = await forget_grant(grant.id, self._ports, now=call.now, dry_run=request.dry_run, purge=request.purge)
        call.touched([grant.id])
        response = pb.DeleteGrantMemoriesResponse(
            deleted_count=gone.deleted_count, superseded_ids=gone.superseded_ids, dry_run=request.dry_run
        )
        set_time(response, "purge_time", gone.purge_time)
        return response
