"""Remembering: embed first, then decide under the owner's lock, write one change set, and answer when it is durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.completion import settle
from memoryd.domain.idempotency import Once, memory_now, once
from memoryd.domain.ports import Ports
from memoryd.domain.reading.showing import shown_one
from memoryd.domain.writing.session import INLINE_CHARACTERS, Offers
from memoryd.errors import MemorydError
from memoryd.index.analysis import embedded_text
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, RecordedRequest
from memoryd.model.memory import Draft, Memory, Outcome
from memoryd.model.results import AddResult
from memoryd.model.scope import Owner

__all__ = ["add", "add_batch", "again"]

T = TypeVar("T")
Vector = NDArray[np.float32]


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
        if not drafts:
            return []
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
    if sum(len(draft.content) for draft in drafts) > INLINE_CHARACTERS:
        held = await asyncio.to_thread(lambda: [holds_secret(draft, ports) for draft in drafts])
    else:
        held = [holds_secret(draft, ports) for draft in drafts]
    declined = {n: "secret" for n, secret in enumerate(held) if secret}
    disabled = caller.agent_id in ports.policy.disabled_agents
    wanted = [] if disabled else [draft for n, draft in enumerate(drafts) if n not in declined]
    invalid = _expired(drafts, now, batch=batch)
    embedded = asyncio.ensure_future(embedding.of([] if invalid else wanted, caller, ports))
    try:
        earlier = await request.earlier()  # while it is embedded
        if earlier is not None:
            return await again(earlier, caller, ports, now)
        if invalid is not None:
            raise invalid
        made = iter(await embedded)
    finally:
        embedded.cancel()
    if disabled:
        return await decline("disabled", len(drafts), ports, request, now)
    vectors = [None if n in declined else next(made) for n in range(len(drafts))]
    return await _decide(
        drafts, owners, vectors, declined, caller, ports, request, embedding.check, now=now, batch=batch
    )


def _expired(drafts: Sequence[Draft], now: datetime, *, batch: bool) -> MemorydError | None:
    """Return what is wrong with the expiry of a statement; of one that was stored before it does not matter now."""
    try:
        for n, draft in enumerate(drafts):
            _named(n, batch, partial(draft.expiry, now))
    except MemorydError as error:
        return error
    return None


def holds_secret(draft: Draft, ports: Ports) -> bool:
    """Whether a statement holds a credential, in any text of it; a fault of the detector refuses nothing."""
    held = False
    with ports.faults.spared("looking for credentials"):
        held = ports.secrets(_texts_of(draft))
    return held  # noqa: RET504  a fault leaves it as it was


def _texts_of(draft: Draft) -> tuple[str, ...]:
    source = draft.source
    return (
        draft.content,
        *draft.subjects,
        *draft.tags,
        draft.category,
        draft.key,
        source.speaker,
        source.channel,
        source.thread_id,
        source.session_id,
        *source.message_ids,
        *(f"{k}: {v}" for k, v in draft.metadata.items()),
    )


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
    declined: Mapping[int, str],
    caller: Caller,
    ports: Ports,
    request: Once,
    check_wanted: Callable[[], None],
    *,
    now: datetime,
    batch: bool,
) -> list[AddResult]:
    """Judge the statements one after the other and write what follows from it."""
    async with ports.owner_locks.hold(locks_of(caller, owners)):
        check_wanted()
        indexes = {owner: await ports.indexes.get(owner) for owner in dict.fromkeys(owners)}
        offers = Offers(ports, indexes, now, count=len(drafts))
        outcomes: list[tuple[str, Outcome | None, tuple[str, ...]]] = []
        try:
            for n, (draft, owner) in enumerate(zip(drafts, owners, strict=True)):
                if n:
                    await asyncio.sleep(0)  # a batch takes its time; others get theirs
                try:
                    outcomes.append(
                        ("", Outcome.REJECTED, (declined[n],))
                        if n in declined
                        else await offers.consider(draft, owner, caller, vectors[n])
                    )
                except MemorydError as error:
                    raise error.within(f"requests[{n}].") if batch else error from None
        finally:
            offers.end()
        change = await offers.change(request.record(tuple(outcomes), now))
        ports.check_grant(caller.grant_id, now)  # it may have been revoked while this call waited
        await ports.store.commit(change)
        ports.usage.grew(caller.grant_id, offers.grown())
        ids = [memory_id for memory_id, _, _ in outcomes]
        return [
            await result_of(outcome, offers, caller, ports, now, later_ids=ids[n + 1 :])
            for n, outcome in enumerate(outcomes)
        ]


def locks_of(caller: Caller, owners: Sequence[Owner]) -> list[Any]:
    """Return what to hold while a caller's statements are decided."""
    if caller.quota.stored_memories or caller.quota.stored_bytes:
        return [*owners, ("grant", caller.grant_id)]  # its chats count together
    return list(owners)


async def result_of(
    recorded: tuple[str, Outcome | None, tuple[str, ...]],
    offers: Offers,
    caller: Caller,
    ports: Ports,
    now: datetime,
    *,
    later_ids: Sequence[str] = (),
) -> AddResult:
    """Return what became of a statement, with its memory as an answer shows it; `later_ids` are of the same call."""
    memory_id, outcome, details = recorded
    if outcome is None or outcome is Outcome.REJECTED:
        return AddResult(Outcome.REJECTED, None, rejection="".join(details))
    memory = offers.memory(memory_id)
    return AddResult(outcome, await shown_one(memory, caller, ports, now), details, _contested_ids(memory, later_ids))


def _contested_ids(memory: Memory, later_ids: Sequence[str]) -> tuple[str, ...]:
    """Return what a statement contests of all before it; a contest of two items of a call is told of the later one."""
    return tuple(one for one in memory.contested_with if one not in later_ids)


async def decline(reason: str, count: int, ports: Ports, request: Once, now: datetime) -> list[AddResult]:
    """Store nothing, say why, and say the same when asked again."""
    noted = request.record(tuple(("", Outcome.REJECTED, (reason,)) for _ in range(count)), now)
    if noted is not None:
        await ports.store.commit(ChangeSet(request=noted))
    return [AddResult(Outcome.REJECTED, None, rejection=reason) for _ in range(count)]


async def again(earlier: RecordedRequest, caller: Caller, ports: Ports, now: datetime) -> list[AddResult]:
    """Return what became of the statements of an earlier call with the same id, as the memories are now."""
    results = []
    ids = [memory_id for memory_id, _, _ in earlier.outcomes]
    for n, (memory_id, outcome, details) in enumerate(earlier.outcomes):
        if outcome is None or outcome is Outcome.REJECTED:
            results.append(AddResult(Outcome.REJECTED, None, rejection="".join(details)))
        else:
            memory = await memory_now(ports, caller.visibility, memory_id, now)
            told = None if memory is None else await shown_one(memory, caller, ports, now)
            contested = _contested_ids(memory, ids[n + 1 :]) if memory is not None else ()
            results.append(AddResult(outcome, told, details, contested))
    return results
