"""
How the sections of a context share its tokens.

Each has a share that is kept for it, as far as it has lines to fill it. In the order of ORDER each takes what it can
beyond what is kept for those after it; so nothing is left unused while a line waits that would fit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from memoryd.domain.context.render import Line
from memoryd.domain.tokens import Measure
from memoryd.model.context import (
    KNOWN_PEOPLE,
    OTHER_THREADS,
    RECALLED_MESSAGES,
    RECENT_MESSAGES,
    RELEVANT_MEMORY,
    THREAD_SUMMARY,
    WEEKLY_INSIGHT,
    WORKING_MEMORY,
    ContextSection,
)
from memoryd.model.recalled_text import CLOSE, OPEN
from memoryd.model.trust import Trust

__all__ = ["ORDER", "Part", "compose"]

ORDER = (
    RECENT_MESSAGES,
    WORKING_MEMORY,
    RELEVANT_MEMORY,
    THREAD_SUMMARY,
    KNOWN_PEOPLE,
    RECALLED_MESSAGES,
    OTHER_THREADS,
    WEEKLY_INSIGHT,
)
SHARES = {
    WORKING_MEMORY: 2,
    RELEVANT_MEMORY: 4,
    THREAD_SUMMARY: 2,
    KNOWN_PEOPLE: 2,
    RECALLED_MESSAGES: 2,
    OTHER_THREADS: 1,
    WEEKLY_INSIGHT: 1,
}
"""Sixteenths of the tokens that are kept for each; recent messages come first and so have the other two at least."""
SIXTEENTHS = 16
SHARE_OF_TRUST = 2  # half of a section's room is for higher trust than a sandbox's, as far as that needs it
HEADINGS = {
    KNOWN_PEOPLE: "## Known people",
    RELEVANT_MEMORY: "## Relevant memory",
    WEEKLY_INSIGHT: "## Weekly insight",
    WORKING_MEMORY: "## Working memory",
    THREAD_SUMMARY: "## Summary of this conversation",
    RECALLED_MESSAGES: "## Earlier in this conversation",
    OTHER_THREADS: "## From other conversations",
    RECENT_MESSAGES: "## Recent messages",
}
IN_ORDER = frozenset({WORKING_MEMORY, THREAD_SUMMARY, RECENT_MESSAGES})
"""Sections that end with the first line that does not fit, cut; of the others it is skipped and the next is tried."""
LEAST_CUT = 40  # characters of a line that is worth being shown cut


@dataclass(frozen=True, slots=True)
class Part:
    """The lines that a section could have, the most important first."""

    name: str
    lines: tuple[Line, ...]
    most: int = 1 << 30
    """How many of them at the most."""


@dataclass(frozen=True, slots=True)
class _Sized:
    """A part with the size of each line."""

    name: str
    lines: list[tuple[Line, int]]
    most: int
    heading: int

    @property
    def need(self) -> int:
        """Return the size of all of it."""
        return self.heading + sum(size for _, size in self.lines[: self.most]) if self.lines else 0

    def without(self, ids: Collection[str]) -> _Sized:
        """Return it without the lines from these."""
        return replace(self, lines=[one for one in self.lines if one[0].item.id not in ids]) if ids else self


def compose(
    parts: Iterable[Part], order: Sequence[str], told: Mapping[str, Collection[str]], tokens: int, measure: Measure
) -> tuple[str, list[ContextSection], int]:
    """
    Return the text within so many tokens, its sections in an order, and how many relevant memories did not fit.

    `told` says which messages a memory was learnt from: where all of them are shown as recent, it is left out.
    """
    sized = [_sized(part, measure) for part in parts if part.lines]
    room = tokens * measure.per_token
    while True:
        chosen, skipped = _chosen(sized, told, room - measure.size(f"{OPEN}\n{CLOSE}\n"), measure)
        sections = [_section(name, chosen[name]) for name in order if chosen.get(name)]
        text = "\n".join(section.text for section in sections)
        text = f"{OPEN}\n{text}{CLOSE}\n" if text else ""
        excess = measure.size(text) - tokens * measure.per_token
        if excess <= 0:
            return text, sections, skipped
        room -= excess  # of a tokenizer, a text may be longer than its parts are together


def _sized(part: Part, measure: Measure) -> _Sized:
    heading, *sizes = measure.sizes([f"{HEADINGS[part.name]}\n\n\n", *(f"{line.text}\n" for line in part.lines)])
    return _Sized(part.name, list(zip(part.lines, sizes, strict=True)), part.most, heading)


def _chosen(
    sized: Sequence[_Sized], told: Mapping[str, Collection[str]], room: int, measure: Measure
) -> tuple[dict[str, list[Line]], int]:
    """Return the lines of each section that fit, as they are shown, and how many relevant memories do not."""
    known = {one.name: one for one in sized}
    chosen: dict[str, list[Line]] = {}
    left, skipped = room, 0
    for n, name in enumerate(ORDER):
        if name not in known:
            continue
        after = [later for later in ORDER[n + 1 :] if later in known]
        kept = sum(min(known[later].need, room * SHARES[later] // SIXTEENTHS) for later in after)
        one = known[name]
        if name == RELEVANT_MEMORY:
            shown = {line.item.id for line in chosen.get(RECENT_MESSAGES, ())}
            one = one.without(_learnt_from(shown, told))
        lines, used = _fitting(one, max(0, left - kept), measure)
        if name == RELEVANT_MEMORY:
            skipped = min(len(one.lines), one.most) - len(lines)
        left -= used
        chosen[name] = sorted(lines, key=lambda line: line.place)
    return chosen, skipped


def _learnt_from(shown: Collection[str], told: Mapping[str, Collection[str]]) -> set[str]:
    """Return the memories that were learnt from messages that are all shown, and from nothing else."""
    return {memory_id for memory_id, ids in told.items() if ids and shown and all(one in shown for one in ids)}


def _fitting(one: _Sized, room: int, measure: Measure) -> tuple[list[Line], int]:
    """Return the lines of a part that fit into so much room, the most important first, and what they take."""
    left = room - one.heading
    if one.name in IN_ORDER:
        lines, left = _first_fitting(one, left, measure)
    else:
        lines, left = _any_fitting(one, left)
    return (lines, room - left) if lines else ([], 0)


def _first_fitting(one: _Sized, left: int, measure: Measure) -> tuple[list[Line], int]:
    lines = []
    for line, size in one.lines:
        if size > left:
            cut = _cut(line, left, measure)
            if cut is not None:
                lines.append(cut)
                left -= measure.size(f"{cut.text}\n")
            break
        lines.append(line)
        left -= size
    return lines, left


def _cut(line: Line, room: int, measure: Measure) -> Line | None:
    """Return as much of a line as fits into so much room; None if that is not worth it."""
    low, high = 0, len(line.body)
    while low < high:
        middle = (low + high + 1) // 2
        if measure.size(f"{line.cut(middle).text}\n") <= room:
            low = middle
        else:
            high = middle - 1
    return line.cut(low) if low >= LEAST_CUT else None


def _any_fitting(one: _Sized, left: int) -> tuple[list[Line], int]:
    """
    Return the lines that fit; what is too long is skipped, as the next may fit.

    A sandbox's leave half of the room to the others, as far as those need it.
    """
    lines: list[Line] = []
    others = sum(size for line, size in one.lines if line.item.trust is not Trust.SANDBOX)
    for_sandboxes = left - min(others, left // SHARE_OF_TRUST)
    for line, size in one.lines:
        sandboxed = line.item.trust is Trust.SANDBOX
        if len(lines) == one.most or size > left or (sandboxed and size > for_sandboxes):
            continue
        left -= size
        for_sandboxes -= size if sandboxed else 0
        lines.append(line)
    return lines, left


def _section(name: str, lines: Sequence[Line]) -> ContextSection:
    text = "\n".join([HEADINGS[name], "", *(line.text for line in lines)]) + "\n"
    return ContextSection(name, text, tuple(line.item for line in lines))
