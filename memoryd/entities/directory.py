"""
The entities of one scope and their names: read from its memories and from decisions by hand.

It follows every change of its scope, so a name is known exactly as long as a memory says it.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterable, Mapping
from copy import copy

from memoryd.entities.known_entity import Evidence, KnownEntity, drop, drop_within, relations_of, type_said
from memoryd.entities.name_table import NameTable
from memoryd.knowledge.grammar.names import fullest, straight
from memoryd.knowledge.grammar.relations import ONE_AT_A_TIME
from memoryd.model.entity import Entity, EntityType, Form
from memoryd.model.memory import Memory
from memoryd.model.times import to_us
from memoryd.model.validation import fold

__all__ = ["Directory"]

BYTES_AN_ENTITY = 2000  # measured: 36,000 entities that one memory each names took 71 MiB
BYTES_A_SPELLING = 450  # 36,000 names with accents took 13.7 MiB more than as many without
BYTES_A_MENTION = 70  # 60,000 mentions of 20 entities took 3.8 MiB


class Directory:
    """The entities of one owner."""

    def __init__(self, rows: Iterable[Entity] = ()) -> None:
        self._mentions = 0
        self._known: dict[str, KnownEntity] = {}
        self._names = NameTable()
        self._related: dict[str, Counter[str]] = {}
        self._same: Counter[tuple[str, str, int]] = Counter()
        self._rows: dict[str, Entity] = {}
        self._reader: str | None = None
        self._roots: dict[str, str] | None = None
        self._groups: dict[str, frozenset[str]] = {}
        """Root → all that are one with it, where they are several."""
        self._changes = [0]  # how often it changed; its views share it
        self._weights: dict[tuple[int, str], int] = {}
        """Changes so far and root → how much it weighs, of those that were asked for."""
        for row in rows:
            self.put(row)

    def seen_by(self, reader: str) -> Directory:
        """Return it as one reader sees it, not to be kept: "my wife" is the reader's; "" is an unknown reader."""
        seen = copy(self)
        seen._reader, seen._weights = fold(reader), {}  # noqa: SLF001  its own
        return seen

    @property
    def nbytes(self) -> int:
        """Bytes that it occupies, estimated."""
        return (
            len(self._known) * BYTES_AN_ENTITY
            + self._mentions * BYTES_A_MENTION
            + (len(self._names.spellings) + len(self._names.first_spellings)) * BYTES_A_SPELLING
        )

    def __len__(self) -> int:
        """How many ids memories name."""
        return len(self._known)

    # --- following the scope ---

    def _changed(self) -> None:
        """Compute the merged groups again at the next question."""
        self._roots = None
        self._groups = {}
        self._changes[0] += 1
        self._weights = {}

    def put(self, row: Entity) -> None:
        """Take in what was decided of an entity."""
        self.forget([row.id])
        self._rows[row.id] = row
        self._names.give(row)
        self._changed()

    def forget(self, entity_ids: Iterable[str]) -> None:
        """Drop what was decided of entities."""
        for row in filter(None, [self._rows.pop(entity_id, None) for entity_id in entity_ids]):
            self._names.take(row)
        self._changed()

    def add(self, memory: Memory) -> None:
        """Take in what a memory names; a superseded one that says who someone is gives no relation any more."""
        if not memory.mentions:
            return
        self._changed()  # who is one follows from how much those weigh who name them
        live = memory.supersede_time is None
        weight, is_vouched, related = memory.trust.weight, not memory.trust.is_sandbox, relations_of(memory)
        self._mentions += len(memory.mentions)
        for mention in memory.mentions:
            known = self._known.setdefault(mention.entity_id, KnownEntity())
            known.types[mention.type, is_vouched] += 1
            known.weights[weight] += 1
            if live:
                known.live[memory.id] = to_us(memory.event_time)
            if mention.form is Form.RELATION:
                if mention.text in related:
                    evidence = Evidence(weight, to_us(memory.create_time), memory.narrator)
                    (known.relations if live else known.former).setdefault(mention.text, {})[memory.id] = evidence
                    self._related.setdefault(mention.text, Counter())[mention.entity_id] += 1
            else:
                known.forms[mention.form, mention.text, weight] += 1
                self._names.add(mention, weight)
            if mention.same_as:
                self._same[mention.same_as, mention.entity_id, weight] += 1

    def remove(self, memory: Memory) -> None:
        """Forget what a memory names; it has been added, as it is now."""
        if not memory.mentions:
            return
        self._changed()
        live, weight = memory.supersede_time is None, memory.trust.weight
        is_vouched, related = not memory.trust.is_sandbox, relations_of(memory)
        self._mentions -= len(memory.mentions)
        for mention in memory.mentions:
            known = self._known[mention.entity_id]
            drop(known.types, (mention.type, is_vouched))
            drop(known.weights, weight)
            known.live.pop(memory.id, None)
            if mention.form is Form.RELATION:
                if mention.text in related:
                    relations = known.relations if live else known.former
                    evidence = relations.get(mention.text, {})
                    evidence.pop(memory.id, None)
                    if not evidence:
                        relations.pop(mention.text, None)
                    drop_within(self._related, mention.text, mention.entity_id)
            else:
                drop(known.forms, (mention.form, mention.text, weight))
                self._names.drop(mention, weight)
            if mention.same_as:
                drop(self._same, (mention.same_as, mention.entity_id, weight))
            if not known.types:
                del self._known[mention.entity_id]

    # --- who is who ---

    def root(self, entity_id: str) -> str:
        """Return the id that stands for all that are one with this one."""
        if self._roots is None:
            self._roots = self._unite()
        return self._roots.get(entity_id, entity_id)

    def _unite(self) -> dict[str, str]:
        roots: dict[str, str] = {}

        def find(one: str) -> str:
            while roots.get(one, one) != one:
                roots[one] = roots.get(roots[one], roots[one])  # half the way next time
                one = roots[one]
            return one

        def may_decide(weight: int, one: str, other: str) -> bool:
            """Whether trust of this weight decides about both: not if higher trust knows one, or says what both are."""
            known = max(self._weight(one), self._weight(other))
            typed = [row for row in (self._rows.get(one), self._rows.get(other)) if row is not None and row.type]
            if len({row.type for row in typed}) > 1:
                known = max(known, min(row.trust.weight for row in typed))
            return weight >= known

        rows = self._rows.values()
        apart = {
            frozenset((row.id, other))
            for row in rows
            for other in row.apart
            if may_decide(row.trust.weight, row.id, other)
        }
        decided = [(row.id, row.merged_into, row.trust.weight) for row in rows if row.merged_into]
        for one, other, weight in [*decided, *sorted(self._same)]:
            if not may_decide(weight, one, other):
                continue
            if frozenset((one, other)) not in apart:
                a, b = find(one), find(other)
                if a != b:
                    roots[a] = b
        united = {root: find(root) for root in roots}
        groups: dict[str, set[str]] = {}
        for one, root in united.items():
            groups.setdefault(root, {root}).add(one)
        self._groups = {root: frozenset(group) for root, group in groups.items()}
        return united

    def _weight(self, entity_id: str) -> int:
        """Return how much the best trusted memory weighs that names an id."""
        known = self._known.get(entity_id)
        return max(known.weights, default=0) if known is not None else 0

    def weight(self, entity_id: str) -> int:
        """Return how much the best trusted memory weighs that names an entity by any of its ids."""
        place = self._changes[0], self.root(entity_id)
        if place not in self._weights:
            self._weights[place] = max(self._weight(member) for member in self.members(entity_id))
        return self._weights[place]

    def trust_weight(self, entity_id: str) -> int:
        """Return how much what is shown of an entity weighs: its memories, else what was decided by hand."""
        members = self.members(entity_id)
        if any(member in self._known for member in members):
            return self.weight(entity_id)
        return max((self._rows[member].trust.weight for member in members if member in self._rows), default=0)

    def members(self, entity_id: str) -> frozenset[str]:
        """Return all ids that are one with this one, itself too."""
        root = self.root(entity_id)
        return self._groups.get(root) or frozenset((root,))

    def row(self, entity_id: str) -> Entity | None:
        """Return what was decided of an entity by hand."""
        return self._rows.get(entity_id)

    def _decided(self, entity_id: str) -> Entity | None:
        """Return what was decided of an id by hand; None once higher trust than that names the entity."""
        row = self._rows.get(entity_id)
        return row if row is not None and row.trust.weight >= self.weight(entity_id) else None

    def given_name(self, entity_id: str) -> str:
        """Return the name that an id was given by hand; empty once higher trust than that names the entity."""
        row = self._decided(entity_id)
        return row.name if row is not None else ""

    @property
    def rows(self) -> list[Entity]:
        """All that was decided by hand."""
        return list(self._rows.values())

    @property
    def roots(self) -> list[str]:
        """One id an entity that memories name or that was named by hand."""
        named = [row for row in self._rows if self.given_name(row)]
        return sorted({self.root(one) for one in [*self._known, *named]})

    def has(self, entity_id: str) -> bool:
        """Whether an id is known."""
        return entity_id in self._known or entity_id in self._rows

    def beginning(self, prefix: str) -> set[str]:
        """Return the roots with an id that begins so."""
        return {self.root(one) for one in [*self._known, *self._rows] if one.startswith(prefix)}

    def called(self, name: str) -> set[str]:
        """Return the roots of exactly that name, handle or address; lower trust names none that the host knows."""
        found = {self.root(one) for one, weight in self._names.called(name) if weight >= self.weight(one)}
        given = [one for one in self._names.given(name) if straight(self.given_name(one)) == straight(name)]
        return found | {self.root(one) for one in given}

    def spelt(self, name: str, *, titles: bool = True) -> set[str]:
        """Return the roots that are called so but for accents, apostrophes and hyphens, or but for their title too."""
        return {root for one in self._names.spellings.of(name, titles=titles) for root in self.called(one)}

    @property
    def ways_to_name(self) -> list[str]:
        """All names, handles and addresses, as they may be typed, those first that the highest trust has given."""
        return self._names.ways(self._rows.values())

    def first_named(self, first_names: Iterable[str]) -> set[str]:
        """Return the roots with a name that begins with one of these words."""
        wanted = {way for first in first_names for way in (first, *self._names.first_spellings.of(first, titles=True))}
        found = {self.root(one) for first in wanted for one in self._names.first_named(first)}
        given = [one for first in wanted for one in self._names.given(first)]
        return found | {self.root(one) for one in given if straight(self.given_name(one)).partition(" ")[0] in wanted}

    def related(self, relation: str) -> set[str]:
        """
        Return the roots that have a relation now.

        Lower trust cannot give a relation to an entity that higher trust knows. Of a relation with one holder at a
        time, the last statement of the highest trust counts: a sandbox cannot replace the host's.
        """
        latest: dict[str, Evidence] = {}
        for one in self._related.get(relation, ()):
            root = self.root(one)
            least = self.weight(root)
            evidence = [statement for statement in self._told(one, relation) if statement.weight >= least]
            if evidence:
                latest[root] = max([*evidence, *([latest[root]] if root in latest else [])])
        if relation not in ONE_AT_A_TIME:
            return set(latest)
        last = max((statement[:2] for statement in latest.values()), default=None)
        return {root for root, statement in latest.items() if statement[:2] == last}

    def _told(self, entity_id: str, relation: str) -> list[Evidence]:
        """Return what is said of a relation of the reader's to someone."""
        told = self._known[entity_id].told().get(relation, ())
        return [evidence for evidence in told if self._reader is None or fold(evidence.whose) in {"", self._reader}]

    # --- what is known of them ---

    def names(self, entity_id: str, *, form: Form = Form.NAME) -> list[str]:
        """
        Return what memories of most trust that name an entity call it by one form, the most frequent first.

        A name given by hand comes before all.
        """
        counts: Counter[str] = Counter()
        given = []
        least = self.weight(entity_id)
        for member in self.members(entity_id):
            name = self.given_name(member) if form is Form.NAME else ""
            if name:
                given.append((member != self.root(entity_id), name))
            known = self._known.get(member)
            if known is not None:
                for (of, text, weight), count in known.forms.items():
                    if of is form and weight >= least:
                        counts[text] += count
        ordered = [name for _, name in sorted(given)]
        used = sorted(counts, key=lambda text: (-counts[text], text))
        return [*ordered, *(name for name in used if name not in ordered)]

    def relations(self, entity_id: str) -> list[str]:
        """Return the relations that an entity has now: to the reader "wife", to others "wife of Bob"."""
        known = [self._known[member] for member in self.members(entity_id) if member in self._known]
        root = self.root(entity_id)
        own = {relation for entity in known for relation in entity.told() if root in self.related(relation)}
        if self._reader is None:
            return sorted(own)
        others = {
            f"{relation} of {evidence.whose}"
            for entity in known
            for relation, those in entity.told().items()
            for evidence in those
            if fold(evidence.whose) not in {"", self._reader} and root in self.seen_by(evidence.whose).related(relation)
        }
        return [*sorted(own), *sorted(others)]

    def ever_related(self, entity_id: str) -> set[str]:
        """Return the relations that memories of most trust say of an entity, also those that another has now."""
        least = self.weight(entity_id)
        return {
            relation
            for member in self.members(entity_id)
            if member in self._known
            for relation in self._known[member].told()
            if any(evidence.weight >= least for evidence in self._told(member, relation))
        }

    def name(self, entity_id: str) -> str:
        """Return what an entity is called: the given name, else the fullest in use, else its relation or address."""
        root = self.root(entity_id)
        given = self.given_name(root)
        if given:
            return given
        known = self._known.get(root)
        forms = sorted(known.forms, key=lambda form: form[2]) if known else ()
        own = {text: weight for form, text, weight in forms if form is Form.NAME}
        best = {text for text, weight in own.items() if weight == max(own.values())}
        names = [name for name in self.names(root) if not best or name in best]
        if names:
            return fullest(names)
        for form in (Form.HANDLE, Form.EMAIL, Form.HASHTAG, Form.URL):
            named = self.names(root, form=form)
            if named:
                return named[0]
        relations = self.relations(root) or sorted(self.ever_related(root))
        return relations[0] if relations else root

    def own_name(self, entity_id: str) -> str:
        """Return what one that is a part of another is called by itself."""
        forms = self._known[entity_id].forms if entity_id in self._known else ()
        best = min(((form is not Form.NAME, -len(text), text) for form, text, _ in forms), default=(True, 0, entity_id))
        return self.given_name(entity_id) or best[2]

    def aliases(self, entity_id: str) -> list[str]:
        """Return everything else that an entity is called: names, handles, addresses."""
        name = self.name(entity_id)
        called = [text for form in Form if form is not Form.RELATION for text in self.names(entity_id, form=form)]
        return [text for text in dict.fromkeys(called) if text != name]

    def type(self, entity_id: str) -> EntityType:
        """Return what sort of thing it is: what was decided by hand, else as memories say."""
        return self.given_type(entity_id) or self.said_type(entity_id)

    def given_type(self, entity_id: str) -> EntityType | None:
        """
        Return what was decided by hand that it is, by the highest trust, of itself before what is one with it.

        What was merged into it brings no type along.
        """
        root = self.root(entity_id)
        rows = [row for member in sorted(self.members(root)) if (row := self._decided(member)) is not None and row.type]
        rows = [row for row in rows if row.id == root or not row.merged_into]
        return max(rows, key=lambda row: (row.trust.weight, row.id == root)).type if rows else None

    def said_type(self, entity_id: str) -> EntityType:
        """Return what sort of thing memories say that it is; see `type_said`."""
        return type_said(self._known[member].types for member in self.members(entity_id) if member in self._known)

    def live(self, entity_id: str) -> Mapping[str, int]:
        """Return the memories that can be recalled and name an entity, with the microsecond that they tell of."""
        known = [self._known[member].live for member in self.members(entity_id) if member in self._known]
        return known[0] if len(known) == 1 else dict(ChainMap(*known))
