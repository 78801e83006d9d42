"""ConsolidationService, as values; see calls.py."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from memory_client.calls import Call, build, count, request_id_of
from memoryd.model.conversation import Session
from memoryd.model.learnt import MemoryConflict, Proposal, Resolution, SaidFact, SessionKey, SessionMessages
from memoryd.model.memory import ShownMemory
from memoryd.model.results import AddResult
from memoryd.model.scope import Scope
from memoryd.v1 import consolidation_service_pb2 as pb
from memoryd.v1 import memory_pb2
from memoryd.wire.consolidation import conflict_from_pb, fact_to_pb, key_to_pb, proposal_from_pb, resolution_to_pb
from memoryd.wire.conversation import message_from_pb, session_from_pb
from memoryd.wire.memory import memory_from_pb, result_from_pb, time_from_pb


def _call(method: str, request: Any, response: Any, parse: Any, *, retryable: bool = True) -> Call[Any]:
    return Call("ConsolidationService", method, request, response, parse, retryable)


def _ref(session: Session) -> pb.SessionRef:
    return key_to_pb(SessionKey(session.owner, session.thread_id, session.id))


def _scope(scope: Scope) -> memory_pb2.Scope:
    return memory_pb2.Scope(user_id=scope.user_id or "", chat_id=scope.chat_id or "")


def pending_sessions(
    *,
    agent_id: str,
    user_id: str,
    chat_id: str,
    exclude_session_ids: Sequence[str],
    page_size: int,
    worker: str,
    wait_s: float,
) -> Call[list[Session]]:
    """ListPendingSessions."""

    def made() -> pb.ListPendingSessionsRequest:
        request = pb.ListPendingSessionsRequest(
            agent_id=agent_id,
            scope=memory_pb2.Scope(user_id=user_id, chat_id=chat_id),
            exclude_session_ids=exclude_session_ids,
            page_size=count(page_size, "page_size"),
            worker=worker,
        )
        request.wait.FromTimedelta(timedelta(seconds=wait_s))
        return request

    return _call(
        "ListPendingSessions",
        build(made),
        pb.ListPendingSessionsResponse,
        lambda answer: [*map(session_from_pb, answer.sessions)],
    )


def session_messages(session: Session, worker: str, page_size: int, page_token: str) -> Call[SessionMessages]:
    """GetSessionMessages."""
    request = build(
        lambda: pb.GetSessionMessagesRequest(
            session=_ref(session), worker=worker, page_size=count(page_size, "page_size"), page_token=page_token
        )
    )
    return _call(
        "GetSessionMessages",
        request,
        pb.GetSessionMessagesResponse,
        lambda answer: SessionMessages(
            tuple(map(message_from_pb, answer.messages)), answer.next_page_token, time_from_pb(answer, "lease_time")
        ),
    )


def save_facts(session: Session, worker: str, facts: Sequence[SaidFact], request_id: str) -> Call[list[AddResult]]:
    """SaveFacts."""
    request = build(
        lambda: pb.SaveFactsRequest(
            session=_ref(session), worker=worker, facts=map(fact_to_pb, facts), request_id=request_id_of(request_id)
        )
    )
    return _call("SaveFacts", request, pb.SaveFactsResponse, lambda answer: [*map(result_from_pb, answer.results)])


def detect_conflicts(memory: ShownMemory, limit: int) -> Call[list[MemoryConflict]]:
    """DetectConflicts."""
    request = build(
        lambda: pb.DetectConflictsRequest(
            agent_id=memory.agent_id, scope=_scope(memory.scope), id=memory.id, limit=count(limit, "limit")
        )
    )
    return _call(
        "DetectConflicts",
        request,
        pb.DetectConflictsResponse,
        lambda answer: [*map(conflict_from_pb, answer.conflicts)],
    )


def resolve_conflict(
    memory: ShownMemory, other_id: str, resolution: Resolution, reason: str
) -> Call[tuple[ShownMemory, ShownMemory]]:
    """ResolveConflict."""
    request = build(
        lambda: pb.ResolveConflictRequest(
            agent_id=memory.agent_id,
            scope=_scope(memory.scope),
            id=memory.id,
            other_id=other_id,
            resolution=resolution_to_pb(resolution),
            reason=reason,
        )
    )
    return _call(
        "ResolveConflict",
        request,
        pb.ResolveConflictResponse,
        lambda answer: (memory_from_pb(answer.memory), memory_from_pb(answer.other)),
    )


def complete_session(session: Session, worker: str) -> Call[Session]:
    """CompleteSession."""
    request = build(lambda: pb.CompleteSessionRequest(session=_ref(session), worker=worker))
    return _call("CompleteSession", request, pb.CompleteSessionResponse, lambda answer: session_from_pb(answer.session))


def proposals(agent_id: str, user_id: str, chat_id: str, page_size: int) -> Call[list[Proposal]]:
    """ListProposals."""
    request = build(
        lambda: pb.ListProposalsRequest(
            agent_id=agent_id,
            scope=memory_pb2.Scope(user_id=user_id, chat_id=chat_id),
            page_size=count(page_size, "page_size"),
        )
    )
    return _call(
        "ListProposals", request, pb.ListProposalsResponse, lambda answer: [*map(proposal_from_pb, answer.proposals)]
    )


def approve_proposal(proposal_id: str, content: str) -> Call[AddResult]:
    """ApproveProposal."""
    return _call(
        "ApproveProposal",
        build(lambda: pb.ApproveProposalRequest(id=proposal_id, content=content)),
        pb.ApproveProposalResponse,
        lambda answer: result_from_pb(answer.result),
        retryable=False,
    )


def reject_proposal(proposal_id: str) -> Call[Proposal]:
    """RejectProposal."""
    return _call(
        "RejectProposal",
        build(lambda: pb.RejectProposalRequest(id=proposal_id)),
        pb.RejectProposalResponse,
        lambda answer: proposal_from_pb(answer.proposal),
        retryable=False,
    )
