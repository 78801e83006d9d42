"""The leg of a search that says how well each document's time fits the days that a question names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memoryd.index.scope import ScopeIndex
from memoryd.knowledge.grammar.dates import Days

__all__ = ["FEW_MEMORIES", "time_fit"]

Floats = NDArray[np.float32]

RARE_SHARE = 0.9  # days that hold more of what is searched tell nothing apart …
FEW_MEMORIES = 10  # … where there is more than so much: of one memory the day may be all that answers
FADE_DAYS = 3.0  # beyond the days that are named a memory's time counts e times less for so many
BESIDE, FORGOTTEN_DAYS = 0.8, 30  # of it, where it is not the day itself (.6 is no better); beyond which it is nothing


def time_fit(
    index: ScopeIndex, days: Sequence[Days], mask: NDArray[np.bool_], trusted: NDArray[np.bool_]
) -> Floats | None:
    """Return how well each document's time fits the days; None where they tell nothing apart."""
    if not days:
        return None
    count = len(mask)
    own = index.traits.days(count)
    distance = np.full(count, FORGOTTEN_DAYS + 1, dtype=np.int32)
    for first, last in days:
        distance = np.minimum(distance, np.maximum(np.maximum(first - own, own - last), 0))
    inside = int(np.count_nonzero(mask & (distance == 0)))
    judged = mask & trusted if (mask & trusted).any() else mask
    fits = np.where(distance <= FORGOTTEN_DAYS, np.exp(distance * np.float32(-1 / FADE_DAYS)), 0).astype(np.float32)
    fits[distance > 0] *= np.float32(BESIDE)
    searched = int(np.count_nonzero(judged))
    if searched > FEW_MEMORIES and np.count_nonzero(judged & (distance == 0)) >= RARE_SHARE * searched:
        return None
    documents, starts, ends = index.traits.named_days(count)
    shared = np.zeros(len(documents), dtype=np.float32)
    for first, last in days:
        overlap = np.minimum(ends, last) - np.maximum(starts, first) + 1
        shared = np.maximum(shared, np.maximum(overlap, 0) / np.maximum(ends - starts + 1, 1).astype(np.float32))
    if not inside and not (mask[documents] & (shared > 0)).any():
        return None
    if not inside:
        fits[:] = 0
    np.maximum.at(fits, documents, shared)
    return fits
