"""The RPCs of conversations as values; see `calls`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from memory_client.calls import Call, build, count, request_id_of
from memory_client.endpoint import Identity
from memoryd.errors import InvalidArgument
from memoryd.model.conversation import Role, Session, SessionState, Thread, WorkingMemory
from memoryd.model.message_draft import MessageDraft
from memoryd.model.talk import (
    Appended,
    CompactedThread,
    ErasedMessages,
    ErasedThread,
    FoundMessages,
    MessagePage,
    MessageSearch,
    SessionPage,
    StartedSession,
    Summary,
    ThreadPage,
)
from memoryd.v1 import conversation_service_pb2 as pb
from memoryd.wire.conversation import (
    appended_from_pb,
    draft_to_pb,
    message_from_pb,
    message_hit_from_pb,
    session_from_pb,
    states_to_pb,
    thread_from_pb,
    working_memory_from_pb,
)
from memoryd.wire.memory import TRUST, legs_from_pb, time_from_pb

__all__ = []

T = TypeVar("T")
Key = tuple[str, bool]
"""A thread, and whether it is of the chat."""


def _call(method: str, request: Any, response: Any, parse: Any, *, retryable: bool = True) -> Call[Any]:
    return Call("ConversationService", method, request, response, parse, retryable)


def _text(value: object, name: str) -> str:
    """Return a text; InvalidArgument for None, which would erase what is there."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} must be a text; an empty one removes what is there", field=name)
    return value


def append(
    identity: Identity,
    key: Key,
    drafts: Sequence[MessageDraft],
    session_id: str,
    request_id: str,
    *,
    skip_existing: bool = False,
) -> Call[Appended]:
    """AppendMessages."""

    def make() -> Any:
        if not all(isinstance(draft, MessageDraft) for draft in drafts):
            raise InvalidArgument("messages must be MessageDraft values, one or a list of them", field="messages")
        return pb.AppendMessagesRequest(
            thread_id=key[0],
            shared=key[1],
            session_id=session_id,
            messages=map(draft_to_pb, drafts),
            request_id=request_id_of(request_id),
            skip_existing=skip_existing,
        )

    def parse(answer: Any) -> Appended:
        return Appended(
            answer.stored,
            tuple(map(appended_from_pb, answer.messages)),
            answer.session_id,
            answer.message_count,
            answer.turn_count,
            answer.ended_session_id,
        )

    return _call("AppendMessages", build(make, identity), pb.AppendMessagesResponse, parse)


def messages(  # noqa: PLR0913  one argument for each field of the contract
    identity: Identity,
    key: Key,
    *,
    page_size: int,
    page_token: str,
    max_tokens: int,
    session_id: str,
    in_view: bool,
    message_ids: Sequence[str],
    whole_turns: bool,
) -> Call[MessagePage]:
    """ListMessages."""

    def make() -> Any:
        return pb.ListMessagesRequest(
            thread_id=key[0],
            shared=key[1],
            page_size=count(page_size, "page_size"),
            page_token=page_token,
            max_tokens=count(max_tokens, "max_tokens"),
            session_id=session_id,
            in_view=in_view,
            message_ids=message_ids,
            whole_turns=whole_turns,
        )

    def parse(answer: Any) -> MessagePage:
        return MessagePage(tuple(map(message_from_pb, answer.messages)), answer.next_page_token)

    return _call("ListMessages", build(make, identity), pb.ListMessagesResponse, parse)


def thread(identity: Identity, key: Key) -> Call[Thread]:
    """GetThread."""
    request = build(lambda: pb.GetThreadRequest(thread_id=key[0], shared=key[1]), identity)
    return _call("GetThread", request, pb.GetThreadResponse, lambda answer: thread_from_pb(answer.thread))


def threads(identity: Identity, *, page_size: int, page_token: str, prefix: str) -> Call[ThreadPage]:
    """ListThreads."""

    def make() -> Any:
        return pb.ListThreadsRequest(page_size=count(page_size, "page_size"), page_token=page_token, prefix=prefix)

    def parse(answer: Any) -> ThreadPage:
        return ThreadPage(tuple(map(thread_from_pb, answer.threads)), answer.next_page_token)

    return _call("ListThreads", build(make, identity), pb.ListThreadsResponse, parse)


def delete_thread(identity: Identity, key: Key, *, with_memories: bool, dry_run: bool) -> Call[ErasedThread]:
    """DeleteThread."""

    def make() -> Any:
        return pb.DeleteThreadRequest(thread_id=key[0], shared=key[1], with_memories=with_memories, dry_run=dry_run)

    def parse(answer: Any) -> ErasedThread:
        return ErasedThread(
            thread_from_pb(answer.thread),
            tuple(answer.message_ids),
            tuple(answer.memory_ids),
            tuple(answer.backups),
            answer.dry_run,
        )

    return _call("DeleteThread", build(make, identity), pb.DeleteThreadResponse, parse, retryable=dry_run)


def delete_messages(
    identity: Identity,
    key: Key,
    message_ids: Sequence[str],
    *,
    after_seq: int | None,
    with_memories: bool,
    dry_run: bool,
) -> Call[ErasedMessages]:
    """DeleteMessages."""

    def make() -> Any:
        if isinstance(message_ids, str):
            raise InvalidArgument("message_ids must be a list of ids", field="message_ids")
        request = pb.DeleteMessagesRequest(
            thread_id=key[0],
            shared=key[1],
            message_ids=message_ids,
            with_memories=with_memories,
            dry_run=dry_run,
        )
        if after_seq is not None:
            request.after_seq = count(after_seq, "after_seq")
        return request

    def parse(answer: Any) -> ErasedMessages:
        return ErasedMessages(
            thread_from_pb(answer.thread),
            tuple(answer.message_ids),
            answer.deleted_count,
            tuple(answer.memory_ids),
            tuple(answer.backups),
            answer.dry_run,
        )

    return _call("DeleteMessages", build(make, identity), pb.DeleteMessagesResponse, parse, retryable=dry_run)


def search_messages(identity: Identity, given: MessageSearch | str) -> Call[FoundMessages]:
    """SearchMessages."""
    asked = MessageSearch(text=given) if isinstance(given, str) else given

    def make() -> Any:
        return pb.SearchMessagesRequest(
            query=asked.text,
            top_k=count(asked.top_k, "top_k"),
            min_score=asked.min_score,
            thread_id=asked.thread_id,
            shared=asked.shared,
            exclude_thread_ids=asked.exclude_thread_ids,
            exclude_session_ids=asked.exclude_session_ids,
            before=asked.before,
            after=asked.after,
        )

    def parse(answer: Any) -> FoundMessages:
        hits = tuple(map(message_hit_from_pb, answer.hits))
        return FoundMessages(hits, legs_from_pb(answer.unavailable_legs), answer.omitted_count)

    return _call("SearchMessages", build(make, identity), pb.SearchMessagesResponse, parse)


def set_summary(identity: Identity, key: Key, summary: str, up_to_seq: int) -> Call[Thread]:
    """SetSummary."""

    def make() -> Any:
        text = _text(summary, "summary")
        return pb.SetSummaryRequest(thread_id=key[0], shared=key[1], summary=text, up_to_seq=up_to_seq)

    return _call(
        "SetSummary", build(make, identity), pb.SetSummaryResponse, lambda answer: thread_from_pb(answer.thread)
    )


def summary(identity: Identity, key: Key) -> Call[Summary]:
    """GetSummary."""
    request = build(lambda: pb.GetSummaryRequest(thread_id=key[0], shared=key[1]), identity)

    def parse(answer: Any) -> Summary:
        time = time_from_pb(answer, "summary_time")
        trust = TRUST.from_pb(answer.trust)
        return Summary(answer.summary, answer.summary_seq, time, trust, answer.summary_by, answer.author)

    return _call("GetSummary", request, pb.GetSummaryResponse, parse)


def compact_thread(identity: Identity, key: Key, retain_recent: int, *, emergency: bool) -> Call[CompactedThread]:
    """CompactThread."""

    def make() -> Any:
        return pb.CompactThreadRequest(
            thread_id=key[0],
            shared=key[1],
            retain_recent=count(retain_recent, "retain_recent"),
            emergency=emergency,
        )

    def parse(answer: Any) -> CompactedThread:
        return CompactedThread(thread_from_pb(answer.thread), answer.compacted_count)

    return _call("CompactThread", build(make, identity), pb.CompactThreadResponse, parse)


def set_working_memory(identity: Identity, key: Key, text: str) -> Call[WorkingMemory]:
    """SetWorkingMemory."""

    def make() -> Any:
        return pb.SetWorkingMemoryRequest(thread_id=key[0], shared=key[1], text=_text(text, "text"))

    return _call(
        "SetWorkingMemory",
        build(make, identity),
        pb.SetWorkingMemoryResponse,
        lambda answer: working_memory_from_pb(answer.working_memory),
    )


def working_memory(identity: Identity, key: Key) -> Call[WorkingMemory]:
    """GetWorkingMemory."""
    request = build(lambda: pb.GetWorkingMemoryRequest(thread_id=key[0], shared=key[1]), identity)
    return _call(
        "GetWorkingMemory",
        request,
        pb.GetWorkingMemoryResponse,
        lambda answer: working_memory_from_pb(answer.working_memory),
    )


def start_session(identity: Identity, key: Key, session_id: str) -> Call[StartedSession]:
    """StartSession; an id is made here where none is given, so that a retry begins it once."""

    def make() -> Any:
        return pb.StartSessionRequest(thread_id=key[0], shared=key[1], session_id=request_id_of(session_id))

    def parse(answer: Any) -> StartedSession:
        return StartedSession(session_from_pb(answer.session), answer.ended_session_id)

    return _call("StartSession", build(make, identity), pb.StartSessionResponse, parse)


def end_session(identity: Identity, key: Key, session_id: str) -> Call[Session]:
    """EndSession."""
    request = build(lambda: pb.EndSessionRequest(thread_id=key[0], shared=key[1], session_id=session_id), identity)
    return _call(
        "EndSession",
        request,
        pb.EndSessionResponse,
        lambda answer: session_from_pb(answer.session),
        retryable=bool(session_id),
    )


def sessions(
    identity: Identity, key: Key, states: Collection[SessionState], *, page_size: int, page_token: str
) -> Call[SessionPage]:
    """ListSessions."""

    def make() -> Any:
        return pb.ListSessionsRequest(
            thread_id=key[0],
            shared=key[1],
            states=states_to_pb(frozenset(map(SessionState, states))),
            page_size=count(page_size, "page_size"),
            page_token=page_token,
        )

    def parse(answer: Any) -> SessionPage:
        return SessionPage(tuple(map(session_from_pb, answer.sessions)), answer.next_page_token)

    return _call("ListSessions", build(make, identity), pb.ListSessionsResponse, parse)


def messages_of(given: MessageDraft | Sequence[MessageDraft]) -> list[MessageDraft]:
    """Return one or several drafts as a list."""
    if isinstance(given, MessageDraft):
        return [given]
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidArgument("messages must be MessageDraft values, one or a list of them", field="messages")
    drafts: list[MessageDraft] = []
    for message in given:  # of say([…]) the list is one argument
        drafts += message if isinstance(message, list) else [message]
    return drafts


def message_search(text: str, more: Mapping[str, Any]) -> MessageSearch:
    """Return what is searched for."""
    return MessageSearch(text=text, **more)


def draft(role: str, content: str, more: Mapping[str, Any]) -> MessageDraft:
    """Return a draft of a role."""
    return MessageDraft(content=content, role=Role(role), **more)
