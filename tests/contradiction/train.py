"""
`make train-contradiction`: tunes the packaged sentence encoder to read an older and a newer statement together.

Low-rank adapters of the six layers and a linear head on the first token are trained by AdamW on the pairs of pairs.py,
then refined with what is near each other in whole stores, and written to memoryd/embedding/data/contradiction.npz. The
packaged weights stay as they are. Needs jax and optax, in an environment of their own.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tokenizers

from memoryd.embedding.contradiction import LAYERS, PARTS, pair_ids, whole_texts
from memoryd.embedding.packaged import (
    MODEL_SHA256,
    array_of,
    builtin_encoder,
    data_file,
    packaged_model,
    packaged_tokenizer,
)
from tests.contradiction.pairs import (
    Pair,
    groups_apart,
    held_apart,
    near_pairs,
    pairs_of,
    refining_pairs,
    stores,
    training_pairs,
    unread_pairs,
    voices_apart,
)

RANK, BATCH, DROPOUT = 8, 32, 0.1
HEADS, WIDTH, EPSILON = 12, 384, 1e-12
SCALE = 2.0  # of what an adapter adds
BUCKET = 20  # batches whose texts are sorted by length
OUT = Path(__file__).parents[2] / "memoryd" / "embedding" / "data" / "contradiction.npz"
Arrays = dict[str, Any]


@dataclass(frozen=True)
class Phase:
    """How long, and how fast."""

    epochs: int
    rate: float


FIRST, SECOND = Phase(2, 1e-3), Phase(1, 5e-4)


def frozen() -> Arrays:
    """Return the arrays of the packaged model in float."""
    model = packaged_model()
    places = json.loads(data_file("minilm.json"))["arrays"]
    arrays = {name: np.asarray(array_of(model, place)) for name, place in places.items()}
    for name in [name for name in arrays if name.endswith(".weight")]:
        arrays[name] = arrays[name] * arrays[name.replace(".weight", ".scale")]
    arrays["words"] = arrays["words"] * arrays["words.scale"]
    arrays["places"] = arrays["places"] * arrays["places.scale"]
    return {name: jnp.asarray(array, jnp.float32) for name, array in arrays.items()}


def beginning(base: Arrays, key: jax.Array) -> Arrays:
    """Return adapters that add nothing yet, and a head that says nothing."""
    made: Arrays = {"head.weight": jnp.zeros(WIDTH), "head.bias": jnp.zeros(())}
    for layer in range(LAYERS):
        for matrix, names in PARTS.items():
            height, width = base[f"layer{layer}.{matrix}.weight"].shape
            for name in names:
                key, one = jax.random.split(key)
                made[f"layer{layer}.{name}.a"] = jax.random.normal(one, (height, RANK)) / np.sqrt(height)
                made[f"layer{layer}.{name}.b"] = jnp.zeros((RANK, width // len(names)))
    return made


def logits(tuned: Arrays, base: Arrays, ids: jax.Array, mask: jax.Array, key: jax.Array | None = None) -> jax.Array:
    """Return one logit a pair, ids of shape (pairs, tokens); mask is 0 for a token, and far below it for padding."""

    def product(rows: jax.Array, layer: int, matrix: str) -> jax.Array:
        names = [f"layer{layer}.{name}" for name in PARTS[matrix]]
        added = [(rows @ tuned[f"{name}.a"]) @ tuned[f"{name}.b"] for name in names]  # its weights get no gradient
        return rows @ base[f"layer{layer}.{matrix}.weight"] + SCALE * jnp.concatenate(added, axis=-1)

    count, length = ids.shape
    rows = base["words"][ids] + base["places"][:length] + base["kinds"][0]
    rows = _norm(rows, base, "input")
    for layer in range(LAYERS):
        name = f"layer{layer}"
        joined = product(rows, layer, "qkv") + base[f"{name}.qkv.bias"]
        query, asked, value = (
            part.reshape(count, length, HEADS, -1).transpose(0, 2, 1, 3) for part in jnp.split(joined, 3, axis=-1)
        )
        shares = jax.nn.softmax(query @ asked.transpose(0, 1, 3, 2) / np.sqrt(WIDTH / HEADS) + mask, axis=-1)
        seen = (shares @ value).transpose(0, 2, 1, 3).reshape(count, length, WIDTH)
        seen = rows + product(seen, layer, "out") + base[f"{name}.attention.bias"]
        rows = _norm(seen, base, f"{name}.attention.norm")
        wide = jax.nn.gelu(product(rows, layer, "wide") + base[f"{name}.wide.bias"], approximate=False)
        rows = _norm(rows + product(wide, layer, "narrow") + base[f"{name}.output.bias"], base, f"{name}.output.norm")
        if key is not None:
            key, one = jax.random.split(key)
            rows = rows * jax.random.bernoulli(one, 1 - DROPOUT, rows.shape) / (1 - DROPOUT)
    return rows[:, 0] @ tuned["head.weight"] + tuned["head.bias"]


def _norm(rows: jax.Array, base: Arrays, name: str) -> jax.Array:
    average = jnp.full((WIDTH, WIDTH), 1 / WIDTH)  # as a product: XLA repeats a sum for every element of its gradient
    apart = rows - rows @ average
    return apart / jnp.sqrt((apart * apart) @ average + EPSILON) * base[f"{name}.gain"] + base[f"{name}.shift"]


Batch = tuple[list[int], np.ndarray, np.ndarray]


def batches(ids: Sequence[Sequence[int]], order: np.ndarray, chance: np.random.Generator | None) -> Iterator[Batch]:
    """Yield places, token ids and masks of pairs of about one length, in an order by chance if it is given."""
    cut: list[list[int]] = []
    for first in range(0, len(order), BATCH * BUCKET):
        some = sorted(order[first : first + BATCH * BUCKET].tolist(), key=lambda n: len(ids[n]))
        cut += [some[n : n + BATCH] for n in range(0, len(some), BATCH)]
    for n in range(len(cut)) if chance is None else chance.permutation(len(cut)):
        length = -(-max(len(ids[place]) for place in cut[n]) // 8) * 8
        filled, mask = np.zeros((BATCH, length), np.int32), np.full((BATCH, 1, 1, length), -1e9, np.float32)
        mask[..., 0] = 0
        for row, place in enumerate(cut[n]):
            filled[row, : len(ids[place])] = ids[place]
            mask[row, :, :, : len(ids[place])] = 0
        yield cut[n], filled, mask


def _read(pairs: Sequence[Pair]) -> tuple[list[list[int]], list[Pair]]:
    """Return the token ids of pairs, and the pairs themselves; without those that are too long to be read."""
    tokenizer = whole_texts(tokenizers.Tokenizer.from_str(packaged_tokenizer().decode()))
    found = zip(pair_ids(tokenizer, [(pair.old, pair.new) for pair in pairs]), pairs, strict=True)
    read = [(ids, pair) for ids, pair in found if ids is not None]
    return [ids for ids, _ in read], [pair for _, pair in read]


def shares(scores: np.ndarray, pairs: Sequence[Pair]) -> str:
    """Return which share of the changes is found where 1, 2 or 5 of 100 others are, and from which score on."""
    is_change = np.array([pair.is_change for pair in pairs])
    others = np.sort(scores[~is_change])[::-1]
    told = []
    for share in (0.01, 0.02, 0.05):
        least = others[int(share * len(others))]
        found = f"{(scores[is_change] > least).mean():.3f} at {share:.0%}" if is_change.any() else f"{share:.0%}"
        told.append(f"{found} (≥ {1 / (1 + np.exp(-least)):.3f})")
    return ", ".join(told)


def trained(tuned: Arrays, pairs: Sequence[Pair], sets: Mapping[str, Sequence[Pair]], phase: Phase) -> Arrays:
    """Return adapters and head after some epochs, and say after each how well they do."""
    ids, pairs = _read(pairs)
    answers = np.array([pair.is_change for pair in pairs], np.float32)
    tried = {name: _read(some) for name, some in sets.items()}
    base, key, chance = frozen(), jax.random.PRNGKey(0), np.random.default_rng(0)
    steps = phase.epochs * (len(pairs) // BATCH + 1)
    rate = optax.warmup_cosine_decay_schedule(0.0, phase.rate, steps // 10, steps, phase.rate / 1000)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=0.01))
    state = optimiser.init(tuned)

    @jax.jit
    def step(tuned: Arrays, state: Any, batch: tuple[jax.Array, ...], key: jax.Array) -> tuple[Arrays, Any, jax.Array]:
        filled, mask, wanted, weight = batch

        def loss(tuned: Arrays) -> jax.Array:
            each = optax.sigmoid_binary_cross_entropy(logits(tuned, base, filled, mask, key), wanted)
            return (each * weight).sum() / weight.sum()

        value, slope = jax.value_and_grad(loss)(tuned)
        change, state = optimiser.update(slope, state, tuned)
        return optax.apply_updates(tuned, change), state, value

    answer = jax.jit(lambda tuned, filled, mask: logits(tuned, base, filled, mask))
    began_s = time.monotonic()
    for epoch in range(phase.epochs):
        losses = []
        for places, filled, mask in batches(ids, chance.permutation(len(pairs)), chance):
            key, one = jax.random.split(key)
            wanted, weight = np.zeros(BATCH, np.float32), np.zeros(BATCH, np.float32)
            wanted[: len(places)], weight[: len(places)] = answers[places], 1
            tuned, state, value = step(tuned, state, (filled, mask, wanted, weight), one)
            losses.append(float(value))
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, {time.monotonic() - began_s:.0f} s", flush=True)
        for name, (read, some) in tried.items():
            scores = np.zeros(len(some))
            for places, filled, mask in batches(read, np.arange(len(some)), None):
                scores[places] = np.asarray(answer(tuned, filled, mask))[: len(places)]
            print(f"  {name}, {len(some)} pairs: {shares(scores, some)}", flush=True)
    return tuned


def write(tuned: Arrays) -> None:
    """Write the file: the factors in half precision, the second one with the scale in it."""
    kept = {name: np.asarray(value, np.float16) for name, value in tuned.items() if not name.startswith("head.")}
    kept |= {name: value * np.float16(SCALE) for name, value in kept.items() if name.endswith(".b")}
    head = {name: np.asarray(value, np.float32) for name, value in tuned.items() if name.startswith("head.")}
    np.savez_compressed(OUT, sha256=np.array(MODEL_SHA256), **kept, **head)


def written() -> Arrays:
    """Return what the file holds."""
    with np.load(OUT) as file:
        tuned = {name: jnp.asarray(file[name], jnp.float32) for name in file if name != "sha256"}
    return {name: value / SCALE if name.endswith(".b") else value for name, value in tuned.items()}


def main() -> int:
    """Train and refine, say how well it does, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--refine", action="store_true", help="only refine what the file holds")
    encoder = builtin_encoder()

    def encode(texts: list[str]) -> np.ndarray:
        return np.asarray(encoder.encode(texts, query=False))

    sets = {
        "held apart": list(pairs_of(held_apart())),
        "all true together": [*groups_apart(), *near_pairs(stores(apart=True), encode, most=4)],
        "unread": unread_pairs(),
        **voices_apart(encode),
    }
    if parser.parse_args().refine:
        tuned = written()
    else:
        tuned = trained(beginning(frozen(), jax.random.PRNGKey(0)), training_pairs(), sets, FIRST)
    write(trained(tuned, refining_pairs(encode), sets, SECOND))
    return 0


if __name__ == "__main__":
    sys.exit(main())
