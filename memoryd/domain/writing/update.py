"""Setting the labels of a memory and when it ends; what it says stays, and nothing is judged anew."""

from __future__ import annotations

import asyncio
from datetime import datetime

from memoryd.domain.pipeline import Decision, decide_and_commit
from memoryd.domain.ports import Ports
from memoryd.domain.quotas import check_quota, quota_lock
from memoryd.domain.retrieval.browse import find
from memoryd.domain.retrieval.presentation import present_one
from memoryd.domain.writing.add import LOOKED_AT_INLINE, check_changeable, holds_secret
from memoryd.errors import Conflict, InvalidArgument, TrustTooLow
from memoryd.index.analysis import analyse, indexed_memory
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.memory import ShownMemory
from memoryd.model.memory_update import MemoryUpdate

__all__ = ["update"]


async def update(memory_id: str, wanted: MemoryUpdate, caller: Caller, ports: Ports, *, now: datetime) -> ShownMemory:
    """Set labels or the end of a memory; see UpdateMemory in the contract."""
    if not ports.policy.of(caller.agent_id).enabled:
        raise Conflict("this agent is switched off: nothing is stored", field="agent_id")
    if wanted.expire_time is not None and wanted.expire_time <= now:
        raise InvalidArgument("expire_time is not in the future", field="expire_time")
    await _refuse_secrets(wanted, ports)
    found = await find(memory_id, caller, ports.store)

    async def decide() -> Decision[ShownMemory]:
        memory = await find(found.id, caller, ports.store)  # as it is under the lock
        check_changeable(memory, caller, now)
        if not caller.may_erase(memory):  # no version of it is kept
            raise TrustTooLow("the memory is another user's of the chat, whose labels are not changed from here")
        changed = wanted.of(memory)

        async def answer() -> ShownMemory:
            return await present_one(changed, caller, ports, now)

        if changed == memory:
            return Decision(None, answer)
        grown = changed.text_bytes - memory.text_bytes
        if grown > 0 and caller.trust.is_sandbox and memory.grant_id != caller.grant_id:
            raise TrustTooLow("the memory came through another grant, which pays for its labels: here they only shrink")
        await check_quota(grown, f"these labels need {grown} more", caller, ports.store, now)
        return Decision(ChangeSet(updates=(Entry(changed, " ".join(analyse(indexed_memory(changed)))),)), answer)

    locks = [found.owner, *quota_lock(caller)]
    return await decide_and_commit(locks, decide, ports, now=now, grant_id=caller.grant_id)


async def _refuse_secrets(wanted: MemoryUpdate, ports: Ports) -> None:
    """Raise InvalidArgument where a label holds a credential; a fault of the detector refuses nothing."""
    if sum(map(len, wanted.texts)) > LOOKED_AT_INLINE:
        held = await asyncio.to_thread(holds_secret, wanted.texts, ports)
    else:
        held = holds_secret(wanted.texts, ports)
    if held:
        raise InvalidArgument("a label holds a credential; leave it out", field="update_mask")
