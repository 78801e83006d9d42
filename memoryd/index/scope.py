"""
The index of one owner: what can be recalled, and what it is found by.

It holds live, superseded and expired memories; a filter is a mask inside the search. One thread changes it; others
may search it at the same time, each over the documents that were there when it began.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memoryd.entities.directory import Directory
from memoryd.index.arrays import Growable
from memoryd.index.postings import CorpusStats, Postings
from memoryd.index.question import Candidate, Question
from memoryd.index.records import forget_unpacked, pack, unpack, unpack_once
from memoryd.index.vectors import Vectors, similarities
from memoryd.knowledge.reading import BYTES_A_READING, Reader
from memoryd.model import limits
from memoryd.model.change import Entry, Recalled
from memoryd.model.entity import Entity
from memoryd.model.filter_terms import filter_terms_of, required_terms, subject_terms
from memoryd.model.memory import Kind, Memory
from memoryd.model.query import Filter
from memoryd.model.times import to_us
from memoryd.model.trust import Trust
from memoryd.model.validation import text_digest

__all__ = ["ScopeIndex"]

K = TypeVar("K", bound=Hashable)
ERASED = b""  # what is left of the record of a memory that was purged
EVERY_KIND = Filter(kinds=frozenset(Kind))
STATEMENTS = Filter(kinds=frozenset(Kind) - {Kind.EPISODE, Kind.REFLECTION})
NEVER = np.iinfo(np.int64).max
BEST_TRUST = max(trust.weight for trust in Trust)
KINDS = tuple(Kind)
KIND_CODES = {kind: code for code, kind in enumerate(KINDS)}
STATEMENT_CODES = frozenset(KIND_CODES[kind] for kind in STATEMENTS.kinds)
TIE = 1e-5  # scores closer than this are compared in float64
BYTES_A_TERM = 300  # a growing array and its name
BYTES_A_DOCUMENT = 700  # records' and dictionaries' overhead a document, measured


class ScopeIndex:
    """Documents 0 … count − 1 of one owner, in the order in which they came."""

    def __init__(
        self,
        chunks: Iterable[Sequence[Entry]] = (),
        *,
        dimensions: int = 0,
        fingerprint: str = "",
        entities: Iterable[Entity] = (),
        tombstones: Iterable[bytes] = (),
    ) -> None:
        """Index entries, chunk after chunk; vectors with another fingerprint than this one are left out."""
        self.people = Directory(entities)
        self.reader = Reader()
        self.tombstones = set(tombstones)
        self.commit_seq = 0
        self.dimensions = dimensions
        self.fingerprint = fingerprint
        self._records: list[bytes] = []
        self._documents: dict[str, int] = {}
        self._former: dict[str, tuple[int, ...]] = {}
        """By id: the documents, dead now, that were the memory before it was updated or deleted."""
        self._former_links: dict[str, frozenset[str]] = {}
        """Of those the ones that were linked to others, and to whom."""
        self._texts: dict[bytes, tuple[int, ...]] = {}
        self._keys: dict[str, tuple[int, ...]] = {}
        self._claims: dict[tuple[str, str], list[int]] = {}
        """By attribute and whom it is said of ("": nobody): the documents, in their order."""
        self._contested: set[int] = set()
        self._filter_terms: dict[str, Growable] = {}
        self._record_bytes = 0
        self._moving = threading.Lock()  # held while a memory is between its old and its new place
        self._of_kind = [0] * len(KINDS)  # documents of each kind, dead ones too
        self._expiring = self._hidden_superseded = 0
        terms: list[str] = []
        blocks = [np.zeros((0, dimensions), dtype=np.float32)]
        rows: list[tuple[int, int, int, int, bool, int]] = []
        for entries in chunks:
            for entry in entries:
                rows.append(self._register(len(rows), entry.memory))
            terms.extend(entry.terms for entry in entries)
            if dimensions:
                blocks.append(self._stack(entries))
        self.vectors = Vectors(dimensions, np.concatenate(blocks)) if dimensions else None
        self.postings = Postings(terms)
        lengths = self.postings.lengths.view().astype(np.int64)
        self._length_sum = int(lengths.sum())
        self._length_square_sum = int((lengths * lengths).sum())
        columns = list(zip(*rows, strict=True)) or [()] * 6
        self._kinds = self._column(np.uint8, columns[0])
        self._created = self._column(np.int64, columns[1])
        self._happened = self._column(np.int64, columns[2])
        self._expires = self._column(np.int64, columns[3])
        self._superseded = self._column(np.bool_, columns[4])
        self._trusts = self._column(np.uint8, columns[5])
        self._alive = self._column(np.bool_, [True] * len(rows))
        self._dead = 0
        self.count = len(rows)

    def _register(self, document: int, memory: Memory) -> tuple[int, int, int, int, bool, int]:
        """Enter a memory into everything that is no array; return its row of the arrays."""
        record = pack(memory)
        self._records.append(record)
        self._record_bytes += len(record)
        self._documents[memory.id] = document
        digest = text_digest(memory.content)
        self._texts[digest] = (*self._texts.get(digest, ()), document)
        if memory.key:
            self._keys[memory.key] = (*self._keys.get(memory.key, ()), document)
        for claim in memory.claims:
            for whom in {mention.entity_id for mention in memory.mentions if mention.about} or {""}:
                self._claims.setdefault((claim, whom), []).append(document)
        self.people.add(memory)
        if memory.contested_with:
            self._contested.add(document)
        self._of_kind[KIND_CODES[memory.kind]] += 1
        self._expiring += memory.expire_time is not None
        self._hidden_superseded += memory.supersede_time is not None
        for term in filter_terms_of(memory):
            column = self._filter_terms.get(term)
            if column is None:
                column = self._filter_terms[term] = Growable(np.int32)
            column.append(document)
        return (
            KIND_CODES[memory.kind],
            to_us(memory.create_time),
            to_us(memory.event_time),
            _or_never(memory.expire_time),
            memory.supersede_time is not None,
            memory.trust.weight,
        )

    @staticmethod
    def _column(dtype: Any, values: Sequence[Any]) -> Growable:
        return Growable(dtype, values=np.asarray(values, dtype=dtype))

    def _usable(self, entry: Entry) -> NDArray[np.float32] | None:
        return entry.vector if entry.fingerprint == self.fingerprint else None

    def _stack(self, entries: Sequence[Entry]) -> NDArray[np.float32]:
        rows = np.zeros((len(entries), self.dimensions), dtype=np.float32)
        for n, entry in enumerate(entries):
            vector = self._usable(entry)
            if vector is not None:
                rows[n] = vector
        return rows

    def __len__(self) -> int:
        """How many memories it holds."""
        return self.count - self._dead

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies, estimated."""
        vectors = 0 if self.vectors is None else self.vectors.nbytes
        filter_terms = len(self._filter_terms) * BYTES_A_TERM
        readings = len(self.reader) * BYTES_A_READING
        return (
            vectors
            + self.postings.nbytes
            + filter_terms
            + readings
            + self._record_bytes
            + self.count * BYTES_A_DOCUMENT
        )

    # --- changing it (one thread) ---

    def insert(self, entry: Entry) -> None:
        """Add a memory at the end."""
        kind, created, happened, expires, superseded, trust = self._register(self.count, entry.memory)
        if self.vectors is not None:
            self.vectors.append(self._usable(entry))
        length = self.postings.append(entry.terms)
        self._length_sum += length
        self._length_square_sum += length * length
        self._kinds.append(kind)
        self._created.append(created)
        self._happened.append(happened)
        self._expires.append(expires)
        self._superseded.append(superseded)
        self._trusts.append(trust)
        self._alive.append(True)
        self.count += 1

    def update(self, entry: Entry) -> None:
        """Replace a memory by its newer form; a deleted one leaves the index, a restored one enters it again."""
        document = self._documents.get(entry.memory.id)
        if entry.vector is None and document is not None and self.vectors is not None:
            entry = replace(entry, vector=self.vectors.row(document).copy(), fingerprint=self.fingerprint)
        with self._moving:
            self.remove(entry.memory.id)
            if entry.memory.delete_time is None:
                self.insert(entry)

    def remove(self, memory_id: str) -> None:
        """Forget a memory; one that is not there is fine."""
        document = self._documents.pop(memory_id, None)
        if document is None:
            return
        self._former[memory_id] = (*self._former.get(memory_id, ()), document)
        links = unpack_once(self._records[document]).links
        if links:
            self._former_links[memory_id] = links | self._former_links.get(memory_id, frozenset())
        self.people.remove(memory_id)
        self._contested.discard(document)
        self._alive.view()[document] = False
        self._dead += 1
        length = int(self.postings.lengths.view()[document])
        self._length_sum -= length
        self._length_square_sum -= length * length

    def erase(self, ids: Collection[str]) -> None:
        """
        Forget memories and every word that only they hold, in all the forms that they ever had here.

        With them goes what others were before they were updated or deleted, where it names those who are erased.
        """
        if not ids:
            return
        self.reader.forget()
        for memory_id in ids:
            self.remove(memory_id)
        linked = {one for one, links in self._former_links.items() if not links.isdisjoint(ids)}
        here = {memory_id for memory_id in linked if memory_id in self._documents}
        for memory_id in here:
            self._renew_former(memory_id)
        rows: list[int] = []
        for memory_id in linked.union(ids) - here:
            self._former_links.pop(memory_id, None)
            rows.extend(self._former.pop(memory_id, ()))
        if not rows:
            return
        gone = self._unlist(rows)
        for row in rows:
            self._record_bytes -= len(self._records[row])
            self._records[row] = ERASED
        if self.vectors is not None:
            self.vectors.erase(gone)
        self.postings.erase(gone)

    def _unlist(self, rows: Collection[int]) -> NDArray[np.int64]:
        """Take documents out of the lists by text, key, claim and term, by what their records say; return them."""
        gone = np.array(sorted(rows), dtype=np.int64)
        emptied: set[str] = set()
        for row in rows:
            memory = unpack_once(self._records[row])
            emptied.update(filter_terms_of(memory))
            _drop_row(self._texts, text_digest(memory.content), row)
            _drop_row(self._keys, memory.key, row)
            for claim in memory.claims:
                for whom in {mention.entity_id for mention in memory.mentions if mention.about} or {""}:
                    _drop_row(self._claims, (claim, whom), row)
        for term in emptied:
            column = self._filter_terms[term].without(gone)
            if len(column):
                self._filter_terms[term] = column
            else:
                del self._filter_terms[term]
        return gone

    def _renew_former(self, memory_id: str) -> None:
        """Let what a memory was before be what it is now, for searches under way that have found it there."""
        record = self._records[self._documents[memory_id]]
        self._unlist(self._former[memory_id])  # while the old records still say where they are listed
        for row in self._former[memory_id]:
            self._record_bytes += len(record) - len(self._records[row])
            self._records[row] = record
        links = unpack_once(record).links
        if links:
            self._former_links[memory_id] = links
        else:
            del self._former_links[memory_id]

    @property
    def wasteful(self) -> bool:
        """Whether a quarter of it is dead, so that building it anew pays."""
        return self._dead > 256 and self._dead * 4 > self.count  # noqa: PLR2004  a few hundred dead cost nothing

    def note_recalls(self, recalls: Mapping[str, Recalled]) -> None:
        """Add to recall_count and move the recall times on."""
        for memory_id in recalls.keys() & self._documents.keys():
            document = self._documents[memory_id]
            memory = unpack(self._records[document])
            time, count, trusted = recalls[memory_id]
            self._records[document] = pack(
                replace(
                    memory,
                    recall_time=time,
                    recall_count=memory.recall_count + count,
                    trusted_recall_time=trusted or memory.trusted_recall_time,
                )
            )

    # --- asking it ---

    def _live(self, document: int, now: datetime) -> bool:
        alive = bool(self._alive.view()[document]) and not self._superseded.view()[document]
        return alive and int(self._expires.view()[document]) > to_us(now)

    def same_text(self, digest: bytes, now: datetime) -> list[Memory]:
        """Return the first 16 live memories of a text digest, oldest first."""
        documents = (document for document in self._texts.get(digest, ()) if self._live(document, now))
        return self._memories(islice(documents, limits.MOST_ALIKE))

    def of_key(self, key: str, now: datetime) -> list[Memory]:
        """Return the live memory of that key: none or one."""
        return self._memories(document for document in self._keys.get(key, ()) if self._live(document, now))

    def with_words(self, terms: Sequence[str], *, limit: int) -> list[Memory]:
        """Return the newest memories that can be recalled, hidden ones too, and hold all of some words."""
        count = self.count
        found: NDArray[np.int64] | None = None
        for term in terms:
            pieces = [documents.astype(np.int64) for documents, _ in self.postings.pieces(term, count)]
            holders = np.concatenate([np.empty(0, dtype=np.int64), *pieces])
            found = holders if found is None else np.intersect1d(found, holders)
        alive = [] if found is None else found[self._alive.view(count)[found]].tolist()
        return self._memories(sorted(alive, reverse=True)[:limit])

    def holds(self, memory_id: str) -> bool:
        """Whether anything of a memory is here, also what it was before it was deleted."""
        return memory_id in self._documents or memory_id in self._former

    def memory(self, memory_id: str) -> Memory | None:
        """Return a memory that can be recalled, also a superseded or expired one; None if it is not there."""
        document = self._documents.get(memory_id)
        return None if document is None else unpack(self._records[document])

    def live(self, now: datetime) -> list[Memory]:
        """Return every live memory, oldest first."""
        return [unpack(self._records[int(n)]) for n in np.flatnonzero(self._mask(EVERY_KIND, now))]

    def live_count(self, now: datetime) -> int:
        """How many live memories there are."""
        return int(np.count_nonzero(self._mask(EVERY_KIND, now)))

    def neighbours(
        self,
        vector: NDArray[np.float32] | None,
        claims: Iterable[tuple[str, str]],
        now: datetime,
        *,
        limit: int,
        floor: float,
    ) -> list[tuple[Memory, float]]:
        """
        Return the live statements that a new one is judged beside, and their cosines, nearest first.

        They are those that speak of one of its attributes of the same entity ("": of nobody), newest first up to
        `limit`, and the `limit` nearest that are not below `floor`. Messages and reflections are no statements.
        """
        mask = self._mask(STATEMENTS, now)
        spoken: set[int] = set()
        for claim in claims:
            said = (n for n in reversed(self._claims.get(claim, ())) if n < len(mask) and mask[n])
            spoken.update(islice(said, limit))
        rows = {*sorted(spoken)[-limit:]}
        cosines: dict[int, float] = {}
        if vector is not None and self.vectors is not None and len(mask):
            similar = self.vectors.compare(vector, len(mask))
            values = np.where(mask, similar.values, -1.0)
            if len(values) > limit:
                rows.update(np.argpartition(values, -limit)[-limit:].tolist())
            else:
                rows.update(range(len(values)))
            chosen = np.array(sorted(row for row in rows if mask[row]), dtype=np.int64)
            cosines = dict(zip(chosen.tolist(), similar.exact(chosen).tolist(), strict=True))
        found = [(n, cosines.get(n, 0.0)) for n in rows if n in spoken or cosines.get(n, -1.0) >= floor]
        found.sort(key=lambda item: (-item[1], item[0]))
        return [(unpack(self._records[n]), cosine) for n, cosine in found]

    def _memories(self, documents: Iterable[int]) -> list[Memory]:
        return sorted((unpack(self._records[n]) for n in documents), key=lambda memory: memory.create_time)

    def corpus(self, terms: Sequence[str]) -> CorpusStats:
        """Return what BM25 needs of this scope; hidden memories count as text, deleted ones do not."""
        alive = self._alive.view(self.count) if self._dead else None
        frequencies = self.postings.frequencies(terms, self.count, alive)
        return CorpusStats(len(self), self._length_sum, self._length_square_sum, frequencies)

    def _mask(self, wanted: Filter, now: datetime) -> NDArray[np.bool_]:
        """
        Return which documents pass, of those that are there now: Filter.admits, column by column.

        `alive` is copied first and is the last column to grow; a search in another thread sees a memory that is being
        updated in its old or in its new form.
        """
        with self._moving:
            mask: NDArray[np.bool_] = self._alive.view().copy()
        count = len(mask)
        if self._hidden_superseded and not wanted.include_superseded:
            mask &= ~self._superseded.view(count)
        if self._expiring and not wanted.include_expired:
            mask &= self._expires.view(count) > to_us(now)
        unwanted = [
            code for kind, code in KIND_CODES.items() if self._of_kind[code] and kind not in wanted.wanted_kinds
        ]
        if unwanted:  # a column that tells nothing apart is not looked at
            mask &= ~np.isin(self._kinds.view(count), unwanted)
        for column, start, end in (
            (self._happened, wanted.event_time_from, wanted.event_time_to),
            (self._created, wanted.create_time_from, wanted.create_time_to),
        ):
            if start is not None:
                mask &= column.view(count) >= to_us(start)
            if end is not None:
                mask &= column.view(count) < to_us(end)
        if wanted.subjects:
            mask &= self._having(subject_terms(wanted), count)
        for term in required_terms(wanted):
            mask &= self._having([term], count)
        return mask

    def _having(self, filter_terms: list[str], count: int) -> NDArray[np.bool_]:
        mask = np.zeros(count, dtype=np.bool_)
        for term in filter_terms:
            column = self._filter_terms.get(term)
            if column is not None:
                documents = column.view()
                mask[documents[: np.searchsorted(documents, count)]] = True
        return mask

    def legs(self, question: Question, stats: CorpusStats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the exact cosines and keyword scores of what passes the filter, in no order."""
        mask = self._mask(question.filter, question.now)
        rows = np.flatnonzero(mask)
        lexical = self.postings.score(question.terms, stats, len(mask))[rows].astype(np.float64)
        if question.vector is None or self.vectors is None:
            return np.zeros(len(rows)), lexical
        return self.vectors.compare(question.vector, len(mask)).exact(rows), lexical

    def candidates(self, question: Question, stats: CorpusStats) -> list[Candidate]:
        """Return the best documents by the question's weights, best first, with what each leg says of them."""
        mask = self._mask(question.filter, question.now)
        count = len(mask)
        if not count:
            return []
        if question.least_trust:
            mask &= self._trusts.view(count) >= question.least_trust
        depth, weights = question.depth, question.weights
        lexical = self.postings.score(question.terms, stats, count)
        similar = None
        score: NDArray[np.float32] = np.float32(weights.keyword) * lexical
        slack = TIE
        if question.vector is not None and self.vectors is not None:
            similar = self.vectors.compare(question.vector, count)
            score += np.float32(weights.vector) * np.maximum(similar.values, 0)
            slack += weights.vector * similar.slack
        discount = (BEST_TRUST - self._trusts.view(count)).astype(np.float32) * np.float32(weights.trust_step)
        places = np.where(mask, score - discount, np.float32(-2))
        # whatever could still be among the best is compared exactly
        possible = mask & (score >= question.min_score - slack)
        if count > depth:
            possible &= places >= float(np.partition(places, count - depth)[count - depth]) - 2 * slack
        if similar is None or not similar.slack:
            possible &= score > 0
        rows = np.flatnonzero(possible)
        cosines = np.zeros(len(rows)) if similar is None else similar.exact(rows)
        totals = weights.keyword * lexical[rows].astype(np.float64) + weights.vector * np.maximum(cosines, 0)
        totals = np.round(totals, 6)  # so that equal texts tie, in whatever order they are summed
        order = np.round(totals - discount[rows], 6)
        created = self._created.view()
        best = np.lexsort((rows, created[rows], -order))
        best = best[(totals[best] > 0) & (totals[best] >= question.min_score)][:depth]
        return [
            Candidate(
                float(order[n]),
                float(totals[n]),
                int(created[rows[n]]),
                self,
                int(rows[n]),
                float(cosines[n]),
                float(lexical[rows[n]]),
            )
            for n in best
        ]

    def contested_pairs(self, rows: Collection[int]) -> list[tuple[int, int]]:
        """Return the pairs of these documents that contest each other, each in both orders."""
        wanted = {*rows}
        return [
            (row, other)
            for row in self._contested.intersection(rows)
            for other in self._partners(row).intersection(wanted)
        ]

    def alike(self, rows: Collection[int], *, floor: float) -> list[tuple[int, list[int]]]:
        """Return statements of these documents, each with the older ones of at least that cosine, nearest first."""
        statements = [row for row in rows if self._kinds.view()[row] in STATEMENT_CODES]
        if self.vectors is None or len(statements) < 2:  # noqa: PLR2004  a pair
            return []
        chosen = np.array(sorted(statements, key=lambda row: (int(self._created.view()[row]), row)), dtype=np.int64)
        older = np.tril(similarities(self.vectors.rows(chosen)), -1)  # of each its cosines with those before it
        return [
            (int(chosen[n]), [int(chosen[m]) for m in np.argsort(-older[n], kind="stable") if older[n, m] >= floor])
            for n in np.flatnonzero(older.max(axis=1) >= floor)
        ]

    def says(self, digest: bytes) -> tuple[int, ...]:
        """Return the documents, dead ones too, that say a text of this digest."""
        return self._texts.get(digest, ())

    def _partners(self, row: int) -> set[int]:
        """Return the documents that a document contests; -1 for one that is not here."""
        record = self._records[row]
        links = () if record is ERASED else unpack(record).contested_with
        return {self._documents.get(partner, -1) for partner in links}

    def follows(self, row: int, other: int) -> bool:
        """Whether the second document is the newer one and of no less trust."""
        created, trusts = self._created.view(), self._trusts.view()
        if (int(created[row]), row) >= (int(created[other]), other):
            return False
        return bool(trusts[other] >= trusts[row])

    def memory_at(self, row: int) -> Memory | None:
        """Return the memory of a document; None if it was erased meanwhile."""
        record = self._records[row]
        if record is ERASED:
            return None
        memory = unpack(record)
        if self._records[row] is ERASED:  # while it was read: what was kept of it goes again
            forget_unpacked()
            return None
        return memory


def _drop_row(rows: dict[K, Any], key: K, gone: int) -> None:
    """Take a document out of those of a key, and the key with the last one."""
    known = rows.get(key, ())
    if isinstance(known, list):  # in order, and long where many memories claim something
        at = bisect_left(known, gone)
        if at < len(known) and known[at] == gone:
            del known[at]
        left = known
    else:
        left = type(known)(row for row in known if row != gone)
    if left:
        rows[key] = left
    else:
        rows.pop(key, None)


def _or_never(time: datetime | None) -> int:
    return int(NEVER) if time is None else to_us(time)
