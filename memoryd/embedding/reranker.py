"""
A cross-encoder: a model that reads a question and a text together, and says how well one answers the other.

A directory in the Hugging Face layout: tokenizer.json, onnx/model.onnx or model.onnx, with one logit a pair. It takes
milliseconds a pair, so only the best hits are read, within a time budget; what there was no time for keeps its place.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

from memoryd.embedding.base import ModelRefused
from memoryd.embedding.directory import files_of
from memoryd.embedding.onnx import WINDOW, inputs_of, open_session, run_padded
from memoryd.turns import started

__all__ = ["CrossEncoder"]

AT_ONCE = 8  # pairs that are read together: between two such pieces it is seen whether time is left
FIRST = 2  # of the first piece, whose time no one knows yet
MOST_CHARACTERS, MOST_ASKED = 4096, 1000  # of a text, and of a question


class CrossEncoder:
    """Reads pairs in a thread of its own, one question after the other."""

    def __init__(self, directory: Path, *, budget_s: float) -> None:
        """Load and try it; ModelRefused says what is wrong with it."""
        model, tokenizer = files_of(directory)
        self._budget_s = budget_s
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
        except Exception as error:  # noqa: BLE001  it raises what it likes
            raise ModelRefused(f"{tokenizer} cannot be loaded: {error}") from None
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(2 * WINDOW + 3, strategy="longest_first")
        self._session = open_session(model)
        self._inputs = inputs_of(self._session)
        found = self._logits("What is it?", ["It is a test."])
        if found.shape != (1,) or not np.isfinite(found).all():
            raise ModelRefused(f"{model} gives no single logit a pair: it is no cross-encoder for ranking")
        self._thread = started(ThreadPoolExecutor(1, "rerank"), 1)

    async def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how well each text answers, 0–1, of as many as there was time for, from the first on."""
        until_s = time.monotonic() + self._budget_s
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._within, question, texts, until_s)

    def close(self) -> None:
        """End the thread; what waits is dropped."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _within(self, question: str, texts: Sequence[str], until_s: float) -> list[float]:
        found: list[float] = []
        slowest_s = 0.0  # a pair
        while len(found) < len(texts):
            size = AT_ONCE if found else FIRST
            began_s = time.monotonic()
            if began_s + slowest_s * size > until_s:
                break
            logits = self._logits(question, texts[len(found) : len(found) + size])
            found += (1 / (1 + np.exp(-logits.astype(np.float64)))).tolist()
            slowest_s = max(slowest_s, (time.monotonic() - began_s) / len(logits))
        return found

    def _logits(self, question: str, texts: Sequence[str]) -> NDArray[Any]:
        encoded = self._tokenizer.encode_batch([(question[:MOST_ASKED], text[:MOST_CHARACTERS]) for text in texts])
        ids, types = [encoding.ids for encoding in encoded], [encoding.type_ids for encoding in encoded]
        found, _ = run_padded(self._session, self._inputs, ids, types)
        logits: NDArray[Any] = np.asarray(found)
        return logits.reshape(len(encoded), -1)[:, 0] if logits.size == len(encoded) else logits
