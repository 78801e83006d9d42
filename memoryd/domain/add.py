"""Remembering: embed first, then decide under the owner's lock, write one change set, and answer when it is durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memoryd.change import ChangeSet, Entry, RecordedRequest
from memoryd.checks import text_digest
from memoryd.domain.judge import Verdict, judge, memory_of
from memoryd.domain.ports import Ports
from memoryd.domain.requests import Once, memory_now, once
from memoryd.domain.settle import settle
from memoryd.errors import MemorydError
from memoryd.index.analysis import analyse, embedded_text, indexed_text
from memoryd.index.scope import ScopeIndex
from memoryd.model import AddResult, Caller, Draft, Memory, Outcome, Owner, State

__all__ = ["add", "add_batch"]

T = TypeVar("T")
Vector = NDArray[np.float32]
INLINE_CHARACTERS = 8_000  # of text that is analysed on the loop (≤ 1 ms); more goes to a thread


async def add(draft: Draft, caller: Caller, ports: Ports, *, now: datetime, request_id: str = "") -> AddResult:
    """Store one statement; see AddMemory in the contract."""
    embedding = _Embedding()

    async def work() -> list[AddResult]:
        async with once(ports, caller, "AddMemory", request_id, draft) as request:
            return await _offer([draft], caller, ports, request, embedding, now=now)

    return (await settle(work(), left=embedding.give_up))[0]


async def add_batch(
    drafts: Sequence[Draft], caller: Caller, ports: Ports, *, now: datetime, request_id: str = ""
) -> list[AddResult]:
    """Store statements in order and in one transaction; see BatchAddMemories in the contract."""
    embedding = _Embedding()

    async def work() -> list[AddResult]:
        async with once(ports, caller, "BatchAddMemories", request_id, tuple(drafts)) as request:
            return await _offer(drafts, caller, ports, request, embedding, now=now, batch=True)

    return await settle(work(), left=embedding.give_up)


class _Embedding:
    """The part of an add that is given up when its caller goes; all that comes after it is carried out."""

    def __init__(self) -> None:
        self._work: asyncio.Future[list[Vector | None]] | None = None
        self._given_up = False

    def give_up(self) -> None:
        """Embed nothing more."""
        self._given_up = True
        if self._work is not None:
            self._work.cancel()

    def check(self) -> None:
        """Raise CancelledError if the caller has gone: what is not decided yet need not be."""
        if self._given_up:
            raise asyncio.CancelledError

    async def of(self, drafts: Sequence[Draft], caller: Caller, ports: Ports) -> list[Vector | None]:
        """Return a vector a statement, or None where none is to be searched."""
        self.check()
        if ports.vector_refusal:  # vectors of a second model would keep the first from being searched for good
            return [None] * len(drafts)
        texts = [embedded_text(draft.source.speaker, draft.content) for draft in drafts]
        self._work = asyncio.ensure_future(ports.embedder.documents(texts, caller=caller.turn))
        return await self._work


async def _offer(
    drafts: Sequence[Draft],
    caller: Caller,
    ports: Ports,
    request: Once,
    embedding: _Embedding,
    *,
    now: datetime,
    batch: bool = False,
) -> list[AddResult]:
    owners = [_named(n, batch, partial(caller.writes_to, shared=draft.shared)) for n, draft in enumerate(drafts)]
    earlier = await request.earlier()
    if earlier is not None:
        return await _again(earlier, caller, ports, now)
    for n, draft in enumerate(drafts):
        _named(n, batch, partial(draft.expiry, now))
    if caller.agent_id in ports.policy.disabled_agents:
        return await _decline("disabled", drafts, ports, request, now)
    vectors = await embedding.of(drafts, caller, ports)
    return await _decide(drafts, owners, vectors, caller, ports, request, embedding.check, now=now, batch=batch)


def _named(position: int, batch: bool, check: Callable[[], T]) -> T:
    """Return what a check returns; its error names the item of the batch."""
    try:
        return check()
    except MemorydError as error:
        raise error.within(f"requests[{position}].") if batch else error from None


async def _decide(
    drafts: Sequence[Draft],
    owners: Sequence[Owner],
    vectors: Sequence[Vector | None],
    caller: Caller,
    ports: Ports,
    request: Once,
    check_wanted: Callable[[], None],
    *,
    now: datetime,
    batch: bool,
) -> list[AddResult]:
    """Judge the statements one after the other and write what follows from it."""
    locks: list[Any] = list(owners)
    if caller.quota.stored_memories or caller.quota.stored_bytes:
        locks.append(("grant", caller.grant_id))  # its chats count together
    async with ports.owner_locks.hold(locks):
        check_wanted()
        indexes = {owner: await ports.indexes.get(owner) for owner in dict.fromkeys(owners)}
        offers = _Offers(ports, indexes, now)
        outcomes = []
        for n, (draft, owner) in enumerate(zip(drafts, owners, strict=True)):
            try:
                outcomes.append(await offers.consider(draft, owner, caller, vectors[n]))
            except MemorydError as error:
                raise error.within(f"requests[{n}].") if batch else error from None
        change = await offers.change(request.record(tuple(outcomes), now))
        ports.check_grant(caller.grant_id, now)  # it may have been revoked while this call waited
        await ports.store.commit(change)
        ports.usage.grew(caller.grant_id, offers.grown())
    return [
        AddResult(outcome, offers.memory(memory_id).as_of(now), details)
        if outcome is not Outcome.REJECTED
        else AddResult(outcome, None, rejection="".join(details))
        for memory_id, outcome, details in outcomes
    ]


async def _decline(reason: str, drafts: Sequence[Draft], ports: Ports, request: Once, now: datetime) -> list[AddResult]:
    """Store nothing, say why, and say the same when asked again."""
    noted = request.record(tuple(("", Outcome.REJECTED, (reason,)) for _ in drafts), now)
    if noted is not None:
        await ports.store.commit(ChangeSet(request=noted))
    return [AddResult(Outcome.REJECTED, None, rejection=reason) for _ in drafts]


async def _again(earlier: RecordedRequest, caller: Caller, ports: Ports, now: datetime) -> list[AddResult]:
    results = []
    for memory_id, outcome, details in earlier.outcomes:
        if outcome is None or outcome is Outcome.REJECTED:
            results.append(AddResult(Outcome.REJECTED, None, rejection="".join(details)))
        else:
            memory = await memory_now(ports, caller.visibility, memory_id, now)
            results.append(AddResult(outcome, memory, details))
    return results


class _Offers:
    """The statements of one call: each is judged beside what is stored and beside those before it."""

    def __init__(self, ports: Ports, indexes: dict[Owner, ScopeIndex | None], now: datetime) -> None:
        self._ports = ports
        self._indexes = indexes
        self._now = now
        self._new: dict[str, Entry] = {}
        self._added_bytes = self._grown_bytes = 0  # of the caller's grant
        self._pending: dict[str, Memory] = {}  # new and changed, in the form they will have
        self._of_name: dict[tuple[Owner, str | bytes], list[str]] = {}  # pending ids by key, and by text digest

    async def _of_key(self, owner: Owner, key: str) -> list[Memory]:
        index = self._indexes[owner]
        known = await self._ports.store.of_key(owner, key, self._now) if index is None else index.of_key(key, self._now)
        return self._as_pending(owner, known, key)

    async def _same_text(self, owner: Owner, digest: bytes) -> list[Memory]:
        index = self._indexes[owner]
        if index is None:
            known = await self._ports.store.same_text(owner, digest, self._now)
        else:
            known = index.same_text(digest, self._now)
        return self._as_pending(owner, known, digest)

    def _as_pending(self, owner: Owner, known: list[Memory], name: str | bytes) -> list[Memory]:
        """Return the known memories as this call has left them, and those of this call under the same name."""
        stored = [memory for memory in known if memory.id not in self._pending]
        pending = [self._pending[memory_id] for memory_id in self._of_name.get((owner, name), ())]
        return stored + [memory for memory in pending if memory.state_at(self._now) is State.LIVE]

    def _remember(self, memory: Memory, digest: bytes | None = None) -> None:
        known = memory.id in self._pending
        self._pending[memory.id] = memory
        if not known:
            digest = digest or text_digest(memory.content)
            self._of_name.setdefault((memory.owner, digest), []).append(memory.id)
        if memory.key and memory.id not in self._of_name.get((memory.owner, memory.key), ()):
            self._of_name.setdefault((memory.owner, memory.key), []).append(memory.id)

    async def consider(
        self, draft: Draft, owner: Owner, caller: Caller, vector: Vector | None
    ) -> tuple[str, Outcome, tuple[str, ...]]:
        """
        Judge one statement; return the id of the memory that says it, the outcome, and what it superseded.

        Of a rejected one there is no id, and the reason.
        """
        ports = self._ports
        digest = text_digest(draft.content)
        of_key = await self._of_key(owner, draft.key) if draft.key else []
        same_text = await self._same_text(owner, digest)
        # nothing is awaited from here to take(), so that no two memories get one time
        time = ports.stamps.peek(self._now)
        new = memory_of(draft, owner, ports.new_id(), time, trust=caller.trust, grant_id=caller.grant_id)
        verdict = judge(draft, new, digest, of_key=of_key, same_text=same_text, now=time)
        if caller.grant_id and not self._has_room(verdict, (*of_key, *same_text), caller):
            return "", Outcome.REJECTED, ("quota",)
        for memory in verdict.changed:
            self._remember(memory)
        if verdict.new is not None:
            ports.stamps.take(time)
            self._new[new.id] = Entry(verdict.new, "", vector, ports.embedder.fingerprint if vector is not None else "")
            self._remember(verdict.new, digest)
        return verdict.memory.id, verdict.outcome, verdict.superseded_ids

    def _has_room(self, verdict: Verdict, known: Iterable[Memory], caller: Caller) -> bool:
        """Whether the caller's grant may store what follows from a verdict, beside the rest of this call."""
        quota, stored = caller.quota, self._ports.usage.of(caller.grant_id)
        sizes = {memory.id: memory.text_bytes for memory in known}
        grows = sum(
            memory.text_bytes - sizes.get(memory.id, 0)
            for memory in verdict.changed
            if memory.grant_id == caller.grant_id
        )
        count = len(self._new) + (verdict.new is not None)
        size = self._added_bytes + grows + (verdict.new.text_bytes if verdict.new is not None else 0)
        if quota.stored_memories and verdict.new is not None and stored.stored_memories + count > quota.stored_memories:
            return False
        if quota.stored_bytes and size > self._added_bytes and stored.stored_bytes + size > quota.stored_bytes:
            return False
        self._added_bytes = size
        self._grown_bytes += grows
        return True

    def grown(self) -> int:
        """Return by how many bytes the call has made memories larger that were there."""
        return self._grown_bytes

    def memory(self, memory_id: str) -> Memory:
        """Return a memory of this call in its final form."""
        return self._pending[memory_id]

    async def change(self, request: RecordedRequest | None) -> ChangeSet:
        """Return all that this call writes."""
        memories = list(self._pending.values())
        if sum(len(memory.content) for memory in memories) <= INLINE_CHARACTERS:
            terms = _terms(memories)
        else:
            terms = await asyncio.to_thread(_terms, memories)
        inserts, updates = [], []
        for memory, words in zip(memories, terms, strict=True):
            entry = self._new.get(memory.id)
            if entry is None:
                updates.append(Entry(memory, words))
            else:
                inserts.append(Entry(memory, words, entry.vector, entry.fingerprint))
        return ChangeSet(inserts=tuple(inserts), updates=tuple(updates), request=request)


def _terms(memories: Sequence[Memory]) -> list[str]:
    return [" ".join(analyse(indexed_text(memory))) for memory in memories]
