"""
The statements of one call, judged in order: each against the store and against those before it.

The maker of a WriteSession holds the locks of its owners until the commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.decay import EXTRACTION
from memoryd.domain.ports import Ports
from memoryd.domain.tombstones import tombstones_of
from memoryd.domain.writing.judge import (
    Known,
    Neighbour,
    Offer,
    Verdict,
    is_repeated_in,
    judge,
    memory_of,
    retired,
    unread,
)
from memoryd.domain.writing.known import KnownStatements, is_same_subject
from memoryd.domain.writing.pending import Pending
from memoryd.domain.writing.repetition import untaken
from memoryd.domain.writing.retiring import told_time
from memoryd.domain.writing.room import Room
from memoryd.domain.writing.settle import MOST_SUPERSEDED, judge_late, outlives
from memoryd.entities.directory import Directory
from memoryd.entities.resolve import mentions_of
from memoryd.index.analysis import analyse, indexed_memory
from memoryd.index.scope import ScopeIndex
from memoryd.knowledge.statement.claim import Claim
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, Entry, RecordedRequest, Tombstone
from memoryd.model.commits import Head
from memoryd.model.embedding import Embedded
from memoryd.model.entity import Mention
from memoryd.model.grant import GrantUsage
from memoryd.model.imported import ImportOutcome, ImportResult
from memoryd.model.memory import AT_ONCE, NO_STATEMENTS, Draft, Judgement, Memory, Outcome
from memoryd.model.receipt import Rejection, StatementOutcome
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.model.validation import text_digest

__all__ = ["WriteSession"]

SETTLED_NEXT_TO = 60  # neighbours of an imported memory: of many alike, some are not judged themselves yet
INLINE_CHARACTERS = 8_000  # of text that is analysed on the loop (≤ 1 ms); more goes to a thread


class WriteSession:
    """What becomes of the statements of one call."""

    def __init__(
        self,
        ports: Ports,
        indexes: Mapping[Owner, ScopeIndex | None],
        now: datetime,
        *,
        heads: Iterable[Head],
        used: GrantUsage,
        count: int = 1,
    ) -> None:
        """
        Take the indexes of the owners, None where one is too large for memory, and how far the owners have come.

        `used` is what came through the caller's grant; `count` statements will follow.
        """
        self._ports = ports
        times = (head.newest_create_time for head in heads)
        self._newest = max((time for time in times if time is not None), default=None)
        self._now = now
        self._several = count > 1
        self._pending = Pending(now)
        self.known = KnownStatements(ports, indexes, self._pending, now)
        self._room = Room(ports, indexes, self._pending, now, used=used)
        self._lifted: list[Tombstone] = []
        self._provisional: list[tuple[Directory, Memory]] = []

    async def consider(
        self,
        draft: Draft,
        owner: Owner,
        caller: Caller,
        embedded: Embedded | None,
        *,
        corrects: Memory | None = None,
        said_time: datetime | None = None,
    ) -> StatementOutcome:
        """Judge one statement and note what follows; LimitExceeded where a full scope has no room for it."""
        ports = self._ports
        vector = None if embedded is None else embedded.vector
        digest = text_digest(draft.content)
        of_key = await self.known.of_key(owner, draft.key) if draft.key else []
        same_text = await self.known.same_text(owner, digest)
        # what is learnt from an import is judged later too, in the order of what was said
        is_late = said_time is not None and caller.trust is Trust.IMPORTED and draft.kind not in NO_STATEMENTS
        barred, lifted = await self._tombstones(draft, owner, caller.trust)
        if barred and draft.source.channel == EXTRACTION and not same_text:
            return StatementOutcome.rejected(Rejection.FORGOTTEN)
        new = replace(self._read(draft, owner, caller, corrects), judged=not is_late)
        people = self.known.people(owner)
        same_text = [one for one in same_text if (one.judged or not is_late) and is_same_subject(one, new, people)]
        neighbours: list[Neighbour] = []
        with ports.shared.faults.spared("finding neighbours"):
            is_judged = new.judged and new.kind not in NO_STATEMENTS
            neighbours = await self.known.neighbours(new, vector) if is_judged else []
        offer = Offer(draft, new, digest, corrects, said_time)
        beside = Known(of_key, same_text, neighbours)
        verdict = await self._judge(offer, beside)
        known = [
            *of_key,
            *same_text,
            *(neighbour.memory for neighbour in neighbours),
            *((corrects,) if corrects else ()),
        ]
        if caller.grant_id and not self._room.is_within_quota(verdict, known, caller):
            return StatementOutcome.rejected(Rejection.QUOTA)
        await self._follow(verdict, known, owner, caller.trust)
        if verdict.new is not None:
            self._newest = new.create_time
            self._add(verdict.new, digest, embedded)
        if draft.source.channel != EXTRACTION:
            self._lifted += lifted
        return StatementOutcome(
            verdict.outcome, owner, verdict.memory.id, verdict.superseded_ids, untaken_fields=verdict.untaken
        )

    async def take(self, new: Memory, draft: Draft, caller: Caller, embedded: Embedded | None) -> ImportResult:
        """
        Note a statement that an import brings, with its id and times, or say what keeps it out.

        What is live is only held against its key and its text; the rest is judged later. Nothing is evicted for it.
        """
        owner, digest = new.owner, text_digest(new.content)
        is_live = new.supersede_time is None
        barred, _ = await self._tombstones(draft, owner, caller.trust)
        if barred:
            return ImportResult(ImportOutcome.REJECTED, rejection=Rejection.FORGOTTEN.value)
        if draft.shared and caller.user_id:
            new = replace(new, author=caller.user_id)
        holders = await self.known.of_key(owner, new.key) if is_live and new.key else []
        if any(not _takes_key(new, holder) for holder in holders):
            is_same = text_digest(holders[0].content) == digest
            return ImportResult(ImportOutcome.REPEATED if is_same else ImportOutcome.KEPT, holders[0].id)
        new = replace(new, mentions=self._mentions(new, draft, caller))
        twin = await self._twin(new, draft, digest) if is_live and not new.key else None
        if twin is None and is_live and not self._room.is_there_room(owner):
            return ImportResult(ImportOutcome.REJECTED, rejection=Rejection.FULL.value)
        for holder in holders:
            why = Judgement("same_key", f"another statement was stored under the key {new.key!r}", new.id)
            await self._follow(
                Verdict(Outcome.SUPERSEDED, changed=(retired(holder, new.id, why, self._now, trust=new.trust),)),
                [holder], owner, new.trust,
            )  # fmt: skip
        if holders:
            new = replace(new, supersedes=tuple(holder.id for holder in holders))
        if twin is not None:  # it is kept as what has gone into the other one, so that it is known when it comes again
            why = Judgement("repeated", "another memory says the same", twin.id)
            new = replace(retired(new, twin.id, why, self._now, trust=new.trust), judged=True)
        self._add(self._linked(new), digest, embedded)
        if twin is None:
            return ImportResult(ImportOutcome.STORED, new.id)
        return ImportResult(ImportOutcome.REPEATED, twin.id, untaken_fields=untaken(twin, draft, new))

    def _linked(self, new: Memory) -> Memory:
        """Return a memory that is imported with what it has replaced, and note it with what has replaced it."""
        heir = self._pending.get(new.superseded_by) or self.known.stored(new.owner, new.superseded_by)
        if heir is not None and new.judgement is not None and new.judgement.rule == "imported":
            self.note(replace(heir, supersedes=tuple(dict.fromkeys((*heir.supersedes, new.id)))[:MOST_SUPERSEDED]))
        former = [one.id for one in self._pending if one.superseded_by == new.id]
        return replace(new, supersedes=tuple(dict.fromkeys((*new.supersedes, *former)))) if former else new

    async def _twin(self, new: Memory, draft: Draft, digest: bytes) -> Memory | None:
        """
        Return the live memory that says what an import brings word for word, of the same and by the same.

        None where something of what is brought would be lost by it: then both are stored, and judged later.
        """
        owner = new.owner
        people, reader = self.known.people(owner), self.known.reader(owner)
        for known in await self.known.same_text(owner, digest):
            if not known.judged:
                continue  # another one of an import, which is judged in the order of their times
            is_lost = new.trust.outranks(known.trust) or outlives(new, known)
            is_lost = is_lost or (known.trust is new.trust and bool(untaken(known, draft, new)))
            if not is_lost and is_same_subject(known, new, people) and is_repeated_in(known, new, reader):
                return known
        return None

    def _add(self, new: Memory, digest: bytes, embedded: Embedded | None) -> None:
        """Take in a memory that the call adds."""
        entry = Entry(new)
        if embedded is not None:
            fingerprint = self._ports.embedder.fingerprint
            entry = Entry(new, "", embedded.vector, fingerprint, embedded.tokens, embedded.windows)
        self._pending.add(entry, digest)
        if self._several and new.supersede_time is None:
            people = self.known.people(new.owner)
            people.add(new)
            self._provisional.append((people, new))

    def pending(self, memory: Memory) -> Memory:
        """Return a memory that is stored as this call leaves it."""
        return self._pending.get(memory.id) or memory

    def note(self, memory: Memory) -> None:
        """Take in the newer form of a memory that is stored."""
        self._pending.put(memory)

    async def settle(self, memory: Memory, vector: NDArray[np.float32] | None) -> None:
        """Judge an imported memory that is stored, next to what is judged already, and note what follows."""
        memory = replace(memory, claims=self._claims(memory))
        known: list[Neighbour] = []
        verdict: Verdict | None = None
        with self._ports.shared.faults.spared("judging"):
            known = [
                neighbour
                for neighbour in await self.known.neighbours(memory, vector, limit=SETTLED_NEXT_TO)
                if neighbour.memory.judged and neighbour.memory.id != memory.id
            ]
            reader = self.known.reader(memory.owner)
            verdict = await judge_late(memory, known, reader, now=self._now, rules=self._ports.policy.rules)
        if verdict is None:
            self.note(replace(memory, judged=True))
            return
        if verdict.new is not None:
            self.note(verdict.new)
            self.known.settled(verdict.new, vector)
        beside = [memory, *(neighbour.memory for neighbour in known)]
        await self._follow(replace(verdict, new=None), beside, memory.owner, memory.trust)

    def _next_time(self) -> datetime:
        """Return a create time after all that the owners have, also when the wall clock steps back."""
        if self._newest is not None and self._now <= self._newest:
            return self._newest + timedelta(microseconds=1)
        return self._now

    async def _tombstones(self, draft: Draft, owner: Owner, trust: Trust) -> tuple[bool, list[Tombstone]]:
        """Return whether a statement was deleted with as much trust, and the tombstones that stating it again lifts."""
        ids, secret = draft.source.message_ids, self._ports.secret
        above = [other for other in Trust if not trust.outranks(other)]
        below = [other for other in Trust if not other.outranks(trust)]
        bars = tombstones_of(owner, draft.content, ids, secret, above)
        lifts = tombstones_of(owner, draft.content, ids, secret, below)
        buried = await self.known.buried(owner, [*bars, *lifts])
        barred = not buried.isdisjoint(stone.digest for stone in bars)
        return barred, [stone for stone in lifts if stone.digest in buried]

    def _read(self, draft: Draft, owner: Owner, caller: Caller, corrects: Memory | None) -> Memory:
        """Return the memory that a draft would become, with the entities that it names and what it claims."""
        ports = self._ports
        heir_of = corrects.author if corrects and caller.trust is Trust.HOST else None  # others speak for themselves
        author = (caller.user_id or heir_of) if draft.shared else None
        new = memory_of(
            draft, owner, ports.new_id(), self._now, trust=caller.trust, grant_id=caller.grant_id, author=author or ""
        )
        time = self._next_time()
        happened = time if time - self._now < AT_ONCE else self._now  # later only where the clock was wrong once
        return replace(
            new,
            mentions=self._mentions(new, draft, caller),
            claims=self._claims(new),
            create_time=time,
            event_time=draft.event_time or happened,
        )

    def _mentions(self, new: Memory, draft: Draft, caller: Caller) -> tuple[Mention, ...]:
        """Return the entities that a memory names; none where they cannot be read."""
        ports = self._ports
        with ports.shared.faults.spared("reading names"):
            text, finders = (new.content, ports.readers.finders) if new.kind not in NO_STATEMENTS else ("", ())
            people = self.known.people(new.owner).seen_by(new.narrator)
            return mentions_of(text, draft.subjects, people, finders, ports.new_id, weight=caller.trust.weight)
        return ()

    def _claims(self, new: Memory) -> tuple[str, ...]:
        """Return the attributes that a memory speaks of; none where they cannot be read."""
        claims: tuple[Claim, ...] = ()
        with self._ports.shared.faults.spared("reading claims"):
            if new.kind not in NO_STATEMENTS:
                claims = self.known.reader(new.owner).read(new.content).statement.claims
        return tuple(dict.fromkeys(claim.attribute for claim in claims))

    async def _judge(self, offer: Offer, beside: Known) -> Verdict:
        """Return what becomes of a statement; of one whose words cannot be judged, what its key decides."""
        verdict: Verdict | None = None
        with self._ports.shared.faults.spared("judging"):
            reader = self.known.reader(offer.new.owner)
            verdict = await judge(offer, beside, reader, now=self._now, rules=self._ports.policy.rules)
        return verdict or unread(offer, beside, now=self._now)

    async def _follow(self, verdict: Verdict, known: Sequence[Memory], owner: Owner, trust: Trust) -> None:
        """Take in what a verdict changes, and what is evicted for it; who goes is contested by no one any more."""
        before = {memory.id: memory for memory in known}
        gone = await self._room.make(verdict, owner, trust) if verdict.new is not None else []
        for memory in verdict.changed:
            self._pending.put(memory)
        gone += [before.get(memory.id, memory) for memory in verdict.changed if memory.supersede_time is not None]
        for one in gone:
            for released in await self.known.contested_by(one):
                self._pending.put(released)

    def end(self) -> None:
        """Take back what only this call has seen of its own statements."""
        for people, memory in self._provisional:
            people.remove(memory)
        self._provisional.clear()

    def memory(self, memory_id: str) -> Memory:
        """Return a memory of this call in its final form; KeyError for any other."""
        memory = self._pending.get(memory_id)
        if memory is None:
            raise KeyError(memory_id)
        return memory

    async def change(self, request: RecordedRequest | None) -> ChangeSet:
        """Return all that this call writes."""
        memories = list(self._pending)
        if sum(len(memory.content) for memory in memories) <= INLINE_CHARACTERS:
            terms = _terms(memories)
        else:
            terms = await asyncio.to_thread(_terms, memories)
        inserts, updates = [], []
        for memory, words in zip(memories, terms, strict=True):
            entry = self._pending.new_entry(memory.id)
            if entry is None:
                updates.append(Entry(memory, words))
            else:
                inserts.append(replace(entry, memory=memory, terms=words))
        return ChangeSet(inserts=tuple(inserts), updates=tuple(updates), request=request, lift=tuple(self._lifted))


def _takes_key(new: Memory, holder: Memory) -> bool:
    """Whether what an import brings takes the key of another one: by trust, or as the later of two imports."""
    if new.trust is not holder.trust or text_digest(new.content) == text_digest(holder.content):
        return new.trust.outranks(holder.trust)
    return told_time(new) >= told_time(holder)


def _terms(memories: Sequence[Memory]) -> list[str]:
    return [" ".join(analyse(indexed_memory(memory))) for memory in memories]
