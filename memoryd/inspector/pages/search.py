"""A search, with what each leg said of each hit, where the floor lies, and why something is not found."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from memory_cli.output import LEG_MEANINGS, MISS_REASONS
from memory_client import Filter, Hit, Kind, LegScore
from starlette.responses import Response

from memoryd.inspector.pages.memories import KINDS, day_of
from memoryd.inspector.view import View

LIMIT = 20
MOST_BELOW = 10  # that are shown below the floor


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


async def _show(view: View) -> Response:
    query = view.typed("q")
    kind = view.typed("kind")
    hits: Sequence[Hit] = ()
    below: Sequence[Hit] = ()
    unavailable: Sequence[str] = ()
    miss = None
    if query:
        wanted = Filter(
            kinds=frozenset([Kind(kind)]) if kind in {*KINDS, "note", "episode"} else frozenset(),
            include_expired=bool(view.asked("all")),
            include_superseded=bool(view.asked("all")),
        )
        why_not, as_of = view.typed("why_not"), _end_of_day(view)
        ask = partial(
            view.client.search, query, limit=LIMIT, filter=wanted, explain=True, as_of=as_of, without_recall=True
        )
        found, every = await asyncio.gather(ask(why_not=why_not), ask(min_score=0.0))
        hits, miss = found.hits, found.miss
        shown = {hit.memory.id for hit in hits}.union(*(hit.same_ids for hit in hits))
        below = [hit for hit in every.hits if hit.memory.id not in shown][:MOST_BELOW]
        unavailable = [leg.value for leg in found.unavailable_legs]
    return view.page(
        "search.html",
        query=query,
        hits=hits,
        below=below,
        unavailable=unavailable,
        miss=miss,
        bars=bars,
        reason=_reason,
        kinds=[*KINDS, "episode", "note"],
        asked={name: view.asked(name) for name in ("kind", "as_of", "why_not")},
    )


ROUTES = (("GET", "search", _show),)
