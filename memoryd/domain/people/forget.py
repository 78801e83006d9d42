"""Forgetting a person: what is about them is erased, and what mentions them forgets whom it meant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memoryd.domain.batching import in_turns
from memoryd.domain.forgetting.purge import not_apart, purge_of
from memoryd.domain.people.profiles import profile_of
from memoryd.domain.ports import Ports
from memoryd.domain.reading.showing import shown
from memoryd.domain.subjects import find_entity
from memoryd.domain.tombstones import tombstones_for
from memoryd.entities.resolve import Naming, known_as
from memoryd.errors import TrustTooLow
from memoryd.index.analysis import analyse_query
from memoryd.knowledge.language.names import stands_in
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import Entry
from memoryd.model.entity import Profile
from memoryd.model.memory import Memory, State
from memoryd.model.scope import Owner

__all__ = ["Forgotten", "forget_person"]


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
        owner, root, people = await find_entity(name, caller, ports, known_as)
        members = people.members(root)
        found = await ports.store.naming(owner, members)
        naming = Naming(name.strip(), people, root, found)
        about = [m for m in found if any(one.about and naming.means(one) for one in m.mentions)]
        ids = {memory.id for memory in about}
        mentioning = [memory for memory in found if memory.id not in ids]
        live = [memory for memory in about if memory.state_at(now) is State.LIVE]
        profile = _as_named(profile_of(owner, root, people, live), naming, name.strip())
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
