"""The memories of an owner: filtered, page by page, and one more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from memory_client import Filter, Kind, Page
from starlette.responses import Response

from memoryd.errors import InvalidArgument, LimitExceeded
from memoryd.inspector.view import LABELS as VIEW_LABELS
from memoryd.inspector.view import View, in_words_of, mark_of
from memoryd.model.memory import ShownMemory

PAGE_SIZE = 50
FIRST_YEAR, LAST_YEAR = 2, 9998  # of days: there are hours of another day before and after
KINDS = [kind.value for kind in Kind if kind not in {Kind.NOTE, Kind.EPISODE}]


def day_of(view: View, name: str, *, end: bool = False) -> datetime | None:
    """Return where a day that a parameter names begins, or ends, where this runs; InvalidArgument for what is none."""
    text = view.typed(name)
    if not text:
        return None
    found = _day(text)
    if found is None:
        raise InvalidArgument(f"{name} is {text[:40]!r}; it must be a day such as 2026-05-31", field=name)
    return (found + timedelta(days=1) if end else found).astimezone()  # a day may have 23 or 25 hours


def _day(text: str) -> datetime | None:
    """Return a day without a time zone; None for what is none, and at the ends of the calendar."""
    try:
        found = datetime.strptime(text, "%Y-%m-%d")  # noqa: DTZ007  the zone is where this runs
    except ValueError:
        return None
    return found if FIRST_YEAR <= found.year <= LAST_YEAR else None


def filter_of(view: View) -> Filter:
    """Return the filter that the address of a page says."""
    kind = view.typed("kind")
    return Filter(
        kinds=frozenset([Kind(kind)]) if kind in KINDS else frozenset(),
        subjects=tuple(filter(None, [view.typed("about")])),
        tags=tuple(filter(None, [view.typed("tag").removeprefix("#")])),  # as the pages show it
        category=view.typed("category"),
        where=view.typed("where"),
        import_id=view.typed("import"),
        contested=bool(view.asked("contested")),
        event_time_from=day_of(view, "since"),
        event_time_to=day_of(view, "until", end=True),
        include_expired=bool(view.asked("all")),
        include_superseded=bool(view.asked("all")),
    )


NAMES = ("kind", "about", "tag", "category", "where", "import", "since", "until")
LABELS = {
    "subjects": "About", "tags": "Tag", "category": "Category", "where": "Metadata", "import_id": "Import",
    "event_time_from": "Happened from", "event_time_to": "Happened to", "since": "Happened from",
    "until": "Happened to",
}  # fmt: skip
"""What a fault calls a field, as the form calls it."""


async def _deleted(view: View) -> list[tuple[Page, str]]:
    """Return what was deleted, and can be taken back, of the user and of the chat, with where more of it is shown."""
    whose = view.whose
    places = [(whose.user_id, "")] * bool(whose.user_id) + [("", whose.chat_id)] * bool(whose.chat_id)
    pages = await asyncio.gather(
        *(
            view.host.deleted_memories(
                user_id, chat_id=chat_id, agent_id=whose.agent_id, page_size=PAGE_SIZE,
                page_token=view.asked(_page_of(user_id)),
            )
            for user_id, chat_id in places
        )
    )  # fmt: skip
    return [
        (page, view.same(**{_page_of(user_id): page.next_page_token}) if page.next_page_token else "")
        for page, (user_id, _) in zip(pages, places, strict=True)
    ]


def _page_of(user_id: str) -> str:
    """Return the name of the parameter that says which page of what was deleted is shown, of a user or of a chat."""
    return "gone" if user_id else "gone_shared"


async def _shown(view: View, status: int = 0, error: str = "") -> Response:
    page = Page(())
    with view.asking(**LABELS):
        page = await view.client.page(page_size=PAGE_SIZE, page_token=view.asked("page"), filter=filter_of(view))
    stats, deleted = await asyncio.gather(view.client.stats(), _deleted(view))
    return view.page(
        "memories.html",
        status,
        memories=page.memories,
        next_token=page.next_page_token,
        live_count=sum(count.count for count in stats.counts if count.state.value == "live"),
        deleted_count=sum(count.count for count in stats.counts if count.state.value == "deleted"),
        deleted=deleted,
        all_count=sum(count.count for count in stats.counts),
        kinds=KINDS,
        page_size=PAGE_SIZE,
        asked={name: view.asked(name) for name in NAMES},
        is_filtered=any(view.asked(name) for name in (*NAMES, "contested", "all")),
        error=error,
    )


def list_of(text: str) -> list[str]:
    """Return the parts of a text with commas between them."""
    return [part.strip() for part in text.split(",") if part.strip()]


def counted(ids: Sequence[str]) -> str:
    """Return in words how many memories there are, and which one if there is one."""
    return f"memory {ids[0][:8]}" if len(ids) == 1 else f"{len(ids)} memories"


def stored_mark(memory: ShownMemory) -> str:
    """Return a mark of what a memory is, by which Undo sees whether others have changed it."""
    return mark_of(memory.content, memory.state.value, memory.protected, memory.tags, memory.category)


WHY_REFUSED = {
    "secret": "it holds a credential; take that out",
    "forgotten": "what it says was forgotten, and is not learnt again",
    "disabled": "the memory of this agent is switched off",
    "quota": "there is no room for more",
}


def refused(rejection: str) -> str:
    """Return in words why a statement was not stored."""
    return f"It was not stored: {WHY_REFUSED.get(rejection, rejection)}."


async def _add(view: View) -> Response:
    tags = [tag.removeprefix("#") for tag in list_of(view.form.get("tags", ""))]
    subjects = list_of(view.form.get("about", ""))
    kind = view.form.get("kind", "fact")
    try:
        result = await view.client.add(
            view.form.get("content", ""),
            kind=Kind(kind if kind in KINDS else "fact"),
            shared=view.is_shared,
            tags=tags,
            subjects=subjects,
        )
    except (InvalidArgument, LimitExceeded) as error:
        return await _shown(view, 400, in_words_of(error, {**VIEW_LABELS, "subjects": "About"}))
    if result.memory is None:
        return await _shown(view, 400, refused(result.rejection))
    replaces = f"; it replaces {counted(result.superseded_ids)}" if result.superseded_ids else ""
    contested = f"; it contradicts {counted(result.contested_ids)}" if result.contested_ids else ""
    done = "stored" if result.outcome.value in {"inserted", "superseded"} else result.outcome.value
    undo = view.item_url("memories", result.memory.id, "undo") if done == "stored" else ""
    view.say(
        f"{done} {result.memory.id[:8]}{replaces}{contested}",
        undo=undo, restore=" ".join(result.superseded_ids), undoes=stored_mark(result.memory),
    )  # fmt: skip
    return view.back("memories")


ROUTES = (("GET", "memories", _shown), ("POST", "memories", _add))
