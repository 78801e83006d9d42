"""The people and things that memories name: listed, renamed, merged, forgotten."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memoryd import limits
from memoryd.change import ChangeSet, Entry
from memoryd.checks import check_count, check_text, fold
from memoryd.domain.answers import within_bytes
from memoryd.domain.mentions import MOST_NEAR, Naming, is_relation, known_as, meant_by, named_by, near
from memoryd.domain.page_token import number_after, read_number
from memoryd.domain.ports import Ports
from memoryd.domain.purge import not_apart, purge_of
from memoryd.domain.showing import shown
from memoryd.domain.tombstones import tombstones_for
from memoryd.domain.turns import in_turns
from memoryd.entity import Entity, EntityType, Form, Mention, Profile
from memoryd.errors import AmbiguousName, EntityNotFound, InvalidArgument, TrustTooLow
from memoryd.index.analysis import analyse_query
from memoryd.index.directory import Directory
from memoryd.knowledge.names import MOST_NAME_CHARACTERS, MOST_NAME_WORDS, is_plain, stands_in
from memoryd.knowledge.relations import RELATIONS
from memoryd.model import Caller, Filter, Kind, Memory, Owner, State
from memoryd.times import from_us

__all__ = [
    "Forgotten",
    "People",
    "exactly_whom",
    "forget_person",
    "get_entity",
    "known_people",
    "list_people",
    "merge",
    "rename",
    "unmerge",
    "whom",
]

EVERY_KIND = frozenset(Kind)
SUMMED_UP = 3  # statements of a summary
SUMMARY_CHARACTERS = 300


# --- who is meant ---


async def _people(owner: Owner, caller: Caller, ports: Ports) -> Directory:
    """Return who is known in a scope, as a caller sees them."""
    return (await ports.people(owner)).seen_by(caller.reads_as(owner))


async def whom(wanted: Filter, caller: Caller, ports: Ports) -> Filter:
    """Return a filter with the entities that its subjects mean, in the scopes that the caller sees."""
    if not wanted.subjects:
        return wanted
    places = [await _people(owner, caller, ports) for owner in caller.visibility.owners]
    roots = {
        (n, root) for n, people in enumerate(places) for name in wanted.subjects for root in meant_by(name, people)
    }
    return _with_entities(wanted, places, roots)


async def exactly_whom(wanted: Filter, caller: Caller, ports: Ports, *, now: datetime) -> Filter:
    """
    Return a filter with the entities that its subjects name exactly: so where something is to go.

    AmbiguousName if a subject names several in a scope, EntityNotFound if it names nobody and no memory has it as its
    subject, word for word.
    """
    if not wanted.subjects:
        return wanted
    places = [await _people(owner, caller, ports) for owner in caller.visibility.owners]
    roots: set[tuple[int, str]] = set()
    for subject in wanted.subjects:
        named = [(n, root) for n, people in enumerate(places) for root in sorted(known_as(subject, people))]
        for n, people in enumerate(places):
            several = [root for place, root in named if place == n]
            if len(several) > 1:
                listed = ", ".join(f"{people.name(root)} ({root})" for root in several[:8])
                raise AmbiguousName(f"{subject!r} may be several: {listed}; name one by its id", field="subjects")
        literally = Filter(kinds=EVERY_KIND, subjects=(subject,), include_expired=True, include_superseded=True)
        may_be_label = not is_relation(subject)  # "my wife" may be others too than those who are labelled so
        if not named and not (may_be_label and await ports.store.page(caller.visibility, literally, now=now, limit=1)):
            raise _unknown(subject, places, "subjects")
        for n, root in named:
            owner = caller.visibility.owners[n]
            found = await ports.store.naming(owner, places[n].members(root))
            _check_no_guess(subject, places[n], root, found, "subjects")
        roots.update(named)
    return _with_entities(wanted, places, roots)


def _check_no_guess(name: str, people: Directory, root: str, found: Sequence[Memory], field: str) -> None:
    """Raise AmbiguousName if an entity has names that only likeness makes those of whom a name names."""
    guessed = Naming(name, people, root, found).guessed(found)
    if guessed:
        apart = guessed[0] if fold(name) == fold(people.name(root)) else name
        raise AmbiguousName(
            f"{name!r} may be another than {', '.join(map(repr, guessed))}: nobody has said that they are one. Take"
            f" them apart (memory person --unmerge {apart!r}), or name all of them by their id, {root}",
            field=field,
        )


def _with_entities(wanted: Filter, places: Sequence[Directory], roots: Iterable[tuple[int, str]]) -> Filter:
    return replace(wanted, entity_ids=frozenset(one for n, root in roots for one in places[n].members(root)))


Meaning = Callable[[str, Directory], set[str]]
"""How a name is resolved: `meant_by` where something is read, `named_by` to change, `known_as` to erase."""


async def _find(
    name: str, caller: Caller, ports: Ports, meaning: Meaning, *, field: str = "name", but: str = ""
) -> tuple[Owner, str, Directory]:
    """Return the one entity that a caller means, and where; of several not `but`. EntityNotFound or AmbiguousName."""
    name = check_text(name, field, limit=limits.MAX_SUBJECT_BYTES, required=True).strip()
    places = [(owner, await _people(owner, caller, ports)) for owner in caller.visibility.owners]
    found = [(owner, root, people) for owner, people in places for root in sorted(meaning(name, people))]
    if len(found) > 1:
        found = [one for one in found if one[1] != but]
    if not found:
        raise _unknown(name, [people for _, people in places], field)
    if len(found) > 1:
        several = ", ".join(f"{people.name(root)} ({root})" for _, root, people in found[:8])
        raise AmbiguousName(f"{name!r} may be several: {several}; name one by its id", field=field)
    return found[0]


def _unknown(name: str, places: Iterable[Directory], field: str) -> EntityNotFound:
    """Return the error for a name that nobody has, with those who may have been meant."""
    alike = [f"{people.name(root)} ({root})" for people in places for root in near(name, people)]
    way = f"; near are {', '.join(alike[:MOST_NEAR])}: give the exact name or the id" if alike else ""
    return EntityNotFound(f"nobody and nothing is known as {name!r}{way}", field=field)


def _profile(owner: Owner, root: str, people: Directory, memories: Sequence[Memory] = ()) -> Profile:
    seen = people.live(root)
    name = people.name(root)
    most = max((memory.trust.weight for memory in memories), default=0)  # no lower trust stands there unmarked
    best = sorted(
        (memory for memory in memories if memory.trust.weight == most),
        key=lambda memory: (-memory.confidence, -memory.recall_count, memory.create_time),
    )
    summary = " · ".join(memory.content.strip() for memory in best[:SUMMED_UP])
    merged = [row.id for row in people.rows if row.merged_into and people.root(row.id) == root]
    return Profile(
        id=root,
        owner=owner,
        type=people.type(root),
        name=name,
        aliases=tuple(people.aliases(root)),
        relations=tuple(people.relations(root)),
        summary=summary if len(summary) <= SUMMARY_CHARACTERS else summary[: SUMMARY_CHARACTERS - 1] + "…",
        mention_count=len(seen),
        first_seen_time=from_us(min(seen.values())) if seen else None,
        last_seen_time=from_us(max(seen.values())) if seen else None,
        merged_ids=tuple(sorted(merged)),
    )


async def _memories(owner: Owner, root: str, people: Directory, ports: Ports, now: datetime) -> list[Memory]:
    """Return the live memories that name an entity, newest first."""
    index = await ports.indexes.get(owner)
    if index is None:
        found = await ports.store.naming(owner, people.members(root))
    else:
        known = (index.memory(memory_id) for memory_id in people.live(root))
        found = sorted((m for m in known if m is not None), key=lambda m: (m.create_time, m.id), reverse=True)
    every = Filter(kinds=EVERY_KIND)
    return [memory for memory in found if every.admits(memory, now)]


# --- looking ---


@dataclass(frozen=True, slots=True)
class People:
    """Some people, and the token of the next page; empty at the end."""

    people: list[Profile]
    next_page_token: str


async def list_people(caller: Caller, ports: Ports, *, page_size: int, page_token: str, now: datetime) -> People:
    """Return the people that memories name, those named most often first; see ListPeople in the contract."""
    size = check_count(page_size, "page_size", default=limits.DEFAULT_PAGE_SIZE, limit=limits.MAX_PAGE_SIZE)
    bound = repr(("people", caller.agent_id, caller.user_id, caller.chat_id)).encode()
    start = read_number(page_token, ports.secret, bound) if page_token else 0
    ordered = await known_people(caller, ports)
    profiles = [
        _profile(owner, root, people, await _memories(owner, root, people, ports, now))
        for owner, root, people in ordered[start : start + size]
    ]
    more = start + size < len(ordered)
    return People(profiles, number_after(start + size, ports.secret, bound) if more else "")


async def known_people(caller: Caller, ports: Ports) -> list[tuple[Owner, str, Directory]]:
    """Return every person that the caller's memories name, those named most often first, then by name."""
    found = []
    for owner in caller.visibility.owners:
        people = await _people(owner, caller, ports)
        found += [
            (-len(people.live(root)), fold(people.name(root)), root, owner, people)
            async for root in in_turns(people.roots)
            if people.type(root) is EntityType.PERSON and (people.live(root) or people.row(root))
        ]
    found.sort(key=lambda one: one[:3])
    return [(owner, root, people) for *_, root, owner, people in found]


async def get_entity(
    name: str, caller: Caller, ports: Ports, *, limit: int, now: datetime
) -> tuple[Profile, list[Memory]]:
    """Return an entity and the memories that name it, newest first; see GetEntity in the contract."""
    count = check_count(limit, "limit", default=limits.DEFAULT_PAGE_SIZE, limit=limits.MAX_PAGE_SIZE)
    owner, root, people = await _find(name, caller, ports, meant_by)
    memories = await _memories(owner, root, people, ports, now)
    return _profile(owner, root, people, memories), await shown(within_bytes(memories[:count]), caller, ports, now)


# --- deciding by hand ---


async def _check_trust(owner: Owner, ids: Iterable[str], caller: Caller, ports: Ports, people: Directory) -> None:
    """Raise TrustTooLow if somebody of more trust named one of these entities, in a memory or by hand."""
    ids = set(ids)
    decided = any(row.trust.outranks(caller.trust) for row in people.rows if row.id in ids)
    if decided or any(memory.trust.outranks(caller.trust) for memory in await ports.store.naming(owner, ids)):
        raise TrustTooLow("memories of higher trust name them; who they are is not decided from here")


async def _write(rows: Sequence[Entity], caller: Caller, ports: Ports, now: datetime) -> Directory:
    """Write down what somebody decides of entities of one owner; return who is known then."""
    ports.check_grant(caller.grant_id, now)
    await ports.store.commit(ChangeSet(entities=tuple(replace(row, trust=caller.trust) for row in rows)))
    return await _people(rows[0].owner, caller, ports)


def _row(people: Directory, entity_id: str, owner: Owner, caller: Caller, now: datetime) -> Entity:
    """Return what was decided of an entity so far; what lower trust decided does not become higher trust's decision."""
    known = people.row(entity_id)
    if known is None or caller.trust.outranks(known.trust):
        return Entity(entity_id, owner, now, caller.trust)
    return known


async def rename(name: str, new_name: str, caller: Caller, ports: Ports, *, now: datetime) -> Profile:
    """Give an entity another name; see RenameEntity in the contract."""
    new_name = check_text(new_name, "new_name", limit=limits.MAX_SUBJECT_BYTES, required=True).strip()
    if not is_plain(new_name):
        raise InvalidArgument(
            f"new_name must be a name: at most {MOST_NAME_WORDS} words and {MOST_NAME_CHARACTERS} letters, no sentence",
            field="new_name",
        )
    if ports.secrets([new_name]):
        raise InvalidArgument("new_name holds a credential, which is not stored", field="new_name")
    if fold(new_name) in RELATIONS:
        raise InvalidArgument(f"new_name {new_name!r} is a relation, not a name", field="new_name")
    async with ports.owner_lock(*caller.visibility.owners):
        owner, root, people = await _find(name, caller, ports, named_by)
        await _check_trust(owner, people.members(root), caller, ports, people)
        namesakes = [one for one in people.called(new_name) - {root} if people.type(one) is EntityType.PERSON]
        known = [one for one in sorted(namesakes) if people.weight(one) >= caller.trust.weight]
        if known:
            raise InvalidArgument(
                f"{known[0]} is called {new_name!r}; merge the two if they are one, else take a fuller name",
                field="new_name",
            )
        people = await _write([replace(_row(people, root, owner, caller, now), name=new_name)], caller, ports, now)
        return _profile(owner, root, people, await _memories(owner, root, people, ports, now))


async def merge(name: str, into: str, caller: Caller, ports: Ports, *, now: datetime) -> tuple[Profile, str]:
    """Say that two entities are one; return it and the id that became part of it. See MergeEntities."""
    async with ports.owner_lock(*caller.visibility.owners):
        owner, root, people = await _find(name, caller, ports, named_by)
        other_owner, other, _ = await _find(into, caller, ports, named_by, field="into", but=root)
        if owner != other_owner:
            raise InvalidArgument(
                "the two are of different scopes, a person's own and a chat's, and stay two", field="into"
            )
        if root == other:
            raise InvalidArgument("the two are one already", field="into")
        await _check_trust(owner, people.members(root) | people.members(other), caller, ports, people)
        row, kept = _row(people, root, owner, caller, now), _row(people, other, owner, caller, now)
        rows = [replace(row, merged_into=other, apart=tuple(one for one in row.apart if one != other))]
        if root in kept.apart:
            rows.append(replace(kept, apart=tuple(one for one in kept.apart if one != root)))
        people = await _write(rows, caller, ports, now)
        return _profile(owner, other, people, await _memories(owner, other, people, ports, now)), root


async def unmerge(entity_id: str, caller: Caller, ports: Ports, *, now: datetime) -> Profile:
    """Take an entity, or an alias, out of the one that it is part of, and keep the two apart; see UnmergeEntity."""
    async with ports.owner_lock(*caller.visibility.owners):
        for owner in caller.visibility.owners:
            people = await _people(owner, caller, ports)
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
        others = people.members(entity_id) - {entity_id}
        apart = tuple(dict.fromkeys((*row.apart, *sorted(others))))
        people = await _write([replace(row, merged_into="", apart=apart)], caller, ports, now)
        return _profile(owner, entity_id, people, await _memories(owner, entity_id, people, ports, now))


async def _without_alias(alias: str, caller: Caller, ports: Ports, now: datetime) -> Profile:
    """Make an entity of its own of whom memories call by an alias of somebody: what those say was taken for theirs."""
    owner, root, people = await _find(alias, caller, ports, known_as, field="id")
    known = people.members(root)
    called = fold(alias)
    if called not in {fold(one) for one in people.aliases(root)}:
        raise InvalidArgument(f"{alias!r} is no alias of {people.name(root)!r}; give one, or a merged id", field="id")
    await _check_trust(owner, known, caller, ports, people)
    new_id = ports.new_id()
    found = {memory.id: _renumbered(memory, known, called, new_id) for memory in await ports.store.naming(owner, known)}
    updates = [
        Entry(replace(entry.memory, mentions=found[entry.memory.id]), entry.terms)
        for entry in await ports.store.entries(sorted(found))
        if found[entry.memory.id] != entry.memory.mentions
    ]
    if not updates:
        raise InvalidArgument(f"no memory calls anybody {alias!r}; the name was given by hand: rename them", field="id")
    ports.check_grant(caller.grant_id, now)
    row = Entity(new_id, owner, now, caller.trust, apart=tuple(sorted(known)))
    await ports.store.commit(ChangeSet(updates=tuple(updates), entities=(row,)))
    people = await _people(owner, caller, ports)
    return _profile(owner, new_id, people, await _memories(owner, new_id, people, ports, now))


def _renumbered(memory: Memory, known: Collection[str], called: str, new_id: str) -> tuple[Mention, ...]:
    """
    Return the mentions of a memory with the new id for those that call somebody known so.

    Addresses go along with the only name beside them; relations stay with whom they were said of.
    """
    theirs = [mention for mention in memory.mentions if mention.entity_id in known]
    if not any(fold(mention.text) == called for mention in theirs):
        return memory.mentions
    alone = all(fold(m.text) == called for m in theirs if m.form is Form.NAME)
    return tuple(
        replace(mention, entity_id=new_id, same_as="")
        if mention in theirs
        and mention.form is not Form.RELATION
        and (fold(mention.text) == called or (alone and mention.form is not Form.NAME))
        else mention
        for mention in memory.mentions
    )


# --- forgetting ---


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The receipt of a person who was forgotten; the memories themselves only in a dry run."""

    profile: Profile
    purged_ids: tuple[str, ...]
    mentioning_ids: tuple[str, ...]
    memories: tuple[Memory, ...] = ()
    mentioning: tuple[Memory, ...] = ()


async def forget_person(name: str, caller: Caller, ports: Ports, *, now: datetime, dry_run: bool) -> Forgotten:
    """Erase all memories about a person, in whatever state, and the person; see ForgetPerson in the contract."""
    async with ports.owner_lock(*caller.visibility.owners):
        owner, root, people = await _find(name, caller, ports, known_as)
        members = people.members(root)
        found = await ports.store.naming(owner, members)
        naming = Naming(name.strip(), people, root, found)
        about = [m for m in found if any(one.about and naming.means(one) for one in m.mentions)]
        ids = {memory.id for memory in about}
        mentioning = [memory for memory in found if memory.id not in ids]
        live = [memory for memory in about if memory.state_at(now) is State.LIVE]
        profile = _as_named(_profile(owner, root, people, live), naming, name.strip())
        in_words = [m for m in await _with_name((profile.name, *profile.aliases), owner, ports) if m.id not in ids]
        left = {memory.id: memory for memory in (*mentioning, *in_words)}
        receipt = Forgotten(profile, tuple(m.id for m in about), tuple(left))
        rows = [row for row in people.rows if row.id in members and naming.decided(row)]
        trusts = [memory.trust for memory in about] + [row.trust for row in rows]
        if any(trust.outranks(caller.trust) for trust in trusts):
            raise TrustTooLow("some of what is said of this person is of higher trust; nothing was erased")
        if dry_run:
            return replace(
                receipt,
                memories=tuple(await shown(about[: limits.MAX_SHOWN], caller, ports, now)),
                mentioning=tuple(await shown(list(left.values())[: limits.MAX_SHOWN], caller, ports, now)),
            )
        ports.check_grant(caller.grant_id, now)
        kept = await ports.store.entries([m.id for m in mentioning if not m.trust.outranks(caller.trust)])
        change = await purge_of(about, ports, now=now, by=caller.trust)
        partners = {entry.memory.id: entry for entry in change.updates}
        updates = [
            Entry(_without(partners.pop(e.memory.id, e).memory, naming), e.terms) for e in kept
        ]  # what only mentions them forgets whom it meant
        lost = () if naming.guessed(found) else members
        forgotten = {row.id: row for row in (*change.forget_entities, *rows)}
        await ports.store.commit(
            replace(
                change,
                updates=(*updates, *partners.values()),
                entities=tuple(not_apart(people.rows, {*forgotten, *lost})),
                forget_entities=tuple(forgotten.values()),
                tombstones=tuple(
                    stone for memory in about for stone in tombstones_for(memory, ports.secret, caller.trust)
                ),
            )
        )
    return receipt


async def _with_name(names: Sequence[str], owner: Owner, ports: Ports) -> list[Memory]:
    """Return the memories whose text holds one of some names, also where nobody was found to be meant by it."""
    index = await ports.indexes.get(owner)
    if index is None:
        return []
    likely = {
        memory.id: memory
        for name in names
        for memory in index.with_words(analyse_query(name), limit=limits.MAX_NAMED_IDS)
    }
    return [
        memory async for memory in in_turns(likely.values()) if any(stands_in(name, memory.content) for name in names)
    ]


def _without(memory: Memory, naming: Naming) -> Memory:
    return replace(memory, mentions=tuple(mention for mention in memory.mentions if not naming.means(mention)))


def _as_named(profile: Profile, naming: Naming, name: str) -> Profile:
    """Return the profile of whom a name means, without what likeness alone has made one with them."""
    names = [one for one in (profile.name, *profile.aliases) if naming.has(one)]
    relations = tuple(one for one in profile.relations if naming.has(f"my {one}"))
    return replace(profile, name=names[0] if names else name, aliases=tuple(names[1:]), relations=relations)
