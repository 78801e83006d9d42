"""What an index is asked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memoryd.knowledge.grammar.dates import Days
from memoryd.knowledge.grammar.questions import Wanted
from memoryd.model.query import Filter

__all__ = ["Question"]


@dataclass(frozen=True, slots=True)
class Question:
    """What is looked for, and in which documents."""

    terms: tuple[str, ...]
    vector: NDArray[np.float32] | None
    filter: Filter
    now: datetime
    tokens: NDArray[np.int8] | None = None
    """The vectors of its tokens, shape (tokens, TOKEN_DIMENSIONS), codes as in `model.embedding`."""
    token_terms: tuple[int, ...] = ()
    """Of each token: which of the terms its word is; −1: none of them."""
    clauses: tuple[tuple[int, int], ...] = ()
    """The parts of a question of several, as (first, after the last) of its tokens."""
    days: tuple[Days, ...] = ()
    """The days that it names."""
    speaker: str = ""
    """The first name of the one speaker that it names, folded."""
    asks_assistant: bool = False
    wanted: Wanted = Wanted.ANY
    members: tuple[tuple[str, ...], ...] = ()
    """The things of the class that it asks for, each as terms that stand in one text: of "What pets …?" a dog."""
    entity_ids: frozenset[str] = frozenset()
    """The entities that it names, in any of the scopes, by all of their ids."""
    known_share: float = 1.0
    """How much of it the model can read, 0–1."""
    judged_share: float = 1.0
    asks_first: bool = False
    """Whether it asks since when something is so: of equals what was said first answers."""
    """How far what the model says of it is measured, 0–1: 1 for English, 0 where few of the words are whole to it."""
    also: tuple[int, int] | None = None
    """A document that is looked at whether or not it passes the filter: id() of its index, and its row."""
    least_trust: int = 0
    """Memories whose trust weighs less are left out."""
