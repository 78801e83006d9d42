"""The reference store: the shortest code that keeps every promise of `store.base` but to survive the process."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memoryd.errors import Contended, Unavailable
from memoryd.model import limits
from memoryd.model.change import ChangeSet, Entry, RecordedRequest, Tombstone
from memoryd.model.commits import Applied, Head, Recalled, Snapshot
from memoryd.model.entity import Entity
from memoryd.model.grant import Grant, GrantUsage, TokenKey
from memoryd.model.memory import DECAYED, Kind, Memory, State
from memoryd.model.query import Filter
from memoryd.model.receipt import Name, without_gone
from memoryd.model.reports import Compaction, GcReport
from memoryd.model.results import MemoryCount, Stats
from memoryd.model.scope import Owner, Visibility
from memoryd.model.validation import text_digest
from memoryd.store.base import (
    Cursor,
    Graces,
    StoreInfo,
    check_counters,
    check_leases,
    check_marks,
    check_owners,
    in_turns_of_owners,
)
from memoryd.store.ram_conversations import RamConversations
from memoryd.store.ram_work import RamWork
from memoryd.store.recent import RecentChanges

__all__ = ["RamStore"]

T = TypeVar("T")
CHUNK = 2048


class RamStore(RamConversations, RamWork):
    """A dictionary of entries."""

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        RamConversations.__init__(self)
        RamWork.__init__(self)
        self._entries: dict[str, Entry] = {}
        self._requests: dict[tuple[Owner, str, str], RecordedRequest] = {}
        self._grants: dict[str, Grant] = {}
        self._token_keys: tuple[TokenKey, ...] = ()
        self._named: dict[str, Entity] = {}
        self._tombstones: set[Tombstone] = set()
        self._callbacks: list[Callable[[Applied], None]] = []
        self._seq = 0
        self._recent = RecentChanges(Head())
        self._newest: datetime | None = None
        self._closed = False
        self._id = random_bytes(16).hex()
        self._secret = random_bytes(32)

    def on_commit(self, callback: Callable[[Applied], None]) -> None:
        self._callbacks.append(callback)

    async def head(self, owner: Owner) -> Head:
        return self._recent.heads.of(owner)

    async def changes(self, owner: Owner, since: int) -> list[Applied] | None:
        return self._recent.since(owner, since)

    async def commit(self, *changes: ChangeSet) -> None:
        check_owners(changes)
        if self._closed:
            raise Unavailable("the store is closed")
        await asyncio.sleep(0)
        self._recent.heads.check(changes, set())
        requests = [change.request for change in changes if change.request is not None]
        if any((one.owner, one.method, one.request_id) in self._requests for one in requests):
            raise Contended("a request_id is taken; nothing was written: try again")
        self._check_threads(changes)
        marks, leases, counters = dict(self._marks), dict(self._leases), dict(self._counters)
        for change in changes:
            check_marks(change, marks)
            check_leases(change, leases)
            check_counters(change, counters)
            marks |= change.marks
            leases |= {lease.name: lease for lease in change.leases}
            counters |= change.counters
        entries = self._entries
        for change in changes:
            entries = _entries_after(entries, change)
        self._entries = entries
        applied, told = [], []
        for change in changes:
            self._apply(change)
            self._seq += 1
            owner = change.decided_of
            number = self._seq if owner is None else self._recent.heads.of(owner).commit_seq + 1
            applied.append(self._recent.add(number, change))
            if change.conversation is not None and (one := self._converse(change.conversation, self._seq)) is not None:
                told.append(one)
        for followers, known in ((self._callbacks, applied), (self._episode_callbacks, told)):
            for one in known:
                for callback in followers:
                    callback(one)

    def _apply(self, change: ChangeSet) -> None:
        """Take in all but the memories, of which only an insert can fail."""
        self._requests = self._requests_after(change)
        self._grants.update({grant.id: grant for grant in change.grants})
        for grant_id in change.forget_grants:
            self._grants.pop(grant_id, None)
        self._token_keys = self._token_keys if change.token_keys is None else change.token_keys
        self._named.update({entity.id: entity for entity in change.entities})
        for entity in change.forget_entities:
            self._named.pop(entity.id, None)
        self._tombstones = (self._tombstones | {*change.tombstones}) - {*change.lift}
        self._purge_owner(change.purge_owner)
        self._keep_vectors_of(change.message_vectors_of)
        self._note_work(change)
        times = [entry.memory.create_time for entry in change.inserts]
        self._newest = max([*times, *([self._newest] if self._newest else [])], default=None)

    def _requests_after(self, change: ChangeSet) -> dict[tuple[Owner, str, str], RecordedRequest]:
        requests, is_gone = dict(self._requests), _gone_with(change)
        if change.request is not None:
            requests[change.request.owner, change.request.method, change.request.request_id] = change.request
        before = change.forget_requests_before
        return {
            key: replace(request, receipt=left)
            for key, request in requests.items()
            if (before is None or request.create_time >= before)
            and (left := without_gone(request.receipt, is_gone)) is not None
        }

    def _visible(self, visible: Visibility) -> list[Memory]:
        owners = set(visible.owners)
        return [entry.memory for entry in self._entries.values() if entry.memory.owner in owners]

    async def page(
        self, visible: Visibility, wanted: Filter, *, now: datetime, limit: int, after: Cursor | None = None
    ) -> list[Memory]:
        found = [memory for memory in self._visible(visible) if wanted.admits(memory, now)]
        found.sort(key=lambda memory: (memory.create_time, memory.id), reverse=True)
        return _past(found, after)[:limit]

    async def find(self, visible: Visibility, prefix: str, *, deleted: bool = False) -> list[Memory]:
        begun = (memory for memory in self._visible(visible) if memory.id.startswith(prefix))
        found = [memory for memory in begun if deleted or memory.delete_time is None]
        return [memory for memory in found if memory.id == prefix] or found[:2]

    async def entry(self, memory: Memory) -> Entry | None:
        return self._entries.get(memory.id)

    async def faded(self, owner: Owner, as_of: datetime, *, limit: int) -> list[Entry]:
        held = [e for e in self._entries.values() if e.memory.owner == owner and e.memory.delete_reason == DECAYED]
        found = [e for e in held if e.memory.create_time <= as_of < (e.memory.delete_time or as_of)]
        newest = sorted(found, key=lambda e: e.memory.create_time, reverse=True)
        return [replace(entry, tokens=b"") for entry in newest[:limit]]

    async def entries(self, owner: Owner, ids: Collection[str]) -> list[Entry]:
        found = filter(None, (self._entries.get(memory_id) for memory_id in dict.fromkeys(ids)))
        return [Entry(one.memory, one.terms) for one in found if one.memory.owner == owner]

    async def locate(self, memory_id: str) -> Memory | None:
        entry = self._entries.get(memory_id)
        return None if entry is None else entry.memory

    async def recorded(self, owner: Owner, method: str, request_id: str) -> RecordedRequest | None:
        return self._requests.get((owner, method, request_id))

    async def stats(self, visible: Visibility, now: datetime) -> Stats:
        memories = self._visible(visible)
        counts = Counter((m.kind, m.state_at(now), m.scope.chat_id is not None) for m in memories)
        ordered = sorted(counts.items(), key=lambda item: (item[0][0].value, item[0][1].value, item[0][2]))
        return Stats(
            tuple(MemoryCount(kind, state, shared, count) for (kind, state, shared), count in ordered),
            max((memory.create_time for memory in memories), default=None),
            sum(len(memory.content.encode()) for memory in memories),
        )

    def _live(self, owner: Owner, now: datetime) -> list[Memory]:
        memories = [entry.memory for entry in self._entries.values() if entry.memory.owner == owner]
        live = [memory for memory in memories if memory.state_at(now) is State.LIVE]
        return sorted(live, key=lambda memory: memory.create_time)

    async def same_text(self, owner: Owner, digest: bytes, now: datetime) -> list[Memory]:
        found = (memory for memory in self._live(owner, now) if text_digest(memory.content) == digest)
        return list(islice(found, limits.MOST_ALIKE))

    async def of_key(self, owner: Owner, key: str, now: datetime) -> list[Memory]:
        return [memory for memory in self._live(owner, now) if memory.key == key]

    async def nearest(
        self,
        visible: Visibility,
        vector: NDArray[np.float32],
        fingerprint: str,
        wanted: Filter,
        *,
        now: datetime,
        limit: int,
    ) -> list[tuple[Memory, float]]:
        found = []
        for memory in self._visible(visible):
            entry = self._entries[memory.id]
            if entry.vector is not None and entry.fingerprint == fingerprint and wanted.admits(memory, now):
                found.append((memory, float(entry.vector @ vector)))
        found.sort(key=lambda hit: (-hit[1], hit[0].create_time))
        return found[:limit]

    def read_owner(self, owner: Owner, build: Callable[[Snapshot], T]) -> T:
        entries = [e for e in self._entries.values() if e.memory.owner == owner and e.memory.delete_time is None]
        entries.sort(key=lambda entry: entry.memory.create_time)
        chunks = (entries[n : n + CHUNK] for n in range(0, len(entries), CHUNK))
        size = sum(len(e.memory.content.encode()) + len(e.terms) for e in entries)
        named = [entity for entity in self._named.values() if entity.owner == owner]
        stones = frozenset(stone.digest for stone in self._tombstones if stone.owner == owner)
        seq = self._recent.heads.of(owner).commit_seq
        return build(Snapshot(seq, len(entries), size, lambda _: chunks, named, stones))

    async def collectable(self, graces: Graces, *, limit: int) -> tuple[GcReport, list[Memory]]:
        over = [entry.memory for entry in self._entries.values() if graces.are_over(entry.memory)]
        deleted = [memory for memory in over if memory.delete_time is not None]
        superseded = [m for m in over if m.delete_time is None and m.supersede_time is not None]
        expired = [m for m in over if m.delete_time is None and m.supersede_time is None]
        requests = sum(request.create_time < graces.requests_before for request in self._requests.values())
        report = GcReport(len(expired), len(superseded), len(deleted), requests)
        return report, (deleted + superseded + expired)[:limit]

    async def misdated(self, after: datetime, *, limit: int) -> list[Memory]:
        memories = (entry.memory for entry in self._entries.values())
        return [m for m in memories if any(t and t > after for t in (m.delete_time, m.supersede_time))][:limit]

    async def grants(self) -> list[Grant]:
        return sorted(self._grants.values(), key=lambda grant: (grant.create_time, grant.id))

    async def token_keys(self) -> list[TokenKey]:
        return sorted(self._token_keys, key=lambda key: (key.create_time, key.id))

    async def usage(self, grant_id: str, day: date) -> GrantUsage:
        found = [entry.memory for entry in self._entries.values() if entry.memory.grant_id == grant_id]
        said = sum(message.text_bytes for message in self._said.values() if message.grant_id == grant_id)
        return GrantUsage(
            sum(memory.create_time.date() == day for memory in found),
            len(found),
            sum(memory.text_bytes for memory in found) + said + self.text_bytes_of(grant_id),
        )

    async def of_grant(
        self, grant_id: str, *, limit: int, after: Cursor | None = None, deleted: bool = False
    ) -> list[Memory]:
        found = [
            entry.memory
            for entry in self._entries.values()
            if entry.memory.grant_id == grant_id and (deleted or entry.memory.delete_time is None)
        ]
        found.sort(key=lambda memory: (memory.create_time, memory.id), reverse=True)
        return _past(found, after)[:limit]

    async def naming(self, owner: Owner, entity_ids: Iterable[str]) -> list[Memory]:
        wanted = set(entity_ids)
        found = [
            entry.memory
            for entry in self._entries.values()
            if entry.memory.owner == owner and any(m.entity_id in wanted for m in entry.memory.mentions)
        ]
        return sorted(found, key=lambda memory: (memory.create_time, memory.id), reverse=True)

    async def is_named(self, owner: Owner, entity_ids: Collection[str], *, but: Collection[str]) -> bool:
        return any(
            {mention.entity_id, mention.same_as} & {*entity_ids}
            for entry in self._entries.values()
            if entry.memory.owner == owner and entry.memory.id not in but
            for mention in entry.memory.mentions
        )

    async def entities(self, owner: Owner) -> list[Entity]:
        return sorted((e for e in self._named.values() if e.owner == owner), key=lambda entity: entity.id)

    async def tombstones(self, owner: Owner, digests: Sequence[bytes]) -> frozenset[bytes]:
        return frozenset(digest for digest in digests if Tombstone(owner, digest) in self._tombstones)

    async def live_page(self, *, limit: int, after: str = "") -> list[Memory]:
        found = [entry.memory for memory_id, entry in sorted(self._entries.items()) if memory_id > after]
        return [m for m in found if m.delete_time is None and m.supersede_time is None][:limit]

    async def unembedded(self, fingerprint: str, *, limit: int, after: str = "") -> list[Memory]:
        found = sorted(memory_id for memory_id, entry in self._entries.items() if entry.fingerprint != fingerprint)
        return [self._entries[memory_id].memory for memory_id in found if memory_id > after][:limit]

    async def traces(self, text: str) -> list[str]:
        found = any(text in str(asdict(entry)) for entry in self._entries.values())
        return ["memories.content"] if found else []

    async def unenriched(self, *, limit: int) -> list[Memory]:
        return in_turns_of_owners(self._unenriched())[:limit]

    async def unenriched_count(self) -> int:
        return len(self._unenriched())

    def _unenriched(self) -> list[Memory]:
        return [
            entry.memory
            for entry in self._entries.values()
            if entry.memory.kind is Kind.FACT
            and entry.memory.enrich_time is None
            and entry.memory.delete_time is None
            and entry.memory.supersede_time is None
        ]

    async def compact(self) -> Compaction:
        return Compaction(0, 0, timedelta(0))

    def files(self) -> list[Path]:
        return []

    def backups(self) -> list[str]:
        return []

    async def note_recalls(self, recalls: Mapping[Owner, Mapping[str, Recalled]]) -> None:
        flat = [(owner, *one) for owner, noted in recalls.items() for one in noted.items()]
        for owner, memory_id, (time, count, trusted) in flat:
            entry = self._entries.get(memory_id)
            if entry is not None and entry.memory.owner == owner:
                memory = replace(
                    entry.memory,
                    recall_time=time,
                    recall_count=entry.memory.recall_count + count,
                    trusted_recall_time=trusted or entry.memory.trusted_recall_time,
                )
                self._entries[memory_id] = replace(entry, memory=memory)

    async def info(self) -> StoreInfo:
        return StoreInfo(
            path=":memory:",
            store_id=self._id,
            schema_version=0,
            commit_seq=self._seq,
            store_bytes=0,
            memory_count=len(self._entries),
            fingerprints=Counter(entry.fingerprint for entry in self._entries.values()),
            newest_create_time=self._newest,
            secret=self._secret,
        )

    async def ping(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")

    async def close(self) -> None:
        self._closed = True


def _past(memories: list[Memory], after: Cursor | None) -> list[Memory]:
    if after is None:
        return memories
    return [memory for memory in memories if (memory.create_time, memory.id) < (after.create_time, after.id)]


def _gone_with(change: ChangeSet) -> Callable[[Name], bool]:
    """Return what says whether a name is of what a change erases."""
    memories = {(memory.owner, memory.id) for memory in change.purges}
    talk = change.conversation
    threads = set() if talk is None else {(one.owner, one.id) for one in talk.purge_threads}
    messages = set() if talk is None else {(one.owner, one.thread_id, one.id) for one in talk.purge_messages}

    def is_gone(name: Name) -> bool:
        if name.owner == change.purge_owner:
            return True
        if name.thread_id:
            place = name.owner, name.thread_id
            return place in threads or (*place, name.id) in messages
        return (name.owner, name.id) in memories

    return is_gone


def _entries_after(known: dict[str, Entry], change: ChangeSet) -> dict[str, Entry]:
    """Return the memories after a change; Unavailable if one that is added is there already."""
    entries = dict(known)
    for entry in change.inserts:
        if entry.memory.id in entries:
            raise Unavailable(f"memory {entry.memory.id} exists already")
        entries[entry.memory.id] = entry
    for entry in change.updates:
        old = entries.get(entry.memory.id)
        if old is not None:
            memory = replace(
                entry.memory,
                recall_time=old.memory.recall_time,
                recall_count=old.memory.recall_count,
                trusted_recall_time=old.memory.trusted_recall_time,
            )
            entries[memory.id] = replace(old, memory=memory, terms=entry.terms)
    for embedding in change.embeddings:
        known_as = entries.get(embedding.memory_id)
        if known_as is not None:
            entries[embedding.memory_id] = embedding.given_to(known_as)
    for memory in change.purges:
        entries.pop(memory.id, None)
    return entries
