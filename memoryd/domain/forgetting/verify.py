"""Proving that nothing is left of what was purged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from memoryd.audit.reading import Sighting
from memoryd.domain.ports import Ports
from memoryd.errors import InvalidArgument, Unavailable
from memoryd.model.change import PURGE, ChangeSet
from memoryd.model.conversation import Thread
from memoryd.model.limits import ID_LENGTH, MAX_CONTENT_BYTES
from memoryd.model.reports import Compaction, Proof, Trace
from memoryd.model.validation import check_id, check_text
from memoryd.store.base import Store
from memoryd.store.conversations import MessageSelector
from memoryd.store.memories import MemorySelector

__all__ = ["COMPACTION", "compact", "verify_forgotten"]

COMPACTION = "compaction"
PROVEN = "purged before compaction"  # the last purge that a compaction has left nothing of
BLOCK_BYTES = 4 * 1024 * 1024
LEAST_TEXT = 3  # characters that tell one text from another at all


async def compact(ports: Ports, *, now: datetime) -> Compaction:
    """Rewrite the store without the bytes of what was purged; see CompactStore in the contract."""
    purged = (await ports.store.work.marks()).get(PURGE)
    if ports.store.files is None:
        raise Unavailable("the store has no files to rewrite")
    done = await ports.store.files.compact()
    noted = {COMPACTION: now}
    has_purged = purged != (await ports.store.work.marks()).get(PURGE)
    if purged is not None and not has_purged:
        noted[PROVEN] = purged  # nothing was purged since before the copy
    await ports.store.commits.write(ChangeSet(marks=noted))
    return replace(done, backups=ports.copies(), purged_meanwhile=has_purged)


async def verify_forgotten(
    memory_id: str, text: str, ports: Ports, look_up: Callable[[str], Sighting] = lambda _: Sighting()
) -> Proof:
    """
    Look for a purged memory or message in the tables, the indexes and the files of the store; see VerifyForgotten.

    A file may hold what was purged in a form that no search finds (DuckDB compresses), so that until the next
    compaction there is no proof.
    """
    memory_id = check_id(memory_id, "id")
    thread = await _thread_of(memory_id, ports.store)
    if thread is None:  # what is not there was a memory, or a message with an id that memoryd made
        memory_id = memory_id.lower()
        if len(memory_id) < ID_LENGTH:
            raise InvalidArgument(f"id has {len(memory_id)} characters; a proof needs all {ID_LENGTH}", field="id")
    text = check_text(text, "text", limit=MAX_CONTENT_BYTES).strip()
    if text and len(text) < LEAST_TEXT:
        raise InvalidArgument(f"text has {len(text)} characters; give at least {LEAST_TEXT}", field="text")
    wanted = [memory_id, *([text] if text else [])]
    memory = next(iter(await ports.store.memories.scan(MemorySelector(ids=(memory_id,)), limit=1)), None)
    traces = []
    if thread is not None:
        whose = f"chat {thread.scope.chat_id}" if thread.scope.user_id is None else f"user {thread.scope.user_id}"
        way = "erase the thread (memory threads --delete) or the person (memory forget NAME --with-messages)"
        traces.append(Trace("messages.id", f"the message is not erased but in thread {thread.id!r} of {whose}; {way}"))
    elif memory is not None:
        due = memory.purge_time
        state = "live" if due is None else f"deleted, and kept until {due:%Y-%m-%d %H:%M} UTC"
        scope = memory.scope
        whose = f"--chat {scope.chat_id}" if scope.user_id is None else f"--user {scope.user_id}"
        way = f"memory delete --now {whose} {memory_id}"
        traces.append(Trace("memories.id", f"the memory is not purged but {state}; erase it: {way}"))
    else:
        traces += [_trace(place, "the id stands there") for place in await _traces(memory_id, ports.store)]
        if any(indexes.holds(memory_id) for indexes in (ports.indexes, ports.episodes, ports.notes)):
            traces.append(Trace("index", "the id is in the index of a scope; restart memoryd, and report it"))
    if text:
        traces += [
            _trace(place, "the text stands there, of this memory or another")
            for place in await _traces(text, ports.store)
        ]
    marks = await ports.store.work.marks()
    if marks.get(PURGE) != marks.get(PROVEN):
        traces.append(
            Trace("database", "something was purged since the last compaction, and its bytes may lie in the file;"
                  " run: memoryd compact")
        )  # fmt: skip
    files = [] if ports.store.files is None else ports.store.files.paths()
    files_with, size = await asyncio.to_thread(_search, files, wanted)
    traces += _of_files(files_with, memory_id, ports)
    known = await asyncio.to_thread(look_up, memory_id)
    times = (known.log_start_time, known.seen_time, known.purge_time)
    return Proof(tuple(traces), len(files), size, *times, ports.copies())


def _of_files(files_with: Sequence[tuple[Path, str]], memory_id: str, ports: Ports) -> Iterator[Trace]:
    copies = ports.copies()
    for path, one in files_with:
        way = "a copy from before an upgrade; remove it" if str(path) in copies else "run: memoryd compact"
        yield Trace(path.name, f"{_named(one, memory_id)} stands in the file; {way}")


async def _thread_of(message_id: str, store: Store) -> Thread | None:
    """Return a thread, of any owner, that has a message of this id."""
    heads = await store.conversations.heads(MessageSelector(ids=(message_id,), limit=1))
    return await store.conversations.thread(heads[0].owner, heads[0].thread_id) if heads else None


async def _traces(text: str, store: Store) -> list[str]:
    return [] if store.files is None else await store.files.traces(text)


_WAYS_OUT = {
    "memories": "find what holds it with: memory list --all; erase it: memory delete ID --now",
    "requests": "the note of a request, which goes after a week with: memoryd gc",
    "uses": "the count of its recalls, which goes with: memoryd gc",
    "entities": "a name given by hand, which goes with the person: memory forget NAME",
    "messages": "find what holds it with: memory log --search; erase its thread: memory threads --delete",
    "long_texts": "a long text of a message, which goes with it",
    "message_vectors": "the vector of a message, which goes with it",
    "threads": "its summary or working memory, or its key; erase it: memory threads --delete",
    "sessions": "the key of a session, which goes with its thread: memory threads --delete",
    "working_memories": "a working memory, which an empty one replaces",
    "notes": "a note, or its path; erase it: memory note PATH --delete",
    "note_texts": "what a note says, now or in a former version; erase it: memory note PATH --delete",
    "grants": "the label of a grant, which goes with: memoryd sandbox close",
}


def _trace(place: str, found: str) -> Trace:
    if place.endswith(":unreadable"):
        return Trace(place, "a copy from before an upgrade, which cannot be read; remove it")
    if ":" in place:
        return Trace(place, f"{found}; a copy from before an upgrade; remove it")
    return Trace(place, f"{found}; {_way_out(place)}")


def _way_out(place: str) -> str:
    return _WAYS_OUT.get(place.partition(".")[0], "report it: nothing should put it there")


def _named(one: str, memory_id: str) -> str:
    return "the id" if one == memory_id else "the text"


def _search(files: Sequence[Path], wanted: Sequence[str]) -> tuple[list[tuple[Path, str]], int]:
    """Return the files that hold one of some texts, byte by byte, and how many bytes were read."""
    traces, size = [], 0
    for path in files:
        missing = {one: one.encode() for one in wanted}
        overlap = max(len(raw) for raw in missing.values()) - 1
        tail = b""
        with path.open("rb") as file:
            while missing and (block := file.read(BLOCK_BYTES)):
                size += len(block)
                data = tail + block
                for one in [one for one, raw in missing.items() if raw in data]:
                    traces.append((path, one))
                    del missing[one]
                tail = data[-overlap:] if overlap else b""
    return traces, size
