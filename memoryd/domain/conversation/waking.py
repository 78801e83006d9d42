"""Starting and ending sessions by call, and ending those that were silent too long."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from memoryd.domain.clock import AHEAD
from memoryd.domain.conversation.sessions import ended, is_idle, opened, session_now, updated
from memoryd.domain.conversation.threads import (
    ThreadKey,
    change_thread,
    is_enabled,
    known_thread,
    refuse_secret_names,
    thread_as_it_is,
)
from memoryd.domain.pipeline import Decision, answering, decide_and_commit, no_answer
from memoryd.domain.ports import Ports
from memoryd.domain.shared import thread_lock
from memoryd.errors import MemorydError, ThreadNotFound, TrustTooLow
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, ConversationChange
from memoryd.model.conversation import Session, SessionState, Thread
from memoryd.model.scope import Owner
from memoryd.model.talk import StartedSession
from memoryd.model.validation import check_id
from memoryd.store.conversations import ThreadSelector

__all__ = ["end_idle_sessions", "end_session", "start_session"]

AT_ONCE = 100  # idle threads that are looked at in one go


async def start_session(
    key: ThreadKey, session_id: str, caller: Caller, ports: Ports, *, now: datetime
) -> StartedSession:
    """
    Begin a session of a thread, and return it and the id of the one that ended by it; see StartSession.

    One that is open under that key goes on. A thread that is not there yet begins.
    """
    asked = check_id(session_id, "session_id")
    owner = key.owner(caller)
    refuse_secret_names({"thread_id": key.thread_id, "session_id": asked}, ports.guards)

    async def decide() -> Decision[StartedSession]:
        thread = await thread_as_it_is(key, owner, ports.store, now, caller.trust)
        ports.shared.last_threads.take(owner, key.thread_id)  # it is another one from here on
        if not is_enabled(caller, ports.policy):
            return Decision(None, answering(StartedSession(opened(asked or ports.new_id(), thread, now))))
        current = (
            await ports.store.conversations.session(owner, thread.id, thread.session_id) if thread.session_id else None
        )
        if current is not None and current.id == asked:
            return Decision(None, answering(StartedSession(session_now(current, thread))))
        if current is not None:
            _refuse_lower(current, caller)
        changed = [] if current is None else [ended(current, thread, now, "next")]
        known = await ports.store.conversations.session(owner, thread.id, asked) if asked else None
        mine = known is None or not known.trust.outranks(caller.trust)  # else one of its own, as with an append
        known, name = (known, asked) if mine else (None, "")
        new = opened(name or ports.new_id(), thread, now, known, trust=caller.trust)
        thread = replace(thread, session_id=new.id, update_time=updated(thread, now), revision=thread.revision + 1)
        talk = ConversationChange(owner, threads=(thread,), sessions=(*changed, new))
        return Decision(
            ChangeSet(conversation=talk), answering(StartedSession(new, "" if current is None else current.id))
        )

    return await decide_and_commit(
        [thread_lock(owner, key.thread_id)], decide, ports, now=now, grant_id=caller.grant_id
    )


def _refuse_lower(session: Session, caller: Caller) -> None:
    if session.trust.outranks(caller.trust):
        raise TrustTooLow("the open session was begun with higher trust; it is not ended")


async def end_session(key: ThreadKey, session_id: str, caller: Caller, ports: Ports, *, now: datetime) -> Session:
    """
    End a session ("": the one that is open), so that it waits to be learnt from; see EndSession in the contract.

    One that has ended already stays as it is.
    """
    asked = check_id(session_id, "session_id")
    owner = key.owner(caller)
    if not is_enabled(caller, ports.policy):
        thread = await thread_as_it_is(key, owner, ports.store, now)
        return ended(opened(asked or ports.new_id(), thread, now), thread, now, "ended")
    thread = await known_thread(key, owner, ports)
    wanted = asked or thread.session_id
    session = await ports.store.conversations.session(owner, thread.id, wanted) if wanted else None
    if session is None:
        raise ThreadNotFound(
            f"the thread has no session {asked!r}" if asked else "the thread has no open session", field="session_id"
        )
    if session.state is not SessionState.OPEN:
        return session

    async def change(known: Thread) -> tuple[Thread, tuple[Session, ...], Session]:
        current = await ports.store.conversations.session(owner, known.id, session.id)
        if current is None or current.state is not SessionState.OPEN:
            return known, (), current or session  # it has ended, or was erased with its thread
        _refuse_lower(current, caller)
        final = ended(current, known, now, "ended")
        return replace(known, session_id=""), (final,), final

    return await change_thread(key, caller, ports, change, now=now)


async def end_idle_sessions(ports: Ports, tell: Callable[[str], None], *, now: datetime) -> int:
    """
    End the sessions that were silent for longer than the operator allows; return how many.

    `tell` is told, for the log, what went wrong with one. While the clock is in doubt none is ended.
    """
    minutes = ports.policy.conversation.session_idle_minutes
    if not minutes or ports.doubt(now) or ports.is_behind(now):
        return 0
    count, before = 0, now - timedelta(minutes=minutes)
    looked_at: set[tuple[Owner, str]] = set()
    while True:
        idle = ThreadSelector(idle_since=before, ahead_of=now + AHEAD)
        idle_threads = await ports.store.conversations.scan_threads(idle, limit=AT_ONCE + len(looked_at))
        threads = [thread for _, thread in idle_threads if (thread.owner, thread.id) not in looked_at]
        for thread in threads:
            is_ended = False
            try:
                is_ended = await _end_if_idle(thread, ports, now)
            except MemorydError as error:  # the others are ended all the same
                tell(type(error).__name__)
            count += is_ended
            if not is_ended:
                looked_at.add((thread.owner, thread.id))
        if not threads:
            return count


async def _end_if_idle(seen: Thread, ports: Ports, now: datetime) -> bool:
    done: list[bool] = []

    async def decide() -> Decision[None]:
        done.clear()
        thread = await ports.store.conversations.thread(seen.owner, seen.id)
        if thread is None or not thread.session_id or not is_idle(thread, ports, now):
            return Decision(None, no_answer)
        ports.shared.last_threads.take(thread.owner, thread.id)
        current = await ports.store.conversations.session(thread.owner, thread.id, thread.session_id)
        sessions = () if current is None else (ended(current, thread, now, "idle"),)
        changed = replace(thread, session_id="", revision=thread.revision + 1)
        done.append(True)
        return Decision(
            ChangeSet(conversation=ConversationChange(thread.owner, threads=(changed,), sessions=sessions)), no_answer
        )

    locks: Iterable[Any] = [thread_lock(seen.owner, seen.id)]
    await decide_and_commit(locks, decide, ports, now=now, grant_id="")
    return bool(done)
