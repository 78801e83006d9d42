"""
What makes a reader of the packaged encoder: low-rank adapters that are added to its weights, and a linear head.

Adapters are those of Hu et al. (LoRA, 2021): of each matrix two factors, whose product is added to it. `make
train-readers` makes the files: data/readers/NAME.npz, or NAME.npz in a directory of your own.
"""

from __future__ import annotations

import contextlib
import functools
import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

from memoryd.embedding.base import ModelRefused
from memoryd.embedding.onnx import sha256_of
from memoryd.embedding.packaged import (
    MODEL_SHA256,
    AdaptedGraph,
    IntegerGraph,
    adapted_graph,
    data_file,
    integer_graph,
    is_exact,
    is_installed,
    packaged_model,
    packaged_tokenizer,
)
from memoryd.embedding.readers.texts import whole_texts

__all__ = [
    "LAYERS",
    "PARTS",
    "WIDTH",
    "Adapters",
    "Tuned",
    "can_read",
    "checked_values",
    "reader_tokenizer",
    "tuned_encoder",
    "tuned_graph",
    "values_of",
]

LAYERS, WIDTH = 6, 384
PARTS = {"qkv": "qkv", "out": "o", "wide": "f", "narrow": "r"}
"""The matrices of a layer, and the adapters that are added to each, side by side."""
SHAPES = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH), "wide": (WIDTH, 4 * WIDTH), "narrow": (4 * WIDTH, WIDTH)}

Floats = NDArray[np.float32]
Values = Mapping[str, NDArray[Any]]


class Adapters(Mapping[str, Floats]):
    """
    What is added to each matrix of the packaged model, by its name; each is made when it is asked for.

    ValueError where factors are of other shapes than the matrix.
    """

    def __init__(self, values: Values) -> None:
        """Take the two factors of each."""
        self._values = values

    def __getitem__(self, name: str) -> Floats:
        first, second = self._factors_of(name)
        made: Floats = first @ second
        return made

    def __iter__(self) -> Iterator[str]:
        layers = (layer for layer in range(LAYERS) if f"layer{layer}.{PARTS['qkv'][0]}.a" in self._values)
        return (f"layer{layer}.{matrix}" for layer in layers for matrix in PARTS)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def factors(self) -> dict[str, Floats]:
        """Return two factors for each matrix of the model: NAME.a, and NAME.b with zeros where parts do not meet."""
        made: dict[str, Floats] = {}
        there = set(self)
        for name in (f"layer{layer}.{matrix}" for layer in range(LAYERS) for matrix in PARTS):
            height, width = _shape_of(name)
            none = np.zeros((height, 1), np.float32), np.zeros((1, width), np.float32)
            made[f"{name}.a"], made[f"{name}.b"] = self._factors_of(name) if name in there else none
        return made

    def _factors_of(self, name: str) -> tuple[Floats, Floats]:
        layer, _, matrix = name.partition(".")
        pairs = [f"{layer}.{part}" for part in PARTS[matrix]]
        first = np.concatenate([self._values[f"{pair}.a"].astype(np.float32) for pair in pairs], axis=1)
        second = _diagonal([self._values[f"{pair}.b"].astype(np.float32) for pair in pairs])
        if (len(first), second.shape[1]) != _shape_of(name) or first.shape[1] != len(second):
            raise ValueError(f"the factors of {name} are of shapes {first.shape} and {second.shape}")
        return first, second


def _shape_of(name: str) -> tuple[int, int]:
    return SHAPES[name.partition(".")[2]]


def _diagonal(blocks: Sequence[Floats]) -> Floats:
    """Return a matrix with blocks along its diagonal, and zeros."""
    made = np.zeros((sum(len(block) for block in blocks), sum(block.shape[1] for block in blocks)), np.float32)
    row = column = 0
    for one in blocks:
        made[row : row + len(one), column : column + one.shape[1]] = one
        row, column = row + len(one), column + one.shape[1]
    return made


@dataclass(frozen=True, slots=True)
class Tuned:
    """A tuned encoder with its head."""

    graph: AdaptedGraph
    tokenizer: tokenizers.Tokenizer
    """That neither pads nor cuts."""
    weight: Floats
    """Of the head: shape (width, outputs)."""
    bias: Floats

    def logits(self, states: Floats) -> Floats:
        """Return what the head says of states, shape (…, width): shape (…, outputs)."""
        found: Floats = states @ self.weight + self.bias
        return found

    def chances(self, states: Floats) -> Floats:
        """Return the same as chances of 0–1, each output by itself."""
        return np.asarray(1 / (1 + np.exp(-self.logits(states))), np.float32)

    def read(self, texts: Sequence[Sequence[int] | None]) -> list[float | None]:
        """Return the chance that the one output tells of each text, by its first token; None of None."""
        states = iter(self.graph.states([ids for ids in texts if ids is not None]))
        return [None if ids is None else float(self.chances(next(states)[0])[0]) for ids in texts]


def tuned_encoder(name: str, directory: Path | None, *, outputs: int) -> Tuned:
    """Return the packaged encoder as a reader's file tunes it; ModelRefused where it cannot be had, or does not fit."""
    values = checked_values(name, directory, outputs=outputs)
    graph = adapted_graph(packaged_model(), Adapters(values).factors())
    if graph is None:
        raise ModelRefused(f"this processor does not multiply integers exactly; set readers.{name} to none")
    return Tuned(graph, reader_tokenizer(), values["head.weight"], values["head.bias"])


def checked_values(name: str, directory: Path | None, *, outputs: int) -> Values:
    """Return what the file of a reader with a head holds; ModelRefused where anything of it does not fit."""
    values, _ = values_of(name, directory)
    with _read_as(name, directory):
        Adapters(values).factors()
        weight, bias = values["head.weight"], values["head.bias"]
        if (weight.shape, bias.shape) != ((WIDTH, outputs), (outputs,)):
            raise ValueError(f"its head is of shape {weight.shape}, not {(WIDTH, outputs)}")
    return values


def tuned_graph(name: str, directory: Path | None) -> tuple[IntegerGraph | None, str]:
    """
    Return the packaged encoder with a file's adapters in its weights, and the SHA-256 of the file.

    None where this processor does not multiply integers exactly; ModelRefused where the file does not fit.
    """
    values, file_hash = values_of(name, directory)
    with _read_as(name, directory):
        adapters = Adapters(values)
        if not len(adapters):
            raise ValueError("it holds no adapters")
        return integer_graph(packaged_model(), adapters), file_hash


def values_of(name: str, directory: Path | None) -> tuple[Values, str]:
    """Return what a reader's file holds, and its SHA-256; ModelRefused where it is none, or of another model."""
    path = _path(name, directory)
    with _read_as(name, directory):
        file = data_file(f"readers/{name}.npz") if directory is None else Path(path).read_bytes()
        values = _arrays_of(file)
        reader, is_of_model = str(values.get("reader", name)), str(values["sha256"]) == MODEL_SHA256
        is_finite = all(np.isfinite(one).all() for one in values.values() if one.dtype.kind != "U")
    if reader != name:
        raise ModelRefused(f"{path} is of the {reader} reader; make it anew by: make train-readers READER={name}")
    if not is_of_model:
        raise ModelRefused(f"{path} is of another model; make it anew by: make train-readers READER={name}")
    if not is_finite:
        raise ModelRefused(f"{path} holds what is no number; make it anew by: make train-readers READER={name}")
    return values, sha256_of(file)


def _arrays_of(file: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file; ValueError where it is none, or holds other things than numbers."""
    if not zipfile.is_zipfile(io.BytesIO(file)):
        raise ValueError("it is no whole .npz file")
    with np.load(io.BytesIO(file), allow_pickle=False) as loaded:
        try:
            return dict(loaded)
        except ValueError as error:  # what numpy says of it advises to trust the file
            raise ValueError("it holds other things than numbers") from error


def can_read() -> bool:
    """Whether readers can be had here: the packaged model is installed, and this processor is exact with it."""
    return is_installed() and is_exact()


def _path(name: str, directory: Path | None) -> str:
    return f"data/readers/{name}.npz" if directory is None else str(directory / f"{name}.npz")


def _way(name: str, directory: Path | None) -> str:
    return "install memoryd again" if directory is None else f"make it by: make train-readers READER={name}"


@contextlib.contextmanager
def _read_as(name: str, directory: Path | None) -> Iterator[None]:
    """Say of a file that does not fit how to get one that does."""
    try:
        yield
    except FileNotFoundError:
        raise ModelRefused(f"{_path(name, directory)} is not there; {_way(name, directory)}") from None
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ModelRefused(f"{_path(name, directory)} cannot be read: {error}; {_way(name, directory)}") from None


@functools.cache
def reader_tokenizer() -> tokenizers.Tokenizer:
    """Return the tokenizer of all readers."""
    return whole_texts(tokenizers.Tokenizer.from_str(packaged_tokenizer().decode()))
