"""Looking at what is there: by page, by id, in numbers."""

from __future__ import annotations

import hashlib
from datetime import datetime

from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.answers import within_bytes
from memoryd.domain.retrieval.page_token import page_token_after, read_page_token
from memoryd.domain.retrieval.presentation import present, present_one
from memoryd.domain.scopes import Scopes
from memoryd.domain.subjects import resolve_subjects
from memoryd.errors import AmbiguousId, IdentityMissing, InvalidArgument, NotFound
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.memory import Memory, ShownMemory
from memoryd.model.query import Filter
from memoryd.model.results import Page, Stats
from memoryd.model.scope import Owner
from memoryd.model.validation import check_count, check_id
from memoryd.store.base import Store
from memoryd.store.memories import Cursor, MemorySelector, Order, place_in_time
from memoryd.turns import in_turns

__all__ = ["find", "get", "owner_of", "page", "page_of_grant", "stats"]


async def page(caller: Caller, ports: Ports, *, wanted: Filter, page_size: int, page_token: str, now: datetime) -> Page:
    """Return one page; see ListMemories in the contract."""
    size = check_count(page_size, "page_size", default=limits.DEFAULT_PAGE_SIZE, limit=limits.MAX_PAGE_SIZE)
    bound = _bound_to(caller, wanted)
    if not caller.visibility.owners:
        return Page(())  # of every agent, where the user has none
    after = read_page_token(page_token, ports.page_secret, bound) if page_token else None
    scopes = Scopes(ports)
    meant = await resolve_subjects(wanted, caller, scopes)
    memories = await ports.store.memories.page(caller.visibility, meant, now=now, limit=size + 1, after=after)
    kept, token = _page(memories, size, ports.page_secret, bound)
    return Page(tuple(await present(kept, caller, ports, now, scopes=scopes)), token)


async def page_of_grant(
    grant_id: str, ports: Ports, *, page_size: int, page_token: str, deleted: bool, now: datetime
) -> Page:
    """Return one page of what came through a grant; see ListGrantMemories in the contract."""
    size = check_count(page_size, "page_size", default=limits.DEFAULT_PAGE_SIZE, limit=limits.MAX_PAGE_SIZE)
    bound = hashlib.blake2b(f"grant {grant_id} {deleted}".encode(), digest_size=16).digest()
    after = read_page_token(page_token, ports.page_secret, bound) if page_token else None
    selector = MemorySelector(grant_id=grant_id, is_deleted=None if deleted else False)
    place = place_in_time(after.create_time, after.id) if after else ""
    memories = await ports.store.memories.scan(selector, limit=size + 1, after=place, order=Order.NEWEST)
    kept, token = _page(memories, size, ports.page_secret, bound)
    return Page(tuple([memory.shown(now) async for memory in in_turns(kept)]), token)


async def page_of_deleted(owner: Owner, ports: Ports, *, page_size: int, page_token: str, now: datetime) -> Page:
    """Return one page of what an owner has deleted and can restore; see ListDeletedMemories in the contract."""
    size = check_count(page_size, "page_size", default=limits.DEFAULT_PAGE_SIZE, limit=limits.MAX_PAGE_SIZE)
    bound = hashlib.blake2b(f"deleted {owner}".encode(), digest_size=16).digest()
    after = read_page_token(page_token, ports.page_secret, bound) if page_token else None
    place = place_in_time(after.create_time, after.id) if after else ""
    selector = MemorySelector(owner=owner, is_deleted=True)
    memories = await ports.store.memories.scan(selector, limit=size + 1, after=place, order=Order.NEWEST)
    kept, token = _page(memories, size, ports.page_secret, bound)
    return Page(tuple([memory.shown(now) async for memory in in_turns(kept)]), token)


def _page(memories: list[Memory], size: int, secret: bytes, bound: bytes) -> tuple[list[Memory], str]:
    """Return what fits of what was found, one more than the page has, and the token of the rest."""
    kept = within_bytes(memories[:size])
    token = (
        "" if len(kept) == len(memories) else page_token_after(Cursor(kept[-1].create_time, kept[-1].id), secret, bound)
    )
    return kept, token


def _bound_to(caller: Caller, wanted: Filter) -> bytes:
    """Return what a token is bound to: who asks, and what for."""
    kinds = sorted(kind.value for kind in wanted.kinds)
    rest = [(name, getattr(wanted, name)) for name in Filter.__dataclass_fields__ if name not in {"kinds", "metadata"}]
    asked = (caller.agent_id, caller.user_id, caller.chat_id, kinds, sorted(wanted.metadata.items()), rest)
    return hashlib.blake2b(repr(asked).encode(), digest_size=16).digest()


async def find(memory_id: str, caller: Caller, store: Store, *, deleted: bool = False, field: str = "id") -> Memory:
    """Return the one memory that the caller sees under an id, named by a field, or a prefix of 8 characters or more."""
    prefix = check_id(memory_id, field).lower()
    if len(prefix) < limits.MIN_ID_PREFIX:
        raise InvalidArgument(
            f"{field} has {len(prefix)} characters; give at least {limits.MIN_ID_PREFIX} of its {limits.ID_LENGTH}",
            field=field,
        )
    memories = await store.memories.find(caller.visibility, prefix, deleted=deleted)
    if not memories:
        raise NotFound(f"there is no memory {prefix}", field=field)
    if len(memories) > 1:
        raise AmbiguousId(f"several memories begin with {prefix}; give more of the id", field=field)
    return memories[0]


async def owner_of(memory_id: str, store: Store) -> Owner:
    """Return whose the memory of a whole id is, in whatever state; for the host, which may act for anybody."""
    known = check_id(memory_id, "id").lower()
    if len(known) != limits.ID_LENGTH:
        raise IdentityMissing(
            f"say who asks, user_id or chat_id, or give all {limits.ID_LENGTH} characters of the id", field="user_id"
        )
    memories = await store.memories.scan(MemorySelector(ids=(known,)), limit=1)
    if not memories:
        raise NotFound(f"there is no memory {known}", field="id")
    return memories[0].owner


async def get(memory_id: str, caller: Caller, ports: Ports, *, now: datetime) -> ShownMemory:
    """Return one memory; see GetMemory in the contract."""
    return await present_one(await find(memory_id, caller, ports.store), caller, ports, now)


async def stats(caller: Caller, store: Store, *, now: datetime) -> Stats:
    """Count what the caller sees."""
    return await store.memories.stats(caller.visibility, now)
