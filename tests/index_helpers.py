"""What the tests of one subject share."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.retrieval.ranking import Weights
from memoryd.domain.retrieval.search import Asked, search
from memoryd.index.loading import batch_of
from memoryd.index.question import Question
from memoryd.index.scope import ScopeIndex
from memoryd.model.batch import Batch, VectorsWanted
from memoryd.model.change import Entry
from memoryd.model.commits import Snapshot
from memoryd.model.memory import Memory
from memoryd.model.query import Filter
from memoryd.model.scope import Owner
from tests.builders import (
    ALICE,
    NOW,
    HashEncoder,
    memory,
)

OWNER = Owner("default", ALICE)
LATER = NOW + timedelta(days=1)


WANTED = VectorsWanted(HashEncoder().dimensions, HashEncoder.fingerprint)


def read_whole(snapshot: Snapshot) -> list[tuple[Memory, NDArray[np.float32]]]:
    """Return the memories of a snapshot with their vectors, zeros for those that have none."""
    found = []
    for chunk in snapshot.read(WANTED):
        known = isinstance(chunk, Batch)
        batch = chunk if known else batch_of(chunk, dimensions=WANTED.dimensions, fingerprint=WANTED.fingerprint)
        found += [(batch.read(row), vector) for row, vector in zip(batch.rows, batch.vectors, strict=True)]
    return found


def random_entries(count: int, dimensions: int = 64, seed: int = 0) -> list[Entry]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    words = [f"w{n}" for n in range(50)]
    return [
        Entry(memory(f"m{n}"), " ".join(rng.choice(words, rng.integers(1, 9))), row, "f") for n, row in enumerate(rows)
    ]


def question(vector=None, terms=(), *, limit=10, wanted=None, now=LATER) -> Asked:
    return Asked(Question(tuple(terms), vector, wanted or Filter(), now), limit, min_score=0.0)


def ask(index: ScopeIndex, asked: Asked, weights=(0.3, 0.7)):
    vector, words = weights
    plain = Weights(
        vector=vector,
        statement_vector=vector,
        words=words,
        words_alone=1.0,
        tokens=0.0,
        statement_tokens=0.0,
        recency=0.0,
    )
    return search([index], asked, weights=plain)
