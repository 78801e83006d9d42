"""
Catching up with purges: what an older copy of the store still holds and the ledger says was erased.

It goes through the same decisions as every purge, so that links, counts, sessions and indexes are as they would be.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.batching import READ_AT_ONCE, SLICE
from memoryd.domain.forgetting.forget import forgetting_change
from memoryd.domain.forgetting.occurrences import FIRST, erase_of_thread, forget_working_memory, threads_of
from memoryd.domain.forgetting.purge import not_apart
from memoryd.domain.notes.erase import erase_notes
from memoryd.domain.notes.naming import erase_meant
from memoryd.domain.notes.reading import note_pages
from memoryd.domain.pipeline import Decision, decide_and_commit, no_answer
from memoryd.domain.ports import Ports
from memoryd.domain.shared import thread_lock
from memoryd.knowledge.grammar.names import name_keys, name_pieces
from memoryd.model import limits
from memoryd.model.change import PURGE, ChangeSet, ConversationChange, Entry, Tombstone
from memoryd.model.conversation import Thread
from memoryd.model.entity import Mention
from memoryd.model.erasure import ErasedKind, Erasures
from memoryd.model.memory import Memory
from memoryd.model.scope import Owner, Scope
from memoryd.model.trust import Trust
from memoryd.store.conversations import MessageSelector
from memoryd.store.memories import MemorySelector, owner_place
from memoryd.turns import in_turns

__all__ = ["catch_up"]

EVERY_OWNER = 1 << 40


async def catch_up(ports: Ports, *, now: datetime) -> bool:
    """
    Erase what the ledger of the store says was erased after the state that its files are in.

    Returns whether anything was missed. If it ends in between, the next start does all of it again. Raises Unavailable
    where the ledger cannot be written.
    """
    files = ports.store.files
    missed = None if files is None else files.missed_purges()
    if files is None or missed is None:
        return False
    for size in (await ports.store.owners.sizes(limit=EVERY_OWNER)).owners if missed else ():
        owner = Owner(size.agent_id, Scope(size.user_id or None, size.chat_id or None))
        await _catch_up_owner(owner, missed, ports, now)
    if missed:
        await _memories(missed, ports, now)
    await files.purges_caught_up()
    return bool(missed)


async def _catch_up_owner(owner: Owner, missed: Erasures, ports: Ports, now: datetime) -> None:
    if missed.has(ErasedKind.OWNER, owner):
        talk = ConversationChange(owner, purge_all=True)
        await _commit(owner, ChangeSet(purge_owner=owner, conversation=talk, marks={PURGE: now}), ports, now)
        return
    tombstones = tuple(Tombstone(owner, bytes.fromhex(digest)) for digest in sorted(missed.tombstones_of(owner)))
    if tombstones:
        await _commit(owner, ChangeSet(tombstones=tombstones), ports, now)
    async for thread in threads_of(owner, ports.store):
        await _thread(thread, missed, ports, now)
    await forget_working_memory(owner, _text_missed(owner, "", missed), ports, now=now)
    await _notes(owner, missed, ports, now)
    await _people(owner, missed, ports, now)
    await _proposals(owner, missed, ports, now)


async def _thread(thread: Thread, missed: Erasures, ports: Ports, now: datetime) -> None:
    owner = thread.owner
    if missed.has(ErasedKind.THREAD, owner, thread.id):

        async def decide() -> Decision[None]:
            known = await ports.store.conversations.thread(owner, thread.id)
            if known is None:
                return Decision(None, no_answer)
            talk = ConversationChange(owner, purge_threads=(known,))
            return Decision(ChangeSet(conversation=talk, marks={PURGE: now}), no_answer)

        await decide_and_commit([thread_lock(owner, thread.id)], decide, ports, now=now, grant_id="")
        return
    heads = await ports.store.conversations.heads(MessageSelector(owner=owner, thread_id=thread.id))
    gone = [head async for head in in_turns(heads) if missed.has(ErasedKind.MESSAGE, owner, thread.id, head.id)]
    is_missed, summary = _text_missed(owner, thread.id, missed), thread.summary
    is_covered = bool(gone) and gone[0].seq <= thread.summary_seq  # it may say what they said

    def is_meant(text: str) -> bool:
        return is_missed(text) or (is_covered and text == summary)

    has_texts = is_meant(thread.summary) or is_meant(thread.working_memory)
    for n in range(0, max(len(gone), has_texts), READ_AT_ONCE):
        places = {(head.seq, head.id) for head in gone[n : n + READ_AT_ONCE]}
        await erase_of_thread(owner, thread.id, places, is_meant, ports, now=now)


async def _notes(owner: Owner, missed: Erasures, ports: Ports, now: datetime) -> None:
    """Erase notes, and what notes say of those who were forgotten."""
    async for page in note_pages(owner, ports.store.notes):
        gone = [note async for note in in_turns(page) if missed.has(ErasedKind.NOTE, owner, name=note.id)]
        await erase_notes(gone, ports, now=now)
    if missed.has(ErasedKind.NAME, owner):
        await erase_meant(owner, lambda text: _names_missed(text, owner, missed), ports, now=now)


def _text_missed(owner: Owner, thread_id: str, missed: Erasures) -> Callable[[str], bool]:
    """Return what tells whether a text of a thread, or of an owner, was erased, or has the name of someone who was."""
    is_all = missed.has(ErasedKind.TEXTS, owner, thread_id)
    has_names = missed.has(ErasedKind.NAME, owner)

    def is_meant(text: str) -> bool:
        return bool(text) and (is_all or (has_names and _names_missed(text, owner, missed)))

    return is_meant


def _names_missed(text: str, owner: Owner, missed: Erasures) -> bool:
    """Whether a text has the name of someone who was forgotten."""
    pieces = name_pieces(text)
    first = {piece for piece in set(pieces) if missed.has(ErasedKind.NAME, owner, FIRST, piece)}
    keys = {key for n, piece in enumerate(pieces) if piece in first for key in name_keys(pieces, n)}
    return any(missed.has(ErasedKind.NAME, owner, name=key) for key in keys)


async def _people(owner: Owner, missed: Erasures, ports: Ports, now: datetime) -> None:
    rows = await ports.store.people.entities(owner)
    gone = [row for row in rows if missed.has(ErasedKind.ENTITY, owner, name=row.id)]
    if gone:
        apart = not_apart(rows, {row.id for row in gone})
        await _commit(owner, ChangeSet(forget_entities=tuple(gone), entities=tuple(apart)), ports, now)


async def _proposals(owner: Owner, missed: Erasures, ports: Ports, now: datetime) -> None:
    scope = {"user_id": owner.scope.user_id or "", "chat_id": owner.scope.chat_id or ""}
    waiting = await ports.store.work.proposals(limit=limits.MAX_PROPOSALS, agent_id=owner.agent_id, **scope)
    gone = [proposal for proposal in waiting if missed.has(ErasedKind.PROPOSAL, owner, name=proposal.id)]
    if gone:
        await _commit(owner, ChangeSet(decided=tuple(gone)), ports, now)


async def _memories(missed: Erasures, ports: Ports, now: datetime) -> None:
    """Erase memories, and mentions of people who were forgotten in those that stay."""
    selector, after = MemorySelector(), ""
    while page := await ports.store.memories.scan(selector, limit=READ_AT_ONCE, after=after):
        after = owner_place(page[-1])
        gone = [
            memory async for memory in in_turns(page) if missed.has(ErasedKind.MEMORY, memory.owner, name=memory.id)
        ]
        ids = {memory.id for memory in gone}
        changed = [
            memory
            async for memory in in_turns(page)
            if memory.id not in ids and _mentioned(memory, missed) != memory.mentions
        ]
        for memories, change in ((gone, _erasing(ports, now)), (changed, _unmentioning(missed, ports, now))):
            for n in range(0, len(memories), SLICE):
                await _decide(memories[n : n + SLICE], change, ports, now)


def _mentioned(memory: Memory, missed: Erasures) -> tuple[Mention, ...]:
    """Return the mentions of those who were not forgotten."""
    return tuple(
        mention
        for mention in memory.mentions
        if not missed.has(ErasedKind.ENTITY, memory.owner, name=mention.entity_id)
    )


Change = Callable[[Sequence[Memory]], Awaitable[ChangeSet | None]]


def _erasing(ports: Ports, now: datetime) -> Change:
    async def change(memories: Sequence[Memory]) -> ChangeSet | None:
        entries = await ports.entries_of(memories)
        return await forgetting_change(entries, ports, now=now, due_time=None, trust=Trust.HOST, remember=False)

    return change


def _unmentioning(missed: Erasures, ports: Ports, now: datetime) -> Change:
    async def change(memories: Sequence[Memory]) -> ChangeSet | None:
        entries = await ports.entries_of(memories)
        return ChangeSet(
            updates=tuple(
                Entry(replace(entry.memory, mentions=_mentioned(entry.memory, missed)), entry.terms)
                for entry in entries
            ),
            marks={PURGE: now},
        )

    return change


async def _decide(memories: Sequence[Memory], change: Change, ports: Ports, now: datetime) -> None:
    async def decide() -> Decision[None]:
        return Decision(await change(memories), no_answer)

    await decide_and_commit((memory.owner for memory in memories), decide, ports, now=now, grant_id="")


async def _commit(owner: Owner, change: ChangeSet, ports: Ports, now: datetime) -> None:
    async def decide() -> Decision[None]:
        return Decision(change, no_answer)

    await decide_and_commit([owner], decide, ports, now=now, grant_id="")
