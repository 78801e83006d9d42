"""A search, with what each leg said of each hit, where the floor lies, and why something is not found."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from memory_cli.output import LEG_MEANINGS, MISS_REASONS
from memory_client import Filter, Hit, Kind, LegScore
from starlette.responses import Response

from memoryd.inspector.pages.contested import contesting, is_newer
from memoryd.inspector.pages.memories import KINDS, day_of
from memoryd.inspector.view import View
from memoryd.model.memory import ShownMemory
from memoryd.model.results import Miss, SearchResult

LIMIT, MOST = 20, 100
MOST_BELOW = 10  # that are shown below the floor
LABELS = {"query": "Question", "as_of": "As of the day", "why_not": "Why is this memory not found?"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search has found."""

    hits: Sequence[Hit]
    below: Sequence[Hit]
    """The next ones, that lie below the floor."""
    others: Mapping[str, Sequence[ShownMemory]]
    """By the id of a hit: what contests it."""
    miss: Miss | None
    unavailable: Sequence[str]
    """The legs that did not work."""
    is_cut: bool
    """Whether there may be more hits."""
    is_past: bool
    """Whether it is that of an earlier day."""


@dataclass(frozen=True, slots=True)
class LegBar:
    """What one leg adds to a hit."""

    name: str
    share: float
    """Of the score: what the leg says, by its weight."""
    length: float
    """Of the bar: -1 to 1."""
    rank: int
    said: float
    weight: float


def bars(legs: Sequence[LegScore]) -> list[LegBar]:
    """Return what each leg adds, the largest first."""
    shares = [(leg.score * leg.weight, leg) for leg in legs]
    most = max((abs(share) for share, _ in shares), default=0.0) or 1.0
    return [
        LegBar(LEG_MEANINGS.get(leg.leg.value, leg.leg.value), share, share / most, leg.rank, leg.score, leg.weight)
        for share, leg in sorted(shares, key=lambda each: -abs(each[0]))
    ]


def _reason(word: str) -> str:
    return MISS_REASONS.get(word, f"the filter of {word} leaves it out").partition(" (")[0]


def _end_of_day(view: View) -> datetime | None:
    """Return the end of the day that is asked for; of today now, as nothing is known of later."""
    day, end = day_of(view, "as_of"), day_of(view, "as_of", end=True)
    if day is None or end is None:
        return None
    return None if day <= view.sources.now() < end else end


async def _why_not(view: View, hits: Sequence[Hit], ask: Callable[..., Awaitable[SearchResult]]) -> Miss | None:
    """Return why a memory is not found, or its place; what was found is shown whether that is an id or not."""
    wanted = view.typed("why_not").lower()
    places = [place for place, hit in enumerate(hits, 1) if hit.memory.id.startswith(wanted)]
    if len(places) == 1:  # also a message or a note: why those are not found the daemon cannot say
        return Miss(hits[places[0] - 1].memory.id, places[0], hits[places[0] - 1].score)
    with view.asking(**LABELS):
        return (await ask(why_not=wanted)).miss
    return None


async def _answered(view: View, query: str) -> Answer:
    """Search, and look at what lies below the floor and why something is not found."""
    kind = view.typed("kind")
    wanted = Filter(
        kinds=frozenset([Kind(kind)]) if kind in {*KINDS, "note", "episode"} else frozenset(),
        include_expired=bool(view.asked("all")),
        include_superseded=bool(view.asked("all")),
    )
    as_of = _end_of_day(view)
    limit = max(1, min(MOST, view.number("limit", LIMIT)))
    ask = partial(view.client.search, query, limit=limit, filter=wanted, explain=True, as_of=as_of, without_recall=True)
    found, every = await asyncio.gather(ask(), ask(min_score=0.0))
    miss = None
    if view.typed("why_not"):
        miss = await _why_not(view, found.hits, ask)
    shown = {hit.memory.id for hit in found.hits}.union(*(hit.same_ids for hit in found.hits))
    below = [hit for hit in every.hits if hit.memory.id not in shown][:MOST_BELOW]
    others = await contesting(view, [hit.memory for hit in (*found.hits, *below)])
    unavailable = [leg.value for leg in found.unavailable_legs]
    return Answer(found.hits, below, others, miss, unavailable, len(found.hits) == limit, as_of is not None)


async def _show(view: View) -> Response:
    query = view.typed("q")
    answer = None
    if query:
        with view.asking(**LABELS):
            answer = await _answered(view, query)
    return view.page(
        "search.html",
        query=query,
        answer=answer,
        bars=bars,
        reason=_reason,
        is_newer=is_newer,
        most=MOST,
        kinds=[*KINDS, "episode", "note"],
        asked={name: view.asked(name) for name in ("kind", "as_of", "why_not")},
    )


ROUTES = (("GET", "search", _show),)
