"""What the tests of one subject share."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from memoryd.domain.reading import ranking
from memoryd.domain.reading.ranking import Asked, depth_of
from memoryd.index.question import Question, Weights
from memoryd.index.scope import ScopeIndex
from memoryd.model.change import Entry
from memoryd.model.query import Filter
from memoryd.model.scope import Owner
from tests.builders import (
    ALICE,
    NOW,
    memory,
)

OWNER = Owner("default", ALICE)
LATER = NOW + timedelta(days=1)


def random_entries(count: int, dimensions: int = 64, seed: int = 0) -> list[Entry]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    words = [f"w{n}" for n in range(50)]
    return [
        Entry(memory(f"m{n}"), " ".join(rng.choice(words, rng.integers(1, 9))), row, "f") for n, row in enumerate(rows)
    ]


def question(vector=None, terms=(), *, limit=10, wanted=None, weights=(0.3, 0.7), now=LATER) -> Asked:
    given = Question(tuple(terms), vector, wanted or Filter(), now, depth_of(limit), Weights(*weights))
    return Asked(given, limit)


def ask(index: ScopeIndex, asked: Asked):
    return ranking.search([index], asked)
