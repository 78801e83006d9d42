"""
What a store promises.

These docstrings are the contract, and `tests/conformance` is its proof: RamStore is the reference, DuckDBStore the
store that lasts. What serves callers (`MemoryStore`, `EntityStore`) takes a visibility or an owner in every method;
what serves the daemon and operators (`GrantStore`, `MaintenanceStore`) stands apart. A store decides nothing: what to
write comes as a whole, and `now` is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from memoryd.errors import Contended
from memoryd.model.change import ChangeSet, Entry, RecordedRequest
from memoryd.model.commits import Applied, Head, Recalled, Snapshot
from memoryd.model.entity import Entity
from memoryd.model.grant import Grant, GrantUsage, TokenKey
from memoryd.model.memory import Memory
from memoryd.model.query import Filter
from memoryd.model.reports import Compaction, GcReport, OwnerContents, OwnerSizes
from memoryd.model.results import Stats
from memoryd.model.scope import Owner, Visibility
from memoryd.model.work import CounterName, Lease
from memoryd.store.conversations import ConversationStore
from memoryd.store.work import WorkStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "CommitLog",
    "Cursor",
    "EntityStore",
    "Graces",
    "GrantStore",
    "MaintenanceStore",
    "MemoryStore",
    "Store",
    "StoreInfo",
    "check_counters",
    "check_leases",
    "check_marks",
    "check_owners",
    "in_turns_of_owners",
]

T = TypeVar("T")


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


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What a store is and how large."""

    path: str
    store_id: str
    schema_version: int
    commit_seq: int
    store_bytes: int
    memory_count: int
    fingerprints: Mapping[str, int]
    """How many memories have a vector of each fingerprint; of "", how many have none."""
    newest_create_time: datetime | None
    """The latest ever given, also to a memory that was purged since."""
    secret: bytes
    """32 random bytes made with the store, for signing page tokens."""
    damage: str = ""
    """What cannot be read of it, as far as anybody has seen; then the counts above may be missing. Empty: nothing."""


def check_owners(changes: Sequence[ChangeSet]) -> None:
    """Raise ValueError for a change set that mixes owners, or an owner's rows with those of the whole store."""
    if not all(change.is_of_one for change in changes):
        raise ValueError("a change set mixes owners; see ChangeSet.by_owner")


def check_marks(change: ChangeSet, marks: Mapping[str, datetime]) -> None:
    """Raise Contended where marks are not as they were when a change was decided."""
    if any(marks.get(name) != before for name, before in change.marks_before.items()):
        raise Contended("somebody else has run the job; nothing was written")


def check_leases(change: ChangeSet, leases: Mapping[str, Lease]) -> None:
    """Raise Contended where a lease that a change takes is not as it was, or one that it renews is not its holder's."""
    for lease in change.leases:
        held = leases.get(lease.name)
        if lease.name in change.leases_before:
            is_right = held == change.leases_before[lease.name]
        else:
            is_right = held is not None and held.holder == lease.holder
        if not is_right:
            raise Contended(f"somebody else has leased {lease.name!r}; nothing was written")


def check_counters(change: ChangeSet, counters: Mapping[CounterName, int]) -> None:
    """Raise Contended where counters are not as they were when a change was decided."""
    if any(counters.get(name) != before for name, before in change.counters_before.items()):
        raise Contended("another daemon has done this work meanwhile; nothing was written")


def in_turns_of_owners(memories: Iterable[Memory]) -> list[Memory]:
    """Return memories in the order of `unenriched`."""
    counts: dict[Owner, int] = {}
    placed = []
    for one in sorted(memories, key=lambda memory: memory.create_time):
        counts[one.owner] = counts.get(one.owner, 0) + 1
        placed.append((one.trust.is_sandbox, counts[one.owner], one))
    return [one for *_, one in sorted(placed, key=lambda three: three[:2])]


class CommitLog(Protocol):
    """Takes change sets, and tells of each one that is durable."""

    def on_commit(self, callback: Callable[[Applied], None]) -> None:
        """
        Call back with each change set after it is durable and before its commit() returns, in order of commit.

        Of what others commit to the same database, only `changes` tells.
        """
        ...

    async def head(self, owner: Owner) -> Head:
        """Return how far the commits of an owner have come, whoever made them."""
        ...

    async def changes(self, owner: Owner, since: int) -> list[Applied] | None:
        """
        Return an owner's commits after a number, oldest first; None where not all are known: read a snapshot then.

        A purge is never among them: nothing is kept that names what is gone.
        """
        ...

    async def commit(self, *changes: ChangeSet) -> None:
        """
        Make change sets durable, all of them or none.

        Each is of one owner, or of the whole store (ValueError else; see `ChangeSet.by_owner`), and gets the next
        number of its owner. Raises Contended, with nothing written, where the owner was changed after the commit that
        one is based on, a request id is taken, or marks, leases or counters are not as the change says they were.

        Commits that wait together may share a transaction, and one that fails harms no other. An update replaces
        every column of the memory but recall_time, recall_count and trusted_recall_time; one of a memory that is not
        there changes nothing. A purge removes the memory, its vector, its id from the requests that name it, and a
        request that names no other. Raises Unavailable if nothing was written: disk too full, closed, or a fault of the
        engine.
        """
        ...


class MemoryStore(CommitLog, Protocol):
    """Memories, their vectors and the requests that made them. No method goes without a visibility or an owner."""

    async def page(
        self, visible: Visibility, wanted: Filter, *, now: datetime, limit: int, after: Cursor | None = None
    ) -> list[Memory]:
        """Return at most limit memories past the cursor, newest first, id (descending) as tie-break."""
        ...

    async def find(self, visible: Visibility, prefix: str, *, deleted: bool = False) -> list[Memory]:
        """Return the memories whose id begins so, at most two, deleted ones if asked for; an exact id alone."""
        ...

    async def entry(self, memory: Memory) -> Entry | None:
        """Return a memory with its vector and terms; None if it is gone."""
        ...

    async def faded(self, owner: Owner, as_of: datetime, *, limit: int) -> list[Entry]:
        """
        Return what was stored by a time and has faded since then (delete_reason "decayed"), with vectors and terms.

        At most limit, the newest first; what was deleted otherwise is not among it. The vectors of tokens, which would
        be most of it, are left out.
        """
        ...

    async def entries(self, owner: Owner, ids: Collection[str]) -> list[Entry]:
        """Return the memories of these ids and this owner, deleted ones too, without vectors, in the order of ids."""
        ...

    async def recorded(self, owner: Owner, method: str, request_id: str) -> RecordedRequest | None:
        """Return the request that was carried out under this id, if any."""
        ...

    async def stats(self, visible: Visibility, now: datetime) -> Stats:
        """Count what is visible, by kind, state and scope."""
        ...

    async def same_text(self, owner: Owner, digest: bytes, now: datetime) -> list[Memory]:
        """Return the first 16 live memories of a text digest, oldest first."""
        ...

    async def of_key(self, owner: Owner, key: str, now: datetime) -> list[Memory]:
        """Return the live memories of that key, oldest first."""
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

    def read_owner(self, owner: Owner, build: Callable[[Snapshot], T]) -> T:
        """
        Call build, in this thread, with a snapshot of the owner's memories that are not deleted, and return its result.

        The chunks are read while build consumes them, all in one transaction.
        """
        ...

    async def tombstones(self, owner: Owner, digests: Sequence[bytes]) -> frozenset[bytes]:
        """Return those of the digests that the owner has deleted."""
        ...

    async def note_recalls(self, recalls: Mapping[Owner, Mapping[str, Recalled]]) -> None:
        """Add to recall_count and move the recall times on, by owner and memory id; it may be lost in a crash."""
        ...


class EntityStore(CommitLog, Protocol):
    """The people and things of an owner. No method goes without an owner."""

    async def entities(self, owner: Owner) -> list[Entity]:
        """Return what was decided of the owner's entities by hand, by id."""
        ...

    async def naming(self, owner: Owner, entity_ids: Iterable[str]) -> list[Memory]:
        """Return the owner's memories that name one of these entities, in every state, newest first."""
        ...

    async def is_named(self, owner: Owner, entity_ids: Collection[str], *, but: Collection[str]) -> bool:
        """Whether a memory of the owner, but some, names one of these entities or shows another to be one."""
        ...


class GrantStore(CommitLog, Protocol):
    """Grants, the keys of tokens, and the memories of each grant, of all owners."""

    async def grants(self) -> list[Grant]:
        """Return every grant, also the ended ones, oldest first."""
        ...

    async def token_keys(self) -> list[TokenKey]:
        """Return the keys of tokens that count, oldest first."""
        ...

    async def usage(self, grant_id: str, day: date) -> GrantUsage:
        """
        Return how many memories of a grant are stored, in any state, their bytes, and how many are of one day (UTC).

        It is counted in the transactions of the memories, whoever commits them.
        """
        ...

    async def of_grant(
        self, grant_id: str, *, limit: int, after: Cursor | None = None, deleted: bool = False
    ) -> list[Memory]:
        """Return at most limit memories of a grant, of all owners, newest first past the cursor."""
        ...


class MaintenanceStore(CommitLog, Protocol):
    """What the daemon and operators ask of the whole store: garbage, jobs, files, proofs. No caller reaches it."""

    async def collectable(self, graces: Graces, *, limit: int) -> tuple[GcReport, list[Memory]]:
        """Count all that is past its grace, and return at most limit memories of it."""
        ...

    async def misdated(self, after: datetime, *, limit: int) -> list[Memory]:
        """Return at most limit memories, of all owners, that were deleted or superseded after a time."""
        ...

    async def live_page(self, *, limit: int, after: str = "") -> list[Memory]:
        """Return at most limit memories, neither deleted nor superseded, of all owners, by id past the given one."""
        ...

    async def unenriched(self, *, limit: int) -> list[Memory]:
        """
        Return at most limit live facts without enrich_time, of all owners.

        Those of sandboxes come last, then each owner has a turn after the other, with the oldest first.
        """
        ...

    async def unenriched_count(self) -> int:
        """Return how many such facts there are."""
        ...

    async def unembedded(self, fingerprint: str, *, limit: int, after: str = "") -> list[Memory]:
        """
        Return at most limit memories without a vector of that fingerprint, by id past the given one.

        They are of all owners and in every state.
        """
        ...

    async def locate(self, memory_id: str) -> Memory | None:
        """Return the memory with an id, of any owner, in any state; None if there is none."""
        ...

    async def contents(self, owner: Owner, *, limit: int) -> OwnerContents:
        """Return what an owner has, in whatever state; of ids at most `limit` of each sort."""
        ...

    async def owners_of_user(self, user_id: str, agent_id: str = "") -> list[Owner]:
        """Return the personal scopes of a user in which anything is stored, of one agent or of all."""
        ...

    async def sizes_of_owners(self, agent_id: str = "", *, limit: int) -> OwnerSizes:
        """Return how much is stored of each user and chat, of one agent or of all, those with most text first."""
        ...

    async def traces(self, text: str) -> list[str]:
        """
        Return the tables and columns (`memories.content`) in which a text stands.

        Of a copy from before an upgrade, its file name stands in front with a colon, or it is `unreadable`.
        """
        ...

    async def compact(self) -> Compaction:
        """
        Rewrite the files without the bytes of what was purged; calls go on meanwhile.

        Raises Unavailable if there is no room for a copy, or one is being made.
        """
        ...

    def files(self) -> list[Path]:
        """Return the files that hold it; none where it is in memory."""
        ...

    def backups(self) -> list[str]:
        """Return the files beside it that hold an earlier state of it."""
        ...

    async def info(self) -> StoreInfo:
        """Return what the store is and how large."""
        ...

    async def ping(self) -> None:
        """Return when both writer and reader have answered; raises Unavailable if one cannot."""
        ...

    async def close(self) -> None:
        """Finish what is queued and let go of the files."""
        ...


class Store(MemoryStore, EntityStore, GrantStore, ConversationStore, WorkStore, MaintenanceStore, Protocol):
    """All of it: what RamStore and DuckDBStore are."""
