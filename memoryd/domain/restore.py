"""Taking it back: what was deleted, forgotten or replaced is live again, and contests what was said since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.change import ChangeSet, Entry
from memoryd.checks import text_digest
from memoryd.domain.browse import find
from memoryd.domain.judge import contested_by
from memoryd.domain.offers import NO_STATEMENTS, Offers
from memoryd.domain.ports import Ports
from memoryd.domain.requests import memory_now, once
from memoryd.domain.showing import shown_one
from memoryd.domain.tombstones import lifted_by
from memoryd.errors import Conflict, NotFound, TrustTooLow
from memoryd.model import Caller, Judgement, Memory, State, Trust

__all__ = ["restore"]


async def restore(memory_id: str, caller: Caller, ports: Ports, *, now: datetime, request_id: str = "") -> Memory:
    """Undo a delete, or a supersession; see RestoreMemory in the contract."""
    async with once(ports, caller, "RestoreMemory", request_id, memory_id) as request:
        earlier = await request.earlier()
        if earlier is not None:
            memory_or_none = await memory_now(ports, caller.visibility, earlier.outcomes[0][0], now)
            if memory_or_none is None:
                raise NotFound("the memory was purged since", field="id")
            return await shown_one(memory_or_none, caller, ports, now)
        memory = await find(memory_id, caller, ports, deleted=True)
        async with ports.owner_lock(memory.owner):
            memory = await find(memory.id, caller, ports, deleted=True)
            state = memory.state_at(now)
            noted = request.record(((memory.id, None, ()),), now)
            if state in {State.LIVE, State.EXPIRED}:
                if noted is not None:
                    await ports.store.commit(ChangeSet(request=noted))
                return await shown_one(memory, caller, ports, now)
            await _check_trust(memory, caller, ports)
            entry = await ports.store.entry(memory)
            if entry is None:
                raise NotFound(f"there is no memory {memory.id}", field="id")
            back, heirs = await _undone(memory, ports, now)
            rivals = heirs
            if back.state_at(now) is State.LIVE:
                beside = Offers(ports, {back.owner: await ports.indexes.get(back.owner)}, now)
                if back.key:
                    await _check_key(back, beside)
                await _check_text(back, beside)
                back, rivals = await _contested(back, entry, heirs, beside, ports, now)
            ports.check_grant(caller.grant_id, now)
            lift = tuple(lifted_by(back, ports.secret, caller.trust)) if state is State.DELETED else ()
            updates = (Entry(back, entry.terms, entry.vector, entry.fingerprint), *rivals)
            await ports.store.commit(ChangeSet(updates=updates, request=noted, lift=lift))
            return await shown_one(back, caller, ports, now)


async def _undone(memory: Memory, ports: Ports, now: datetime) -> tuple[Memory, list[Entry]]:
    """
    Return a memory without its delete, else without its supersession, and what had replaced it and has so no longer.

    Only one of the two is undone: what was replaced before it was deleted is replaced again.
    """
    if memory.delete_time is None:
        return replace(memory, supersede_time=None, superseded_by="", supersede_trust=None), await _heirs(memory, ports)
    back = replace(memory, delete_time=None, purge_time=None, delete_trust=None, delete_reason="")
    if memory.delete_reason in {"decayed", "evicted"}:
        back = replace(back, reinforce_time=now)  # or it would go again at once
    return back, []


_RESTORED = Judgement("restored", "it was restored beside what had replaced it; confirm one of them")


async def _heirs(memory: Memory, ports: Ports) -> list[Entry]:
    """Return what had replaced a memory that comes back, and has replaced it no longer."""
    heirs = await ports.store.entries([memory.superseded_by]) if memory.superseded_by else []
    return [
        replace(heir, memory=replace(heir.memory, supersedes=_without(heir.memory.supersedes, memory.id)))
        for heir in heirs
        if heir.memory.owner == memory.owner
    ]


def _without(ids: Sequence[str], gone: str) -> tuple[str, ...]:
    return tuple(one for one in ids if one != gone)


async def _contested(
    back: Memory, entry: Entry, heirs: Sequence[Entry], beside: Offers, ports: Ports, now: datetime
) -> tuple[Memory, list[Entry]]:
    """Return a memory that is live again, and what contests it, marked with each other: its heir, and what was said."""
    reasons = {
        heir.memory.id: replace(_RESTORED, evidence=heir.memory.id)
        for heir in heirs
        if heir.memory.state_at(now) is State.LIVE
    }
    if back.kind not in NO_STATEMENTS:
        vector = entry.vector if entry.fingerprint == ports.embedder.fingerprint else None
        with ports.faults.spared("judging"):
            for held, why in contested_by(back, await beside.akin(back, vector), ports.policy.rules):
                reasons.setdefault(held.id, why)
    known = {heir.memory.id for heir in heirs}
    others = await ports.store.entries([one for one in reasons if one not in known])
    rivals = [
        replace(rival, memory=_marked(rival.memory, back, reasons)) if rival.memory.id in reasons else rival
        for rival in (*heirs, *others)
    ]
    ids = tuple(rival.memory.id for rival in rivals if rival.memory.id in reasons)
    return replace(back, contested_with=ids, judgement=reasons[ids[0]] if ids else None), rivals


def _marked(rival: Memory, back: Memory, reasons: Mapping[str, Judgement]) -> Memory:
    return replace(
        rival,
        contested_with=tuple(dict.fromkeys((*rival.contested_with, back.id))),
        judgement=rival.judgement or replace(reasons[rival.id], evidence=back.id),
    )


async def _check_trust(memory: Memory, caller: Caller, ports: Ports) -> None:
    """Raise TrustTooLow if whoever deleted a memory, else whoever replaced it, has more trust than the caller."""
    by = memory.delete_trust if memory.delete_time is not None else memory.supersede_trust
    if by is None and memory.delete_time is None and memory.superseded_by:  # replaced before trust was noted
        heir = next(iter(await ports.store.find(caller.visibility, memory.superseded_by, deleted=True)), None)
        by = None if heir is None else heir.trust
    if (by or Trust.HOST).outranks(caller.trust):
        raise TrustTooLow("it was deleted or replaced with higher trust; that is not undone from here")


async def _check_key(memory: Memory, beside: Offers) -> None:
    holders = await beside.of_key(memory.owner, memory.key)
    if holders:
        raise Conflict(f"its key {memory.key!r} is taken by memory {holders[0].id}; delete that one first", field="id")


async def _check_text(memory: Memory, beside: Offers) -> None:
    twins = [
        one
        for one in await beside.same_text(memory.owner, text_digest(memory.content))
        if (one.key, one.subjects, one.source.speaker) == (memory.key, memory.subjects, memory.source.speaker)
    ]
    if twins and memory.kind not in NO_STATEMENTS:
        raise Conflict(f"the same was stored again as memory {twins[0].id}, which is live", field="id")
