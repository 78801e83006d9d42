"""The messages of one owner, read in one transaction: what an index of them is built from."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import psycopg

from memoryd.model.batch import Batch, VectorBatch, VectorsWanted
from memoryd.model.commits import Snapshot
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.store.loading import MessageBatches, Rows
from memoryd.store.postgres.columns import blobs_of, integers_of, one_row, rows_in, times_of
from memoryd.store.postgres.connect import Row
from memoryd.store.postgres.statements import MESSAGES, owner_key

__all__ = ["read_messages"]

T = TypeVar("T")
Connect = Callable[[], psycopg.Connection[Row]]
TEXTS = ("thread_id", "id", "content", "details", "grant_id", "traits", "terms")
READ = (integers_of, integers_of, times_of)
MOST_VECTORS = 1024  # that are read at a time: with those of tokens up to 36 MB
_WEIGHTS = {trust.value: trust.weight for trust in Trust}


def read_messages(connect: Connect, owner: Owner, build: Callable[[Snapshot], T]) -> T:
    """Call build with a snapshot of an owner's messages, and return its result; see `snapshot.read_memories`."""
    con, key = connect(), owner_key(owner)
    with con.transaction():
        head = con.execute("SELECT commit_seq FROM heads WHERE owner_id = %s AND feed = %s", [key, MESSAGES]).fetchone()
        known = rows_in(con, "number", "messages WHERE owner_id = %s", [key])
        return build(
            Snapshot(
                head[0] if head else 0,
                len(known.numbers),
                int(known.text_bytes.sum()),
                partial(_batches, con, owner, known),
                token_bytes=int(known.token_bytes.sum()),
                read_vectors=partial(_vectors, connect, key),
            )
        )


class _Told(NamedTuple):
    """What the details of a message tell that ranking and filters ask for."""

    role: str
    session_id: str
    name: str
    is_marked: bool
    weight: int


class _Details(dict[str, _Told]):
    """What details tell; each text of them is read once, as those of a session are mostly alike."""

    def __missing__(self, text: str) -> _Told:
        held: dict[str, Any] = json.loads(text)
        is_marked = "tool_calls" in held or "input_source" in held
        told = self[text] = _Told(
            held["role"], held.get("session_id", ""), held.get("name", ""), is_marked, _WEIGHTS[held["trust"]]
        )
        return told


def _batches(con: psycopg.Connection[Row], owner: Owner, known: Rows, wanted: VectorsWanted) -> Iterator[Batch]:
    """Yield an owner's messages, oldest first, in windows of their numbers."""
    key = owner_key(owner)
    vectors = _vectors(lambda: con, key, wanted) if wanted.texts else None
    loading = MessageBatches(owner, known.numbers, vectors, wanted)
    numbers = ("number", "seq", "create_time")
    columns = ", ".join(f"array_agg({sql})" for sql in (*TEXTS, *numbers))
    rows = "messages WHERE owner_id = %s AND number >= %s AND number <= %s ORDER BY number"
    details = _Details()
    for first, last in known.windows():
        found = one_row(
            con,
            f"SELECT {columns} FROM (SELECT * FROM {rows}) AS m",
            [key, first, last],
            len(TEXTS),
        )
        values: dict[str, list[Any]] = dict(zip(TEXTS, found, strict=False))
        order, seqs, created = (read(one) for read, one in zip(READ, found[len(TEXTS) :], strict=True))
        told = [details[text] for text in values["details"]]
        values |= {
            "seq": seqs.tolist(),
            "created": created.tolist(),
            "role": [one.role for one in told],
            "session_id": [one.session_id for one in told],
            "name": [one.name for one in told],
            "marked": [one.is_marked for one in told],
        }
        yield loading.batch(values, order, np.array([one.weight for one in told], dtype=np.uint8))


def _vectors(connect: Connect, key: uuid.UUID, wanted: VectorsWanted) -> Iterator[VectorBatch]:
    """Yield the vectors of an owner's messages that have any, by their numbers."""
    if not wanted.dimensions:
        return
    tokens = "array_agg(token_vectors)" if wanted.tokens else "NULL"
    sql = (
        "SELECT array_agg(number), string_agg(vector, ''::bytea),"
        f" CASE WHEN count(window_vectors) > 0 THEN array_agg(window_vectors) END, {tokens}"
        " FROM (SELECT * FROM message_vectors WHERE owner_id = %s AND number > %s AND fingerprint = %s"
        f" AND length(vector) = %s ORDER BY number LIMIT {MOST_VECTORS}) AS next_ones"
    )
    after = 0
    while True:
        con = connect()
        with con.transaction():
            found = one_row(con, sql, [key, after, wanted.fingerprint, 4 * wanted.dimensions], 0)
        order = integers_of(found[0])
        if not len(order):
            return
        after = int(order[-1])
        held = np.frombuffer(found[1], dtype="<f4").reshape(-1, wanted.dimensions)
        windows = [(int(order[n]), codes) for n, codes in enumerate(blobs_of(found[2])) if codes]
        yield VectorBatch(order, held, blobs_of(found[3]) if wanted.tokens else [], windows)
