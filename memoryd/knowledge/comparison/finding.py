"""How a new statement stands to an older one, with the rule and the reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["AGREED", "APART", "SAID", "Finding", "Relation"]


class Relation(Enum):
    """How a new statement stands to an older one."""

    SAME = "same"
    """It says nothing that the older one does not say."""
    CHANGED = "changed"
    """Both cannot be true; the newer one holds."""
    DOUBTFUL = "doubtful"
    """Both may not be true; nobody can tell from the words."""
    APART = "apart"
    """Both may be true."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A relation, the rule that found it, and the reason in words (without quoting the statements)."""

    relation: Relation
    rule: str = ""
    reason: str = ""


APART = Finding(Relation.APART)
AGREED = Finding(Relation.APART, "agreed")
"""They speak of one attribute and do not differ in it: a repetition, if their words say nothing more."""
SAID = Finding(Relation.APART, "said")
"""They claim the same value of one attribute: a repetition, if they are near and no figure differs."""
