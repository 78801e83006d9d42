"""What was said of a person in conversations: found by their names, and erased."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from memoryd.domain.notes.keep import may_erase
from memoryd.domain.notes.naming import erase_meant, meant_notes
from memoryd.domain.pipeline import Decision, decide_and_commit, no_answer
from memoryd.domain.ports import Ports
from memoryd.domain.shared import thread_lock
from memoryd.errors import TrustTooLow
from memoryd.knowledge.grammar.names import any_stands_in, longest_word, name_key, name_pieces
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import PURGE, ChangeSet, ConversationChange
from memoryd.model.conversation import Message, Role, Session, Thread, WorkingMemory
from memoryd.model.erasure import ErasedKind, ErasedThing
from memoryd.model.note import Note
from memoryd.model.scope import Owner, Visibility
from memoryd.model.trust import Trust
from memoryd.store.base import Store

__all__ = [
    "FIRST",
    "Occurrences",
    "erase_occurrences",
    "erase_of_thread",
    "forget_working_memory",
    "joined",
    "occurrences_of",
    "refuse_higher",
    "threads_of",
    "without_messages",
    "without_summary",
]

FIRST = "first"
"""In place of a thread: the first piece of a name, so that a text is looked through at once."""
AT_ONCE = 500  # messages or threads that are read at once


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Where names stand in an owner's conversations."""

    messages: tuple[Message, ...] = ()
    threads: tuple[Thread, ...] = ()
    """In their summary or working memory."""
    working_memory: WorkingMemory | None = None
    """That of the user or chat."""
    notes: tuple[Note, ...] = ()
    """In any of their versions."""

    @property
    def trusts(self) -> list[Trust]:
        """Every class of trust of it."""
        trusts = [] if self.working_memory is None else [self.working_memory.trust]
        return [
            *(message.trust for message in self.messages),
            *(thread.summary_trust for thread in self.threads if thread.summary),
            *(thread.working_memory_trust for thread in self.threads if thread.working_memory),
            *(version.trust for note in self.notes for version in note.versions),
            *trusts,
        ]


def joined(each: Sequence[Occurrences]) -> Occurrences:
    """Return what stands in several owners' conversations as one; of their working memories the first."""
    return Occurrences(
        tuple(message for occurrences in each for message in occurrences.messages),
        tuple(thread for occurrences in each for thread in occurrences.threads),
        next((occurrences.working_memory for occurrences in each if occurrences.working_memory is not None), None),
        tuple(note for occurrences in each for note in occurrences.notes),
    )


def refuse_higher(occurrences: Occurrences, caller: Caller) -> None:
    """Raise TrustTooLow where some of it is of higher trust than a caller."""
    if (
        any(trust.outranks(caller.trust) for trust in occurrences.trusts)
        or not all(map(caller.may_erase, occurrences.messages))
        or not all(may_erase(note, caller) for note in occurrences.notes)
    ):
        raise TrustTooLow(
            "some messages or notes that name this person are of higher trust, or of another user of the chat; nothing"
            " was erased"
        )


async def occurrences_of(names: Sequence[str], owner: Owner, ports: Ports) -> Occurrences:
    """Return where one of some names stands, as words of their own."""
    messages: list[Message] = []
    store, words = ports.store, [longest_word(name) for name in names]
    after = 0
    while page := await store.conversations.numbered(after, limit=AT_ONCE, owner=owner, words=words):
        messages += await asyncio.to_thread(_naming, names, [message for _, message in page])  # a page may be long
        after = page[-1][0]
    working_memory = await store.conversations.working_memory(owner)
    threads = await _threads(names, owner, store)
    notes = await meant_notes(owner, partial(_names, names), ports)
    return Occurrences(
        tuple(messages),
        tuple(threads),
        working_memory if _names(names, working_memory.text) else None,
        tuple(note for note, _ in notes),
    )


def _naming(names: Sequence[str], messages: Sequence[Message]) -> list[Message]:
    return [message for message in messages if _names(names, _texts(message))]


def _texts(message: Message) -> str:
    calls = (f"{call.name} {_plain(call.arguments)}" for call in message.tool_calls)
    texts = (message.name, message.input_source, message.content, *calls, _plain(message.metadata))
    return "\n".join(texts)


def _plain(text: str) -> str:
    """Return JSON with its letters as they are, not as the numbers of them; what is none stays as it is."""
    if "\\u" not in text:
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _names(names: Sequence[str], text: str) -> bool:
    return bool(text) and any_stands_in(names, text)


async def _threads(names: Sequence[str], owner: Owner, store: Store) -> list[Thread]:
    return [
        thread
        async for thread in threads_of(owner, store)
        if _names(names, thread.summary) or _names(names, thread.working_memory)
    ]


async def threads_of(owner: Owner, store: Store) -> AsyncIterator[Thread]:
    """Yield the threads of an owner, those changed last first."""
    visible = Visibility(owner.agent_id, owner.scope.user_id, owner.scope.chat_id)
    after = None
    while page := await store.conversations.threads(visible, limit=AT_ONCE, after=after):
        for thread in page:
            yield thread
        after = (page[-1].update_time, page[-1].id)


async def erase_occurrences(
    names: Sequence[str], occurrences: Occurrences, owner: Owner, caller: Caller, ports: Ports, *, now: datetime
) -> None:
    """
    Erase messages, summaries and working memories with some names, thread by thread.

    Raises TrustTooLow, before anything is erased, where some of it is of higher trust.
    """
    refuse_higher(occurrences, caller)
    await _note_names(names, owner, ports, now=now, grant_id=caller.grant_id)
    by_thread: dict[str, list[Message]] = {thread.id: [] for thread in occurrences.threads}
    for message in occurrences.messages:
        by_thread.setdefault(message.thread_id, []).append(message)
    names_someone = partial(_names, names)
    for thread_id, messages in by_thread.items():
        places = {(message.seq, message.id) for message in messages}
        await erase_of_thread(owner, thread_id, places, names_someone, ports, now=now, grant_id=caller.grant_id)
    if occurrences.working_memory is not None:
        await forget_working_memory(owner, names_someone, ports, now=now, grant_id=caller.grant_id)
    if occurrences.notes:

        def check(note: Note) -> None:
            refuse_higher(Occurrences(notes=(note,)), caller)

        await erase_meant(owner, names_someone, ports, now=now, check=check, grant_id=caller.grant_id)


async def _note_names(names: Sequence[str], owner: Owner, ports: Ports, *, now: datetime, grant_id: str) -> None:
    """Note the names: a text that was rewritten since says in an older copy what it said then."""

    async def decide() -> Decision[None]:
        each = [pieces for name in names if (pieces := name_pieces(name))]
        erased = {ErasedThing(ErasedKind.NAME, owner, id=name_key(pieces)) for pieces in each}
        erased |= {ErasedThing(ErasedKind.NAME, owner, FIRST, pieces[0]) for pieces in each}
        erased.add(ErasedThing(ErasedKind.NAME, owner))
        return Decision(ChangeSet(erased=tuple(sorted(erased, key=repr)), marks={PURGE: now}), no_answer)

    await decide_and_commit([owner], decide, ports, now=now, grant_id=grant_id)


async def erase_of_thread(
    owner: Owner,
    thread_id: str,
    places: Collection[tuple[int, str]],
    is_meant: Callable[[str], bool],
    ports: Ports,
    *,
    now: datetime,
    grant_id: str = "",
) -> None:
    """Erase the messages of a thread that have some numbers and ids, and its texts, each if it is what is meant."""

    async def decide() -> Decision[None]:
        thread = await ports.store.conversations.thread(owner, thread_id)
        seen = await ports.messages_at(owner, {(thread_id, seq) for seq, _ in places})
        gone = [message for message in seen if (message.seq, message.id) in places]
        if thread is None:
            return Decision(None, no_answer)
        fewer, sessions = await without_messages(thread, gone, ports)
        changed = _without_texts(fewer, is_meant)
        talk = ConversationChange(
            owner,
            threads=(changed,),
            threads_before=() if changed.texts == thread.texts else (thread,),
            sessions=sessions,
            purge_messages=tuple(gone),
            purged_ids=tuple(message.id for message in gone)[: limits.MAX_AUDITED_IDS],
        )
        # texts of before may say what is erased, in words that are gone from here: an older copy loses them all
        texts = (ErasedThing(ErasedKind.TEXTS, owner, thread_id),)
        return Decision(ChangeSet(conversation=talk, marks={PURGE: now}, erased=texts), no_answer)

    locks = [thread_lock(owner, thread_id)]
    await decide_and_commit(locks, decide, ports, now=now, grant_id=grant_id)


async def without_messages(thread: Thread, gone: Sequence[Message], ports: Ports) -> tuple[Thread, tuple[Session, ...]]:
    """Return a thread as it is once messages of it are erased, and those of its sessions that count others then."""
    sessions = [
        session.without(gone, thread)
        for one_id in dict.fromkeys([*(message.session_id for message in gone), thread.session_id])
        if one_id and (session := await ports.store.conversations.session(thread.owner, thread.id, one_id)) is not None
    ]
    ports.shared.last_threads.take(thread.owner, thread.id)
    fewer = replace(
        thread,
        message_count=thread.message_count - len(gone),
        turn_count=thread.turn_count - sum(message.role is Role.USER for message in gone),
        revision=thread.revision + 1,
    )
    return fewer, tuple(sessions)


def _without_texts(thread: Thread, is_meant: Callable[[str], bool]) -> Thread:
    """Return a thread without its summary and its working memory, each if its text is what is meant."""
    if is_meant(thread.summary):
        thread = without_summary(thread)
    if is_meant(thread.working_memory):
        thread = replace(
            thread,
            working_memory="",
            working_memory_time=None,
            working_memory_author="",
            working_memory_grant_id="",
        )
    return thread


def without_summary(thread: Thread) -> Thread:
    """Return a thread that nothing sums up."""
    return replace(
        thread,
        summary="",
        summary_seq=thread.view_seq,
        summary_time=None,
        summary_by="",
        summary_author="",
        summary_grant_id="",
    )


async def forget_working_memory(
    owner: Owner, is_meant: Callable[[str], bool], ports: Ports, *, now: datetime, grant_id: str = ""
) -> None:
    """Erase the working memory of an owner, if its text is what is meant."""

    async def decide() -> Decision[None]:
        working_memory = await ports.store.conversations.working_memory(owner)
        if not working_memory.text or not is_meant(working_memory.text):
            return Decision(None, no_answer)
        talk = ConversationChange(owner, working_memory=WorkingMemory())
        texts = (ErasedThing(ErasedKind.TEXTS, owner),)
        return Decision(ChangeSet(conversation=talk, marks={PURGE: now}, erased=texts), no_answer)

    await decide_and_commit([("working memory", owner), owner], decide, ports, now=now, grant_id=grant_id)
