"""The answer reader: reads a question and a memory, and says how sure it is that the memory answers it."""

from __future__ import annotations

import functools
from pathlib import Path

from memoryd.embedding.readers.adapters import tuned_encoder
from memoryd.embedding.readers.reader import Read, Reader
from memoryd.embedding.readers.texts import Pair, asked_ids

__all__ = ["NAME", "answer_reader"]

NAME = "answer"


def answer_reader(directory: Path | None = None) -> Reader[Pair, float | None]:
    """
    Return the packaged model, or the one in a directory; it is refused at first use where it cannot be loaded.

    It reads pairs of a question and a memory: 0–1 for each, None where either is too long to be read.
    """
    return Reader(NAME, functools.partial(_tuned, directory), rests=False)


def _tuned(directory: Path | None) -> Read[Pair, float | None]:
    tuned = tuned_encoder(NAME, directory, outputs=1)
    return lambda pairs: tuned.read(asked_ids(tuned.tokenizer, pairs))
