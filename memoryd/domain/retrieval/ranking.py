"""
Which memory stands before which, and what is no answer at all. An index only knows facts.

1. Legs (`index.legs`): each is 0–1 or a cosine by itself, never stretched over the candidates, so that a value means
   the same with one candidate, in two scopes and against min_score.
2. Relevance: the weighted sum of the legs, less penalties. For the best LATE by it the tokens are compared too, and
   what happened around the best ones comes nearer to them.
3. Score and floor (`relevance`): the share of hits of that relevance that answered; and whether anything here answers.
4. Place: the relevance with what orders among equals: trust, confidence, recency. It is not shown.
5. Pairs (`pairs`): of an older and a newer statement of one thing the newer stands first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from memoryd.index.legs import Pool, Rough, Windows, pool_of
from memoryd.index.postings import CorpusStats
from memoryd.index.question import Question
from memoryd.index.scope import ScopeIndex
from memoryd.model.memory import Kind
from memoryd.model.times import to_us
from memoryd.model.trust import Trust

__all__ = ["WEIGHTS", "Ranked", "Weights", "best_first", "ranked"]

Floats = NDArray[np.float64]

LATE = 200  # of the best are compared token by token …
LATE_TOKENS = 20_000  # … as long as they have no more tokens, as those of long texts take longer …
LEAST_LATE = 50  # … but so many in any case
LEAST_CLAUSES, LEAST_CLAUSE = 3, 0.15  # of a question of several: how many, and the share of its weight
EVENTS = 5  # of the best, around which more is looked for …
AROUND = 100  # … among so many
EVENT_DAYS = 2.0  # by which something is e times less near
EVENT_COSINE = 0.3  # from which two texts may be of one event
EVENT_DROP = 0.2  # of relevance below the best, by which an event counts e times less
SHORT_PIECES = 60  # median length of what was said up to which tokens are inherited too
RECENT_DAYS = 30.0
BEST_TRUST = max(trust.weight for trust in Trust)
US_A_DAY = 86_400_000_000
DIGITS = 6  # of relevances that are compared: equal texts tie, in whatever order they are summed


WORD_WINDOWS, TOKEN_WINDOWS = Windows(0.6, 1.0, 0.6, 0.4), Windows(0.8, 1.0, 0.8, 0.7)


@dataclass(frozen=True, slots=True)
class Weights:
    """
    What each leg counts, from `make tune` over all development sets; docs/benchmarks.md tells what each is worth.

    Vectors and tokens count as far as the model can read the question; where it cannot, words count for them.
    """

    vector: float = 0.19
    statement_vector: float = 0.52
    """In place of `vector` for statements: a sentence of its own is embedded whole."""
    inherited_vector: float = 0.2
    """Of the cosine of the two next to it in its session, as a share of `vector`."""
    words: float = 0.6
    statement_words: float = 0.42
    """In place of `words` for statements."""
    words_alone: float = 0.8
    """In place of `words`, where there is no vector."""
    tokens: float = 1.4
    statement_tokens: float = 0.42
    """In place of `tokens` for statements, which inherit none."""
    """Products of tokens are small: a third of the cosine, as 128 of 384 dimensions are kept."""
    clause: float = 0.3
    """For the part that is matched best, of a question of three or more."""
    names: float = 0.06
    """For a mention of someone or something that the question names."""
    member: float = 0.06
    """For a member of the class that the question asks for: a pie, where it asks for foods."""
    time: float = 0.25
    speaker: float = 0.1
    """For what the person of the question said, and for notes that name them (`Pool.of_named`)."""
    assistant: float = 0.15
    """Less for what the assistant said, unless the question asks for that."""
    answer: float = 0.06
    """For a time, a number, a name where one is wanted."""
    asking: float = 0.07
    """Less for questions, times their share of the text, where two or more speak."""
    event: float = 0.12
    word_windows: Windows = WORD_WINDOWS
    token_windows: Windows = TOKEN_WINDOWS
    trust_step: float = 0.02
    """Less for each class of trust below the host's; in the order only."""
    doubt: float = 0.02
    """Less for a confidence of 0; in the order only."""
    recency: float = 0.005
    """More for a statement of just now, half of it after RECENT_DAYS; in the order only."""
    first: float = 0.03
    """More for the oldest of a scope where a question asks since when something is so; in the order only."""


WEIGHTS = Weights()


@dataclass(slots=True, eq=False)
class Ranked:
    """
    The documents of a search with what was found of them: arrays of one length, in no order.

    They are those of the first pool, then those of the second.
    """

    pools: Sequence[Pool]
    stats: CorpusStats
    """What all texts of the scopes together say of the words of the question."""
    relevance: Floats
    place: Floats
    """The relevance with trust, confidence and recency: what the order goes by."""
    tokens: Floats
    """The match of tokens; 0 where they were not compared."""
    guessed: NDArray[np.bool_]
    """Those whose tokens are not known: their match is guessed by words and vectors."""
    by_window: NDArray[np.bool_]
    """Those with a later window nearer than the beginning, of those that were looked at closely."""
    clause: Floats
    events: Floats
    """What a document gained by what happened around it."""
    hints: Floats
    """What days, names and classes add to the relevance: they order; the curves of statements are without them."""
    by_words: Floats
    """The relevance without what the model says."""
    starts: NDArray[np.int64]
    """Where each pool begins, and where the last one ends."""
    _joined: dict[str, NDArray[np.generic]] = field(default_factory=dict, init=False)

    def at(self, n: int) -> tuple[Pool, int]:
        """Return of a document the pool, and its place there."""
        number = int(np.searchsorted(self.starts, n, side="right")) - 1
        return self.pools[number], n - int(self.starts[number])

    def joined(self, name: str) -> NDArray[np.generic]:
        """Return a leg of all pools."""
        if name not in self._joined:
            parts = [getattr(pool, name) for pool in self.pools]
            self._joined[name] = np.concatenate(parts) if parts else np.empty(0)
        return self._joined[name]


def best_first(values: Floats, most: int) -> NDArray[np.int64]:
    """Return the places of the largest values, at most so many, the largest first; equals in their order."""
    if len(values) <= most:
        return np.argsort(-values, kind="stable")
    large = np.flatnonzero(values >= np.partition(values, len(values) - most)[len(values) - most])
    return large[np.argsort(-values[large], kind="stable")][:most]


def corpus_of(indexes: Sequence[ScopeIndex], question: Question) -> CorpusStats:
    """Return what all texts of one or two scopes together say of the words of a question."""
    with_vouched = question.judged_share < 1
    corpora = [index.corpus(question.terms, with_vouched=with_vouched) for index in indexes]
    return replace(sum(corpora[1:], corpora[0]), unknown=question.judged_share) if corpora else CorpusStats(0, 0, 0, ())


def ranked(
    indexes: Sequence[ScopeIndex], question: Question, weights: Weights = WEIGHTS, *, stats: CorpusStats | None = None
) -> Ranked:
    """Return the documents of one or two scopes that may answer, with their relevance; `stats` as of `corpus_of`."""
    stats = stats or corpus_of(indexes, question)
    are_said = question.filter.kinds == {Kind.EPISODE}
    seeing = weights.vector if are_said else weights.statement_vector
    seeing = seeing * question.known_share if question.vector is not None else 0.0
    words = weights.words if are_said else weights.statement_words
    rough = Rough(words, seeing, weights.time, weights.names, weights.speaker)
    pools = [pool_of(index, question, stats, rough) for index in indexes]
    for pool in pools:
        pool.words = pool.with_window_words(stats, weights.word_windows)
    bonus = _joined(_bonus(pool, weights) for pool in pools)
    first = _joined(_first(pool, weights) for pool in pools) + bonus
    starts = np.cumsum([0, *map(len, pools)])
    for pool, start, places in _by_pool(pools, starts, _near_best(first, pools, seeing, weights)):
        pool.look_closely(places)
        first[start + places] = _first(pool, weights)[places] + bonus[start + places]
    order = best_first(first, LATE)
    tokens, clause = np.zeros(len(first)), np.zeros(len(first))
    relevance = first
    guessed, by_window = np.zeros(len(first), dtype=np.bool_), np.zeros(len(first), dtype=np.bool_)
    if question.vector is not None and question.known_share:
        weighed = _token_weights(question, stats)
        for pool, start, places in _late(pools, starts, order) if len(weighed) else ():
            tokens[start + places], clause[start + places] = _matches(pool, places, weighed, weights)
        for pool, start, places in _by_pool(pools, starts, order):
            later = by_window[start + places] = pool.are_later(places)
            without = places[(later | (tokens[start + places] == 0)) & ~pool.bare[places]]
            guess = _guessed(pool, without)
            guessed[start + without] = guess > tokens[start + without]
            tokens[start + without] = np.maximum(guess, tokens[start + without])
        worth = _joined(_of_kind(pool, weights.tokens, weights.statement_tokens) for pool in pools)
        relevance = first + question.known_share * (worth * tokens + weights.clause * clause)
    events = _events(pools, relevance, weights)
    relevance = np.round(relevance + events, DIGITS)
    place = np.round(relevance + _joined(_ordering(pool, weights) for pool in pools), DIGITS)
    hints = _joined(_hints(pool, weights) for pool in pools)
    by_words = bonus + weights.words_alone * _joined(pool.words.astype(np.float64) for pool in pools)
    return Ranked(pools, stats, relevance, place, tokens, guessed, by_window, clause, events, hints, by_words, starts)


def _near_best(first: Floats, pools: Sequence[Pool], seeing: float, weights: Weights) -> NDArray[np.int64]:
    """Return the LATE best documents, and all that could be among them, as far as their cosines are off."""
    if len(first) <= LATE:
        return np.arange(len(first))
    slack = max(pool.slack for pool in pools) * seeing * (1 + 2 * weights.inherited_vector)
    least = np.partition(first, len(first) - LATE)[len(first) - LATE]
    return np.flatnonzero(first >= least - 2 * slack)


def _by_pool(
    pools: Sequence[Pool], starts: NDArray[np.int64], chosen: NDArray[np.int64]
) -> Iterator[tuple[Pool, int, NDArray[np.int64]]]:
    """Yield each pool that has any of some documents, with where it begins and their places in it, in order."""
    chosen = np.sort(chosen)
    for n, pool in enumerate(pools):
        first, last = np.searchsorted(chosen, starts[n : n + 2])
        if last > first:
            yield pool, int(starts[n]), chosen[first:last] - starts[n]


def _joined(parts: Iterable[Floats]) -> Floats:
    return np.concatenate([np.empty(0), *parts])


def _of_kind(pool: Pool, said: float, stated: float) -> Floats:
    """Return one weight for what was said, and another one for statements."""
    return np.where(pool.said, said, stated)


def _first(pool: Pool, weights: Weights) -> Floats:
    """Return what words and vectors say."""
    question = pool.question
    words = pool.words.astype(np.float64)
    alone = weights.words_alone * words
    if question.vector is None:
        pool.near = np.zeros(len(pool))
        return alone
    seen = question.known_share
    pool.near = np.maximum(pool.smoothed(weights.word_windows, weights.inherited_vector), 0)
    both = (
        _of_kind(pool, weights.vector, weights.statement_vector) * seen * pool.near
        + (_of_kind(pool, weights.words, weights.statement_words) * seen + weights.words_alone * (1 - seen)) * words
    )
    return np.where(pool.bare, alone, both)


def _hints(pool: Pool, weights: Weights) -> Floats:
    """Return what days, names and classes add."""
    hints: Floats = weights.time * pool.time.astype(np.float64) + weights.names * pool.names
    hints += weights.speaker * pool.of_named + weights.member * pool.of_class
    return hints


def _bonus(pool: Pool, weights: Weights) -> Floats:
    """Return what time, names, speaker and form add and take."""
    question = pool.question
    bonus: Floats = _hints(pool, weights) + weights.speaker * pool.said_by_named + weights.answer * pool.fits_answer
    if not question.asks_assistant:
        bonus -= weights.assistant * pool.by_assistant
    if pool.index.traits.has_speakers:
        bonus -= weights.asking * pool.asking
    return bonus


def _ordering(pool: Pool, weights: Weights) -> Floats:
    """Return what trust, confidence and recency add to a place; of what was said only trust."""
    columns = pool.index.columns
    trust = weights.trust_step * (BEST_TRUST - columns.trusts.view()[pool.rows].astype(np.float64))
    doubt = weights.doubt * (1 - columns.confidences.view()[pool.rows])
    age = np.maximum(to_us(pool.question.now) - columns.created.view()[pool.rows], 0) / (US_A_DAY * RECENT_DAYS)
    recent = np.where(pool.said, 0, weights.recency * np.exp2(-age))
    if pool.question.asks_first and len(age):
        span = float(age.max() - age.min())
        recent = weights.first * (age - age.min()) / span if span else np.zeros(len(age))
    return recent - trust - doubt


def _late(
    pools: Sequence[Pool], starts: NDArray[np.int64], order: NDArray[np.int64]
) -> list[tuple[Pool, int, NDArray[np.int64]]]:
    """Return of each pool, with where it begins, the places of those that are compared token by token."""
    known = {
        start + place: count
        for pool, start, places in _by_pool(pools, starts, order)
        for place, count in zip(places.tolist(), pool.index.tokens.counts(pool.rows[places]).tolist(), strict=True)
    }
    counts = np.cumsum([known[n] for n in order.tolist()])
    kept = order[: max(LEAST_LATE, int(np.searchsorted(counts, LATE_TOKENS)))]
    return [one for one in _by_pool(pools, starts, kept) if one[0].index.tokens.are_any]


def _token_weights(question: Question, stats: CorpusStats) -> NDArray[np.float32]:
    """Return what each token of the question counts: the idf of its word; of stop words all the same."""
    idf = np.append(stats.idf, 0.0)  # at −1: of a word that is none of the terms
    found = idf[np.array(question.token_terms, dtype=np.int64)].astype(np.float32)
    return found if found.any() else np.ones(len(found), dtype=np.float32)


def _matches(
    pool: Pool, places: NDArray[np.int64], weighed: NDArray[np.float32], weights: Weights
) -> tuple[Floats, Floats]:
    """Return the weighted mean of the best matches of the tokens of the question, and that of its best clause."""
    is_short = 0 < pool.index.traits.median_pieces <= SHORT_PIECES
    weighted = pool.matches(places, weights.token_windows if is_short else None) * weighed
    mass = float(weighed.sum()) or 1.0
    parts = [
        weighted[:, first:last].sum(axis=1) / part
        for first, last in pool.question.clauses
        if (part := float(weighed[first:last].sum())) >= LEAST_CLAUSE * mass
    ]
    best = np.max(parts, axis=0) if len(parts) >= LEAST_CLAUSES else np.zeros(len(places))
    return (weighted.sum(axis=1) / mass).astype(np.float64), best.astype(np.float64)


def _guessed(pool: Pool, places: NDArray[np.int64]) -> Floats:
    """
    Return what the tokens of documents would match that have none: by another model, or for want of memory.

    Fitted by least squares on development data (correlation .68 for what was said, .87 for statements), so that scores
    and floor mean the same without tokens.
    """
    near, words = pool.near[places], pool.words[places].astype(np.float64)
    said = 0.08 + 0.09 * near + 0.15 * words
    return np.where(pool.said[places], said, 0.05 + 0.17 * near + 0.25 * words)


def _events(pools: Sequence[Pool], relevance: Floats, weights: Weights) -> Floats:
    """Return what each gains by the best: of what was said, texts like them from about the same day."""
    gained = np.zeros(len(relevance))
    start = 0
    for pool in pools:
        mine = relevance[start : start + len(pool)]
        if pool.index.sequences.are_any and pool.similar is not None and len(mine) > 1:
            order = best_first(mine, AROUND)
            order = order[pool.said[order]]
            if len(order):
                gained[start + order] = weights.event * pool.question.known_share * _around(pool, order, mine[order])
        start += len(pool)
    return gained


def _around(pool: Pool, order: NDArray[np.int64], relevance: Floats) -> Floats:
    """Return how near each is to what the best ones tell of, 0–0.7."""
    rows = pool.rows[order]
    held = pool.vectors(order)
    best = min(EVENTS, len(order))
    cosines = np.maximum(np.einsum("ik,jk->ij", held, held[:best]) - EVENT_COSINE, 0)
    days = pool.index.traits.days(int(rows.max()) + 1)[rows].astype(np.float64)
    near = np.exp(-np.abs(days[:, None] - days[None, :best]) / EVENT_DAYS)
    found = cosines * near * np.exp((relevance[:best] - relevance[0]) / EVENT_DROP)[None, :]
    found[np.arange(best), np.arange(best)] = 0  # nothing is near itself
    nearest: Floats = found.max(axis=1)
    return nearest
