"""Taking it back: what was deleted, forgotten or replaced is live again, and contests what was said since."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from memoryd.domain.idempotency import IdempotentRequest, memory_now, receipt_of
from memoryd.domain.pipeline import Decision, Write, carry_out
from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.browse import find
from memoryd.domain.retrieval.presentation import present_one
from memoryd.domain.tombstones import lifted_by
from memoryd.domain.writing.revival import come_back, not_replaced
from memoryd.errors import NotFound, TrustTooLow
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, Entry, RecordedRequest
from memoryd.model.memory import DECAYED, Memory, ShownMemory, State
from memoryd.model.receipt import MemoriesReceipt
from memoryd.model.trust import Trust
from memoryd.store.base import Store

__all__ = ["restore"]


async def restore(memory_id: str, caller: Caller, ports: Ports, *, now: datetime, request_id: str = "") -> ShownMemory:
    """Undo a delete, or a supersession; see RestoreMemory in the contract."""
    return await carry_out(_Restore(memory_id, caller, ports, now), request_id=request_id)


class _Restore(Write[ShownMemory]):
    method = "RestoreMemory"

    def __init__(self, memory_id: str, caller: Caller, ports: Ports, now: datetime) -> None:
        super().__init__(caller, ports, now)
        self._memory_id = memory_id
        self._found: Memory | None = None

    @property
    def payload(self) -> object:
        return self._memory_id

    async def replay(self, earlier: RecordedRequest) -> ShownMemory:
        restored = receipt_of(earlier, MemoriesReceipt).memories[0]
        memory = await memory_now(self.ports.store, self.caller.visibility, restored.id)
        if memory is None:
            raise NotFound("the memory was purged since", field="id")
        return await present_one(memory, self.caller, self.ports, self.now)

    async def prepare(self) -> None:
        self._found = await find(self._memory_id, self.caller, self.ports.store, deleted=True)

    def locks(self) -> Iterable[Any]:
        return [self._found.owner] if self._found else []

    async def decide(self, request: IdempotentRequest) -> Decision[ShownMemory]:
        ports, now = self.ports, self.now
        memory = await find(self._found.id if self._found else "", self.caller, ports.store, deleted=True)
        state = memory.state_at(now)
        noted = request.record(MemoriesReceipt.of([memory]), now)
        if state in {State.LIVE, State.EXPIRED}:
            return Decision(None if noted is None else ChangeSet(request=noted), self._answer(memory))
        await _check_trust(memory, self.caller, ports.store)
        entry = await ports.entry_of(memory)
        if entry is None:
            raise NotFound(f"there is no memory {memory.id}", field="id")
        back, rivals = await come_back(*await _undone(memory, ports.store, now), entry, ports, now)
        lift = tuple(lifted_by(back, ports.secret, self.caller.trust)) if state is State.DELETED else ()
        updates = (replace(entry, memory=back), *rivals)
        return Decision(ChangeSet(updates=updates, request=noted, lift=lift), self._answer(back))

    def _answer(self, memory: Memory) -> Callable[[], Awaitable[ShownMemory]]:
        return lambda: present_one(memory, self.caller, self.ports, self.now)


async def _undone(memory: Memory, store: Store, now: datetime) -> tuple[Memory, list[Entry]]:
    """
    Return a memory without its delete, else without its supersession, and what had replaced it and has so no longer.

    Only one of the two is undone: what was replaced before it was deleted is replaced again.
    """
    if memory.delete_time is None:
        return not_replaced(memory), await _heirs(memory, store)
    back = replace(memory, delete_time=None, purge_time=None, delete_trust=None, delete_reason="")
    if memory.delete_reason in {DECAYED, "evicted"}:
        back = replace(back, reinforce_time=now)  # or it would go again at once
    return back, []


async def _heirs(memory: Memory, store: Store) -> list[Entry]:
    """Return what had replaced a memory that comes back, and has replaced it no longer."""
    heirs = await store.memories.entries(memory.owner, [memory.superseded_by]) if memory.superseded_by else []
    return [
        replace(heir, memory=replace(heir.memory, supersedes=_without(heir.memory.supersedes, memory.id)))
        for heir in heirs
    ]


def _without(ids: Sequence[str], gone: str) -> tuple[str, ...]:
    return tuple(one for one in ids if one != gone)


async def _check_trust(memory: Memory, caller: Caller, store: Store) -> None:
    """Raise TrustTooLow if a memory was deleted, or replaced, with more trust than the caller has."""
    by = memory.delete_trust if memory.delete_time is not None else memory.supersede_trust
    if by is None and memory.delete_time is None and memory.superseded_by:  # replaced before trust was noted
        heir = next(iter(await store.memories.find(caller.visibility, memory.superseded_by, deleted=True)), None)
        by = None if heir is None else heir.trust
    if (by or Trust.HOST).outranks(caller.trust):
        raise TrustTooLow("it was deleted or replaced with higher trust; that is not undone from here")
