"""Deleting: it hides at once and can be undone (`restore`); a purge is for good. One memory, or all of a grant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from memoryd.domain.batching import READ_AT_ONCE, SLICE
from memoryd.domain.forgetting.derived import digests_citing
from memoryd.domain.forgetting.purge import purge_of
from memoryd.domain.hiding import hidden
from memoryd.domain.idempotency import IdempotentRequest, deleted_ids
from memoryd.domain.links import released
from memoryd.domain.pipeline import Decision, Write, answering, carry_out, decide_and_commit, no_answer
from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.browse import find
from memoryd.domain.tombstones import tombstones_for
from memoryd.errors import NotFound, TrustTooLow
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, Entry, RecordedRequest
from memoryd.model.memory import Memory
from memoryd.model.receipt import MemoriesReceipt
from memoryd.model.reports import ForgottenGrant
from memoryd.model.results import Deleted
from memoryd.model.trust import Trust
from memoryd.store.memories import MemorySelector, owner_place
from memoryd.turns import in_turns

__all__ = ["KEPT", "forget", "forget_grant", "forget_slice", "forgetting_change"]

KEPT = "it is of higher trust, or of another user of the chat; delete it without purge, so that it can be restored"
MAX_NAMED = 1000  # ids that an answer names


async def forget(
    memory_id: str,
    caller: Caller,
    ports: Ports,
    *,
    now: datetime,
    missing_ok: bool = False,
    purge: bool = False,
    request_id: str = "",
) -> Deleted:
    """Hide a memory, or erase it with purge; see DeleteMemory in the contract."""
    write = _Forget((memory_id, missing_ok, purge), caller, ports, now)
    try:
        return await carry_out(write, request_id=request_id)
    except NotFound:
        if not missing_ok:
            raise
        return Deleted(())


class _Forget(Write[Deleted]):
    method = "DeleteMemory"

    def __init__(self, asked: tuple[str, bool, bool], caller: Caller, ports: Ports, now: datetime) -> None:
        super().__init__(caller, ports, now)
        self._asked = asked
        self._memory_id, _, self._purge = asked
        self._found: Memory | None = None

    @property
    def payload(self) -> object:
        return self._asked

    async def replay(self, earlier: RecordedRequest) -> Deleted:
        grace = timedelta(days=self.ports.policy.delete_grace_days)
        return Deleted(deleted_ids(earlier), earlier.create_time + grace)

    async def prepare(self) -> None:
        self._found = await find(self._memory_id, self.caller, self.ports.store, deleted=self._purge)

    def locks(self) -> Iterable[Any]:
        return [self._found.owner] if self._found else []

    async def decide(self, request: IdempotentRequest) -> Decision[Deleted]:
        caller, ports, now = self.caller, self.ports, self.now
        memory = await find(self._found.id if self._found else "", caller, ports.store, deleted=self._purge)
        if self._purge and not caller.may_erase(memory):
            raise TrustTooLow(KEPT)
        due_time = None if self._purge else ports.purge_time(now)
        # of a purge no note is kept: it would keep the id
        noted = None if self._purge else request.record(MemoriesReceipt.of([memory]), now)
        entry = await ports.entry_of(memory) or Entry(memory)
        change = await forgetting_change([entry], ports, now=now, due_time=due_time, trust=caller.trust, request=noted)
        return Decision(change, answering(Deleted((memory.id,), due_time)))


async def forget_grant(
    grant_id: str, ports: Ports, *, now: datetime, dry_run: bool = False, purge: bool = False
) -> ForgottenGrant:
    """
    Hide or erase all that came through a grant, in slices between which others get their turn.

    What is stored through it meanwhile stays, so close it first.
    """
    due_time = None if purge else ports.purge_time(now)
    ids: set[str] = set()
    replaced: set[str] = set()
    selector, after = MemorySelector(grant_id=grant_id, is_deleted=None if purge else False), ""
    while memories := await ports.store.memories.scan(selector, limit=READ_AT_ONCE, after=after):
        after = owner_place(memories[-1])
        ids.update(memory.id for memory in memories)
        replaced.update(known for memory in memories for known in memory.supersedes)
        for n in range(0, 0 if dry_run else len(memories), SLICE):
            await forget_slice(memories[n : n + SLICE], ports, now=now, due_time=due_time, trust=Trust.HOST)
    superseded_ids = tuple(sorted(replaced - ids))[:MAX_NAMED]
    return ForgottenGrant(len(ids), superseded_ids, None if dry_run else due_time, dry_run)


async def forget_slice(
    memories: Sequence[Memory],
    ports: Ports,
    *,
    now: datetime,
    due_time: datetime | None,
    trust: Trust,
    grant_id: str = "",
    request: RecordedRequest | None = None,
) -> None:
    """Hide these memories until `due_time` (None: erase them), as they are now that no one else decides."""

    async def decide() -> Decision[None]:
        entries = await ports.entries_of(memories)
        return Decision(
            await forgetting_change(entries, ports, now=now, due_time=due_time, trust=trust, request=request), no_answer
        )

    await decide_and_commit((memory.owner for memory in memories), decide, ports, now=now, grant_id=grant_id)


async def forgetting_change(  # noqa: PLR0913  every way of forgetting says how it forgets
    entries: Sequence[Entry],
    ports: Ports,
    *,
    now: datetime,
    due_time: datetime | None,
    trust: Trust,
    reason: str = "deleted",
    remember: bool = True,
    request: RecordedRequest | None = None,
) -> ChangeSet | None:
    """
    Return the change that hides these memories until `due_time` (None: erases them); None if there are none left.

    With `remember`, what they said is not learnt again. Digests that are made from them are erased.
    """
    purge = due_time is None
    gone = [entry.memory for entry in entries if purge or entry.memory.delete_time is None]
    if not gone and request is None:
        return None
    stones = (
        [stone async for memory in in_turns(gone) for stone in tombstones_for(memory, ports.secret, trust)]
        if remember
        else []
    )
    if due_time is None:
        return replace(await purge_of(gone, ports, now=now, by=trust), tombstones=tuple(stones), request=request)
    partners = await released(gone, ports.store)
    updates = [
        Entry(hidden(entry.memory, now, due_time, trust=trust, reason=reason), entry.terms)
        async for entry in in_turns(entries)
        if entry.memory.delete_time is None
    ]
    change = ChangeSet(updates=(*updates, *partners), tombstones=tuple(stones), request=request)
    derived = await digests_citing(gone, ports.store, now)
    if not derived:
        return change
    erased = await purge_of(derived, ports, now=now)
    updated_ids = {entry.memory.id for entry in change.updates}
    more = tuple(entry for entry in erased.updates if entry.memory.id not in updated_ids)
    return replace(change, updates=(*change.updates, *more), purges=erased.purges, marks=erased.marks)
