"""
The vectors of a text's tokens, and the best match of each token of a question among them (late interaction).

Formula: Khattab and Zaharia, "ColBERT" (2020): for each token of the question the largest product with a token of the
text. The vectors are int8 (`embedding.tokens`), 128 bytes a token.
"""

from __future__ import annotations

from typing import Any

import numkong
import numpy as np
from numpy.typing import NDArray

from memoryd.model.embedding import TOKEN_DIMENSIONS, TOKEN_SCALE

__all__ = ["TokenVectors"]

BYTES_A_TEXT = 33  # of a bytes object besides its content
BYTES_A_PLACE = 8


class TokenVectors:
    """The tokens of each document, b"" where it has none."""

    def __init__(self, tokens: list[bytes]) -> None:
        self._tokens = tokens
        self._bytes = sum(map(len, tokens))
        self._held = sum(map(bool, tokens))

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies, estimated."""
        return self._bytes + self._held * BYTES_A_TEXT + len(self._tokens) * BYTES_A_PLACE

    @property
    def are_any(self) -> bool:
        """Whether any document has tokens."""
        return bool(self._bytes)

    def append(self, tokens: bytes) -> None:
        """Add the next document's."""
        self._tokens.append(tokens)
        self._bytes += len(tokens)
        self._held += bool(tokens)

    def put(self, document: int, tokens: bytes) -> None:
        """Give a document others."""
        before = self._tokens[document]
        self._bytes += len(tokens) - len(before)
        self._held += bool(tokens) - bool(before)
        self._tokens[document] = tokens

    def row(self, document: int) -> bytes:
        """Return those of a document."""
        return self._tokens[document]

    def counts(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many tokens some documents have."""
        return np.array([len(self._tokens[row]) for row in rows.tolist()], dtype=np.int64) // TOKEN_DIMENSIONS

    def best(self, query: NDArray[np.int8], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """
        Return each query token's best product in each document: shape (len(rows), tokens of the query).

        A document without tokens has 0 everywhere.
        """
        held = [self._tokens[row] for row in rows.tolist()]
        lengths = np.array([len(one) for one in held], dtype=np.int64) // TOKEN_DIMENSIONS
        best = np.zeros((len(rows), len(query)), dtype=np.float32)
        there = np.flatnonzero(lengths)
        if not len(there) or not len(query):
            return best
        codes = np.frombuffer(b"".join(held), dtype=np.int8).reshape(-1, TOKEN_DIMENSIONS)
        packed = numkong.dots_pack(query, dtype="int8")
        products: NDArray[Any] = np.asarray(numkong.dots_packed(codes, packed))
        starts = np.concatenate([[0], np.cumsum(lengths[there])[:-1]])
        best[there] = np.maximum.reduceat(products, starts, axis=0) * np.float32(TOKEN_SCALE * TOKEN_SCALE)
        return best
