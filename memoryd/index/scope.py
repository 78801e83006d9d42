"""
The index of one owner: what can be recalled, and what it is found by.

It holds live, superseded and expired memories; a filter is a mask inside the search. One thread changes it; others
may search it at the same time, each over the documents that were there when it began.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from memoryd.index.analysis import analyse
from memoryd.index.columns import KIND_CODES, Columns, Facts, Row
from memoryd.index.embedded import EmbeddedTexts
from memoryd.index.listings import Listings
from memoryd.index.loading import Loading, batch_of
from memoryd.index.lookup import Ids
from memoryd.index.postings import CorpusStats, Postings
from memoryd.index.records import Records
from memoryd.index.sequences import Sequences
from memoryd.index.traits import Traits, traits_of
from memoryd.index.vectors import Packed
from memoryd.index.windows import Windows
from memoryd.knowledge.read_statement import Reader
from memoryd.model import limits
from memoryd.model.batch import Batch, VectorBatch
from memoryd.model.change import Embedding, Entry
from memoryd.model.commits import Recalled
from memoryd.model.entity import Entity
from memoryd.model.filter_terms import filter_terms_of
from memoryd.model.memory import Kind, Memory
from memoryd.model.query import Filter

__all__ = ["ScopeIndex"]

EVERY_KIND = Filter(kinds=frozenset(Kind))
BYTES_A_DOCUMENT = 720  # records' and dictionaries' overhead a document, measured


class ScopeIndex:
    """Documents 0 … count − 1 of one owner, in the order in which they came."""

    def __init__(
        self,
        chunks: Iterable[Batch | Sequence[Entry]] = (),
        *,
        dimensions: int = 0,
        fingerprint: str = "",
        entities: Iterable[Entity] = (),
        tombstones: Iterable[bytes] = (),
        with_tokens: bool = True,
        is_large: bool = False,
    ) -> None:
        """
        Index entries, chunk after chunk; vectors with another fingerprint than this one are left out.

        Without tokens it takes a quarter of the memory, and what compares them counts nothing. The vectors of a large
        one take two bytes a number, and may come later; see `fill`.
        """
        self.reader = Reader()
        self.tombstones = set(tombstones)
        self.commit_seq = 0
        self.dimensions, self.fingerprint = dimensions, fingerprint
        self._former: dict[str, tuple[int, ...]] = {}
        """By id: the documents, dead now, that were the memory before it was updated or deleted."""
        self._former_links: dict[str, frozenset[str]] = {}
        """By id, of those that had links: the linked ids."""
        self._contested: set[int] = set()
        self._moving = threading.Lock()  # held while a memory is between its old and its new place
        loading = Loading(dimensions, with_tokens=with_tokens)
        for chunk in chunks:
            if isinstance(chunk, Batch):
                loading.add(chunk)
            else:
                loading.add(batch_of(chunk, dimensions=dimensions, fingerprint=fingerprint))
        self.people = loading.people(entities)
        self._embedded = EmbeddedTexts(
            loading, dimensions=dimensions, fingerprint=fingerprint, with_tokens=with_tokens, is_large=is_large
        )
        self.vectors, self.window_vectors = self._embedded.vectors, self._embedded.windows
        self.tokens, self.with_tokens = self._embedded.tokens, with_tokens
        self.postings = Postings(loading.postings)
        self.windows = Windows(loading.windows)
        self.columns = Columns(loading.columns)
        self.traits = Traits(loading.traits)
        self.listings = Listings(loading.digests)
        self.sequences = Sequences(loading.sequences)
        self._records = Records(loading.records)
        self._documents = Ids(loading.ids, partial(_is_now, self.columns, self._records))
        for document, key in loading.keys:
            self.listings.add_key(document, key)
        for document, memory in loading.noted:
            self.listings.add_claims(document, memory)
            if memory.contested_with:
                self._contested.add(document)
        lengths = self.postings.lengths.view().astype(np.int64)
        self._length_sum = int(lengths.sum())
        self._length_square_sum = int((lengths * lengths).sum())
        self._dead = 0
        self.count = loading.count

    def _register(self, document: int, memory: Memory) -> Row:
        """Enter a memory into everything that is no array; return its row of the columns."""
        self._records.append(memory)
        self._documents.put(memory.id, document)
        self.listings.add(document, memory)
        self.people.add(memory)
        self.sequences.append(document, memory)
        self.traits.append(document, traits_of(memory))
        if memory.contested_with:
            self._contested.add(document)
        return self.columns.register(document, memory)

    def __len__(self) -> int:
        """How many memories it holds."""
        return self.count - self._dead

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies, estimated."""
        held = self.postings.nbytes + self.windows.nbytes + self.columns.nbytes
        held += self.reader.nbytes + self.people.nbytes + self._embedded.nbytes
        held += self.sequences.nbytes + self.traits.nbytes + self.listings.nbytes
        return held + self._records.nbytes + self._documents.nbytes

    @property
    def is_whole(self) -> bool:
        """Whether no vectors are to come; those of a large scope come when it is searched by words already."""
        return self._embedded.is_whole

    @property
    def lacks_vectors(self) -> bool:
        """Whether most memories have no vector of the model in use, or vectors are still to come."""
        return self.vectors is not None and (not self.is_whole or 2 * self.vectors.missing > len(self))

    # --- changing it (one thread) ---

    def insert(self, entry: Entry) -> None:
        """Add a memory at the end."""
        row = self._register(self.count, entry.memory)
        self._embedded.append(entry)
        length = self.postings.append(entry.terms)
        self.windows.append(self.count, entry.terms)
        self._length_sum += length
        self._length_square_sum += length * length
        self.columns.append(row)
        self.count += 1

    def update(self, entry: Entry) -> None:
        """Replace a memory by its newer form; a deleted one leaves the index, a restored one enters it again."""
        entry = self._embedded.kept(entry, self._documents.get(entry.memory.id))
        with self._moving:
            self.remove(entry.memory.id)
            if entry.memory.delete_time is None:
                self.insert(entry)

    def embed(self, embedding: Embedding) -> None:
        """Take a new vector of a memory; one that is not there is fine, and another message in its place."""
        document = self._documents.get(embedding.memory_id)
        if document is None:
            return
        memory = self._records.once(document) if embedding.message_id else None
        if memory is None or embedding.message_id in memory.source.message_ids:
            self._embedded.put(document, embedding)

    def fill(self, batch: VectorBatch, rows: Packed) -> None:
        """Take vectors of memories that were loaded without; see `EmbeddedTexts.fill`."""
        self._embedded.fill(batch, rows, self.columns.alive.view(), self._now_at)

    def _now_at(self, document: int) -> int | None:
        """Return the document that the memory of a dead one is now."""
        memory = self._records.once(document)
        return None if memory is None else self._documents.get(memory.id)

    def end_filling(self) -> None:
        """Note that it has all vectors now."""
        self._embedded.end_filling()

    def remove(self, memory_id: str) -> None:
        """Forget a memory; one that is not there is fine."""
        document = self._documents.pop(memory_id)
        if document is None:
            return
        self._former[memory_id] = (*self._former.get(memory_id, ()), document)
        memory = self._records.once(document)
        if memory is None:  # never: what is erased is removed first
            raise KeyError(memory_id)
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

        With them goes what others were before, where it names those who are erased.
        """
        if not ids:
            return
        self.reader.forget()
        for memory_id in ids:
            self.remove(memory_id)
        linked = {one for one, links in self._former_links.items() if not links.isdisjoint(ids)}
        here = {memory_id for memory_id in linked if self._documents.get(memory_id) is not None}
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
            self._records.erase(row)
        self._embedded.erase(gone)
        self.traits.erase(gone)
        self.postings.erase(gone)
        self.windows.erase(gone)

    def _unlist(self, rows: Collection[int]) -> NDArray[np.int64]:
        """Take documents out of the lists by text, key, claim and term, by what their records say; return them."""
        gone = np.array(sorted(rows), dtype=np.int64)
        terms: set[str] = set()
        for row in rows:
            memory = self._records.once(row)
            if memory is not None:
                terms.update(filter_terms_of(memory))
                self.listings.remove(row, memory)
        self.columns.unlist(gone, terms)
        return gone

    def _renew_former(self, memory_id: str) -> None:
        """Let what a memory was before be what it is now, for searches under way that have found it there."""
        document = self._documents.get(memory_id)
        memory = None if document is None else self._records.once(document)
        if document is None or memory is None:
            return
        self._unlist(self._former[memory_id])  # while the old records still say where they are listed
        for row in self._former[memory_id]:
            self._records.copy(row, document)
        if memory.links:
            self._former_links[memory_id] = memory.links
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
            self._records.note_recalls(document, recalled)
            self.columns.recalls.view()[document] += count

    # --- asking it ---
    def same_text(self, digest: bytes, now: datetime) -> list[Memory]:
        """Return the first 16 live memories of a text digest, oldest first."""
        documents = (document for document in self.listings.of_text(digest) if self.columns.is_live(document, now))
        return self.memories(islice(documents, limits.MOST_ALIKE))

    def of_key(self, key: str, now: datetime) -> list[Memory]:
        """Return the live memory of that key: none or one."""
        named = self._documents.get(key)  # of messages key and id are one
        listed = self.listings.keys.get(key, () if named is None else (named,))
        memories = self.memories(document for document in listed if self.columns.is_live(document, now))
        return [memory for memory in memories if memory.key == key]

    def with_words(self, terms: Sequence[str], *, limit: int) -> list[Memory]:
        """Return the newest memories that can be recalled, hidden ones too, and hold all of some words."""
        found = self.postings.holding(terms, self.count)
        alive = found[self.columns.alive.view(self.count)[found]].tolist()
        return self.memories(sorted(alive, reverse=True)[:limit])

    def holds(self, memory_id: str) -> bool:
        """Whether anything of a memory is here, also what it was before it was deleted."""
        return memory_id in self._former or self._documents.get(memory_id) is not None

    def memory(self, memory_id: str) -> Memory | None:
        """Return a memory that can be recalled, also a superseded or expired one; None if it is not there."""
        document = self._documents.get(memory_id)
        return None if document is None else self._records.memory(document)

    def row_of(self, memory_id: str) -> int | None:
        """Return the document of a memory that can be recalled; None if it is not there."""
        return self._documents.get(memory_id)

    def facts(self, ids: Iterable[str], now: datetime) -> Facts:
        """Return what the live ones of some memories are chosen by."""
        documents = [document for one in ids if (document := self._documents.get(one)) is not None]
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
        memories = (self._records.memory(document) for document in documents)
        return sorted((memory for memory in memories if memory is not None), key=lambda memory: memory.create_time)

    def corpus(self, terms: Sequence[str], *, with_vouched: bool = False) -> CorpusStats:
        """Return what BM25 needs of this scope; hidden memories count as text, deleted ones do not."""
        count = self.count  # read once, as another thread may be appending
        alive = self.columns.alive.view(count)
        frequencies = self.postings.frequencies(terms, count, alive if self._dead else None)
        vouched: tuple[int, ...] = ()
        if with_vouched:
            vouched = self.postings.frequencies(terms, count, alive & self.columns.trusted(count))
        return CorpusStats(len(self), self._length_sum, self._length_square_sum, frequencies, vouched=vouched)

    def mask(self, wanted: Filter, now: datetime) -> NDArray[np.bool_]:
        """
        Return which documents pass, of those that are there now: Filter.admits, column by column.

        `alive` is copied first and is the last column to grow; a search in another thread sees a memory that is being
        updated in its old or in its new form.
        """
        with self._moving:
            alive: NDArray[np.bool_] = self.columns.alive.view().copy()
        return self.columns.mask(alive, wanted, now)

    def naming(self, name: str, count: int) -> NDArray[np.bool_]:
        """Return which of the first documents hold a name, of those that no one is known to have said."""
        held = np.zeros(count, dtype=np.bool_)
        held[self.postings.holding(analyse(name), count)] = True
        return held & self.traits.nobody_said(count)

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

    def says(self, digest: bytes) -> tuple[int, ...]:
        """Return the documents, dead ones too, that say a text of this digest."""
        return self.listings.of_text(digest)

    def _partners(self, row: int) -> set[int]:
        """Return the documents that a document contests."""
        memory = self._records.memory(row)
        partners = () if memory is None else memory.contested_with
        return {document for partner in partners if (document := self._documents.get(partner)) is not None}

    def memory_at(self, row: int) -> Memory | None:
        """Return the memory of a document; None if it was erased meanwhile."""
        return self._records.memory(row)


def _is_now(columns: Columns, records: Records, document: int, memory_id: str) -> bool:
    """Whether a document is a memory, and not what it was before an update."""
    return bool(columns.alive.view()[document]) and records.has_id(document, memory_id)
