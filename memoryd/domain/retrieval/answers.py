"""How much one answer holds."""

from __future__ import annotations

from memoryd.index.records import pack
from memoryd.model import limits
from memoryd.model.memory import Memory

__all__ = ["within_bytes"]

_ROW_BYTES = 100  # what a message takes besides its fields


def within_bytes(memories: list[Memory]) -> list[Memory]:
    """Return the first of some memories, as many as one answer holds."""
    total = 0
    for n, memory in enumerate(memories):
        total += _ROW_BYTES + len(pack(memory))  # near what it takes on the wire, whichever field holds the text
        if total > limits.MAX_PAGE_BYTES and n:
            return memories[:n]
    return memories
