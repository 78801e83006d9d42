"""From the names in a request to the entities that they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.ports import Ports
from memoryd.domain.scopes import Scopes
from memoryd.entities.directory import Directory
from memoryd.entities.lookup import MOST_NEAR, Naming, is_relation, known_as, meant_by, near
from memoryd.errors import AmbiguousName, EntityNotFound
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.entity import EntityType
from memoryd.model.memory import Kind, Memory
from memoryd.model.query import Filter
from memoryd.model.scope import Owner
from memoryd.model.validation import check_text, fold
from memoryd.turns import in_turns

__all__ = [
    "EVERY_KIND",
    "Meaning",
    "find_entity",
    "known_people",
    "people_of",
    "person_place",
    "resolve_subjects",
    "resolve_subjects_exactly",
]

EVERY_KIND = frozenset(Kind)
MOST_LISTED = 8  # of those who share a name, in an error
Meaning = Callable[[str, Directory], set[str]]
"""How a name is resolved: `meant_by` where something is read, `named_by` to change, `known_as` to erase."""


async def people_of(owner: Owner, caller: Caller, scopes: Scopes) -> Directory:
    """Return the directory of a scope as a caller sees it."""
    return (await scopes.people(owner)).seen_by(caller.reads_as(owner))


async def resolve_subjects(wanted: Filter, caller: Caller, scopes: Scopes) -> Filter:
    """Return a filter with the entities that its subjects mean, in the scopes that the caller sees."""
    if not wanted.subjects:
        return wanted
    places = [await people_of(owner, caller, scopes) for owner in caller.visibility.owners]
    roots = {
        (n, root) for n, people in enumerate(places) for name in wanted.subjects for root in meant_by(name, people)
    }
    return _with_entities(wanted, places, roots)


async def resolve_subjects_exactly(wanted: Filter, caller: Caller, ports: Ports, *, now: datetime) -> Filter:
    """
    Return a filter with the entities that its subjects name exactly; for what destroys.

    AmbiguousName if a subject names several in a scope. EntityNotFound if it names none and no memory has it word for
    word as its subject.
    """
    if not wanted.subjects:
        return wanted
    scopes = Scopes(ports)
    places = [await people_of(owner, caller, scopes) for owner in caller.visibility.owners]
    roots: set[tuple[int, str]] = set()
    for subject in wanted.subjects:
        named = [(n, root) for n, people in enumerate(places) for root in sorted(known_as(subject, people))]
        for n, people in enumerate(places):
            several = [root for place, root in named if place == n]
            if len(several) > 1:
                raise _ambiguous(subject, [(people, root) for root in several], "subjects")
        literally = Filter(kinds=EVERY_KIND, subjects=(subject,), include_expired=True, include_superseded=True)
        may_be_label = not is_relation(subject)  # "my wife" may be others too than those who are labelled so
        if not named and not (
            may_be_label and await ports.store.memories.page(caller.visibility, literally, now=now, limit=1)
        ):
            raise unknown_name(subject, places, "subjects")
        for n, root in named:
            owner = caller.visibility.owners[n]
            memories = await ports.naming(owner, places[n].members(root))
            check_no_guess(subject, places[n], root, memories, "subjects")
        roots.update(named)
    return _with_entities(wanted, places, roots)


def check_no_guess(name: str, people: Directory, root: str, memories: Sequence[Memory], field: str) -> None:
    """Raise AmbiguousName if the entity of a name has other names by likeness alone."""
    guessed = Naming(name, people, root, memories).guessed(memories)
    if guessed:
        apart = guessed[0] if fold(name) == fold(people.name(root)) else name
        raise AmbiguousName(
            f"{name!r} may be someone else than the people with a like name",
            names=f": {', '.join(map(repr, guessed))}; no one has said that they are one. Take them apart (memory"
            f" person --unmerge {apart!r}), or name all of them by their id, {root}",
            field=field,
        )


def _with_entities(wanted: Filter, places: Sequence[Directory], roots: Iterable[tuple[int, str]]) -> Filter:
    return replace(wanted, entity_ids=frozenset(member for n, root in roots for member in places[n].members(root)))


async def find_entity(
    name: str,
    caller: Caller,
    ports: Ports,
    meaning: Meaning,
    *,
    field: str = "name",
    but: str = "",
    scopes: Scopes | None = None,
) -> tuple[Owner, str, Directory]:
    """Return the one entity that a caller means, and where; of several not `but`. EntityNotFound or AmbiguousName."""
    name = check_text(name, field, limit=limits.MAX_SUBJECT_BYTES, required=True).strip()
    scopes = scopes or Scopes(ports)
    places = [(owner, await people_of(owner, caller, scopes)) for owner in caller.visibility.owners]
    found = [(owner, root, people) for owner, people in places for root in sorted(meaning(name, people))]
    if len(found) > 1:
        found = [one for one in found if one[1] != but]
    if len(found) > 1 and meaning is meant_by:  # what is shown is of the highest trust, in whichever scope
        most = max(people.weight(root) for _, root, people in found)
        found = [one for one in found if one[2].weight(one[1]) == most]
    if not found:
        raise unknown_name(name, [people for _, people in places], field)
    if len(found) > 1:
        raise _ambiguous(name, [(people, root) for _, root, people in found], field)
    return found[0]


def _ambiguous(name: str, found: Iterable[tuple[Directory, str]], field: str) -> AmbiguousName:
    """Return the error for a name that several have, those first that the highest trust has named."""
    listed = sorted(found, key=lambda one: -one[0].weight(one[1]))[:MOST_LISTED]
    names = ", ".join(f"{people.name(root)} ({_what(people, root)}, {root})" for people, root in listed)
    return AmbiguousName(f"{name!r} may be several; name one by its id", names=f": {names}", field=field)


def _what(people: Directory, root: str) -> str:
    """Return by what someone can be told from a namesake: a relation, else their sort."""
    return next(iter(people.relations(root)), people.type(root).value)


def unknown_name(name: str, places: Iterable[Directory], field: str) -> EntityNotFound:
    """Return the error for a name that no one has, with those who may have been meant."""
    alike = sorted(
        ((people, root) for people in places for root in near(name, people)), key=lambda one: -one[0].weight(one[1])
    )
    named = ", ".join(f"{people.name(root)} ({root})" for people, root in alike[:MOST_NEAR])
    way = f"; near are {named}: give the exact name or the id" if alike else ""
    return EntityNotFound(f"no one and nothing is known as {name!r}", names=way, field=field)


async def known_people(caller: Caller, scopes: Scopes) -> list[tuple[Owner, str, Directory]]:
    """Return every person that the caller's memories name, those named most often first, then by name."""
    found = []
    for owner in caller.visibility.owners:
        people = await people_of(owner, caller, scopes)
        found += [
            (person_place(root, people), owner, root, people)
            async for root in in_turns(people.roots)
            if people.type(root) is EntityType.PERSON and (people.live(root) or people.row(root))
        ]
    found.sort(key=lambda one: one[0])
    return [(owner, root, people) for _, owner, root, people in found]


def person_place(root: str, people: Directory) -> tuple[int, str, str]:
    """Return by what people are ordered: those named most often first, then by name."""
    return -len(people.live(root)), fold(people.name(root)), root
