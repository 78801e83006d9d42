"""What a model makes of a text: one vector of the whole, and one of each of its tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["TOKEN_DIMENSIONS", "TOKEN_SCALE", "Embedded"]

TOKEN_DIMENSIONS = 128
TOKEN_SCALE = 1 / 256  # of the int8 codes: components lie within ±.496, and none was seen above .35


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """A text as a model sees it."""

    vector: NDArray[np.float32]
    """Shape (dimensions,), of length 1."""
    tokens: bytes = b""
    """Codes of int8, TOKEN_DIMENSIONS a token, times TOKEN_SCALE; empty where the model gives none."""
    places: tuple[tuple[int, int], ...] = ()
    """Of each token: its first character and the one after its last."""
    known_share: float = 1.0
    """How much of the text the model can read, 0–1: less where its vocabulary has only single letters for it."""
    windows: bytes = b""
    """
    Vectors of the later windows of a long text: codes of int8, for each window as many as the vector has dimensions,
    to be divided by their length. Of a text that is not long there are none.
    """
