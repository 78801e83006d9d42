"""ConsolidationService: learning done by an agent of the host's, on the admin socket only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from memoryd.domain.ports import Ports
from memoryd.learning.conflicts import detect_conflicts, resolve_conflict
from memoryd.learning.host_worker import complete_session, pending_sessions, save_facts, session_messages
from memoryd.learning.review import approve, list_proposals, reject
from memoryd.model.caller import Caller
from memoryd.model.scope import Owner
from memoryd.model.validation import check_id, check_ids
from memoryd.service.gate import Call
from memoryd.v1 import consolidation_service_pb2 as pb
from memoryd.wire.consolidation import (
    conflict_to_pb,
    fact_from_pb,
    key_from_pb,
    owner_from_pb,
    proposal_to_pb,
    resolution_from_pb,
)
from memoryd.wire.conversation import message_to_pb, session_to_pb
from memoryd.wire.memory import memory_to_pb, result_to_pb, set_time

__all__ = ["ConsolidationService"]


class ConsolidationService:
    """The RPCs of consolidation_service.proto."""

    def __init__(self, ports: Ports, clock: Callable[[], datetime]) -> None:
        self._ports, self._clock = ports, clock

    async def ListPendingSessions(
        self,
        request: pb.ListPendingSessionsRequest,
        call: Call,  # noqa: ARG002  it is asked of the host
    ) -> pb.ListPendingSessionsResponse:
        sessions = await pending_sessions(
            self._ports,
            self._clock,
            worker=check_id(request.worker, "worker"),
            agent_id=check_id(request.agent_id, "agent_id"),
            user_id=check_id(request.scope.user_id, "scope.user_id"),
            chat_id=check_id(request.scope.chat_id, "scope.chat_id"),
            exclude=check_ids(request.exclude_session_ids, "exclude_session_ids"),
            limit=request.page_size,
            wait_s=request.wait.seconds + request.wait.nanos / 1e9,
        )
        return pb.ListPendingSessionsResponse(sessions=map(session_to_pb, sessions))

    async def GetSessionMessages(
        self, request: pb.GetSessionMessagesRequest, call: Call
    ) -> pb.GetSessionMessagesResponse:
        key = key_from_pb(request.session)
        messages, token, session = await session_messages(
            key, request.worker, self._ports, now=call.now, page_size=request.page_size, page_token=request.page_token
        )
        call.touched([message.id for message in messages])
        response = pb.GetSessionMessagesResponse(messages=map(message_to_pb, messages), next_page_token=token)
        set_time(response, "lease_time", session.lease_time)
        return response

    async def SaveFacts(self, request: pb.SaveFactsRequest, call: Call) -> pb.SaveFactsResponse:
        facts = [fact_from_pb(fact, n) for n, fact in enumerate(request.facts)]
        results = await save_facts(
            key_from_pb(request.session),
            request.worker,
            facts,
            self._ports,
            now=call.now,
            request_id=request.request_id,
        )
        call.touched([result.memory.id for result in results if result.memory is not None])
        return pb.SaveFactsResponse(results=map(result_to_pb, results))

    async def DetectConflicts(self, request: pb.DetectConflictsRequest, call: Call) -> pb.DetectConflictsResponse:
        caller = _caller(owner_from_pb(request.agent_id, request.scope, "scope"))
        conflicts = await detect_conflicts(request.id, caller, self._ports, now=call.now, limit=request.limit)
        call.touched([conflict.memory.id for conflict in conflicts])
        return pb.DetectConflictsResponse(conflicts=map(conflict_to_pb, conflicts))

    async def ResolveConflict(self, request: pb.ResolveConflictRequest, call: Call) -> pb.ResolveConflictResponse:
        caller = _caller(owner_from_pb(request.agent_id, request.scope, "scope"))
        resolution = resolution_from_pb(request.resolution)
        memory, other = await resolve_conflict(
            request.id, request.other_id, resolution, caller, self._ports, now=call.now, reason=request.reason
        )
        call.touched([memory.id, other.id])
        return pb.ResolveConflictResponse(memory=memory_to_pb(memory), other=memory_to_pb(other))

    async def CompleteSession(self, request: pb.CompleteSessionRequest, call: Call) -> pb.CompleteSessionResponse:
        key = key_from_pb(request.session)
        session = await complete_session(key, request.worker, self._ports, now=call.now)
        return pb.CompleteSessionResponse(session=session_to_pb(session))

    async def ListProposals(
        self,
        request: pb.ListProposalsRequest,
        call: Call,
    ) -> pb.ListProposalsResponse:
        proposals, count = await list_proposals(
            self._ports.store,
            limit=request.page_size,
            agent_id=check_id(request.agent_id, "agent_id"),
            user_id=check_id(request.scope.user_id, "scope.user_id"),
            chat_id=check_id(request.scope.chat_id, "scope.chat_id"),
        )
        call.touched([proposal.id for proposal in proposals])
        return pb.ListProposalsResponse(proposals=map(proposal_to_pb, proposals), waiting_count=count)

    async def ApproveProposal(self, request: pb.ApproveProposalRequest, call: Call) -> pb.ApproveProposalResponse:
        result = await approve(request.id, request.content, self._ports, now=call.now)
        call.touched([] if result.memory is None else [result.memory.id])
        return pb.ApproveProposalResponse(result=result_to_pb(result))

    async def RejectProposal(self, request: pb.RejectProposalRequest, call: Call) -> pb.RejectProposalResponse:
        rejected = await reject(request.id, self._ports, now=call.now)
        call.touched([rejected.id])
        return pb.RejectProposalResponse(proposal=proposal_to_pb(rejected))


def _caller(owner: Owner) -> Caller:
    return Caller(owner.agent_id, owner.scope.user_id, owner.scope.chat_id)
