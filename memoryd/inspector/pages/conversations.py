"""Conversations with their sessions, and what was learnt from which message."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from memory_client import Filter
from starlette.responses import Response

from memoryd.inspector.view import View
from memoryd.model.memory import ShownMemory

PAGE_SIZE = 50
MOST_LEARNT = 500  # memories of one conversation that are shown at its messages


def _learnt_from(thread_id: str) -> Filter:
    return Filter(source_thread_id=thread_id, include_expired=True, include_superseded=True)


async def _show(view: View) -> Response:
    if not view.whose.is_known:
        return view.page("choose.html")
    page = await view.client.threads(page_size=PAGE_SIZE, page_token=view.asked("page"), prefix=view.asked("prefix"))
    return view.page(
        "conversations.html", threads=page.threads, next_token=page.next_page_token, prefix=view.asked("prefix")
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
        wanted_seq=view.number("seq"),
    )


async def _message(view: View) -> Response:
    """Show one message whole: it may be 256 KiB."""
    thread_id, seq = view.asked("id"), view.number("seq")
    shared = bool(view.asked("shared")) or view.is_shared
    token = ""
    while True:
        page = await view.client.messages(thread_id, shared=shared, page_size=1000, page_token=token)
        found = next((message for message in page.messages if message.seq == seq), None)
        token = page.next_page_token
        if found is not None or not token:
            break
    return view.page("message.html", thread_id=thread_id, seq=seq, message=found, shared=shared)


async def _delete(view: View) -> Response:
    thread_id, sure = view.form.get("id", ""), bool(view.form.get("sure"))
    shared, with_memories = bool(view.form.get("shared")), bool(view.form.get("with_memories"))
    gone = await view.client.delete_thread(thread_id, shared=shared, with_memories=with_memories, dry_run=not sure)
    if not sure:
        return view.page("delete_thread.html", gone=gone, shared=shared, with_memories=with_memories)
    view.say(f"erased the conversation for good: {gone.thread.message_count} messages, {len(gone.memory_ids)} memories")
    return view.back("conversations")


ROUTES = (
    ("GET", "conversations", _show),
    ("GET", "conversations/thread", _thread),
    ("GET", "conversations/message", _message),
    ("POST", "conversations/delete", _delete),
)
