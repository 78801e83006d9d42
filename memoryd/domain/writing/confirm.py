"""Confirming by hand: a memory is true, and what contests it is replaced, unless it has a key of its own."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from memoryd.domain.links import released
from memoryd.domain.pipeline import Decision, decide_and_commit
from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.browse import find
from memoryd.domain.retrieval.presentation import present_one
from memoryd.domain.writing.add import check_changeable
from memoryd.domain.writing.judge import retired
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.memory import Judgement, Memory, State
from memoryd.model.results import Confirmed

__all__ = ["confirm"]


async def confirm(memory_id: str, caller: Caller, ports: Ports, *, now: datetime, protect: bool = True) -> Confirmed:
    """Say that a memory is true; see ConfirmMemory in the contract."""
    found = await find(memory_id, caller, ports.store)

    async def decide() -> Decision[Confirmed]:
        memory = await find(found.id, caller, ports.store)  # as it is under the lock
        check_changeable(memory, caller, now)
        rivals = [
            entry
            for entry in await ports.store.memories.entries(memory.owner, memory.contested_with)
            if entry.memory.state_at(now) is State.LIVE
            and not entry.memory.trust.outranks(caller.trust)
            and not entry.memory.key  # that is ended under its key
        ]
        ids = tuple(rival.memory.id for rival in rivals)
        confirmed = _confirmed(memory, ids, now, protect=protect)
        why = Judgement("confirmed", "the other one was confirmed", memory.id)
        gone = [Entry(retired(r.memory, memory.id, why, now, trust=caller.trust), r.terms) for r in rivals]
        others = [e for e in await released([r.memory for r in rivals], ports.store) if e.memory.id != memory.id]
        entry = await ports.entry_of(memory)
        mine = Entry(confirmed, entry.terms if entry else "")

        async def answer() -> Confirmed:
            return Confirmed(await present_one(confirmed, caller, ports, now), ids)

        return Decision(ChangeSet(updates=(mine, *gone, *others)), answer)

    return await decide_and_commit([found.owner], decide, ports, now=now, grant_id=caller.grant_id)


def _confirmed(memory: Memory, rivals: tuple[str, ...], now: datetime, *, protect: bool) -> Memory:
    """Return a memory that was confirmed against its rivals."""
    left = tuple(link for link in memory.contested_with if link not in rivals)
    return replace(
        memory,
        confidence=1.0,
        protected=memory.protected or protect,
        reinforce_time=now,
        contested_with=left,
        supersedes=tuple(dict.fromkeys((*memory.supersedes, *rivals))),
        judgement=memory.judgement if left else None,
    )
