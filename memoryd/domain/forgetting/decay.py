"""Forgetting what has faded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from memoryd.domain.batching import READ_AT_ONCE, SLICE
from memoryd.domain.decay import PRESETS, confidence_at, fades
from memoryd.domain.forgetting.forget import forgetting_change
from memoryd.domain.pipeline import Decision, decide_and_commit, no_answer
from memoryd.domain.ports import Ports
from memoryd.model.memory import DECAYED, Memory
from memoryd.model.reports import Decayed, Faded
from memoryd.model.trust import Trust
from memoryd.store.memories import NOT_RETIRED, owner_place
from memoryd.turns import in_turns

__all__ = ["forget_faded"]


async def forget_faded(
    ports: Ports, *, now: datetime, dry_run: bool = False, tell: Callable[[int], None] = lambda _: None
) -> Decayed:
    """
    Forget what has faded, in slices between which others get their turn; or only tell what would go.

    `tell` hears how many memories were looked at.
    """
    name = ports.policy.rules.decay
    if PRESETS[name] is None:
        return Decayed(0, 0, (), dry_run)
    doubt = ports.doubt(now)
    if doubt and not dry_run:
        return Decayed(0, 0, (), dry_run, doubt)
    examined, after = 0, ""
    gone: list[Faded] = []
    while page := await ports.store.memories.scan(NOT_RETIRED, limit=READ_AT_ONCE, after=after):
        after = owner_place(page[-1])
        examined += len(page)
        faded = [memory async for memory in in_turns(page) if fades(memory, now, name)]
        gone += [Faded(m.id, m.scope.user_id or m.scope.chat_id or "", confidence_at(m, now, name)) for m in faded]
        for n in range(0, 0 if dry_run else len(faded), SLICE):
            await _forget_slice(faded[n : n + SLICE], ports, now)
        tell(examined)
    gone.sort(key=lambda memory: (memory.confidence, memory.id))
    return Decayed(examined, len(gone), tuple(gone), dry_run, doubt)


async def _forget_slice(part: Sequence[Memory], ports: Ports, now: datetime) -> None:
    async def decide() -> Decision[None]:
        still = [
            entry
            async for entry in in_turns(await ports.entries_of(part))
            if entry.memory.supersede_time is None and fades(entry.memory, now, ports.policy.rules.decay)
        ]
        change = await forgetting_change(
            still,
            ports,
            now=now,
            due_time=ports.purge_time(now),
            trust=Trust.SANDBOX,
            reason=DECAYED,
            remember=False,
        )
        return Decision(change, no_answer)

    await decide_and_commit((memory.owner for memory in part), decide, ports, now=now, grant_id="")
