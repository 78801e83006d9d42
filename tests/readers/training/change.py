"""
Training of the change reader, in three phases, each of which begins from what the one before has written.

First the pairs of change/pairs.py that were written for it, then what is near each other in whole stores, then voices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import jax
import numpy as np
import optax

from memoryd.embedding.readers.adapters import reader_tokenizer
from memoryd.embedding.readers.texts import pair_ids
from tests.readers.change.pairs import (
    Pair,
    added_pairs,
    encoded,
    groups_apart,
    held_apart,
    near_pairs,
    pairs_of,
    refining_pairs,
    stores,
    training_pairs,
    unread_pairs,
    voices_apart,
    voices_pairs,
)
from tests.readers.training.encoder import Arrays, beginning, frozen, read_file, write_file
from tests.readers.training.fit import Examples, Phase, fit, logits_of

__all__ = ["train"]

WRITTEN, STORES, VOICES = Phase(2, 1e-3), Phase(1, 5e-4), Phase(2, 5e-4)
FIRST_TOKEN = (0, 1)
UNREAD = -99.0  # of a pair that is too long


def _examples(pairs: Sequence[Pair]) -> tuple[Examples, list[Pair]]:
    """Return pairs as they are read, and the pairs themselves; without those that are too long."""
    found = zip(pair_ids(reader_tokenizer(), [(pair.old, pair.new) for pair in pairs]), pairs, strict=True)
    read = [(ids, pair) for ids, pair in found if ids is not None]
    wanted = np.array([[pair.wanted] for _, pair in read], np.float32)
    return Examples([ids for ids, _ in read], [FIRST_TOKEN] * len(read), wanted), [pair for _, pair in read]


def _loss(logits: jax.Array, wanted: jax.Array) -> jax.Array:
    return optax.sigmoid_binary_cross_entropy(logits[:, 0], wanted[:, 0])


def _curve(scores: np.ndarray, pairs: Sequence[Pair]) -> str:
    """Return which share of the changes is found where 1, 2 or 5 of 100 others are, and from which score on."""
    is_change = np.array([pair.is_change for pair in pairs])
    others = np.sort(scores[~is_change])[::-1]
    told = []
    for share in (0.01, 0.02, 0.05):
        least = others[int(share * len(others))]
        found = f"{(scores[is_change] > least).mean():.3f} at {share:.0%}" if is_change.any() else f"{share:.0%}"
        told.append(f"{found} (≥ {1 / (1 + np.exp(-least)):.3f})")
    return ", ".join(told)


def train(out: Path, begun: Path | None = None) -> None:
    """Train, say after each epoch how well it does on what is apart, and write the file; `begun`: on from a file."""
    sets: Mapping[str, Sequence[Pair]] = {
        "held apart": list(pairs_of(held_apart())),
        "all true together": [*groups_apart(), *near_pairs(stores(apart=True), encoded, most=4)],
        "unread": unread_pairs(),
        **voices_apart(encoded),
        "added to the voices tuned with": added_pairs(),
    }
    tried = {name: _examples(some) for name, some in sets.items()}

    def tell(tuned: Arrays) -> None:
        for name, (examples, pairs) in tried.items():
            print(f"  {name}, {len(pairs)} pairs: {_curve(logits_of(tuned, examples)[:, 0], pairs)}", flush=True)

    def score(pairs: list[Pair]) -> np.ndarray:
        examples, read = _examples(pairs)
        found = dict(zip(read, logits_of(tuned, examples)[:, 0].tolist(), strict=True))
        return np.array([found.get(pair, UNREAD) for pair in pairs], np.float32)

    phases = (
        (WRITTEN, training_pairs),
        (STORES, lambda: refining_pairs(encoded)),
        (VOICES, lambda: voices_pairs(encoded, score)),
    )
    tuned = beginning(frozen(), 1) if begun is None else read_file(begun)
    for phase, make in phases if begun is None else phases[-1:]:
        write_file(out, fit(tuned, _examples(make())[0], phase, _loss, tell))
        tuned = read_file(out)
