"""How the command shows what it got: lines for people, JSON for programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from memory_client.json_text import as_json

from memoryd.model.limits import MIN_ID_PREFIX
from memoryd.model.memory import ShownMemory, State
from memoryd.model.results import Hit, LegScore, Miss
from memoryd.model.trust import Trust

if TYPE_CHECKING:
    from memoryd.model.talk import MessageHit

__all__ = [
    "LEG_MEANINGS",
    "MISS_REASONS",
    "as_json",
    "day",
    "error_json",
    "hit_line",
    "leg_lines",
    "list_json",
    "memory_line",
    "miss_lines",
    "moment",
    "notes_of",
    "one_line",
    "painted",
    "score_of",
    "shortest_ids",
    "shown_line",
    "size",
]


KIBI = 1024


def error_json(error: Any, code: str = "", reason: str = "") -> str:
    """Return what failed as one JSON document: a MemorydError, or a text with its code and reason."""
    return as_json(
        {
            "error": {
                "code": getattr(error, "code", code),
                "reason": getattr(error, "reason", reason),
                "message": getattr(error, "message", str(error)),
                "field": getattr(error, "field", ""),
            }
        }
    )


def list_json(name: str, items: Sequence[Any], *, more: bool = False) -> str:
    """Return the one shape of a list: the items under their name, and whether there are more."""
    return as_json({name: items, "more": more})


def one_line(text: str) -> str:
    """Return text on one line, without control characters that could drive a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))


def shown_line(line: str) -> str:
    """Return a line as it is indented, without what could drive a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in line.expandtabs(4)).rstrip()


def size(count: int) -> str:
    """Return a number of bytes as people write it: `3.4 MiB`."""
    value, unit = float(count), "bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if value < KIBI or unit == "TiB":
            break
        value /= KIBI
    return f"{count} bytes" if unit == "bytes" else f"{value:.1f} {unit}"


def day(time: datetime) -> str:
    """Return the day of a time where this runs: what people read is local, what programs read is UTC."""
    return f"{time.astimezone():%Y-%m-%d}"


def moment(time: datetime) -> str:
    """Return a time to the minute where this runs."""
    return f"{time.astimezone():%Y-%m-%d %H:%M}"


def shortest_ids(ids: Iterable[str]) -> dict[str, str]:
    """Return the shortest form of each id, at least 8 characters, that is unique among them."""
    known = list(dict.fromkeys(ids))
    ordered = sorted(known)  # of all others the one before and the one after begin most like it
    lengths = dict.fromkeys(known, MIN_ID_PREFIX)
    for one, other in pairwise(ordered):
        alike = (place for place, letter in enumerate(one) if letter != other[place : place + 1])
        shared = next(alike, len(one)) + 1
        lengths[one] = max(lengths[one], shared)
        lengths[other] = max(lengths[other], shared)
    return {memory_id: memory_id[:length] for memory_id, length in lengths.items()}


_COLOURS = {"strong": "32", "likely": "36", "possible": "2", "weak": "2", "doubt": "33", "less": "35", "id": "2"}
"""Of ECMA-48: green, cyan, faint, faint, yellow, magenta, faint."""


def painted(text: str, tone: str) -> str:
    """Return text in a colour where a terminal shows it, and NO_COLOR (no-color.org) does not forbid it."""
    code = _COLOURS.get(tone)
    if not code or not text or not _has_colours():
        return text
    return f"\033[{code}m{text}\033[0m"


def _has_colours() -> bool:
    is_shown = sys.stdout is not None and sys.stdout.isatty()
    return is_shown and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def _label(memory: ShownMemory, said_time: datetime | None = None) -> str:
    """Return who said a memory and on which day, as far as a reader needs it and the line does not tell: "[Bob] "."""
    date = "" if memory.said_time is None else day(memory.said_time)
    if said_time is not None and date == day(said_time):
        date = ""
    label = ", ".join(part for part in (one_line(memory.said_by), date) if part)
    return f"[{label}] " if label else ""


def _statement(memory: ShownMemory) -> str:
    text = one_line(memory.content)
    if memory.subjects:
        text += f" (about {', '.join(map(one_line, memory.subjects))})"
    if memory.trust is not Trust.HOST:
        text += painted(f" [{memory.trust.value}]", "less")
    if memory.contested_with:
        first, *more = (item[:MIN_ID_PREFIX] for item in memory.contested_with)
        text += painted(f" [contested by {first}{f' and {len(more)} more' if more else ''}]", "doubt")
    if memory.state is not State.LIVE:
        text += f" [{memory.state.value}]"
    return text


def hit_line(hit: Hit, short_id: str) -> str:
    """Return a hit as `[0.87 strong] [Bob, 2026-05-03] text (about Sarah)  id`; the second label only where needed."""
    memory = hit.memory
    if hit.newer is not None:  # which is told of by its words
        left = tuple(item for item in memory.contested_with if item != hit.newer.id)
        memory = replace(memory, contested_with=left)
    text = f"{_label(memory)}{_statement(memory)}{notes_of(hit)}"
    return f"{score_of(hit)} {text}  {painted(short_id, 'id')}"


def score_of(hit: Hit | MessageHit) -> str:
    """Return how good a hit is: `[0.87 strong]`."""
    return painted(f"[{hit.score:.2f} {hit.strength}]", hit.strength)


def notes_of(hit: Hit | MessageHit) -> str:
    """Return what else is to be said of a hit."""
    notes = " [said by the other person]" if hit.said_by_other else ""
    if hit.same_ids:
        notes += f" [and {len(hit.same_ids)} more that say the same]"
    newer = getattr(hit, "newer", None)
    if newer is not None:
        text = f" [contested by the newer: {one_line(newer.content)}, {newer.id[:8]}, {day(newer.create_time)}]"
        notes += painted(text, "doubt")
    return notes


_BAR = 10  # characters of the largest share
LEG_MEANINGS = {
    "vector": "meaning",
    "keyword": "words",
    "tokens": "words in their meaning",
    "entity": "names",
    "time": "time",
    "speaker": "who said it",
    "answer": "the wanted sort of answer",
    "assistant": "said by the assistant",
    "question": "is a question itself",
    "class": "one of the things asked for",
    "event": "the event of a better hit",
    "rerank": "as read with the question",
    "reader": "as it answers",
}


def leg_lines(legs: Sequence[LegScore], indent: str = "  ") -> list[str]:
    """Return what each leg adds to a hit, the largest share first, each with a bar as long as its share."""
    shares = sorted(((leg.score * leg.weight, leg) for leg in legs), key=lambda share: -abs(share[0]))
    most = max((abs(share) for share, _ in shares), default=0.0) or 1.0
    lines = []
    for share, leg in shares:
        bar = ("█" if share >= 0 else "░") * round(_BAR * abs(share) / most)
        place = f"rank {leg.rank}" if leg.rank else "not found"
        name = LEG_MEANINGS.get(leg.leg.value, leg.leg.value)
        weighed = f"{leg.score:.3f} × {leg.weight:.3g}" if leg.weight else f"{leg.score:.3f}, moves no place"
        lines.append(f"{indent}{name:25} {share:+.3f} {bar:{_BAR}} {weighed}, {place}")
    return lines


MISS_REASONS = {
    "deleted": "it was deleted",
    "superseded": "another memory has replaced it (--include-superseded finds it)",
    "expired": "it has expired (--include-expired finds it)",
    "as_of": "it was stored later",
    "min_score": "its score is below --min-score",
    "floor": "it is no answer (--min-score 0 finds it)",
    "reader": "a model that reads it with the question finds that it does not answer (--min-score 0 finds it)",
    "limit": "others answer better (--limit)",
    "same": "another hit says the same",
    "unrelated": "it shares nothing with the question",
    "kind": "it is of another kind than those that are searched (--kind; an episode is found by --kind episode alone)",
    "subject": "it is about someone else (--about)",
    "tag": "it has another tag (--tag)",
    "metadata": "its metadata say something else (--meta)",
    "category": "it is of another category (--category)",
    "event_time": "it happened at another time (--since, --until)",
    "not_compared": "there is so much in the scope that only vectors were compared",
}


def miss_lines(miss: Miss) -> list[str]:
    """Return why a memory is not among the hits."""
    if not miss.reasons:
        return [f"{miss.id} is among the hits, at place {miss.place}"]
    why = "; ".join(MISS_REASONS.get(reason, f"the filter of {reason} leaves it out") for reason in miss.reasons)
    place = [f"       its place would be {miss.place}, with {miss.score:.2f}"] if miss.place else []
    return [f"{miss.id} is not among the hits: {why}", *place, *leg_lines(miss.explanation)]


def memory_line(memory: ShownMemory, short_id: str) -> str:
    """Return a memory as `id  date  [Bob] text (about Sarah)`."""
    label = _label(memory, memory.create_time)
    return f"{painted(short_id, 'id')}  {moment(memory.create_time)}  {label}{_statement(memory)}"
