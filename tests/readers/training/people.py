"""Training of the people reader: of each word of voices that are not apart and of hard sentences, if it names one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from memoryd.embedding.readers.adapters import reader_tokenizer
from memoryd.embedding.readers.people import CASES
from memoryd.embedding.readers.texts import word_ids
from tests.readers.people.names import Named, common_words, hard_names, named_of
from tests.readers.training.encoder import Arrays, beginning, frozen, read_file, states, write_file
from tests.readers.training.fit import BATCH, Phase, descend, filled, in_batches
from tests.readers.voices import voices

__all__ = ["train"]

PHASE = Phase(2, 1e-3)
MOST = 64  # tokens of a text
PLAIN = 4  # of the texts without a name every so many is read, as most words are none anyway
TWICE = 2  # each hard sentence, an epoch: there are few of them
LEAST = (0.5, 0.7, 0.9)

Row = tuple[list[int], dict[int, tuple[bool, int]]]
"""Token ids, and by the place of a word's first piece whether it names a person, and the case of the word."""


def _rows(named: Sequence[Named]) -> list[Row]:
    found = word_ids(reader_tokenizer(), [one.text for one in named])
    return [
        (
            ids[:MOST],
            {
                word.piece: (one.words[word.start, word.end], word.case)
                for word in words
                if word.piece < MOST and (word.start, word.end) in one.words
            },
        )
        for one, (ids, words) in zip(named, found, strict=True)
    ]


def _batches(rows: Sequence[Row], chance: np.random.Generator | None = None) -> Iterator[tuple[Any, ...]]:
    for places in in_batches([len(ids) for ids, _ in rows], chance):
        ids, mask = filled([rows[place][0] for place in places])
        wanted, weight, case = (np.zeros(ids.shape, kind) for kind in (np.float32, np.float32, np.int32))
        for row, place in enumerate(places):
            for piece, (is_named, of) in rows[place][1].items():
                wanted[row, piece], weight[row, piece], case[row, piece] = is_named, 1, of
        yield ids, mask, case, wanted, weight


def _logits(tuned: Arrays, base: Arrays, ids: Any, mask: Any, case: Any, key: jax.Array | None = None) -> jax.Array:
    every = states(tuned, base, ids, mask, key) @ tuned["head.weight"] + tuned["head.bias"]
    return jnp.take_along_axis(every, case[..., None], axis=-1)[..., 0]


def _cost(tuned: Arrays, base: Arrays, batch: tuple[Any, ...], key: jax.Array) -> jax.Array:
    ids, mask, case, wanted, weight = batch
    logits = _logits(tuned, base, ids, mask, case, key)
    return (optax.sigmoid_binary_cross_entropy(logits, wanted) * weight).sum() / weight.sum()


_answer = jax.jit(_logits)


def _report(tuned: Arrays, rows: Sequence[Row]) -> str:
    """Return which share of the words of names is found, and which of those found is one, from some scores on."""
    base, scores, wanted = frozen(), list[NDArray[np.float32]](), list[NDArray[np.bool_]]()
    for ids, mask, case, is_named, weight in _batches(rows):
        known = weight > 0
        scores.append(np.asarray(_answer(tuned, base, ids, mask, case))[known])
        wanted.append(is_named[known] > 0)
    score, is_name = 1 / (1 + np.exp(-np.concatenate(scores))), np.concatenate(wanted)
    return "; ".join(
        f"from {least} on: found {(score[is_name] >= least).mean():.3f}, right {is_name[score >= least].mean():.3f}"
        for least in LEAST
        if (score >= least).any()
    )


def train(out: Path, begun: Path | None = None) -> None:
    """Train, say after each epoch how well it does on what is apart, and write the file; `begun`: on from a file."""
    common = common_words(voices())
    every = _rows(list(named_of((voice for voice in voices() if not voice.is_apart), common)))
    apart = _rows(list(named_of((voice for voice in voices() if voice.is_apart), common)))
    hard = _rows(list(hard_names()))
    rows = [row for n, row in enumerate(every) if any(named for named, _ in row[1].values()) or n % PLAIN == 0]
    rows += hard * TWICE
    count = sum(named for _, words in rows for named, _ in words.values())
    print(f"{len(rows)} texts, {count} words of names; apart {len(apart)}", flush=True)

    def batches(chance: np.random.Generator) -> Iterator[tuple[Any, ...]]:
        return _batches(rows, chance)

    def tell(tuned: Arrays) -> None:
        print(f"  {_report(tuned, apart)}", flush=True)

    tuned = beginning(frozen(), CASES) if begun is None else read_file(begun)
    write_file(out, descend(tuned, batches, len(rows) // BATCH + 1, _cost, PHASE, tell))
