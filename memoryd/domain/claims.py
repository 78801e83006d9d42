"""A piece of work that one of several daemons before a store does at a time, as long as it says that it is at it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

from memoryd.domain.clock import holds
from memoryd.errors import Contended, MemorydError
from memoryd.model.change import ChangeSet
from memoryd.model.work import Lease
from memoryd.store.base import Store

__all__ = ["LEASE", "claim_name", "claimed", "take"]

LEASE = timedelta(minutes=2)  # after a kill no one does it for so long
RENEW_S = 30.0


def claim_name(kind: str, what: object) -> str:
    """Return the name of a piece of work: it tells nothing of whose it is."""
    return f"{kind}@{hashlib.blake2b(repr(what).encode(), digest_size=16).hexdigest()}"


@contextlib.asynccontextmanager
async def claimed(name: str, holder: str, store: Store, clock: Callable[[], datetime]) -> AsyncIterator[bool]:
    """
    Hold a piece of work as long as the block lasts, and yield True; False where another daemon holds it.

    Where no other daemon is before the store nothing is written, and it is always free.
    """
    if not store.is_shared:
        yield True
        return
    if not await take(Lease(name, holder, clock() + LEASE), store, clock(), longest=2 * LEASE):
        yield False
        return
    renewing = asyncio.create_task(_renew(name, holder, store, clock))
    try:
        yield True
    finally:
        renewing.cancel()
        with contextlib.suppress(MemorydError):  # it ends by itself
            await store.commits.write(ChangeSet(freed_leases=(Lease(name, holder, clock()),)))


async def take(
    lease: Lease,
    store: Store,
    now: datetime,
    *,
    longest: timedelta,
    marks_before: Mapping[str, datetime | None] = MappingProxyType({}),
) -> bool:
    """
    Take a lease; False where someone else holds it, or the marks are not as they are said to have been.

    One that lasts longer than `longest` from now comes from a wrong clock, and holds nothing.
    """
    known = (await store.work.leases()).get(lease.name)
    if holds(None if known is None else known.until, now, longest):
        return False
    change = ChangeSet(leases=(lease,), leases_before={lease.name: known}, marks_before=marks_before)
    try:
        await store.commits.write(change)
    except Contended:
        return False
    return True


async def _renew(name: str, holder: str, store: Store, clock: Callable[[], datetime]) -> None:
    while True:
        await asyncio.sleep(RENEW_S)
        with contextlib.suppress(MemorydError):  # it has ended, and is another's; or the store is away
            await store.commits.write(ChangeSet(leases=(Lease(name, holder, clock() + LEASE),)))
