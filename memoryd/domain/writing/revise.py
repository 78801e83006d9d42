"""Looking at judgements and deciding by hand: the history of a memory, correcting it, confirming it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from memoryd.domain.idempotency import once
from memoryd.domain.links import released
from memoryd.domain.ports import Ports
from memoryd.domain.reading.answers import within_bytes
from memoryd.domain.reading.browse import find
from memoryd.domain.reading.showing import shown, shown_one
from memoryd.domain.writing.add import again, decline, holds_secret, locks_of, result_of
from memoryd.domain.writing.judge import retired
from memoryd.domain.writing.session import Offers
from memoryd.errors import Conflict, InvalidArgument, TrustTooLow
from memoryd.index.analysis import embedded_text
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.memory import Draft, Judgement, Memory, State
from memoryd.model.results import AddResult

__all__ = ["Confirmed", "History", "confirm", "correct", "history"]

MOST_RELATED = 1000  # memories of one history


@dataclass(frozen=True, slots=True)
class History:
    """A memory with its predecessors and successors, oldest first, and the ids of those that are no longer there."""

    memories: list[Memory]
    missing_ids: tuple[str, ...]


async def history(memory_id: str, caller: Caller, ports: Ports, *, now: datetime) -> History:
    """Return all that a memory replaced and that replaced it; see GetMemoryHistory in the contract."""
    start = await find(memory_id, caller, ports)
    owners = set(caller.visibility.owners)
    found: dict[str, Memory] = {start.id: start}
    missing: set[str] = set()
    pending = [start]
    while pending and len(found) < MOST_RELATED:
        ids = {i for m in pending for i in (*m.supersedes, m.superseded_by) if i} - found.keys() - missing
        entries = await ports.store.entries(sorted(ids))
        pending = [
            entry.memory for entry in entries if entry.memory.owner in owners and entry.memory.delete_time is None
        ]
        found |= {memory.id: memory for memory in pending}
        missing |= ids - found.keys()
    ordered = sorted(found.values(), key=lambda memory: (memory.create_time, memory.id))
    whole = within_bytes(ordered)
    missing |= {memory.id for memory in ordered[len(whole) :]}  # and what one answer does not hold
    return History(await shown(whole, caller, ports, now), tuple(sorted(missing)))


def _check_live(memory: Memory, caller: Caller, now: datetime) -> None:
    """Raise what keeps a caller from deciding of a memory."""
    if memory.trust.outranks(caller.trust):
        raise TrustTooLow("the memory is of higher trust, which is not changed from here; add a statement of your own")
    state = memory.state_at(now)
    if state is not State.LIVE:
        way = f"it was replaced by {memory.superseded_by}" if state is State.SUPERSEDED else "restore it first"
        raise Conflict(f"the memory is {state.value}; {way}", field="id")


async def correct(
    memory_id: str, content: str, caller: Caller, ports: Ports, *, now: datetime, request_id: str = ""
) -> AddResult:
    """Replace what a memory says; see CorrectMemory in the contract."""
    async with once(ports, caller, "CorrectMemory", request_id, (memory_id, content)) as request:
        earlier = await request.earlier()
        if earlier is not None:
            return (await again(earlier, caller, ports, now))[0]
        old = await find(memory_id, caller, ports)
        _check_live(old, caller, now)
        draft = _draft(old, content, caller)
        if draft.content == old.content:
            raise InvalidArgument("content is what the memory says already", field="content")
        disabled = caller.agent_id in ports.policy.disabled_agents
        if disabled or holds_secret(draft, ports):
            return (await decline("disabled" if disabled else "secret", 1, ports, request, now))[0]
        vector = None
        if not ports.vector_refusal:
            text = embedded_text(draft.source.speaker, draft.content)
            (vector,) = await ports.embedder.documents([text], caller=caller.turn)
        async with ports.owner_locks.hold(locks_of(caller, [old.owner])):
            old = await find(old.id, caller, ports)  # as it is now that nobody else decides
            _check_live(old, caller, now)
            offers = Offers(ports, {old.owner: await ports.indexes.get(old.owner)}, now)
            recorded = await offers.consider(draft, old.owner, caller, vector, corrects=old)
            change = await offers.change(request.record((recorded,), now))
            ports.check_grant(caller.grant_id, now)
            await ports.store.commit(change)
            ports.usage.grew(caller.grant_id, offers.grown())
            return await result_of(recorded, offers, caller, ports, now)


def _draft(old: Memory, content: str, caller: Caller) -> Draft:
    """
    Return the statement that a correction offers: all of the old one but its words.

    Of one of lower trust only the kind and the scope: no label, key, speaker or time that a sandbox gave becomes the
    host's word.
    """
    if caller.trust.outranks(old.trust):
        return Draft(content=content, kind=old.kind, shared=old.scope.chat_id is not None)
    return Draft(
        content=content,
        kind=old.kind,
        shared=old.scope.chat_id is not None,
        subjects=old.subjects,
        tags=old.tags,
        category=old.category,
        metadata=old.metadata,
        key=old.key,
        source=replace(old.source, channel="user") if old.source.channel else old.source,
        event_time=old.own_event_time,
        decay_rate=old.decay_rate,
        expire_time=old.expire_time,
    )


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A memory that was confirmed, and what contested it."""

    memory: Memory
    superseded_ids: tuple[str, ...] = ()


async def confirm(memory_id: str, caller: Caller, ports: Ports, *, protect: bool, now: datetime) -> Confirmed:
    """Say that a memory is true; see ConfirmMemory in the contract."""
    memory = await find(memory_id, caller, ports)
    async with ports.owner_lock(memory.owner):
        memory = await find(memory.id, caller, ports)
        _check_live(memory, caller, now)
        rivals = [
            entry
            for entry in await ports.store.entries(list(memory.contested_with))
            if entry.memory.state_at(now) is State.LIVE and not entry.memory.trust.outranks(caller.trust)
        ]
        ids = tuple(rival.memory.id for rival in rivals)
        confirmed = replace(
            memory,
            confidence=1.0,
            protected=memory.protected or protect,
            reinforce_time=now,
            contested_with=tuple(link for link in memory.contested_with if link not in ids),
            supersedes=tuple(dict.fromkeys((*memory.supersedes, *ids))),
            judgement=None if len(ids) == len(memory.contested_with) else memory.judgement,
        )
        why = Judgement("confirmed", "the other one was confirmed", memory.id)
        gone = tuple(
            Entry(
                retired(rival.memory, memory.id, why, now, trust=caller.trust),
                rival.terms,
            )
            for rival in rivals
        )
        others = [e for e in await released([r.memory for r in rivals], ports) if e.memory.id != memory.id]
        entry = await ports.store.entry(memory)
        ports.check_grant(caller.grant_id, now)
        mine = Entry(confirmed, entry.terms if entry else "")
        await ports.store.commit(ChangeSet(updates=(mine, *gone, *others)))
    return Confirmed(await shown_one(confirmed, caller, ports, now), ids)
