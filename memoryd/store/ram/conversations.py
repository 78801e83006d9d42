"""What the reference store answers about conversations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from memoryd.model.conversation import FirstSaid, Message, Session, SessionState, Thread, WorkingMemory
from memoryd.model.scope import Owner, Visibility
from memoryd.store.conversations import MessageHead, MessageSelector, Place, ThreadSelector
from memoryd.store.ram.state import RamState

__all__ = ["RamConversations"]


class RamConversations:
    """Threads, sessions and messages in dictionaries."""

    def __init__(self, state: RamState) -> None:
        self._state = state

    async def thread(self, owner: Owner, thread_id: str) -> Thread | None:
        return self._state.threads.get((owner, thread_id))

    async def threads(
        self,
        visible: Visibility,
        *,
        limit: int,
        after: Place | None = None,
        prefix: str = "",
    ) -> list[Thread]:
        threads = [
            thread
            for thread in self._state.threads.values()
            if thread.owner in visible.owners and thread.id.startswith(prefix)
        ]
        threads.sort(key=lambda thread: (thread.update_time, thread.id), reverse=True)
        return [thread for thread in threads if after is None or (thread.update_time, thread.id) < after][:limit]

    async def scan_threads(self, selector: ThreadSelector, *, limit: int, after: str = "") -> list[tuple[str, Thread]]:
        found = [(repr(key), thread) for key, thread in self._state.threads.items()]
        if selector.is_unsummarised:
            found = [(key, thread) for key, thread in found if thread.view_seq > thread.summed_up_seq]
        before, ahead = selector.idle_since, selector.ahead_of
        if before is None or ahead is None:
            return sorted(((key, thread) for key, thread in found if key > after), key=lambda held: held[0])[:limit]
        found = [
            (key, thread) for key, thread in found if thread.session_id and not before <= thread.update_time <= ahead
        ]
        return sorted(found, key=lambda held: held[1].update_time)[:limit]

    async def session(self, owner: Owner, thread_id: str, session_id: str) -> Session | None:
        return self._state.sessions.get((owner, thread_id, session_id))

    async def sessions(
        self,
        owners: Collection[Owner],
        *,
        limit: int,
        after: Place | None = None,
        thread_id: str = "",
        states: Collection[SessionState] = (),
    ) -> list[Session]:
        sessions = [
            session
            for session in self._state.sessions.values()
            if session.owner in owners
            and (not thread_id or session.thread_id == thread_id)
            and (not states or session.state in states)
            and (after is None or (session.start_time, session.id) < after)
        ]
        return sorted(sessions, key=lambda session: (session.start_time, session.id), reverse=True)[:limit]

    async def pending_sessions(self, *, limit: int, after: str = "") -> list[tuple[str, Session]]:
        found = (
            (repr(key), session)
            for key, session in self._state.sessions.items()
            if session.state is SessionState.PENDING
        )
        return sorted((key, session) for key, session in found if key > after)[:limit]

    async def messages(self, selector: MessageSelector) -> list[Message]:
        messages = [message for message in self._state.said.values() if _selects(selector, message)]
        messages.sort(key=lambda message: (message.thread_id, message.seq))
        if selector.limit:
            messages = messages[-selector.limit :] if selector.is_from_end else messages[: selector.limit]
        return messages[-selector.fitting([message.text_bytes for message in messages]) :]

    async def heads(self, selector: MessageSelector) -> list[MessageHead]:
        messages = await self.messages(selector)
        return [
            MessageHead(message.owner, message.thread_id, message.seq, message.id, message.text_bytes)
            for message in messages
        ]

    async def numbered(
        self,
        after: int,
        *,
        limit: int,
        until: int | None = None,
        above_bytes: int = 0,
        owner: Owner | None = None,
        words: Sequence[str] = (),  # noqa: ARG002  every message may hold one of them
    ) -> list[tuple[int, Message]]:
        found = (
            (number, message)
            for number, message in sorted(self._state.said.items())
            if number > after
            and (until is None or number <= until)
            and message.text_bytes > above_bytes - (owner is not None)
            and owner in {None, message.owner}
        )
        return list(islice(found, limit))

    async def first_said(self, after: int, *, limit: int) -> list[FirstSaid]:
        first_saids: dict[object, FirstSaid] = {}
        for number, message in await self.numbered(after, limit=limit):
            first = first_saids.get((message.owner, message.thread_id))
            seq, time = (message.seq, message.create_time) if first is None else (first.seq, first.create_time)
            count = 1 if first is None else first.count + 1
            first_saids[message.owner, message.thread_id] = FirstSaid(
                message.owner, message.thread_id, seq, time, number, count
            )
        return list(first_saids.values())

    async def totals(self, after: int = 0) -> tuple[int, int]:
        return len(self._state.said), sum(number > after for number in self._state.said)

    async def working_memory(self, owner: Owner) -> WorkingMemory:
        return self._state.working.get(owner, WorkingMemory())

    async def nearest(
        self,
        owners: Iterable[Owner],
        vector: NDArray[np.float32],
        fingerprint: str,
        *,
        limit: int,
        thread_id: str = "",
        exclude_thread_ids: Collection[str] = (),
    ) -> list[tuple[Message, float]]:
        seen = {*owners}
        found = [
            (self._state.said[number], float(entry.vector @ vector))
            for number, entry in self._state.messages.items()
            if entry.vector is not None
            and entry.fingerprint == fingerprint
            and entry.memory.owner in seen
            and thread_id in {"", self._state.said[number].thread_id}
            and self._state.said[number].thread_id not in exclude_thread_ids
        ]
        return sorted(found, key=lambda hit: -hit[1])[:limit]


def _selects(selector: MessageSelector, message: Message) -> bool:
    return (
        selector.owner in {None, message.owner}
        and selector.thread_id in {"", message.thread_id}
        and (selector.ids is None or message.id in selector.ids)
        and (selector.places is None or (message.thread_id, message.seq) in selector.places)
        and message.seq > selector.after
        and (not selector.before or message.seq < selector.before)
        and selector.session_id in {"", message.session_id}
    )
