"""What is known next to a statement: of its key, of its text, and the neighbours that it is compared with."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.links import without_contested
from memoryd.domain.ports import Ports
from memoryd.domain.writing.judge import Neighbour
from memoryd.domain.writing.pending import Pending
from memoryd.entities.directory import Directory
from memoryd.index.neighbours import neighbours
from memoryd.index.scope import ScopeIndex
from memoryd.knowledge.grammar.relations import ONE_AT_A_TIME
from memoryd.knowledge.read_statement import Reader
from memoryd.model.change import Tombstone
from memoryd.model.memory import NO_STATEMENTS, Memory, State
from memoryd.model.query import STATEMENTS
from memoryd.model.scope import Owner, Visibility
from memoryd.model.validation import fold

__all__ = ["KnownStatements", "is_same_subject"]

Vector = NDArray[np.float32]
NEAREST = 20  # neighbours by similarity, besides those of the same attribute (requirements §5)
LEAST_SIMILARITY = 0.4  # below it nothing was found that two statements had in common but their subject


class KnownStatements:
    """What is live of some owners, as one call leaves it; from the index, or the store where a scope is too large."""

    def __init__(
        self, ports: Ports, indexes: Mapping[Owner, ScopeIndex | None], pending: Pending, now: datetime
    ) -> None:
        self._ports = ports
        self._indexes = indexes
        self._pending = pending
        self._now = now
        self._reader = Reader()  # of scopes too large for memory
        self._settled: dict[Owner, dict[str, Vector | None]] = {}
        """What this call has judged of what was stored: its claims are in no index yet."""

    async def of_key(self, owner: Owner, key: str) -> list[Memory]:
        """Return the live memories of a key."""
        index = self._indexes[owner]
        if index is None:
            known = await self._ports.store.memories.alike(owner, self._now, key=key)
        else:
            known = index.of_key(key, self._now)
        return self._pending.overlay(owner, known, key)

    async def same_text(self, owner: Owner, digest: bytes) -> list[Memory]:
        """Return the live memories of a text digest."""
        index = self._indexes[owner]
        if index is None:
            known = await self._ports.store.memories.alike(owner, self._now, digest=digest)
        else:
            known = index.same_text(digest, self._now)
        return self._pending.overlay(owner, known, digest)

    async def buried(self, owner: Owner, stones: Sequence[Tombstone]) -> frozenset[bytes]:
        """Return the digests of those tombstones that stand."""
        digests = [stone.digest for stone in stones]
        index = self._indexes[owner]
        if index is None:
            return await self._ports.store.memories.tombstones(owner, digests)
        return frozenset(digest for digest in digests if digest in index.tombstones)

    def stored(self, owner: Owner, memory_id: str) -> Memory | None:
        """Return a memory of an owner, as far as it is in the index; None for no other."""
        index = self._indexes[owner]
        return None if index is None or not memory_id else index.memory(memory_id)

    def people(self, owner: Owner) -> Directory:
        """Return who is known in a scope; no one where it is too large for memory."""
        index = self._indexes[owner]
        return Directory() if index is None else index.people

    def reader(self, owner: Owner) -> Reader:
        """Return what reads the texts of an owner."""
        index = self._indexes[owner]
        return self._reader if index is None else index.reader

    async def neighbours(
        self,
        new: Memory,
        vector: Vector | None,
        *,
        limit: int = NEAREST,
        floor: float = LEAST_SIMILARITY,
        until: datetime | None = None,
    ) -> list[Neighbour]:
        """
        Return the statements that a new one is compared with: the nearest not below `floor`, or of one attribute.

        With `until`, what was stored later takes no place; where a scope is too large for memory it does.
        """
        people = self.people(new.owner)
        about, named = _roots(new, people, about=True), _roots(new, people, about=False)
        found = await self._near(new, vector, limit, floor, until)
        known = [(memory, near) for memory, near in found if memory.id not in self._pending]
        known += self._near_pending(new, vector)
        known += self._near_settled(new, vector, {memory.id for memory, _ in found})
        for memory, near in found:
            pending = self._pending.get(memory.id)
            if pending is not None and self._pending.new_entry(memory.id) is None:
                known.append((pending, near))
        known = [(memory, near) for memory, near in known if memory.state_at(self._now) is State.LIVE]
        return [_compared(memory, near, new, about, named, people) for memory, near in known]

    async def _near(
        self, new: Memory, vector: Vector | None, limit: int, floor: float, until: datetime | None
    ) -> list[tuple[Memory, float]]:
        """Return stored statements that are near, or speak of an attribute of the same entity; and their cosines."""
        owner = new.owner
        index = self._indexes[owner]
        if index is not None:
            people = index.people
            subjects = {m for root in _roots(new, people, about=True) for m in people.members(root)} or {""}
            claims = [(claim, subject) for claim in new.claims for subject in sorted(subjects)]
            return neighbours(index, vector, claims, self._now, limit=limit, floor=floor, until=until)
        if vector is None:
            return []
        visible = Visibility(owner.agent_id, owner.scope.user_id, owner.scope.chat_id)
        fingerprint = self._ports.embedder.fingerprint
        return await self._ports.store.memories.nearest(
            visible,
            vector,
            fingerprint,
            STATEMENTS,
            now=self._now,
            limit=limit,
        )

    def _near_pending(self, new: Memory, vector: Vector | None) -> list[tuple[Memory, float]]:
        """Return the same of the statements that this call has added before."""
        found, claims = [], frozenset(new.claims)
        for entry in self._pending.new_entries(new.owner):
            pending = self._pending.get(entry.memory.id) or entry.memory
            if pending.kind in NO_STATEMENTS:
                continue
            near = float(vector @ entry.vector) if vector is not None and entry.vector is not None else 0.0
            if near >= LEAST_SIMILARITY or not claims.isdisjoint(pending.claims):
                found.append((pending, near))
        return found

    def settled(self, memory: Memory, vector: Vector | None) -> None:
        """Take it that a stored memory was judged in this call."""
        self._settled.setdefault(memory.owner, {})[memory.id] = vector

    def _near_settled(
        self, new: Memory, vector: Vector | None, found: Collection[str]
    ) -> Iterator[tuple[Memory, float]]:
        """Yield those of what this call has judged that speak of an attribute of a statement, and were not found."""
        claims = frozenset(new.claims)
        for memory_id, other in self._settled.get(new.owner, {}).items():
            judged = self._pending.get(memory_id)
            if judged is not None and memory_id not in found and not claims.isdisjoint(judged.claims):
                yield judged, float(vector @ other) if vector is not None and other is not None else 0.0

    async def contested_by(self, gone: Memory) -> list[Memory]:
        """Return the memories that one contested, without it."""
        index = self._indexes[gone.owner]
        released, missing = [], []
        for partner in gone.contested_with:
            known = self._pending.get(partner) or (None if index is None else index.memory(partner))
            if known is None:
                missing.append(partner)
            elif gone.id in known.contested_with:
                released.append(without_contested(known, gone.id))
        if missing and index is None:
            entries = await self._ports.store.memories.entries(gone.owner, missing)
            released += [without_contested(entry.memory, gone.id) for entry in entries]
        return released


def _compared(
    memory: Memory, near: float, new: Memory, about: set[str], named: set[str], people: Directory
) -> Neighbour:
    theirs = _roots(memory, people, about=True)
    same_subject = bool(about & theirs) if about or theirs else True
    same_subject = same_subject or bool({*new.claims} & {*memory.claims} & ONE_AT_A_TIME)  # "my boss is" is said of me
    return Neighbour(memory, near, same_subject, same_subject or bool(named & _roots(memory, people, about=False)))


def is_same_subject(memory: Memory, new: Memory, people: Directory) -> bool:
    """Whether two of one text are about the same: "likes tea", of Tom and of Bob, are two."""
    said = {fold(subject) for subject in memory.subjects}, {fold(subject) for subject in new.subjects}
    if not all(said) or said[0] & said[1]:
        return True
    return bool(_roots(memory, people, about=True) & _roots(new, people, about=True))


def _roots(memory: Memory, people: Directory, *, about: bool) -> set[str]:
    return {people.root(mention.entity_id) for mention in memory.mentions if mention.about or not about}
