"""ConversationService: one method an RPC."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memoryd.domain.conversation import messages, threads, waking
from memoryd.domain.conversation.append import append
from memoryd.domain.conversation.erase import erase_messages, erase_thread
from memoryd.domain.conversation.search import search_messages
from memoryd.domain.conversation.threads import ThreadKey
from memoryd.domain.ports import Ports
from memoryd.domain.transfer.import_messages import import_messages
from memoryd.errors import in_part
from memoryd.model import limits
from memoryd.model.conversation import Thread
from memoryd.model.grant import Permission
from memoryd.model.message_draft import MessageDraft
from memoryd.model.talk import MessageSearch
from memoryd.model.validation import check_ids
from memoryd.service.gate import Call
from memoryd.turns import in_turns
from memoryd.v1 import conversation_service_pb2 as pb
from memoryd.wire.conversation import (
    appended_to_pb,
    draft_from_pb,
    message_hit_to_pb,
    message_to_pb,
    session_to_pb,
    states_from_pb,
    thread_to_pb,
    working_memory_to_pb,
)
from memoryd.wire.imported import import_result_to_pb
from memoryd.wire.memory import TRUST, legs_to_pb, set_time

__all__ = ["ConversationService"]


class ConversationService:
    """The RPCs of conversation_service.proto; the gate has checked the caller."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def AppendMessages(self, request: pb.AppendMessagesRequest, call: Call) -> pb.AppendMessagesResponse:
        done = await append(
            _key(request),
            _drafts(request),
            call.caller,
            self._ports,
            now=call.now,
            session_id=request.session_id,
            request_id=request.request_id,
            skip_existing=request.skip_existing,
        )
        call.touched([message.id for message in done.messages])
        return pb.AppendMessagesResponse(
            stored=done.stored,
            messages=map(appended_to_pb, done.messages),
            session_id=done.session_id,
            message_count=done.message_count,
            turn_count=done.turn_count,
            ended_session_id=done.ended_session_id,
        )

    async def ImportMessages(self, request: pb.ImportMessagesRequest, call: Call) -> pb.ImportMessagesResponse:
        done = await import_messages(
            _key(request), _drafts(request), call.caller, self._ports, now=call.now, dry_run=request.dry_run
        )
        call.touched([result.id for result in done.results if result.id])
        return pb.ImportMessagesResponse(results=map(import_result_to_pb, done.results), dry_run=done.dry_run)

    async def ListMessages(self, request: pb.ListMessagesRequest, call: Call) -> pb.ListMessagesResponse:
        page = await messages.list_messages(
            _key(request),
            call.caller,
            self._ports,
            page_size=request.page_size,
            page_token=request.page_token,
            max_tokens=request.max_tokens,
            session_id=request.session_id,
            in_view=request.in_view,
            whole=request.whole_turns,
            message_ids=check_ids(request.message_ids, "message_ids", limit=limits.MAX_SOURCE_MESSAGES),
        )
        call.touched([message.id for message in page.messages])
        return pb.ListMessagesResponse(
            messages=[message_to_pb(message) async for message in in_turns(page.messages)],
            next_page_token=page.next_page_token,
        )

    async def GetThread(self, request: pb.GetThreadRequest, call: Call) -> pb.GetThreadResponse:
        thread = await threads.get_thread(_key(request), call.caller, self._ports)
        call.touched([thread.id])
        return pb.GetThreadResponse(thread=thread_to_pb(thread))

    async def ListThreads(self, request: pb.ListThreadsRequest, call: Call) -> pb.ListThreadsResponse:
        page = await threads.list_threads(
            call.caller,
            self._ports,
            page_size=request.page_size,
            page_token=request.page_token,
            prefix=request.prefix,
        )
        return pb.ListThreadsResponse(
            threads=[thread_to_pb(thread) async for thread in in_turns(page.threads)],
            next_page_token=page.next_page_token,
        )

    async def DeleteThread(self, request: pb.DeleteThreadRequest, call: Call) -> pb.DeleteThreadResponse:
        gone = await erase_thread(
            _key(request),
            call.caller,
            self._ports,
            now=call.now,
            with_memories=request.with_memories,
            dry_run=request.dry_run,
        )
        call.touched([*gone.message_ids, *gone.memory_ids])
        return pb.DeleteThreadResponse(
            thread=thread_to_pb(_readable(gone.thread, call)),
            message_ids=gone.message_ids,
            memory_ids=gone.memory_ids,
            backups=gone.backups,
            dry_run=gone.dry_run,
        )

    async def DeleteMessages(self, request: pb.DeleteMessagesRequest, call: Call) -> pb.DeleteMessagesResponse:
        gone = await erase_messages(
            _key(request),
            call.caller,
            self._ports,
            now=call.now,
            message_ids=check_ids(request.message_ids, "message_ids", limit=limits.MAX_BATCH),
            after_seq=request.after_seq if request.HasField("after_seq") else None,
            with_memories=request.with_memories,
            dry_run=request.dry_run,
        )
        call.touched([*gone.message_ids, *(gone.memory_ids if request.with_memories else ())])
        return pb.DeleteMessagesResponse(
            thread=thread_to_pb(_readable(gone.thread, call)),
            message_ids=gone.message_ids,
            deleted_count=gone.deleted_count,
            memory_ids=gone.memory_ids,
            backups=gone.backups,
            dry_run=gone.dry_run,
        )

    async def SearchMessages(self, request: pb.SearchMessagesRequest, call: Call) -> pb.SearchMessagesResponse:
        asked = MessageSearch(
            text=request.query,
            top_k=request.top_k,
            min_score=request.min_score if request.HasField("min_score") else None,
            thread_id=request.thread_id,
            shared=request.shared if request.HasField("shared") else None,
            exclude_thread_ids=tuple(request.exclude_thread_ids),
            exclude_session_ids=tuple(request.exclude_session_ids),
            before=request.before if request.HasField("before") else None,
            after=request.after if request.HasField("after") else None,
        )
        result = await search_messages(asked, call.caller, self._ports, now=call.now)
        call.note_embedding(result.embedding_s)
        call.touched([message.id for hit in result.hits for message in (hit.message, *hit.before, *hit.after)])
        return pb.SearchMessagesResponse(
            hits=[message_hit_to_pb(hit) async for hit in in_turns(result.hits)],
            unavailable_legs=legs_to_pb(result.unavailable_legs),
            omitted_count=result.omitted_count,
        )

    async def SetSummary(self, request: pb.SetSummaryRequest, call: Call) -> pb.SetSummaryResponse:
        thread = await threads.set_summary(
            _key(request), request.summary, request.up_to_seq, call.caller, self._ports, now=call.now
        )
        return pb.SetSummaryResponse(thread=thread_to_pb(_readable(thread, call)))

    async def GetSummary(self, request: pb.GetSummaryRequest, call: Call) -> pb.GetSummaryResponse:
        summary = await threads.get_summary(_key(request), call.caller, self._ports.store)
        call.touched([request.thread_id])
        response = pb.GetSummaryResponse(
            summary=summary.summary,
            summary_seq=summary.summary_seq,
            trust=TRUST.to_pb(summary.trust),
            summary_by=summary.summary_by,
            author=summary.author,
        )
        set_time(response, "summary_time", summary.summary_time)
        return response

    async def CompactThread(self, request: pb.CompactThreadRequest, call: Call) -> pb.CompactThreadResponse:
        done = await threads.compact_thread(
            _key(request),
            request.retain_recent,
            call.caller,
            self._ports,
            emergency=request.emergency,
            now=call.now,
        )
        thread = _readable(done.thread, call)
        return pb.CompactThreadResponse(thread=thread_to_pb(thread), compacted_count=done.compacted_count)

    async def SetWorkingMemory(self, request: pb.SetWorkingMemoryRequest, call: Call) -> pb.SetWorkingMemoryResponse:
        working_memory = await threads.set_working_memory(
            _key_if_any(request), request.text, call.caller, self._ports, shared=request.shared, now=call.now
        )
        return pb.SetWorkingMemoryResponse(working_memory=working_memory_to_pb(working_memory))

    async def GetWorkingMemory(self, request: pb.GetWorkingMemoryRequest, call: Call) -> pb.GetWorkingMemoryResponse:
        working_memory = await threads.get_working_memory(
            _key_if_any(request), call.caller, self._ports.store, shared=request.shared
        )
        call.touched([request.thread_id] if request.thread_id else [])
        return pb.GetWorkingMemoryResponse(working_memory=working_memory_to_pb(working_memory))

    async def StartSession(self, request: pb.StartSessionRequest, call: Call) -> pb.StartSessionResponse:
        begun = await waking.start_session(_key(request), request.session_id, call.caller, self._ports, now=call.now)
        return pb.StartSessionResponse(session=session_to_pb(begun.session), ended_session_id=begun.ended_session_id)

    async def EndSession(self, request: pb.EndSessionRequest, call: Call) -> pb.EndSessionResponse:
        session = await waking.end_session(_key(request), request.session_id, call.caller, self._ports, now=call.now)
        return pb.EndSessionResponse(session=session_to_pb(session))

    async def ListSessions(self, request: pb.ListSessionsRequest, call: Call) -> pb.ListSessionsResponse:
        page = await threads.list_sessions(
            call.caller,
            self._ports,
            key=_key_if_any(request),
            states=states_from_pb(request.states),
            page_size=request.page_size,
            page_token=request.page_token,
        )
        return pb.ListSessionsResponse(sessions=map(session_to_pb, page.sessions), next_page_token=page.next_page_token)


def _readable(thread: Thread, call: Call) -> Thread:
    """Return a thread as the caller may read it: its texts are for those who may read messages."""
    if Permission.READ_MESSAGES in call.session.permissions:
        return thread
    return replace(thread, summary="", summary_author="", working_memory="", working_memory_author="")


def _key(request: Any) -> ThreadKey:
    return ThreadKey(request.thread_id, request.shared)


def _key_if_any(request: Any) -> ThreadKey | None:
    return _key(request) if request.thread_id else None


def _drafts(request: pb.AppendMessagesRequest | pb.ImportMessagesRequest) -> list[MessageDraft]:
    """Return the messages of a request, checked; an error names the one that is wrong."""
    drafts = []
    for n, message in enumerate(request.messages):
        with in_part(f"messages[{n}]"):
            drafts.append(draft_from_pb(message))
    return drafts
