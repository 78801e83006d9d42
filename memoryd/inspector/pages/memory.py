"""One memory: all that is known of it, how it came to be, and what can be done with it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from memory_client import Resolution
from starlette.responses import Response

from memoryd.errors import Conflict, InvalidArgument, LimitExceeded, NotFound
from memoryd.inspector.digests import digests_of
from memoryd.inspector.pages.contested import is_newer
from memoryd.inspector.pages.memories import counted, refused, stored_mark
from memoryd.inspector.view import View, in_words_of, mark_of, sent_as
from memoryd.model.memory import ShownMemory, State

MOST_HISTORY = 40  # steps that are shown
CHANGED_LABELS = "Its labels have changed meanwhile: they stand above, and what you typed below."


async def _shown(view: View, status: int = 200, error: str = "") -> Response:
    memory_id = view.part("id")
    try:
        memory = await view.client.get(memory_id)
    except NotFound:
        return view.page("missing_memory.html", 404, memory_id=memory_id)
    history, conflicts, is_thread_there = await asyncio.gather(
        view.client.history(memory.id), view.host.detect_conflicts(memory), _is_thread_there(view, memory)
    )
    near = {one.memory.id for one in conflicts}
    rivals = [await _there(view, one) for one in memory.contested_with if one not in near]
    return view.page(
        "memory.html", status, memory=memory, rivals=[one for one in rivals if one], labels=_labels_of(memory),
        history=history.memories[-MOST_HISTORY:], missing_ids=history.missing_ids,
        is_thread_there=is_thread_there,
        earlier_count=max(0, len(history.memories) - MOST_HISTORY), conflicts=conflicts, error=error,
        action=lambda name: view.item_url("memories", memory.id, name),
    )  # fmt: skip


async def _is_thread_there(view: View, memory: ShownMemory) -> bool:
    """Whether the conversation that a memory was learnt from was not erased since."""
    if not memory.source.thread_id:
        return False
    try:
        await view.client.thread(memory.source.thread_id, shared=bool(memory.scope.chat_id))
    except NotFound:
        return False
    return True


async def _show(view: View) -> Response:
    return await _shown(view)


async def _correct(view: View) -> Response:
    content = view.form.get("content", "")
    kept = await _there(view, view.part("id"))
    if kept is not None and content.strip() and content == sent_as(kept.content):
        view.say("it says that already")
        return view.to(view.item_url("memories", kept.id))
    try:
        result = await view.client.correct(view.part("id"), content)
    except (InvalidArgument, LimitExceeded, Conflict) as error:
        return await _shown(view, 400, in_words_of(error, {"content": "What it should say"}))
    if result.memory is None:
        return await _shown(view, 400, refused(result.rejection))
    undo = view.item_url("memories", result.memory.id, "undo")
    view.say(
        "corrected; the former words are in its history",
        undo=undo, restore=" ".join(result.superseded_ids), undoes=stored_mark(result.memory),
    )  # fmt: skip
    return view.to(view.item_url("memories", result.memory.id))


async def _confirm(view: View) -> Response:
    done = await view.client.confirm(view.part("id"))
    ended = done.superseded_ids
    replaced = f", and replaced {counted(ended)} that contested it" if ended else ""
    undo = view.item_url("memories", ended[0], "restore") if ended else ""
    view.say(
        f"confirmed{replaced}; nothing automatic ends it any more",
        undo=undo, button="Take back what it replaced", also=" ".join(ended[1:]),
    )  # fmt: skip
    return view.to(view.came_from(view.item_url("memories", done.memory.id)))


async def _there(view: View, memory_id: str) -> ShownMemory | None:
    try:
        return await view.client.get(memory_id)
    except NotFound:
        return None


async def _undo(view: View) -> Response:
    """Take back what was just stored, and let what it had replaced hold again, unless others have changed it."""
    memory_id = view.part("id")
    kept = await _there(view, memory_id)
    if kept is None or stored_mark(kept) != view.form.get("undoes", ""):
        view.say("that was not undone: it has changed meanwhile", tone="fault")
        return view.to(view.item_url("memories", memory_id))
    await view.client.delete(memory_id)
    former = view.form.get("restore", "").split()
    for one in former:
        await view.client.restore(one)
    view.say(f"took back {memory_id[:8]}" + (f"; {former[0][:8]} holds again" if former else ""))
    return view.to(view.item_url("memories", former[0])) if former else view.back("memories")


async def _erase(view: View) -> Response:
    """Ask once more."""
    memory = await view.client.get(view.part("id"))
    history, digests = await asyncio.gather(view.client.history(memory.id), digests_of(view.client, [memory.id]))
    others = [one for one in history.memories if one.id != memory.id]
    return view.page(
        "erase_memory.html", memory=memory, others=others, digests=digests, mark=_mark(memory, [*others, *digests])
    )


def _mark(memory: ShownMemory, others: Sequence[ShownMemory]) -> str:
    """Return a mark of what the question before a memory is erased tells of it."""
    told = (memory.content, memory.state, memory.tags, memory.category, memory.superseded_by)
    return mark_of(*told, [(one.id, one.state) for one in others])


async def _delete(view: View) -> Response:
    memory_id = view.part("id")
    purge = bool(view.form.get("purge"))
    kept = await view.client.get(memory_id)
    history, digests = await asyncio.gather(view.client.history(kept.id), digests_of(view.client, [kept.id]))
    others = [one for one in history.memories if one.id != kept.id]
    if purge and not view.is_as_shown(_mark(kept, [*others, *digests])):
        return await _erase(view)
    gone = await view.client.delete(memory_id, purge=purge)
    if digests:
        view.say(f"what was made of it went for good: {', '.join(one.id[:8] for one in digests)}")
    if purge:
        view.say(f"erased {memory_id[:8]} for good")
    else:
        until = f" until {gone.purge_time.astimezone():%Y-%m-%d}" if gone.purge_time else ""
        view.say(
            f"deleted {memory_id[:8]}; it can be taken back{until}",
            undo=view.item_url("memories", memory_id, "restore"),
        )
    return view.back("memories")


async def _restore(view: View) -> Response:
    pairs = view.form.get("pairs")
    ended = await _there(view, view.part("id")) if pairs is not None else None
    if pairs is not None and (ended is None or ended.state is not State.SUPERSEDED):
        view.say("that was not undone: what had ended has changed meanwhile", tone="fault")
        return view.to(view.came_from(view.url("contested")))
    memory = await view.client.restore(view.part("id"))
    lost = await _as_before(view, memory, set(pairs.split())) if pairs is not None else ""
    others = [await view.client.restore(one) for one in view.form.get("also", "").split()]
    still = "; something newer still replaces it" if memory.superseded_by else ""
    view.say(f"took back {', '.join(one.id[:8] for one in (memory, *others))}{still}{lost}")
    return view.to(view.came_from(view.item_url("memories", memory.id)))


async def _as_before(view: View, memory: ShownMemory, pairs: set[str]) -> str:
    """Let a memory that came back contest what it had contested and no more; return what cannot be had, in words."""
    contested = set(memory.contested_with)
    for other_id in contested - pairs:  # what was decided before stays decided
        other = await view.client.get(other_id)
        newer, older = (memory, other) if is_newer(memory, other) else (other, memory)
        await view.host.resolve_conflict(newer, older.id, Resolution.KEEP_BOTH)
    lost = sorted(pairs - contested)
    return f"; it is contested no longer with {', '.join(one[:8] for one in lost)}: look at both" if lost else ""


def _labels_of(memory: ShownMemory) -> str:
    return "\n".join((*memory.tags, memory.category))


async def _labels(view: View) -> Response:
    memory_id, tags = view.part("id"), view.form.get("tags", "")
    listed = tags.splitlines() if view.form.get("a_line") else tags.split(",")
    former = await view.client.get(memory_id)
    if view.form.get("seen", _labels_of(former)) != _labels_of(former):
        return await _shown(view, 409, CHANGED_LABELS)
    if (changed := view.form.get("undoes")) is not None and changed != _labels_of(former):
        view.say("its labels have changed meanwhile, and stay", tone="fault")
        return view.to(view.item_url("memories", memory_id))
    named = [one if one in former.tags else one.removeprefix("#") for one in map(str.strip, listed)]
    wanted = [tag for tag in named if tag]
    memory = await view.client.update(memory_id, tags=wanted, category=view.form.get("category", ""))
    said, button = ("labels are set", "Undo") if changed is None else ("the former labels are back", "Redo")
    view.say(
        said, undo=view.item_url("memories", memory.id, "labels"), button=button, a_line="1",
        tags="\n".join(former.tags), category=former.category, undoes=_labels_of(memory),
    )  # fmt: skip
    return view.to(view.item_url("memories", memory.id))


ROUTES = (
    ("GET", "memories/{id}", _show),
    ("POST", "memories/{id}/correct", _correct),
    ("POST", "memories/{id}/confirm", _confirm),
    ("POST", "memories/{id}/delete", _delete),
    ("POST", "memories/{id}/restore", _restore),
    ("POST", "memories/{id}/undo", _undo),
    ("GET", "memories/{id}/erase", _erase),
    ("POST", "memories/{id}/labels", _labels),
)
