"""The messages of one owner, read in one transaction: what an index of them is built from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from memoryd.errors import StoreDamaged
from memoryd.model import limits
from memoryd.model.batch import NEVER, Batch, Provenance, Times, VectorBatch, VectorsWanted
from memoryd.model.commits import Snapshot
from memoryd.model.conversation import Role, message_key
from memoryd.model.filter_terms import filter_terms_of
from memoryd.model.memory import Kind, Memory
from memoryd.model.recalled_text import without_recalled
from memoryd.model.scope import Owner
from memoryd.model.validation import text_digest
from memoryd.store.conversation_rows import message_of
from memoryd.store.duckdb.long_texts import CALLS, CONTENT, PIECES_MISSING, TERMS, select_pieces, texts_of, with_calls
from memoryd.store.duckdb.pieces import (
    WEIGHT,
    Query,
    Rows,
    apart,
    bytes_of,
    in_order,
    integers,
    reading,
    rows_in,
    stacked,
)
from memoryd.store.duckdb.queries import of_owner
from memoryd.store.duckdb.vectors import column_of
from memoryd.store.rows import datetime_of

__all__ = ["WHOLE", "read_episodes"]

T = TypeVar("T")
TEXTS = (
    "thread, thread_id, id, seq, content, details, epoch_us(create_time) AS created, grant_id, traits, terms,"
    " piece_count,"
    f" CASE details->>'$.trust'{WEIGHT} END AS trust, details->>'$.role' AS role,"
    " coalesce(details->>'$.session_id', '') AS session_id, coalesce(details->>'$.name', '') AS name,"
    " contains(details, '\"tool_calls\"') OR contains(details, '\"input_source\"')"
    " OR piece_count > 0 AS marked"
)
WHOLE = "window_vectors IS NULL"  # of a row: the vector of a message, and not those of its later windows
MOST = limits.MAX_CONTENT_BYTES
MOST_VECTORS = 1024  # that are read at a time: with those of tokens up to 36 MB
ROW = ("thread_id", "id", "seq", "content", "details", "created", "grant_id")


def read_episodes(
    cursor: duckdb.DuckDBPyConnection,
    owner: Owner,
    dimensions: Sequence[int],
    query: Query,
    build: Callable[[Snapshot], T],
) -> T:
    """Call build with a snapshot of an owner's messages, and return its result; see `snapshot.read_snapshot`."""
    where, params = of_owner(owner)
    with reading(cursor) as seq:
        known = rows_in(cursor, "number", f"messages WHERE {where}", params)
        within: Query = lambda sql, given: cursor.execute(sql, list(given)).fetchnumpy()  # noqa: E731  of the snapshot
        return build(
            Snapshot(
                seq,
                len(known.numbers),
                int(known.text_bytes.sum()),
                partial(_batches, within, owner, known, dimensions),
                token_bytes=int(known.token_bytes.sum()),
                read_vectors=partial(_vectors, query, owner, dimensions),
            )
        )


def _batches(
    query: Query, owner: Owner, known: Rows, dimensions: Sequence[int], wanted: VectorsWanted
) -> Iterator[Batch]:
    """Yield an owner's messages, oldest first, in windows of their numbers."""
    where, params = of_owner(owner)
    episode = _Held(known.numbers, _vectors(query, owner, dimensions, wanted), wanted) if wanted.texts else None
    facets: dict[tuple[str, str, str], tuple[str, ...]] = {}
    read = partial(_memory_of, owner)
    start = 0
    for first, last in known.windows():
        sql = apart(
            TEXTS, "thread, id, number", "messages", f"{where} AND number >= ? AND number <= ?", key="thread, id"
        )
        columns = in_order(query(sql, [*params, first, last] * 2), "number")
        values = {name: column.tolist() for name, column in columns.items()}
        _put_long_texts(query, values)
        keys = list(map(message_key, values["thread_id"], values["seq"]))
        rows = list(zip(keys, *(values[name] for name in ROW), strict=True))
        texts = [
            read(row).content if marked or role == Role.TOOL.value or len(content) > MOST else _plain(content)
            for row, content, marked, role in zip(
                rows, values["content"], values["marked"], values["role"], strict=True
            )
        ]
        places = list(zip(values["role"], values["thread_id"], values["session_id"], strict=True))
        for n, place in enumerate(places):
            if place not in facets:
                facets[place] = tuple(filter_terms_of(read(rows[n])))
        size = len(keys)
        created, never = integers(columns["created"]), np.full(size, NEVER, dtype=np.int64)
        yield Batch(
            order=integers(columns["number"]),
            ids=keys,
            rows=rows,
            read=read,
            digests=np.frombuffer(b"".join(map(text_digest, texts)), dtype="<u8").reshape(-1, 2),
            keys=keys,
            kinds=[Kind.EPISODE.value] * size,
            times=Times(created, created, never, never),
            trusts=np.asarray(columns["trust"], dtype=np.uint8),
            confidences=np.ones(size, dtype=np.float64),
            recalls=np.zeros(size, dtype=np.int64),
            facets=[facets[place] for place in places],
            traits=values["traits"],
            characters=np.fromiter(map(len, texts), dtype=np.int64, count=size),
            noted=[],
            said=[
                (n, Provenance(thread_id, session_id, name or ("" if role == Role.USER.value else role), role))
                for n, ((role, thread_id, session_id), name) in enumerate(zip(places, values["name"], strict=True))
            ],
            terms=values["terms"],
            vectors=None if episode is None else episode.vectors[start : start + size],
            tokens=None if episode is None else episode.tokens[start : start + size],
            windows=[] if episode is None else episode.windows_of(start, size),
        )
        start += size


def _put_long_texts(query: Query, values: dict[str, list[Any]]) -> None:
    """Put the long texts of messages into the columns of their rows, but for metadata, which is not searched."""
    places = {values["number"][n]: n for n, count in enumerate(values["piece_count"]) if count}
    if not places:
        return
    names = (CONTENT, CALLS, TERMS)
    found = query(*select_pieces(places, names))
    if len(found["number"]) != sum(values["piece_count"]):
        raise StoreDamaged(PIECES_MISSING)
    rows = zip(*(found[name].tolist() for name in ("number", "name", "piece", "text")), strict=True)
    for number, texts in texts_of(rows, names).items():
        place = places[number]
        for name, text in texts.items():
            if name == CALLS:
                values["details"][place] = with_calls(values["details"][place], text)
            else:
                values[name][place] = text


def _plain(content: str) -> str:
    """Return what `Message.said` is of a message without tools and sources."""
    return without_recalled(content.strip())


class _Held:
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


def _vectors(query: Query, owner: Owner, dimensions: Sequence[int], wanted: VectorsWanted) -> Iterator[VectorBatch]:
    """Yield the vectors of an owner's messages that have any, in the order in which they were made."""
    if wanted.dimensions not in dimensions:
        return
    where, params = of_owner(owner)
    numbers = _Numbers(query(f"SELECT number, thread, id FROM messages WHERE {where}", params))
    given = [*params, wanted.fingerprint]
    tokens = "token_vectors" if wanted.tokens else "NULL::BLOB"
    columns = f"{column_of(wanted.dimensions)} AS vector, {tokens} AS tokens"
    for by_commit in _by_commits(
        query, columns, f"message_vectors WHERE {where} AND fingerprint = ? AND {WHOLE}", given
    ):
        order, places = numbers.of(by_commit)
        held = [bytes_of(by_commit["tokens"][n]) for n in places.tolist()] if wanted.tokens else []
        yield VectorBatch(order, stacked(by_commit["vector"][places], wanted.dimensions), held)
    source = f"message_vectors WHERE {where} AND fingerprint = ? AND NOT {WHOLE}"
    for by_commit in _by_commits(query, "window_vectors AS windows", source, given):
        whose = numbers.of_each(by_commit)
        windows = [
            (number, bytes_of(codes)) for number, codes in zip(whose, by_commit["windows"], strict=True) if number
        ]
        none = np.zeros((0, wanted.dimensions), dtype=np.float32)
        yield VectorBatch(np.empty(0, dtype=np.int64), none, [], windows)


def _by_commits(query: Query, columns: str, source: str, given: Sequence[Any]) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield rows of a source with their thread and id, some commits at a time, in the order of commits."""
    commits = np.sort(integers(query(f"SELECT commit_seq FROM {source}", given)["commit_seq"]))
    start = 0
    while start < len(commits):
        first, last = int(commits[start]), int(commits[min(start + MOST_VECTORS, len(commits)) - 1])
        start = int(np.searchsorted(commits, last, side="right"))
        bounds = "commit_seq >= ? AND commit_seq <= ?"
        yield query(f"SELECT thread, id, {columns} FROM {source} AND {bounds}", [*given, first, last])


class _Numbers:
    """The numbers of messages, by thread and id."""

    def __init__(self, columns: dict[str, NDArray[Any]]) -> None:
        hashes = _hashes(columns)
        order = np.argsort(hashes)
        self._hashes, self._numbers = hashes[order], integers(columns["number"])[order]

    def of(self, columns: dict[str, NDArray[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers of the rows that are messages here, rising, each once, and the rows' places."""
        if not len(self._hashes):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        hashes = _hashes(columns)
        at = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        known = np.flatnonzero(self._hashes[at] == hashes)
        numbers, places = np.unique(self._numbers[at[known]], return_index=True)
        return numbers, known[places]

    def of_each(self, columns: dict[str, NDArray[Any]]) -> list[int]:
        """Return the number of each row, 0 of one that is no message here."""
        hashes = _hashes(columns)
        if not len(self._hashes):
            return [0] * len(hashes)
        at = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        found: list[int] = np.where(self._hashes[at] == hashes, self._numbers[at], 0).tolist()
        return found


def _hashes(columns: dict[str, NDArray[Any]]) -> NDArray[np.int64]:
    pairs = zip(columns["thread"].tolist(), columns["id"].tolist(), strict=True)
    return np.fromiter(map(hash, pairs), dtype=np.int64, count=len(columns["id"]))


def _memory_of(owner: Owner, row: Sequence[Any]) -> Memory:
    """Return the message of a row as a memory: its key, then ROW."""
    _, thread_id, message_id, seq, content, details, created, grant_id = row
    scope = owner.scope
    return message_of((
        owner.agent_id, scope.user_id, scope.chat_id, thread_id, message_id, seq, content, details, "",
        datetime_of(created), grant_id,
    )).as_memory()  # fmt: skip
