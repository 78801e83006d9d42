"""
What the model made of the documents of a scope: vectors of texts, of their later windows and of their tokens.

Those of a large scope come piece by piece, while it is searched by words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memoryd.index.loading import Loading
from memoryd.index.token_vectors import TokenVectors
from memoryd.index.vectors import Packed, Vectors
from memoryd.index.window_vectors import WindowVectors
from memoryd.model.batch import VectorBatch
from memoryd.model.change import Embedding, Entry

__all__ = ["EmbeddedTexts"]


class EmbeddedTexts:
    """The vectors of documents 0, 1, 2, …; one thread changes them, others read."""

    def __init__(
        self, loading: Loading, *, dimensions: int, fingerprint: str, with_tokens: bool, is_large: bool
    ) -> None:
        """Take what is loaded; vectors with another fingerprint than this one are never taken."""
        self.fingerprint = fingerprint
        self.with_tokens = with_tokens
        self.vectors: Vectors | None = loading.vectors(is_large=is_large)
        self.windows = WindowVectors(dimensions, loading.window_vectors)
        self.tokens = TokenVectors(loading.tokens)
        self._order = loading.order

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies, estimated."""
        vectors = 0 if self.vectors is None else self.vectors.nbytes
        return vectors + self.windows.nbytes + self.tokens.nbytes

    @property
    def is_whole(self) -> bool:
        """Whether no vectors are to come."""
        return not len(self._order)

    def append(self, entry: Entry) -> None:
        """Add the next document's."""
        document = len(self.tokens)
        is_usable = entry.fingerprint == self.fingerprint
        if self.vectors is not None:
            self.vectors.append(entry.vector if is_usable else None)
            self.windows.put(document, entry.windows if is_usable else b"")
        self.tokens.append(entry.tokens if is_usable and self.with_tokens else b"")

    def kept(self, entry: Entry, document: int | None) -> Entry:
        """Return an entry that brings no vectors with those that its document has."""
        vectors = self.vectors
        if entry.vector is not None or document is None or vectors is None or not vectors.has(document):
            return entry
        return replace(
            entry,
            vector=vectors.row(document),
            tokens=self.tokens.row(document),
            windows=self.windows.row(document),
            fingerprint=self.fingerprint,
        )

    def put(self, document: int, embedding: Embedding) -> None:
        """Give a document others."""
        is_usable = embedding.fingerprint == self.fingerprint
        if self.vectors is not None:
            self.vectors.put(document, embedding.vector if is_usable else None)
            self.windows.put(document, embedding.windows if is_usable else b"")
            if self.with_tokens:
                self.tokens.put(document, embedding.tokens if is_usable else b"")

    def erase(self, documents: NDArray[np.int64]) -> None:
        """Forget those of some documents."""
        for document in documents.tolist():
            self.tokens.put(document, b"")
        self.windows.erase(documents)
        if self.vectors is not None:
            self.vectors.erase(documents)

    def fill(
        self, batch: VectorBatch, rows: Packed, alive: NDArray[np.bool_], now_at: Callable[[int], int | None]
    ) -> None:
        """
        Take vectors of documents that were loaded without; of who has one by now, or is gone, nothing is taken.

        `now_at` returns where the memory of a dead document stands now.
        """
        if self.vectors is None or self.is_whole:
            return
        documents = self._documents(batch.order)
        there = documents >= 0
        there[there] = alive[documents[there]]
        has_one = ~self.vectors.bare(len(self.vectors))
        new = there.copy()
        new[there] = ~has_one[documents[there]]
        self.vectors.fill(documents[there], rows if there.all() else rows.those(there))
        taken = dict(zip(np.flatnonzero(new).tolist(), documents[new].tolist(), strict=True))
        for n in np.flatnonzero((documents >= 0) & ~there).tolist():  # deleted meanwhile, or updated
            document = now_at(int(documents[n]))
            if document is not None and not has_one[document]:
                self.vectors.put(document, batch.vectors[n])
                taken[n] = document
        for n, document in taken.items() if self.with_tokens else ():
            self.tokens.put(document, batch.tokens[n])
        self._fill_windows(batch, {*taken.values()} if len(batch.order) else None, alive, now_at)

    def _fill_windows(
        self,
        batch: VectorBatch,
        taken: set[int] | None,
        alive: NDArray[np.bool_],
        now_at: Callable[[int], int | None],
    ) -> None:
        """Take windows of documents that took their vectors of the batch; of None: that may have some windows."""
        order = np.array([order for order, _ in batch.windows], dtype=np.int64)
        for found, (_, codes) in zip(self._documents(order).tolist(), batch.windows, strict=True):
            document = None if found < 0 else found if alive[found] else now_at(found)
            if document is None or (taken is not None and document not in taken):
                continue
            if codes not in self.windows.row(document):  # those of a message come in several pieces
                self.windows.add(document, codes)

    def _documents(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the documents of some orders, −1 where there is none."""
        documents = np.minimum(np.searchsorted(self._order, order), len(self._order) - 1)
        return np.where(self._order[documents] == order, documents, -1)

    def end_filling(self) -> None:
        """Note that all are there now."""
        self._order = np.zeros(0, dtype=np.int64)
