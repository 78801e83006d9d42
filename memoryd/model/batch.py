"""Memories as columns: what an index is loaded from, without an object for each of a million."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.model.memory import Memory

__all__ = ["NEVER", "Batch", "Provenance", "Times", "VectorBatch", "VectorsWanted"]

NEVER = int(np.iinfo(np.int64).max)
"""The microsecond of what does not happen."""


class VectorsWanted(NamedTuple):
    """Which vectors are read with memories."""

    dimensions: int
    fingerprint: str
    """Those that another model made are none."""
    texts: bool = True
    """Whether those of texts are wanted."""
    tokens: bool = True
    """Whether those of their tokens are wanted."""


class Provenance(NamedTuple):
    """Who said a text, and where."""

    thread_id: str
    session_id: str
    speaker: str
    category: str


class Times(NamedTuple):
    """When memories were made and happened, and until when they hold: microseconds since 1970, or NEVER."""

    created: NDArray[np.int64]
    happened: NDArray[np.int64]
    expires: NDArray[np.int64]
    superseded: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some memories of one owner, oldest first, as arrays and lists of one length."""

    order: NDArray[np.int64]
    """By what the store finds them again; rising, also from batch to batch, where vectors are read later."""
    ids: Sequence[str]
    rows: Sequence[tuple[Any, ...]]
    """Each memory as plain values, its id first."""
    read: Callable[[Sequence[Any]], Memory]
    """Makes the memory of a row."""
    digests: NDArray[np.uint64]
    """The text_digest of each as two numbers: shape (n, 2)."""
    keys: Sequence[str]
    kinds: Sequence[str]
    times: Times
    trusts: NDArray[np.uint8]
    """What the trust of each weighs."""
    confidences: NDArray[np.float64]
    recalls: NDArray[np.int64]
    facets: Sequence[tuple[str, ...]]
    """The filter terms of each."""
    traits: Sequence[str]
    """What was read of each text (`knowledge.text_traits`), as text; one that says nothing is read anew."""
    characters: NDArray[np.int64]
    """The length of each content."""
    noted: Sequence[tuple[int, Memory]]
    """By place: the memories that name, claim or contest anything."""
    said: Sequence[tuple[int, Provenance]]
    """By place: who said it and where, of those of kind EPISODE."""
    terms: Sequence[str]
    """The analysed words of each, separated by spaces."""
    vectors: NDArray[np.float32] | None = None
    """Shape (n, dimensions), zeros for what has none of the model in use; None: `Snapshot.read_vectors` gives them."""
    tokens: Sequence[bytes] | None = None
    """The vectors of the tokens of each; None as there."""
    windows: Sequence[tuple[int, bytes]] = ()
    """By place: the vectors of the later windows of those that are long (`model.embedding`)."""


@dataclass(frozen=True, slots=True, eq=False)
class VectorBatch:
    """The vectors of some memories that have any of the model in use."""

    order: NDArray[np.int64]
    """As in Batch."""
    vectors: NDArray[np.float32]
    """Shape (n, dimensions), each of length 1."""
    tokens: Sequence[bytes]
    """The vectors of the tokens of each; empty where there are none, or they are not wanted."""
    windows: Sequence[tuple[int, bytes]] = ()
    """Vectors of later windows, each with the order of whose they are, who may come in several."""
