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
RESTORED = "restored"
"""The rule of a pair that was brought back: the rule that had found it first says more, where it finds it again."""


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
    of = {*view.typed("of").split()}
    named = (n for n, (newer, older) in enumerate(pairs) if of == {newer.id, older.id})
    at = next(named, max(0, min(view.number("at"), len(pairs) - 1)))
    why = await _why(view, *pairs[at]) if pairs else ""
    return view.page("contested.html", pairs=pairs, at=at, next_token=page.next_page_token, why=why)


async def _why(view: View, newer: ShownMemory, older: ShownMemory) -> str:
    """Return why two memories contest each other, in words."""
    noted = newer.judgement if newer.judgement and newer.judgement.evidence == older.id else None
    if noted is None or noted.rule == RESTORED:
        for one in await view.host.detect_conflicts(newer):
            if one.memory.id == older.id and one.rule:
                return _in_words(one.rule, one.reason)
    if noted is None:
        return "no rule was noted for this pair: the newer one has several, and tells the last"
    return _in_words(noted.rule, noted.reason)


def _in_words(rule: str, reason: str) -> str:
    return f"{rule}: {reason}" if reason else rule


async def _decide(view: View) -> Response:
    newer, older = await asyncio.gather(*(view.client.get(view.form.get(name, "")) for name in ("newer", "older")))
    choice = view.form.get("choice", "")
    here = view.url("contested", at=view.form.get("at", ""), page=view.form.get("page", ""))
    if choice == "both":
        await view.host.resolve_conflict(newer, older.id, Resolution.KEEP_BOTH)
        view.say("both stay")
    elif choice in {"newer", "older"}:
        holds, ends = (newer, older) if choice == "newer" else (older, newer)
        await view.host.resolve_conflict(holds, ends.id, Resolution.SUPERSEDE)
        undo = view.item_url("memories", ends.id, "restore")
        back = view.url("contested", of=f"{newer.id} {older.id}", page=view.form.get("page", ""))
        pairs = " ".join(ends.contested_with)
        view.say(f"the {choice} one holds{_settled_with(ends, holds)}", undo=undo, back=back, pairs=pairs)
    return view.to(here)


def _settled_with(ends: ShownMemory, holds: ShownMemory) -> str:
    """Return in words which other pairs a memory takes along that ends."""
    count = len({*ends.contested_with} - {holds.id})
    if not count:
        return ""
    pairs = "1 other pair of the one that ends is" if count == 1 else f"{count} other pairs of the one that ends are"
    return f"; {pairs} settled with it"


ROUTES = (("GET", "contested", _show), ("POST", "contested", _decide))
