"""`make eval SETS=odds`: what a hit's score says once the answer reader has read it, as `followed.READ_ODDS` has it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.retrieval.answers_read import OF_EACH
from memoryd.domain.retrieval.followed import log_odds
from memoryd.embedding.readers.answer import answer_reader
from tests.readers.voices import Voice
from tests.support import Daemon

__all__ = ["odds"]

STEPS = 25  # of Newton's method
Floats = NDArray[np.float64]


def odds(daemon: Daemon, some: Sequence[Voice], stores: Mapping[str, Sequence[str]]) -> None:
    """Print the weights of what the reader says and of the score, in log odds, of all voices and of each half."""
    pairs, scores, right, half = list[tuple[str, str]](), list[float](), list[bool](), list[int]()
    for n, voice in enumerate(some):
        with daemon.client(f"e-{voice.id}") as memory:
            for question in voice.questions:
                answers = {stores[voice.id][place] for place in question.answers}
                for hit in memory.search(question.text, limit=OF_EACH).hits:
                    pairs.append((question.text, hit.memory.content))
                    scores.append(hit.score)
                    right.append(bool(answers & {hit.memory.id, *hit.same_ids}))
                    half.append(n % 2)
    reader = answer_reader()
    values = asyncio.run(reader.read(pairs))
    reader.close()
    read = np.array([value is not None for value in values])
    known = np.array([[log_odds(value or 0), log_odds(score)] for value, score in zip(values, scores, strict=True)])
    wanted, halves = np.array(right), np.array(half)
    for name, chosen in (("all", read), ("one half", read & (halves == 0)), ("the other", read & (halves == 1))):
        by_reader, by_score = _fitted(known[chosen], wanted[chosen].astype(float))
        print(f"odds: {name}: of the reader {by_reader:.3f}, of the score {by_score:.3f}, of {chosen.sum()} hits")


def _fitted(known: Floats, wanted: Floats) -> Floats:
    """Return the weights of a logistic fit without a constant."""
    weights = np.zeros(known.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-known @ weights))
        slope = known.T @ (wanted - chance)
        curve = known.T @ (known * (chance * (1 - chance))[:, None])
        weights += np.linalg.solve(curve, slope)
    return weights
