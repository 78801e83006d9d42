"""
Models that read an older and a newer statement together, and say how sure they are that the older one holds no more.

`builtin` is the packaged sentence encoder, tuned for this by low-rank adapters (Hu et al., LoRA, 2021) that are added
to its weights: data/contradiction.npz, made by `make train-contradiction`. The other one is a cross-encoder for natural
language inference in a directory of the Hugging Face layout: config.json names its label "contradiction".
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import io
import json
import queue
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

from memoryd.embedding.base import ModelRefused
from memoryd.embedding.directory import files_of
from memoryd.embedding.onnx import inputs_of, open_session, run_padded
from memoryd.embedding.packaged import MODEL_SHA256, data_file, integer_graph, packaged_model, packaged_tokenizer

__all__ = [
    "LEAST_NEAR",
    "MOST_PIECES",
    "SURE",
    "Adapters",
    "ContradictionReader",
    "builtin_reader",
    "directory_reader",
    "pair_ids",
    "whole_texts",
]

SURE = 0.7  # from which score on two statements are contested
LEAST_NEAR = 0.3  # cosine of two statements that are read together
MOST_PIECES = 48  # of a statement; longer ones are not read
MOST_CHARACTERS = 12 * MOST_PIECES  # so that nobody tokenises a book to find that it is too long
AT_ONCE = 8  # pairs, between two rests
LAYERS = 6
PARTS = {"qkv": "qkv", "out": "o", "wide": "f", "narrow": "r"}
"""The matrices of a layer, and the adapters that are added to each, side by side."""

Floats = NDArray[np.float32]
Pair = tuple[str, str]
"""The older statement, and the newer one."""


class ContradictionReader:
    """Reads pairs in a thread of its own; the model is loaded when it is first asked."""

    def __init__(self, load: Callable[[], Callable[[Sequence[Pair]], list[float]]]) -> None:
        """Take what loads the model and returns what reads a few pairs, 0–1 for each; one thread calls both."""
        self._load = load
        self._read: Callable[[Sequence[Pair]], list[float]] | None = None
        self._asked: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """
        Return how sure the model is, 0–1, that the newer statement of each pair makes the older one untrue.

        It rests as long as it works, so that calls have the processor. ModelRefused if it cannot be loaded.
        """
        if self._thread is None:  # one that ends with the process, whatever it reads then
            self._thread = threading.Thread(target=self._serve, name="contradiction", daemon=True)
            self._thread.start()
        found = list[float]()
        for first in range(0, len(pairs), AT_ONCE):
            answer: asyncio.Future[tuple[list[float], float]] = asyncio.get_running_loop().create_future()
            self._asked.put((pairs[first : first + AT_ONCE], answer))
            scores, took_s = await answer
            found += scores
            await asyncio.sleep(took_s)
        return found

    def close(self) -> None:
        """End the thread after what it reads now."""
        self._asked.put(None)

    def _serve(self) -> None:
        while (asked := self._asked.get()) is not None:
            pairs, answer = asked
            try:
                if self._read is None:
                    self._read = self._load()
                began_s = time.monotonic()
                told = functools.partial(_tell, answer, (self._read(pairs), time.monotonic() - began_s))
            except Exception as error:  # noqa: BLE001  it is the caller's
                told = functools.partial(_tell, answer, error)
            with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits
                answer.get_loop().call_soon_threadsafe(told)


_Asked = tuple[Sequence[Pair], "asyncio.Future[tuple[list[float], float]]"]


def _tell(answer: asyncio.Future[tuple[list[float], float]], found: tuple[list[float], float] | Exception) -> None:
    if answer.done():  # whoever asked has gone
        return
    if isinstance(found, Exception):
        answer.set_exception(found)
    else:
        answer.set_result(found)


def _pieces(tokenizer: tokenizers.Tokenizer, texts: Sequence[str]) -> list[list[int] | None]:
    """Return the word pieces of texts, without special ones; None for a text that is too long."""
    short = [text if len(text) <= MOST_CHARACTERS else "" for text in texts]
    found = [item.ids for item in tokenizer.encode_batch(short, add_special_tokens=False)]
    return [ids if 0 < len(ids) <= MOST_PIECES else None for ids in found]


def whole_texts(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Return a tokenizer that neither pads nor cuts."""
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def pair_ids(tokenizer: tokenizers.Tokenizer, pairs: Sequence[Pair]) -> list[list[int] | None]:
    """Return the token ids of pairs as one text: [CLS] older [SEP] newer [SEP]; None where one is too long."""
    begin, end = tokenizer.encode("").ids
    pieces = _pieces(tokenizer, [text for pair in pairs for text in pair])
    return [
        None if older is None or newer is None else [begin, *older, end, *newer, end]
        for older, newer in zip(pieces[::2], pieces[1::2], strict=True)
    ]


class Adapters(Mapping[str, Floats]):
    """What is added to each matrix of the packaged model, by its name; each is made when it is asked for."""

    def __init__(self, values: Mapping[str, NDArray[Any]]) -> None:
        """Take the two factors of each."""
        self._values = values

    def __getitem__(self, name: str) -> Floats:
        layer, _, matrix = name.partition(".")
        return np.concatenate([self._product(f"{layer}.{part}") for part in PARTS[matrix]], axis=1)

    def __iter__(self) -> Iterator[str]:
        return (f"layer{layer}.{matrix}" for layer in range(LAYERS) for matrix in PARTS)

    def __len__(self) -> int:
        return LAYERS * len(PARTS)

    def _product(self, name: str) -> Floats:
        left, right = self._values[f"{name}.a"], self._values[f"{name}.b"]
        made: Floats = left.astype(np.float32) @ right.astype(np.float32)
        return made


def builtin_reader() -> ContradictionReader:
    """Return the packaged model; it is refused where it is not installed, or this processor is not exact."""
    return ContradictionReader(_load_builtin)


def _load_builtin() -> Callable[[Sequence[Pair]], list[float]]:
    try:
        with np.load(io.BytesIO(data_file("contradiction.npz")), allow_pickle=False) as file:
            values = dict(file)
        is_of_model = str(values["sha256"]) == MODEL_SHA256
        graph = integer_graph(packaged_model(), Adapters(values)) if is_of_model else None
        weight, bias = values["head.weight"], float(values["head.bias"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ModelRefused(f"data/contradiction.npz cannot be read: {error}; install memoryd again") from None
    if not is_of_model:
        raise ModelRefused("data/contradiction.npz is of another model; install memoryd again")
    if graph is None:
        raise ModelRefused("this processor does not multiply integers exactly; set learning.contradictions to none")
    tokenizer = whole_texts(tokenizers.Tokenizer.from_str(packaged_tokenizer().decode()))

    def read(pairs: Sequence[Pair]) -> list[float]:
        ids = pair_ids(tokenizer, pairs)
        states = iter(graph.states([one for one in ids if one is not None]))
        logits = [None if one is None else float(next(states)[0] @ weight + bias) for one in ids]
        return [0.0 if logit is None else float(1 / (1 + np.exp(-logit))) for logit in logits]

    return read


def directory_reader(directory: Path) -> ContradictionReader:
    """Return a model for natural language inference; ModelRefused says what is wrong with it."""
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
        found, _ = run_padded(session, inputs, [one.ids for one in encoded], [one.type_ids for one in encoded])
        return np.asarray(found, dtype=np.float32)

    tried = logits_of([("I have a cat.", "I have no cat.")])
    if tried.ndim != 2 or tried.shape[1] <= label or not np.isfinite(tried).all():  # noqa: PLR2004  pairs by labels
        raise ModelRefused(f"{model} gives no logits for the labels of its config.json")

    def read(pairs: Sequence[Pair]) -> list[float]:
        pieces = _pieces(tokenizer, [text for pair in pairs for text in pair])
        fit = [older is not None and newer is not None for older, newer in zip(pieces[::2], pieces[1::2], strict=True)]
        chosen = [pair for pair, is_fit in zip(pairs, fit, strict=True) if is_fit]
        if not chosen:
            return [0.0] * len(pairs)
        logits = logits_of(chosen)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares = iter((powers[:, label] / powers.sum(axis=1)).tolist())
        return [next(shares) if is_fit else 0.0 for is_fit in fit]

    return ContradictionReader(lambda: read)


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
