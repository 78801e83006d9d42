"""Exporting: all that is stored, in one order, from any place on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from memoryd.domain.notes.reading import note_pages
from memoryd.domain.ports import Ports
from memoryd.domain.transfer.notes import records_of
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
    """Of a memory its place, of an entity its id, of a thread its id, of a note its path and the revision."""
    seq: int = 0
    """Of a thread the last message."""
    last_seq: int = 0
    """Of a thread the last message that its record speaks of."""
    session_count: int = 0
    """Of a thread the sessions that were returned."""


Records = AsyncIterator[tuple[_Place, Record]]


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


async def _records(store: Store, user_id: str, after: _Place) -> Records:
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


async def _of_owner(store: Store, owner: Owner, after: _Place) -> Records:
    begin = _Place(*after[:3])
    sections = list(SECTIONS)
    first = sections.index(after.section) if after.section in sections else 0
    for section in sections[first:]:
        async for place, record in SECTIONS[section](store, owner, after if section == after.section else begin):
            yield place._replace(section=section), record


async def _threads(store: Store, owner: Owner, after: _Place) -> Records:
    visible = Visibility(owner.agent_id, owner.scope.user_id, owner.scope.chat_id)
    every = await store.conversations.threads(visible, limit=ALL)
    kinds = sorted({kind for kind, _ in await store.work.counts()})
    for thread_id in sorted(thread.id for thread in every if thread.owner == owner and thread.id >= after.key):
        thread = await store.conversations.thread(owner, thread_id)
        if thread is None:
            continue  # it was erased meanwhile
        place = after
        if thread_id != after.key:
            place = _Place(*after[:3], key=thread_id, last_seq=thread.last_seq)
            yield place, await _thread(store, thread, kinds)
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


async def _thread(store: Store, thread: Thread, kinds: Sequence[str]) -> ThreadRecord:
    known = [await store.work.get(thread.owner, kind, thread.id) for kind in kinds]
    return ThreadRecord(thread, tuple(WorkDone(work.kind, work.seq) for work in known if work is not None))


async def _memories(store: Store, owner: Owner, after: _Place) -> Records:
    selector, key = MemorySelector(owner=owner), after.key
    while memories := await store.memories.scan(selector, limit=AT_ONCE, after=key):
        for memory in memories:
            key = owner_place(memory)
            yield after._replace(key=key), memory


async def _entities(store: Store, owner: Owner, after: _Place) -> Records:
    for entity in await store.people.entities(owner):
        if entity.id > after.key:
            yield after._replace(key=entity.id), entity


async def _working_memory(store: Store, owner: Owner, after: _Place) -> Records:
    working_memory = await store.conversations.working_memory(owner)
    if working_memory.text and not after.section:
        yield after, OwnedText(owner, working_memory)


async def _notes(store: Store, owner: Owner, after: _Place) -> Records:
    path, _, revision = after.key.partition("\0")
    begun = await store.notes.get(owner, path) if revision else None
    for place, record in await records_of(begun, store) if begun is not None else ():
        if record.version.revision < int(revision):
            yield after._replace(key=place), record
    async for notes in note_pages(owner, store.notes, after=path, at_once=AT_ONCE):
        for note in notes:
            for place, record in await records_of(note, store):
                yield after._replace(key=place), record


SECTIONS: Mapping[str, Callable[[Store, Owner, _Place], Records]] = {
    "thread": _threads,
    "memory": _memories,
    "entity": _entities,
    "working_memory": _working_memory,
    "note_version": _notes,
}
"""What is read of an owner, in its order: what is learnt from a thread meanwhile is learnt again rather than lost."""
