"""
How the sections of a context share its tokens.

Each has a share that is kept for it, as far as it has lines to fill it. In the order of ORDER each takes what it can
beyond what is kept for those after it. What is left then, as a line was too long for what was kept for it, is shared
once more in the same order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from memoryd.domain.context.render import Line
from memoryd.domain.shares import Room
from memoryd.domain.tokens import Measure
from memoryd.index.analysis import analyse
from memoryd.model.context import (
    ALWAYS_TRUE,
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

__all__ = ["ORDER", "Learnt", "Part", "compose"]

ORDER = (
    RECENT_MESSAGES,
    WORKING_MEMORY,
    ALWAYS_TRUE,
    RELEVANT_MEMORY,
    THREAD_SUMMARY,
    KNOWN_PEOPLE,
    RECALLED_MESSAGES,
    OTHER_THREADS,
    WEEKLY_INSIGHT,
)
SHARES = {
    ALWAYS_TRUE: 1,
    WORKING_MEMORY: 2,
    RELEVANT_MEMORY: 4,
    THREAD_SUMMARY: 2,
    KNOWN_PEOPLE: 2,
    RECALLED_MESSAGES: 2,
    OTHER_THREADS: 1,
    WEEKLY_INSIGHT: 1,
}
"""Sixteenths of the tokens that are kept for each; recent messages come first and so have the other one at least."""
SIXTEENTHS = 16
MOST_SHARES = {ALWAYS_TRUE: 0.15}
"""Of the tokens that a section may have at the most, however many are left."""
HEADINGS = {
    ALWAYS_TRUE: "## Always true",
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
OF_MESSAGES = (RECENT_MESSAGES, RECALLED_MESSAGES, OTHER_THREADS)
LEAST_TOLD = 2  # a memory is told by messages that hold at least one of so many of its words
LEAST_CUT = 40  # characters of a line that is worth being shown cut


@dataclass(frozen=True, slots=True)
class Part:
    """The lines that a section could have, the most important first."""

    name: str
    lines: tuple[Line, ...]
    most: int = 1 << 30
    """How many of them at the most, those apart that stand next to another one."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """Of a memory what it was learnt from: where all of that is shown, it is told already."""

    messages: frozenset[tuple[str, str]]
    """Thread and id of each."""
    trust: Trust
    words: frozenset[str]

    def is_told_by(self, shown: Mapping[tuple[str, str], Line]) -> bool:
        """
        Whether the messages are shown, whole, of no lower trust, and with half of its words.

        What a memory says of its messages is a claim, which hides nothing.
        """
        lines = [shown[message] for message in self.messages if message in shown]
        if not self.messages or len(lines) < len(self.messages):
            return False
        if any(line.is_cut or self.trust.outranks(line.item.trust) for line in lines):
            return False
        words = {word for line in lines for word in analyse(line.body)}
        return LEAST_TOLD * len(self.words & words) >= len(self.words)


@dataclass(frozen=True, slots=True)
class _SizedPart:
    """A part with the size of each line."""

    name: str
    lines: list[tuple[Line, int]]
    most: int
    heading: int

    @property
    def need(self) -> int:
        """Return the size of all of it."""
        return self.heading + sum(size for _, size in self.lines) if self.lines else 0

    def without(self, keys: Collection[tuple[str, str]]) -> _SizedPart:
        """Return it without the lines of these keys."""
        return replace(self, lines=[line for line in self.lines if line[0].key not in keys]) if keys else self


def compose(
    parts: Iterable[Part], order: Sequence[str], learnt: Mapping[str, Learnt], tokens: int, measure: Measure
) -> tuple[str, list[ContextSection], int]:
    """
    Return the text within so many tokens, its sections in an order, and how many relevant memories did not fit.

    `learnt` says what memories were learnt from: where that is shown, they are left out.
    """
    sized = {part.name: _sized(part, measure) for part in parts if part.lines}
    room = tokens * measure.per_token
    profile = sized.get(ALWAYS_TRUE)
    struck: set[tuple[str, str]] = set()
    """Lines of the profile that are told as relevant memory."""
    while True:
        chosen, skipped = _shared(sized, room - measure.size(f"{OPEN}\n{CLOSE}\n"), measure)
        told = _told(chosen, learnt)
        if told:
            sized[RELEVANT_MEMORY] = sized[RELEVANT_MEMORY].without(told)
            continue
        relevant = {line.key for line in chosen.get(RELEVANT_MEMORY, ())}
        if profile is not None and (lost := struck - relevant):  # there was no room for it there after all
            struck -= lost
            sized[RELEVANT_MEMORY] = sized[RELEVANT_MEMORY].without(lost)
            sized[ALWAYS_TRUE] = profile.without(struck)
            continue
        twice = relevant & {line.key for line in chosen.get(ALWAYS_TRUE, ())}
        if twice:
            struck |= twice
            sized[ALWAYS_TRUE] = sized[ALWAYS_TRUE].without(struck)
            continue
        sections = [_section(name, chosen[name]) for name in order if chosen.get(name)]
        text = "\n".join(section.text for section in sections)
        text = f"{OPEN}\n{text}{CLOSE}\n" if text else ""
        excess = measure.size(text) - tokens * measure.per_token
        if excess <= 0:
            return text, sections, skipped
        room -= excess  # of a tokenizer, a text may be longer than its parts are together


def _told(chosen: Mapping[str, Sequence[Line]], learnt: Mapping[str, Learnt]) -> set[tuple[str, str]]:
    """Return the keys of the memories that are shown, and so are the messages from which they were learnt."""
    candidates = [line for line in chosen.get(RELEVANT_MEMORY, ()) if line.item.id in learnt]
    if not candidates:
        return set()
    shown = {line.key: line for name in OF_MESSAGES for line in chosen.get(name, ())}
    return {line.key for line in candidates if learnt[line.item.id].is_told_by(shown)}


def _sized(part: Part, measure: Measure) -> _SizedPart:
    heading, *sizes = measure.sizes([f"{HEADINGS[part.name]}\n\n\n", *(f"{line.text}\n" for line in part.lines)])
    return _SizedPart(part.name, list(zip(part.lines, sizes, strict=True)), part.most, heading)


def _shared(sized: Mapping[str, _SizedPart], room: int, measure: Measure) -> tuple[dict[str, list[Line]], int]:
    """Return the lines of each section that fit, as they are shown, and how many relevant memories do not."""
    reserved = {name: min(part.need, room * SHARES.get(name, 0) // SIXTEENTHS) for name, part in sized.items()}
    chosen, used = _chosen(sized, reserved, room, measure)
    if sum(used.values()) < min(room, sum(part.need for part in sized.values())):
        chosen, used = _chosen(sized, used, room, measure)
    memories = sized.get(RELEVANT_MEMORY)
    skipped = 0 if memories is None else min(len(memories.lines), memories.most) - len(chosen[RELEVANT_MEMORY])
    return {name: sorted(lines, key=lambda line: line.place) for name, lines in chosen.items()}, skipped


def _chosen(
    sized: Mapping[str, _SizedPart], kept: Mapping[str, int], room: int, measure: Measure
) -> tuple[dict[str, list[Line]], dict[str, int]]:
    """Return the lines of each section, and what they take, where so much is kept for each until it has its turn."""
    chosen: dict[str, list[Line]] = {}
    used: dict[str, int] = {}
    names = [name for name in ORDER if name in sized]
    for n, name in enumerate(names):
        part = sized[name]
        if name == RECALLED_MESSAGES:
            part = part.without({line.key for line in chosen.get(RECENT_MESSAGES, ())})
        later = sum(kept[other] for other in names[n + 1 :])
        left = max(0, room - sum(used.values()) - later)
        most = int(room * MOST_SHARES[name]) if name in MOST_SHARES else left
        chosen[name], used[name] = _fitting(part, min(left, most), measure)
    return chosen, used


def _fitting(part: _SizedPart, room: int, measure: Measure) -> tuple[list[Line], int]:
    """Return the lines of a part that fit into so much room, the most important first, and what they take."""
    left = room - part.heading
    if part.name in IN_ORDER:
        lines, left = _first_fitting(part, left, measure)
    else:
        lines, left = _any_fitting(part, left)
    return (lines, room - left) if lines else ([], 0)


def _first_fitting(part: _SizedPart, left: int, measure: Measure) -> tuple[list[Line], int]:
    lines = []
    for line, size in part.lines:
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


def _any_fitting(part: _SizedPart, left: int) -> tuple[list[Line], int]:
    """
    Return the lines that fit; what is too long is skipped, as the next may fit.

    A sandbox's leave half of the room and of the places to the others, as far as those need it. A line that stands
    next to another one is there only with that.
    """
    lines: list[Line] = []
    others = [(line, size) for line, size in part.lines if not line.item.trust.is_sandbox]
    room = Room(left, sum(size for _, size in others))
    places = Room.of_places(part.most, sum(not line.beside for line, _ in others))
    taken: set[tuple[str, str]] = set()
    for line, size in part.lines:
        is_lower = line.item.trust.is_sandbox
        is_there = line.beside in taken if line.beside else places.left_for(is_lower=is_lower) > 0
        if not is_there or size > room.left_for(is_lower=is_lower):
            continue
        if not line.beside:
            taken.add(line.key)
            places.take(1, is_lower=is_lower)
        room.take(size, is_lower=is_lower)
        lines.append(line)
    return lines, room.left


def _section(name: str, lines: Sequence[Line]) -> ContextSection:
    text = "\n".join([HEADINGS[name], "", *(line.text for line in lines)]) + "\n"
    return ContextSection(name, text, tuple(line.item for line in lines))
