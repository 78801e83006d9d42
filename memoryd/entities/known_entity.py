"""What memories say of one entity id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from memoryd.knowledge.grammar.relations import introduced
from memoryd.model.entity import EntityType, Form
from memoryd.model.memory import Memory

__all__ = ["Evidence", "KnownEntity", "drop", "drop_within", "relations_of", "type_said"]

REPLACED = frozenset({"same_key", "corrected"})  # why a statement was superseded as a whole: `Judgement.rule`
T = TypeVar("T")
N = TypeVar("N")


class Evidence(NamedTuple):
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
        """Its sort, and whether someone of higher trust than a sandbox says so."""
        self.weights: Counter[int] = Counter()
        """How much the trust of the memories weighs that name it."""
        self.relations: dict[str, dict[str, Evidence]] = {}
        """Relation → the live memories that say it."""
        self.former: dict[str, dict[str, Evidence]] = {}
        """Relation → the superseded memories that say it next to what was superseded."""
        self.live: dict[str, int] = {}
        """The memories that can be recalled and name it, with the time that they tell of."""

    def told(self) -> dict[str, list[Evidence]]:
        """
        Return every relation with what says it.

        A sister stays one after she moved: a superseded memory counts, unless a live one of the same person's, of equal
        or higher trust, tells of any relation.
        """
        evidence = {relation: [*sources.values()] for relation, sources in self.relations.items()}
        if self.former:
            most: dict[str, int] = {}
            for source in (said for those in evidence.values() for said in those):
                most[source.whose] = max(source.weight, most.get(source.whose, -1))
            for relation, those in self.former.items():
                more = [said for said in those.values() if said.weight > most.get(said.whose, -1)]
                if more:
                    evidence.setdefault(relation, []).extend(more)
        return evidence


def relations_of(memory: Memory) -> set[str]:
    """
    Return the relations that a memory gives to those that it names: a superseded one those that were not superseded.

    What says who someone is was superseded, and so was all that a key or a correction replaces.
    """
    told = {mention.text for mention in memory.mentions if mention.form is Form.RELATION}
    if memory.supersede_time is None or not told:
        return told
    is_replaced = memory.judgement is not None and memory.judgement.rule in REPLACED
    return set() if is_replaced else told - introduced(memory.content)


def type_said(types: Iterable[Counter[tuple[EntityType, bool]]]) -> EntityType:
    """
    Return what sort of thing some ids are that are one: a person if any memory says so, else what most say.

    What sandboxes say counts only where no one else names it.
    """
    said: Counter[tuple[EntityType, bool]] = Counter()
    for one in types:
        said.update(one)
    vouched = any(is_vouched for _, is_vouched in said)
    counts = Counter({kind: count for (kind, is_vouched), count in said.items() if is_vouched == vouched})
    if counts[EntityType.PERSON]:
        return EntityType.PERSON
    return max(counts, key=lambda kind: counts[kind]) if counts else EntityType.OTHER


def drop(counter: Counter[T], key: T) -> None:
    """Count a key once less, and not at all where it was the last."""
    counter[key] -= 1
    if counter[key] <= 0:
        del counter[key]


def drop_within(counters: dict[N, Counter[T]], name: N, key: T) -> None:
    """Do so in the counter of a name, and drop the name with its last key."""
    drop(counters[name], key)
    if not counters[name]:
        del counters[name]
