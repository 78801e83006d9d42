"""How the reference store takes change sets, and tells of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from memoryd.errors import Contended, Unavailable
from memoryd.model.change import ChangeSet, RecordedRequest
from memoryd.model.commits import Applied, Head, Snapshot
from memoryd.model.scope import Owner
from memoryd.store.commits import check_owners
from memoryd.store.notes import searched_notes
from memoryd.store.ram.state import RamState, entries_after
from memoryd.store.recent import Heads, RecentChanges

__all__ = ["RamCommits", "RamFeed"]

T = TypeVar("T")
CHUNK = 2048


class RamFeed:
    """The commits of memories, or those of messages."""

    def __init__(self, take: Callable[[Owner, int], Snapshot]) -> None:
        self._take = take
        self._recent = RecentChanges(Head())
        self._callbacks: list[Callable[[Applied], None]] = []

    @property
    def heads(self) -> Heads:
        """How far the commits of each owner have come, and those of grants."""
        return self._recent.heads

    def follow(self, callback: Callable[[Applied], None]) -> None:
        self._callbacks.append(callback)

    async def head(self, owner: Owner) -> Head:
        return self._recent.heads.of(owner)

    async def changes(self, owner: Owner, since: int) -> Applied | None:
        return self._recent.since(owner, since)

    def snapshot(self, owner: Owner, build: Callable[[Snapshot], T]) -> T:
        return build(self._take(owner, self._recent.heads.of(owner).commit_seq))

    def check(self, changes: Sequence[ChangeSet]) -> None:
        self._recent.heads.check(changes, set())

    def add(self, number: int | None, change: ChangeSet, commit_seq: int) -> Applied:
        """Take in a change; without a number the next one of its owner, or of the store where it has none."""
        owner = change.decided_of
        if number is None:
            number = commit_seq if owner is None else self._recent.heads.of(owner).commit_seq + 1
        return self._recent.add(number, change)

    def tell(self, applied: Applied) -> None:
        for callback in self._callbacks:
            callback(applied)


class RamCommits:
    """Takes change sets."""

    def __init__(self, state: RamState) -> None:
        self._state = state
        self.memories = RamFeed(self._memories_of)
        self.messages = RamFeed(self._messages_of)
        self.notes = RamFeed(self._notes_of)

    async def write(self, *changes: ChangeSet) -> None:
        check_owners(changes)
        state = self._state
        if state.closed:
            raise Unavailable("the store is closed")
        await asyncio.sleep(0)
        self.memories.check(changes)
        requests = [change.request for change in changes if change.request is not None]
        if any((request.owner, request.method, request.request_id) in state.requests for request in requests):
            raise Contended("a request_id is taken; nothing was written: try again")
        state.check_threads(changes)
        state.check_work(changes)
        state.notes.check(changes)
        entries = state.entries
        for change in changes:
            entries = entries_after(entries, change)
        state.entries = entries
        told: list[tuple[RamFeed, Applied]] = []
        for change in changes:
            state.apply(change)
            state.seq += 1
            told.append((self.memories, self.memories.add(None, change, state.seq)))
            found = searched_notes(change)
            if found is not None:
                told.append((self.notes, self.notes.add(state.seq, found, state.seq)))
            talk = change.conversation
            if talk is not None:
                state.converse(talk, state.seq)
                if talk.is_found_anew:
                    told.append((self.messages, self.messages.add(state.seq, talk.episodes, state.seq)))
        for feed, applied in sorted(told, key=lambda one: one[0] is not self.memories):
            feed.tell(applied)

    async def recorded(self, owner: Owner, method: str, request_id: str) -> RecordedRequest | None:
        return self._state.requests.get((owner, method, request_id))

    def _memories_of(self, owner: Owner, commit_seq: int) -> Snapshot:
        state = self._state
        entries = [e for e in state.entries.values() if e.memory.owner == owner and e.memory.delete_time is None]
        entries.sort(key=lambda entry: entry.memory.create_time)
        chunks = (entries[n : n + CHUNK] for n in range(0, len(entries), CHUNK))
        size = sum(len(e.memory.content.encode()) + len(e.terms) for e in entries)
        named = [entity for entity in state.named.values() if entity.owner == owner]
        stones = frozenset(stone.digest for stone in state.tombstones if stone.owner == owner)
        return Snapshot(commit_seq, len(entries), size, lambda _: chunks, named, stones)

    def _notes_of(self, owner: Owner, commit_seq: int) -> Snapshot:
        entries = [entry for entry in self._state.notes.entries.values() if entry.memory.owner == owner]
        entries.sort(key=lambda entry: entry.memory.create_time)
        size = sum(len(entry.memory.content.encode()) + len(entry.terms) for entry in entries)
        return Snapshot(commit_seq, len(entries), size, lambda _: [entries])

    def _messages_of(self, owner: Owner, commit_seq: int) -> Snapshot:
        entries = [entry for _, entry in sorted(self._state.messages.items()) if entry.memory.owner == owner]
        size = sum(len(entry.memory.content.encode()) + len(entry.terms) for entry in entries)
        return Snapshot(commit_seq, len(entries), size, lambda _: [entries])
