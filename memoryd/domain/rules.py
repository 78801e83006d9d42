"""What the operator decides of how memories are judged."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Rules"]


@dataclass(frozen=True, slots=True)
class Rules:
    """What the operator decides of judging."""

    decay: str = "gentle"
    demote: bool = False
    """Whether an older statement stays, with little confidence, instead of being superseded."""
    dedup_cosine: float = 0.85
    """Cosine above which two statements without a difference that counts are one."""
    dedup_jaccard: float = 0.75
    """The same of the words that they share, over all words of both."""
