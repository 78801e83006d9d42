"""
Giving and taking back: a grant with its socket, or with tokens.

What is given is durable before it is handed out; what is taken back is durable before its socket is closed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from memoryd.domain.retrieval.page_token import page_token_after, read_page_token
from memoryd.errors import InvalidArgument, MemorydError, Unauthenticated
from memoryd.identity.authentication import Authenticator, Session
from memoryd.identity.grants import Grants
from memoryd.identity.listeners import Listeners
from memoryd.model import limits
from memoryd.model.caller import DEFAULT_AGENT
from memoryd.model.grant import Door, Grant, GrantSpec, GrantStatus, Quota
from memoryd.model.token import Caveats, Token, mint, parse_token
from memoryd.model.validation import check_count
from memoryd.store.memories import Cursor

__all__ = ["GrantIssuer", "Inspected"]


_ROW_BYTES = 400  # what a grant's message takes besides its texts


@dataclass(frozen=True, slots=True)
class Inspected:
    """What a token is: its parts, what is left of its grant, and why it does not count (empty: it does)."""

    token: Token
    session: Session | None
    refusal: str

    @property
    def grant(self) -> Grant | None:
        """What is left of the grant under the caveats; None if the token is nothing."""
        if self.session is None or self.session.grant is None:
            return None
        return replace(
            self.session.grant,
            permissions=self.session.permissions,
            chat_ids=self.session.chat_ids,
            expire_time=self.session.expire_time,
        )


class GrantIssuer:
    """Who was given what, and the sockets that go with it."""

    def __init__(  # noqa: PLR0913  the wiring of its parts
        self,
        grants: Grants,
        listeners: Listeners,
        *,
        store_id: str,
        host_id: str,
        default_quota: Quota,
        secret: bytes,
        new_id: Callable[[], str],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        """
        Wire the parts.

        `host_id` names this host among those that share the database; `secret` signs page tokens; a quota that a grant
        does not name is the default one.
        """
        self._grants = grants
        self._listeners = listeners
        self._store_id = store_id
        self._host_id = host_id
        self._secret = secret
        self._default_quota = default_quota
        self._new_id = new_id
        self._random_bytes = random_bytes
        self._lock = asyncio.Lock()  # one change of the sockets after the other

    async def status(self, grant: Grant, now: datetime) -> GrantStatus:
        """Return a grant with what came of it."""
        is_open = self._listeners.is_open(grant.id)
        directory = str(self._listeners.folder(grant.id)) if is_open else ""
        return GrantStatus(grant, await self._grants.usage(grant.id, now), directory, grant.refusal(now))

    async def page(
        self, now: datetime, *, page_size: int, page_token: str, include_ended: bool, listeners_only: bool
    ) -> tuple[list[GrantStatus], str]:
        """Return one page of grants, newest first, and the token of the next; see ListGrants in the contract."""
        size = check_count(page_size, "page_size", default=limits.MAX_PAGE_SIZE, limit=limits.MAX_PAGE_SIZE)
        asked = f"grants {include_ended} {listeners_only}"
        bound = hashlib.blake2b(asked.encode(), digest_size=16).digest()
        after = read_page_token(page_token, self._secret, bound) if page_token else None
        page: list[GrantStatus] = []
        left = limits.MAX_PAGE_BYTES
        for grant in self._grants.all():
            if after is not None and (grant.create_time, grant.id) >= (after.create_time, after.id):
                continue
            if (grant.refusal(now) and not include_ended) or (listeners_only and not grant.listener):
                continue
            left -= _ROW_BYTES + len("".join((*grant.chat_ids, grant.user_id, grant.agent_id, grant.label)).encode())
            if len(page) == size or (left < 0 and page):
                last = page[-1].grant
                return page, page_token_after(Cursor(last.create_time, last.id), self._secret, bound)
            page.append(await self.status(grant, now))
        return page, ""

    async def collect(self, now: datetime, *, grace_days: float, dry_run: bool = False) -> int:
        """Remove grants that ended longer ago than the grace and have nothing stored; return how many."""
        before = now - timedelta(days=grace_days)
        over = [
            grant.id
            for grant in self._grants.all()
            if any(end is not None and end <= before for end in (grant.revoke_time, grant.expire_time))
            and not (await self._grants.usage(grant.id, now)).stored_memories
        ]
        if over and not dry_run:
            await self._grants.forget(over)
        return len(over)

    async def open_sandbox(self, spec: GrantSpec, now: datetime) -> GrantStatus:
        """Make a grant with a socket; LimitExceeded without descriptors for it, Unavailable if it cannot be opened."""
        grant = spec.grant(self._new_id(), DEFAULT_AGENT, self._default_quota, now, listener=True)
        return await self._open(replace(grant, host_id=self._host_id), now)

    async def _open(self, grant: Grant, now: datetime) -> GrantStatus:
        async with self._lock:
            self._listeners.check_room(grant)
            await self._grants.save(grant)
            try:
                await self._listeners.open(grant)
            except MemorydError:
                await self._grants.revoke(grant, now)
                raise
        return await self.status(grant, now)

    async def revoke(self, grant_id: str, now: datetime) -> Grant:
        """Take a grant back and cut the calls on its socket."""
        return await self._revoke(self._grants.find(grant_id), now)

    async def _revoke(self, grant: Grant, now: datetime) -> Grant:
        revoked = await self._grants.revoke(grant, now)
        async with self._lock:
            await self._listeners.close(grant.id, forget=True)
        return revoked

    def elsewhere(self, now: datetime) -> int:
        """Return how many sandboxes have their socket on another host."""
        return sum(
            grant.listener and grant.host_id != self._host_id and not grant.refusal(now) for grant in self._grants.all()
        )

    async def reopen(self, now: datetime) -> list[str]:
        """Open this host's sockets that are missing of grants that count; return what went wrong, in words."""
        await self._grants.refresh()
        faults = []
        living = [grant for grant in self._grants.all() if grant.listener and not grant.refusal(now)]
        self._listeners.forget_others({grant.id for grant in living})
        mine = [grant for grant in living if grant.host_id == self._host_id]
        missing = [grant for grant in mine if not self._listeners.is_open(grant.id)]
        for grant in reversed(missing):  # the oldest first, should there not be room for all
            try:
                await self._listeners.open(grant)
            except MemorydError as error:
                faults.append(f"the socket of grant {grant.id[:8]} is not open: {error.message}")
        return faults

    async def close_ended(self, now: datetime) -> list[str]:
        """Close the sockets of grants that have expired, or were revoked at another daemon, and return their ids."""
        await self._grants.refresh()
        ended = []
        for grant_id in self._listeners.open_ids:
            grant = self._grants.get(grant_id)
            if grant is None or grant.refusal(now):
                async with self._lock:
                    await self._listeners.close(grant_id, forget=True)
                ended.append(grant_id)
        return ended

    async def close_all(self, grace_s: float) -> None:
        """Close every socket for a stop; the directories stay, so that their mounts go on after the next start."""
        await asyncio.gather(
            *(self._listeners.close(grant_id, forget=False, grace_s=grace_s) for grant_id in self._listeners.open_ids)
        )

    # --- tokens ---

    async def issue(
        self, target: GrantSpec | str, now: datetime, *, expire_time: datetime | None = None, via: str = ""
    ) -> tuple[Token, Grant]:
        """Make a token, for a new grant or for the one of that id; InvalidArgument if it could not be used."""
        if expire_time is not None and expire_time <= now:
            raise InvalidArgument("expire_time is not in the future", field="expire_time")
        return await self._issue(target, now, expire_time, via)

    async def _issue(
        self, target: GrantSpec | str, now: datetime, expire_time: datetime | None, via: str
    ) -> tuple[Token, Grant]:
        if isinstance(target, str):
            grant = self._grants.find(target)
            if grant.refusal(now):
                raise InvalidArgument(f"{grant.refusal(now)}; issue the token for a new grant", field="grant_id")
        else:
            grant = target.grant(self._new_id(), DEFAULT_AGENT, self._default_quota, now, listener=False)
        if via not in {"", Door.SHARED.value, Door.TCP.value} and not (grant.listener and via == grant.id):
            raise InvalidArgument(
                f"via is {via!r}; it must be shared, tcp, or the id of the grant's own sandbox", field="via"
            )
        key = await self._grants.signing_key(now)
        if not isinstance(target, str):
            await self._grants.save(grant)
        caveats = Caveats(expire_time=expire_time, via=via).texts()
        return mint(key.id, key.secret, grant.id, self._random_bytes(8).hex(), caveats), grant

    def inspect(self, text: str, now: datetime) -> Inspected:
        """Return what a token is; InvalidArgument if it is none."""
        try:
            token = parse_token(text)
        except Unauthenticated as error:
            raise InvalidArgument(error.message, field="token") from None
        authenticator = Authenticator(Door.SHARED, self._grants, store_id=self._store_id)
        return Inspected(token, *authenticator.look_at(token, now))

    async def rotate_keys(self, now: datetime, *, drop_older: bool) -> list[str]:
        """Make a new key, and return the ids of all that count, oldest first."""
        return [key.id for key in await self._grants.rotate_keys(now, drop_older=drop_older)]
