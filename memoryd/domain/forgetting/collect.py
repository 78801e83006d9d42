"""Garbage collection: what is past its grace is erased."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from memoryd.domain.batching import READ_AT_ONCE, SLICE
from memoryd.domain.clock import AHEAD
from memoryd.domain.forgetting.purge import purge_of
from memoryd.domain.notes.erase import erase_notes
from memoryd.domain.pipeline import Decision, decide_and_commit, no_answer
from memoryd.domain.ports import Ports
from memoryd.model import limits
from memoryd.model.change import ChangeSet
from memoryd.model.memory import Memory
from memoryd.model.reports import GcReport
from memoryd.store.memories import Graces, MemorySelector
from memoryd.turns import in_turns

__all__ = ["collect"]


async def collect(
    ports: Ports, *, now: datetime, dry_run: bool = False, tell: Callable[[int, int], None] = lambda _done, _all: None
) -> GcReport:
    """
    Erase what is past its grace, in slices between which others get their turn; or only count it.

    Nothing is erased while the clock is in doubt. `tell` hears how many are erased, of how many.
    """
    doubt = ports.doubt(now)
    if doubt and not dry_run:
        return GcReport(held=doubt)
    policy = ports.policy
    graces = Graces(
        expired_before=now - timedelta(days=policy.expired_grace_days),
        superseded_before=now - timedelta(days=policy.supersede_grace_days) if policy.supersede_grace_days else None,
        purge_due=now,
        requests_before=now - timedelta(days=limits.REQUEST_KEEP_DAYS),
    )
    report, due = await ports.store.memories.collectable(graces, limit=READ_AT_ONCE)
    if dry_run:
        note_count = await ports.store.notes.expired_count(graces.expired_before)
        return replace(report, note_count=note_count, dry_run=True, held=doubt)
    if not ports.is_behind(now):
        await _redate(ports, now)
    done, whole = 0, report.expired_count + report.superseded_count + report.deleted_count
    while due:
        for n in range(0, len(due), SLICE):
            await _purge_slice(due[n : n + SLICE], graces, ports, now)
            done += len(due[n : n + SLICE])
            tell(done, max(done, whole))
        _, due = await ports.store.memories.collectable(graces, limit=READ_AT_ONCE)
    if report.request_count:
        await ports.store.commits.write(ChangeSet(forget_requests_before=graces.requests_before))
    return replace(report, note_count=await _erase_notes(graces.expired_before, ports, now))


async def _erase_notes(expired_before: datetime, ports: Ports, now: datetime) -> int:
    """Erase the notes that expired before a time, and return how many they were."""
    count = 0
    while notes := await ports.store.notes.expired(expired_before, limit=READ_AT_ONCE):
        for owner in dict.fromkeys(note.owner for note in notes):
            own = [note for note in notes if note.owner == owner]
            count += len(await erase_notes(own, ports, now=now, is_meant=lambda note: note.is_expired(expired_before)))
    return count


async def _purge_slice(part: Sequence[Memory], graces: Graces, ports: Ports, now: datetime) -> None:
    async def decide() -> Decision[None]:
        entries = await ports.entries_of(part)
        # what was restored before we held the locks is no longer due
        gone = tuple([entry.memory async for entry in in_turns(entries) if graces.are_over(entry.memory)])
        return Decision(await purge_of(gone, ports, now=now) if gone else None, no_answer)

    await decide_and_commit((memory.owner for memory in part), decide, ports, now=now, grant_id="")


async def _redate(ports: Ports, now: datetime) -> None:
    """Let the grace of what was deleted or replaced under a clock that was ahead begin now, not in its future."""
    grace = timedelta(days=ports.policy.delete_grace_days)
    while memories := await ports.store.memories.scan(MemorySelector(ended_after=now + AHEAD), limit=SLICE):
        await _redate_slice(memories, ports, now, grace)


async def _redate_slice(part: Sequence[Memory], ports: Ports, now: datetime, grace: timedelta) -> None:
    async def decide() -> Decision[None]:
        entries = await ports.entries_of(part)
        updates = [replace(entry, memory=_dated(entry.memory, now, grace)) async for entry in in_turns(entries)]
        return Decision(ChangeSet(updates=tuple(updates)), no_answer)

    await decide_and_commit((memory.owner for memory in part), decide, ports, now=now, grant_id="")


def _dated(memory: Memory, now: datetime, grace: timedelta) -> Memory:
    if memory.supersede_time is not None and memory.supersede_time > now:
        memory = replace(memory, supersede_time=now)
    if memory.delete_time is not None and memory.delete_time > now:
        memory = replace(memory, delete_time=now, purge_time=now + grace)
    return memory
