"""What a store promises of memories."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from memoryd.model.change import Entry
from memoryd.model.commits import Recalled
from memoryd.model.memory import DECAYED, NO_STATEMENTS, Kind, Memory
from memoryd.model.query import Filter
from memoryd.model.reports import GcReport
from memoryd.model.results import Stats
from memoryd.model.scope import Owner, Visibility
from memoryd.model.times import from_us, to_us

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "NOT_RETIRED",
    "Cursor",
    "Graces",
    "MemorySelector",
    "MemoryStore",
    "Order",
    "Vectors",
    "owner_place",
    "place_in_time",
    "read_cursor",
    "read_owner_place",
]


@dataclass(frozen=True, slots=True)
class Cursor:
    """The place after which a page begins: the last memory of the page before."""

    create_time: datetime
    id: str


@dataclass(frozen=True, slots=True)
class Graces:
    """Until when what is no longer live is kept: erased is what lies before these times. None: kept for ever."""

    expired_before: datetime
    superseded_before: datetime | None
    purge_due: datetime
    requests_before: datetime

    def are_over(self, memory: Memory) -> bool:
        """Whether a memory is past its grace: the definition that every store must agree with."""
        if memory.delete_time is not None:
            return memory.purge_time is not None and memory.purge_time <= self.purge_due
        if memory.supersede_time is not None:
            return self.superseded_before is not None and memory.supersede_time < self.superseded_before
        return memory.expire_time is not None and memory.expire_time < self.expired_before


class Order(Enum):
    """In which order memories are scanned, and so how their places are told."""

    OWNERS = "owners"
    """By owner and id: of every owner all at once; which owner comes before which is the store's own."""
    NEWEST = "newest"
    OLDEST = "oldest"
    """By create time; id as tie-break, in the same direction."""
    HAPPENED = "happened"
    """By event time, the earliest first, id as tie-break; it always begins with the first, and no place is told."""
    IN_TURNS = "in turns"
    """Taken in turns, the oldest of each owner, then the next of each, those of sandboxes last; told oldest first."""


class Vectors(Enum):
    """Which vectors come with a memory."""

    NONE = "none"
    TEXTS = "texts"
    """Not those of tokens, which are most of it."""
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySelector:
    """Which memories are scanned, of all owners unless it names one, in every state unless it says so."""

    owner: Owner | None = None
    ids: Collection[str] | None = None
    grant_id: str = ""
    naming: Collection[str] | None = None
    """Entities: they name one of them."""
    is_deleted: bool | None = None
    is_superseded: bool | None = None
    is_enriched: bool | None = None
    """Whether every finder has looked at them."""
    is_statement: bool = False
    """Only kinds that are judged, and not expired by `created_until`."""
    kinds: Collection[Kind] | None = None
    is_judged: bool | None = None
    """Whether they wait, as imports, to be judged."""
    learnt_from: str = ""
    """A thread that their source names."""
    created_after: datetime | None = None
    created_until: datetime | None = None
    ended_after: datetime | None = None
    """Deleted or superseded after a time."""
    faded_at: datetime | None = None
    """Stored by a time, and faded since."""
    not_fingerprint: str | None = None
    """Without a vector of this fingerprint."""

    def admits(self, memory: Memory, fingerprint: str) -> bool:
        """Whether it selects a memory whose vector has a fingerprint: the definition that every store agrees with."""
        is_told_apart = self.not_fingerprint is None or fingerprint != self.not_fingerprint
        return is_told_apart and self._is_named(memory) and self._is_in_state(memory) and self._is_in_time(memory)

    def _is_named(self, memory: Memory) -> bool:
        return (
            (self.owner is None or memory.owner == self.owner)
            and (self.ids is None or memory.id in self.ids)
            and self.grant_id in {"", memory.grant_id}
            and (self.naming is None or any(mention.entity_id in self.naming for mention in memory.mentions))
            and (self.kinds is None or memory.kind in self.kinds)
            and self.learnt_from in {"", memory.source.thread_id}
        )

    def _is_in_state(self, memory: Memory) -> bool:
        return (
            self.is_deleted in {None, memory.delete_time is not None}
            and self.is_superseded in {None, memory.supersede_time is not None}
            and self.is_enriched in {None, memory.enrich_time is not None}
            and self.is_judged in {None, memory.judged}
            and (not self.is_statement or self._is_statement(memory))
        )

    def _is_in_time(self, memory: Memory) -> bool:
        ended = (memory.delete_time, memory.supersede_time)
        return (
            (self.created_after is None or memory.create_time > self.created_after)
            and (self.created_until is None or memory.create_time <= self.created_until)
            and (self.ended_after is None or any(time is not None and time > self.ended_after for time in ended))
            and (self.faded_at is None or self._is_faded(memory, self.faded_at))
        )

    def _is_statement(self, memory: Memory) -> bool:
        expire, until = memory.expire_time, self.created_until
        return memory.kind not in NO_STATEMENTS and (expire is None or until is None or expire > until)

    @staticmethod
    def _is_faded(memory: Memory, as_of: datetime) -> bool:
        is_there = memory.delete_time is not None and memory.create_time <= as_of < memory.delete_time
        return is_there and memory.delete_reason == DECAYED


NOT_RETIRED = MemorySelector(is_deleted=False, is_superseded=False)
"""What is neither deleted nor superseded, of all owners."""


def owner_place(memory: Memory) -> str:
    """Return the place of a memory in the order OWNERS, after which another scan goes on."""
    scope = memory.scope
    return json.dumps([memory.agent_id, scope.user_id or "", scope.chat_id or "", memory.id])


def place_in_time(create_time: datetime, memory_id: str) -> str:
    """Return the place of a memory in the order NEWEST or OLDEST."""
    return json.dumps([to_us(create_time), memory_id])


def read_owner_place(place: str) -> tuple[str, str, str, str]:
    """Return the agent, user, chat and memory of a place in the order OWNERS; "" for what there is not."""
    agent_id, user_id, chat_id, memory_id = json.loads(place)
    return agent_id, user_id, chat_id, memory_id


def read_cursor(place: str) -> Cursor:
    """Return the create time and the id of a place in the order of times."""
    created, memory_id = json.loads(place)
    return Cursor(from_us(created), memory_id)


class MemoryStore(Protocol):
    """Memories and their vectors. What serves callers takes a visibility or an owner."""

    async def page(
        self,
        visible: Visibility,
        wanted: Filter,
        *,
        now: datetime,
        limit: int,
        after: Cursor | None = None,
    ) -> list[Memory]:
        """Return at most limit memories past the cursor, newest first, id (descending) as tie-break."""
        ...

    async def find(self, visible: Visibility, prefix: str, *, deleted: bool = False) -> list[Memory]:
        """Return the memories whose id begins so, at most two, deleted ones if asked for; an exact id alone."""
        ...

    async def entries(self, owner: Owner, ids: Collection[str], vectors: Vectors = Vectors.NONE) -> list[Entry]:
        """Return the memories of these ids and this owner, deleted ones too, in the order of ids."""
        ...

    async def alike(self, owner: Owner, now: datetime, *, digest: bytes = b"", key: str = "") -> list[Memory]:
        """Return the first 16 live memories of a text digest, or of a key, oldest first."""
        ...

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
        """Return the most similar memories with a vector of that fingerprint, and their cosines, best first."""
        ...

    async def stats(self, visible: Visibility, now: datetime) -> Stats:
        """Count what is visible, by kind, state and scope."""
        ...

    async def tombstones(self, owner: Owner, digests: Sequence[bytes]) -> frozenset[bytes]:
        """Return those of the digests that the owner has deleted."""
        ...

    async def scan(
        self,
        selector: MemorySelector,
        *,
        limit: int,
        after: str = "",
        order: Order = Order.OWNERS,
    ) -> list[Memory]:
        """Return at most limit memories (0: all) past the place of another one, in an order. No caller reaches it."""
        ...

    async def count(self, selector: MemorySelector) -> int:
        """Return how many memories a scan would return without a limit."""
        ...

    async def collectable(self, graces: Graces, *, limit: int) -> tuple[GcReport, list[Memory]]:
        """Count all that is past its grace, and return at most limit memories of it."""
        ...

    async def note_recalls(self, recalls: Mapping[Owner, Mapping[str, Recalled]]) -> None:
        """Add to recall_count and move the recall times on, by owner and memory id; it may be lost in a crash."""
        ...
