"""The messages of one owner, read in one transaction: what an index of them is built from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from memoryd.errors import StoreDamaged
from memoryd.model.batch import Batch, VectorBatch, VectorsWanted
from memoryd.model.commits import Snapshot
from memoryd.model.scope import Owner
from memoryd.store.duckdb.long_texts import CALLS, CONTENT, PIECES_MISSING, TERMS, select_pieces, texts_of, with_calls
from memoryd.store.duckdb.pieces import (
    WEIGHT,
    Query,
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
from memoryd.store.loading import MessageBatches, Rows

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
MOST_VECTORS = 1024  # that are read at a time: with those of tokens up to 36 MB


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
    vectors = _vectors(query, owner, dimensions, wanted) if wanted.texts else None
    loading = MessageBatches(owner, known.numbers, vectors, wanted)
    for first, last in known.windows():
        sql = apart(
            TEXTS, "thread, id, number", "messages", f"{where} AND number >= ? AND number <= ?", key="thread, id"
        )
        columns = in_order(query(sql, [*params, first, last] * 2), "number")
        values = {name: column.tolist() for name, column in columns.items()}
        _put_long_texts(query, values)
        yield loading.batch(values, integers(columns["number"]), np.asarray(columns["trust"], dtype=np.uint8))


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
