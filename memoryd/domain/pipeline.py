"""
The way of every write, in one order of steps:

1. idempotency: a request id that was carried out gets its first answer again;
2. preparation: secrets are looked for and texts are embedded, while step 1 reads the store;
3. locks: decisions about one owner come one after the other;
4. decision: what is written, on the owners as they are now;
5. grant: it still counts, at every daemon, or nothing is written;
6. commit, as one change set for each owner in one transaction; then the answer.

Where others have changed an owner or grants between steps 3 and 6 (Contended), all begins again with step 1. So nothing
has an effect before the commit: no create time is taken, nothing is counted.

A use case is a `Write`, or calls `decide_and_commit` (steps 3 to 6) where there is nothing to prepare or to repeat.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, TypeVar

from memoryd.domain.completion import committing, raise_if_abandoned
from memoryd.domain.idempotency import IdempotentRequest, idempotent
from memoryd.domain.ports import Ports
from memoryd.errors import Conflict, Contended, LimitExceeded, NotFound
from memoryd.knowledge.text_traits import stored_traits
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, RecordedRequest
from memoryd.model.scope import Owner
from memoryd.turns import in_turns

__all__ = ["Decision", "Write", "answering", "carry_out", "decide_and_commit", "no_answer"]

T = TypeVar("T")
SIGNS_OF_A_REPETITION = (Contended, Conflict, LimitExceeded)
"""What a write may meet that was carried out before: its id is taken, or what it asks for is there already."""
ATTEMPTS = 32
"""
Of a write where others change its owners; each time one of them has got on.

Of three daemons that write to one scope without a rest each loses two rounds of three: with eight attempts four
calls of 100 would fail, with so many two of a million.
"""


@dataclass(frozen=True, slots=True)
class Decision(Generic[T]):
    """What a write has decided: the change set (None: nothing is written), and what answers once it is committed."""

    change: ChangeSet | None
    answer: Callable[[], Awaitable[T]]


async def no_answer() -> None:
    """Answer nothing: the write is a part of a longer piece of work."""


def answering(value: T) -> Callable[[], Awaitable[T]]:
    """Return what answers with a value that is known when the write is decided."""

    async def answer() -> T:
        return value

    return answer


class Write(ABC, Generic[T]):
    """A use case that writes; `carry_out` calls its steps in order."""

    method: str
    """The RPC: a request id counts for one method."""
    is_looked_up_first = True
    """Whether a request id is looked up before the decision. If not, its first call is committed without: the store
    refuses an id that is taken, and then all begins again with step 1. Saves a read where preparation takes no time."""

    def __init__(self, caller: Caller, ports: Ports, now: datetime) -> None:
        """Take who writes, what may be reached, and the time of the call."""
        self.caller, self.ports, self.now = caller, ports, now

    @property
    @abstractmethod
    def payload(self) -> object:
        """What was asked for, in values: another payload under the same request id is refused."""

    async def replay(self, earlier: RecordedRequest) -> T:
        """Return the answer to a request that was carried out before."""
        raise NotFound(f"what {earlier.method} did is no longer known", field="request_id")

    async def prepare(self) -> None:
        """Do what needs no lock; an earlier call with the same request id makes its outcome irrelevant."""

    @abstractmethod
    def locks(self) -> Iterable[Any]:
        """Return what to hold while it is decided: owners, and what else several owners count together."""

    @abstractmethod
    async def decide(self, request: IdempotentRequest) -> Decision[T]:
        """Return what is written, with the note of the request in it. The locks are held; nothing is changed yet."""


async def carry_out(write: Write[T], *, request_id: str = "") -> T:
    """Carry a write out, once for each request id."""
    async with idempotent(write.ports, write.caller, write.method, request_id, write.payload) as request:
        if request_id and not write.is_looked_up_first and not request.was_seen:
            with contextlib.suppress(*SIGNS_OF_A_REPETITION):
                return await _carry_out_once(write, request, may_be_known=False)
        return await _until_committed(lambda: _carry_out_once(write, request, may_be_known=bool(request_id)))


async def _carry_out_once(write: Write[T], request: IdempotentRequest, *, may_be_known: bool) -> T:
    if not may_be_known:
        await write.prepare()
    else:
        preparing = asyncio.ensure_future(write.prepare())
        try:
            earlier = await request.earlier()
            if earlier is not None:
                return await write.replay(earlier)
            await preparing
        finally:
            await _give_up(preparing)
    keys = frozenset(write.locks())
    return await _decide_once(keys, lambda: write.decide(request), write.ports, write.now, write.caller.grant_id)


async def _until_committed(attempt: Callable[[], Awaitable[T]]) -> T:
    """Try until no one else comes between; Contended where others do so all the time."""
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(Contended):
            return await attempt()
    return await attempt()


async def _give_up(preparing: asyncio.Future[None]) -> None:
    """End a preparation whose outcome no one needs."""
    if not preparing.done():
        preparing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([preparing])
    if not preparing.cancelled():
        preparing.exception()  # marked as seen


async def decide_and_commit(
    locks: Iterable[Any], decide: Callable[[], Awaitable[Decision[T]]], ports: Ports, *, now: datetime, grant_id: str
) -> T:
    """
    Decide under the locks, commit if the grant still counts, and answer; "" is no grant, but the host or the daemon.

    Raises, with nothing written, Unauthenticated where the grant was revoked while the call waited, and Contended where
    others change the owners all the time.
    """
    keys = frozenset(locks)
    return await _until_committed(lambda: _decide_once(keys, decide, ports, now, grant_id))


async def _decide_once(
    locks: Collection[Any], decide: Callable[[], Awaitable[Decision[T]]], ports: Ports, now: datetime, grant_id: str
) -> T:
    async with ports.shared.locks.hold(locks):
        raise_if_abandoned()
        based_on = {
            owner: (await ports.store.commits.memories.head(owner)).commit_seq
            for owner in locks
            if isinstance(owner, Owner)
        }
        decided = await decide()
        if decided.change is not None:
            change = await _with_traits(decided.change)
            seen = await ports.guards.grants.admit(grant_id, now)
            first, *more = _based(change, based_on)
            with committing():
                await ports.store.commits.write(replace(first, grants_seen=seen), *more)
        return await decided.answer()


async def _with_traits(change: ChangeSet) -> ChangeSet:
    """Return a change with what ranking reads of its texts: a store reads no language."""
    talk = change.conversation
    if talk is not None and talk.messages:
        new_messages = [
            new_message._replace(traits=stored_traits(new_message.message.as_memory()))
            async for new_message in in_turns(talk.messages)
        ]
        change = replace(change, conversation=replace(talk, messages=tuple(new_messages)))
    if change.inserts or change.updates:
        inserts = [replace(entry, traits=stored_traits(entry.memory)) async for entry in in_turns(change.inserts)]
        updates = [replace(entry, traits=stored_traits(entry.memory)) async for entry in in_turns(change.updates)]
        change = replace(change, inserts=tuple(inserts), updates=tuple(updates))
    return change


def _based(change: ChangeSet, based_on: Mapping[Owner, int]) -> tuple[ChangeSet, ...]:
    """Return the change sets of a decision, each with the commit that it was decided on."""
    # a request is noted besides what is decided; threads and notes have locks and revisions of their own
    others = replace(change, request=None, conversation=None, notes=()).owners - based_on.keys()
    if others:
        raise ValueError(f"a decision changes {len(others)} owners that it has not locked")
    return change.by_owner(based_on)
