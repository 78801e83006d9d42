"""Exporting: all that is stored, in one order, from any place on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import NamedTuple

from memoryd.domain.ports import Ports
from memoryd.domain.transfer.records import OwnedText, Record, ThreadRecord, WorkDone, record_line
from memoryd.errors import InvalidArgument
from memoryd.model.conversation import Thread
from memoryd.model.scope import Owner, Scope, Visibility
from memoryd.store.base import Store
from memoryd.store.conversations import MessageSelector
from memoryd.store.memories import MemorySelector, owner_place

__all__ = ["Export", "export"]

EVERY_OWNER = 1 << 40
AT_ONCE = 500  # rows that are read at once
ALL = 1 << 31  # rows at once: one look, so that what is touched meanwhile is not missed between two pages
SECTIONS = ("thread", "memory", "entity", "working_memory")
"""Of an owner, in their order: what is learnt from a thread meanwhile is learnt again rather than lost."""


class Export(NamedTuple):
    """Some lines, and after what the next ones come; empty: these were the last."""

    lines: list[str]
    next_cursor: str


class _Place(NamedTuple):
    """After what it goes on; of the first owner "" three times."""

    agent_id: str = ""
    user_id: str = ""
    chat_id: str = ""
    section: str = ""
    key: str = ""
    """Of a memory its place, of an entity its id, of a thread its id."""
    seq: int = 0
    """Of a thread the last message."""
    last_seq: int = 0
    """Of a thread the last message that its record speaks of."""
    session_count: int = 0
    """Of a thread the sessions that were returned."""


async def export(ports: Ports, *, user_id: str, cursor: str, most_bytes: int) -> Export:
    """
    Return about so many bytes of lines after a place, of one user or of all. InvalidArgument for a cursor that is none.

    What is written meanwhile is in it or not: for one moment, export a store that was restored from a backup.
    """
    lines: list[str] = []
    size = 0
    async for place, record in _records(ports.store, user_id, _read(cursor)):
        lines.append(record_line(record))
        size += len(lines[-1].encode())
        if size >= most_bytes:
            return Export(lines, json.dumps(place))
    return Export(lines, "")


def _read(cursor: str) -> _Place:
    if not cursor:
        return _Place()
    try:
        place = _Place(*json.loads(cursor))
    except (ValueError, TypeError, RecursionError):
        place = _Place(seq=-1)
    numbers = place[5:]
    are_texts = all(isinstance(part, str) for part in place[:5])
    if not are_texts or not all(type(number) is int and 0 <= number < 1 << 53 for number in numbers):
        raise InvalidArgument("cursor is none that an export has returned", field="cursor")
    return place


async def _records(store: Store, user_id: str, after: _Place) -> AsyncIterator[tuple[_Place, Record]]:
    if not user_id and not after.agent_id:
        for grant in sorted(await store.grants.all(), key=lambda grant: grant.id):
            if after.section != "grant" or grant.id > after.key:
                yield _Place(section="grant", key=grant.id), grant
    for owner in await _owners(store, user_id):
        begin = _Place(owner.agent_id, owner.scope.user_id or "", owner.scope.chat_id or "")
        if begin[:3] < after[:3]:
            continue
        place = after if begin[:3] == after[:3] else begin
        async for one in _of_owner(store, owner, place):
            yield one


async def _owners(store: Store, user_id: str) -> list[Owner]:
    """Return the owners in the order of an export."""
    if user_id:
        owners = await store.owners.of_user(user_id)
    else:
        sizes = (await store.owners.sizes(limit=EVERY_OWNER)).owners
        owners = [Owner(size.agent_id, Scope(size.user_id or None, size.chat_id or None)) for size in sizes]
    return sorted(owners, key=lambda owner: (owner.agent_id, owner.scope.user_id or "", owner.scope.chat_id or ""))


async def _of_owner(store: Store, owner: Owner, after: _Place) -> AsyncIterator[tuple[_Place, Record]]:
    base = _Place(*after[:3])
    done = SECTIONS.index(after.section) if after.section in SECTIONS else -1
    if done <= 0:
        async for one in _threads(store, owner, base, after if done == 0 else base):
            yield one
    if done <= 1:
        place = after.key if done == 1 else ""
        while memories := await store.memories.scan(MemorySelector(owner=owner), limit=AT_ONCE, after=place):
            for memory in memories:
                place = owner_place(memory)
                yield base._replace(section="memory", key=place), memory
    for entity in await store.people.entities(owner) if done <= SECTIONS.index("entity") else ():
        if done < SECTIONS.index("entity") or entity.id > after.key:
            yield base._replace(section="entity", key=entity.id), entity
    working_memory = await store.conversations.working_memory(owner)
    if working_memory.text and after.section != "working_memory":
        yield base._replace(section="working_memory"), OwnedText(owner, working_memory)


async def _threads(store: Store, owner: Owner, base: _Place, after: _Place) -> AsyncIterator[tuple[_Place, Record]]:
    visible = Visibility(owner.agent_id, owner.scope.user_id, owner.scope.chat_id)
    every = await store.conversations.threads(visible, limit=ALL)
    for thread_id in sorted(thread.id for thread in every if thread.owner == owner and thread.id >= after.key):
        thread = await store.conversations.thread(owner, thread_id)
        if thread is None:
            continue  # it was erased meanwhile
        place = after
        if thread_id != after.key or after.section != "thread":
            place = base._replace(section="thread", key=thread_id, last_seq=thread.last_seq)
            yield place, await _thread(store, thread)
        if not place.seq:
            sessions = await store.conversations.sessions([owner], limit=ALL, thread_id=thread_id)
            for session in sorted(sessions, key=lambda one: (one.start_time, one.id))[place.session_count :]:
                place = place._replace(session_count=place.session_count + 1)
                yield place, session
        selector = MessageSelector(
            owner=owner, thread_id=thread_id, after=place.seq, before=place.last_seq + 1, limit=AT_ONCE
        )
        while messages := await store.conversations.messages(selector):
            for message in messages:
                place = place._replace(seq=message.seq)
                yield place, message
            selector = replace(selector, after=place.seq)


async def _thread(store: Store, thread: Thread) -> ThreadRecord:
    kinds = sorted({kind for kind, _ in await store.work.counts()})
    known = [await store.work.get(thread.owner, kind, thread.id) for kind in kinds]
    return ThreadRecord(thread, tuple(WorkDone(work.kind, work.seq) for work in known if work is not None))
