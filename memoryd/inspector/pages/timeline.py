"""What came when: memories as they were stored and as they happened, and sessions, day by day."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from itertools import groupby
from typing import Any, NamedTuple

from memory_client import Filter, Page, Session, SessionPage
from starlette.responses import Response

from memoryd.inspector.pages.memories import day_of
from memoryd.inspector.times import local
from memoryd.inspector.view import View

PAGE_SIZE = 100
MOST_PAGES = 20  # of a thousand sessions each
LABELS = {
    "since": "Stored from", "until": "Stored to", "create_time_from": "Stored from", "create_time_to": "Stored to",
}  # fmt: skip


class Entry(NamedTuple):
    """One thing that came: a memory, or a session."""

    time: datetime
    what: str
    thing: Any


def _by_day(entries: Iterable[Entry]) -> list[tuple[date, list[Entry]]]:
    ordered = sorted(entries, key=lambda entry: entry.time, reverse=True)
    return [(day, list(some)) for day, some in groupby(ordered, key=lambda entry: local(entry.time).date())]


def _is_on(page: Page, session: Session, wanted: Filter, *, is_first: bool) -> bool:
    """Whether a session began in the days that are asked for, among the memories of a page."""
    times = [memory.create_time for memory in page.memories]
    began = session.start_time
    return (
        (wanted.create_time_from is None or began >= wanted.create_time_from)
        and (wanted.create_time_to is None or began < wanted.create_time_to)
        and (not page.next_page_token or began >= min(times))
        and (is_first or bool(times and began <= max(times)))
    )


async def _shown(view: View) -> tuple[Page, list[Session]]:
    """Return a page of memories in the days that are asked for, and the sessions among them."""
    wanted = Filter(
        create_time_from=day_of(view, "since"),
        create_time_to=day_of(view, "until", end=True),
        include_expired=True,
        include_superseded=True,
    )
    token = view.asked("page")
    page = await view.client.page(page_size=PAGE_SIZE, page_token=token, filter=wanted)
    since = min((memory.create_time for memory in page.memories), default=None) if page.next_page_token else None
    since = max((time for time in (since, wanted.create_time_from) if time is not None), default=None)
    shown: list[Session] = []
    sessions = SessionPage(())
    for n in range(MOST_PAGES):  # the latest come first
        if n and (not sessions.next_page_token or (since is not None and sessions.sessions[-1].start_time < since)):
            break
        sessions = await view.client.sessions(page_size=1000, page_token=sessions.next_page_token)
        shown += [session for session in sessions.sessions if _is_on(page, session, wanted, is_first=not token)]
    return page, shown


async def _show(view: View) -> Response:
    page = Page(())
    shown: list[Session] = []
    with view.asking(**LABELS):
        page, shown = await _shown(view)
    entries = [Entry(memory.create_time, "memory", memory) for memory in page.memories]
    entries += [Entry(session.start_time, "session", session) for session in shown]
    return view.page(
        "timeline.html",
        days=_by_day(entries),
        next_token=page.next_page_token,
        rows=[
            ("stored", [memory.create_time for memory in page.memories]),
            ("happened", [memory.event_time for memory in page.memories]),
            ("sessions", [session.start_time for session in shown]),
        ],
        asked={name: view.asked(name) for name in ("since", "until")},
    )


ROUTES = (("GET", "timeline", _show),)
