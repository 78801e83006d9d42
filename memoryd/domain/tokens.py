"""How long a text is in tokens: a documented estimate, or what a tokenizer says that the caller names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memoryd.errors import InvalidArgument

__all__ = ["BYTES_A_TOKEN", "ESTIMATE", "Count", "Measure", "no_tokenizer", "token_count"]

BYTES_A_TOKEN = 4  # of UTF-8; English is near it, other scripts stay below the true count's double
Count = Callable[[str], int]


def token_count(text: str) -> int:
    """Return the estimated length in tokens: a quarter of the bytes, rounded up."""
    return -(-len(text.encode()) // BYTES_A_TOKEN)


@dataclass(frozen=True, slots=True)
class Measure:
    """How long texts are, in a unit: a token has `per_token` of it."""

    sizes: Callable[[list[str]], list[int]]
    per_token: int = 1

    def size(self, text: str) -> int:
        """Return the size of one text."""
        return self.sizes([text])[0]

    def tokens(self, text: str) -> int:
        """Return the length of a text in tokens, rounded up."""
        return -(-self.size(text) // self.per_token)


ESTIMATE = Measure(lambda texts: [len(text.encode()) for text in texts], BYTES_A_TOKEN)
"""What `token_count` counts, in bytes, so that the parts of a text are together as long as the whole."""


def no_tokenizer(name: str) -> Measure:
    """Raise InvalidArgument: none is installed."""
    raise InvalidArgument(f"no tokenizer {name!r} is installed", field="tokenizer")
