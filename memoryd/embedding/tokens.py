"""
Token vectors as they are stored: 128 dimensions of int8.

A random orthogonal projection keeps products as well as one that was fitted, and fits every model (measured:
docs/benchmarks.md). It is made of a generator whose numbers are frozen, without a solver, so that it is the same on
every machine: what one stored another can compare.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memoryd.model.embedding import TOKEN_DIMENSIONS, TOKEN_SCALE

__all__ = ["TOKEN_CODES", "codes_of", "known_share", "projection"]

SEED = 14
TOKEN_CODES = f"tokens {TOKEN_DIMENSIONS} int8 seed {SEED}"
"""Part of the fingerprint of a model that gives tokens: what made them."""
MOST_CODE = 127
WELL_KNOWN = 0.8  # of the letters in pieces of two or more: English with rare names has as much

Floats = NDArray[np.float32]


def projection(dimensions: int) -> Floats:
    """Return TOKEN_DIMENSIONS orthogonal columns of length 1: shape (dimensions, TOKEN_DIMENSIONS), float32."""
    columns = np.random.RandomState(SEED).standard_normal((TOKEN_DIMENSIONS, dimensions))
    for n in range(TOKEN_DIMENSIONS):  # Gram and Schmidt, twice, as once leaves rounding
        for _ in range(2):
            columns[n] -= columns[:n].T @ (columns[:n] @ columns[n])
        columns[n] /= np.linalg.norm(columns[n])
    return np.ascontiguousarray(columns.T, dtype=np.float32)


def codes_of(states: Floats, matrix: Floats) -> bytes:
    """Return the codes of token states, shape (tokens, dimensions), after their lengths are made 1."""
    lengths = np.maximum(np.linalg.norm(states, axis=1, keepdims=True), 1e-9)
    projected = (states / lengths) @ matrix
    codes = np.clip(np.rint(projected / TOKEN_SCALE), -MOST_CODE, MOST_CODE).astype(np.int8)
    return bytes(codes.tobytes())


def known_share(text: str, places: Sequence[tuple[int, int]], is_unknown: Sequence[bool]) -> float:
    """
    Return how much of a text a model can read, 0–1, by its pieces.

    The packaged model's vocabulary has words of English, and of most other scripts only letters, or nothing: each piece
    is one letter then. Of other models no one knows what a piece of one letter means.
    """
    read = text[: max((end for _, end in places), default=0)]  # of a long text the model reads the beginning
    letters = sum(character.isalpha() for character in read)
    if not letters:
        return 1.0
    known = 0
    for (start, end), unknown in zip(places, is_unknown, strict=True):
        piece = text[start:end]
        if not unknown and (len(piece) > 1 or piece.isascii()):
            known += sum(character.isalpha() for character in piece)
    return min(1.0, known / letters / WELL_KNOWN)
