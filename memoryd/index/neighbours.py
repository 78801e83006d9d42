"""Which statements of a scope stand next to others: those that a new one is judged next to, and pairs of one shape."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from memoryd.index.columns import KIND_CODES
from memoryd.index.scope import ScopeIndex
from memoryd.index.vectors import similarities
from memoryd.model.memory import Memory
from memoryd.model.query import STATEMENTS
from memoryd.model.times import to_us

__all__ = ["alike", "cosine", "follows", "neighbours"]

STATEMENT_CODES = frozenset(KIND_CODES[kind] for kind in STATEMENTS.kinds)


def neighbours(
    index: ScopeIndex,
    vector: NDArray[np.float32] | None,
    claims: Iterable[tuple[str, str]],
    now: datetime,
    *,
    limit: int,
    floor: float,
    until: datetime | None = None,
) -> list[tuple[Memory, float]]:
    """
    Return the live statements that a new one is judged next to, and their cosines, nearest first.

    They are those that speak of one of its attributes of the same entity ("": of no one), newest first up to
    `limit`, and the `limit` nearest that are not below `floor`. Messages and reflections are no statements. With
    `until`, nothing that was stored later counts.
    """
    mask = index.mask(STATEMENTS, now)
    if until is not None:
        mask = mask & (index.columns.created.view(len(mask)) <= to_us(until))
    spoken: set[int] = set()
    for claim in claims:
        said = (n for n in reversed(index.listings.claims.get(claim, ())) if n < len(mask) and mask[n])
        spoken.update(islice(said, limit))
    rows = {*sorted(spoken)[-limit:]}
    cosines: dict[int, float] = {}
    if vector is not None and index.vectors is not None and len(mask):
        similar = index.vectors.compare(vector, len(mask))
        values = np.where(mask, similar.values, -1.0)
        if len(values) > limit:
            rows.update(np.argpartition(values, -limit)[-limit:].tolist())
        else:
            rows.update(range(len(values)))
        chosen = np.array(sorted(row for row in rows if mask[row]), dtype=np.int64)
        cosines = dict(zip(chosen.tolist(), similar.exact(chosen).tolist(), strict=True))
    found = [(n, cosines.get(n, 0.0)) for n in rows if n in spoken or cosines.get(n, -1.0) >= floor]
    found.sort(key=lambda item: (-item[1], item[0]))
    memories = ((index.memory_at(n), cosine) for n, cosine in found)
    return [(memory, cosine) for memory, cosine in memories if memory is not None]


def alike(index: ScopeIndex, rows: Collection[int], *, floor: float) -> list[tuple[int, list[int]]]:
    """Return statements of these documents, each with the older ones of at least that cosine, nearest first."""
    kinds = index.columns.kinds.view()
    statements = [row for row in rows if kinds[row] in STATEMENT_CODES]
    if index.vectors is None or len(statements) < 2:  # noqa: PLR2004  a pair
        return []
    rows_in_order = np.array(sorted(statements), dtype=np.int64)
    chosen = rows_in_order[np.argsort(index.columns.created.view()[rows_in_order], kind="stable")]
    older = np.tril(similarities(index.vectors.rows(chosen)), -1)  # of each its cosines with those before it
    return [
        (int(chosen[n]), [int(chosen[m]) for m in np.argsort(-older[n], kind="stable") if older[n, m] >= floor])
        for n in np.flatnonzero(older.max(axis=1) >= floor)
    ]


def cosine(index: ScopeIndex, row: int, other: int) -> float:
    """Return the cosine of two documents; 0 where the scope has no vectors."""
    if index.vectors is None:
        return 0.0
    held = index.vectors.rows(np.array([row, other], dtype=np.int64))
    return float(held[0] @ held[1])


def follows(index: ScopeIndex, row: int, other: int) -> bool:
    """Whether the second document is the newer one and of no less trust."""
    created, trusts = index.columns.created.view(), index.columns.trusts.view()
    if (int(created[row]), row) >= (int(created[other]), other):
        return False
    return bool(trusts[other] >= trusts[row])
