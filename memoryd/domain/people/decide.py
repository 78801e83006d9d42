"""Deciding by hand who is who: rename, retype, merge, unmerge."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.people.profiles import profile_now
from memoryd.domain.pipeline import Decision, decide_and_commit
from memoryd.domain.ports import Guards, Ports
from memoryd.domain.scopes import Scopes
from memoryd.domain.subjects import find_entity, people_of
from memoryd.entities.directory import Directory
from memoryd.entities.lookup import known_as, named_by
from memoryd.errors import InvalidArgument, TrustTooLow
from memoryd.knowledge.grammar.names import MOST_NAME_CHARACTERS, MOST_NAME_WORDS, is_plain, straight
from memoryd.knowledge.grammar.relations import RELATIONS
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.entity import ADDRESSES, GIVEN_TYPES, Entity, EntityType, Form, Mention, Profile
from memoryd.model.memory import Memory
from memoryd.model.reports import Merged
from memoryd.model.scope import Owner
from memoryd.model.validation import check_text, fold

__all__ = ["merge", "rename", "set_type", "unmerge"]


async def rename(name: str, new_name: str, caller: Caller, ports: Ports, *, now: datetime) -> Profile:
    """Give an entity another name; see RenameEntity in the contract."""
    new_name = check_text(new_name, "new_name", limit=limits.MAX_SUBJECT_BYTES, required=True).strip()
    _check_new_name(new_name, ports.guards)

    async def decide() -> Decision[Profile]:
        owner, root, people = await find_entity(name, caller, ports, named_by)
        await _check_trust(owner, people.members(root), caller, ports, people)
        called = people.called(new_name) - {root}
        namesakes = [namesake for namesake in called if people.type(namesake) is EntityType.PERSON]
        known = [namesake for namesake in sorted(namesakes) if people.weight(namesake) >= caller.trust.weight]
        if known:
            raise InvalidArgument(
                f"{known[0]} is called {new_name!r}; merge the two if they are one, else take a fuller name",
                field="new_name",
            )
        row = replace(_row(people, root, owner, caller, now), name=new_name)
        return Decision(_written([row], caller), lambda: _profile(owner, root, caller, ports, now))

    return await decide_and_commit(caller.visibility.owners, decide, ports, now=now, grant_id=caller.grant_id)


def _check_new_name(name: str, guards: Guards) -> None:
    """Raise InvalidArgument for what is no name: a sentence, a credential, a relation, what cannot be seen."""
    if hidden := next((letter for letter in name if not letter.isprintable()), ""):
        raise InvalidArgument(
            f"new_name holds U+{ord(hidden):04X}, which cannot be seen; leave it out", field="new_name"
        )
    if not is_plain(name):
        raise InvalidArgument(
            f"new_name must be a name: at most {MOST_NAME_WORDS} words and {MOST_NAME_CHARACTERS} letters, no sentence",
            field="new_name",
        )
    if guards.secrets([name]):
        raise InvalidArgument("new_name holds a credential, which is not stored", field="new_name")
    if fold(name) in RELATIONS:
        raise InvalidArgument(f"new_name {name!r} is a relation, not a name", field="new_name")


async def set_type(name: str, given: EntityType, caller: Caller, ports: Ports, *, now: datetime) -> Profile:
    """Say what an entity is, whatever memories say; see SetEntityType in the contract."""
    if given not in GIVEN_TYPES:
        names = ", ".join(entity_type.value for entity_type in GIVEN_TYPES)
        raise InvalidArgument(f"type must be one of {names}", field="type")

    async def decide() -> Decision[Profile]:
        owner, root, people = await find_entity(name, caller, ports, named_by)
        await _check_trust(owner, people.members(root), caller, ports, people)
        if people.said_type(root) in ADDRESSES:
            raise InvalidArgument(f"{name!r} is an address, and nothing else", field="name")
        row = replace(_row(people, root, owner, caller, now), type=given)
        return Decision(_written([row], caller), lambda: _profile(owner, root, caller, ports, now))

    return await decide_and_commit(caller.visibility.owners, decide, ports, now=now, grant_id=caller.grant_id)


async def merge(name: str, into: str, caller: Caller, ports: Ports, *, now: datetime) -> Merged:
    """Say that two entities are one; return it and the id that became part of it. See MergeEntities."""

    async def decide() -> Decision[Merged]:
        owner, root, people = await find_entity(name, caller, ports, named_by)
        other_owner, other, _ = await find_entity(into, caller, ports, named_by, field="into", but=root)
        if owner != other_owner:
            raise InvalidArgument(
                "the two are of different scopes, a person's own and a chat's, and stay two", field="into"
            )
        if root == other:
            raise InvalidArgument("the two are one already", field="into")
        await _check_trust(owner, people.members(root) | people.members(other), caller, ports, people)
        row, entity = _row(people, root, owner, caller, now), _row(people, other, owner, caller, now)
        rows = [replace(row, merged_into=other, apart=tuple(other_id for other_id in row.apart if other_id != other))]
        if root in entity.apart:
            rows.append(replace(entity, apart=tuple(one for one in entity.apart if one != root)))

        async def answer() -> Merged:
            return Merged(await _profile(owner, other, caller, ports, now), root)

        return Decision(_written(rows, caller), answer)

    return await decide_and_commit(caller.visibility.owners, decide, ports, now=now, grant_id=caller.grant_id)


async def unmerge(entity_id: str, caller: Caller, ports: Ports, *, now: datetime) -> Profile:
    """Take an entity, or an alias, out of the one that it is part of, and keep the two apart; see UnmergeEntity."""

    async def decide() -> Decision[Profile]:
        for owner in caller.visibility.owners:
            people = await people_of(owner, caller, Scopes(ports))
            if people.has(entity_id):
                break
        else:
            return await _without_alias(entity_id, caller, ports, now)
        await _check_trust(owner, people.members(entity_id), caller, ports, people)
        if people.root(entity_id) == entity_id:
            raise InvalidArgument(
                "it is not merged into another; give one of the merged_ids of the one that it is in, or an alias",
                field="id",
            )
        row = _row(people, entity_id, owner, caller, now)
        others = people.members(entity_id) - _part_of(entity_id, people)
        apart = tuple(dict.fromkeys((*row.apart, *sorted(others))))
        change = _written([replace(row, merged_into="", apart=apart)], caller)
        return Decision(change, lambda: _profile(owner, entity_id, caller, ports, now))

    return await decide_and_commit(caller.visibility.owners, decide, ports, now=now, grant_id=caller.grant_id)


def _part_of(entity_id: str, people: Directory) -> set[str]:
    """Return an entity with those that were merged into it: they stay with it."""
    into = {row.id: row.merged_into for row in people.rows if row.merged_into}
    part = {entity_id}
    while more := {one for one, other in into.items() if other in part} - part:
        part |= more
    return part


async def _without_alias(alias: str, caller: Caller, ports: Ports, now: datetime) -> Decision[Profile]:
    """Split an alias off: the memories that use it name a new entity."""
    owner, root, people = await find_entity(alias, caller, ports, known_as, field="id")
    known = people.members(root)
    called = straight(alias)
    if called not in {straight(aliase) for aliase in people.aliases(root)}:
        raise InvalidArgument(f"{alias!r} is no alias; give one, or a merged id", field="id")
    await _check_trust(owner, known, caller, ports, people)
    new_id = ports.new_id()
    renumbered = {memory.id: _renumbered(memory, known, called, new_id) for memory in await ports.naming(owner, known)}
    updates = [
        Entry(replace(entry.memory, mentions=renumbered[entry.memory.id]), entry.terms)
        for entry in await ports.store.memories.entries(owner, sorted(renumbered))
        if renumbered[entry.memory.id] != entry.memory.mentions
    ]
    if not updates:
        raise InvalidArgument(f"no memory calls anybody {alias!r}; the name was given by hand: rename them", field="id")
    row = Entity(new_id, owner, now, caller.trust, apart=tuple(sorted(known)))
    change = ChangeSet(updates=tuple(updates), entities=(row,))
    return Decision(change, lambda: _profile(owner, new_id, caller, ports, now))


def _renumbered(memory: Memory, known: Collection[str], called: str, new_id: str) -> tuple[Mention, ...]:
    """
    Return the mentions of a memory, with the new id where they use the alias.

    An address follows the only name in its memory; a relation stays with the old entity.
    """
    theirs = [mention for mention in memory.mentions if mention.entity_id in known]
    if not any(straight(mention.text) == called for mention in theirs):
        return memory.mentions
    alone = all(straight(m.text) == called for m in theirs if m.form is Form.NAME)
    return tuple(
        replace(mention, entity_id=new_id, same_as="")
        if mention in theirs
        and mention.form is not Form.RELATION
        and (straight(mention.text) == called or (alone and mention.form is not Form.NAME))
        else mention
        for mention in memory.mentions
    )


async def _check_trust(owner: Owner, ids: Iterable[str], caller: Caller, ports: Ports, people: Directory) -> None:
    """Raise TrustTooLow if higher trust named one of these entities, in a memory or by hand."""
    ids = set(ids)
    decided = any(row.trust.outranks(caller.trust) for row in people.rows if row.id in ids)
    if decided or any(memory.trust.outranks(caller.trust) for memory in await ports.naming(owner, ids)):
        raise TrustTooLow("memories of higher trust name them; who they are is not decided from here")


def _written(rows: Sequence[Entity], caller: Caller) -> ChangeSet:
    """Return the change that writes down what a caller decides of entities."""
    return ChangeSet(entities=tuple(replace(row, trust=caller.trust) for row in rows))


async def _profile(owner: Owner, root: str, caller: Caller, ports: Ports, now: datetime) -> Profile:
    """Return what is known of an entity now."""
    people = await people_of(owner, caller, Scopes(ports))
    return await profile_now(owner, root, people, ports, now)


def _row(people: Directory, entity_id: str, owner: Owner, caller: Caller, now: datetime) -> Entity:
    """Return what was decided of an entity so far; what lower trust decided does not become higher trust's decision."""
    known = people.row(entity_id)
    if known is None or caller.trust.outranks(known.trust):
        return Entity(entity_id, owner, now, caller.trust)
    return known
