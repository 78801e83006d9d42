"""
Pages of a queue that several daemons work on: each takes one, and a counter moves behind what is done.

A page is what lies past one number and up to another. Who takes one leases it under its first number; once it is done,
the counter moves up to its end if it stands at its beginning, else the lease stays as a mark that it is done, until the
counter is moved past it. A page whose daemon has gone is taken by another when its lease has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from memoryd.domain.clock import holds
from memoryd.model.change import ChangeSet
from memoryd.model.work import CounterName, Lease

__all__ = ["LEASE", "Free", "caught_up", "done", "free", "taken"]

LEASE = timedelta(minutes=2)  # after a kill no one takes the page for so long
DONE = "done"


class Free(NamedTuple):
    """Where a page may begin that no one has in hand, and up to which number it may reach (None: without end)."""

    after: int
    until: int | None = None


def _name(queue: CounterName, first: int) -> str:
    return f"{queue.name}@{first}"


def _of(queue: CounterName, leases: Mapping[str, Lease]) -> dict[int, tuple[str, int, Lease]]:
    """Return the pages of a queue that are in hand or done, by their first number: who has each, and its last one."""
    begin = f"{queue.name}@"
    found = {}
    for name, lease in leases.items():
        if name.startswith(begin):
            holder, _, last = lease.holder.rpartition("/")
            found[int(name.removeprefix(begin))] = (holder, int(last), lease)
    return found


def free(queue: CounterName, counter: int, leases: Mapping[str, Lease], now: datetime) -> Free:
    """Return the next page that no one has done or has in hand; `counter` is up to where all is done."""
    pages = {
        first: last
        for first, (holder, last, lease) in _of(queue, leases).items()
        if holder == DONE or holds(lease.until, now, 2 * LEASE)
    }
    after = counter
    while after in pages:
        after = pages[after]
    return Free(after, min((first for first in pages if first > after), default=None))


def caught_up(queue: CounterName, counter: int, leases: Mapping[str, Lease]) -> ChangeSet | None:
    """Return the change that moves a counter past the pages behind it that are done; None where there are none."""
    return _moved(queue, counter, _of(queue, leases), {})


def _moved(
    queue: CounterName, counter: int, known: Mapping[int, tuple[str, int, Lease]], ended: Mapping[int, int]
) -> ChangeSet | None:
    """Return the change that moves a counter past what is done, as marks say or by `ended`; None: it stays."""
    ends = {**{first: last for first, (holder, last, _) in known.items() if holder == DONE}, **ended}
    reached = counter
    while reached in ends:
        reached = ends[reached]
    if reached == counter:
        return None
    freed = tuple(lease for first, (_, _, lease) in known.items() if first < reached)
    return ChangeSet(counters={queue: reached}, counters_before={queue: counter}, freed_leases=freed)


def taken(
    queue: CounterName, counter: int, page: tuple[int, int], holder: str, leases: Mapping[str, Lease], now: datetime
) -> tuple[Lease, ChangeSet]:
    """Return the lease of a page, past one number and up to another, and the change that takes it."""
    first, last = page
    name = _name(queue, first)
    lease = Lease(name, f"{holder}/{last}", now + LEASE)
    return lease, _leased(lease, leases.get(name), queue, counter)


def _leased(lease: Lease, before: Lease | None, queue: CounterName, counter: int) -> ChangeSet:
    """Return the change that puts a lease in place of another one, if the counter stands where it stood."""
    return ChangeSet(leases=(lease,), leases_before={lease.name: before}, counters_before={queue: counter})


def done(
    queue: CounterName,
    counter: int,
    page: tuple[int, int],
    mine: Lease | None,
    leases: Mapping[str, Lease],
    now: datetime,
) -> ChangeSet | None:
    """
    Return the change that notes a page as done; None where another daemon has it or has done it.

    `mine` is its lease; None for a page that was not leased, as it is small.
    """
    first, last = page
    name = _name(queue, first)
    if leases.get(name) != mine or first < counter:
        return None
    moved = _moved(queue, counter, _of(queue, leases), {first: last})
    if moved is not None:
        return moved
    mark = Lease(name, f"{DONE}/{last}", now)  # others have what comes before in hand
    return _leased(mark, mine, queue, counter)
