"""What a prompt would get, each line with the memory, message or person that it is from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory_client import BuiltContext, ContextItem, ContextSection
from starlette.responses import Response

from memoryd.inspector.view import View
from memoryd.model.conversation import Thread
from memoryd.model.memory import Kind

PEOPLE = "known_people"
TEXTS = {"working_memory", "thread_summary"}
MOST_THREADS = 200
LABELS = {"prompt": "Prompt", "tokens": "Budget in tokens", "max_tokens": "Budget in tokens"}


@dataclass(frozen=True, slots=True)
class TracedLine:
    """A line of a context, and the page of what it is from."""

    text: str
    item: ContextItem | None = None
    address: str = ""


def _address(view: View, section: str, item: ContextItem, threads: Mapping[str, str]) -> str:
    shared = threads.get(item.thread_id or item.id, "1" if view.is_shared else "")
    if section == PEOPLE:
        return view.item_url("people", item.id)
    if section in TEXTS:
        thread_id = item.thread_id or (item.id if item.id in threads else "")  # else it is the user's
        return view.url("conversations/thread", id=thread_id, shared=shared) if thread_id else ""
    if item.kind is Kind.EPISODE and item.seq:
        return view.url("conversations/message", id=item.thread_id, message=item.id, shared=shared)
    return view.item_url("memories", item.id)


def _traced(view: View, section: ContextSection, threads: Mapping[str, str]) -> list[TracedLine]:
    """
    Return the lines of a section; each that begins with a hyphen is one of its items, in order.

    `threads` says of each whether it is a chat's, as the address of its page does.
    """
    items = iter(section.items)
    lines = []
    for text in section.text.splitlines():
        item = next(items, None) if text.startswith("- ") else None
        lines.append(TracedLine(text, item, _address(view, section.name, item, threads) if item else ""))
    return lines


def _place(thread: Thread) -> str:
    """Return how the address names a conversation: a user's own, or one of a chat."""
    return f"{(thread.scope.chat_id and 'chat') or 'own'}:{thread.id}"


def _chosen(threads: Sequence[Thread], wanted: str) -> Thread | None:
    """Return the conversation that the address names, by its place, or else by its id alone."""
    by_place = next((thread for thread in threads if _place(thread) == wanted), None)  # two may have one name
    return by_place or next((thread for thread in threads if thread.id == wanted), None)


async def _built(view: View, prompt: str, thread_id: str, *, is_shared: bool) -> BuiltContext | None:
    if not prompt and not thread_id:
        if "prompt" in view.request.query_params:
            view.say("type a prompt, or choose a conversation", tone="fault")
        return None
    with view.asking(**LABELS):
        return await view.client.context(
            prompt, max_tokens=view.number("tokens"), thread_id=thread_id, shared=bool(thread_id) and is_shared
        )
    return None


async def _show(view: View) -> Response:
    prompt, wanted = view.typed("prompt"), view.asked("thread")
    threads = (await view.client.threads(page_size=MOST_THREADS)).threads
    chosen = _chosen(threads, wanted)
    thread_id = wanted if chosen is None else chosen.id
    is_shared = view.is_shared or (chosen is not None and bool(chosen.scope.chat_id))
    built = await _built(view, prompt, thread_id, is_shared=is_shared)
    whose = {thread.id: "1" if thread.scope.chat_id else "" for thread in threads}
    whose |= {thread_id: "1" if is_shared else ""} if thread_id else {}
    return view.page(
        "context.html",
        prompt=prompt,
        thread=thread_id if chosen is None else _place(chosen),
        threads=[(_place(thread), thread) for thread in threads],
        built=built,
        sections=[(section.name, _traced(view, section, whose)) for section in built.sections] if built else [],
        tokens=view.asked("tokens"),
    )


ROUTES = (("GET", "context", _show),)
