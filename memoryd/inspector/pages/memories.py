"""The memories of an owner: filtered, page by page, and one more."""

from __future__ import annotations

from datetime import datetime, timedelta

from memory_client import Filter, Kind
from starlette.responses import Response

from memoryd.errors import InvalidArgument, LimitExceeded
from memoryd.inspector.view import View

PAGE_SIZE = 50
KINDS = [kind.value for kind in Kind if kind not in {Kind.NOTE, Kind.EPISODE}]


def day_of(view: View, name: str) -> datetime | None:
    """Return the beginning of a day that a parameter names, where this runs; InvalidArgument for what is none."""
    text = view.asked(name)
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise InvalidArgument(f"{name} is {text[:40]!r}; it must be a day such as 2026-05-31", field=name) from None


def filter_of(view: View) -> Filter:
    """Return the filter that the address of a page says."""
    until = day_of(view, "until")
    kind = view.asked("kind")
    return Filter(
        kinds=frozenset([Kind(kind)]) if kind in KINDS else frozenset(),
        subjects=tuple(filter(None, [view.asked("about")])),
        tags=tuple(filter(None, [view.asked("tag")])),
        category=view.asked("category"),
        where=view.asked("where"),
        import_id=view.asked("import"),
        contested=bool(view.asked("contested")),
        event_time_from=day_of(view, "since"),
        event_time_to=None if until is None else until + timedelta(days=1),
        include_expired=bool(view.asked("all")),
        include_superseded=bool(view.asked("all")),
    )


NAMES = ("kind", "about", "tag", "category", "where", "import", "since", "until")


async def _shown(view: View, status: int = 200, error: str = "") -> Response:
    page = await view.client.page(page_size=PAGE_SIZE, page_token=view.asked("page"), filter=filter_of(view))
    stats = await view.client.stats()
    return view.page(
        "memories.html",
        status,
        memories=page.memories,
        next_token=page.next_page_token,
        live_count=sum(count.count for count in stats.counts if count.state.value == "live"),
        all_count=sum(count.count for count in stats.counts),
        kinds=KINDS,
        asked={name: view.asked(name) for name in NAMES},
        is_filtered=any(view.asked(name) for name in (*NAMES, "contested", "all")),
        error=error,
    )


async def _show(view: View) -> Response:
    if not view.whose.is_known:
        return view.page("choose.html")
    return await _shown(view)


def list_of(text: str) -> list[str]:
    """Return the parts of a text with commas between them."""
    return [part.strip() for part in text.split(",") if part.strip()]


async def _add(view: View) -> Response:
    tags, subjects = list_of(view.form.get("tags", "")), list_of(view.form.get("about", ""))
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
        return await _shown(view, 400, error.message)
    if result.memory is None:
        return await _shown(view, 400, f"It was not stored: {result.rejection}.")
    replaced = f", and replaced {len(result.superseded_ids)}" if result.superseded_ids else ""
    contested = f"; {len(result.contested_ids)} contest it" if result.contested_ids else ""
    is_new = result.outcome.value in {"inserted", "superseded"}
    undo = view.item_url("memories", result.memory.id, "delete") if is_new else ""
    view.say(f"{result.outcome.value} {result.memory.id[:8]}{replaced}{contested}", undo=undo)
    return view.back("memories")


ROUTES = (("GET", "memories", _show), ("POST", "memories", _add))
