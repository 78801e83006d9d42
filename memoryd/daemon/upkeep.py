"""What the daemon does again and again by itself, besides its jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import structlog

from memoryd.daemon.wiring import now_utc
from memoryd.domain.conversation.waking import end_idle_sessions
from memoryd.domain.forgetting.elsewhere import PurgesElsewhere
from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.recall import write_recalls

__all__ = ["Step", "flush_recalls", "upkeep"]

RECALL_FLUSH_S = 3.0
IDLE_SESSIONS_S = 15.0
PURGES_ELSEWHERE_S = 30.0  # what another daemon has purged is held in memory for so long at most

log = structlog.get_logger("memoryd.daemon")


class Step(NamedTuple):
    """What is done, how long a pause follows, and what the log calls a fault of it."""

    step: Callable[[], Awaitable[object]]
    pause_s: float
    fault: str


def upkeep(ports: Ports) -> tuple[Step, ...]:
    """Return what is done for a store and its indexes as long as the daemon runs."""
    own = (
        Step(lambda: flush_recalls(ports), RECALL_FLUSH_S, "recalls_not_counted"),
        Step(lambda: _end_idle(ports), IDLE_SESSIONS_S, "sessions_not_ended"),
    )
    others = Step(PurgesElsewhere(ports).look, PURGES_ELSEWHERE_S, "purges_elsewhere_not_seen")
    return (*own, others) if ports.store.is_shared else own


async def flush_recalls(ports: Ports) -> None:
    """Write down what was recalled since the last time; what cannot be counted is lost."""
    recalls = ports.shared.recalls.take()
    try:
        await write_recalls(recalls, ports)
    except Exception as error:  # noqa: BLE001  counts of recalls may be lost, a search may not fail for them
        log.warning("recalls_not_counted", error=type(error).__name__, count=sum(map(len, recalls.values())))


async def _end_idle(ports: Ports) -> None:
    await end_idle_sessions(ports, lambda fault: log.warning("session_not_ended", error=fault), now=now_utc())
