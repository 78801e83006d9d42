"""The night's learning: everything that waits is read, and sessions whose messages were all read are done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.conversation.sessions import session_change
from memoryd.domain.pipeline import Decision, decide_and_commit, no_answer
from memoryd.domain.ports import Ports
from memoryd.domain.shared import thread_lock
from memoryd.model.conversation import Session, SessionState
from memoryd.model.work import EXTRACTION_JOB

__all__ = ["end_learnt_sessions"]

AT_ONCE = 200


async def end_learnt_sessions(
    ports: Ports, *, now: datetime, dry_run: bool = False, kinds: Sequence[str] = (EXTRACTION_JOB,)
) -> Counter[str]:
    """Note as done the sessions that have ended, where every kind has read every message; return how many."""
    counts: Counter[str] = Counter()
    after = ""
    while page := await ports.store.conversations.pending_sessions(limit=AT_ONCE, after=after):
        after = page[-1][0]
        for _, session in page:
            counts["sessions"] += 1
            read = [await ports.store.work.get(session.owner, kind, session.thread_id) for kind in kinds]
            if session.last_seq and any(work is None or work.seq < session.last_seq for work in read):
                continue
            counts["completed"] += 1
            if not dry_run:
                await complete(session, ports, now=now)
    return counts


async def complete(session: Session, ports: Ports, *, now: datetime) -> None:
    """Note a session as done, unless it goes on or is gone."""

    async def decide() -> Decision[None]:
        thread = await ports.store.conversations.thread(session.owner, session.thread_id)
        known = await ports.store.conversations.session(session.owner, session.thread_id, session.id)
        if thread is None or known is None or known.state is not SessionState.PENDING:
            return Decision(None, no_answer)
        done = replace(known, state=SessionState.DONE)
        return Decision(session_change(done, thread, ports), no_answer)

    await decide_and_commit([thread_lock(session.owner, session.thread_id)], decide, ports, now=now, grant_id="")
