"""
What is found of two statements, and the rules that find it, in order: the first that applies decides.

A rule has a name, a condition, what it decides, and examples. To add one, add a row to a table; its examples are
tested (`tests/knowledge/test_rules.py`): each must be decided by the rule that it stands next to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

__all__ = ["AGREED", "APART", "SAID", "Finding", "Relation", "Rule", "deciding"]


class Relation(Enum):
    """How a new statement stands to an older one."""

    SAME = "same"
    """It says nothing that the older one does not say."""
    CHANGED = "changed"
    """Both cannot be true; the newer one holds."""
    DOUBTFUL = "doubtful"
    """Both may not be true; no one can tell from the words."""
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


P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Rule(Generic[P]):
    """One row of a table; `P` is what two statements look like to it."""

    name: str
    applies: Callable[[P], bool]
    finding: Finding | Callable[[P], Finding]
    examples: tuple[tuple[str, str], ...] = ()
    """Pairs of an older and a newer statement that it decides."""

    def decide(self, pair: P) -> Finding:
        """Return what it decides of a pair that it applies to."""
        return self.finding if isinstance(self.finding, Finding) else self.finding(pair)


def deciding(rules: Sequence[Rule[P]], pair: P) -> Rule[P]:
    """Return the first rule that applies; the last rule of a table always does."""
    for rule in rules:
        if rule.applies(pair):
            return rule
    raise ValueError("no rule applies; the last one of a table has to")
