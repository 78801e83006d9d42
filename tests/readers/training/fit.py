"""How a reader is trained: AdamW over texts of about one length, by seeds that are fixed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import optax
from numpy.typing import NDArray

from tests.readers.training.encoder import WIDTH, Arrays, frozen, states

__all__ = ["BATCH", "Examples", "Phase", "descend", "filled", "fit", "in_batches", "logits_of", "with_head"]

BATCH = 32
BUCKET = 20  # batches whose texts are sorted by length
HEAD_RATE, HEAD_STEPS, HEAD_DECAY = 1e-2, 400, 1e-3  # of a head alone, over all texts at once
STEP = 16  # tokens by which lengths differ: a length is compiled for seconds
Loss = Callable[[jax.Array, jax.Array], jax.Array]
"""What a batch costs, one number a text: of logits and wanted, each of shape (texts, outputs)."""
Cost = Callable[[Arrays, Arrays, tuple[Any, ...], jax.Array], jax.Array]
"""What a batch costs: of what is tuned, the frozen arrays, the batch, and chance."""


@dataclass(frozen=True)
class Phase:
    """How long, and how fast."""

    epochs: int
    rate: float


@dataclass(frozen=True)
class Examples:
    """Texts as token ids, of each the tokens whose states are averaged for the head, and what is wanted of it."""

    ids: Sequence[Sequence[int]]
    spans: Sequence[tuple[int, int]]
    wanted: NDArray[np.float32]
    """Shape (texts, outputs)."""


def _vectors(tuned: Arrays, base: Arrays, batch: tuple[Any, ...], key: jax.Array | None = None) -> jax.Array:
    ids, mask, span = batch
    return (states(tuned, base, ids, mask, key) * span[..., None]).sum(axis=1)


def _head(tuned: Arrays, vectors: jax.Array) -> jax.Array:
    return vectors @ tuned["head.weight"] + tuned["head.bias"]


def _pooled(tuned: Arrays, base: Arrays, batch: tuple[Any, ...], key: jax.Array | None = None) -> jax.Array:
    return _head(tuned, _vectors(tuned, base, batch, key))


def in_batches(lengths: Sequence[int], chance: np.random.Generator | None = None) -> Iterator[list[int]]:
    """Yield the places of texts of about one length, BATCH at a time; in an order by chance if it is given."""
    order = np.arange(len(lengths)) if chance is None else chance.permutation(len(lengths))
    cut = list[list[int]]()
    for first in range(0, len(order), BATCH * BUCKET):
        some = sorted(order[first : first + BATCH * BUCKET].tolist(), key=lambda n: lengths[n])
        cut += [some[n : n + BATCH] for n in range(0, len(some), BATCH)]
    return (cut[n] for n in (range(len(cut)) if chance is None else chance.permutation(len(cut))))


def filled(
    ids: Sequence[Sequence[int]], count: int = BATCH, length: int = 0
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """
    Return ids and a mask for the encoder, with rows for `count` texts.

    What is beyond `length` tokens is left out; 0: as many as the longest has, in steps of STEP.
    """
    length = length or -(-max(map(len, ids)) // STEP) * STEP
    rows, mask = np.zeros((count, length), np.int32), np.full((count, 1, 1, length), -1e9, np.float32)
    mask[..., 0] = 0
    for row, one in enumerate(ids):
        cut = one[:length]
        rows[row, : len(cut)], mask[row, :, :, : len(cut)] = cut, 0
    return rows, mask


def _batches(
    examples: Examples, chance: np.random.Generator | None = None
) -> Iterator[tuple[list[int], tuple[Any, ...]]]:
    """Yield places, and ids, masks and spans of texts; see `in_batches`."""
    for places in in_batches([len(one) for one in examples.ids], chance):
        ids, mask = filled([examples.ids[place] for place in places])
        span = np.zeros(ids.shape, np.float32)
        for row, place in enumerate(places):
            begin, end = examples.spans[place]
            span[row, begin:end] = 1 / (end - begin)
        yield places, (ids, mask, span)


def fit(
    tuned: Arrays, examples: Examples, phase: Phase, loss: Loss, tell: Callable[[Arrays], None], *, seed: int = 0
) -> Arrays:
    """Return adapters and head after some epochs; `tell` is called after each."""
    count = len(examples.ids)

    def batches(chance: np.random.Generator) -> Iterator[tuple[Any, ...]]:
        for places, batch in _batches(examples, chance):
            wanted, weight = np.ones((BATCH, examples.wanted.shape[1]), np.float32), np.zeros(BATCH, np.float32)
            wanted[: len(places)], weight[: len(places)] = examples.wanted[places], 1
            yield batch, wanted, weight

    def cost(tuned: Arrays, base: Arrays, given: tuple[Any, ...], key: jax.Array) -> jax.Array:
        batch, wanted, weight = given
        return (loss(_pooled(tuned, base, batch, key), wanted) * weight).sum() / weight.sum()

    return descend(tuned, batches, count // BATCH + 1, cost, phase, tell, seed=seed)


def descend(
    tuned: Arrays,
    batches: Callable[[np.random.Generator], Iterable[tuple[Any, ...]]],
    count: int,
    cost: Cost,
    phase: Phase,
    tell: Callable[[Arrays], None],
    *,
    seed: int = 0,
) -> Arrays:
    """Return what is tuned after some epochs of about `count` batches, in an order by chance; `tell` after each."""
    base, key, chance = frozen(), jax.random.PRNGKey(seed), np.random.default_rng(seed)
    steps = phase.epochs * count
    rate = optax.warmup_cosine_decay_schedule(0.0, phase.rate, steps // 10, steps, phase.rate / 1000)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=0.01))
    state = optimiser.init(tuned)

    @jax.jit
    def step(
        tuned: Arrays, state: Any, base: Arrays, batch: tuple[Any, ...], key: jax.Array
    ) -> tuple[Arrays, Any, jax.Array]:
        value, slope = jax.value_and_grad(cost)(tuned, base, batch, key)
        change, state = optimiser.update(slope, state, tuned)
        return optax.apply_updates(tuned, change), state, value

    began_s = time.monotonic()
    for epoch in range(phase.epochs):
        losses = []
        for batch in batches(chance):
            key, one = jax.random.split(key)
            tuned, state, value = step(tuned, state, base, batch, one)
            losses.append(float(value))
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, {time.monotonic() - began_s:.0f} s", flush=True)
        tell(tuned)
    return tuned


_seen = jax.jit(_vectors)
_answer = jax.jit(_pooled)


def with_head(tuned: Arrays, examples: Examples, loss: Loss) -> Arrays:
    """Return adapters with a head that makes the most of what the encoder sees already."""
    base, vectors = frozen(), np.zeros((len(examples.ids), WIDTH), np.float32)
    for places, batch in _batches(examples):
        vectors[places] = np.asarray(_seen(tuned, base, batch))[: len(places)]
    middle, scale = vectors.mean(axis=0), vectors.std(axis=0) + 1e-6  # so that one rate fits all dimensions
    head: Arrays = {name: tuned[name] for name in ("head.weight", "head.bias")}
    optimiser = optax.adam(HEAD_RATE)
    state = optimiser.init(head)

    @jax.jit
    def step(head: Arrays, state: Any, vectors: jax.Array, wanted: jax.Array) -> tuple[Arrays, Any]:
        def cost(head: Arrays) -> jax.Array:
            return loss(_head(head, vectors), wanted).mean() + HEAD_DECAY * (head["head.weight"] ** 2).sum()

        change, state = optimiser.update(jax.grad(cost)(head), state, head)
        return optax.apply_updates(head, change), state

    for _ in range(HEAD_STEPS):
        head, state = step(head, state, (vectors - middle) / scale, examples.wanted)
    weight = head["head.weight"] / scale[:, None]
    return {**tuned, "head.weight": weight, "head.bias": head["head.bias"] - middle @ weight}


def logits_of(tuned: Arrays, examples: Examples) -> NDArray[np.float32]:
    """Return the logits of texts, shape (texts, outputs)."""
    base, found = frozen(), np.zeros((len(examples.ids), tuned["head.bias"].shape[0]), np.float32)
    for places, batch in _batches(examples):
        found[places] = np.asarray(_answer(tuned, base, batch))[: len(places)]
    return found
