"""Who is called what by memories, and the names that were given by hand: from a name to the ids that have it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from memoryd.entities.known_entity import drop_within
from memoryd.entities.spellings import Spellings
from memoryd.knowledge.grammar.names import straight
from memoryd.model.entity import Entity, Form, Mention

__all__ = ["NameTable"]


class NameTable:
    """Names, handles and addresses as they are compared (`straight`), in memories and by hand."""

    def __init__(self) -> None:
        """Know no names yet."""
        self.spellings, self.first_spellings = Spellings(), Spellings()
        self._called: dict[str, Counter[tuple[str, int]]] = {}
        """Name, handle or address → the ids that memories call so, with how much their trust weighs."""
        self._first_names: dict[str, Counter[str]] = {}
        self._given: dict[str, set[str]] = {}
        """Name that was given by hand, and its first word → ids."""

    def add(self, mention: Mention, weight: int) -> None:
        """Take in how a memory of so much trust calls an entity."""
        name = straight(mention.text)
        self._called.setdefault(name, Counter())[mention.entity_id, weight] += 1
        if mention.form is Form.NAME:
            self.spellings.add(mention.text, weight)
            self.first_spellings.add(name.split()[0], weight)
            self._first_names.setdefault(name.split()[0], Counter())[mention.entity_id] += 1

    def drop(self, mention: Mention, weight: int) -> None:
        """Forget it; it was added."""
        name = straight(mention.text)
        drop_within(self._called, name, (mention.entity_id, weight))
        if mention.form is Form.NAME:
            self.spellings.drop(mention.text, weight)
            self.first_spellings.drop(name.split()[0], weight)
            drop_within(self._first_names, name.split()[0], mention.entity_id)

    def give(self, row: Entity) -> None:
        """Take in the name that was given by hand, if any."""
        self.spellings.add(row.name, row.trust.weight)
        for name in _ways_up(row):
            self._given.setdefault(name, set()).add(row.id)

    def take(self, row: Entity) -> None:
        """Forget it; it was given."""
        self.spellings.drop(row.name, row.trust.weight)
        for name in _ways_up(row):
            self._given[name].discard(row.id)
            if not self._given[name]:
                del self._given[name]

    def called(self, name: str) -> Iterable[tuple[str, int]]:
        """Return the ids that memories call so, with how much those weigh."""
        return self._called.get(straight(name), ())

    def given(self, name: str) -> Iterable[str]:
        """Return the ids to which a name was given by hand that is this one, or begins with it."""
        return self._given.get(straight(name), ())

    def ways(self, rows: Iterable[Entity]) -> list[str]:
        """Return all ways to type a name, or the first word of one, those first that the highest trust has given."""
        weights = {name: max(weight for _, weight in ids) for name, ids in self._called.items()}
        given = {straight(row.name): row.trust.weight for row in rows if row.name}
        spelt = self.spellings.weights(), self.first_spellings.weights()
        for some in (given, *spelt, dict.fromkeys(self._first_names, 0)):
            weights |= {way: max(weight, weights.get(way, 0)) for way, weight in some.items()}
        return sorted(weights, key=lambda way: -weights[way])

    def first_named(self, first: str) -> Iterable[str]:
        """Return the ids with a name in a memory that begins with a word."""
        return self._first_names.get(first, ())


def _ways_up(row: Entity) -> set[str]:
    """Return what a given name is looked up by: all of it, and its first word."""
    name = straight(row.name)
    return {name, name.partition(" ")[0]} - {""}
