"""What memories say of one entity id."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, TypeVar

from memoryd.model.entity import EntityType, Form

__all__ = ["KnownEntity", "Said", "drop", "drop_within"]

T = TypeVar("T")


class Said(NamedTuple):
    """A relation as a memory says it: how much its trust weighs, its time, and whose relation it is."""

    weight: int
    time_us: int
    whose: str


class KnownEntity:
    """What memories say of one entity id."""

    __slots__ = ("former", "forms", "live", "relations", "types", "weights")

    def __init__(self) -> None:
        self.forms: Counter[tuple[Form, str, int]] = Counter()
        """Form, text, and how much the trust weighs of the memories that call it so → how many they are."""
        self.types: Counter[tuple[EntityType, bool]] = Counter()
        """Of which sort, and whether somebody of higher trust than a sandbox says so."""
        self.weights: Counter[int] = Counter()
        """How much the trust of the memories weighs that name it."""
        self.relations: dict[str, dict[str, Said]] = {}
        """Relation → the live memories that say it."""
        self.former: dict[str, dict[str, Said]] = {}
        """Relation → the superseded memories that say it beside what was superseded."""
        self.live: dict[str, int] = {}
        """The memories that can be recalled and name it, with the time of which they tell."""

    def told(self) -> dict[str, list[Said]]:
        """
        Return every relation with what says it.

        A sister stays one after she moved: a superseded memory counts, unless a live one of equal or higher trust
        tells of any relation.
        """
        told = {relation: [*said.values()] for relation, said in self.relations.items()}
        if self.former:
            most = max((said.weight for those in told.values() for said in those), default=-1)
            for relation, those in self.former.items():
                more = [said for said in those.values() if said.weight > most]
                if more:
                    told.setdefault(relation, []).extend(more)
        return told


def drop(counter: Counter[T], key: T) -> None:
    """Count a key once less, and not at all where it was the last."""
    counter[key] -= 1
    if counter[key] <= 0:
        del counter[key]


def drop_within(counters: dict[str, Counter[T]], name: str, key: T) -> None:
    """Do so in the counter of a name, and drop the name with its last key."""
    drop(counters[name], key)
    if not counters[name]:
        del counters[name]
