"""What the reference store answers about conversations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from memoryd.model.conversation import FirstSaid, Message, Session, SessionState, Thread, WorkingMemory
from memoryd.model.limits import how_many_fit
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
        found = [
            one for one in self._state.threads.values() if one.owner in visible.owners and one.id.startswith(prefix)
        ]
        found.sort(key=lambda thread: (thread.update_time, thread.id), reverse=True)
        return [one for one in found if after is None or (one.update_time, one.id) < after][:limit]

    async def scan_threads(self, selector: ThreadSelector, *, limit: int, after: str = "") -> list[tuple[str, Thread]]:
        found = [(repr(key), one) for key, one in self._state.threads.items()]
        if selector.is_unsummarised:
            found = [(key, one) for key, one in found if one.view_seq > one.summed_up_seq]
        before, ahead = selector.idle_since, selector.ahead_of
        if before is None or ahead is None:
            return sorted(((key, one) for key, one in found if key > after), key=lambda held: held[0])[:limit]
        found = [(key, one) for key, one in found if one.session_id and not before <= one.update_time <= ahead]
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
        found = [
            one
            for one in self._state.sessions.values()
            if one.owner in owners
            and (not thread_id or one.thread_id == thread_id)
            and (not states or one.state in states)
            and (after is None or (one.start_time, one.id) < after)
        ]
        return sorted(found, key=lambda one: (one.start_time, one.id), reverse=True)[:limit]

    async def pending_sessions(self, *, limit: int, after: str = "") -> list[tuple[str, Session]]:
        found = ((repr(key), one) for key, one in self._state.sessions.items() if one.state is SessionState.PENDING)
        return sorted((key, one) for key, one in found if key > after)[:limit]

    async def messages(self, selector: MessageSelector) -> list[Message]:
        found = [one for one in self._state.said.values() if _selects(selector, one)]
        found.sort(key=lambda message: (message.thread_id, message.seq))
        if selector.limit:
            found = found[-selector.limit :] if selector.is_from_end else found[: selector.limit]
        if selector.most_bytes:
            fitting = how_many_fit((one.text_bytes for one in reversed(found)), selector.most_bytes)
            found = found[-max(2, 1 + fitting) :]
        return found

    async def heads(self, selector: MessageSelector) -> list[MessageHead]:
        found = await self.messages(selector)
        return [MessageHead(one.owner, one.thread_id, one.seq, one.id, one.text_bytes) for one in found]

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
        found: dict[object, FirstSaid] = {}
        for number, one in await self.numbered(after, limit=limit):
            first = found.get((one.owner, one.thread_id))
            seq, time = (one.seq, one.create_time) if first is None else (first.seq, first.create_time)
            count = 1 if first is None else first.count + 1
            found[one.owner, one.thread_id] = FirstSaid(one.owner, one.thread_id, seq, time, number, count)
        return list(found.values())

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


def _selects(selector: MessageSelector, one: Message) -> bool:
    return (
        selector.owner in {None, one.owner}
        and selector.thread_id in {"", one.thread_id}
        and (selector.ids is None or one.id in selector.ids)
        and (selector.places is None or (one.thread_id, one.seq) in selector.places)
        and one.seq > selector.after
        and (not selector.before or one.seq < selector.before)
        and selector.session_id in {"", one.session_id}
    )
