"""Forgetting and taking it back: a delete hides at once, a restore undoes it, a purge is for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from memoryd import limits
from memoryd.change import PURGE, ChangeSet, Entry, RecordedRequest
from memoryd.domain.browse import find
from memoryd.domain.links import released
from memoryd.domain.people import dressed
from memoryd.domain.ports import Ports
from memoryd.domain.requests import memory_now, once
from memoryd.domain.tombstones import lifted_by, tombstones_for
from memoryd.errors import Conflict, NotFound, TrustTooLow
from memoryd.model import Caller, GcReport, Judgement, Memory, State, Trust
from memoryd.store.base import Cursor, Graces

__all__ = [
    "Forgotten",
    "GrantForgotten",
    "collect",
    "forget",
    "forget_entries",
    "forget_grant",
    "hidden",
    "restore",
]

MAX_NAMED = 1000  # ids that an answer names
READ_AT_ONCE = 1024  # memories of a grant: its scan is of the whole table
SLICE = 128  # memories purged in one transaction: below 20 ms of the writer


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The ids that went, and until when they can be restored."""

    ids: tuple[str, ...]
    purge_time: datetime | None = None


async def forget(
    memory_id: str,
    caller: Caller,
    ports: Ports,
    *,
    now: datetime,
    missing_ok: bool = False,
    purge: bool = False,
    request_id: str = "",
) -> Forgotten:
    """Hide a memory, or erase it with purge; see DeleteMemory in the contract."""
    async with once(ports, caller, "DeleteMemory", request_id, (memory_id, missing_ok, purge)) as request:
        earlier = await request.earlier()
        if earlier is not None:
            grace = timedelta(days=ports.policy.delete_grace_days)
            return Forgotten(tuple(gone for gone, _, _ in earlier.outcomes if gone), earlier.create_time + grace)
        try:
            memory = await find(memory_id, caller, ports, deleted=purge)
            async with ports.owner_lock(memory.owner):
                memory = await find(memory.id, caller, ports, deleted=purge)  # as it is now that nobody else decides
                noted = request.record(((memory.id, None, ()),), now)
                ports.check_grant(caller.grant_id, now)
                if purge and memory.trust.outranks(caller.trust):
                    raise TrustTooLow(
                        "the memory is of higher trust; delete it without purge, so that it can be restored"
                    )
                partners = tuple(await released([memory], ports))
                stones = tuple(tombstones_for(memory, ports.secret, caller.trust))
                if purge:  # the note would keep the id
                    await ports.store.commit(
                        ChangeSet(purges=(memory,), updates=partners, tombstones=stones, jobs={PURGE: now})
                    )
                    return Forgotten((memory.id,))
                due_time = now + timedelta(days=ports.policy.delete_grace_days)
                entry = await ports.store.entry(memory)
                gone = Entry(hidden(memory, now, due_time, trust=caller.trust), entry.terms if entry else "")
                await ports.store.commit(ChangeSet(updates=(gone, *partners), request=noted, tombstones=stones))
                return Forgotten((memory.id,), due_time)
        except NotFound:
            if not missing_ok:
                raise
            return Forgotten(())


async def restore(memory_id: str, caller: Caller, ports: Ports, *, now: datetime, request_id: str = "") -> Memory:
    """Undo a delete, or a supersession; see RestoreMemory in the contract."""
    async with once(ports, caller, "RestoreMemory", request_id, memory_id) as request:
        earlier = await request.earlier()
        if earlier is not None:
            memory_or_none = await memory_now(ports, caller.visibility, earlier.outcomes[0][0], now)
            if memory_or_none is None:
                raise NotFound("the memory was purged since", field="id")
            return (await dressed([memory_or_none], ports))[0]
        memory = await find(memory_id, caller, ports, deleted=True)
        async with ports.owner_lock(memory.owner):
            memory = await find(memory.id, caller, ports, deleted=True)
            state = memory.state_at(now)
            noted = request.record(((memory.id, None, ()),), now)
            if state in {State.LIVE, State.EXPIRED}:
                if noted is not None:
                    await ports.store.commit(ChangeSet(request=noted))
                return (await dressed([memory.as_of(now)], ports))[0]
            await _check_trust(memory, caller, ports)
            back = replace(memory, delete_time=None, purge_time=None, delete_trust=None, delete_reason="")
            if memory.delete_reason in {"decayed", "evicted"}:
                back = replace(back, reinforce_time=now)  # or it would go again at once
            rivals: list[Entry] = []
            if state is State.SUPERSEDED:
                rivals = await _rivals(memory, ports, now)
                back = replace(
                    back,
                    supersede_time=None,
                    superseded_by="",
                    contested_with=tuple(rival.memory.id for rival in rivals),
                    judgement=_RESTORED if rivals else None,
                )
            if back.key and back.state_at(now) is State.LIVE:
                await _check_key(back, ports, now)
            entry = await ports.store.entry(memory)
            if entry is None:
                raise NotFound(f"there is no memory {memory.id}", field="id")
            ports.check_grant(caller.grant_id, now)
            lift = tuple(lifted_by(back, ports.secret, caller.trust)) if state is State.DELETED else ()
            updates = (Entry(back, entry.terms, entry.vector, entry.fingerprint), *rivals)
            await ports.store.commit(ChangeSet(updates=updates, request=noted, lift=lift))
            return (await dressed([back.as_of(now)], ports))[0]


_RESTORED = Judgement("restored", "it was restored beside what had replaced it; confirm one of them")


async def _rivals(memory: Memory, ports: Ports, now: datetime) -> list[Entry]:
    """Return what had replaced a memory that comes back, if it still holds, marked as contested by it."""
    heirs = await ports.store.entries([memory.superseded_by]) if memory.superseded_by else []
    return [
        Entry(
            replace(
                heir.memory,
                supersedes=tuple(one for one in heir.memory.supersedes if one != memory.id),
                contested_with=tuple(dict.fromkeys((*heir.memory.contested_with, memory.id))),
                judgement=replace(_RESTORED, evidence=memory.id),
            ),
            heir.terms,
        )
        for heir in heirs
        if heir.memory.owner == memory.owner and heir.memory.state_at(now) is State.LIVE
    ]


async def _check_trust(memory: Memory, caller: Caller, ports: Ports) -> None:
    """Raise TrustTooLow if whoever deleted or replaced a memory has more trust than the caller."""
    by = memory.delete_trust
    if by is None and memory.superseded_by:
        heir = next(iter(await ports.store.find(caller.visibility, memory.superseded_by, deleted=True)), None)
        by = None if heir is None else heir.trust
    if by is not None and by.outranks(caller.trust):
        raise TrustTooLow("it was deleted or replaced with higher trust; that is not undone from here")


async def _check_key(memory: Memory, ports: Ports, now: datetime) -> None:
    index = await ports.indexes.get(memory.owner)
    holders = (
        await ports.store.of_key(memory.owner, memory.key, now) if index is None else index.of_key(memory.key, now)
    )
    if holders:
        raise Conflict(f"its key {memory.key!r} is taken by memory {holders[0].id}; delete that one first", field="id")


@dataclass(frozen=True, slots=True)
class GrantForgotten:
    """How many memories of a grant went, what they had replaced, and until when they can be restored."""

    count: int
    superseded_ids: tuple[str, ...] = ()
    purge_time: datetime | None = None


async def forget_grant(
    grant_id: str, ports: Ports, *, now: datetime, dry_run: bool = False, purge: bool = False
) -> GrantForgotten:
    """
    Hide or erase all that came through a grant, in slices between which others get their turn.

    What is stored through it meanwhile stays, so close it first.
    """
    due_time = now + timedelta(days=ports.policy.delete_grace_days)
    ids: set[str] = set()
    replaced: set[str] = set()
    after: Cursor | None = None
    while found := await ports.store.of_grant(grant_id, limit=READ_AT_ONCE, after=after, deleted=purge):
        after = Cursor(found[-1].create_time, found[-1].id)
        ids.update(memory.id for memory in found)
        replaced.update(known for memory in found for known in memory.supersedes)
        for n in range(0, 0 if dry_run else len(found), SLICE):
            part = found[n : n + SLICE]
            async with ports.owner_lock(*(memory.owner for memory in part)):
                await _forget_slice(part, ports, now=now, due_time=due_time, purge=purge)
    return GrantForgotten(len(ids), tuple(sorted(replaced - ids))[:MAX_NAMED], None if dry_run or purge else due_time)


async def _forget_slice(found: list[Memory], ports: Ports, *, now: datetime, due_time: datetime, purge: bool) -> None:
    """Hide or erase these memories as they are now that nobody else decides."""
    entries = await ports.store.entries([memory.id for memory in found])
    await forget_entries(entries, ports, now=now, due_time=due_time, purge=purge, trust=Trust.HOST)


async def forget_entries(
    entries: Sequence[Entry],
    ports: Ports,
    *,
    now: datetime,
    due_time: datetime,
    purge: bool,
    trust: Trust,
    reason: str = "deleted",
    remember: bool = True,
    request: RecordedRequest | None = None,
) -> None:
    """
    Hide or erase these memories in one transaction, whoever holds their owners' locks.

    With `remember`, what they said is not learnt again.
    """
    gone = [entry.memory for entry in entries if purge or entry.memory.delete_time is None]
    if not gone and request is None:
        return
    partners = tuple(await released(gone, ports))
    stones = (
        tuple(stone for memory in gone for stone in tombstones_for(memory, ports.secret, trust)) if remember else ()
    )
    if purge:
        change = ChangeSet(purges=tuple(gone), updates=partners, tombstones=stones, request=request, jobs={PURGE: now})
    else:
        updates = tuple(
            Entry(hidden(entry.memory, now, due_time, trust=trust, reason=reason), entry.terms)
            for entry in entries
            if entry.memory.delete_time is None
        )
        change = ChangeSet(updates=(*updates, *partners), tombstones=stones, request=request)
    await ports.store.commit(change)


def hidden(memory: Memory, now: datetime, due_time: datetime, *, trust: Trust, reason: str = "deleted") -> Memory:
    """Return a memory as it is once deleted; never before it was there, whatever the clock says."""
    return replace(
        memory,
        delete_time=max(now, memory.create_time),
        purge_time=due_time,
        delete_trust=trust,
        delete_reason=reason,
        contested_with=(),
    )


async def collect(ports: Ports, *, now: datetime, dry_run: bool = False) -> GcReport:
    """Erase what is past its grace, in slices between which others get their turn; or only count it."""
    policy = ports.policy
    graces = Graces(
        expired_before=now - timedelta(days=policy.expired_grace_days),
        superseded_before=now - timedelta(days=policy.supersede_grace_days) if policy.supersede_grace_days else None,
        purge_due=now,
        requests_before=now - timedelta(days=limits.REQUEST_KEEP_DAYS),
    )
    report, due = await ports.store.collectable(graces, limit=READ_AT_ONCE)
    if dry_run:
        return replace(report, dry_run=True)
    while due:
        for n in range(0, len(due), SLICE):
            part = due[n : n + SLICE]
            async with ports.owner_lock(*(memory.owner for memory in part)):
                entries = await ports.store.entries([memory.id for memory in part])
                # what was restored before we held the locks is no longer due
                gone = tuple(entry.memory for entry in entries if graces.are_over(entry.memory))
                if gone:
                    partners = tuple(await released(gone, ports))
                    await ports.store.commit(ChangeSet(purges=gone, updates=partners, jobs={PURGE: now}))
        _, due = await ports.store.collectable(graces, limit=READ_AT_ONCE)
    if report.request_count:
        await ports.store.commit(ChangeSet(forget_requests_before=graces.requests_before))
    return report
