"""
The grants that there are, and what is left of each.

The store keeps them; this is the copy that every call asks, once it has looked whether another daemon has changed
something since. Nothing here reads the clock: wall time and monotonic time are handed in.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from memoryd.errors import AmbiguousId, Contended, GrantNotFound, InvalidArgument, LimitExceeded, Unauthenticated
from memoryd.model import limits
from memoryd.model.change import ChangeSet
from memoryd.model.commits import Applied
from memoryd.model.grant import NO_LIMITS, Grant, GrantUsage, Quota, TokenKey
from memoryd.model.memory import Memory
from memoryd.model.validation import check_id
from memoryd.store.base import Store

__all__ = ["Grants"]

KEY_BYTES = 32
UNKNOWN = -1  # the head of a copy that is to be read again
DAY = timedelta(days=1)


@dataclass(slots=True)
class _Bucket:
    """The calls that a grant has left now: filled at its rate, up to one second's worth."""

    left: float
    time_s: float


class Grants:
    """Every grant by its id, and the keys of tokens."""

    def __init__(
        self,
        store: Store,
        grants: Iterable[Grant],
        keys: Iterable[TokenKey],
        monotonic_s: Callable[[], float],
        random_bytes: Callable[[int], bytes],
        *,
        today: date,
        head: int = 0,
    ) -> None:
        """Begin with what the store held on a day (UTC), up to its head, and follow its commits."""
        self._store = store
        self._random_bytes = random_bytes
        self._grants = {grant.id: grant for grant in grants}
        self._keys = {key.id: key for key in keys}
        self._buckets: dict[str, _Bucket] = {}
        self._under_way: dict[str, int] = {}
        self._today = today
        self._not_stored: dict[str, int] = {}
        """Writes of this day that stored nothing, or nothing yet."""
        self._head = head
        self._changing = asyncio.Lock()
        self._monotonic_s = monotonic_s
        store.commits.memories.follow(self._follow)
        store.commits.messages.follow(self._follow_messages)

    # --- looking up ---

    async def refresh(self) -> int:
        """Take in what other daemons have granted, revoked and rotated, and return the head that this copy has."""
        if await self._store.grants.head() != self._head:
            async with self._changing:
                await self._take_in()
        return self._head

    async def _take_in(self) -> None:
        head = await self._store.grants.head()  # first: what changes while the rest is read is taken in the next time
        if head == self._head:
            return
        known, grants, keys = self._grants, await self._store.grants.all(), await self._store.grants.token_keys()
        # what is as it was stays the same object: tokens that were verified are told by it
        self._grants = {grant.id: known[grant.id] if known.get(grant.id) == grant else grant for grant in grants}
        self._keys = {key.id: self._keys[key.id] if self._keys.get(key.id) == key else key for key in keys}
        self._buckets = {grant_id: bucket for grant_id, bucket in self._buckets.items() if grant_id in self._grants}
        self._head = head

    def get(self, grant_id: str) -> Grant | None:
        """Return a grant as it is now."""
        return self._grants.get(grant_id)

    def find(self, prefix: str) -> Grant:
        """Return the grant of an id or of a unique prefix of at least 8 characters; GrantNotFound, AmbiguousId."""
        prefix = check_id(prefix, "grant_id").lower()
        if len(prefix) < limits.MIN_ID_PREFIX:
            raise InvalidArgument(
                f"grant_id has {len(prefix)} characters; give at least {limits.MIN_ID_PREFIX}", field="grant_id"
            )
        exact = self._grants.get(prefix)
        grants = [exact] if exact else [grant for grant in self._grants.values() if grant.id.startswith(prefix)]
        if not grants:
            raise GrantNotFound(f"there is no grant {prefix}", field="grant_id")
        if len(grants) > 1:
            raise AmbiguousId(f"several grants begin with {prefix}; give more of the id", field="grant_id")
        return grants[0]

    def all(self) -> list[Grant]:
        """Return every grant, newest first."""
        return sorted(self._grants.values(), key=lambda grant: (grant.create_time, grant.id), reverse=True)

    async def usage(self, grant_id: str, now: datetime) -> GrantUsage:
        """Return what came through a grant: what is stored, by whomever, and the writes of this day."""
        stored = await self._store.grants.usage(grant_id, self._day(now))
        return replace(stored, writes_today=stored.writes_today + self._not_stored.get(grant_id, 0))

    # --- changing ---

    async def _write(self, change: ChangeSet) -> None:
        """Write a change; Unavailable if that cannot be. What others change meanwhile is taken in by a refresh."""
        await self._store.commits.write(change)
        self._head += 1  # less than the store's where others were first

    async def save(self, grant: Grant) -> None:
        """Make a new grant durable; Unavailable if that cannot be."""
        async with self._changing:
            await self._write(ChangeSet(grants=(grant,)))
            self._grants[grant.id] = grant

    async def revoke(self, grant: Grant, now: datetime) -> Grant:
        """
        Take a grant back, and return it; one that is revoked stays as it is. GrantNotFound if it is gone.

        It counts no longer from here on, so nothing is handed to the writer any more. What any daemon has handed to it
        before is committed before the revocation is, and so before this returns, or is refused: see `admit`.
        """
        async with self._changing:
            await self._take_in()
            known = self._known(grant.id)
            if known.revoke_time is not None:
                return known
            self._grants[grant.id] = revoked = replace(known, revoke_time=now)
            try:
                await self._write(ChangeSet(grants=(revoked,)))
            except BaseException:
                self._grants[grant.id] = known  # what could not be taken back still counts, and the caller is told
                self._head = UNKNOWN
                raise
            self._buckets.pop(grant.id, None)
            return revoked

    def _known(self, grant_id: str) -> Grant:
        grant = self._grants.get(grant_id)
        if grant is None:
            raise GrantNotFound(f"there is no grant {grant_id}", field="grant_id")
        return grant

    async def forget(self, grant_ids: Sequence[str]) -> None:
        """Remove ended grants for good."""
        async with self._changing:
            await self._write(ChangeSet(forget_grants=tuple(grant_ids)))
            for grant_id in grant_ids:
                self._grants.pop(grant_id, None)
                self._buckets.pop(grant_id, None)

    async def admit(self, grant_id: str, now: datetime) -> int | None:
        """
        Return the head of grants on which one counts; Unauthenticated if it does no longer. None for the host.

        A change set that names the head (`grants_seen`) is refused where any daemon has revoked something since.
        """
        if not grant_id:
            return None
        head = await self.refresh()
        self.check(grant_id, now)
        return head

    def check(self, grant_id: str, now: datetime) -> None:
        """Raise Unauthenticated if a grant counts no longer; called just before what it asked for is written."""
        if grant_id:
            grant = self._grants.get(grant_id)
            refusal = grant.refusal(now) if grant is not None else f"there is no grant {grant_id[:8]}"
            if refusal:
                raise Unauthenticated(f"{refusal}; nothing was written")

    # --- quotas ---

    def quota(self, grant_id: str) -> Quota:
        """Return what a grant may store, also one that has ended; without limits where there is none."""
        grant = self._grants.get(grant_id)
        return NO_LIMITS if grant is None else grant.quota

    async def charge(self, grant: Grant, writes: int, now: datetime) -> None:
        """Take a call and its writes from what is left of a grant; LimitExceeded names what is used up."""
        quota = grant.quota
        if quota.calls_per_second:
            self._take_call(grant, quota.calls_per_second)
        if not writes:
            return
        day = self._day(now)
        if quota.writes_per_day:
            if writes > quota.writes_per_day:
                raise LimitExceeded(
                    f"the request counts as {writes} writes (its statements or messages, at least one for each 16 KiB),"
                    f" and the grant allows {quota.writes_per_day} a day; send less at a time",
                    limit="writes_per_day",
                )
            used = await self.usage(grant.id, now)
            if used.writes_today + writes > quota.writes_per_day:
                raise LimitExceeded(
                    f"the grant allows {quota.writes_per_day} writes a day (UTC); wait for the next",
                    limit="writes_per_day",
                )
        if day == self._today:  # it may have ended while its writes were counted
            self._count(grant.id, writes)  # nothing waits after the look-up, so no other call comes in between

    def _day(self, now: datetime) -> date:
        """Return the day whose writes count, and begin a new one; a clock may step back a little."""
        today = now.date()
        if today > self._today or today < self._today - DAY:
            self._today = today
            self._not_stored.clear()
        return self._today

    def _count(self, grant_id: str, writes: int) -> None:
        left = self._not_stored.pop(grant_id, 0) + writes
        if left:
            self._not_stored[grant_id] = left

    def _follow(self, applied: Applied) -> None:
        """Take out what is stored now, and so counted by the store; what is purged was written all the same."""
        for entry in applied.change.inserts:
            self._count_stored(entry.memory, 1)
        for memory in applied.change.purges:
            self._count_stored(memory, -1)

    def _follow_messages(self, applied: Applied) -> None:
        """Take out the messages that are stored now; the store counts also those that are erased."""
        for entry in applied.change.inserts:
            self._count_stored(entry.memory, 1)

    def _count_stored(self, memory: Memory, count: int) -> None:
        if memory.grant_id and memory.create_time.date() == self._today:
            self._count(memory.grant_id, -count)

    def _take_call(self, grant: Grant, rate: float) -> None:
        time_s, most = self._monotonic_s(), max(1.0, rate)
        bucket = self._buckets.get(grant.id)
        if bucket is None:
            bucket = self._buckets[grant.id] = _Bucket(most, time_s)
        bucket.left = min(most, bucket.left + (time_s - bucket.time_s) * rate)
        bucket.time_s = time_s
        if bucket.left < 1:
            raise LimitExceeded(
                f"the grant allows {rate:g} calls a second; wait {(1 - bucket.left) / rate:.2f} s",
                limit="calls_per_second",
            )
        bucket.left -= 1

    def enter(self, grant_id: str, most: int) -> None:
        """Count a call as under way; LimitExceeded if so many are already."""
        under_way = self._under_way.get(grant_id, 0)
        if under_way >= most:
            raise LimitExceeded(f"the grant has {most} calls under way; wait for them", limit="concurrent_calls")
        self._under_way[grant_id] = under_way + 1

    def leave(self, grant_id: str) -> None:
        """Count a call as done."""
        left = self._under_way.pop(grant_id) - 1
        if left:
            self._under_way[grant_id] = left

    # --- the keys of tokens ---

    def key(self, key_id: str) -> TokenKey | None:
        """Return a key that verifies."""
        return self._keys.get(key_id)

    async def signing_key(self, now: datetime) -> TokenKey:
        """Return the newest key; the first time it is made, by one of all daemons."""
        async with self._changing:
            while not self._keys:
                await self._take_in()
                if not self._keys:
                    with contextlib.suppress(Contended):  # another daemon has made it
                        await self._rotate(now, seen=self._head)
                        break
                    self._head = UNKNOWN
        return max(self._keys.values(), key=lambda key: (key.create_time, key.id))

    async def rotate_keys(self, now: datetime, *, drop_older: bool) -> list[TokenKey]:
        """Make a new key, and return all that count from now on, oldest first."""
        async with self._changing:
            await self._take_in()
            await self._rotate(now, drop_older=drop_older)
        return sorted(self._keys.values(), key=lambda key: (key.create_time, key.id))

    async def _rotate(self, now: datetime, *, drop_older: bool = False, seen: int | None = None) -> None:
        newest = max((key.create_time for key in self._keys.values()), default=now)
        new = TokenKey(self._random_bytes(4).hex(), self._random_bytes(KEY_BYTES), max(now, newest))
        dropped = tuple(self._keys) if drop_older else ()
        await self._write(ChangeSet(token_keys=(new,), drop_keys=dropped, grants_seen=seen))
        self._keys = {**({} if drop_older else self._keys), new.id: new}
