"""
Sentence encoders as ONNX graphs.

Files are read by onnxruntime and tokenizers only: no pickles, no custom operators, no download.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import onnxruntime
import tokenizers
from numpy.typing import NDArray

from memoryd.embedding.base import ModelRefused
from memoryd.embedding.tokens import TOKEN_CODES, codes_of, known_share, projection
from memoryd.model.embedding import TOKEN_DIMENSIONS, Embedded

__all__ = [
    "WINDOW",
    "FloatGraph",
    "OnnxEncoder",
    "PooledGraph",
    "Recipe",
    "inputs_of",
    "open_session",
    "run_padded",
    "sha256_of",
]

WINDOW = 254  # word pieces of a text that are embedded; the best of all windows of a long text is worse (measured)
SELF_TEST_TOLERANCE = 0.1  # of an int8 model whose vectors depend a little on their batch
CHARACTERS_A_TOKEN = 16  # a token has rarely more
INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is done with a text before and after the graph."""

    pooling: str  # "mean" or "cls"
    normalize: bool = True
    query_prefix: str = ""
    document_prefix: str = ""
    max_tokens: int = WINDOW
    tokens: bool = False
    """Whether the vectors of its tokens are compared: of models with which that was measured."""


class PooledGraph(Protocol):
    """A model between its tokenizer and the length of 1."""

    arithmetic: str
    """What the vectors depend on besides the file: "" is that of the file, in float32."""

    def states(self, ids: Sequence[Sequence[int]]) -> list[Floats] | None:
        """Return what the model makes of each token, of lists of ids: shapes (tokens, dimensions); None: it pools."""
        ...

    def pooled(self, ids: Sequence[Sequence[int]]) -> Floats:
        """Return one vector a list of token ids, of any length: shape (len(ids), dimensions)."""
        ...


def sha256_of(data: bytes) -> str:
    """Return the SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def open_session(
    model: bytes | Path, *, arrays: Mapping[str, onnxruntime.OrtValue] = MappingProxyType({}), arena: bool = False
) -> Any:
    """
    Open a graph for one thread a call; callers bring their own threads. ModelRefused if it cannot be loaded.

    `arrays` are those that the graph declares and does not hold; keep them, as they are read where they are. `arena`
    keeps the memory of the largest batch for ever, and no call waits for pages: for batches of bounded size.
    """
    options = onnxruntime.SessionOptions()
    if arrays:
        options.add_external_initializers(list(arrays), list(arrays.values()))
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_cpu_mem_arena = arena
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(
            model if isinstance(model, bytes) else str(model),
            options,
            providers=[("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})],
        )
    except Exception as error:  # noqa: BLE001  it raises what it likes
        raise ModelRefused(f"the model cannot be loaded: {error}") from None


def inputs_of(session: onnxruntime.InferenceSession) -> frozenset[str]:
    """Return the names of what a graph wants; ModelRefused if that is more than tokens."""
    wanted = frozenset(item.name for item in session.get_inputs())
    unknown = wanted - INPUTS
    if unknown:
        raise ModelRefused(f"the model wants inputs that memoryd does not know: {', '.join(sorted(unknown))}")
    return wanted


def run_padded(
    session: onnxruntime.InferenceSession,
    inputs: frozenset[str],
    ids: Sequence[Sequence[int]],
    types: Sequence[Sequence[int]] = (),
) -> tuple[Floats, NDArray[np.int64]]:
    """
    Return what a graph makes of lists of token ids, padded to the longest, and the mask of what is no padding.

    `inputs` are those of the graph (`inputs_of`); `types` has one number a token, as tokenizers give them for pairs.
    """
    feed = {name: np.zeros((len(ids), max(map(len, ids))), dtype=np.int64) for name in INPUTS}
    for n, tokens in enumerate(ids):
        feed["input_ids"][n, : len(tokens)] = tokens
        feed["attention_mask"][n, : len(tokens)] = 1
        if types:
            feed["token_type_ids"][n, : len(tokens)] = types[n]
    return session.run(None, {name: feed[name] for name in inputs})[0], feed["attention_mask"]


class FloatGraph:
    """A graph as its maker exported it: a batch is padded to its longest text and masked."""

    arithmetic = ""

    def __init__(self, model: bytes | Path, pooling: str) -> None:
        """Load it; ModelRefused if it wants more than tokens."""
        self._session = open_session(model)
        self._pooling = pooling
        self._inputs = inputs_of(self._session)

    def states(self, ids: Sequence[Sequence[int]]) -> list[Floats] | None:
        """Return what the model makes of each token; see PooledGraph."""
        states, mask = self._run(ids)
        if states.ndim == 2:  # noqa: PLR2004  the model pools by itself
            return None
        return [state[: int(count)] for state, count in zip(states, mask.sum(axis=1), strict=True)]

    def pooled(self, ids: Sequence[Sequence[int]]) -> Floats:
        """Return one vector a text; see PooledGraph."""
        states, mask = self._run(ids)
        if states.ndim == 2:  # noqa: PLR2004  the model pools by itself
            return states
        if self._pooling == "cls":
            return states[:, 0]
        weights = mask[:, :, None].astype(np.float32)
        mean: Floats = (states * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)
        return mean

    def _run(self, ids: Sequence[Sequence[int]]) -> tuple[Floats, NDArray[np.int64]]:
        return run_padded(self._session, self._inputs, ids)


class OnnxEncoder:
    """Tokens, a graph, and vectors of length 1."""

    local = True

    def __init__(
        self,
        provider: str,
        graph: PooledGraph,
        model_hash: str,
        tokenizer_json: bytes,
        recipe: Recipe,
        dimensions: int,
    ) -> None:
        """Load the tokenizer and test the model; dimensions 0 means the model's own, less cuts a Matryoshka vector."""
        self.provider = provider
        self._graph = graph
        self._recipe = recipe
        try:
            self._tokenizer = tokenizers.Tokenizer.from_str(tokenizer_json.decode())
        except Exception as error:  # noqa: BLE001  it raises what it likes
            raise ModelRefused(f"the tokenizer of provider {provider!r} cannot be loaded: {error}") from None
        self._tokenizer.no_padding()
        special = self._tokenizer.num_special_tokens_to_add(is_pair=False)
        self._tokenizer.enable_truncation(recipe.max_tokens + special)
        unknown = json.loads(tokenizer_json)["model"].get("unk_token")
        self._unknown = None if unknown is None else self._tokenizer.token_to_id(unknown)
        self.dimensions = 0
        self._projection: Floats | None = None
        native = self.encode(["dimensions"], query=False).shape[1]
        if dimensions > native:
            raise ModelRefused(f"embedding.dimensions is {dimensions}, but the model makes {native}")
        self.dimensions = dimensions or native
        if recipe.tokens and native >= TOKEN_DIMENSIONS:
            self._projection = projection(native)
        made_by = [
            model_hash, sha256_of(tokenizer_json), recipe.pooling, recipe.normalize, recipe.query_prefix,
            recipe.document_prefix, recipe.max_tokens, self.dimensions,
        ]  # fmt: skip
        if graph.arithmetic:
            made_by.append(graph.arithmetic)
        if self._projection is not None:
            made_by.append(TOKEN_CODES)
        self.fingerprint = sha256_of(json.dumps(made_by).encode())[:32]
        self._self_test()

    def _self_test(self) -> None:
        """Refuse a model whose vectors are no numbers, depend on their neighbours, or do not tell texts apart."""
        texts = ["The cat sleeps on the sofa.", "A cat is asleep on the couch.", "Interest rates rose by two percent."]
        together = self.encode(texts, query=False)
        alone = np.concatenate([self.encode([text], query=False) for text in texts])
        if not np.isfinite(together).all() or np.abs(together - alone).max() > SELF_TEST_TOLERANCE:
            raise ModelRefused(f"the model of provider {self.provider!r} fails its self-test: unstable vectors")
        if together[0] @ together[1] <= together[0] @ together[2]:
            raise ModelRefused(f"the model of provider {self.provider!r} fails its self-test: it tells no texts apart")

    def cost(self, text: str) -> int:
        """Return roughly how many tokens the model will see: four characters each."""
        return min(self._recipe.max_tokens, len(text) // 4 + 2)

    def _encoded(self, texts: Sequence[str], *, query: bool) -> tuple[str, list[tokenizers.Encoding]]:
        prefix = self._recipe.query_prefix if query else self._recipe.document_prefix
        longest = self._recipe.max_tokens * CHARACTERS_A_TOKEN  # a text far beyond the window is cut before
        return prefix, self._tokenizer.encode_batch([prefix + text[:longest] for text in texts])

    def _vectors(self, pooled: Floats) -> Floats:
        vectors = pooled[:, : self.dimensions] if self.dimensions else pooled
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.ascontiguousarray(vectors / np.maximum(norms, 1e-12), dtype=np.float32)

    def encode(self, texts: Sequence[str], *, query: bool) -> Floats:
        """Return vectors of length 1, shape (len(texts), dimensions), float32."""
        _, encoded = self._encoded(texts, query=query)
        return self._vectors(self._graph.pooled([item.ids for item in encoded]))

    def read(self, texts: Sequence[str], *, query: bool) -> list[Embedded]:
        """Return texts as the model sees them; with the vectors of their tokens, where it is known to compare well."""
        prefix, encoded = self._encoded(texts, query=query)
        states = self._graph.states([item.ids for item in encoded]) if self._projection is not None else None
        if states is None or self._projection is None:
            vectors = self._vectors(self._graph.pooled([item.ids for item in encoded]))
        else:
            vectors = self._vectors(np.stack([state.mean(axis=0) for state in states]))
        embedded = []
        for n, item in enumerate(encoded):
            inner = [place for place, special in enumerate(item.special_tokens_mask) if not special]
            tokens = b"" if states is None or self._projection is None else codes_of(states[n][inner], self._projection)
            if not query:
                embedded.append(Embedded(vectors[n], tokens))
                continue
            if not tokens:
                embedded.append(Embedded(vectors[n]))
                continue
            places = tuple((item.offsets[i][0] - len(prefix), item.offsets[i][1] - len(prefix)) for i in inner)
            unknown = [item.ids[i] == self._unknown for i in inner]
            embedded.append(Embedded(vectors[n], tokens, places, known_share(texts[n], places, unknown)))
        return embedded
