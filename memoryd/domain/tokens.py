"""How long a text is in tokens: a documented estimate, the same wherever a budget is counted."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["BYTES_A_TOKEN", "Count", "token_count"]

BYTES_A_TOKEN = 4  # of UTF-8; English is near it, other scripts stay below the true count's double
Count = Callable[[str], int]


def token_count(text: str) -> int:
    """Return the estimated length in tokens: a quarter of the bytes, rounded up."""
    return -(-len(text.encode()) // BYTES_A_TOKEN)
