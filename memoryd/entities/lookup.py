"""
Who is meant by a name that someone asks for: exactly, where something is erased; as it may be meant, where it is read.

Names are compared as wholes; see `resolve` for what statements name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from memoryd.entities.directory import Directory
from memoryd.knowledge.grammar.names import may_be_one, short_forms, spelling, straight
from memoryd.knowledge.grammar.relations import RELATIONS, relation_of
from memoryd.model import limits
from memoryd.model.entity import Entity, Form, Mention
from memoryd.model.memory import Memory

__all__ = ["MOST_NEAR", "Naming", "by_weight", "is_relation", "known_as", "meant_by", "named_by", "near"]

MOST_NEAR = 5  # names that an error offers
MOST_ALIKE = 32  # names that are like one
MOST_COMPARED = 400_000  # pairs of letters of names whose likeness is measured: 40 ms
LIKE = 0.7  # of two names, of difflib's ratio


def known_as(name: str, directory: Directory) -> set[str]:
    """
    Return the roots that a name, an alias or an id names exactly: so is decided what is erased.

    Never by a nickname, a first name, a relation or the beginning of an id.
    """
    if directory.has(name):
        return {directory.root(name)}
    exact = directory.called(name) | directory.called(f"@{name}")
    if exact:
        return exact
    related = directory.related(relation_of(_unowned(name)))  # who has no other name is shown as "wife"
    return {root for root in related if straight(directory.name(root)) == _unowned(name)}


def named_by(name: str, directory: Directory) -> set[str]:
    """
    Return the roots that a name names: exactly, by a relation ("my wife"), or as the first name of a full one.

    So is decided what is changed and can be undone: never by a nickname or a part of what was said.
    """
    exact = known_as(name, directory)
    if exact:
        return exact
    if is_relation(name):
        return directory.related(relation_of(_unowned(name)))
    return directory.first_named([straight(name)])


class Naming:
    """
    The names, relations and ids that are stated to be one entity with a name.

    An entity may have got further names by likeness: Bob, as there was one Robert. Likeness states nothing. A statement
    with both names does, statements that show two entities to be one do, a decision by hand does; each with at least
    the trust of the entity.
    """

    def __init__(self, name: str, people: Directory, root: str, memories: Sequence[Memory]) -> None:
        """Take a name that `known_as` has found the root for, and the memories that name the entity; an id is all."""
        self._members = people.members(root)
        self._all = people.has(name)
        least = people.weight(root)
        rows = [row for row in people.rows if row.id in self._members and row.trust.weight >= least]
        decided = {one for row in rows for one in (row.id, row.merged_into) if row.merged_into or row.name} - {""}
        given = {straight(people.given_name(member)) for member in self._members} - {""}
        # sets of names and ids; those of one set were said to be one
        told = [decided, *(self._told(memory, decided) for memory in memories if memory.trust.weight >= least)]
        known = {
            straight(name),
            f"my {relation_of(_unowned(name))}",
            *given,
            *(decided if straight(name) in given else ()),
        }
        while more := [some for some in told if some & known and not some <= known]:
            known = known.union(*more)
        self._known = known
        self._theirs = self._ids_of_theirs([mention for memory in memories for mention in memory.mentions])

    def _ids_of_theirs(self, mentions: Sequence[Mention]) -> set[str]:
        """Return the ids by which memories mean no one else."""
        ids = {mention.entity_id for mention in mentions} & self._members
        return ids - {mention.entity_id for mention in mentions if not self.means(mention)}

    def _told(self, memory: Memory, decided: set[str]) -> set[str]:
        """Return the names and ids that a memory says are one."""
        theirs = [mention for mention in memory.mentions if mention.entity_id in self._members]
        by_hand = {mention.entity_id for mention in theirs} & decided
        shown = {one for mention in theirs if mention.same_as for one in (mention.same_as, mention.entity_id)}
        return {*map(_called, theirs), *by_hand, *shown}

    def has(self, text: str) -> bool:
        """Whether a name, as it stands, is one of theirs."""
        return self._all or straight(text) in self._known

    def decided(self, row: Entity) -> bool:
        """Whether what was decided by hand was decided of them; of an id that others have too only by a name."""
        return self._all or row.id in self._known or self.has(row.name) or row.id in self._theirs

    def means(self, mention: Mention) -> bool:
        """Whether a mention means this entity by more than likeness."""
        if mention.entity_id not in self._members:
            return False
        return self._all or _called(mention) in self._known or mention.entity_id in self._known

    def guessed(self, memories: Sequence[Memory]) -> list[str]:
        """Return the names that the entity has by likeness alone."""
        mentions = [mention for memory in memories for mention in memory.mentions if mention.entity_id in self._members]
        return sorted({m.text for m in mentions if m.form is not Form.RELATION and not self.means(m)})


def _called(mention: Mention) -> str:
    """Return what a mention calls someone; a relation so that it is no name."""
    return f"my {mention.text}" if mention.form is Form.RELATION else straight(mention.text)


def near(name: str, directory: Directory) -> list[str]:
    """Return the roots that someone may have meant by a name that no one has, of the highest trust, the likeliest."""
    typed, words = spelling(name), re.findall(r"\w+", spelling(name, titles=False))
    known = directory.ways_to_name
    holding = [one for one in known if words and all(word in one for word in words)]
    fuller = sorted(one for one in holding if {*words} <= {*re.findall(r"\w+", one)})  # "Connor", "Connor, Sarah"
    some, room = list[str](), MOST_COMPARED
    for one in known:
        if one[:1] == typed[:1] and 2 * min(len(one), len(typed)) >= LIKE * (len(one) + len(typed)):
            room -= len(one) * len(typed)
            if room < 0:
                break
            some.append(one)
    alike = get_close_matches(typed, some, MOST_ALIKE, LIKE)
    roots = [root for one in (*fuller[:MOST_ALIKE], *alike) for root in sorted(_typed_so(one, directory))]
    roots += [root for one in alike for root in sorted(directory.first_named([one]))]
    return by_weight([*sorted(meant_by(name, directory)), *roots], directory)[:MOST_NEAR]


def _typed_so(name: str, directory: Directory) -> set[str]:
    return directory.called(name) | directory.spelt(name) | directory.spelt(name, titles=False)


def by_weight(roots: Sequence[str], directory: Directory) -> list[str]:
    """Return roots, each once, those first that the highest trust has named, else in their order."""
    return sorted(dict.fromkeys(roots), key=lambda one: -directory.weight(one))


def _unowned(name: str) -> str:
    """Return a name as it is compared, without the word for whose it is: "my wife"."""
    words = straight(name)
    for owner in ("my ", "our ", "the user's ", "user's "):
        words = words.removeprefix(owner)
    joined = words.replace(" ", "-")  # "mother in law"
    return joined if joined in RELATIONS else words


def is_relation(name: str) -> bool:
    """Whether a text names someone by a relation: "my wife"."""
    return _unowned(name) in RELATIONS


def meant_by(name: str, directory: Directory) -> set[str]:
    """Return the roots that someone may mean by an id, a name, a nickname, a handle, an address or a relation."""
    if directory.has(name):
        return {directory.root(name)}
    if len(name) >= limits.MIN_ID_PREFIX:
        begun = directory.beginning(name)
        if begun:
            return begun
    words = _unowned(name)
    if is_relation(name):
        related = directory.related(relation_of(words))
        if related:
            return related
    ways = [directory.called(name), directory.called(f"@{name}"), directory.spelt(name)]
    called = max((directory.weight(one) for way in ways for one in way), default=-1)
    ways.append({one for one in _alike(name, words, directory) if directory.weight(one) > called})
    most = max((directory.weight(one) for way in ways for one in way), default=0)  # no sandbox's before the host's
    of_most = ({one for one in way if directory.weight(one) == most} for way in ways)
    return next(filter(None, of_most), set()) or _related_so(words, directory)


def _alike(name: str, words: str, directory: Directory) -> Iterator[str]:
    """Yield the roots that may be called so by a nickname, a first name, or without their title."""
    yield from directory.spelt(name, titles=False)  # Bob may be Dr Bob and Bob Miller
    firsts = directory.first_named(short_forms(words.split(maxsplit=1)[0])) if words else ()
    yield from (first for first in firsts if " " not in words or _may_be(name, directory.names(first)))


def _may_be(name: str, known: Sequence[str]) -> bool:
    """Whether someone may be called so by several words: as one of the names, and against none of the full ones."""
    typed, names = spelling(name), [spelling(one) for one in known]
    full = [spelt for spelt in names if " " in spelt]
    return any(may_be_one(typed, spelt) for spelt in names) and all(may_be_one(typed, spelt) for spelt in full)


def _related_so(words: str, directory: Directory) -> set[str]:
    """Return who is meant by a relation and a name together: "grandma Rosa"."""
    first, _, rest = words.partition(" ")
    return directory.related(relation_of(first)) & meant_by(rest, directory) if first in RELATIONS and rest else set()
