"""
The change reader: reads an older and a newer statement, and says how sure it is that the older one holds no more.

`directory_reader` is one of your own instead: a directory with a file of `make train-readers`, or with a cross-encoder
for natural language inference in the layout of Hugging Face, whose config.json names its label "contradiction".
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tokenizers
from numpy.typing import NDArray

from memoryd.embedding.base import ModelRefused
from memoryd.embedding.directory import files_of
from memoryd.embedding.onnx import inputs_of, open_session, run_padded
from memoryd.embedding.readers.adapters import tuned_encoder
from memoryd.embedding.readers.reader import Read, Reader
from memoryd.embedding.readers.texts import MOST_PIECES, Pair, are_known, pair_ids, pieces_of, whole_texts

__all__ = ["NAME", "ChangeReader", "builtin_reader", "directory_reader"]

NAME = "change"

Floats = NDArray[np.float32]
ChangeReader = Reader[Pair, float]
"""Reads pairs of an older and a newer statement; 0–1 for each."""


def builtin_reader() -> ChangeReader:
    """Return the packaged model; it is refused where it is not installed, or this processor is not exact."""
    return Reader(NAME, functools.partial(_tuned, None))


def _tuned(directory: Path | None) -> Read[Pair, float]:
    tuned = tuned_encoder(NAME, directory, outputs=1)

    def read(pairs: Sequence[Pair]) -> list[float]:
        known = are_known(tuned.tokenizer, [text for pair in pairs for text in pair])
        both = map(all, zip(known[::2], known[1::2], strict=True))  # of letters alone it would guess
        ids = [row if is_read else None for row, is_read in zip(pair_ids(tuned.tokenizer, pairs), both, strict=True)]
        return [chance or 0.0 for chance in tuned.read(ids)]

    return read


def directory_reader(directory: Path) -> ChangeReader:
    """Return a model of your own; ModelRefused says what is wrong with it."""
    if (directory / f"{NAME}.npz").is_file():
        return Reader(NAME, functools.partial(_tuned, directory))
    model, tokenizer_path = files_of(directory)
    label = _contradiction_label(directory / "config.json")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_path))
    except Exception as error:  # noqa: BLE001  it raises what it likes
        raise ModelRefused(f"{tokenizer_path} cannot be loaded: {error}") from None
    whole_texts(tokenizer)
    session = open_session(model)
    inputs = inputs_of(session)

    def logits_of(pairs: Sequence[Pair]) -> Floats:
        encoded = tokenizer.encode_batch(list(pairs))
        found, _ = run_padded(
            session, inputs, [encoding.ids for encoding in encoded], [encoding.type_ids for encoding in encoded]
        )
        return np.asarray(found, dtype=np.float32)

    tried = logits_of([("I have a cat.", "I have no cat.")])
    if tried.ndim != 2 or tried.shape[1] <= label or not np.isfinite(tried).all():  # noqa: PLR2004  pairs by labels
        raise ModelRefused(f"{model} gives no logits for the labels of its config.json")

    def read(pairs: Sequence[Pair]) -> list[float]:
        pieces = pieces_of(tokenizer, [text for pair in pairs for text in pair], most=MOST_PIECES)
        fit = [older is not None and newer is not None for older, newer in zip(pieces[::2], pieces[1::2], strict=True)]
        chosen = [pair for pair, is_fit in zip(pairs, fit, strict=True) if is_fit]
        if not chosen:
            return [0.0] * len(pairs)
        logits = logits_of(chosen)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares = iter((powers[:, label] / powers.sum(axis=1)).tolist())
        return [next(shares) if is_fit else 0.0 for is_fit in fit]

    return Reader(NAME, lambda: read)


def _contradiction_label(path: Path) -> int:
    """Return the place of the label "contradiction"; ModelRefused if a model has none."""
    try:
        labels = json.loads(path.read_bytes())["id2label"]
        places = [int(place) for place, name in labels.items() if str(name).casefold() == "contradiction"]
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ModelRefused(f"{path} cannot be read, or names no labels: {error}") from None
    if len(places) != 1:
        raise ModelRefused(f'{path} has no label "contradiction"; it is no model for natural language inference')
    return places[0]
