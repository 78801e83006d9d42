"""Conversations with their sessions, and what was learnt from which message."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from memory_client import Filter, ThreadPage
from starlette.responses import Response

from memoryd.inspector.digests import digests_of
from memoryd.inspector.shown_text import MOST_PART
from memoryd.inspector.view import View, mark_of
from memoryd.model.memory import ShownMemory
from memoryd.model.talk import ErasedThread

PAGE_SIZE = 50
MOST_CALL = 4_000  # characters of the arguments of a tool call, and of metadata
MOST_LISTED = 50  # memories that would go with a conversation
MOST_LEARNT = 500  # memories of one conversation that are shown at its messages


def _learnt_from(thread_id: str) -> Filter:
    return Filter(source_thread_id=thread_id, include_expired=True, include_superseded=True)


async def _show(view: View) -> Response:
    prefix = view.asked("prefix")
    page = ThreadPage(())
    with view.asking(prefix="Begins with"):
        page = await view.client.threads(page_size=PAGE_SIZE, page_token=view.asked("page"), prefix=prefix)
    working = await view.client.working_memory(shared=view.is_shared)
    return view.page(
        "conversations.html", threads=page.threads, next_token=page.next_page_token, prefix=prefix, working=working
    )


async def _thread(view: View) -> Response:
    thread_id = view.asked("id")
    shared = bool(view.asked("shared")) or view.is_shared
    thread = await view.client.thread(thread_id, shared=shared)
    page, sessions, learnt, working = await asyncio.gather(
        view.client.messages(
            thread_id, shared=shared, page_size=PAGE_SIZE, page_token=view.asked("page"),
            session_id=view.asked("session"),
        ),
        view.client.sessions(thread_id, shared=shared, page_size=100),
        view.client.page(page_size=MOST_LEARNT, filter=_learnt_from(thread_id)),
        view.client.working_memory(thread_id=thread_id, shared=shared),
    )  # fmt: skip
    of_message: dict[str, list[ShownMemory]] = defaultdict(list)
    for memory in learnt.memories:
        for message_id in memory.source.message_ids:
            of_message[message_id].append(memory)
    return view.page(
        "thread.html",
        thread=thread,
        shared=shared,
        messages=page.messages,
        next_token=page.next_page_token,
        sessions=sessions.sessions,
        learnt_count=len(learnt.memories),
        more_learnt=bool(learnt.next_page_token),
        of_message=of_message,
        working=working,
    )


async def _message(view: View) -> Response:
    """Show one message whole: it may be 256 KiB."""
    thread_id, message_id = view.asked("id"), view.asked("message")
    shared = bool(view.asked("shared")) or view.is_shared
    page = await view.client.messages(thread_id, shared=shared, message_ids=[message_id])
    found = page.messages[0] if page.messages else None
    part = max(0, view.number("part"))
    return view.page(
        "message.html", thread_id=thread_id, message=found, shared=shared, part=part, part_size=MOST_PART,
        most_call=MOST_CALL,
    )  # fmt: skip


async def _preview(view: View) -> Response:
    shared, with_memories = bool(view.asked("shared")), bool(view.asked("with_memories"))
    return await _asked(view, view.asked("id"), shared=shared, with_memories=with_memories)


async def _seen(view: View, thread_id: str, *, shared: bool) -> str:
    """Return a mark of what would be erased with a conversation."""
    gone = await view.client.delete_thread(thread_id, shared=shared, with_memories=True, dry_run=True)
    digests = await digests_of(view.client, gone.memory_ids)
    return _mark(gone, digests)


def _mark(gone: ErasedThread, digests: Sequence[ShownMemory]) -> str:
    return mark_of(gone.thread.message_count, gone.thread.update_time, gone.memory_ids, [one.id for one in digests])


async def _asked(view: View, thread_id: str, *, shared: bool, with_memories: bool) -> Response:
    gone, working, waiting = await asyncio.gather(
        view.client.delete_thread(thread_id, shared=shared, with_memories=True, dry_run=True),
        view.client.working_memory(thread_id=thread_id, shared=shared),
        view.host.proposals(user_id=view.whose.user_id, chat_id=view.whose.chat_id, page_size=1000),
    )
    also = [
        *(["its summary"] if gone.thread.summary else []),
        *(["its working memory"] if working.text else []),
        *[f"what waits for review: {one.content[:80]}" for one in waiting if one.thread_id == thread_id],
    ]
    some = gone.memory_ids[:MOST_LISTED]
    found = await asyncio.gather(*(view.client.get(memory_id) for memory_id in some), return_exceptions=True)
    memories = [memory for memory in found if isinstance(memory, ShownMemory)]  # the others are deleted
    digests = await digests_of(view.client, gone.memory_ids)
    return view.page(
        "delete_thread.html", gone=gone, also=also, shared=shared, with_memories=with_memories, memories=memories,
        mark=_mark(gone, digests), digests=digests if with_memories else (),
        deleted_count=len(some) - len(memories),
    )  # fmt: skip


async def _delete(view: View) -> Response:
    shared, with_memories = bool(view.form.get("shared")), bool(view.form.get("with_memories"))
    thread_id = view.form.get("id", "")
    if not view.is_as_shown(await _seen(view, thread_id, shared=shared)):
        return await _asked(view, thread_id, shared=shared, with_memories=with_memories)
    gone = await view.client.delete_thread(thread_id, shared=shared, with_memories=with_memories)
    learnt = f", and {len(gone.memory_ids)} that were learnt from them" if with_memories else ""
    view.say(f"erased the conversation for good; messages: {gone.thread.message_count}{learnt}")
    return view.back("conversations")


ROUTES = (
    ("GET", "conversations", _show),
    ("GET", "conversations/thread", _thread),
    ("GET", "conversations/message", _message),
    ("GET", "conversations/delete", _preview),
    ("POST", "conversations/delete", _delete),
)
