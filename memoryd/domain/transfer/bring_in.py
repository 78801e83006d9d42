"""Importing: what an export of another store holds, with its ids and times; what is there already stays as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Any

from memoryd.domain.batching import SLICE
from memoryd.domain.notes.reading import note_lock
from memoryd.domain.pipeline import Decision, decide_and_commit, no_answer
from memoryd.domain.ports import Ports
from memoryd.domain.shared import thread_lock
from memoryd.domain.transfer.notes import check_note, known_versions, note_changes
from memoryd.domain.transfer.records import NoteRecord, OwnedText, Record, ThreadRecord, kind_name, read_record
from memoryd.errors import Conflict, InvalidArgument, in_part
from memoryd.index.analysis import analyse, indexed_memory, indexed_text
from memoryd.model.change import ChangeSet, ConversationChange, Entry, NewMessage
from memoryd.model.conversation import Message, Session, Thread
from memoryd.model.entity import Entity
from memoryd.model.erasure import ErasedKind, ErasedThing, Purged, version_erased
from memoryd.model.grant import Grant
from memoryd.model.limits import (
    MAX_CONTENT_BYTES,
    MAX_MESSAGE_CONTENT_BYTES,
    MAX_SUMMARY_BYTES,
    MAX_WORKING_MEMORY_BYTES,
)
from memoryd.model.memory import Memory
from memoryd.model.scope import Owner
from memoryd.model.times import EPOCH
from memoryd.model.validation import check_id, check_metadata, check_share, check_subjects, check_tags, check_text
from memoryd.model.work import Work, WorkState
from memoryd.store.conversations import MessageSelector
from memoryd.store.memories import MemorySelector
from memoryd.turns import in_turns

__all__ = ["Imported", "bring_in"]

MESSAGES_AT_ONCE = 100  # a commit has numbers for 128


@dataclass(slots=True)
class Imported:
    """What came of lines, by type."""

    new: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    """The same are there already."""
    kept: Counter[str] = field(default_factory=Counter)
    """Others of the same id are there, and stay."""
    erased: Counter[str] = field(default_factory=Counter)
    """This store was told to erase them, after they were made: they stay erased."""


async def bring_in(
    lines: Sequence[str], ports: Ports, *, now: datetime, skips_conflicts: bool = False, dry_run: bool = False
) -> Imported:
    """
    Store what lines of an export hold, in their order, and return what came of them.

    Nothing is judged: it was judged where it comes from. All lines are read before the first is stored. Raises
    InvalidArgument for a line that is none, and Conflict where another thing of the same id is there, unless those are
    skipped; what stands before it is stored then, and known when it comes again.
    """
    records = []
    async for n, line in in_turns(enumerate(lines)):
        with in_part(f"records[{n}]"):
            records.append(_checked(read_record(line)))
    files = ports.store.files
    purged = None if files is None else await files.ever_purged()
    importing = _Importing(ports, now, purged, skips_conflicts=skips_conflicts, dry_run=dry_run)
    for (kind, _), group in groupby(records, key=lambda record: (type(record), _place(record))):
        await importing.take(kind, list(group))
    return importing.done


def _place(record: Record) -> object:
    """Return what records have in common that are stored together."""
    if isinstance(record, Grant):
        return None
    return (record.owner, record.thread_id) if isinstance(record, Message | Session) else record.owner


def _checked(record: Record) -> Record:
    """Return a record whose ids and texts are as calls could have stored them. InvalidArgument, LimitExceeded."""
    named = {} if isinstance(record, OwnedText) else {"id": record.id}
    if not isinstance(record, Grant):
        scope = record.owner.scope
        named |= {"agent_id": record.owner.agent_id, "scope": scope.user_id or scope.chat_id or ""}
    for name, value in named.items():
        if check_id(value, name) != value or not value:
            raise InvalidArgument(f"{name} is empty, or not as it would be stored", field=name)
    if isinstance(record, Memory | Message):
        most = MAX_CONTENT_BYTES if isinstance(record, Memory) else MAX_MESSAGE_CONTENT_BYTES
        check_text(record.content, "content", limit=most)
    if isinstance(record, Memory):
        check_share(record.confidence, "confidence")
        for name, check in (("tags", check_tags), ("subjects", check_subjects), ("metadata", check_metadata)):
            check(getattr(record, name))
    if isinstance(record, ThreadRecord):
        check_text(record.thread.summary, "summary", limit=MAX_SUMMARY_BYTES)
        check_text(record.thread.working_memory, "working_memory", limit=MAX_WORKING_MEMORY_BYTES)
    if isinstance(record, OwnedText):
        check_text(record.working_memory.text, "working_memory.text", limit=MAX_WORKING_MEMORY_BYTES)
    if isinstance(record, NoteRecord):
        check_note(record)
    if isinstance(record, Message) and record.seq < 1:
        raise InvalidArgument(f"seq is {record.seq}; it must be at least 1", field="seq")
    return record


def _identity(record: Record) -> object:
    """Return what makes a thing of an id the same one, whatever has happened to it since."""
    if isinstance(record, OwnedText):
        return record.working_memory.text
    if isinstance(record, NoteRecord):
        return record.owner, record.create_time, record.key, record.version.update_time, record.text
    if isinstance(record, Session):
        return record.owner, record.thread_id, record.start_time
    owner = None if isinstance(record, Grant) else record.owner
    content = record.content if isinstance(record, Memory | Message) else ""
    return owner, record.create_time, content


def _erased_things(record: Record) -> Iterable[ErasedThing]:
    """Yield what a record would be in the ledger of purges, by itself or as a part of something."""
    if isinstance(record, Grant):
        return
    owner = record.owner
    yield ErasedThing(ErasedKind.OWNER, owner)
    if isinstance(record, OwnedText):
        yield ErasedThing(ErasedKind.TEXTS, owner)
    elif isinstance(record, ThreadRecord):
        yield ErasedThing(ErasedKind.THREAD, owner, record.id)
    elif isinstance(record, Message | Session):
        yield ErasedThing(ErasedKind.THREAD, owner, record.thread_id)
        if isinstance(record, Message):
            yield ErasedThing(ErasedKind.MESSAGE, owner, record.thread_id, record.id)
    elif isinstance(record, NoteRecord):
        yield ErasedThing(ErasedKind.NOTE, owner, id=record.id)
        yield version_erased(record.note, record.version)
    else:
        kind = ErasedKind.MEMORY if isinstance(record, Memory) else ErasedKind.ENTITY
        yield ErasedThing(kind, owner, id=record.id)


def _made(record: Record) -> datetime:
    """Return when something was made; of a working memory when it was set."""
    if isinstance(record, OwnedText):
        return record.working_memory.update_time or EPOCH
    return record.start_time if isinstance(record, Session) else record.create_time


class _Importing:
    """One call."""

    def __init__(
        self, ports: Ports, now: datetime, purged: Purged | None, *, skips_conflicts: bool, dry_run: bool
    ) -> None:
        self._ports, self._now, self._skips, self._dry_run = ports, now, skips_conflicts, dry_run
        self._purged = purged
        self.done = Imported()
        self._threads: dict[tuple[Owner, str], Thread] = {}
        """Those that a dry run would have made."""

    async def take(self, kind: type[Any], records: list[Any]) -> None:
        takers: dict[type[Any], Callable[[list[Any]], Any]] = {
            Grant: self._grants,
            Memory: self._memories,
            Entity: self._entities,
            ThreadRecord: self._thread_records,
            Session: self._sessions,
            Message: self._messages,
            OwnedText: self._working_memory,
            NoteRecord: self._notes,
        }
        left = [record for record in records if not self._is_erased(record)]
        if len(left) < len(records):
            self.done.erased[kind_name(records[0])] += len(records) - len(left)
        if left:
            await takers[kind](left)

    def _is_erased(self, record: Record) -> bool:
        purged = self._purged
        return purged is not None and any(purged.has(thing, _made(record)) for thing in _erased_things(record))

    def _new(self, name: str, records: Iterable[Any], known: dict[Any, Any], key: Callable[[Any], Any]) -> list[Any]:
        """Return the records that are not there, count the others; Conflict for one that is another there."""
        new = []
        keys: set[Any] = set()
        for record in records:
            if key(record) in keys:
                raise InvalidArgument(f"{name} {key(record)!r} comes twice", field="records")
            keys.add(key(record))
            there = known.get(key(record))
            if there is None:
                new.append(record)
            elif _identity(there) == _identity(record):
                self.done.known[name] += 1
            elif self._skips:
                self.done.kept[name] += 1
            else:
                raise Conflict(
                    f"another {name.replace('_', ' ')} {key(record)!r} is there already; nothing of it was changed",
                    field="records",
                )
        if new:
            self.done.new[name] += len(new)
        return new

    async def _commit(self, owner: Owner | None, change: ChangeSet, *locks: Any) -> None:
        async def decide() -> Decision[None]:
            return Decision(change, no_answer)

        if not self._dry_run:
            held = [*([] if owner is None else [owner]), *locks]
            await decide_and_commit(held, decide, self._ports, now=self._now, grant_id="")

    async def _grants(self, grants: list[Grant]) -> None:
        known = {grant.id: grant for grant in await self._ports.store.grants.all()}
        new = self._new("grant", grants, known, lambda grant: grant.id)
        if new:
            await self._commit(None, ChangeSet(grants=tuple(new)))

    async def _memories(self, memories: list[Memory]) -> None:
        for n in range(0, len(memories), SLICE):
            some = memories[n : n + SLICE]
            ids = [memory.id for memory in some]
            there = await self._ports.store.memories.scan(MemorySelector(ids=ids), limit=0)
            known = {memory.id: memory for memory in there}
            new = self._new("memory", some, known, lambda memory: memory.id)
            entries = [
                Entry(_without_recalls(memory), " ".join(analyse(indexed_memory(memory))))
                async for memory in in_turns(new)
            ]
            if not entries:
                continue
            await self._commit(some[0].owner, ChangeSet(inserts=tuple(entries)))
            recalled = {
                memory.id: (memory.recall_time, memory.recall_count, memory.trusted_recall_time)
                for memory in new
                if memory.recall_time is not None
            }
            if recalled and not self._dry_run:
                await self._ports.store.memories.note_recalls({some[0].owner: recalled})

    async def _entities(self, entities: list[Entity]) -> None:
        owner = entities[0].owner
        known = {entity.id: entity for entity in await self._ports.store.people.entities(owner)}
        new = self._new("entity", entities, known, lambda entity: entity.id)
        if new:
            await self._commit(owner, ChangeSet(entities=tuple(new)))

    async def _thread_records(self, records: list[ThreadRecord]) -> None:
        for record in records:
            thread = record.thread
            there = await self._ports.store.conversations.thread(thread.owner, thread.id)
            self._threads[thread.owner, thread.id] = there or thread
            known = {} if there is None else {thread.id: ThreadRecord(there)}
            if not self._new("thread", [record], known, lambda one: one.id):
                continue
            work = tuple(  # idle: the messages that follow are noticed as those are that are appended
                Work(kind=done.kind, owner=thread.owner, thread_id=thread.id, seq=done.seq, state=WorkState.IDLE,
                     due_time=self._now)
                for done in record.work
            )  # fmt: skip
            talk = ConversationChange(thread.owner, threads=(replace(thread, revision=1),))
            change = ChangeSet(conversation=talk, work=work)
            await self._commit(thread.owner, change, thread_lock(thread.owner, thread.id))

    async def _thread_of(self, owner: Owner, thread_id: str) -> Thread:
        thread = await self._ports.store.conversations.thread(owner, thread_id) or self._threads.get((owner, thread_id))
        if thread is None:
            raise InvalidArgument(f"the thread {thread_id!r} is missing; it comes first", field="records")
        return thread

    async def _sessions(self, sessions: list[Session]) -> None:
        owner, thread_id = sessions[0].owner, sessions[0].thread_id
        thread = await self._thread_of(owner, thread_id)
        for session in sessions:
            if session.start_time < thread.create_time:
                self._refuse_strange(session)
        sessions = [session for session in sessions if session.start_time >= thread.create_time]
        stored = [await self._ports.store.conversations.session(owner, thread_id, one.id) for one in sessions]
        known = {session.id: session for session in stored if session is not None}
        new = self._new("session", sessions, known, lambda session: session.id)
        if new:
            talk = ConversationChange(owner, sessions=tuple(new))
            await self._commit(None, ChangeSet(conversation=talk), thread_lock(owner, thread_id))

    async def _messages(self, messages: list[Message]) -> None:
        owner, thread_id = messages[0].owner, messages[0].thread_id
        conversations = self._ports.store.conversations
        thread = await self._thread_of(owner, thread_id)
        heads = await conversations.heads(MessageSelector(owner=owner, thread_id=thread_id))
        places, ids = {head.seq: head.id for head in heads}, {head.id for head in heads}
        for n in range(0, len(messages), MESSAGES_AT_ONCE):
            some = []
            for message in messages[n : n + MESSAGES_AT_ONCE]:
                has_room = message.seq <= thread.last_seq and len(places) < thread.message_count
                if message.seq not in places and (message.id in ids or not has_room):
                    self._refuse_strange(message)
                    continue
                some.append(message)
                places.setdefault(message.seq, message.id)
                ids.add(message.id)
            wanted = {(thread_id, message.seq) for message in some}
            there = {message.seq: message for message in await self._ports.messages_at(owner, wanted)}
            new = self._new("message", some, there, lambda message: message.seq)
            if not new:
                continue
            made = tuple([NewMessage(message, _terms(message)) async for message in in_turns(new)])
            talk = ConversationChange(owner, messages=made)
            await self._commit(None, ChangeSet(conversation=talk), thread_lock(owner, thread_id))
            if not self._dry_run:
                self._ports.shared.lag.add(owner, len(new))

    def _refuse_strange(self, record: Message | Session) -> None:
        """Take what the thread has no room for as that of another one; Conflict, unless that is skipped."""
        if not self._skips:
            raise Conflict(
                f"{kind_name(record)} {record.id!r} belongs to another thread {record.thread_id!r} than is there;"
                " nothing of it was changed",
                field="records",
            )
        self.done.kept[kind_name(record)] += 1

    async def _working_memory(self, texts: list[OwnedText]) -> None:
        for text in texts:
            there = await self._ports.store.conversations.working_memory(text.owner)
            known = {text.owner: OwnedText(text.owner, there)} if there.text else {}
            new = self._new("working_memory", [text], known, lambda one: one.owner)
            if new:
                talk = ConversationChange(text.owner, working_memory=text.working_memory)
                await self._commit(text.owner, ChangeSet(conversation=talk), ("working memory", text.owner))

    async def _notes(self, records: list[NoteRecord]) -> None:
        store, owner = self._ports.store, records[0].owner
        for n in range(0, len(records), SLICE):
            some = records[n : n + SLICE]
            known, notes = await known_versions(owner, some, store)
            new = self._new("note_version", some, known, lambda record: record.key)
            changes = await note_changes(new, notes, self._ports, self._now)
            if changes:
                await self._commit(None, ChangeSet(notes=changes), note_lock(owner))


def _without_recalls(memory: Memory) -> Memory:
    """Return a memory as it is stored: how often it was recalled is counted apart."""
    return replace(memory, recall_time=None, recall_count=0, trusted_recall_time=None)


def _terms(message: Message) -> str:
    return " ".join(analyse(indexed_text(message.create_time, message.voice, (), message.words)))
