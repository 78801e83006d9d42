"""From a question to hits: ranked, above the floor, of a pair the newer first, with places kept for higher trust."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.retrieval.duplicates import collapsed
from memoryd.domain.retrieval.pairs import Candidate, in_order
from memoryd.domain.retrieval.ranking import WEIGHTS, Ranked, Weights, ranked
from memoryd.domain.retrieval.relevance import above_floor, scores_of
from memoryd.index.question import Question
from memoryd.index.scope import ScopeIndex
from memoryd.model.conversation import shown_id
from memoryd.model.memory import Kind, Memory
from memoryd.model.results import Hit, Leg, LegScore
from memoryd.model.trust import Trust

__all__ = ["Asked", "ScoredMemory", "falling", "hits_of", "place_of", "said_once", "search", "search_each", "with_kept"]

DEPTH = 30  # candidates of a search at the least, so that a newer statement is there to be told from the older one
SPARE = 10  # candidates more than are wanted, as some say the same …
MORE = 8  # … and where many do, so many times as many are looked at
LEAST_SHARE = 0.5  # of the best score of higher trust, for another of it to be worth a place that is kept
TOGETHER = 10  # hits that are shown at once
RANK_TIE = 1e-6  # values closer than this share a rank
BY_ANOTHER = 0.16  # of relevance by which what others said is better than what the named one said (measured)


@dataclass(frozen=True, slots=True)
class Asked:
    """A search: what the indexes are asked, and what else the order goes by."""

    question: Question
    limit: int
    min_score: float | None = None
    """None: what is below the floor is left out."""
    digest: bytes = b""
    """Of the query as a text: a statement that says just this stands by its score alone."""
    telling: tuple[str, ...] = ()
    """Those of the terms that tell instances of one shape apart: names, numbers, days."""
    kept: int = 0
    """Places for memories of higher trust than a sandbox's."""
    strict: bool = False
    """Whether the floor is that of a context."""


@dataclass(frozen=True, slots=True)
class ScoredMemory:
    """One memory that was found."""

    score: float
    similarity: float
    lexical: float
    memory: Memory
    same_ids: tuple[str, ...] = ()
    """Of memories further down that say the same, and are left out for it."""
    said_by_other: bool = False
    """Whether the question names a speaker who did not say it, and nothing that this speaker said answers as well."""
    legs: tuple[LegScore, ...] = ()


Scored = TypeVar("Scored", ScoredMemory, Hit)


def search_each(
    indexes: Sequence[ScopeIndex], asked: Sequence[Asked], *, explain: bool = False, weights: Weights = WEIGHTS
) -> list[ScoredMemory]:
    """
    Return the best of several questions together; of a hit that answers two of them the better one counts.

    A hit stands by its score, but never before one that its own question found better.
    """
    if len(asked) == 1:
        return search(indexes, asked[0], explain=explain, weights=weights)
    best: dict[str, tuple[float, ScoredMemory]] = {}
    for query in asked:
        least = 1.0
        for hit in search(indexes, query, explain=explain, weights=weights):
            least = min(least, hit.score)
            known = best.get(hit.memory.id)
            if known is None or least > known[0]:
                best[hit.memory.id] = least, hit
    distinct = said_once([hit for _, hit in sorted(best.values(), key=lambda held: -held[0])])
    return falling(with_kept(distinct[: asked[0].limit], distinct, asked[0].kept, asked[0].limit))


def falling(hits: Iterable[Scored]) -> list[Scored]:
    """
    Return hits with scores that fall: none shows more than what stands above it, of statements and messages each.

    The older one of a pair stands below the newer, and lower trust below higher, though it may score more by itself.
    """
    least = {True: 1.0, False: 1.0}
    shown = []
    for hit in hits:
        is_said = hit.memory.kind is Kind.EPISODE
        least[is_said] = min(least[is_said], hit.score)
        shown.append(hit if hit.score == least[is_said] else replace(hit, score=least[is_said]))
    return shown


def said_once(ordered: Iterable[ScoredMemory]) -> list[ScoredMemory]:
    """Return hits, best first, without those that say the same as a better one, which takes their ids."""
    hits: list[ScoredMemory] = []
    places: dict[str, int] = {}
    for hit in ordered:
        ids = (shown_id(hit.memory), *hit.same_ids)
        known = next((places[one] for one in ids if one in places), None)
        if known is None:
            known = len(hits)
            hits.append(hit)
        else:
            first = hits[known]
            more = (one for one in ids if one not in first.same_ids and one != shown_id(first.memory))
            hits[known] = replace(first, same_ids=(*first.same_ids, *more))
        places |= {one: known for one in ids if one not in places}
    return hits


def search(
    indexes: Sequence[ScopeIndex], asked: Asked, *, explain: bool = False, weights: Weights = WEIGHTS
) -> list[ScoredMemory]:
    """Return the best of several indexes together, with the statistics of all of them; best first."""
    hits = _search(indexes, asked, explain=explain, weights=weights)
    lower = [hit for hit in hits if hit.memory.trust.is_sandbox]
    missing = asked.kept - (len(hits) - len(lower))
    if not lower or missing <= 0:
        return falling(hits)
    question = replace(asked.question, least_trust=Trust.IMPORTED.weight)
    alone = replace(asked, question=question, limit=asked.kept)
    others = _search(indexes, alone, explain=explain, weights=weights)
    return falling(with_kept(hits, others, asked.kept, asked.limit))


def place_of(
    indexes: Sequence[ScopeIndex], asked: Asked, memory_id: str, weights: Weights = WEIGHTS
) -> tuple[int, float, bool, tuple[LegScore, ...]]:
    """
    Return the place of one memory, its score, whether it is below the floor or min_score, and its legs.

    The place is that among all that pass the filter, whether or not it passes itself; 0 where it is not compared.
    """
    wanted = asked.question.filter
    rows = [(n, row) for n, index in enumerate(indexes) if (row := index.row_of(memory_id)) is not None]
    if not rows:
        return 0, 0.0, True, ()
    (number, row) = rows[0]
    question = replace(asked.question, also=(id(indexes[number]), row))
    of = ranked(indexes, question, weights)
    places = np.flatnonzero(of.pools[number].rows == row)
    if not len(places) or of.relevance[int(of.starts[number]) + int(places[0])] <= 0:
        return 0, 0.0, True, ()
    n = int(of.starts[number]) + int(places[0])
    memory = indexes[number].memory_at(row)
    passes = memory is not None and wanted.admits(memory, question.now)
    others = np.flatnonzero((of.place > of.place[n]) & (of.relevance > 0))
    place = len(others) + 1
    chosen = _chosen(of, asked, len(of.place))
    score = float(scores_of(of, np.array([n]))[0])
    return place, score, n not in chosen and passes, tuple(_legs(of, n, weights))


def with_kept(
    hits: Sequence[ScoredMemory], others: Sequence[ScoredMemory], kept: int, limit: int
) -> list[ScoredMemory]:
    """
    Return hits with the best of higher trust among others, until so many are kept.

    They stand where there is room up to the limit, or else in place of the last of a sandbox's.

    Only those that answer about as well as the best of higher trust; measured by that alone, as a sandbox that repeats
    the question would set the bar for all.
    """
    lower = [hit for hit in hits if hit.memory.trust.is_sandbox]
    missing = kept - (len(hits) - len(lower))
    there = {hit.memory.id for hit in hits}
    higher = [hit for hit in others if not hit.memory.trust.is_sandbox]
    least = LEAST_SHARE * max((hit.score for hit in higher), default=0.0)
    more = [hit for hit in higher if hit.memory.id not in there and hit.score >= least][: max(0, missing)]
    many = max(0, min(len(lower), len(hits) + len(more) - limit))
    gone = {hit.memory.id for hit in lower[len(lower) - many :]}
    return [hit for hit in hits if hit.memory.id not in gone] + more


def _search(indexes: Sequence[ScopeIndex], asked: Asked, *, explain: bool, weights: Weights) -> list[ScoredMemory]:
    return hits_of(ranked(indexes, asked.question, weights), asked, explain=explain, weights=weights)


def hits_of(of: Ranked, asked: Asked, *, explain: bool = False, weights: Weights = WEIGHTS) -> list[ScoredMemory]:
    """Return the hits among what was ranked, best first."""
    by_other = _by_other(of, weights)
    hits: list[ScoredMemory] = []
    asking: set[str] = set()
    deep = replace(asked, limit=max(asked.limit, TOGETHER))  # so that no question stands where an answer would
    for candidate, memory, same in _distinct(of, deep):
        pool, place = of.at(candidate.number)
        legs = tuple(_legs(of, candidate.number, weights)) if explain else ()
        other = by_other and bool(pool.said_by_others[place])
        hits.append(
            ScoredMemory(candidate.score, candidate.similarity, float(pool.lexical[place]), memory, same, other, legs)
        )
        if pool.states_nothing[place]:
            asking.add(memory.id)
    hits = _asking_last(hits, asking) if asking else hits
    return (_of_named_first(hits, asked.question.entity_ids) if asked.question.entity_ids else hits)[: asked.limit]


def _of_named_first(hits: list[ScoredMemory], named: Collection[str]) -> list[ScoredMemory]:
    """
    Return hits with what is stated of the user or of others below what is stated of those that the question names.

    "Where does An live?" asks for nothing that I or my mother do, however alike it sounds. Where one of those who are
    named may be the user ("I'm An"), what the same speaker states of themselves is theirs too. Among the first TOGETHER
    only. Nothing stands lower for what is of lower trust than itself.
    """
    first = hits[:TOGETHER]
    theirs = [hit for hit in first if any(mention.entity_id in named for mention in hit.memory.mentions)]
    if not theirs:
        return hits
    mine = _of_user(first, theirs, named)
    theirs = [hit for hit in first if hit in theirs or hit in mine]
    ordered: list[ScoredMemory] = []
    behind: dict[str, list[ScoredMemory]] = {}
    places = {hit.memory.id: place for place, hit in enumerate(first)}
    for place, hit in enumerate(first):
        above = [their for their in theirs if not hit.memory.trust.outranks(their.memory.trust)]
        if not above or hit in theirs or not _is_of_another(hit.memory) or place > places[above[-1].memory.id]:
            ordered.append(hit)
        else:
            least = min(hit.score for hit in above)
            behind.setdefault(above[-1].memory.id, []).append(replace(hit, score=min(hit.score, least)))
    moved = [one for hit in ordered for one in (hit, *behind.get(hit.memory.id, ()))]
    return [*moved, *hits[TOGETHER:]]


def _of_user(
    hits: Sequence[ScoredMemory], theirs: Sequence[ScoredMemory], named: Collection[str]
) -> list[ScoredMemory]:
    """
    Return what is stated of themselves by those who are named, as they have said: "I'm An".

    Nothing of higher trust than who said so: a sandbox that says "I'm An" moves nothing of the host's.
    """
    best = max(theirs, key=lambda hit: hit.memory.trust.weight).memory.trust
    introduced = {
        (hit.memory.owner, hit.memory.narrator)
        for hit in theirs
        if _INTRODUCES.match(hit.memory.content) and not best.outranks(hit.memory.trust)
    }
    return [
        hit
        for hit in hits
        if (hit.memory.owner, hit.memory.narrator) in introduced
        and not hit.memory.trust.outranks(best)
        and _FIRST_PERSON.match(hit.memory.content)
        and not any(mention.about and mention.entity_id not in named for mention in hit.memory.mentions)
    ]


_INTRODUCES = re.compile(r"(?:I'm|I am|My name is|Call me|They call me|I go by)\b", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"(?:I|We|My|Our|I['’]\w+|We['’]\w+)\b")


def _is_of_another(memory: Memory) -> bool:
    """Whether a statement is of the user, or of someone that it names first."""
    if memory.kind is Kind.EPISODE:
        return False
    return bool(_FIRST_PERSON.match(memory.content)) or any(mention.about for mention in memory.mentions)


def _asking_last(hits: list[ScoredMemory], asking: Collection[str]) -> list[ScoredMemory]:
    """
    Return hits with those that only ask or greet at the end of the first TOGETHER, with no higher score than before it.

    They answer nothing, however alike they are; further down they stay where they are, as evidence of what was asked.
    """
    first = hits[:TOGETHER]
    stating = [hit for hit in first if hit.memory.id not in asking]
    if not stating:
        return hits
    least = min(hit.score for hit in stating)
    last = [replace(hit, score=min(hit.score, least)) for hit in first if hit.memory.id in asking]
    return [*stating, *last, *hits[TOGETHER:]]


def _distinct(of: Ranked, asked: Asked) -> Sequence[tuple[Candidate, Memory, tuple[str, ...]]]:
    """Return at most as many hits as are wanted that say different things, as far as there are any."""
    depth = max(asked.limit + SPARE, DEPTH)
    hits: Sequence[tuple[Candidate, Memory, tuple[str, ...]]] = ()
    for most in (depth, MORE * depth):
        chosen = _chosen(of, asked, most)
        candidates = in_order(_candidates(of, chosen), asked.question, of.stats, asked.digest, asked.telling)
        hits = list(collapsed(candidates, asked.limit))
        if len(hits) >= asked.limit or len(chosen) < most or len(hits) == len(candidates):
            break
    return hits


def _chosen(of: Ranked, asked: Asked, depth: int) -> NDArray[np.int64]:
    """Return the documents that may become hits, best first, at most `depth`."""
    wanted = np.flatnonzero(of.relevance > 0)
    if len(wanted) > depth:
        least = np.partition(of.place[wanted], len(wanted) - depth)[len(wanted) - depth]
        wanted = wanted[of.place[wanted] >= least]
    order = wanted[np.lexsort((of.joined("created")[wanted], -of.place[wanted]))][:depth]
    if asked.min_score is None:
        return order[above_floor(of, order, strict=asked.strict)]
    return order[scores_of(of, order) >= asked.min_score]


def _candidates(of: Ranked, chosen: NDArray[np.int64]) -> list[Candidate]:
    made: dict[int, Candidate] = {}
    scores = dict(zip(chosen.tolist(), scores_of(of, chosen).tolist(), strict=True))
    for pool, start in zip(of.pools, of.starts.tolist(), strict=False):
        mine = chosen[(chosen >= start) & (chosen < start + len(pool))]
        rows = pool.rows[mine - start]
        columns = (
            mine,
            of.place[mine],
            pool.index.columns.created.view()[rows],
            rows,
            pool.similarity[mine - start],
            pool.said[mine - start],
        )
        for n, value, created, row, similarity, said in zip(*(column.tolist() for column in columns), strict=True):
            made[n] = Candidate(n, value, scores[n], created, pool.index, row, similarity, said)
    return [made[n] for n in chosen.tolist()]


def _by_other(of: Ranked, weights: Weights) -> bool:
    """Whether others than the named speaker answer clearly better, who is named alone."""
    named = of.joined("said_by_named").astype(np.bool_)
    others = of.joined("said_by_others").astype(np.bool_)
    if not others.any():
        return False
    relevance = of.relevance - weights.speaker * named
    return bool(relevance[named].max(initial=0.0) < relevance[others].max() - BY_ANOTHER)


def _legs(of: Ranked, n: int, weights: Weights) -> Iterator[LegScore]:
    """Yield what each leg says of a document: its rank in it (0: it was not found by it), its value and its weight."""
    pool, place = of.at(n)
    question = pool.question
    seen = question.known_share if pool.similar is not None and not pool.bare[place] else 0.0
    is_said = bool(pool.said[place])
    words = (weights.words if is_said else weights.statement_words) * seen + weights.words_alone * (1 - seen)
    vector = weights.vector if is_said else weights.statement_vector
    tokens = weights.tokens if is_said else weights.statement_tokens
    sign = {
        Leg.VECTOR: ("near", vector * seen),
        Leg.KEYWORD: ("words", words),
        Leg.ENTITY: ("names", weights.names),
        Leg.TIME: ("time", weights.time),
        Leg.SPEAKER: ("speaker", weights.speaker),
        Leg.ANSWER: ("fits_answer", weights.answer),
        Leg.CLASS: ("of_class", weights.member),
        Leg.ASSISTANT: ("by_assistant", -weights.assistant * (not question.asks_assistant)),
        Leg.QUESTION: ("asking", -weights.asking * pool.index.traits.has_speakers),
    }
    values = {leg: (of.joined(name).astype(np.float64), weight) for leg, (name, weight) in sign.items()}
    values[Leg.TOKENS] = (of.tokens + of.clause * (weights.clause / tokens), tokens * seen)
    values[Leg.EVENT] = (of.events, 1.0)
    for leg, (column, weight) in values.items():
        value = float(column[n])
        if leg in {Leg.VECTOR, Leg.KEYWORD} or (value and weight):
            is_known = value > 0 and not (leg is Leg.TOKENS and of.guessed[n])
            rank = int(np.count_nonzero(column > value + RANK_TIE)) + 1 if is_known else 0
            yield LegScore(leg, rank, max(0.0, value), weight)
