"""What an index is asked, and the facts that it answers with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memoryd.model.query import Filter

if TYPE_CHECKING:
    from memoryd.index.scope import ScopeIndex

__all__ = ["Candidate", "Question", "Weights"]


@dataclass(frozen=True, slots=True)
class Weights:
    """What a place is worth: the weighted sum of the legs, less `trust_step` for each class of trust below the best."""

    vector: float
    keyword: float
    trust_step: float = 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """Which documents are candidates: those that pass the filter, by the weights, the best `depth` of them."""

    terms: tuple[str, ...]
    vector: NDArray[np.float32] | None
    filter: Filter
    now: datetime
    depth: int
    weights: Weights
    min_score: float = 0.0
    least_trust: int = 0
    """Memories whose trust weighs less are left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One document that may become a hit."""

    place: float
    """What the order goes by: the score, less for lower trust."""
    score: float
    """The weighted sum of the legs, to six digits."""
    create_us: int
    index: ScopeIndex
    row: int
    similarity: float
    """Cosine of memory and question, −1–1."""
    lexical: float
    """BM25 over the sum of the idf of the question's terms, 0–1."""
