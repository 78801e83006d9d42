"""What an agent should know before it answers, as one block of Markdown; see BuildContext in the contract."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime

from memoryd.domain.context.budget import Learnt, Part, compose
from memoryd.domain.context.gather import Gatherer, Recalled
from memoryd.domain.context.render import Line, Shown, memory_line, message_line, person_line, text_lines
from memoryd.domain.policy import Policy
from memoryd.domain.ports import Ports, Readers
from memoryd.domain.retrieval.prompt import Prompt
from memoryd.domain.shares import Room
from memoryd.domain.tokens import ESTIMATE, Measure
from memoryd.index.analysis import analyse
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.context import (
    ALWAYS_TRUE,
    KNOWN_PEOPLE,
    OTHER_THREADS,
    RECALLED_MESSAGES,
    RECENT_MESSAGES,
    RELEVANT_MEMORY,
    SECTIONS,
    THREAD_SUMMARY,
    WEEKLY_INSIGHT,
    WORKING_MEMORY,
    BuiltContext,
    ContextItem,
    ContextRequest,
    ContextSection,
)
from memoryd.model.conversation import Thread, WorkingMemory, place_of
from memoryd.model.memory import Kind, Memory, ShownMemory
from memoryd.model.recalled_text import without_recalled
from memoryd.model.trust import Trust

__all__ = ["build_context", "searched_by"]

INLINE_CHARACTERS = 16_000  # of texts that are rendered on the loop (≤ 1 ms); more goes to a thread
LINES_A_BUDGET = 8  # a message takes an eighth of the tokens at the most
MOST_BYTES_A_TOKEN = 16  # of texts that are looked at for a token: hardly any tokenizer has longer ones


def searched_by(prompt: str) -> str:
    """Return what of a prompt is searched by: all of it, or the beginning and the end of a long one, 2 KiB each."""
    raw = prompt.encode()
    if len(raw) <= limits.MAX_QUERY_BYTES:
        return prompt
    half = limits.MAX_QUERY_BYTES // 2 - 1
    return f"{raw[:half].decode(errors='ignore')} {raw[-half:].decode(errors='ignore')}"


@dataclass(slots=True)
class _Gathered:
    """What the sections could say, not rendered yet."""

    profile: list[ShownMemory] = field(default_factory=list)
    people: list[Line] = field(default_factory=list)
    memories: list[ShownMemory] = field(default_factory=list)
    newer: dict[str, ShownMemory] = field(default_factory=dict)
    most_memories: int = 0
    most_recalled: int = 0
    insight: ShownMemory | None = None
    working: list[tuple[str, WorkingMemory]] = field(default_factory=list)
    summary: Thread | None = None
    recent: list[Memory] = field(default_factory=list)
    recalled: list[Recalled] = field(default_factory=list)
    others: list[Recalled] = field(default_factory=list)

    @property
    def characters(self) -> int:
        """How much there is to be rendered."""
        memories = (*self.memories, *self.recent, *(recalled.memory for recalled in (*self.recalled, *self.others)))
        return sum(len(memory.content) for memory in memories)


async def build_context(
    request: ContextRequest, caller: Caller, ports: Ports, *, now: datetime, allowed: Collection[str] = SECTIONS
) -> BuiltContext:
    """Return what belongs before an answer, within the limits; of the sections only those that are allowed."""
    policy = ports.policy.of(caller.agent_id)
    measure = await _measure(request.tokenizer, ports.readers)
    tokens = request.max_tokens or policy.context.max_tokens
    order = [name for name in request.sections or _wanted(policy) if name in allowed]
    prompt = searched_by(without_recalled(request.prompt)).strip()
    embedded = Prompt(prompt, caller, ports) if prompt else None
    characters = max(1, tokens * 4 // LINES_A_BUDGET)
    with embedded or nullcontext():
        gatherer = Gatherer(request, caller, ports, embedded, now, most_characters=characters)
        gathered = await _gather(gatherer, frozenset(order), tokens)
    shown = Shown(caller, now, policy.zone, characters)

    def made() -> tuple[str, list[ContextSection], int, int]:
        parts = _parts(gathered, shown, policy.context.working_memory_chars)
        learnt = {memory.id: _learnt(memory) for memory in gathered.memories if memory.source.message_ids}
        text, sections, skipped = compose(parts, order, learnt, tokens, measure)
        return text, sections, skipped, measure.tokens(text)

    inline = measure is ESTIMATE and gathered.characters <= INLINE_CHARACTERS
    text, sections, skipped, count = made() if inline else await asyncio.to_thread(made)
    left_out = _not_shown(gathered.recent, sections)
    if left_out and RECALLED_MESSAGES in order:  # what did not fit there may be recalled
        gathered.recalled = await gatherer.recalled({memory.id for memory in gathered.recent} - left_out)
        text, sections, skipped, count = made() if inline else await asyncio.to_thread(made)
    known = {memory.id: memory for memory in gathered.memories}
    ids = [item.id for section in sections if section.name == RELEVANT_MEMORY for item in section.items]
    ports.shared.recalls.note([known[one] for one in ids], now, trusted=caller.trust is Trust.HOST)
    legs, hidden_ids = tuple(gatherer.legs), gatherer.left_out_ids
    return BuiltContext(text, tuple(sections), count, skipped, legs, gatherer.embedding_s, hidden_ids)


def _wanted(policy: Policy) -> Sequence[str]:
    """Return the sections of a request that names none."""
    return SECTIONS if policy.context.profile else [name for name in SECTIONS if name != ALWAYS_TRUE]


async def _measure(tokenizer: str, readers: Readers) -> Measure:
    return await asyncio.to_thread(readers.tokenizer, tokenizer) if tokenizer else ESTIMATE


def _learnt(memory: Memory) -> Learnt:
    source = memory.source
    messages = frozenset((source.thread_id, message_id) for message_id in source.message_ids)
    return Learnt(messages, memory.trust, frozenset(analyse(memory.content)))


async def _gather(gatherer: Gatherer, wanted: frozenset[str], tokens: int) -> _Gathered:
    """Read and search what the sections need; the store is asked while the prompt is being embedded."""
    gathered = _Gathered(most_memories=gatherer.most_memories, most_recalled=gatherer.most_recalled)
    reads = [gatherer.read_thread()] if wanted & OF_THREAD else []
    if WORKING_MEMORY in wanted:
        reads.append(gatherer.read_working_memories())
    await asyncio.gather(*reads)
    if WORKING_MEMORY in wanted:
        gathered.working = gatherer.working_memories()
    if THREAD_SUMMARY in wanted:
        gathered.summary = gatherer.summary()
    if wanted & {RECENT_MESSAGES, RECALLED_MESSAGES}:
        gathered.recent = await gatherer.recent(tokens * MOST_BYTES_A_TOKEN)
    if ALWAYS_TRUE in wanted:
        gathered.profile = await gatherer.profile()
    if KNOWN_PEOPLE in wanted:
        gathered.people = [person_line(root, people) for root, people in await gatherer.people()]
    if RELEVANT_MEMORY in wanted:
        gathered.memories = await gatherer.memories(len(gathered.recent))
    if WEEKLY_INSIGHT in wanted:
        gathered.insight = await gatherer.insight()
    if RECALLED_MESSAGES in wanted:
        gathered.recalled = await gatherer.recalled({memory.id for memory in gathered.recent})
    if OTHER_THREADS in wanted:
        gathered.others = await gatherer.others()
    if RECENT_MESSAGES not in wanted:
        gathered.recent = []
    gathered.newer = gatherer.newer
    return gathered


OF_THREAD = frozenset({WORKING_MEMORY, THREAD_SUMMARY, RECALLED_MESSAGES, RECENT_MESSAGES})


def _not_shown(recent: list[Memory], sections: list[ContextSection]) -> set[str]:
    """Return the recent messages that no section shows."""
    shown = {item.seq for section in sections if section.name == RECENT_MESSAGES for item in section.items}
    return {memory.id for memory in recent if place_of(memory.key)[1] not in shown}


def _parts(gathered: _Gathered, shown: Shown, working_memory_chars: int) -> list[Part]:
    """Return the sections with their lines, rendered."""
    recent = tuple(message_line(memory, shown, place=0, dated=False) for memory in gathered.recent)
    return [
        Part(
            ALWAYS_TRUE,
            tuple(memory_line(memory, shown.zone, gathered.newer.get(memory.id)) for memory in gathered.profile),
        ),
        Part(KNOWN_PEOPLE, tuple(gathered.people)),
        Part(RELEVANT_MEMORY, tuple(_relevant_lines(gathered, shown)), gathered.most_memories),
        Part(WEEKLY_INSIGHT, () if gathered.insight is None else (memory_line(gathered.insight, shown.zone),)),
        Part(WORKING_MEMORY, _working_lines(gathered.working, working_memory_chars, shown)),
        Part(THREAD_SUMMARY, _summary_lines(gathered.summary, shown)),
        Part(RECALLED_MESSAGES, _recalled_lines(gathered.recalled, shown), gathered.most_recalled),
        Part(OTHER_THREADS, _recalled_lines(gathered.others, shown), gathered.most_recalled),
        Part(RECENT_MESSAGES, recent),
    ]


def _relevant_lines(gathered: _Gathered, shown: Shown) -> Iterator[Line]:
    """Yield the relevant memories; an outdated one with the newer statement, unless that stands above it."""
    above: set[str] = set()
    for memory in gathered.memories:
        newer = gathered.newer.get(memory.id)
        yield memory_line(memory, shown.zone, None if newer is None or newer.id in above else newer)
        above.add(memory.id)


def _recalled_lines(recalled: list[Recalled], shown: Shown) -> tuple[Line, ...]:
    return tuple(
        message_line(
            message.memory, shown, place=message.group, dated=True, beside=message.beside, remark=message.remark
        )
        for message in recalled
    )


def _working_lines(held: list[tuple[str, WorkingMemory]], most: int, shown: Shown) -> tuple[Line, ...]:
    """
    Return the lines of working memories, of so many characters together; what is longer is cut.

    A sandbox's are chosen last, and leave half of the characters to the others, as far as those need it.
    """
    each = [
        text_lines(
            memory.text,
            ContextItem(name, Kind.EPISODE, memory.trust, speaker=memory.author, time=memory.update_time),
            shown,
            place=n,
        )
        for n, (name, memory) in enumerate(held)
    ]
    made = sorted((line for some in each for line in some), key=lambda line: line.item.trust.is_sandbox)
    room = Room(most, sum(len(line.body) for line in made if not line.item.trust.is_sandbox))
    lines: list[Line] = []
    for line in made:
        is_lower, marks = line.item.trust.is_sandbox, len(line.head) + len(line.tail)
        left = room.left_for(is_lower=is_lower) - marks
        if left > 0:
            fitting = line.cut(left)
            lines.append(fitting)
            room.take(marks + len(fitting.body), is_lower=is_lower)
    return tuple(lines)


def _summary_lines(thread: Thread | None, shown: Shown) -> tuple[Line, ...]:
    if thread is None:
        return ()
    item = ContextItem(
        thread.id,
        Kind.EPISODE,
        thread.summary_trust,
        thread.id,
        thread.summary_seq,
        thread.summary_author,
        thread.summary_time,
    )
    return tuple(text_lines(thread.summary, item, shown))
