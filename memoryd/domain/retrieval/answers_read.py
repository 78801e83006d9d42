"""
What the answer reader says of the statements that a search has found, and which of them are left out for it.

No one's statements decide over another's: those of a user, of a chat's members, of imports and of each sandbox are
judged apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.prompt import Prompt
from memoryd.domain.retrieval.question import ENGLISH_WORDS, is_english
from memoryd.embedding.readers.thresholds import ANSWERING
from memoryd.index.analysis import embedded_text
from memoryd.model.caller import Caller
from memoryd.model.memory import NO_STATEMENTS, Memory
from memoryd.model.results import Hit
from memoryd.model.trust import Trust

__all__ = ["Answers", "near_ids", "read_answers", "stated_by"]

MOST_READ = 12  # statements that are read with a question
OF_EACH = 6  # of those that are judged together: twice as many tell no more (decision 0035)
MOST_OF_SANDBOXES = 600  # characters of statements of sandboxes: six long ones take as long as all else
NEAR = 0.5  # cosine from which on a statement is shown, whatever is read of it
MOST_CHARACTERS = 240  # of a question: a longer one has more pieces than are read
PATIENCE_S = 0.5  # an answer goes without it when reading takes longer
MOST_FOREIGN = 0.5  # of statements that are judged together, that show no word of English
_WORD = re.compile(r"[^\W\d_]+")
_STATED = ENGLISH_WORDS - {"for"} | {
    *("I", "she", "it", "its", "they", "you", "his", "their", "are", "by", "from", "never", "out", "that", "this"),
    *("every", "after", "before", "because", "cos", "us", "was", "were", "been"),
}
"""Words of grammar in statements, but for those that languages near to it have too ("is", "we", "of", "im", "at")."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What was read with a question."""

    read: Mapping[str, float] = field(default_factory=dict)
    """By the ids of statements: how sure the reader is, 0–1, that each answers."""
    hidden: frozenset[str] = frozenset()
    """The ids of those that are left out, as none of those next to them answers."""
    is_whole: bool = True
    """False where reading failed, or would have taken too long: nothing is left out then."""


def near_ids(hits: Iterable[Hit]) -> set[str]:
    """Return the ids of what is so near that it is shown, whatever is read of it."""
    return {hit.memory.id for hit in hits if hit.similarity >= NEAR}


async def read_answers(
    prompt: Prompt,
    memories: Sequence[Memory],
    near: Collection[str],
    caller: Caller,
    ports: Ports,
    *,
    limit: int,
    for_scores: bool = False,
) -> Answers:
    """
    Return what is read of the best of some statements, best first; at most `limit` of them were wanted.

    Nothing is left out that the reader cannot judge: messages, what is long or not English, and what stands next to it;
    nor what stands next to a statement whose id is in `near`, nor the rest of what others may have crowded out: those
    are read `for_scores` alone.
    """
    reader, groups = ports.readers.answer_reader, _by_whom(memories)
    near = {*near, *(_crowded(groups) if len(memories) >= limit else ())}
    groups = _as_many([group for group in groups if for_scores or not _has_near(group, near)])
    if reader is None or not groups or not await _is_judged(prompt):
        return Answers()
    is_host = caller.trust is Trust.HOST
    if reader.is_behind(urgent=is_host):
        return Answers(is_whole=False)
    read = [memory for group in groups for memory in group[:OF_EACH]]
    pairs = [(prompt.text, embedded_text(memory.source.speaker, memory.content)) for memory in read]
    with ports.shared.faults.spared("reading answers"), contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            # of each sandbox one call is read at a time, so that no one else waits behind many of its own
            turn = contextlib.nullcontext() if is_host else ports.shared.locks.hold([("reading answers", caller.turn)])
            async with turn:
                values = await reader.read(pairs, urgent=is_host)
        known = {memory.id: value for memory, value in zip(read, values, strict=True) if value is not None}
        return Answers(
            known, frozenset(memory.id for group in groups if _is_hidden(group, known, near) for memory in group)
        )
    return Answers(is_whole=False)


async def _is_judged(prompt: Prompt) -> bool:
    """Whether all of a text can be read, and is English as far as is known."""
    if len(prompt.text) > MOST_CHARACTERS:
        return False
    embedded, _ = await prompt.embedded()
    return all(
        vectors is not None and is_english(sentence, vectors)
        for sentence, vectors in zip(prompt.sentences, embedded, strict=True)
    )


def stated_by(memory: Memory) -> Hashable:
    """Return who states a memory: whose statements are judged together. A sandbox is one, whomever it says it is."""
    whom = (memory.author, memory.grant_id) if memory.trust.is_sandbox else memory.narrator
    return memory.trust, memory.owner, whom


def _by_whom(memories: Sequence[Memory]) -> list[list[Memory]]:
    """Return the statements of each who states them, those of higher trust before."""
    by_whom: dict[Hashable, list[Memory]] = {}
    for memory in memories:
        if memory.kind not in NO_STATEMENTS:
            by_whom.setdefault(stated_by(memory), []).append(memory)
    return sorted(by_whom.values(), key=lambda some: -some[0].trust.weight)


def _crowded(groups: Sequence[list[Memory]]) -> Iterable[str]:
    """Yield an id of each group next to whose statements better ones may have found no place in a full list."""
    return (group[0].id for group in groups if len(groups) > 1 and len(group) < OF_EACH)


def _as_many(groups: Sequence[list[Memory]]) -> list[list[Memory]]:
    """Return as many of them as are read at once; of sandboxes, that no one waits long for them, but few letters."""
    left, letters, chosen = MOST_READ, MOST_OF_SANDBOXES, []
    for group in groups:
        first = group[:OF_EACH]
        length = sum(len(memory.content) for memory in first) if group[0].trust.is_sandbox else 0
        if len(first) <= left and length <= letters:
            chosen.append(group)
            left, letters = left - len(first), letters - length
    return chosen


def _has_near(group: Sequence[Memory], near: Collection[str]) -> bool:
    return any(memory.id in near for memory in group)


def _is_hidden(group: Sequence[Memory], known: Mapping[str, float], near: Collection[str]) -> bool:
    """Whether all that is judged of some statements was read, is mostly English, and does not answer."""
    first = group[:OF_EACH]
    words = [{word if word == "I" else word.lower() for word in _WORD.findall(memory.content)} for memory in first]
    is_foreign = sum(map(_STATED.isdisjoint, words)) > MOST_FOREIGN * len(first)
    return (
        not is_foreign and not _has_near(group, near) and all(known.get(memory.id, 1.0) < ANSWERING for memory in first)
    )
