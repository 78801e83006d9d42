"""Memories that contradict each other, pair by pair, each decided with one key."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from memory_client import Filter, Resolution
from starlette.responses import Response

from memoryd.errors import NotFound
from memoryd.inspector.view import View
from memoryd.model.memory import ShownMemory

PAGE_SIZE = 100  # contested memories that are looked at
CONTESTED = Filter(contested=True)


async def _partner(view: View, memory_id: str) -> ShownMemory | None:
    try:
        return await view.client.get(memory_id)
    except NotFound:
        return None  # another user's, or gone meanwhile


async def contesting(view: View, memories: Sequence[ShownMemory]) -> dict[str, list[ShownMemory]]:
    """Return by the id of each memory what contests it, as far as it is there."""
    known = {memory.id: memory for memory in memories}
    missing = {other for memory in memories for other in memory.contested_with if other not in known}
    for found in await asyncio.gather(*(_partner(view, other) for other in sorted(missing))):
        if found is not None:
            known[found.id] = found
    return {memory.id: [known[other] for other in memory.contested_with if other in known] for memory in memories}


def is_newer(one: ShownMemory, other: ShownMemory) -> bool:
    """Whether one memory was stored after another."""
    return (one.create_time, one.id) > (other.create_time, other.id)


async def _show(view: View) -> Response:
    page = await view.client.page(page_size=PAGE_SIZE, page_token=view.asked("page"), filter=CONTESTED)
    others = await contesting(view, page.memories)
    pairs = [(one, other) for one in page.memories for other in others[one.id] if is_newer(one, other)]
    at = max(0, min(view.number("at"), len(pairs) - 1))
    return view.page("contested.html", pairs=pairs, at=at, next_token=page.next_page_token)


async def _decide(view: View) -> Response:
    newer, older = await view.client.get(view.form.get("newer", "")), view.form.get("older", "")
    choice = view.form.get("choice", "")
    here = view.url("contested", at=view.form.get("at", ""), page=view.form.get("page", ""))
    if choice == "both":
        await view.host.resolve_conflict(newer, older, Resolution.KEEP_BOTH)
        view.say("both stay")
    elif choice == "newer":
        await view.host.resolve_conflict(newer, older, Resolution.SUPERSEDE)
        view.say("the newer one holds", undo=view.item_url("memories", older, "restore"), back=here)
    elif choice == "older":
        await view.host.resolve_conflict(await view.client.get(older), newer.id, Resolution.SUPERSEDE)
        view.say("the older one holds", undo=view.item_url("memories", newer.id, "restore"), back=here)
    return view.to(here)


ROUTES = (("GET", "contested", _show), ("POST", "contested", _decide))
