"""Adding statements: one, or a batch in one transaction; and correcting one, which adds what replaces it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.completion import abandonable
from memoryd.domain.decay import REFLECTION
from memoryd.domain.idempotency import IdempotentRequest, memory_now, statements_of
from memoryd.domain.pipeline import Decision, Write, answering, carry_out
from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.browse import find
from memoryd.domain.retrieval.presentation import present_one
from memoryd.domain.writing.session import WriteSession
from memoryd.errors import Conflict, InvalidArgument, TrustTooLow, in_part
from memoryd.index.analysis import embedded_text
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, RecordedRequest
from memoryd.model.embedding import Embedded
from memoryd.model.grant import GrantUsage
from memoryd.model.measures import Event
from memoryd.model.memory import Draft, Memory, State
from memoryd.model.receipt import AddReceipt, Rejection, StatementOutcome
from memoryd.model.results import AddResult
from memoryd.model.scope import Owner
from memoryd.model.validation import metadata_text
from memoryd.turns import in_turns

__all__ = ["LOOKED_AT_INLINE", "add", "add_batch", "check_changeable", "correct", "holds_secret", "texts_of"]

LOOKED_AT_INLINE = 2_000  # characters in which credentials are looked for on the loop (1 µs each at the worst)

T = TypeVar("T")
Vector = NDArray[np.float32]


async def add(draft: Draft, caller: Caller, ports: Ports, *, now: datetime, request_id: str = "") -> AddResult:
    """Store one statement; see AddMemory in the contract."""
    return (await carry_out(_Add([draft], caller, ports, now), request_id=request_id))[0]


async def add_batch(
    drafts: Sequence[Draft], caller: Caller, ports: Ports, *, now: datetime, request_id: str = ""
) -> list[AddResult]:
    """Store statements in order and in one transaction; see BatchAddMemories in the contract."""
    return await carry_out(_AddBatch(drafts, caller, ports, now), request_id=request_id)


async def correct(
    memory_id: str, content: str, caller: Caller, ports: Ports, *, now: datetime, request_id: str = ""
) -> AddResult:
    """Replace what a memory says; see CorrectMemory in the contract."""
    return (await carry_out(_Correct(memory_id, content, caller, ports, now), request_id=request_id))[0]


class _Statements(Write[list[AddResult]]):
    """What adding and correcting have in common."""

    def __init__(self, drafts: Sequence[Draft], caller: Caller, ports: Ports, now: datetime) -> None:
        super().__init__(caller, ports, now)
        self.drafts = drafts
        self._owners: list[Owner] = []
        self._declined: dict[int, Rejection] = {}
        self._embedded: list[Embedded | None] = []
        self._prepared: Sequence[Draft] = ()

    async def prepare(self) -> None:
        """Look for secrets, then embed what is left, once; what is wrong with an item is raised here."""
        if self._prepared == self.drafts and self.drafts:
            return  # it is decided again
        self._owners = self._each(lambda draft: self.caller.writes_to(shared=draft.shared))
        self._each(lambda draft: draft.expiry(self.now))
        if self.caller.trust.is_sandbox:
            self._each(_refuse_reserved)
        if not self.ports.policy.of(self.caller.agent_id).enabled:
            self._declined = dict.fromkeys(range(len(self.drafts)), Rejection.DISABLED)
        else:
            self._declined = dict.fromkeys(await self._with_secrets(), Rejection.SECRET)
        texts = [
            embedded_text(d.source.speaker, d.content) for n, d in enumerate(self.drafts) if n not in self._declined
        ]
        made: list[Embedded | None] = [None] * len(texts)
        if texts:
            embedding = self.ports.embedder.documents(texts, caller=self.caller.turn)
            made = list(await abandonable(embedding))
        each = iter(made)
        self._embedded = [None if n in self._declined else next(each) for n in range(len(self.drafts))]
        self._prepared = self.drafts

    async def _with_secrets(self) -> list[int]:
        """Return the positions of the statements that hold a credential; many are searched in a thread."""

        def positions() -> list[int]:
            return [n for n, draft in enumerate(self.drafts) if holds_secret(texts_of(draft), self.ports)]

        if sum(len(text) for draft in self.drafts for text in texts_of(draft)) > LOOKED_AT_INLINE:
            return await asyncio.to_thread(positions)
        return positions()

    @property
    def _is_counted(self) -> bool:
        """Whether the caller's grant may store so much and no more."""
        return bool(self.caller.quota.stored_memories or self.caller.quota.stored_bytes)

    async def _used(self) -> GrantUsage:
        """Return what came through the caller's grant, where there is a bound to it."""
        if not self._is_counted:
            return GrantUsage()
        return await self.ports.store.grants.usage(self.caller.grant_id, self.now.date())

    def locks(self) -> Iterable[Any]:
        """Return the owners; with them the grant, where its quota counts its chats together."""
        if self._is_counted:
            return [*self._owners, ("grant", self.caller.grant_id)]
        return self._owners

    async def decide(self, request: IdempotentRequest) -> Decision[list[AddResult]]:
        """Judge the statements one after the other; what follows from all of them is one change set."""
        if len(self._declined) == len(self.drafts):
            return await self._decline(request)
        indexes = {owner: await self.ports.indexes.get(owner) for owner in dict.fromkeys(self._owners)}
        heads = [await self.ports.store.commits.memories.head(owner) for owner in indexes]
        used = await self._used()
        session = WriteSession(self.ports, indexes, self.now, heads=heads, used=used, count=len(self.drafts))
        outcomes: list[StatementOutcome] = []
        try:
            async for n in in_turns(range(len(self.drafts))):
                if n in self._declined:
                    outcomes.append(StatementOutcome.rejected(self._declined[n]))
                else:
                    outcomes.append(await self._consider(n, session))
        finally:
            session.end()
        change = await session.change(request.record(AddReceipt(tuple(outcomes)), self.now))

        async def answer() -> list[AddResult]:
            for outcome in outcomes:
                self.ports.measures.count(Event.ADDED, outcome.outcome.value)
            return [
                await self._result(outcome, outcomes[n + 1 :], session.memory) for n, outcome in enumerate(outcomes)
            ]

        return Decision(change, answer)

    async def _consider(self, n: int, session: WriteSession) -> StatementOutcome:
        with self._part(n):
            return await session.consider(self.drafts[n], self._owners[n], self.caller, self._embedded[n])

    async def _decline(self, request: IdempotentRequest) -> Decision[list[AddResult]]:
        """Store nothing, say why, and say the same when asked again."""
        declined = tuple(StatementOutcome.rejected(self._declined[n]) for n in range(len(self.drafts)))
        noted = request.record(AddReceipt(declined), self.now)
        answer = answering([outcome.result() for outcome in declined])
        return Decision(ChangeSet(request=noted), answer)  # also without a note: a grant that has ended gets no answer

    async def replay(self, earlier: RecordedRequest) -> list[AddResult]:
        """Return what became of the statements, with their memories as they are now."""
        ports, visible = self.ports, self.caller.visibility
        outcomes = statements_of(earlier)
        ids = [outcome.memory_id for outcome in outcomes if outcome.memory_id]
        memories = {memory_id: await memory_now(ports.store, visible, memory_id) for memory_id in ids}
        return [await self._result(outcome, outcomes[n + 1 :], memories.get) for n, outcome in enumerate(outcomes)]

    async def _result(
        self, outcome: StatementOutcome, later: Sequence[StatementOutcome], memory_of: Callable[[str], Memory | None]
    ) -> AddResult:
        """
        Return what became of one statement, with its memory as an answer shows it.

        What it contests is told of all before it; a contest of two items of a call is told of the later one.
        """
        memory = memory_of(outcome.memory_id) if outcome.memory_id else None
        if memory is None:
            return outcome.result()
        later_ids = {other.memory_id for other in later}
        contested = tuple(known for known in memory.contested_with if known not in later_ids)
        return outcome.result(await present_one(memory, self.caller, self.ports, self.now), contested)

    def _each(self, check: Callable[[Draft], T]) -> list[T]:
        """Return what a check returns for each draft; its error names the item."""
        found = []
        for n, draft in enumerate(self.drafts):
            with self._part(n):
                found.append(check(draft))
        return found

    def _part(self, _: int) -> AbstractContextManager[None]:
        """Return in what errors of a draft name it."""
        return nullcontext()


class _Add(_Statements):
    method = "AddMemory"

    @property
    def payload(self) -> object:
        return self.drafts[0]


class _AddBatch(_Statements):
    method = "BatchAddMemories"

    @property
    def payload(self) -> object:
        return tuple(self.drafts)

    def _part(self, n: int) -> AbstractContextManager[None]:
        return in_part(f"requests[{n}]")


class _Correct(_Statements):
    method = "CorrectMemory"

    def __init__(self, memory_id: str, content: str, caller: Caller, ports: Ports, now: datetime) -> None:
        super().__init__((), caller, ports, now)
        self._memory_id, self._content = memory_id, content
        self._old: Memory | None = None

    @property
    def payload(self) -> object:
        return (self._memory_id, self._content)

    async def prepare(self) -> None:
        old = await find(self._memory_id, self.caller, self.ports.store)
        check_changeable(old, self.caller, self.now)
        draft = _correction(old, self._content, self.caller)
        if draft.content == old.content:
            raise InvalidArgument("content is what the memory says already", field="content")
        self._old, self.drafts = old, [draft]
        await super().prepare()
        self._owners = [old.owner]

    async def _consider(self, n: int, session: WriteSession) -> StatementOutcome:
        old = await find(self._old.id if self._old else "", self.caller, self.ports.store)  # as it is under the lock
        check_changeable(old, self.caller, self.now)
        return await session.consider(self.drafts[n], old.owner, self.caller, self._embedded[n], corrects=old)


def check_changeable(memory: Memory, caller: Caller, now: datetime) -> None:
    """Raise TrustTooLow for a memory of higher trust, Conflict for one that is not live."""
    if memory.trust.outranks(caller.trust):
        raise TrustTooLow("the memory is of higher trust, which is not changed from here; add a statement of your own")
    state = memory.state_at(now)
    if state is not State.LIVE:
        way = f"it was replaced by {memory.superseded_by}" if memory.superseded_by else "restore it first"
        way = "add it again" if state is State.EXPIRED else way
        raise Conflict(f"the memory is {state.value}; {way}", field="id")


def _correction(old: Memory, content: str, caller: Caller) -> Draft:
    """
    Return the statement that a correction offers: all of the old one but its words.

    Of one of lower trust only the kind and the scope: no label, key, speaker or time that a sandbox gave becomes the
    host's word.
    """
    if caller.trust.outranks(old.trust):
        return Draft(content=content, kind=old.kind, shared=old.scope.chat_id is not None)
    return Draft(
        content=content,
        kind=old.kind,
        shared=old.scope.chat_id is not None,
        subjects=old.subjects,
        tags=old.tags,
        category=old.category,
        metadata=old.metadata,
        key=old.key,
        source=replace(old.source, channel="user") if old.source.channel else old.source,
        event_time=old.own_event_time,
        decay_rate=old.decay_rate,
        expire_time=old.expire_time,
    )


def _refuse_reserved(draft: Draft) -> None:
    """Refuse what poses as a digest of the daemon's."""
    if draft.source.channel == REFLECTION:
        raise InvalidArgument(f"source.channel {REFLECTION!r} is the daemon's own", field="source.channel")
    if draft.key.startswith(f"{REFLECTION}:"):
        raise InvalidArgument(f"keys that begin with '{REFLECTION}:' are the daemon's own", field="key")


def holds_secret(texts: Sequence[str], ports: Ports) -> bool:
    """Whether any of some texts holds a credential; a fault of the detector refuses nothing."""
    held = False
    with ports.shared.faults.spared("looking for credentials"):
        held = ports.guards.secrets(texts)
    return held  # noqa: RET504  a fault leaves it as it was


def texts_of(draft: Draft) -> tuple[str, ...]:
    """Return every text of a draft that is stored."""
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
        *(f"{k}: {metadata_text(v)}" for k, v in draft.metadata.items()),
    )
