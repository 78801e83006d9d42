"""The recallable memories of one owner, read in one transaction: what an index is built from."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import psycopg
from numpy.typing import NDArray

from memoryd.model.batch import NEVER, Batch, Provenance, Times, VectorBatch, VectorsWanted
from memoryd.model.commits import Snapshot
from memoryd.model.memory import Kind, Memory
from memoryd.model.memory_columns import PLAIN_DETAILS, memory_of
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.store import rows
from memoryd.store.loading import FacetTexts, Rows
from memoryd.store.postgres.columns import blobs_of, integers_of, one_row, rows_in, times_of
from memoryd.store.postgres.connect import Row
from memoryd.store.postgres.statements import MEMORIES, owner_key

__all__ = ["read_memories"]

T = TypeVar("T")
Connect = Callable[[], psycopg.Connection[Row]]
TEXTS = ("id", "content", "kind", "key", "grant_id", "details", "facets", "traits", "terms")
TIMES = ("create_time", "event_time", "expire_time", "supersede_time")  # as batch.Times tells them
_OF_TIMES = [f"coalesce(m.{name}, 'infinity')" for name in TIMES]
_OF_USES = [
    "coalesce(m.recall_count, 0)",
    *(f"coalesce(m.{name}, 'infinity')" for name in ("recall_time", "trusted_recall_time")),
]
BETWEEN = (
    "m.owner_id = %s AND m.create_time >= 'epoch'::timestamp + %s * interval '1 microsecond'"
    " AND m.create_time <= 'epoch'::timestamp + %s * interval '1 microsecond' AND m.delete_time IS NULL"
)
IN_ORDER = (
    "(SELECT m.*, u.recall_time, u.recall_count, u.trusted_recall_time FROM memories AS m LEFT JOIN uses AS u"
    f" ON u.owner_id = m.owner_id AND u.memory_id = m.id WHERE {BETWEEN} ORDER BY m.create_time, m.id) AS m"
)
"""The rows of a window in their order, once for all columns: each that is aggregated in an order sorts for itself."""
NOTED = ("mentions", "claims", "contested_with")
SAID = ("thread_id", "session_id", "speaker")  # of the source of what was said
_WEIGHTS = {trust.value: trust.weight for trust in Trust}


def read_memories(connect: Connect, owner: Owner, build: Callable[[Snapshot], T]) -> T:
    """Call build with a snapshot of an owner, and return its result; batches are read while build consumes them."""
    con, key = connect(), owner_key(owner)
    with con.transaction():
        cursor = con.cursor(binary=True)
        head = cursor.execute(
            "SELECT commit_seq FROM heads WHERE owner_id = %s AND feed = %s", [key, MEMORIES]
        ).fetchone()
        known = rows_in(con, "create_time", "memories WHERE owner_id = %s AND delete_time IS NULL", [key], times_of)
        entities = cursor.execute(
            "SELECT id, details, create_time FROM entities WHERE owner_id = %s ORDER BY id", [key]
        ).fetchall()
        stones = cursor.execute("SELECT digest FROM tombstones WHERE owner_id = %s AND NOT is_lifted", [key]).fetchall()
        return build(
            Snapshot(
                head[0] if head else 0,
                len(known.numbers),
                int(known.text_bytes.sum()),
                partial(_batches, con, owner, known),
                [rows.entity_of(owner, *row) for row in entities],
                frozenset(bytes(digest) for (digest,) in stones),
                int(known.token_bytes.sum()),
                partial(_vectors, connect, key, known),
            )
        )


def _columns(wanted: VectorsWanted) -> tuple[list[str], list[object]]:
    """Return what is read of memories m and uses u, each column of a window as one value, and its parameters."""
    columns = [f"array_agg(m.{name})" for name in TEXTS]
    columns += [f"array_agg({sql})" for sql in (*_OF_TIMES, "length(m.content)::int8", *_OF_USES)]
    columns.append("string_agg(decode(m.text_digest, 'hex'), ''::bytea)")
    if not wanted.texts or not wanted.dimensions:
        return columns, []
    is_its, own = "m.fingerprint = %s AND length(m.vector) = %s", [wanted.fingerprint, 4 * wanted.dimensions]
    # vectors are one value: zeros where there is none of the model in use
    columns.append(f"string_agg(CASE WHEN {is_its} THEN m.vector ELSE %s END, ''::bytea)")
    columns.append(
        f"CASE WHEN count(m.window_vectors) > 0 THEN array_agg(CASE WHEN {is_its} THEN m.window_vectors END) END"
    )
    given = [*own, bytes(4 * wanted.dimensions), *own]
    if wanted.tokens:
        columns.append(f"array_agg(CASE WHEN {is_its} THEN m.token_vectors END)")
        given += own
    return columns, given


def _batches(con: psycopg.Connection[Row], owner: Owner, known: Rows, wanted: VectorsWanted) -> Iterator[Batch]:
    """Yield an owner's memories, oldest first."""
    key, (columns, given) = owner_key(owner), _columns(wanted)
    sql = f"SELECT {', '.join(columns)} FROM {IN_ORDER}"
    facets, read = FacetTexts(), partial(memory_of, owner)
    for first, last in known.windows():
        found = one_row(con, sql, [*given, key, first, last], len(TEXTS))
        yield _batch(dict(zip(TEXTS, found, strict=False)), iter(found[len(TEXTS) :]), wanted, facets, read)


def _batch(
    values: Mapping[str, list[Any]],
    rest: Iterator[bytes],
    wanted: VectorsWanted,
    facets: FacetTexts,
    read: Callable[[Sequence[Any]], Memory],
) -> Batch:
    """Return the memories of a window: its texts, and the other columns of `_columns` in their order."""
    times = [times_of(next(rest)) for _ in TIMES]
    characters, counts = integers_of(next(rest)), integers_of(next(rest))
    recalled = [times_of(next(rest)) for _ in range(2)]
    digests = np.frombuffer(next(rest), dtype="<u8").reshape(-1, 2)
    details = [None if told == PLAIN_DETAILS else told for told in values["details"]]
    told = {**values, "details": details, **dict(zip(TIMES, map(_or_none, times), strict=True))}
    none = [None] * len(details)
    stored = [told.get(name, none) for name in rows.TABLE_COLUMNS]
    uses = [_or_none(recalled[0]), [count or None for count in counts.tolist()], _or_none(recalled[1])]
    table = list(zip(*stored, *uses, strict=True))
    judged = _Judged(details, values["kind"])
    vectors, windows, tokens = _vectors_in(rest, len(table), wanted)
    return Batch(
        order=times[0],
        ids=values["id"],
        rows=table,
        read=read,
        digests=digests,
        keys=values["key"],
        kinds=values["kind"],
        times=Times(*times),
        trusts=judged.trusts,
        confidences=judged.confidences,
        recalls=counts,
        facets=[facets[text] for text in values["facets"]],
        traits=values["traits"],
        characters=characters,
        noted=[(n, read(table[n])) for n in judged.noted],
        said=judged.said,
        terms=values["terms"],
        vectors=vectors,
        tokens=tokens,
        windows=windows,
    )


def _vectors_in(
    rest: Iterator[bytes], size: int, wanted: VectorsWanted
) -> tuple[NDArray[np.float32] | None, list[tuple[int, bytes]], list[bytes] | None]:
    """Return the vectors of a window, those of later windows by place, and those of tokens, as far as wanted."""
    if not wanted.texts:
        return None, [], None
    if not wanted.dimensions:
        return np.zeros((size, 0), dtype=np.float32), [], None
    vectors = np.frombuffer(next(rest), dtype="<f4").reshape(-1, wanted.dimensions)
    windows = [(n, codes) for n, codes in enumerate(blobs_of(next(rest))) if codes]
    return vectors, windows, blobs_of(next(rest)) if wanted.tokens else None


def _or_none(times: NDArray[np.int64]) -> list[int | None]:
    return [None if time == NEVER else time for time in times.tolist()]


class _Judged:
    """What `details` say of memories: trust, confidence, who said it; and which of them name, claim or contest."""

    def __init__(self, details: Sequence[str | None], kinds: Sequence[str]) -> None:
        plain = json.loads(PLAIN_DETAILS)
        self.trusts = np.full(len(details), _WEIGHTS[plain["trust"]], dtype=np.uint8)
        self.confidences = np.full(len(details), plain["confidence"], dtype=np.float64)
        self.noted: list[int] = []
        self.said: list[tuple[int, Provenance]] = []
        for n, text in enumerate(details):
            if text is None:  # as most are
                continue
            held = json.loads(text)
            self.trusts[n], self.confidences[n] = _WEIGHTS[held["trust"]], held["confidence"]
            if any(name in held for name in NOTED):
                self.noted.append(n)
            if kinds[n] == Kind.EPISODE.value:
                source = held.get("source") or {}
                thread_id, session_id, speaker = (source.get(name) or "" for name in SAID)
                self.said.append((n, Provenance(thread_id, session_id, speaker, held.get("category") or "")))


def _vectors(connect: Connect, key: uuid.UUID, known: Rows, wanted: VectorsWanted) -> Iterator[VectorBatch]:
    """Yield the vectors of an owner's memories of those times that have any, also when the snapshot is over."""
    columns = ["array_agg(m.create_time)", "string_agg(m.vector, ''::bytea)"]
    columns.append("CASE WHEN count(m.window_vectors) > 0 THEN array_agg(m.window_vectors) END")
    columns += ["array_agg(m.token_vectors)"] * wanted.tokens
    sql = (
        f"SELECT {', '.join(columns)} FROM (SELECT * FROM memories AS m WHERE {BETWEEN} AND m.fingerprint = %s"
        " AND length(m.vector) = %s ORDER BY m.create_time, m.id) AS m"
    )
    for first, last in known.windows():
        con = connect()
        with con.transaction():
            found = one_row(con, sql, [key, first, last, wanted.fingerprint, 4 * wanted.dimensions], 0)
        order = times_of(found[0])
        if not len(order):
            continue
        vectors = np.frombuffer(found[1], dtype="<f4").reshape(-1, wanted.dimensions)
        windows = [(int(order[n]), codes) for n, codes in enumerate(blobs_of(found[2])) if codes]
        yield VectorBatch(order, vectors, blobs_of(found[3]) if wanted.tokens else [], windows)
