"""
A model of your own: a directory in the Hugging Face layout of sentence-transformers, exported to ONNX.

What cannot be known is never guessed: a directory without a pooling configuration is refused.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from memoryd.embedding.base import ModelRefused
from memoryd.embedding.onnx import WINDOW, FloatGraph, OnnxEncoder, Recipe

__all__ = ["directory_encoder", "files_of"]


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ModelRefused(f"{path} cannot be read: {error}") from None


def files_of(directory: Path) -> tuple[Path, Path]:
    """Return the graph and the tokenizer of a directory; ModelRefused where one of them is missing."""
    paths = [path for path in (directory / "onnx" / "model.onnx", directory / "model.onnx") if path.is_file()]
    if not paths:
        raise ModelRefused(f"{directory} has neither onnx/model.onnx nor model.onnx; export the model to ONNX first")
    tokenizer_path = directory / "tokenizer.json"
    if not tokenizer_path.is_file():
        raise ModelRefused(f"{tokenizer_path} is missing; save the fast tokenizer of the model there")
    for path in paths[0].parent.glob("model.onnx*"):  # external data lies next to the model
        if not path.resolve().is_relative_to(directory.resolve()):
            raise ModelRefused(f"{path} points outside of {directory}")
    return paths[0], tokenizer_path


def directory_encoder(directory: Path, *, dimensions: int = 0) -> OnnxEncoder:
    """Return the model of a directory in the Hugging Face layout of sentence-transformers."""
    model, tokenizer_path = files_of(directory)
    hashed = hashlib.sha256()
    for path in sorted(model.parent.glob("model.onnx*")):
        hashed.update(path.read_bytes())
    recipe = _recipe_of(directory)
    graph = FloatGraph(model, recipe.pooling)
    return OnnxEncoder(str(directory), graph, hashed.hexdigest(), tokenizer_path.read_bytes(), recipe, dimensions)


def _recipe_of(directory: Path) -> Recipe:
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
    return Recipe(
        known[modes.pop()],
        query_prefix=prompts.get("query", ""),
        document_prefix=prompts.get("document", prompts.get("passage", "")),
        max_tokens=max(1, min(WINDOW, int(length) - 2)),
    )
