"""Forgetting a person: memories about them are erased; memories that mention them lose the mention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memoryd.domain.forgetting.derived import digests_citing
from memoryd.domain.forgetting.occurrences import Occurrences, erase_occurrences, joined, occurrences_of, refuse_higher
from memoryd.domain.forgetting.purge import not_apart, purge_of
from memoryd.domain.people.profiles import best_of, profile_of
from memoryd.domain.pipeline import Decision, decide_and_commit
from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.presentation import present
from memoryd.domain.scopes import DeletedScopes
from memoryd.domain.subjects import find_entity
from memoryd.domain.tombstones import tombstones_for
from memoryd.entities.directory import Directory
from memoryd.entities.lookup import Naming, known_as
from memoryd.errors import EntityNotFound, TrustTooLow
from memoryd.index.analysis import analyse
from memoryd.index.cache import ScopeIndexes
from memoryd.knowledge.grammar.names import any_stands_in
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.entity import Entity, EntityType, Profile
from memoryd.model.erasure import ErasedKind, ErasedThing
from memoryd.model.learnt import Proposal
from memoryd.model.memory import Memory, State
from memoryd.model.reports import ForgottenPerson
from memoryd.model.scope import Owner
from memoryd.store.base import Store
from memoryd.turns import in_turns

__all__ = ["forget_person"]


@dataclass(frozen=True, slots=True)
class _Traces:
    """The traces of a person under a name: memories about them, memories that only mention them, decisions."""

    owner: Owner
    root: str
    people: Directory
    members: frozenset[str]
    naming: Naming
    about: list[Memory]
    mentioning: list[Memory]
    rows: list[Entity]
    guessed: list[str]
    """Names by likeness alone."""


async def forget_person(
    name: str, caller: Caller, ports: Ports, *, now: datetime, dry_run: bool, with_messages: bool = False
) -> ForgottenPerson:
    """
    Erase all memories about a person, in whatever state, and the person; see ForgetPerson in the contract.

    With `with_messages`, first what was said of them: a call that ends in between is repeated, as they are still known.
    Someone that no memory names is found by the name in messages.
    """
    try:
        preview = await _forget(name, caller, ports, now=now, dry_run=True)
    except EntityNotFound as unknown:
        return await _forget_said(name.strip(), unknown, caller, ports, now, dry_run=dry_run, erase=with_messages)
    owner, names = await _called(name, caller, ports)
    occurrences = await occurrences_of(names, owner, ports)
    if with_messages and not dry_run:
        await erase_occurrences(names, occurrences, owner, caller, ports, now=now)
    receipt = preview if dry_run else await _forget(name, caller, ports, now=now, dry_run=False)
    return _with_said(receipt, occurrences, with_messages=with_messages)


async def _forget_said(
    name: str, unknown: EntityNotFound, caller: Caller, ports: Ports, now: datetime, *, dry_run: bool, erase: bool
) -> ForgottenPerson:
    """Erase what was said of someone that no memory names; `unknown` where no one has said the name."""
    if len(name) < LEAST_NAME or not analyse(name):
        raise unknown
    each = [(owner, await occurrences_of([name], owner, ports)) for owner in caller.visibility.owners]
    each = [(owner, occurrences) for owner, occurrences in each if occurrences.trusts]
    if not each:
        raise unknown
    whole = joined([occurrences for _, occurrences in each])
    if not erase and not dry_run:
        notes = f" and {len(whole.notes)} notes" if whole.notes else ""
        raise EntityNotFound(
            f"no memory is about {name!r}; {len(whole.messages)} messages{notes} name it: with_messages erases them",
            field="name",
        )
    refuse_higher(whole, caller)
    for owner, traces_in_talk in [] if dry_run else each:
        await erase_occurrences([name], traces_in_talk, owner, caller, ports, now=now)
    profile = Profile(id="", owner=each[0][0], type=EntityType.PERSON, name=name)
    receipt = ForgottenPerson(profile, (), 0, (), None if dry_run else now, dry_run=dry_run)
    return _with_said(receipt, whole, with_messages=erase)


LEAST_NAME = 2  # letters of a name by which messages are erased


def _with_said(receipt: ForgottenPerson, occurrences: Occurrences, *, with_messages: bool) -> ForgottenPerson:
    return replace(
        receipt,
        message_ids=tuple(message.id for message in occurrences.messages)[: limits.MAX_NAMED_IDS],
        message_count=len(occurrences.messages),
        thread_ids=tuple(thread.id for thread in occurrences.threads)[: limits.MAX_NAMED_IDS],
        in_working_memory=occurrences.working_memory is not None,
        with_messages=with_messages,
        messages=occurrences.messages[: limits.MAX_SHOWN] if receipt.dry_run else (),
        note_paths=tuple(note.path for note in occurrences.notes)[: limits.MAX_NAMED_IDS],
    )


async def _called(name: str, caller: Caller, ports: Ports) -> tuple[Owner, tuple[str, ...]]:
    """Return whose the person is, and every name of theirs."""
    traces = await _look_up(name, caller, ports)
    profile = _as_named(profile_of(traces.owner, traces.root, traces.people, []), traces.naming, name.strip())
    return traces.owner, (profile.name, *profile.aliases)


async def _forget(name: str, caller: Caller, ports: Ports, *, now: datetime, dry_run: bool) -> ForgottenPerson:
    async def decide() -> Decision[ForgottenPerson]:
        traces = await _look_up(name, caller, ports)
        live = [memory for memory in traces.about if memory.state_at(now) is State.LIVE]
        profile = _as_named(
            profile_of(traces.owner, traces.root, traces.people, best_of(live)), traces.naming, name.strip()
        )
        digests = await digests_citing(traces.about, ports.store, now)
        erased = [*traces.about, *digests]
        ids = {memory.id for memory in erased}
        in_words = await _with_name((profile.name, *profile.aliases), traces.owner, ports.indexes)
        left = {memory.id: memory for memory in (*traces.mentioning, *in_words) if memory.id not in ids}
        decided = any(row.trust.outranks(caller.trust) for row in traces.rows)
        if decided or not all(map(caller.may_erase, traces.about)):
            raise TrustTooLow(
                "some of what is said of this person is of higher trust, or of another user of the chat; nothing was"
                " erased"
            )
        receipt = ForgottenPerson(
            profile,
            tuple(memory.id for memory in erased),
            len(erased),
            tuple(left),
            None if dry_run else now,
            dry_run=dry_run,
        )

        async def answer() -> ForgottenPerson:
            if not dry_run:
                return receipt
            about = await present(erased[: limits.MAX_SHOWN], caller, ports, now)
            mentioning = await present(list(left.values())[: limits.MAX_SHOWN], caller, ports, now)
            return replace(receipt, memories=tuple(about), mentioning_memories=tuple(mentioning))

        if dry_run:
            return Decision(None, answer)
        waiting = await _proposed((profile.name, *profile.aliases), traces.owner, caller, ports.store)
        change = await _erasure(traces, caller, ports, now)
        proposals = (ErasedThing(ErasedKind.PROPOSAL, traces.owner, id=proposal.id) for proposal in waiting)
        return Decision(replace(change, decided=tuple(waiting), erased=(*change.erased, *proposals)), answer)

    return await decide_and_commit(caller.visibility.owners, decide, ports, now=now, grant_id=caller.grant_id)


async def _look_up(name: str, caller: Caller, ports: Ports) -> _Traces:
    try:
        owner, root, people = await find_entity(name, caller, ports, known_as)
    except EntityNotFound as unknown:
        try:  # what is deleted still names them, and can be restored
            owner, root, people = await find_entity(name, caller, ports, known_as, scopes=DeletedScopes(ports))
        except EntityNotFound:
            raise unknown from None
    members = people.members(root)
    memories = await ports.naming(owner, members)
    naming = Naming(name.strip(), people, root, memories)
    about = [m for m in memories if any(mention.about and naming.means(mention) for mention in m.mentions)]
    ids = {memory.id for memory in about}
    mentioning = [memory for memory in memories if memory.id not in ids]
    rows = [row for row in people.rows if row.id in members and naming.decided(row)]
    return _Traces(owner, root, people, members, naming, about, mentioning, rows, naming.guessed(memories))


async def _erasure(traces: _Traces, caller: Caller, ports: Ports, now: datetime) -> ChangeSet:
    """Return the change: memories about them go, mentions of them go, decisions about them go."""
    mentioning = [m.id for m in traces.mentioning if not m.trust.outranks(caller.trust)]
    entries = await ports.store.memories.entries(traces.owner, mentioning)
    change = await purge_of(traces.about, ports, now=now, by=caller.trust)
    partners = {entry.memory.id: entry for entry in change.updates}
    updates = [Entry(_without(partners.pop(e.memory.id, e).memory, traces.naming), e.terms) for e in entries]
    lost = () if traces.guessed else traces.members
    forgotten = {row.id: row for row in (*change.forget_entities, *traces.rows)}
    return replace(
        change,
        updates=(*updates, *partners.values()),
        entities=tuple(not_apart(traces.people.rows, {*forgotten, *lost})),
        forget_entities=tuple(forgotten.values()),
        tombstones=tuple(
            stone for memory in traces.about for stone in tombstones_for(memory, ports.secret, caller.trust)
        ),
        erased=tuple(ErasedThing(ErasedKind.ENTITY, traces.owner, id=member) for member in sorted(lost)),
    )


async def _proposed(names: Sequence[str], owner: Owner, caller: Caller, store: Store) -> list[Proposal]:
    """Return what waits to be approved and names someone."""
    scope = {"user_id": owner.scope.user_id or "", "chat_id": owner.scope.chat_id or ""}
    waiting = await store.work.proposals(limit=limits.MAX_PROPOSALS, agent_id=owner.agent_id, **scope)
    return [
        proposal
        async for proposal in in_turns(waiting)
        if not proposal.trust.outranks(caller.trust) and any_stands_in(names, proposal.content)
    ]


async def _with_name(names: Sequence[str], owner: Owner, indexes: ScopeIndexes) -> list[Memory]:
    """Return the memories with one of these names in their text, also where no entity was found."""
    index = await indexes.get(owner, partial=True)
    if index is None:
        return []
    likely = {
        memory.id: memory
        for name in names
        for memory in index.with_words(list(dict.fromkeys(analyse(name))), limit=limits.MAX_NAMED_IDS)
    }
    return [memory async for memory in in_turns(likely.values()) if any_stands_in(names, memory.content)]


def _without(memory: Memory, naming: Naming) -> Memory:
    return replace(memory, mentions=tuple(mention for mention in memory.mentions if not naming.means(mention)))


def _as_named(profile: Profile, naming: Naming, name: str) -> Profile:
    """Return the profile under a name, without what it has by likeness alone."""
    names = [one for one in (profile.name, *profile.aliases) if naming.has(one)]
    relations = tuple(relation for relation in profile.relations if naming.has(f"my {relation}"))
    return replace(profile, name=names[0] if names else name, aliases=tuple(names[1:]), relations=relations)
