"""The answer reader: reads a question and a memory, and says how sure it is that the memory answers it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from memoryd.embedding.readers.adapters import tuned_encoder
from memoryd.embedding.readers.reader import Read, Reader
from memoryd.embedding.readers.texts import Pair, asked_ids

__all__ = ["NAME", "AnswerReader", "answer_reader"]

NAME = "answer"

AnswerReader = Reader[Pair, float | None]
"""Reads pairs of a question and a memory: 0–1 for each, None of what is too long to be read."""


def answer_reader(directory: Path | None = None) -> AnswerReader:
    """Return the packaged model, or the one in a directory; it is refused at first use where it cannot be loaded."""
    return Reader(NAME, functools.partial(_tuned, directory), rests=False)


def _tuned(directory: Path | None) -> Read[Pair, float | None]:
    tuned = tuned_encoder(NAME, directory, outputs=1)

    def read(pairs: Sequence[Pair]) -> list[float | None]:
        ids = asked_ids(tuned.tokenizer, pairs)
        states = iter(tuned.graph.states([one for one in ids if one is not None]))
        return [None if one is None else float(tuned.chances(next(states)[0])[0]) for one in ids]

    return read
