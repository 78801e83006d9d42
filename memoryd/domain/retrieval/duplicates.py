"""Hits that say the same once: the best of them stands for all, with the ids of the others."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np

from memoryd.domain.retrieval.pairs import Candidate
from memoryd.index.scope import ScopeIndex
from memoryd.index.vectors import similarities
from memoryd.knowledge.comparison.comparison import compare
from memoryd.knowledge.comparison.rules import Relation
from memoryd.model.conversation import shown_id
from memoryd.model.limits import MAX_CONTENT_BYTES
from memoryd.model.memory import HAPPENED, Kind, Memory
from memoryd.model.validation import fold

__all__ = ["collapsed"]

ALIKE = 0.9  # cosine from which two statements may say the same
MOST_COMPARED = 64  # pairs of statements of one search that are read and compared; 200 took 50 ms
_ENDS = " \t\r\n.!?…"


def collapsed(candidates: Sequence[Candidate], limit: int) -> Iterator[tuple[Candidate, Memory, tuple[str, ...]]]:
    """
    Yield at most `limit` hits, best first, with their memories and the ids of those after them that say the same.

    The same: word for word, or, of statements about the same people, by the test that an added statement is judged by.
    Each trust and each speaker stands alone, so that no one hides what others said.
    """
    kept: list[tuple[Candidate, Memory, list[str]]] = []
    of_text: dict[Hashable, int] = {}
    alike = _alike(candidates)
    place_of: dict[int, int] = {}
    left = MOST_COMPARED
    for n, candidate in enumerate(candidates):
        memory = candidate.index.memory_at(candidate.row)
        if memory is None:
            continue  # it was erased meanwhile
        key = _text_key(candidate, memory)
        known = of_text.get(key)
        if known is None:
            near = [place_of[m] for m in alike.get(n, ()) if m in place_of][:left]
            left -= len(near)
            known = next((place for place in near if _says_the_same(candidate, kept[place][1], memory)), None)
        if known is not None:
            kept[known][2].append(shown_id(memory))
        elif len(kept) < limit:
            of_text[key] = place_of[n] = len(kept)
            kept.append((candidate, memory, []))
    return ((candidate, memory, tuple(ids)) for candidate, memory, ids in kept)


def _text_key(candidate: Candidate, memory: Memory) -> Hashable:
    about = frozenset() if candidate.is_said else _about(memory)
    # what was said or happened on another day is another event
    day = memory.event_time.date() if memory.kind in HAPPENED or memory.own_event_time is not None else None
    said = (memory.trust, candidate.is_said, memory.source.speaker, memory.author, memory.scope)
    text = memory.content  # a long message is compared as it is: to fold 256 KiB takes milliseconds
    return (*said, about, day, text if len(text) > MAX_CONTENT_BYTES else fold(text).strip(_ENDS))


def _alike(candidates: Sequence[Candidate]) -> Mapping[int, list[int]]:
    """Return by the number of each statement the better ones of its scope that may say the same, nearest first."""
    near: dict[int, list[int]] = {}
    by_index: dict[int, tuple[ScopeIndex, list[int]]] = {}
    for n, candidate in enumerate(candidates):
        if not candidate.is_said and candidate.index.vectors is not None:
            by_index.setdefault(id(candidate.index), (candidate.index, []))[1].append(n)
    for index, numbers in by_index.values():
        if index.vectors is None or len(numbers) < 2:  # noqa: PLR2004  a pair
            continue
        rows = np.array([candidates[n].row for n in numbers], dtype=np.int64)
        better = np.tril(similarities(index.vectors.rows(rows)), -1)
        for place in np.flatnonzero((better >= ALIKE).any(axis=1)).tolist():
            order = np.argsort(-better[place], kind="stable")
            near[numbers[place]] = [numbers[m] for m in order.tolist() if better[place, m] >= ALIKE]
    return near


def _says_the_same(candidate: Candidate, first: Memory, second: Memory) -> bool:
    if first.trust is not second.trust or first.source.speaker != second.source.speaker:
        return False
    if first.author != second.author or _about(first) != _about(second) or first.kind is Kind.EVENT:
        return False
    reader = candidate.index.reader
    newer, older = (first, second) if first.create_time > second.create_time else (second, first)
    finding = compare(reader.read(newer.content), reader.read(older.content), similarity=ALIKE)
    return finding.relation is Relation.SAME


def _about(memory: Memory) -> frozenset[str]:
    return frozenset((*map(fold, memory.subjects), *(mention.entity_id for mention in memory.mentions)))
