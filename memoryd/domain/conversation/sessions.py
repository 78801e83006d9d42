"""
Sessions: when one begins, when it ends, and what it counts.

A session's row is written when it opens and when it ends; what it counts in between is the difference of its thread.
Each change of a session is one of its thread as well: of two that decide on a session, at whatever daemon, one decides
again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from memoryd.domain.clock import AHEAD
from memoryd.domain.ports import Ports
from memoryd.model.change import ChangeSet, ConversationChange
from memoryd.model.conversation import Session, SessionState, Thread
from memoryd.model.trust import Trust

__all__ = ["ended", "is_idle", "opened", "session_change", "session_for", "session_now", "updated"]


def session_now(session: Session, thread: Thread | None) -> Session:
    """Return a session as it is now: of an open one the counts go on with its thread."""
    if session.state is not SessionState.OPEN or thread is None or thread.session_id != session.id:
        return session
    return replace(
        session,
        update_time=thread.update_time,
        message_count=session.message_count + thread.message_count - session.messages_before,
        turn_count=session.turn_count + thread.turn_count - session.turns_before,
        last_seq=thread.last_seq if thread.message_count > session.messages_before else session.last_seq,
    )


def opened(
    session_id: str, thread: Thread, now: datetime, known: Session | None = None, *, trust: Trust = Trust.HOST
) -> Session:
    """Return a session that begins now; one that had ended goes on with what it has counted."""
    if known is not None:
        return replace(
            known,
            state=SessionState.OPEN,
            end_time=None,
            end_reason="",
            update_time=now,
            trust=Trust.highest(known.trust, trust),
            first_seq=known.first_seq if known.message_count else thread.last_seq + 1,
            last_seq=known.last_seq if known.message_count else thread.last_seq,
            messages_before=thread.message_count,
            turns_before=thread.turn_count,
        )
    return Session(
        id=session_id,
        agent_id=thread.agent_id,
        scope=thread.scope,
        thread_id=thread.id,
        state=SessionState.OPEN,
        start_time=now,
        update_time=now,
        trust=trust,
        first_seq=thread.last_seq + 1,
        last_seq=thread.last_seq,
        messages_before=thread.message_count,
        turns_before=thread.turn_count,
    )


def ended(session: Session, thread: Thread, now: datetime, reason: str) -> Session:
    """Return a session that has ended, and waits to be learnt from; of an idle one, when it was last heard of."""
    final = session_now(session, thread)
    end = max(final.update_time, final.start_time) if reason == "idle" else now
    return replace(final, state=SessionState.PENDING, end_time=end, end_reason=reason)


def updated(thread: Thread, now: datetime) -> datetime:
    """Return when a thread that changes now was changed last; a clock that went back a little moves it not back."""
    return now if thread.update_time - now > AHEAD else max(now, thread.update_time)


def is_idle(thread: Thread, ports: Ports, now: datetime) -> bool:
    """
    Whether an open session of a thread was silent for too long.

    A clock that went back a little ends nothing. A thread that is further ahead than AHEAD was written while the clock
    was wrong: since when it is silent no one knows, and it counts as idle.
    """
    minutes = ports.policy.conversation.session_idle_minutes
    if not minutes or ports.doubt(now) or ports.is_behind(now):
        return False
    return now - thread.update_time >= timedelta(minutes=minutes) or thread.update_time - now > AHEAD


def session_change(session: Session, thread: Thread, ports: Ports) -> ChangeSet:
    """Return the change of a session alone; `thread` is that of it, read before the session was."""
    ports.shared.last_threads.take(thread.owner, thread.id)  # it is another one from here on
    changed = replace(thread, revision=thread.revision + 1)
    return ChangeSet(conversation=ConversationChange(thread.owner, threads=(changed,), sessions=(session,)))


async def session_for(
    thread: Thread, current: Session | None, asked: str, trust: Trust, ports: Ports, now: datetime
) -> tuple[Session, tuple[Session, ...]]:
    """
    Return the session that a message of a thread belongs to, and the sessions that change by it.

    It is the one asked for ("": the current one, if it is open). Another one that is open ends; so does one that was
    silent too long, unless it is asked for by its key. Who is of lower trust than the one who began the open session
    ends it not: the message belongs to it. And an ended session of higher trust goes on for no one of lower trust, who
    begins one of its own.
    """
    changed = []
    is_current = current is not None and asked == current.id
    known = (
        await ports.store.conversations.session(thread.owner, thread.id, asked) if asked and not is_current else None
    )
    if is_current and current is not None and current.state is not SessionState.OPEN:
        known = current
    if known is not None and known.trust.outranks(trust):
        asked, known = "", None
    if current is not None and current.state is SessionState.OPEN:
        idle = is_idle(thread, ports, now)
        if asked == current.id or (not idle and (not asked or current.trust.outranks(trust))):
            return current, ()
        changed.append(ended(current, thread, now, "idle" if idle else "next"))
    session = opened(asked or ports.new_id(), thread, now, known, trust=trust)
    return session, (*changed, session)
