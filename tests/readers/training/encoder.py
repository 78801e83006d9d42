"""The packaged encoder in jax, with adapters that can be trained; its own weights stay as they are."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from memoryd.embedding.packaged import MODEL_SHA256, array_of, data_file, packaged_model
from memoryd.embedding.readers.adapters import LAYERS, PARTS, WIDTH

__all__ = ["WIDTH", "Arrays", "beginning", "frozen", "read_file", "states", "write_file"]

RANK, DROPOUT = 8, 0.1
HEADS, EPSILON = 12, 1e-12
SCALE = 2.0  # of what an adapter adds
Arrays = dict[str, Any]


def frozen() -> Arrays:
    """Return the arrays of the packaged model in float."""
    model = packaged_model()
    places = json.loads(data_file("minilm.json"))["arrays"]
    arrays = {name: np.asarray(array_of(model, place)) for name, place in places.items()}
    for name in [name for name in arrays if name.endswith(".weight")]:
        arrays[name] = arrays[name] * arrays[name.replace(".weight", ".scale")]
    arrays["words"] = arrays["words"] * arrays["words.scale"]
    arrays["places"] = arrays["places"] * arrays["places.scale"]
    for name in [name for name in arrays if name.endswith(".weight")]:
        arrays[f"{name}.turned"] = np.ascontiguousarray(arrays[name].T)
    return {name: jnp.asarray(array, jnp.float32) for name, array in arrays.items()}


@jax.custom_vjp
def _times(rows: jax.Array, weight: jax.Array, turned: jax.Array) -> jax.Array:
    """Return rows times a weight that gets no gradient; `turned` is it turned, as XLA would turn it each time."""
    return rows @ weight


def _times_forward(rows: jax.Array, weight: jax.Array, turned: jax.Array) -> tuple[jax.Array, jax.Array]:
    return rows @ weight, turned


def _times_backward(turned: jax.Array, slope: jax.Array) -> tuple[jax.Array, None, None]:
    return slope @ turned, None, None


_times.defvjp(_times_forward, _times_backward)


def beginning(base: Arrays, outputs: int, *, first: int = 0) -> Arrays:
    """Return adapters that add nothing yet, of the layers from `first` on, and a head that says nothing, or none."""
    key = jax.random.PRNGKey(0)
    made: Arrays = {"head.weight": jnp.zeros((WIDTH, outputs)), "head.bias": jnp.zeros(outputs)} if outputs else {}
    for layer in range(first, LAYERS):
        for matrix, names in PARTS.items():
            height, width = base[f"layer{layer}.{matrix}.weight"].shape
            for name in names:
                key, one = jax.random.split(key)
                made[f"layer{layer}.{name}.a"] = jax.random.normal(one, (height, RANK)) / np.sqrt(height)
                made[f"layer{layer}.{name}.b"] = jnp.zeros((RANK, width // len(names)))
    return made


def states(tuned: Arrays, base: Arrays, ids: jax.Array, mask: jax.Array, key: jax.Array | None = None) -> jax.Array:
    """Return the state of each token, ids of shape (texts, tokens); mask is 0 for a token, far below it for padding."""

    def product(rows: jax.Array, layer: int, matrix: str) -> jax.Array:
        names = [f"layer{layer}.{name}" for name in PARTS[matrix]]
        weight = f"layer{layer}.{matrix}.weight"
        whole = _times(rows, base[weight], base[f"{weight}.turned"])
        if f"{names[0]}.a" not in tuned:
            return whole
        added = [(rows @ tuned[f"{name}.a"]) @ tuned[f"{name}.b"] for name in names]  # its weights get no gradient
        return whole + SCALE * jnp.concatenate(added, axis=-1)

    count, length = ids.shape
    rows = base["words"][ids] + base["places"][:length] + base["kinds"][0]
    rows = _norm(rows, base, "input").reshape(count * length, WIDTH)
    for layer in range(LAYERS):
        name = f"layer{layer}"
        joined = product(rows, layer, "qkv") + base[f"{name}.qkv.bias"]
        query, asked, value = (
            part.reshape(count, length, HEADS, -1).transpose(0, 2, 1, 3) for part in jnp.split(joined, 3, axis=-1)
        )
        shares = jax.nn.softmax(query @ asked.transpose(0, 1, 3, 2) / np.sqrt(WIDTH / HEADS) + mask, axis=-1)
        seen = (shares @ value).transpose(0, 2, 1, 3).reshape(count * length, WIDTH)
        seen = rows + product(seen, layer, "out") + base[f"{name}.attention.bias"]
        rows = _norm(seen, base, f"{name}.attention.norm")
        wide = jax.nn.gelu(product(rows, layer, "wide") + base[f"{name}.wide.bias"], approximate=False)
        rows = _norm(rows + product(wide, layer, "narrow") + base[f"{name}.output.bias"], base, f"{name}.output.norm")
        if key is not None:
            key, one = jax.random.split(key)
            rows = rows * jax.random.bernoulli(one, 1 - DROPOUT, rows.shape) / (1 - DROPOUT)
    return rows.reshape(count, length, WIDTH)


def _norm(rows: jax.Array, base: Arrays, name: str) -> jax.Array:
    average = jnp.full((WIDTH, 1), 1 / WIDTH)  # as a product: XLA repeats a sum for every element of its gradient
    apart = rows - rows @ average
    return apart / jnp.sqrt((apart * apart) @ average + EPSILON) * base[f"{name}.gain"] + base[f"{name}.shift"]


def write_file(path: Path, tuned: Arrays) -> None:
    """Write a reader's file: the factors in half precision, the second one with the scale in it, the head if any."""
    kept = {name: np.asarray(value, np.float16) for name, value in tuned.items() if not name.startswith("head.")}
    kept |= {name: value * np.float16(SCALE) for name, value in kept.items() if name.endswith(".b")}
    head = {name: np.asarray(value, np.float32) for name, value in tuned.items() if name.startswith("head.")}
    path.parent.mkdir(parents=True, exist_ok=True)
    made = io.BytesIO()
    if head:  # all heads look alike, so the file says which it is
        kept["reader"] = np.array(path.stem)
    np.savez_compressed(made, sha256=np.array(MODEL_SHA256), **kept, **head)
    path.write_bytes(made.getvalue())


def read_file(path: Path) -> Arrays:
    """Return what a reader's file holds."""
    with np.load(path) as file:
        tuned = {name: jnp.asarray(file[name], jnp.float32) for name in file if name not in ("reader", "sha256")}
    made = {name: value / SCALE if name.endswith(".b") else value for name, value in tuned.items()}
    if "head.bias" not in made:
        return made
    bias = jnp.atleast_1d(made["head.bias"])
    return {**made, "head.weight": made["head.weight"].reshape(WIDTH, len(bias)), "head.bias": bias}
