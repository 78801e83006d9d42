"""Beside which statements of a scope a new one is judged."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from memoryd.index.scope import ScopeIndex
from memoryd.model.memory import Memory
from memoryd.model.query import STATEMENTS

__all__ = ["neighbours"]


def neighbours(
    index: ScopeIndex,
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
    mask = index.mask(STATEMENTS, now)
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
