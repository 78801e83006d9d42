"""
The index of one owner: what can be recalled, and what it is found by.

It holds live, superseded and expired memories; a filter is a mask inside the search. One thread changes it; others
may search it at the same time, each over the documents that were there when it began.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from memoryd.entities.directory import Directory
from memoryd.index.columns import KIND_CODES, Columns, Facts, Row
from memoryd.index.listings import Listings
from memoryd.index.postings import CorpusStats, Postings
from memoryd.index.records import forget_unpacked, pack, unpack, unpack_once, with_recalls
from memoryd.index.sequences import Sequences
from memoryd.index.token_vectors import TokenVectors
from memoryd.index.traits import Traits, traits_of
from memoryd.index.vectors import Vectors, similarities
from memoryd.knowledge.reading import Reader
from memoryd.model import limits
from memoryd.model.change import Embedding, Entry, Recalled
from memoryd.model.entity import Entity
from memoryd.model.filter_terms import filter_terms_of
from memoryd.model.memory import Kind, Memory
from memoryd.model.query import STATEMENTS, Filter

__all__ = ["ScopeIndex"]

ERASED = b""  # what is left of the record of a memory that was purged
EVERY_KIND = Filter(kinds=frozenset(Kind))
STATEMENT_CODES = frozenset(KIND_CODES[kind] for kind in STATEMENTS.kinds)
BYTES_A_DOCUMENT = 720  # records' and dictionaries' overhead a document, measured


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
        with_tokens: bool = True,
    ) -> None:
        """
        Index entries, chunk after chunk; vectors with another fingerprint than this one are left out.

        Without tokens it takes a quarter of the memory, and what compares them counts nothing.
        """
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
        """By id, of those that had links: the linked ids."""
        self.listings = Listings()
        self.columns = Columns()
        self.sequences = Sequences()
        self.traits = Traits()
        self._contested: set[int] = set()
        self._record_bytes = 0
        self._moving = threading.Lock()  # held while a memory is between its old and its new place
        terms: list[str] = []
        blocks = [np.zeros((0, dimensions), dtype=np.float32)]
        tokens: list[bytes] = []
        rows: list[Row] = []
        for entries in chunks:
            for entry in entries:
                rows.append(self._register(len(rows), entry.memory))
                tokens.append(self._usable_tokens(entry) if with_tokens else b"")
            terms.extend(entry.terms for entry in entries)
            if dimensions:
                blocks.append(self._stack(entries))
        self.vectors = Vectors(dimensions, np.concatenate(blocks)) if dimensions else None
        self.with_tokens = with_tokens
        """Whether the vectors of tokens are kept: without them it takes a quarter of the memory."""
        self.tokens = TokenVectors(tokens)
        self.postings = Postings(terms)
        lengths = self.postings.lengths.view().astype(np.int64)
        self._length_sum = int(lengths.sum())
        self._length_square_sum = int((lengths * lengths).sum())
        self.columns.load(rows)
        self._dead = 0
        self.count = len(rows)

    def _register(self, document: int, memory: Memory) -> Row:
        """Enter a memory into everything that is no array; return its row of the columns."""
        record = pack(memory)
        self._records.append(record)
        self._record_bytes += len(record)
        self._documents[memory.id] = document
        self.listings.add(document, memory)
        self.people.add(memory)
        self.sequences.append(document, memory)
        self.traits.append(document, traits_of(memory))
        if memory.contested_with:
            self._contested.add(document)
        return self.columns.register(document, memory)

    def _usable(self, entry: Entry | Embedding) -> NDArray[np.float32] | None:
        return entry.vector if entry.fingerprint == self.fingerprint else None

    def _usable_tokens(self, entry: Entry | Embedding) -> bytes:
        return entry.tokens if entry.fingerprint == self.fingerprint else b""

    def _stack(self, entries: Sequence[Entry]) -> NDArray[np.float32]:
        rows = np.zeros((len(entries), self.dimensions), dtype=np.float32)
        for n, entry in enumerate(entries):
            if (vector := self._usable(entry)) is not None:
                rows[n] = vector
        return rows

    def __len__(self) -> int:
        """How many memories it holds."""
        return self.count - self._dead

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies, estimated."""
        held = self.postings.nbytes + self.columns.term_bytes + self.reader.nbytes + self.people.nbytes
        vectors = 0 if self.vectors is None else self.vectors.nbytes
        held += self.tokens.nbytes + self.sequences.nbytes + self.traits.nbytes
        return vectors + held + self._record_bytes + self.count * BYTES_A_DOCUMENT

    @property
    def mostly_unembedded(self) -> bool:
        """Whether most memories have no vector of the model in use."""
        return self.vectors is not None and 2 * self.vectors.missing > len(self)

    # --- changing it (one thread) ---

    def insert(self, entry: Entry) -> None:
        """Add a memory at the end."""
        row = self._register(self.count, entry.memory)
        if self.vectors is not None:
            self.vectors.append(self._usable(entry))
        self.tokens.append(self._usable_tokens(entry) if self.with_tokens else b"")
        length = self.postings.append(entry.terms)
        self._length_sum += length
        self._length_square_sum += length * length
        self.columns.append(row)
        self.count += 1

    def update(self, entry: Entry) -> None:
        """Replace a memory by its newer form; a deleted one leaves the index, a restored one enters it again."""
        document = self._documents.get(entry.memory.id)
        if entry.vector is None and document is not None and self.vectors is not None:
            row = self.vectors.row(document)
            if row.any():
                tokens = self.tokens.row(document)
                entry = replace(entry, vector=row.copy(), tokens=tokens, fingerprint=self.fingerprint)
        with self._moving:
            self.remove(entry.memory.id)
            if entry.memory.delete_time is None:
                self.insert(entry)

    def embed(self, embedding: Embedding) -> None:
        """Take a new vector of a memory; one that is not there is fine."""
        document = self._documents.get(embedding.memory_id)
        if document is not None and self.vectors is not None:
            self.vectors.put(document, self._usable(embedding))
            if self.with_tokens:
                self.tokens.put(document, self._usable_tokens(embedding))

    def remove(self, memory_id: str) -> None:
        """Forget a memory; one that is not there is fine."""
        document = self._documents.pop(memory_id, None)
        if document is None:
            return
        self._former[memory_id] = (*self._former.get(memory_id, ()), document)
        memory = unpack_once(self._records[document])
        if memory.links:
            self._former_links[memory_id] = memory.links | self._former_links.get(memory_id, frozenset())
        self.people.remove(memory)
        self.sequences.remove(document, memory)
        is_trusted = not memory.trust.is_sandbox
        self.traits.remove(document, is_said=memory.kind is Kind.EPISODE, is_trusted=is_trusted)
        self._contested.discard(document)
        self.columns.alive.view()[document] = False
        if self.vectors is not None:
            self.vectors.forget(document)
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
        self.traits.erase(gone)
        for row in rows:
            self.tokens.put(row, b"")
        self.postings.erase(gone)

    def _unlist(self, rows: Collection[int]) -> NDArray[np.int64]:
        """Take documents out of the lists by text, key, claim and term, by what their records say; return them."""
        gone = np.array(sorted(rows), dtype=np.int64)
        terms: set[str] = set()
        for row in rows:
            memory = unpack_once(self._records[row])
            terms.update(filter_terms_of(memory))
            self.listings.remove(row, memory)
        self.columns.unlist(gone, terms)
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
        """Whether a quarter of it is dead, so that rebuilding it pays."""
        return self._dead > 256 and self._dead * 4 > self.count  # noqa: PLR2004  a few hundred dead cost nothing

    def note_recalls(self, memory_id: str, recalled: Recalled) -> None:
        """Add to the recall_count of a memory and move its recall times on; nothing if it is not here."""
        document = self._documents.get(memory_id)
        if document is not None:
            _, count, _ = recalled
            self._records[document] = with_recalls(self._records[document], recalled)
            self.columns.recalls.view()[document] += count

    # --- asking it ---

    def same_text(self, digest: bytes, now: datetime) -> list[Memory]:
        """Return the first 16 live memories of a text digest, oldest first."""
        documents = (
            document for document in self.listings.texts.get(digest, ()) if self.columns.is_live(document, now)
        )
        return self.memories(islice(documents, limits.MOST_ALIKE))

    def of_key(self, key: str, now: datetime) -> list[Memory]:
        """Return the live memory of that key: none or one."""
        return self.memories(
            document for document in self.listings.keys.get(key, ()) if self.columns.is_live(document, now)
        )

    def with_words(self, terms: Sequence[str], *, limit: int) -> list[Memory]:
        """Return the newest memories that can be recalled, hidden ones too, and hold all of some words."""
        found = self.postings.holding(terms, self.count)
        alive = found[self.columns.alive.view(self.count)[found]].tolist()
        return self.memories(sorted(alive, reverse=True)[:limit])

    def holds(self, memory_id: str) -> bool:
        """Whether anything of a memory is here, also what it was before it was deleted."""
        return memory_id in self._documents or memory_id in self._former

    def memory(self, memory_id: str) -> Memory | None:
        """Return a memory that can be recalled, also a superseded or expired one; None if it is not there."""
        document = self._documents.get(memory_id)
        return None if document is None else unpack(self._records[document])

    def row_of(self, memory_id: str) -> int | None:
        """Return the document of a memory that can be recalled; None if it is not there."""
        return self._documents.get(memory_id)

    def facts(self, ids: Iterable[str], now: datetime) -> Facts:
        """Return what the live ones of some memories are chosen by."""
        documents = [self._documents[one] for one in ids if one in self._documents]
        return self.columns.facts(np.array(documents, dtype=np.int64), now)

    def live(self, now: datetime) -> Iterator[Memory]:
        """Yield every memory that is live now, oldest first; none that is erased before its turn comes."""
        memories = map(self.memory_at, np.flatnonzero(self.mask(EVERY_KIND, now)).tolist())
        return (memory for memory in memories if memory is not None)

    def live_count(self, now: datetime) -> int:
        """How many live memories there are."""
        return int(np.count_nonzero(self.mask(EVERY_KIND, now)))

    def memories(self, documents: Iterable[int]) -> list[Memory]:
        """Return the memories of some documents, oldest first."""
        return sorted((unpack(self._records[n]) for n in documents), key=lambda memory: memory.create_time)

    def corpus(self, terms: Sequence[str]) -> CorpusStats:
        """Return what BM25 needs of this scope; hidden memories count as text, deleted ones do not."""
        alive = self.columns.alive.view(self.count) if self._dead else None
        frequencies = self.postings.frequencies(terms, self.count, alive)
        return CorpusStats(len(self), self._length_sum, self._length_square_sum, frequencies)

    def mask(self, wanted: Filter, now: datetime) -> NDArray[np.bool_]:
        """
        Return which documents pass, of those that are there now: Filter.admits, column by column.

        `alive` is copied first and is the last column to grow; a search in another thread sees a memory that is being
        updated in its old or in its new form.
        """
        with self._moving:
            alive: NDArray[np.bool_] = self.columns.alive.view().copy()
        return self.columns.mask(alive, wanted, now)

    def said(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some documents are of kind EPISODE: messages, and what was stored as one."""
        said: NDArray[np.bool_] = self.columns.kinds.view()[rows] == KIND_CODES[Kind.EPISODE]
        return said

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
        kinds = self.columns.kinds.view()
        statements = [row for row in rows if kinds[row] in STATEMENT_CODES]
        if self.vectors is None or len(statements) < 2:  # noqa: PLR2004  a pair
            return []
        rows_in_order = np.array(sorted(statements), dtype=np.int64)
        chosen = rows_in_order[np.argsort(self.columns.created.view()[rows_in_order], kind="stable")]
        older = np.tril(similarities(self.vectors.rows(chosen)), -1)  # of each its cosines with those before it
        return [
            (int(chosen[n]), [int(chosen[m]) for m in np.argsort(-older[n], kind="stable") if older[n, m] >= floor])
            for n in np.flatnonzero(older.max(axis=1) >= floor)
        ]

    def says(self, digest: bytes) -> tuple[int, ...]:
        """Return the documents, dead ones too, that say a text of this digest."""
        return self.listings.texts.get(digest, ())

    def _partners(self, row: int) -> set[int]:
        """Return the documents that a document contests; -1 for one that is not here."""
        record = self._records[row]
        links = () if record is ERASED else unpack(record).contested_with
        return {self._documents.get(partner, -1) for partner in links}

    def follows(self, row: int, other: int) -> bool:
        """Whether the second document is the newer one and of no less trust."""
        created, trusts = self.columns.created.view(), self.columns.trusts.view()
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
