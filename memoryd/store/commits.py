"""What a store promises of writing, and of who follows what is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from memoryd.errors import Contended
from memoryd.model.change import ChangeSet, RecordedRequest
from memoryd.model.commits import Applied, Head, Snapshot
from memoryd.model.scope import Owner
from memoryd.model.work import CounterName, Lease

__all__ = ["Commits", "Feed", "check_counters", "check_leases", "check_marks", "check_owners"]

T = TypeVar("T")


class Feed(Protocol):
    """The commits of memories, of messages or of notes, in the order of each owner: what an index is made of."""

    def follow(self, callback: Callable[[Applied], None]) -> None:
        """
        Call back with each change set after it is durable and before its write() returns, in order of commit.

        Of what others commit to the same database, only `changes` tells.
        """
        ...

    async def head(self, owner: Owner) -> Head:
        """Return how far the commits of an owner have come, whoever made them."""
        ...

    async def changes(self, owner: Owner, since: int) -> Applied | None:
        """
        Return what brings an owner from a number to now, as one change set; None where not all is known.

        Read a snapshot then. A purge is never in it: nothing is kept that names what is gone.
        """
        ...

    def snapshot(self, owner: Owner, build: Callable[[Snapshot], T]) -> T:
        """
        Call build, in this thread, with a snapshot of what the owner has that is not deleted, and return its result.

        The chunks are read while build consumes them, all in one transaction. Messages come as memories.
        """
        ...


class Commits(Protocol):
    """Takes change sets, and knows which requests were carried out."""

    @property
    def memories(self) -> Feed:
        """The commits of memories."""
        ...

    @property
    def messages(self) -> Feed:
        """
        The commits of messages, which have an order of their own.

        So no decision about memories is made again because someone spoke meanwhile.
        """
        ...

    @property
    def notes(self) -> Feed:
        """The commits of notes that are searched, which have an order of their own too."""
        ...

    async def write(self, *changes: ChangeSet) -> None:
        """
        Make change sets durable, all of them or none.

        Each is of one owner, or of the whole store (ValueError else; see `ChangeSet.by_owner`), and gets the next
        number of its owner. Raises Contended, with nothing written, where the owner was changed after the commit that
        one is based on, grants or keys were after the head that one has seen, a request id is taken, or marks, leases
        or counters are not as the change says they were.

        Commits that wait together may share a transaction, and one that fails harms no other. An update replaces
        every column of the memory but recall_time, recall_count and trusted_recall_time; of two of one memory the last
        counts, and one of a memory that is not there changes nothing. A purge removes the memory, its vector, its id
        from the receipts that name it, and a receipt that is about nothing else. Raises Unavailable if nothing was
        written: disk too full, closed, or a fault of the engine.
        """
        ...

    async def recorded(self, owner: Owner, method: str, request_id: str) -> RecordedRequest | None:
        """Return the request that was carried out under this id, if any."""
        ...


def check_owners(changes: Sequence[ChangeSet]) -> None:
    """Raise ValueError for a change set that mixes owners, or an owner's rows with those of the whole store."""
    if not all(change.is_of_one for change in changes):
        raise ValueError("a change set mixes owners; see ChangeSet.by_owner")


def check_marks(change: ChangeSet, marks: Mapping[str, datetime]) -> None:
    """Raise Contended where marks are not as they were when a change was decided."""
    if any(marks.get(name) != before for name, before in change.marks_before.items()):
        raise Contended("someone else has run the job; nothing was written")


def check_leases(change: ChangeSet, leases: Mapping[str, Lease]) -> None:
    """Raise Contended where a lease that a change takes is not as it was, or one that it renews is not its holder's."""
    for lease in change.leases:
        current = leases.get(lease.name)
        if lease.name in change.leases_before:
            is_right = current == change.leases_before[lease.name]
        else:
            is_right = current is not None and current.holder == lease.holder
        if not is_right:
            raise Contended(f"someone else has leased {lease.name!r}; nothing was written")


def check_counters(change: ChangeSet, counters: Mapping[CounterName, int]) -> None:
    """Raise Contended where counters are not as they were when a change was decided."""
    if any(counters.get(name) != before for name, before in change.counters_before.items()):
        raise Contended("another daemon has done this work meanwhile; nothing was written")
