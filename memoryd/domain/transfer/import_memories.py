"""Importing statements of another system: with their ids and times, less trusted than the host, and judged later."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from memoryd.domain.completion import abandonable
from memoryd.domain.idempotency import IdempotentRequest
from memoryd.domain.pipeline import Decision, Write, carry_out
from memoryd.domain.ports import Ports
from memoryd.domain.transfer.erased import Made, ever_erased
from memoryd.domain.writing.add import LOOKED_AT_INLINE, holds_secret, texts_of
from memoryd.domain.writing.judge import memory_of
from memoryd.domain.writing.session import WriteSession
from memoryd.errors import InvalidArgument, in_part
from memoryd.index.analysis import embedded_text
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet
from memoryd.model.embedding import Embedded
from memoryd.model.erasure import ErasedKind, ErasedThing
from memoryd.model.grant import GrantUsage
from memoryd.model.imported import (
    IMPORT_CHANNEL,
    ImportDraft,
    ImportOutcome,
    ImportReport,
    ImportResult,
    imported_id,
)
from memoryd.model.memory import NO_STATEMENTS, Judgement, Memory
from memoryd.model.receipt import Rejection
from memoryd.model.times import EPOCH
from memoryd.model.trust import Trust
from memoryd.model.validation import check_batch, check_id
from memoryd.store.memories import MemorySelector
from memoryd.turns import in_turns

__all__ = ["import_memories"]

REPLACED = "it was replaced where it comes from"
EXPIRED = ImportResult(ImportOutcome.REJECTED, rejection="expired")


async def import_memories(
    items: Sequence[ImportDraft], import_id: str, caller: Caller, ports: Ports, *, now: datetime, dry_run: bool = False
) -> ImportReport:
    """Store statements of another system, or tell what would become of them; see ImportMemories in the contract."""
    write = _Import(items, import_id, replace(caller, trust=Trust.IMPORTED), ports, now, dry_run=dry_run)
    results = await carry_out(write)
    return ImportReport(tuple(results), dry_run=dry_run)


class _Import(Write[list[ImportResult]]):
    method = "ImportMemories"

    def __init__(
        self,
        items: Sequence[ImportDraft],
        import_id: str,
        caller: Caller,
        ports: Ports,
        now: datetime,
        *,
        dry_run: bool,
    ) -> None:
        super().__init__(caller, ports, now)
        self._items, self._dry_run = items, dry_run
        self._import_id = check_id(import_id, "import_id")
        if not self._import_id:
            raise InvalidArgument("import_id is empty; give the import a name", field="import_id")
        check_batch(len(items), "memories", "import")
        self._memories: list[Memory] = []
        self._settled: dict[int, ImportResult] = {}
        """What became of items that are neither embedded nor judged."""
        self._embedded: dict[int, Embedded] = {}
        self._is_prepared = False

    @property
    def payload(self) -> object:
        return ()  # no request id comes with it: an item is known by its own

    def locks(self) -> Iterable[Any]:
        return dict.fromkeys(memory.owner for memory in self._memories)

    async def prepare(self) -> None:
        """Look what is known and what is declined, and embed the rest, once."""
        if self._is_prepared:
            return  # it is decided again
        self._memories = [self._made(n, item) for n, item in enumerate(self._items)]
        await self._find_known()
        left = [n for n in range(len(self._items)) if n not in self._settled]
        if not self.ports.policy.of(self.caller.agent_id).enabled:
            self._decline(left, Rejection.DISABLED)
        else:
            self._decline(await self._with_secrets(left), Rejection.SECRET)
        left = [n for n in left if n not in self._settled]
        if left and not self._dry_run:
            texts = [embedded_text(self._memories[n].source.speaker, self._memories[n].content) for n in left]
            embedding = self.ports.embedder.documents(texts, caller=self.caller.turn)
            made = zip(left, await abandonable(embedding), strict=True)
            self._embedded = {n: embedded for n, embedded in made if embedded is not None}
        self._is_prepared = True

    def _made(self, n: int, item: ImportDraft) -> Memory:
        """Return the memory that an item becomes; its errors name it."""
        draft, now = item.draft, self.now
        with in_part(f"memories[{n}]"):
            owner = self.caller.writes_to(shared=draft.shared)
            undated = now + timedelta(microseconds=n)  # what has no time keeps its order
            created = item.create_time or min(undated, item.supersede_time or undated)
            for name, time in (("create_time", created), ("supersede_time", item.supersede_time)):
                if time is not None and time > now and item.create_time is not None:
                    raise InvalidArgument(f"{name} is in the future", field=name)
            memory_id = imported_id(owner, self._import_id, item.external_id)
            heir = imported_id(owner, self._import_id, item.superseded_by) if item.superseded_by else ""
            with in_part("memory"):
                ends = now if draft.expire_time is not None and draft.expire_time <= now else draft.expiry(now)
            endless = draft if ends is None else replace(draft, expire_time=None, expires_days=None)
            return replace(
                memory_of(endless, owner, memory_id, created),
                trust=self.caller.trust,
                source=replace(draft.source, channel=draft.source.channel or IMPORT_CHANNEL),
                expire_time=ends,
                import_id=self._import_id,
                external_id=item.external_id,
                judged=draft.kind in NO_STATEMENTS or item.supersede_time is not None,
                supersede_time=item.supersede_time,
                superseded_by=heir,
                judgement=None if item.supersede_time is None else Judgement("imported", REPLACED, heir),
                reinforce_time=now if item.supersede_time is None else None,
                supersede_trust=None if item.supersede_time is None else self.caller.trust,
            )

    async def _find_known(self) -> None:
        """Settle what came before, in this call too, and what is over."""
        places: dict[str, int] = {}
        for n, memory in enumerate(self._memories):
            if memory.id in places:
                with in_part(f"memories[{n}]"):
                    raise InvalidArgument(
                        f"external_id comes twice, also in memories[{places[memory.id]}]", field="external_id"
                    )
            places[memory.id] = n
            if memory.expire_time is not None and memory.expire_time <= self.now:
                self._settled[n] = EXPIRED
        self._settled |= await self._stored(range(len(self._memories)))
        left = [n for n in range(len(self._memories)) if n not in self._settled]
        is_erased = await ever_erased(self.ports) if left else None
        for n in left:
            memory = self._memories[n]
            if is_erased is not None and is_erased(_things_of(memory)):
                self._settled[n] = ImportResult(ImportOutcome.ERASED)

    def _decline(self, places: Iterable[int], why: Rejection) -> None:
        self._settled |= dict.fromkeys(places, ImportResult(ImportOutcome.REJECTED, rejection=why.value))

    async def _with_secrets(self, places: Sequence[int]) -> list[int]:
        """Return those of some items that hold a credential; many are searched in a thread."""
        texts = {n: (*texts_of(self._items[n].draft), self._items[n].external_id) for n in places}

        def held() -> list[int]:
            return [n for n in places if holds_secret(texts[n], self.ports)]

        if sum(len(text) for some in texts.values() for text in some) > LOOKED_AT_INLINE:
            return await asyncio.to_thread(held)
        return held()

    async def decide(self, request: IdempotentRequest) -> Decision[list[ImportResult]]:  # noqa: ARG002  see payload
        ports, owners = self.ports, dict.fromkeys(memory.owner for memory in self._memories)
        indexes = {owner: await ports.indexes.get(owner) for owner in owners}
        heads = [await ports.store.commits.memories.head(owner) for owner in owners]
        session = WriteSession(ports, indexes, self.now, heads=heads, used=GrantUsage(), count=len(self._items))
        left = [n for n in range(len(self._items)) if n not in self._settled]
        self._settled |= await self._stored(left)  # by another call meanwhile: now no one else can
        try:
            results = [
                self._settled.get(n) or await self._take(n, session) async for n in in_turns(range(len(self._items)))
            ]
        finally:
            session.end()
        change = await session.change(None)

        async def answer() -> list[ImportResult]:
            return results

        return Decision(None if self._dry_run or change == ChangeSet() else change, answer)

    async def _stored(self, places: Sequence[int]) -> dict[int, ImportResult]:
        """Return what becomes of those of some items that are stored already."""
        places_of = {self._memories[n].id: n for n in places}
        found: dict[int, ImportResult] = {}
        for owner in dict.fromkeys(self._memories[n].owner for n in places):
            for known in await self.ports.store.memories.scan(MemorySelector(owner=owner, ids=[*places_of]), limit=0):
                found[places_of[known.id]] = _known(known, self._memories[places_of[known.id]])
        return found

    async def _take(self, n: int, session: WriteSession) -> ImportResult:
        with in_part(f"memories[{n}]"):
            return await session.take(self._memories[n], self._items[n].draft, self.caller, self._embedded.get(n))


def _things_of(memory: Memory) -> tuple[Made, Made]:
    """Return what would have erased a memory: all of its owner, after it was made, or it alone."""
    return (
        (ErasedThing(ErasedKind.OWNER, memory.owner), memory.create_time),
        (ErasedThing(ErasedKind.MEMORY, memory.owner, id=memory.id), EPOCH),
    )


def _known(there: Memory, brought: Memory) -> ImportResult:
    """Return what becomes of an item whose id is there: the same, another, which stays, or one that was deleted."""
    if there.delete_time is not None:
        return ImportResult(ImportOutcome.REJECTED, there.id, Rejection.FORGOTTEN.value)
    outcome = ImportOutcome.KNOWN if there.content == brought.content else ImportOutcome.KEPT
    return ImportResult(outcome, there.id)
