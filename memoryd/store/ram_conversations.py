"""The part of the reference store that knows conversations; it goes with `store.ram`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memoryd.errors import Contended
from memoryd.model.change import ChangeSet, ConversationChange, Entry, RecordedRequest, Tombstone
from memoryd.model.commits import Applied, Head, Snapshot
from memoryd.model.conversation import FirstSaid, Message, Session, SessionState, Thread, WorkingMemory
from memoryd.model.entity import Entity
from memoryd.model.limits import how_many_fit
from memoryd.model.reports import OwnerContents, OwnerSize, OwnerSizes
from memoryd.model.scope import Owner, Visibility
from memoryd.store.conversations import Place, numbered
from memoryd.store.recent import RecentChanges

__all__ = ["RamConversations"]

T = TypeVar("T")


class RamConversations:
    """Dictionaries of threads, sessions and messages; and what goes with all that an owner has."""

    _entries: dict[str, Entry]
    _named: dict[str, Entity]
    _tombstones: set[Tombstone]
    _requests: dict[tuple[Owner, str, str], RecordedRequest]

    def __init__(self) -> None:
        self._threads: dict[tuple[Owner, str], Thread] = {}
        self._sessions: dict[tuple[Owner, str, str], Session] = {}
        self._messages: dict[int, Entry] = {}
        self._said: dict[int, Message] = {}
        self._working: dict[Owner, WorkingMemory] = {}
        self._recent_episodes = RecentChanges(Head())
        self._episode_callbacks: list[Callable[[Applied], None]] = []

    def _check_threads(self, changes: Sequence[ChangeSet]) -> None:
        """Raise Contended where a thread has changed since a change of it was decided."""
        known = {key: (thread.revision, thread.create_time) for key, thread in self._threads.items()}
        for change in changes:
            for thread in () if change.conversation is None else change.conversation.threads:
                key = thread.owner, thread.id
                if (thread.revision - 1, thread.create_time) != known.get(key, (0, thread.create_time)):
                    raise Contended("others have changed the thread at the same time; nothing was written: try again")
                known[key] = (thread.revision, thread.create_time)

    def _converse(self, change: ConversationChange, commit_seq: int) -> Applied | None:
        """Take a change in, and return what those who follow messages are told."""
        self._threads.update({(thread.owner, thread.id): thread for thread in change.threads})
        self._sessions.update({(one.owner, one.thread_id, one.id): one for one in change.sessions})
        for n, (message, terms) in enumerate(change.messages):
            number = numbered(commit_seq, n)
            self._said[number] = message
            self._messages[number] = Entry(message.as_memory(), terms)
        if change.working_memory is not None:
            self._working.pop(change.owner, None)
            if change.working_memory.text:
                self._working[change.owner] = change.working_memory
        made = {one.memory_id: one for one in change.embeddings}
        for number, entry in self._messages.items():
            one = made.get(entry.memory.id)
            is_its = (
                one is not None
                and one.message_id in entry.memory.source.message_ids
                and entry.memory.owner == change.owner
            )
            if one is not None and is_its and number > change.embedded_after:
                self._messages[number] = one.given_to(entry)
        self._erase(change)
        return self._recent_episodes.add(commit_seq, change.episodes) if change.is_found_anew else None

    def _erase(self, change: ConversationChange) -> None:
        gone = {(one.thread_id, one.id) for one in change.purge_messages}
        threads = {thread.id for thread in change.purge_threads}
        for number, message in list(self._said.items()):
            named = message.thread_id in threads or (message.thread_id, message.id) in gone
            if named and message.owner == change.owner:
                del self._said[number], self._messages[number]
        for thread in change.purge_threads:
            self._threads.pop((thread.owner, thread.id), None)
            for key in [key for key in self._sessions if key[:2] == (thread.owner, thread.id)]:
                del self._sessions[key]

    def _purge_owner(self, owner: Owner | None) -> None:
        if owner is None:
            return
        gone = {memory_id for memory_id, entry in self._entries.items() if entry.memory.owner == owner}
        self._entries = {one: entry for one, entry in self._entries.items() if one not in gone}
        self._named = {one: entity for one, entity in self._named.items() if entity.owner != owner}
        self._tombstones = {stone for stone in self._tombstones if stone.owner != owner}
        self._threads = {key: one for key, one in self._threads.items() if key[0] != owner}
        self._sessions = {key: one for key, one in self._sessions.items() if key[0] != owner}
        numbers = [number for number, message in self._said.items() if message.owner == owner]
        for number in numbers:
            del self._said[number], self._messages[number]
        self._working.pop(owner, None)

    async def contents(self, owner: Owner, *, limit: int) -> OwnerContents:
        memories = [entry.memory for entry in self._entries.values() if entry.memory.owner == owner]
        memories.sort(key=lambda memory: (memory.create_time, memory.id), reverse=True)
        messages = [message for _, message in sorted(self._said.items()) if message.owner == owner]
        threads = [thread for key, thread in self._threads.items() if key[0] == owner]
        rows = [entity for entity in self._named.values() if entity.owner == owner]
        trusts = {memory.trust for memory in memories} | {message.trust for message in messages}
        trusts |= {thread.highest_trust for thread in threads} | {row.trust for row in rows}
        if owner in self._working:
            trusts.add(self._working[owner].trust)
        return OwnerContents(
            len(memories),
            len(messages),
            len(threads),
            tuple(memory.id for memory in memories[:limit]),
            tuple(message.id for message in messages[:limit]),
            frozenset(trusts),
        )

    async def owners_of_user(self, user_id: str, agent_id: str = "") -> list[Owner]:
        owners = {entry.memory.owner for entry in self._entries.values()}
        owners |= {entity.owner for entity in self._named.values()}
        owners |= {*self._working, *(owner for owner, _ in self._threads)}
        found = (o for o in owners if o.scope.user_id == user_id and agent_id in {"", o.agent_id})
        return sorted(found, key=lambda owner: owner.agent_id)

    async def sizes_of_owners(self, agent_id: str = "", *, limit: int) -> OwnerSizes:
        stored: dict[Owner, list[int]] = {}
        for memory in (entry.memory for entry in self._entries.values()):
            counts = stored.setdefault(memory.owner, [0, 0, 0])
            counts[0] += 1
            counts[2] += len(memory.content.encode())
        for message in self._said.values():
            counts = stored.setdefault(message.owner, [0, 0, 0])
            counts[1] += 1
            counts[2] += len(message.content.encode())
        for owner in {*self._working, *(one for one, _ in self._threads), *(one.owner for one in self._named.values())}:
            stored.setdefault(owner, [0, 0, 0])
        sizes = [
            OwnerSize(owner.agent_id, owner.scope.user_id or "", owner.scope.chat_id or "", *counts)
            for owner, counts in stored.items()
            if agent_id in {"", owner.agent_id}
        ]
        sizes.sort(key=lambda one: (-one.content_bytes, one.agent_id, one.user_id, one.chat_id))
        return OwnerSizes(tuple(sizes[:limit]), len(sizes))

    def _keep_vectors_of(self, fingerprint: str) -> None:
        for number, entry in self._messages.items() if fingerprint else ():
            if entry.fingerprint != fingerprint:
                self._messages[number] = replace(entry, vector=None, fingerprint="", tokens=b"", windows=b"")

    def on_episodes(self, callback: Callable[[Applied], None]) -> None:
        self._episode_callbacks.append(callback)

    async def episode_head(self, owner: Owner) -> Head:
        return self._recent_episodes.heads.of(owner)

    async def episode_changes(self, owner: Owner, since: int) -> list[Applied] | None:
        return self._recent_episodes.since(owner, since)

    def read_episodes(self, owner: Owner, build: Callable[[Snapshot], T]) -> T:
        entries = [entry for _, entry in sorted(self._messages.items()) if entry.memory.owner == owner]
        size = sum(len(entry.memory.content.encode()) + len(entry.terms) for entry in entries)
        return build(
            Snapshot(self._recent_episodes.heads.of(owner).commit_seq, len(entries), size, lambda _: [entries])
        )

    async def thread(self, owner: Owner, thread_id: str) -> Thread | None:
        return self._threads.get((owner, thread_id))

    async def threads(
        self, visible: Visibility, *, limit: int, after: Place | None = None, prefix: str = ""
    ) -> list[Thread]:
        found = [one for one in self._threads.values() if one.owner in visible.owners and one.id.startswith(prefix)]
        found.sort(key=lambda thread: (thread.update_time, thread.id), reverse=True)
        return [one for one in found if after is None or (one.update_time, one.id) < after][:limit]

    async def session(self, owner: Owner, thread_id: str, session_id: str) -> Session | None:
        return self._sessions.get((owner, thread_id, session_id))

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
            for one in self._sessions.values()
            if one.owner in owners
            and (not thread_id or one.thread_id == thread_id)
            and (not states or one.state in states)
            and (after is None or (one.start_time, one.id) < after)
        ]
        return sorted(found, key=lambda one: (one.start_time, one.id), reverse=True)[:limit]

    def _of_thread(self, owner: Owner, thread_id: str) -> list[Message]:
        found = [one for one in self._said.values() if one.owner == owner and one.thread_id == thread_id]
        return sorted(found, key=lambda message: message.seq)

    async def messages(
        self,
        owner: Owner,
        thread_id: str,
        *,
        limit: int,
        before: int = 0,
        after: int = 0,
        session_id: str = "",
        most_bytes: int = 0,
    ) -> list[Message]:
        found = [
            one
            for one in self._of_thread(owner, thread_id)
            if one.seq > after and (not before or one.seq < before) and (not session_id or one.session_id == session_id)
        ]
        found = found[-limit:]
        if most_bytes:
            fitting = how_many_fit((one.text_bytes for one in reversed(found)), most_bytes)
            found = found[-max(2, 1 + fitting) :]
        return found

    async def messages_at(self, owner: Owner, places: Collection[tuple[str, int]]) -> list[Message]:
        found = [one for one in self._said.values() if one.owner == owner and (one.thread_id, one.seq) in places]
        return sorted(found, key=lambda message: (message.thread_id, message.seq))

    async def messages_of_ids(self, owner: Owner, thread_id: str, ids: Collection[str]) -> list[Message]:
        return [one for one in self._of_thread(owner, thread_id) if one.id in ids]

    async def message_sizes(self, owner: Owner, places: Collection[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return {(one.thread_id, one.seq): one.text_bytes for one in await self.messages_at(owner, places)}

    async def thread_of_message(self, message_id: str) -> Thread | None:
        found = (message for message in self._said.values() if message.id == message_id)
        return next((self._threads.get((message.owner, message.thread_id)) for message in found), None)

    async def taken_ids(self, owner: Owner, thread_id: str, ids: Collection[str]) -> frozenset[str]:
        return frozenset(one.id for one in self._of_thread(owner, thread_id) if one.id in ids)

    async def first_message_ids(self, owner: Owner, thread_id: str, *, limit: int) -> list[str]:
        return [one.id for one in self._of_thread(owner, thread_id)][:limit]

    async def messages_naming(
        self,
        owner: Owner,
        words: Sequence[str],  # noqa: ARG002  every message may hold one of them
        *,
        limit: int,
        after: int = 0,
    ) -> list[tuple[int, Message]]:
        found = ((n, one) for n, one in sorted(self._said.items()) if n > after and one.owner == owner)
        return list(islice(found, limit))

    def text_bytes_of(self, grant_id: str) -> int:
        """Return the bytes of summaries and working memories that were set through a grant."""
        texts = [text for thread in self._threads.values() for text in thread.texts]
        texts += [text for held in self._working.values() for text in held.texts]
        return sum(text.size for text in texts if text.grant_id == grant_id)

    async def working_memory(self, owner: Owner) -> WorkingMemory:
        return self._working.get(owner, WorkingMemory())

    async def nearest_messages(
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
            (self._said[number], float(entry.vector @ vector))
            for number, entry in self._messages.items()
            if entry.vector is not None
            and entry.fingerprint == fingerprint
            and entry.memory.owner in seen
            and thread_id in {"", self._said[number].thread_id}
            and self._said[number].thread_id not in exclude_thread_ids
        ]
        return sorted(found, key=lambda hit: -hit[1])[:limit]

    async def idle_threads(self, before: datetime, ahead: datetime, *, limit: int) -> list[Thread]:
        found = [one for one in self._threads.values() if one.session_id and not before <= one.update_time <= ahead]
        return sorted(found, key=lambda thread: thread.update_time)[:limit]

    async def unsummarised_threads(self, *, limit: int, after: str = "") -> list[tuple[str, Thread]]:
        found = ((repr(key), one) for key, one in self._threads.items() if one.view_seq > one.summed_up_seq)
        return sorted(((key, one) for key, one in found if key > after), key=lambda held: held[0])[:limit]

    async def pending_sessions(self, *, limit: int, after: str = "") -> list[tuple[str, Session]]:
        found = ((repr(key), one) for key, one in self._sessions.items() if one.state is SessionState.PENDING)
        return sorted((key, one) for key, one in found if key > after)[:limit]

    async def messages_past(
        self, after: int, *, limit: int, until: int | None = None, above_bytes: int = 0
    ) -> list[tuple[int, Message]]:
        return [
            (number, message)
            for number, message in sorted(self._said.items())
            if number > after and (until is None or number <= until) and message.text_bytes > above_bytes
        ][:limit]

    async def first_said_past(self, after: int, *, limit: int) -> list[FirstSaid]:
        found: dict[object, FirstSaid] = {}
        for number, one in await self.messages_past(after, limit=limit):
            first = found.get((one.owner, one.thread_id))
            seq, time = (one.seq, one.create_time) if first is None else (first.seq, first.create_time)
            count = 1 if first is None else first.count + 1
            found[one.owner, one.thread_id] = FirstSaid(one.owner, one.thread_id, seq, time, number, count)
        return list(found.values())

    async def messages_on(self, day: date) -> dict[str, int]:
        found = (one for one in self._said.values() if one.grant_id and one.create_time.date() == day)
        return dict(Counter(one.grant_id for one in found))

    async def message_totals(self, after: int = 0) -> tuple[int, int]:
        return len(self._said), sum(number > after for number in self._said)
