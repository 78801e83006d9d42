"""The latest document of some scopes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import numpy as np

from memoryd.index.scope import ScopeIndex
from memoryd.model.memory import Memory
from memoryd.model.query import Filter

__all__ = ["newest"]


def newest(indexes: Iterable[ScopeIndex], wanted: Filter, now: datetime) -> Memory | None:
    """Return the latest that passes a filter, of the highest trust that there is; None if nothing passes."""
    best: tuple[int, int, ScopeIndex, int] | None = None
    for index in indexes:
        rows = np.flatnonzero(index.mask(wanted, now))
        if len(rows):
            trusts, created = index.columns.trusts.view()[rows], index.columns.created.view()[rows]
            n = int(np.lexsort((created, trusts))[-1])
            one = (int(trusts[n]), int(created[n]), index, int(rows[n]))
            best = one if best is None or one[:2] > best[:2] else best
    return None if best is None else best[2].memory_at(best[3])
