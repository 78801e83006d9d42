"""Forgetting: a delete hides at once and can be undone (`restore`), a purge is for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from memoryd.domain.batching import READ_AT_ONCE, SLICE, in_turns
from memoryd.domain.clock import AHEAD
from memoryd.domain.forgetting.purge import purge_of
from memoryd.domain.hiding import hidden
from memoryd.domain.idempotency import once
from memoryd.domain.links import released
from memoryd.domain.ports import Ports
from memoryd.domain.reading.browse import find
from memoryd.domain.tombstones import tombstones_for
from memoryd.errors import NotFound, TrustTooLow
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, Entry, RecordedRequest
from memoryd.model.memory import Memory
from memoryd.model.results import GcReport
from memoryd.model.trust import Trust
from memoryd.store.base import Cursor, Graces

__all__ = [
    "Forgotten",
    "GrantForgotten",
    "collect",
    "forget",
    "forget_entries",
    "forget_grant",
    "hidden",
]

MAX_NAMED = 1000  # ids that an answer names


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
                stones = tuple(tombstones_for(memory, ports.secret, caller.trust))
                if purge:  # the note would keep the id
                    change = await purge_of([memory], ports, now=now, by=caller.trust)
                    await ports.store.commit(replace(change, tombstones=stones))
                    return Forgotten((memory.id,))
                partners = tuple(await released([memory], ports))
                due_time = ports.purge_time(now)
                entry = await ports.store.entry(memory)
                gone = Entry(hidden(memory, now, due_time, trust=caller.trust), entry.terms if entry else "")
                await ports.store.commit(ChangeSet(updates=(gone, *partners), request=noted, tombstones=stones))
                return Forgotten((memory.id,), due_time)
        except NotFound:
            if not missing_ok:
                raise
            return Forgotten(())


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
    due_time = ports.purge_time(now)
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
    stones = (
        [stone async for memory in in_turns(gone) for stone in tombstones_for(memory, ports.secret, trust)]
        if remember
        else []
    )
    if purge:
        change = replace(await purge_of(gone, ports, now=now, by=trust), tombstones=tuple(stones), request=request)
    else:
        partners = await released(gone, ports)
        updates = [
            Entry(hidden(entry.memory, now, due_time, trust=trust, reason=reason), entry.terms)
            async for entry in in_turns(entries)
            if entry.memory.delete_time is None
        ]
        change = ChangeSet(updates=(*updates, *partners), tombstones=tuple(stones), request=request)
    await ports.store.commit(change)


async def collect(ports: Ports, *, now: datetime, dry_run: bool = False) -> GcReport:
    """
    Erase what is past its grace, in slices between which others get their turn; or only count it.

    Nothing is erased while the clock is in doubt.
    """
    held = ports.doubt(now)
    if held and not dry_run:
        return GcReport(held=held)
    policy = ports.policy
    graces = Graces(
        expired_before=now - timedelta(days=policy.expired_grace_days),
        superseded_before=now - timedelta(days=policy.supersede_grace_days) if policy.supersede_grace_days else None,
        purge_due=now,
        requests_before=now - timedelta(days=limits.REQUEST_KEEP_DAYS),
    )
    report, due = await ports.store.collectable(graces, limit=READ_AT_ONCE)
    if dry_run:
        return replace(report, dry_run=True, held=held)
    if not ports.is_behind(now):
        await _redate(ports, now)
    while due:
        for n in range(0, len(due), SLICE):
            part = due[n : n + SLICE]
            async with ports.owner_lock(*(memory.owner for memory in part)):
                entries = await ports.store.entries([memory.id for memory in part])
                # what was restored before we held the locks is no longer due
                gone = tuple([entry.memory async for entry in in_turns(entries) if graces.are_over(entry.memory)])
                if gone:
                    await ports.store.commit(await purge_of(gone, ports, now=now))
        _, due = await ports.store.collectable(graces, limit=READ_AT_ONCE)
    if report.request_count:
        await ports.store.commit(ChangeSet(forget_requests_before=graces.requests_before))
    return report


async def _redate(ports: Ports, now: datetime) -> None:
    """Let the grace of what was deleted or replaced under a clock that was ahead begin now, not in its future."""
    grace = timedelta(days=ports.policy.delete_grace_days)
    while found := await ports.store.misdated(now + AHEAD, limit=SLICE):
        async with ports.owner_lock(*(memory.owner for memory in found)):
            entries = await ports.store.entries([memory.id for memory in found])
            updates = [replace(entry, memory=_dated(entry.memory, now, grace)) async for entry in in_turns(entries)]
            await ports.store.commit(ChangeSet(updates=tuple(updates)))


def _dated(memory: Memory, now: datetime, grace: timedelta) -> Memory:
    if memory.supersede_time is not None and memory.supersede_time > now:
        memory = replace(memory, supersede_time=now)
    if memory.delete_time is not None and memory.delete_time > now:
        memory = replace(memory, delete_time=now, purge_time=now + grace)
    return memory
