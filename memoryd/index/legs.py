"""
The legs of a search: what each way of finding says of the documents of one scope. Facts, no weights.

First every document gets a rough value, by its own words and its own vector. The best of them, with those that stand
next to them in their sessions, are the pool; for these all legs are computed. What was said inherits from what was said
next to it, term by term: a reply to "Where did you go?" holds its words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from memoryd.index.arrays import kth_largest
from memoryd.index.columns import KIND_CODES
from memoryd.index.postings import CorpusStats
from memoryd.index.question import Question
from memoryd.index.scope import ScopeIndex
from memoryd.index.sequences import NOBODY
from memoryd.index.time_fit import FEW_MEMORIES, time_fit
from memoryd.index.vectors import Similarities
from memoryd.knowledge.grammar.questions import SIGN_OF, Signs
from memoryd.model.embedding import TOKEN_DIMENSIONS
from memoryd.model.memory import Kind

__all__ = ["Pool", "Rough", "Windows", "pool_of"]

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

SMALL = 1536  # documents; of a scope of no more all are in the pool
BEST = 1024  # of a larger one so many, and who stands next to them
MOST_WINDOW_TERMS = 32  # of a question, the rarest first: more are compared with a document's own words alone
COMMON_SHARE = 0.2  # of the documents: a member of a class that more of them hold tells nothing apart
ALL_HELD = 0.9999  # of the words of a question: their shares add up to 1, but for rounding
SAID = KIND_CODES[Kind.EPISODE]
NO_TOKENS: NDArray[np.int8] = np.zeros((0, TOKEN_DIMENSIONS), dtype=np.int8)


@dataclass(frozen=True, slots=True)
class Windows:
    """How much a document inherits of a term or token, and from what, as measured (docs/benchmarks.md)."""

    before: float
    after_question: float
    """From the one before, where that asks something."""
    after: float
    two_away: float
    gate_pieces: float = 100.0
    """Longer documents inherit less: so many word pieces by their length."""


@dataclass(frozen=True, slots=True)
class Rough:
    """What the legs weigh in the choice of the pool of a large scope."""

    words: float
    vector: float
    time: float
    names: float
    speaker: float


class Pool:
    """The documents of one scope that are looked at closely, and what each leg says of them: arrays of one length."""

    def __init__(
        self, index: ScopeIndex, question: Question, rows: Rows, mask: NDArray[np.bool_], trusted: NDArray[np.bool_]
    ) -> None:
        """Take the rows; all but one that is looked at in any case pass the mask. Both masks are of all documents."""
        self.index = index
        self.question = question
        self.rows = rows
        self._mask = mask
        self._trusted = trusted
        self._places = np.full(len(mask), len(rows), dtype=np.int64)
        self._places[rows] = np.arange(len(rows))
        self._places[~mask] = len(rows)  # who is looked at, and does not pass, lends nothing

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def _pieces(self) -> dict[tuple[bool, bool], float]:
        """How much text passes the filter, in word pieces, by whether it was said and whether it is trusted."""
        said: NDArray[np.bool_] = self.index.columns.kinds.view(len(self._mask)) == SAID
        alive: NDArray[np.bool_] = self.index.columns.alive.view(len(self._mask))
        found = {}
        for is_said in (False, True):
            for is_trusted in (False, True):
                some = alive & (said == is_said) & (self._trusted == is_trusted)
                share = int(np.count_nonzero(some & self._mask)) / max(1, int(np.count_nonzero(some)))
                found[is_said, is_trusted] = share * self.index.traits.text_pieces(
                    is_said=is_said, is_trusted=is_trusted
                )
        return found

    def searched(self, *, is_said: bool, trusted_alone: bool) -> float:
        """Return how much text passes the filter, in word pieces: of what was said or of statements."""
        return self._pieces[is_said, True] + (0.0 if trusted_alone else self._pieces[is_said, False])

    @cached_property
    def trusted(self) -> NDArray[np.bool_]:
        """Which are of higher trust than a sandbox's."""
        return self._trusted[self.rows]

    similar: Similarities | None
    similarity: NDArray[np.float64]
    """Cosine of question and document, −1–1; exact of those for which `look_closely` was called."""
    near: NDArray[np.float64]
    """The cosine with what it inherits of those next to it, not below 0."""
    lexical: Floats
    """BM25 of the document's own words over the question's idf mass, 0–1."""
    words: Floats
    """The same with what it inherits."""
    holds_all: NDArray[np.bool_]
    """Which hold every word of the question."""
    time: Floats
    """How well its time, or a time that it names, fits the days that the question names, 0–1."""
    bare: NDArray[np.bool_]
    """Which have no vector, and stand by their words alone."""
    names: NDArray[np.bool_]
    """Which mention someone or something that the question names."""
    said_by_named: NDArray[np.bool_]
    said_by_others: NDArray[np.bool_]
    of_named: NDArray[np.bool_]
    """Which name the speaker of the question, no one is known to have said, and are no sandbox's."""
    by_assistant: NDArray[np.bool_]

    @property
    def speaker(self) -> NDArray[np.bool_]:
        """Which the person of the question said, or name them (`of_named`)."""
        return self.said_by_named | self.of_named

    @property
    def slack(self) -> float:
        """By how much a cosine may be off at the most, of those that were not looked at closely."""
        return 0.0 if self.similar is None else self.similar.slack

    @cached_property
    def gate(self) -> Floats:
        """How much each may inherit by its length, 0–1 (times Windows.gate_pieces over its word pieces)."""
        gate: Floats = np.reciprocal(np.maximum(self.index.traits.pieces(self.rows), np.float32(1)))
        return gate

    @cached_property
    def _beside(self) -> dict[int, NDArray[np.int64]]:
        """By step: the place in the pool of who stands there; len(self) where no one does who passes the filter."""
        found = {}
        for step in (-1, 1, -2, 2):
            rows = self.index.sequences.beside(self.rows, step, len(self._mask), self._trusted)
            there = rows != NOBODY
            places = np.full(len(self.rows), len(self.rows), dtype=np.int64)
            places[there] = self._places[rows[there]]
            found[step] = places
        return found

    @cached_property
    def of_class(self) -> NDArray[np.bool_]:
        """Which tell of a member of the class that is asked for; no sandbox's note, where anything else is here."""
        found = np.zeros(len(self.rows) + 1, dtype=np.bool_)
        terms = dict.fromkeys(term for member in self.question.members for term in member)
        held = {term: places for term in terms if (places := self._holding(term)) is not None}
        for member in (terms for terms in self.question.members if held.keys() >= set(terms)):
            found |= np.logical_and.reduce([held[term] for term in member])
        return found[:-1] & self.trusted if self.trusted.any() else found[:-1]

    def _holding(self, term: str) -> NDArray[np.bool_] | None:
        """Return in which of the pool a term stands; None for none, or for too many for it to tell them apart."""
        pieces = [documents for documents, _ in self.index.postings.pieces(term, len(self._mask))]
        if not 0 < sum(map(len, pieces)) <= max(FEW_MEMORIES, COMMON_SHARE * len(self._mask)):
            return None
        holds = np.zeros(len(self.rows) + 1, dtype=np.bool_)
        for documents in pieces:
            holds[self._places[documents]] = True
        holds[-1] = False  # of those that are not in the pool
        return holds

    @cached_property
    def created(self) -> NDArray[np.int64]:
        """Their create_time in microseconds."""
        return self.index.columns.created.view()[self.rows]

    @cached_property
    def said(self) -> NDArray[np.bool_]:
        """Which were said, and are no statements."""
        return self.index.said(self.rows)

    @cached_property
    def asking(self) -> Floats:
        """Which share of the sentences of each are questions."""
        return self.index.traits.asking(self.rows)

    @cached_property
    def states_nothing(self) -> NDArray[np.bool_]:
        """Which only ask another, or greet."""
        return self.index.traits.have(Signs.STATES_NOTHING, self.rows)

    @cached_property
    def fits_answer(self) -> NDArray[np.bool_]:
        """Which hold what the question wants: a time, a number, a name."""
        signs = SIGN_OF.get(self.question.wanted)
        return np.zeros(len(self), dtype=np.bool_) if signs is None else self.index.traits.have(signs, self.rows)

    def shares_of(self, windows: Windows) -> dict[int, Floats]:
        """Return, by step, how much of what stands there each document inherits."""
        gate = np.minimum(np.float32(1), self.gate * np.float32(windows.gate_pieces))
        asked = np.append(self.asking > 0, False)[self._beside[-1]]
        before = np.where(asked, np.float32(windows.after_question), np.float32(windows.before))
        two = gate * np.float32(windows.two_away)
        return {-1: gate * before, 1: gate * np.float32(windows.after), -2: two, 2: two}

    def inherited(self, values: Floats, shares: dict[int, Floats]) -> Floats:
        """Return the most of what each has by itself and inherits, column by column: values of shape (pool, n)."""
        padded = np.concatenate([values, np.zeros((1, values.shape[1]), dtype=np.float32)])
        best = values
        for step, share in shares.items():
            best = np.maximum(best, share[:, None] * padded[self._beside[step]])
        return best

    @cached_property
    def has_sessions(self) -> bool:
        """Whether anything here stands next to anything."""
        return self.index.sequences.are_any and any((places < len(self)).any() for places in self._beside.values())

    def smoothed(self, windows: Windows, share: float) -> NDArray[np.float64]:
        """Return the similarity with a share of that of the two next to it."""
        if not self.has_sessions:
            return self.similarity
        near = np.append(self.similarity, 0.0)
        gate = np.minimum(np.float32(1), self.gate * np.float32(windows.gate_pieces)) * np.float32(share)
        both: NDArray[np.float64] = self.similarity + gate * (near[self._beside[-1]] + near[self._beside[1]])
        return both

    def vectors(self, places: NDArray[np.int64]) -> Floats:
        """Return the vectors of some: shape (len(places), dimensions); none where there is no model."""
        vectors = self.index.vectors
        return np.zeros((len(places), 0), dtype=np.float32) if vectors is None else vectors.rows(self.rows[places])

    def look_closely(self, places: NDArray[np.int64]) -> None:
        """Compute the cosines of some, and of those right next to them, in float64: the same bits wherever they lie."""
        if self.similar is None or not len(places):
            return
        wanted = np.zeros(len(self) + 1, dtype=np.bool_)
        wanted[places] = True
        if self.has_sessions:
            wanted[self._beside[-1][places]] = wanted[self._beside[1][places]] = True
        some = np.flatnonzero(wanted[:-1])
        self.similarity[some] = self.similar.exact(self.rows[some])

    def are_later(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some are nearest by a window of theirs whose tokens are not known."""
        rows = self.rows[places]
        return self.similar.are_later(rows) if self.similar is not None else np.zeros(len(rows), dtype=np.bool_)

    def with_window_words(self, stats: CorpusStats, windows: Windows) -> Floats:
        """Return BM25 with what each document inherits, term by term."""
        terms, idf = self.question.terms, stats.idf
        mass = stats.mass
        if not mass or not self.has_sessions:
            return self.lexical
        chosen = sorted(range(len(terms)), key=lambda n: -idf[n])[:MOST_WINDOW_TERMS]
        shares = self.shares_of(windows)
        total = self.lexical.copy()
        share = np.where(self.trusted, np.float32(stats.vouched_share), np.float32(1))
        norms = self.index.postings.norms(stats, len(self._mask))
        for n in chosen:
            own = np.zeros((len(self) + 1, 1), dtype=np.float32)
            for documents, often in self.index.postings.pieces(terms[n], len(self._mask)):
                counts = often.astype(np.float32)
                own[self._places[documents], 0] = np.float32(idf[n] / mass) * counts / (counts + norms[documents])
            own = own[:-1]
            total += share * (self.inherited(own, shares) - own)[:, 0]
        return total

    def matches(self, places: NDArray[np.int64], windows: Windows | None) -> Floats:
        """
        Return the best match of each token of the question in some of the pool: shape (len(places), tokens).

        With windows also in what stands next to them.
        """
        tokens = NO_TOKENS if self.question.tokens is None else self.question.tokens
        if windows is None or not self.has_sessions:
            return self.index.tokens.best(tokens, self.rows[places])
        wanted = np.zeros(len(self) + 1, dtype=np.bool_)
        wanted[places] = True
        for beside in self._beside.values():
            wanted[beside[places]] = True
        some = np.flatnonzero(wanted[:-1])
        values = np.zeros((len(self) + 1, len(tokens)), dtype=np.float32)
        values[some] = self.index.tokens.best(tokens, self.rows[some])
        best = values[places]
        for step, share in self.shares_of(windows).items():
            best = np.maximum(best, share[places, None] * values[self._beside[step][places]])
        return best


def pool_of(index: ScopeIndex, question: Question, stats: CorpusStats, rough: Rough) -> Pool:
    """Return what is looked at closely in a scope: all; of a large one the best by `rough`, and what is next to it."""
    mask = index.mask(question.filter, question.now)
    count = len(mask)
    if question.least_trust:
        mask &= index.columns.trusts.view(count) >= question.least_trust
    # of higher trust than a sandbox's: what is not must not change how they are found
    trusted = index.columns.trusted(count)
    lexical, held = index.postings.score(question.terms, stats, count)
    also = question.also[1] if question.also is not None and question.also[0] == id(index) else None
    is_read = mask.copy()
    if also is not None:
        is_read[also] = True
    lexical = index.windows.best(question.terms, stats, lexical, held, is_read, trusted)
    lexical[trusted] *= np.float32(stats.vouched_share)
    similar, similarity, bare = None, np.zeros(count, dtype=np.float32), np.ones(count, dtype=np.bool_)
    if question.vector is not None and index.vectors is not None:
        similar = index.window_vectors.with_those(index.vectors.compare(question.vector, count), question.vector)
        similarity = similar.values
        bare = index.vectors.bare(count)
    time = time_fit(index, question.days, mask, trusted)
    traits, nobody = index.traits, np.zeros(count, dtype=np.bool_)
    by_named = by_others = of_named = nobody
    if question.speaker:
        # what a sandbox says in a speaker's name counts only where sandboxes alone speak
        speaking = trusted if traits.trusts_speakers else ~nobody
        by_named = traits.said_by(question.speaker, count) & speaking
        by_others = traits.said_by_others(question.speaker, count) & speaking
        # never a sandbox's note: a list of all names would stand above what was said
        of_named = index.naming(question.speaker, count) & trusted
    if count <= SMALL:
        rows = np.flatnonzero(mask)
    else:
        value = rough.words * lexical + rough.vector * np.maximum(similarity, 0)
        if time is not None:
            value += rough.time * time
        if question.entity_ids:
            value += rough.names * index.columns.mentioning(question.entity_ids, count)
        value += rough.speaker * (by_named | of_named)
        slack = 0.0 if similar is None else 2 * rough.vector * similar.slack
        rows = _best(index, np.where(mask, value, np.float32(-1)), mask, trusted, slack)
    if also is not None:
        rows = np.union1d(rows, [also])
    pool = Pool(index, question, rows, mask, trusted)
    pool.similar = similar
    pool.similarity, pool.lexical = similarity[rows].astype(np.float64), lexical[rows]
    pool.holds_all = (held[rows] > ALL_HELD) & all(stats.frequencies)
    pool.time = np.zeros(len(rows), dtype=np.float32) if time is None else time[rows]
    pool.bare = bare[rows]
    pool.said_by_named, pool.said_by_others, pool.of_named = by_named[rows], by_others[rows], of_named[rows]
    pool.names = index.columns.mentioning(question.entity_ids, count)[rows] if question.entity_ids else nobody[rows]
    pool.by_assistant = traits.by_assistant(count)[rows]
    return pool


def _best(index: ScopeIndex, value: Floats, mask: NDArray[np.bool_], trusted: NDArray[np.bool_], slack: float) -> Rows:
    """Return the best documents, all that may be among them, and those next to them, in order."""
    least = kth_largest(value, BEST) - slack
    best = np.flatnonzero(value >= least if least > 0 else value > 0)
    chosen = np.zeros(len(mask), dtype=np.bool_)
    chosen[best] = True
    if index.sequences.are_any:
        for step in (-2, -1, 1, 2):
            beside = index.sequences.beside(best, step, len(mask), trusted)
            chosen[beside[beside != NOBODY]] = True
    return np.flatnonzero(chosen & mask)
