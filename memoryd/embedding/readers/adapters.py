"""
What makes a reader of the packaged encoder: low-rank adapters that are added to its weights, and a linear head.

Adapters are those of Hu et al. (LoRA, 2021): of each matrix two factors, whose product is added to it. `make
train-readers` makes the files: data/readers/NAME.npz, or NAME.npz in a directory of your own.
"""

from __future__ import annotations

import functools
import io
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

from memoryd.embedding.base import ModelRefused
from memoryd.embedding.packaged import (
    MODEL_SHA256,
    IntegerGraph,
    data_file,
    integer_graph,
    packaged_model,
    packaged_tokenizer,
)
from memoryd.embedding.readers.texts import whole_texts

__all__ = ["LAYERS", "PARTS", "WIDTH", "Adapters", "Tuned", "reader_tokenizer", "tuned_encoder"]

LAYERS, WIDTH = 6, 384
PARTS = {"qkv": "qkv", "out": "o", "wide": "f", "narrow": "r"}
"""The matrices of a layer, and the adapters that are added to each, side by side."""

Floats = NDArray[np.float32]


class Adapters(Mapping[str, Floats]):
    """What is added to each matrix of the packaged model, by its name; each is made when it is asked for."""

    def __init__(self, values: Mapping[str, NDArray[Any]]) -> None:
        """Take the two factors of each."""
        self._values = values

    def __getitem__(self, name: str) -> Floats:
        layer, _, matrix = name.partition(".")
        return np.concatenate([self._product(f"{layer}.{part}") for part in PARTS[matrix]], axis=1)

    def __iter__(self) -> Iterator[str]:
        layers = (layer for layer in range(LAYERS) if f"layer{layer}.{PARTS['qkv'][0]}.a" in self._values)
        return (f"layer{layer}.{matrix}" for layer in layers for matrix in PARTS)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _product(self, name: str) -> Floats:
        left, right = self._values[f"{name}.a"], self._values[f"{name}.b"]
        made: Floats = left.astype(np.float32) @ right.astype(np.float32)
        return made


@dataclass(frozen=True, slots=True)
class Tuned:
    """A tuned encoder with its head."""

    graph: IntegerGraph
    tokenizer: tokenizers.Tokenizer
    """That neither pads nor cuts."""
    weight: Floats
    """Of the head: shape (width, outputs)."""
    bias: Floats


def tuned_encoder(name: str, directory: Path | None, *, outputs: int) -> Tuned:
    """Return the packaged encoder as a reader's file tunes it; ModelRefused where it cannot be had, or does not fit."""
    path = f"data/readers/{name}.npz" if directory is None else str(directory / f"{name}.npz")
    try:
        file = data_file(f"readers/{name}.npz") if directory is None else Path(path).read_bytes()
        with np.load(io.BytesIO(file), allow_pickle=False) as loaded:
            values = dict(loaded)
        is_of_model = str(values["sha256"]) == MODEL_SHA256
        graph = integer_graph(packaged_model(), Adapters(values)) if is_of_model else None
        weight, bias = values["head.weight"].reshape(WIDTH, outputs), values["head.bias"].reshape(outputs)
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
        way = "install memoryd again" if directory is None else f"make it by: make train-readers READER={name}"
        raise ModelRefused(f"{path} cannot be read: {error}; {way}") from None
    if not is_of_model:
        raise ModelRefused(f"{path} is of another model; make it anew by: make train-readers READER={name}")
    if not all(np.isfinite(values[name]).all() for name in values if name != "sha256"):
        raise ModelRefused(f"{path} holds what is no number; make it anew by: make train-readers READER={name}")
    if graph is None:
        raise ModelRefused(f"this processor does not multiply integers exactly; set readers.{name} to none")
    return Tuned(graph, reader_tokenizer(), weight, bias)


@functools.cache
def reader_tokenizer() -> tokenizers.Tokenizer:
    """Return the tokenizer of all readers."""
    return whole_texts(tokenizers.Tokenizer.from_str(packaged_tokenizer().decode()))
