"""
The keeping reader: reads a sentence after what was said before it, and says what it is worth keeping as.

It also says whether the sentence is understood by itself.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from memoryd.embedding.readers.adapters import tuned_encoder
from memoryd.embedding.readers.reader import Read, Reader
from memoryd.embedding.readers.texts import Pair, after_ids

__all__ = ["LABELS", "NAME", "NONE", "NOTHING", "OUTPUTS", "KeepingReader", "Worth", "keeping_reader"]

NAME = "keeping"
NONE = "none"
LABELS = (NONE, "fact", "preference", "plan", "event", "instruction", "remember", "temporary")
"""What a sentence may be, in the order of the head's outputs; the last output is for whether it is clear."""
OUTPUTS = len(LABELS) + 1


class Worth(NamedTuple):
    """What a sentence is worth."""

    kept: float
    """How sure it is that someone would want it kept, 0–1."""
    label: str
    """As what, of LABELS but NONE."""
    clear: float
    """How sure it is that someone understands the sentence who reads nothing else, 0–1."""


KeepingReader = Reader[Pair, Worth]
"""Reads pairs of what was said before, and a sentence."""
NOTHING = Worth(0.0, LABELS[1], 0.0)


def keeping_reader(directory: Path | None = None) -> KeepingReader:
    """Return the packaged model, or the one in a directory; it is refused at first use where it cannot be loaded."""
    return Reader(NAME, functools.partial(_tuned, directory))


def _tuned(directory: Path | None) -> Read[Pair, Worth]:
    tuned = tuned_encoder(NAME, directory, outputs=OUTPUTS)

    def read(said: Sequence[Pair]) -> list[Worth]:
        ids = after_ids(tuned.tokenizer, said)
        states = iter(tuned.graph.states([one for one in ids if one is not None]))
        worths = []
        for one in ids:
            if one is None:
                worths.append(NOTHING)
                continue
            state = next(states).mean(axis=0)
            logits = tuned.logits(state)[:-1]
            powers = np.exp(logits - logits.max())
            label = LABELS[1 + int(powers[1:].argmax())]
            worths.append(Worth(float(powers[1:].sum() / powers.sum()), label, float(tuned.chances(state)[-1])))
        return worths

    return read
