"""
Training of the retrieval reader: a question is nearer to what answers it than to all else that is stored.

A batch is the whole stores of two voices and what is asked of them, so every near miss is in it. Losses are those of
contrastive learning (van den Oord et al., InfoNCE, 2018), of whole texts and of their tokens (Khattab and Zaharia,
ColBERT, 2020); a third one holds all vectors near those of the packaged model, for texts unlike these.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from memoryd.embedding.packaged import builtin_encoder
from memoryd.embedding.readers.adapters import reader_tokenizer
from tests.readers.training.encoder import WIDTH, Arrays, beginning, frozen, read_file, states, write_file
from tests.readers.training.fit import BATCH, Phase, descend, filled, in_batches
from tests.readers.voices import Voice, voices

__all__ = ["train"]

PHASE = Phase(6, 3e-4)
TOGETHER = 2  # voices
SHAPES = ((56, 16), (16, 48), (96, 32))
"""Of the questions of a batch, short and long, and of its statements: how many, and how many tokens each has."""
TEMPERATURE, OF_TOKENS, OF_KEEPING = 0.05, 0.5, 1.0
SHARE = 0.75  # of what was learnt that is kept: all of it finds no more for strangers, and less in texts unlike these
FAR = -1e9
MOST = 64  # tokens of a text that is judged

Floats = NDArray[np.float32]
Table = tuple[NDArray[np.int32], Floats, Floats]
"""Of some texts: ids, a mask for the encoder, and 1 for each token that is no padding; shapes (texts, tokens)."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A voice as token ids, with the vectors that the packaged model makes."""

    questions: list[list[int]]
    answers: list[tuple[int, ...]]
    statements: list[list[int]]
    of_questions: Floats
    of_statements: Floats


def _table(ids: Sequence[Sequence[int]], count: int, length: int = 0) -> Table:
    rows, mask = filled(ids, count, length)
    is_token = (mask[:, 0, 0] == 0) & (np.arange(count) < len(ids))[:, None]
    return rows, mask, is_token.astype(np.float32)


def _of_length_1(rows: jax.Array) -> jax.Array:
    return rows / jnp.sqrt((rows * rows).sum(axis=-1, keepdims=True) + 1e-9)


def _seen(tuned: Arrays, base: Arrays, table: Table, key: jax.Array | None = None) -> tuple[jax.Array, jax.Array]:
    """Return the vectors of texts, and those of their tokens: shapes (texts, 384) and (texts, tokens, 384)."""
    ids, mask, inner = table
    found = states(tuned, base, ids, mask, key)
    return _of_length_1((found * inner[..., None]).sum(axis=1)), _of_length_1(found)


_vectors = jax.jit(lambda tuned, base, table: _seen(tuned, base, table)[0])


def _encode(tuned: Arrays, base: Arrays, ids: Sequence[Sequence[int]]) -> Floats:
    found = np.zeros((len(ids), WIDTH), np.float32)
    for places in in_batches([len(one) for one in ids]):
        cut = [ids[n][:MOST] for n in places]
        found[places] = np.asarray(_vectors(tuned, base, _table(cut, BATCH)))[: len(places)]
    return found


_encoder = functools.cache(builtin_encoder)


def _packaged(texts: Sequence[str]) -> Floats:
    return np.asarray(_encoder().encode(texts, query=False))


def _asked(voice: Voice, *, unanswerable: bool = False) -> _Asked:
    tokenizer = reader_tokenizer()
    asked = [one for one in voice.questions if one.answers or unanswerable]
    questions = [one.ids for one in tokenizer.encode_batch([one.text for one in asked])]
    statements = [one.ids for one in tokenizer.encode_batch([one.text for one in voice.store])]
    of_questions, of_statements = _packaged([one.text for one in asked]), _packaged([one.text for one in voice.store])
    return _Asked(questions, [one.answers for one in asked], statements, of_questions, of_statements)


def _batch(some: Sequence[_Asked], chance: np.random.Generator) -> tuple[Any, ...]:
    """Return questions and statements as tables, what answers what, what is there, and the packaged vectors."""
    stored = [(one, place) for one in some for place in range(len(one.statements))]
    order = chance.permutation(len(stored))[: SHAPES[2][0]]
    stored = [stored[n] for n in order]
    at = {(id(one), place): n for n, (one, place) in enumerate(stored)}
    asked = [
        (one, n, {at[id(one), place] for place in answers if (id(one), place) in at})
        for one in some
        for n, answers in enumerate(one.answers)
    ]
    asked = [asked[n] for n in chance.permutation(len(asked)) if asked[n][2]]
    by_length: list[list[tuple[_Asked, int, set[int]]]] = [[], []]
    for item in asked:
        by_length[len(item[0].questions[item[1]]) > SHAPES[0][1]].append(item)
    tables = [
        _table([one.questions[n] for one, n, _ in part], *shape)
        for part, shape in zip(by_length, SHAPES[:2], strict=True)
        for part in [part[: shape[0]]]
    ]
    count = SHAPES[0][0] + SHAPES[1][0]
    right, before = np.zeros((count, SHAPES[2][0]), np.float32), np.zeros((count, some[0].of_questions.shape[1]))
    for part, first, shape in zip(by_length, (0, SHAPES[0][0]), SHAPES[:2], strict=True):
        for row, (one, n, places) in enumerate(part[: shape[0]], first):
            right[row, list(places)] = 1
            before[row] = one.of_questions[n]
    is_there = np.zeros(SHAPES[2][0], np.float32)
    is_there[: len(stored)] = 1
    of_stored = np.zeros((SHAPES[2][0], before.shape[1]))
    of_stored[: len(stored)] = [one.of_statements[place] for one, place in stored]
    table = _table([one.statements[place] for one, place in stored], *SHAPES[2])
    return (*tables, table, right, is_there, before.astype(np.float32), of_stored.astype(np.float32))


def _contrast(nearness: jax.Array, right: jax.Array, is_there: jax.Array) -> jax.Array:
    """Return how far what answers is from standing above all that does not, on average over questions."""
    wrong = jnp.where((right > 0) | (is_there == 0), FAR, nearness / TEMPERATURE)
    above = jax.nn.softplus(jax.nn.logsumexp(wrong, axis=1, keepdims=True) - nearness / TEMPERATURE)
    counts = right.sum(axis=1)
    return ((above * right).sum(axis=1) / jnp.maximum(counts, 1)).sum() / jnp.maximum((counts > 0).sum(), 1)


def _cost(tuned: Arrays, base: Arrays, batch: tuple[Any, ...], key: jax.Array) -> jax.Array:
    short, long, stored, right, is_there, before, of_stored = batch
    keys = jax.random.split(key, 3)
    statements, of_statements = _seen(tuned, base, stored, keys[2])
    near, late, asked = [], [], []
    for table, one in zip((short, long), keys[:2], strict=True):
        questions, tokens = _seen(tuned, base, table, one)
        asked.append(questions)
        near.append(questions @ statements.T)
        inner = table[2].at[:, 0].set(0)  # not [CLS]
        products = jnp.einsum("qld,smd->qslm", tokens, of_statements)
        best = jnp.where(stored[2][None, :, None, :] > 0, products, -1.0).max(axis=-1)
        late.append((best * inner[:, None, :]).sum(axis=-1) / jnp.maximum(inner.sum(axis=1), 1)[:, None])
    moved = ((1 - (jnp.concatenate(asked) * before).sum(axis=1)) * (right.sum(axis=1) > 0)).mean()
    moved += ((1 - (statements * of_stored).sum(axis=1)) * is_there).mean()
    whole, of_tokens = (_contrast(jnp.concatenate(part), right, is_there) for part in (near, late))
    return whole + OF_TOKENS * of_tokens + OF_KEEPING * moved


def _report(tuned: Arrays, base: Arrays, apart: Sequence[_Asked]) -> str:
    """Return how often what answers is first, the mean reciprocal rank, and the median cosine of the first."""
    ranks, best, best_of_none = [], [], []
    for one in apart:
        nearness = _encode(tuned, base, one.questions) @ _encode(tuned, base, one.statements).T
        for row, answers in zip(nearness, one.answers, strict=True):
            if not answers:
                best_of_none.append(row.max())
                continue
            ranks.append(1 + int((row > row[list(answers)].max()).sum()))
            best.append(row.max())
    found = np.array(ranks)
    told = f"right first {(found == 1).mean():.3f}, MRR {(1 / found).mean():.3f}, among five {(found <= 5).mean():.3f}"
    return f"{told}; nearest {np.median(best):.2f}, of unanswerable ones {np.median(best_of_none):.2f}"


def _scaled(tuned: Arrays, share: float) -> Arrays:
    """Return adapters that add so much of what these add."""
    return {name: value * share if name.endswith(".b") else value for name, value in tuned.items()}


def train(out: Path, begun: Path | None = None) -> None:
    """Train, say after each epoch how well it does on what is apart, and write the file; `begun`: on from a file."""
    base = frozen()
    tuned_with = [_asked(voice) for voice in voices() if not voice.is_apart]
    apart = [_asked(voice, unanswerable=True) for voice in voices() if voice.is_apart]
    print(f"{len(tuned_with)} voices; apart {len(apart)}: {_report({}, base, apart)}", flush=True)

    def batches(chance: np.random.Generator) -> Iterator[tuple[Any, ...]]:
        order = chance.permutation(len(tuned_with))
        for first in range(0, len(order) - TOGETHER + 1, TOGETHER):
            yield _batch([tuned_with[n] for n in order[first : first + TOGETHER]], chance)

    def tell(tuned: Arrays) -> None:
        print(f"  {_report(tuned, base, apart)}", flush=True)

    tuned = beginning(base, 0) if begun is None else _scaled(read_file(begun), 1 / SHARE)
    tuned = descend(tuned, batches, len(tuned_with) // TOGETHER, _cost, PHASE, tell)
    tuned = _scaled(tuned, SHARE)
    tell(tuned)
    write_file(out, tuned)
