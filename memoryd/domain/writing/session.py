"""
The statements of one call, judged one after the other: each beside what is stored and beside those before it.

Whoever makes an Offers holds the locks of its owners until what it returns is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.decay import EXTRACTION
from memoryd.domain.links import without_contested
from memoryd.domain.ports import Ports
from memoryd.domain.tombstones import tombstones_of
from memoryd.domain.writing.evict import evicted, least_valuable
from memoryd.domain.writing.judge import Akin, Known, Offer, Verdict, judge, memory_of, unread
from memoryd.entities.directory import Directory
from memoryd.entities.resolve import mentions_of
from memoryd.errors import LimitExceeded
from memoryd.index.analysis import analyse, indexed_text
from memoryd.index.scope import ScopeIndex
from memoryd.knowledge.claims.statement import statement_of
from memoryd.knowledge.language.relations import ONE_AT_A_TIME
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, Entry, RecordedRequest, Tombstone
from memoryd.model.memory import AT_ONCE, Draft, Kind, Memory, Outcome, State
from memoryd.model.query import Filter
from memoryd.model.scope import Owner, Visibility
from memoryd.model.trust import Trust
from memoryd.model.validation import fold, text_digest

__all__ = ["INLINE_CHARACTERS", "NO_STATEMENTS", "Offers"]

Vector = NDArray[np.float32]
INLINE_CHARACTERS = 8_000  # of text that is analysed on the loop (≤ 1 ms); more goes to a thread
NEAREST = 20  # statements beside which a new one is judged, beside those of the same attribute (requirements §5)
LEAST_SIMILARITY = 0.4  # below it nothing was found that two statements had in common but their subject
NO_STATEMENTS = frozenset({Kind.EPISODE, Kind.REFLECTION})


class Offers:
    """What becomes of the statements of one call."""

    def __init__(self, ports: Ports, indexes: dict[Owner, ScopeIndex | None], now: datetime, *, count: int = 1) -> None:
        """Take the indexes of the owners; None where one is too large for memory. `count` statements will follow."""
        self._ports = ports
        self._indexes = indexes
        self._now = now
        self._several = count > 1
        self._new: dict[str, Entry] = {}
        self._added_bytes = self._grown_bytes = 0  # of the caller's grant
        self._pending: dict[str, Memory] = {}  # new and changed, in the form they will have
        self._of_name: dict[tuple[Owner, str | bytes], list[str]] = {}  # pending ids by key, and by text digest
        self._lifted: list[Tombstone] = []
        self._evicted: set[str] = set()
        self._provisional: list[tuple[Directory, str]] = []

    # --- what is known ---

    async def of_key(self, owner: Owner, key: str) -> list[Memory]:
        """Return what is live of a key, as this call leaves it."""
        index = self._indexes[owner]
        known = await self._ports.store.of_key(owner, key, self._now) if index is None else index.of_key(key, self._now)
        return self._as_pending(owner, known, key)

    async def same_text(self, owner: Owner, digest: bytes) -> list[Memory]:
        """Return what is live of a text, as this call leaves it."""
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

    async def akin(self, new: Memory, vector: Vector | None) -> list[Akin]:
        """Return the statements beside which a new one is judged."""
        owner = new.owner
        index = self._indexes[owner]
        if index is not None:
            whom = {m for one in _roots(new, index.people, about=True) for m in index.people.members(one)} or {""}
            claims = [(claim, one) for claim in new.claims for one in sorted(whom)]
            found = index.akin(vector, claims, self._now, limit=NEAREST, floor=LEAST_SIMILARITY)
        elif vector is not None:
            visible = Visibility(owner.agent_id, owner.scope.user_id, owner.scope.chat_id)
            wanted = Filter(kinds=frozenset(Kind) - NO_STATEMENTS)
            found = await self._ports.store.nearest(
                visible, vector, self._ports.embedder.fingerprint, wanted, now=self._now, limit=NEAREST
            )
        else:
            found = []
        known = [(memory, near) for memory, near in found if memory.id not in self._pending]
        for entry in self._new.values():
            pending = self._pending[entry.memory.id]
            if pending.owner != owner or pending.kind in NO_STATEMENTS or pending.state_at(self._now) is not State.LIVE:
                continue
            near = float(vector @ entry.vector) if vector is not None and entry.vector is not None else 0.0
            if near >= LEAST_SIMILARITY or {*pending.claims} & {*new.claims}:
                known.append((pending, near))
        known += [
            (self._pending[memory.id], near)
            for memory, near in found
            if memory.id in self._pending and memory.id not in self._new
        ]
        known = [(memory, near) for memory, near in known if memory.state_at(self._now) is State.LIVE]
        people = self._people(owner)
        about, named = _roots(new, people, about=True), _roots(new, people, about=False)
        return [self._compared(memory, near, new.claims, about, named, people) for memory, near in known]

    @staticmethod
    def _compared(
        memory: Memory, near: float, claims: Sequence[str], about: set[str], named: set[str], people: Directory
    ) -> Akin:
        theirs = _roots(memory, people, about=True)
        same_subject = bool(about & theirs) if about or theirs else True
        same_subject = same_subject or bool({*claims} & {*memory.claims} & ONE_AT_A_TIME)  # "my boss is" is said of me
        return Akin(memory, near, same_subject, same_subject or bool(named & _roots(memory, people, about=False)))

    @staticmethod
    def _of_one(memory: Memory, new: Memory, people: Directory) -> bool:
        """Whether two of one text are about the same: "likes tea", of Tom and of Bob, are two."""
        said = {fold(subject) for subject in memory.subjects}, {fold(subject) for subject in new.subjects}
        if not all(said) or said[0] & said[1]:
            return True
        return bool(_roots(memory, people, about=True) & _roots(new, people, about=True))

    def _people(self, owner: Owner) -> Directory:
        index = self._indexes[owner]
        return Directory() if index is None else index.people

    def _remember(self, memory: Memory, digest: bytes | None = None) -> None:
        known = memory.id in self._pending
        self._pending[memory.id] = memory
        if not known:
            digest = digest or text_digest(memory.content)
            self._of_name.setdefault((memory.owner, digest), []).append(memory.id)
        if memory.key and memory.id not in self._of_name.get((memory.owner, memory.key), ()):
            self._of_name.setdefault((memory.owner, memory.key), []).append(memory.id)

    # --- judging ---

    async def consider(
        self, draft: Draft, owner: Owner, caller: Caller, vector: Vector | None, *, corrects: Memory | None = None
    ) -> tuple[str, Outcome, tuple[str, ...]]:
        """
        Judge one statement; return the id of the memory that says it, the outcome, and what it superseded.

        Of a rejected one there is no id, and the reason.
        """
        ports = self._ports
        digest = text_digest(draft.content)
        of_key = await self.of_key(owner, draft.key) if draft.key else []
        same_text = await self.same_text(owner, digest)
        ids = draft.source.message_ids
        above = [trust for trust in Trust if not caller.trust.outranks(trust)]
        barred = tombstones_of(owner, draft.content, ids, ports.secret, above)
        stones = tombstones_of(
            owner, draft.content, ids, ports.secret, [t for t in Trust if not t.outranks(caller.trust)]
        )
        buried = await self._buried(owner, [*barred, *stones])
        if buried & {stone.digest for stone in barred} and draft.source.channel == EXTRACTION and not same_text:
            return "", Outcome.REJECTED, ("forgotten",)
        statement = draft.kind not in NO_STATEMENTS
        people = self._people(owner)
        heir_of = corrects.author if corrects and caller.trust is Trust.HOST else None  # others speak for themselves
        author = (caller.user_id or heir_of) if draft.shared else None
        new = memory_of(
            draft, owner, ports.new_id(), self._now, trust=caller.trust, grant_id=caller.grant_id, author=author or ""
        )
        with ports.faults.spared("reading names"):
            text, finders = (draft.content, ports.finders) if statement else ("", ())
            new = replace(
                new,
                mentions=mentions_of(
                    text,
                    draft.subjects,
                    people.seen_by(new.narrator),
                    finders,
                    ports.new_id,
                    weight=caller.trust.weight,
                ),
            )
        with ports.faults.spared("reading claims"):
            claims = statement_of(draft.content).claims if statement else ()
            new = replace(new, claims=tuple(dict.fromkeys(claim.attribute for claim in claims)))
        same_text = [memory for memory in same_text if self._of_one(memory, new, people)]
        akin: list[Akin] = []
        with ports.faults.spared("finding what is akin"):
            akin = await self.akin(new, vector) if statement else []
        # nothing is awaited from here to take(), so that no two memories get one time
        time = ports.stamps.peek(self._now)
        happened = time if time - self._now < AT_ONCE else self._now  # later only where the clock was wrong once
        new = replace(new, create_time=time, event_time=draft.event_time or happened)
        offer = Offer(draft, new, digest, corrects)
        beside = Known(of_key, same_text, akin)
        verdict: Verdict | None = None
        with ports.faults.spared("judging"):
            verdict = judge(offer, beside, now=self._now, rules=ports.policy.rules)
        verdict = verdict or unread(offer, beside, now=self._now)
        known = (*of_key, *same_text, *(one.memory for one in akin))
        if caller.grant_id and not self._has_room(verdict, known, caller):
            return "", Outcome.REJECTED, ("quota",)
        if verdict.new is not None:
            ports.stamps.take(time)
        before = {memory.id: memory for memory in (*known, *((corrects,) if corrects else ()))}
        victims = self._make_room(verdict, owner, caller.trust) if verdict.new is not None else []
        for memory in verdict.changed:
            self._remember(memory)
        for gone in (*victims, *(before.get(m.id, m) for m in verdict.changed if m.supersede_time is not None)):
            await self._release(gone)  # once all of them have the form that they will have
        if verdict.new is not None:
            self._new[new.id] = Entry(verdict.new, "", vector, ports.embedder.fingerprint if vector is not None else "")
            self._remember(verdict.new, digest)
            if self._several:
                people.add(verdict.new)
                self._provisional.append((people, new.id))
        self._lifted += [stone for stone in stones if stone.digest in buried and draft.source.channel != EXTRACTION]
        return verdict.memory.id, verdict.outcome, verdict.superseded_ids

    async def _buried(self, owner: Owner, stones: Sequence[Tombstone]) -> frozenset[bytes]:
        digests = [stone.digest for stone in stones]
        index = self._indexes[owner]
        if index is None:
            return await self._ports.store.tombstones(owner, digests)
        return frozenset(digest for digest in digests if digest in index.tombstones)

    async def _release(self, gone: Memory) -> None:
        """Take what has gone out of the memories that it contested."""
        index = self._indexes[gone.owner]
        missing = []
        for partner in gone.contested_with:
            known = self._pending.get(partner) or (None if index is None else index.memory(partner))
            if known is None:
                missing.append(partner)
            elif gone.id in known.contested_with:
                self._remember(without_contested(known, gone.id))
        if missing and index is None:
            for entry in await self._ports.store.entries(missing):
                self._remember(without_contested(entry.memory, gone.id))

    # --- room ---

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

    def _make_room(self, verdict: Verdict, owner: Owner, trust: Trust) -> list[Memory]:
        """
        Forget the least valuable memories above the cap, and return them as they were.

        LimitExceeded if all that are there are protected.
        """
        ports, index = self._ports, self._indexes[owner]
        cap = ports.policy.max_entries
        if not cap or index is None or ports.doubt(self._now):
            return []
        gone = sum(memory.supersede_time is not None for memory in verdict.changed)
        gone_already = sum(1 for one in self._evicted if self._pending[one].owner == owner)
        now_live = index.live_count(self._now) - gone_already
        now_live += sum(1 for entry in self._new.values() if entry.memory.owner == owner)
        now_live -= sum(
            1 for memory in self._pending.values() if memory.owner == owner and memory.supersede_time is not None
        )
        overflow = now_live + 1 - gone - cap
        if overflow <= 0:
            return []
        kept = {*self._pending, *(memory.id for memory in verdict.changed), *self._evicted}
        victims = least_valuable(index, ports, overflow, kept, self._now, trust=trust)
        if len(victims) < overflow:
            raise LimitExceeded(
                f"the scope holds {cap} memories (memory.max_entries), all of them protected or of higher trust;"
                " delete some",
                limit="max_entries",
            )
        for victim in victims:
            self._evicted.add(victim.id)
            self._remember(evicted(victim, ports, self._now))
        return victims

    # --- the result ---

    def end(self) -> None:
        """Take back what only this call has seen of its own statements."""
        for people, memory_id in self._provisional:
            people.remove(memory_id)
        self._provisional.clear()

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
        return ChangeSet(inserts=tuple(inserts), updates=tuple(updates), request=request, lift=tuple(self._lifted))


def _roots(memory: Memory, people: Directory, *, about: bool) -> set[str]:
    return {people.root(mention.entity_id) for mention in memory.mentions if mention.about or not about}


def _terms(memories: Sequence[Memory]) -> list[str]:
    return [" ".join(analyse(indexed_text(memory))) for memory in memories]
