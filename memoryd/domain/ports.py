"""What use cases reach: store, indexes, model; what guards a call, what reads texts, what calls share."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from memoryd.domain.policy import Policy
from memoryd.domain.shared import SharedState
from memoryd.domain.tokens import Measure, no_tokenizer
from memoryd.embedding.base import AnswerReader, Embedder, PairReader, Reranker
from memoryd.entities.finders import Finder, RegexFinder
from memoryd.index.cache import ScopeIndexes
from memoryd.index.scope import ScopeIndex
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.commits import Applied
from memoryd.model.conversation import Message
from memoryd.model.grant import NO_LIMITS, Quota
from memoryd.model.measures import NO_MEASURES, Measures
from memoryd.model.memory import Memory
from memoryd.model.message_draft import Masker
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.store.base import Store
from memoryd.store.conversations import MessageSelector
from memoryd.store.memories import MemorySelector, Order, Vectors

__all__ = ["GrantCheck", "Guards", "NoGrants", "Ports", "Readers"]


class GrantCheck(Protocol):
    """Knows which grants count."""

    def check(self, grant_id: str, now: datetime) -> None:
        """Raise Unauthenticated if the grant of this id counts no longer; "" is no grant, and always counts."""
        ...

    async def admit(self, grant_id: str, now: datetime) -> int | None:
        """
        Return what a change set says it has seen of grants (`grants_seen`), when one counts; else as `check`.

        None for "": it always counts.
        """
        ...

    def quota(self, grant_id: str) -> Quota:
        """Return what a grant may store, also one that has ended; without limits where there is none."""
        ...


class NoGrants:
    """Where everybody is the host."""

    def check(self, grant_id: str, now: datetime) -> None:
        """Let everything pass."""

    async def admit(self, grant_id: str, now: datetime) -> None:
        """Let everything pass."""

    def quota(self, grant_id: str) -> Quota:  # noqa: ARG002  it knows none
        """Return no limits."""
        return NO_LIMITS


@dataclass(frozen=True, slots=True)
class Guards:
    """What stands between a call and the store. None has a default: one that is forgotten fails at the start."""

    secrets: Callable[[Iterable[str]], bool]
    """Whether one of some texts holds a credential."""
    is_token: Callable[[str], bool]
    """Whether a name or an id is a credential."""
    masker: Callable[[int, Callable[[], bool]], Masker]
    """What takes credentials out of the texts of a call, by how many characters they have and whether it is over."""
    grants: GrantCheck
    """Asked just before a change is committed."""


@dataclass(frozen=True, slots=True)
class Readers:
    """What reads texts by models and finders; without any, rules do what they can."""

    reranker: Reranker | None = None
    """What reads the best hits with the question; None: their order stands."""
    answer_reader: AnswerReader | None = None
    """What reads a question and a memory together, for contexts; None: relevance alone tells what answers."""
    reads_searches: bool = False
    """Whether it reads for searches too."""
    change_reader: PairReader | None = None
    """What reads two statements together, in the background; None: the rules alone notice a change."""
    finders: Sequence[Finder] = (RegexFinder(),)
    """What finds names in a statement before its answer."""
    accurate_finders: Sequence[Finder] = ()
    """What finds them in the background."""
    tokenizer: Callable[[str], Measure] = field(default=no_tokenizer)
    """What counts tokens, by the name of a tokenizer that is installed; it reads a file."""

    def close(self) -> None:
        """End the threads of the models."""
        for reader in (self.reranker, self.answer_reader, self.change_reader):
            if reader is not None:
                reader.close()


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything that a use case may reach. It is handed in whole; nothing is put into it later."""

    store: Store
    indexes: ScopeIndexes
    episodes: ScopeIndexes
    """Those of messages."""
    notes: ScopeIndexes
    """Those of notes that are searched."""
    embedder: Embedder
    new_id: Callable[[], str]
    secret: bytes
    """Signs digests of what was deleted."""
    page_secret: bytes
    """Signs page tokens: those of before a restore count no longer after it."""
    guards: Guards
    policy: Policy = field(default_factory=Policy)
    readers: Readers = field(default_factory=Readers)
    shared: SharedState = field(default_factory=SharedState)
    measures: Measures = NO_MEASURES

    def close(self) -> None:
        """End the threads that are its own; what waits for them is dropped."""
        for indexes in (self.indexes, self.episodes, self.notes):
            indexes.close()
        self.shared.preparing.shutdown(wait=False, cancel_futures=True)
        self.readers.close()

    def follow(self, applied: Applied) -> None:
        """Drop the ids of what a commit has purged, and bring the queue of victims up to it."""
        change = applied.change
        self.shared.recalls.forget(change.purges)
        if change.purge_owner is not None:
            self.shared.recalls.forget_owner(change.purge_owner)
        owner = change.decided_of
        index = None if owner is None else self.indexes.ready(owner)
        queue = self.shared.victims.get(index, []) if index is not None else []
        if index is None or not queue:
            return
        new = (entry.memory for entry in change.inserts if entry.memory.supersede_time is None)
        lower = [memory for memory in new if Trust.HOST.outranks(memory.trust)]
        queue[:] = _queue_after(queue, lower, _ended_by(change), index)

    def doubt(self, now: datetime) -> str:
        """Return why nothing may be erased by its age now; "" where the clock is not in doubt, or not watched."""
        return "" if self.shared.clock is None else self.shared.clock.doubt(now)

    def is_behind(self, now: datetime) -> bool:
        """Whether the clock is implausibly far behind, so that no date is put right by it."""
        return self.shared.clock is not None and self.shared.clock.is_behind(now)

    def purge_time(self, now: datetime) -> datetime:
        """Return the end of the grace of what is deleted now."""
        begin = now if self.shared.clock is None else self.shared.clock.never_behind(now)
        return begin + timedelta(days=self.policy.delete_grace_days)

    def copies(self) -> tuple[str, ...]:
        """Return the files and backups that hold an earlier state of the store."""
        files = self.store.files
        return () if files is None else (*files.copies(), *files.backups())

    async def entry_of(self, memory: Memory) -> Entry | None:
        """Return a memory as it is stored now, with its vectors; None if it is gone."""
        return next(iter(await self.store.memories.entries(memory.owner, [memory.id], Vectors.ALL)), None)

    async def messages_at(self, owner: Owner, places: Collection[tuple[str, int]]) -> list[Message]:
        """Return an owner's messages at some places (thread and seq), in their order."""
        return await self.store.conversations.messages(MessageSelector(owner=owner, places=places))

    async def naming(self, owner: Owner, entity_ids: Iterable[str]) -> list[Memory]:
        """Return an owner's memories that name one of some entities, in every state, newest first."""
        selector = MemorySelector(owner=owner, naming=frozenset(entity_ids))
        return await self.store.memories.scan(selector, limit=0, order=Order.NEWEST)

    async def entries_of(self, memories: Sequence[Memory]) -> list[Entry]:
        """Return memories as they are stored now, with their terms; those that are gone are left out."""
        ids: dict[Owner, list[str]] = {}
        for memory in memories:
            ids.setdefault(memory.owner, []).append(memory.id)
        return [entry for owner, known in ids.items() for entry in await self.store.memories.entries(owner, known)]


def _ended_by(change: ChangeSet) -> set[str]:
    """Return the ids of what a change purges, deletes or supersedes."""
    updated = (entry.memory for entry in change.updates)
    gone = (memory for memory in updated if memory.delete_time or memory.supersede_time)
    return {memory.id for memory in (*change.purges, *gone)}


def _queue_after(queue: list[str], lower: Sequence[Memory], ended: Collection[str], index: ScopeIndex) -> list[str]:
    """Return a queue of victims without those that ended, and with new ones before what is of higher trust."""
    left = [memory_id for memory_id in queue if memory_id not in ended]
    queued = set(left)
    new = [memory for memory in lower if memory.id not in queued]
    if not new:
        return left
    known = [memory for memory_id in left if (memory := index.memory(memory_id)) is not None]
    ids, weights = [memory.id for memory in known], [memory.trust.weight for memory in known]
    for memory in new:
        place = bisect_right(weights, memory.trust.weight)
        ids.insert(place, memory.id)
        weights.insert(place, memory.trust.weight)
    return ids
