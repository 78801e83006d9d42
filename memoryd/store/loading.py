"""How a scope is loaded, in whatever engine: by windows of rows that fit into memory, as batches for an index."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.model import limits
from memoryd.model.batch import NEVER, Batch, Provenance, Times, VectorBatch, VectorsWanted
from memoryd.model.conversation import Role, message_key
from memoryd.model.filter_terms import filter_terms_of
from memoryd.model.memory import Kind, Memory
from memoryd.model.recalled_text import without_recalled
from memoryd.model.scope import Owner
from memoryd.model.validation import text_digest
from memoryd.store.conversation_rows import message_of
from memoryd.store.rows import SEPARATOR, datetime_of

__all__ = ["FacetTexts", "MessageBatches", "Rows"]

MOST_ROWS = 4096  # that a load holds at a time; others wait for 6 ms while they become objects
MOST_BYTES = 8 << 20  # of them: words may take ten times as long as the text that they are read of
MOST = limits.MAX_CONTENT_BYTES
MESSAGE = ("thread_id", "id", "seq", "content", "details", "created", "grant_id")


class Rows(NamedTuple):
    """The rows of an owner, by rising numbers: arrays of one length."""

    numbers: NDArray[np.int64]
    """What the store finds them by, so that windows of them are found by zone maps."""
    text_bytes: NDArray[np.int64]
    """Of texts and their words, roughly."""
    token_bytes: NDArray[np.int64]
    """Of the vectors of their tokens, roughly."""

    def windows(self) -> Iterator[tuple[int, int]]:
        """
        Yield the first and the last numbers of windows of MOST_ROWS and MOST_BYTES, or of one row that is longer.

        The vectors of tokens are at most 16 times as long.
        """
        ends = np.cumsum(self.text_bytes)
        start = 0
        while start < len(ends):
            before = int(ends[start - 1]) if start else 0
            fitting = int(np.searchsorted(ends, before + MOST_BYTES, side="right"))
            end = max(start + 1, min(start + MOST_ROWS, fitting))
            yield int(self.numbers[start]), int(self.numbers[end - 1])
            start = end


class FacetTexts(dict[str, tuple[str, ...]]):
    """The filter terms of the columns `facets` that were met; each is read once."""

    def __missing__(self, text: str) -> tuple[str, ...]:
        terms = self[text] = tuple(json.loads(one) for one in text.split(SEPARATOR) if one)
        return terms


class MessageBatches:
    """Makes batches of the messages of an owner, window by window."""

    def __init__(
        self, owner: Owner, numbers: NDArray[np.int64], vectors: Iterator[VectorBatch] | None, wanted: VectorsWanted
    ) -> None:
        """Take the numbers of all messages, and their vectors where the batches shall have them."""
        self._held = None if vectors is None else _HeldVectors(numbers, vectors, wanted)
        self._facets: dict[tuple[str, str, str], tuple[str, ...]] = {}
        self._read = partial(_memory_of, owner)
        self._start = 0

    def batch(self, values: Mapping[str, list[Any]], numbers: NDArray[np.int64], trusts: NDArray[np.uint8]) -> Batch:
        """
        Return the next messages, by rising numbers.

        `values` are columns: those of MESSAGE, `traits`, `terms`, `role`, `session_id`, `name`, and `marked`: whether a
        message has more than its plain text.
        """
        read, held, start = self._read, self._held, self._start
        keys = list(map(message_key, values["thread_id"], values["seq"]))
        rows = list(zip(keys, *(values[name] for name in MESSAGE), strict=True))
        texts = [
            read(row).content if marked or role == Role.TOOL.value or len(content) > MOST else _plain(content)
            for row, content, marked, role in zip(
                rows, values["content"], values["marked"], values["role"], strict=True
            )
        ]
        places = list(zip(values["role"], values["thread_id"], values["session_id"], strict=True))
        for n, place in enumerate(places):
            if place not in self._facets:
                self._facets[place] = tuple(filter_terms_of(read(rows[n])))
        size = len(keys)
        self._start += size
        created, never = np.array(values["created"], dtype=np.int64), np.full(size, NEVER, dtype=np.int64)
        return Batch(
            order=numbers,
            ids=keys,
            rows=rows,
            read=read,
            digests=np.frombuffer(b"".join(map(text_digest, texts)), dtype="<u8").reshape(-1, 2),
            keys=keys,
            kinds=[Kind.EPISODE.value] * size,
            times=Times(created, created, never, never),
            trusts=trusts,
            confidences=np.ones(size, dtype=np.float64),
            recalls=np.zeros(size, dtype=np.int64),
            facets=[self._facets[place] for place in places],
            traits=values["traits"],
            characters=np.fromiter(map(len, texts), dtype=np.int64, count=size),
            noted=[],
            said=[
                (n, Provenance(thread_id, session_id, name or ("" if role == Role.USER.value else role), role))
                for n, ((role, thread_id, session_id), name) in enumerate(zip(places, values["name"], strict=True))
            ],
            terms=values["terms"],
            vectors=None if held is None else held.vectors[start : start + size],
            tokens=None if held is None else held.tokens[start : start + size],
            windows=[] if held is None else held.windows_of(start, size),
        )


def _plain(content: str) -> str:
    """Return what `Message.said` is of a message without tools and sources."""
    return without_recalled(content.strip())


class _HeldVectors:
    """The vectors of all messages of a scope that is not large."""

    def __init__(self, numbers: NDArray[np.int64], pieces: Iterator[VectorBatch], wanted: VectorsWanted) -> None:
        self.vectors = np.zeros((len(numbers), wanted.dimensions), dtype=np.float32)
        self.tokens = [b""] * len(numbers)
        self._windows: dict[int, bytes] = {}
        for piece in pieces:
            for order, codes in piece.windows:
                place = int(np.searchsorted(numbers, order))
                if place < len(numbers) and numbers[place] == order:
                    self._windows[place] = self._windows.get(place, b"") + codes
            places = np.minimum(np.searchsorted(numbers, piece.order), len(numbers) - 1)
            known = numbers[places] == piece.order
            self.vectors[places[known]] = piece.vectors[known]
            for n in np.flatnonzero(known).tolist() if wanted.tokens else ():
                self.tokens[places[n]] = piece.tokens[n]

    def windows_of(self, start: int, size: int) -> list[tuple[int, bytes]]:
        """Return the vectors of later windows of some messages, by their place among them."""
        places = range(start, start + size)
        return [(n, self._windows[place]) for n, place in enumerate(places) if place in self._windows]


def _memory_of(owner: Owner, row: Sequence[Any]) -> Memory:
    """Return the message of a row as a memory: its key, then MESSAGE."""
    _, thread_id, message_id, seq, content, details, created, grant_id = row
    scope = owner.scope
    return message_of((
        owner.agent_id, scope.user_id, scope.chat_id, thread_id, message_id, seq, content, details, "",
        datetime_of(created), grant_id,
    )).as_memory()  # fmt: skip
