"""Erasing a thread, or messages of it, and, if asked for, what was learnt from them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.batching import SLICE, in_parts
from memoryd.domain.conversation.threads import ThreadKey, known_thread
from memoryd.domain.forgetting.forget import KEPT, forgetting_change
from memoryd.domain.forgetting.occurrences import without_messages, without_summary
from memoryd.domain.forgetting.sweep import Match, forget_matching
from memoryd.domain.pipeline import Decision, answering, decide_and_commit
from memoryd.domain.ports import Ports
from memoryd.domain.quotas import quota_lock
from memoryd.domain.shared import thread_lock
from memoryd.errors import InvalidArgument, TrustTooLow
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import PURGE, ChangeSet, ConversationChange
from memoryd.model.conversation import Message, Thread
from memoryd.model.memory import Memory, Source
from memoryd.model.talk import ErasedMessages, ErasedThread
from memoryd.store.base import Store
from memoryd.store.conversations import MessageHead, MessageSelector
from memoryd.store.memories import MemorySelector

__all__ = ["erase_messages", "erase_thread"]

READ_AT_ONCE = 500  # messages


async def erase_thread(
    key: ThreadKey, caller: Caller, ports: Ports, *, now: datetime, with_memories: bool = False, dry_run: bool = False
) -> ErasedThread:
    """
    Erase a thread for good; see DeleteThread in the contract.

    What was learnt from it goes in the same transaction. What was being learnt from it meanwhile goes after it.
    """
    owner = key.owner(caller)
    seen = await known_thread(key, owner, ports)
    _refuse_higher(seen, caller)
    await _refuse_others(seen, caller, ports.store)
    backups = ports.copies()
    if dry_run:
        ids = await _first_ids(seen, ports.store)
        memories = await _learnt_from(seen, ports.store) if with_memories else []
        return ErasedThread(seen, tuple(ids), _ids(memories), backups, dry_run=True)

    async def decide() -> Decision[ErasedThread]:
        thread = await known_thread(key, owner, ports)
        _refuse_higher(thread, caller)
        await _refuse_others(thread, caller, ports.store)
        memories = await _learnt_from(thread, ports.store) if with_memories else []
        ids = tuple(await _first_ids(thread, ports.store))
        talk = ConversationChange(owner, purge_threads=(thread,), purged_ids=ids[: limits.MAX_AUDITED_IDS])
        receipt = ErasedThread(thread, ids, _ids(memories), backups)
        return Decision(await _erasing(talk, memories, caller, ports, now), answering(receipt))

    locks = [thread_lock(owner, key.thread_id), *([owner] if with_memories else [])]
    erased = await decide_and_commit(locks, decide, ports, now=now, grant_id=caller.grant_id)
    if not with_memories:
        return erased
    rest = await forget_matching(
        Match(source=Source(thread_id=seen.id), shared=key.shared), caller, ports, now=now, purge=True
    )
    return replace(erased, memory_ids=(*erased.memory_ids, *rest.deleted_ids))


async def erase_messages(  # noqa: PLR0913  one argument for each field of the contract
    key: ThreadKey,
    caller: Caller,
    ports: Ports,
    *,
    now: datetime,
    message_ids: Sequence[str] = (),
    after_seq: int | None = None,
    with_memories: bool = False,
    dry_run: bool = False,
) -> ErasedMessages:
    """
    Erase messages of a thread for good, of some ids or after a place; see DeleteMessages in the contract.

    In parts, the last first, each with what was learnt from it in one transaction: what is left after a crash has no
    gap.
    """
    if bool(message_ids) is (after_seq is not None):
        raise InvalidArgument("give message_ids or after_seq, one of them", field="message_ids")
    if after_seq is not None and after_seq < 0:
        raise InvalidArgument(f"after_seq is {after_seq}; the first place is 1", field="after_seq")
    owner = key.owner(caller)
    seen = await known_thread(key, owner, ports)
    wanted = MessageSelector(owner=owner, thread_id=seen.id, after=after_seq or 0, ids=message_ids or None)
    heads = await ports.store.conversations.heads(wanted)
    learnt = await _learnt_from(seen, ports.store, {head.id for head in heads}) if heads else []
    slices = [*_slices(heads)]
    for some in slices if caller.trust.is_sandbox or seen.highest_trust.outranks(caller.trust) else ():
        _refuse_kept(await _messages_at(some, ports), caller)  # before anything goes
    told = ErasedMessages(
        seen,
        tuple(head.id for head in heads[: limits.MAX_NAMED_IDS]),
        len(heads),
        _ids(learnt)[: limits.MAX_NAMED_IDS],
        ports.copies() if heads else (),
        dry_run=dry_run,
    )
    if with_memories and not all(map(caller.may_erase, learnt)):
        raise TrustTooLow(KEPT)
    for some in () if dry_run else slices:
        thread = await _erase_slice(key, some, caller, ports, now=now, with_memories=with_memories)
        told = replace(told, thread=thread)
    return told


async def _erase_slice(
    key: ThreadKey, heads: Sequence[MessageHead], caller: Caller, ports: Ports, *, now: datetime, with_memories: bool
) -> Thread:
    """Erase some messages, and what was learnt from them; return the thread as it is then."""
    owner = key.owner(caller)

    async def decide() -> Decision[Thread]:
        thread = await known_thread(key, owner, ports)
        gone = await _messages_at(heads, ports)
        if not gone:
            return Decision(None, answering(thread))
        _refuse_kept(gone, caller)
        ids = {message.id for message in gone}
        memories = await _learnt_from(thread, ports.store, ids) if with_memories else []
        changed, sessions = await without_messages(thread, gone, ports)
        if thread.summary and gone[0].seq <= thread.summary_seq and not thread.summary_trust.outranks(caller.trust):
            changed = without_summary(changed)
        talk = ConversationChange(
            owner,
            threads=(changed,),
            threads_before=() if changed.texts == thread.texts else (thread,),
            sessions=sessions,
            purge_messages=tuple(gone),
            purged_ids=tuple(message.id for message in gone)[: limits.MAX_AUDITED_IDS],
        )
        return Decision(await _erasing(talk, memories, caller, ports, now), answering(changed))

    locks = [thread_lock(owner, key.thread_id), *([owner] if with_memories else []), *quota_lock(caller)]
    return await decide_and_commit(locks, decide, ports, now=now, grant_id=caller.grant_id)


async def _erasing(
    talk: ConversationChange, memories: Sequence[Memory], caller: Caller, ports: Ports, now: datetime
) -> ChangeSet:
    """Return the change that erases what `talk` says, and memories with it; TrustTooLow where those stay."""
    if not all(map(caller.may_erase, memories)):
        raise TrustTooLow(KEPT)
    entries = await ports.entries_of(memories)
    change = await forgetting_change(entries, ports, now=now, due_time=None, trust=caller.trust)
    return replace(change or ChangeSet(marks={PURGE: now}), conversation=talk)


async def _learnt_from(thread: Thread, store: Store, message_ids: Collection[str] | None = None) -> list[Memory]:
    """Return what was learnt from a thread, or from some messages of it, in every state."""
    selector = MemorySelector(owner=thread.owner, learnt_from=thread.id)
    learnt = await store.memories.scan(selector, limit=0)
    return learnt if message_ids is None else [one for one in learnt if {*one.source.message_ids} & {*message_ids}]


def _slices(heads: Sequence[MessageHead]) -> Iterator[list[MessageHead]]:
    """Yield messages in parts that are read and erased at once, the last first, each in the order of the thread."""
    for some in in_parts(reversed(heads), lambda head: head.text_bytes, limits.MAX_PAGE_BYTES, most=SLICE):
        yield some[::-1]


async def _messages_at(heads: Sequence[MessageHead], ports: Ports) -> list[Message]:
    """Return messages in the order of the thread; another one that has the place of one meanwhile is left out."""
    if not heads:
        return []
    ids = {head.id for head in heads}
    found = await ports.messages_at(heads[0].owner, {(head.thread_id, head.seq) for head in heads})
    return sorted((message for message in found if message.id in ids), key=lambda message: message.seq)


def _refuse_kept(messages: Sequence[Message], caller: Caller) -> None:
    if not all(map(caller.may_erase, messages)):
        raise TrustTooLow("some of the messages are of higher trust, or of another user of the chat; they stay")


def _ids(memories: Sequence[Memory]) -> tuple[str, ...]:
    return tuple(memory.id for memory in memories)


async def _refuse_others(thread: Thread, caller: Caller, store: Store) -> None:
    """Raise TrustTooLow where a sandbox would erase what other users of a chat said."""
    if not caller.trust.is_sandbox or thread.scope.user_id is not None:
        return
    before = thread.last_seq + 1
    while messages := await store.conversations.messages(
        MessageSelector(
            owner=thread.owner,
            thread_id=thread.id,
            limit=READ_AT_ONCE,
            before=before,
            is_from_end=True,
            most_bytes=limits.MAX_PAGE_BYTES,
        ),
    ):
        if not all(map(caller.may_erase, messages)):
            raise TrustTooLow("the thread holds messages of other users of the chat; it is not erased from a sandbox")
        before = messages[0].seq


async def _first_ids(thread: Thread, store: Store) -> list[str]:
    selector = MessageSelector(owner=thread.owner, thread_id=thread.id, limit=limits.MAX_NAMED_IDS)
    return [head.id for head in await store.conversations.heads(selector)]


def _refuse_higher(thread: Thread, caller: Caller) -> None:
    if thread.highest_trust.outranks(caller.trust):
        raise TrustTooLow("the thread holds messages or notes of higher trust; it is not erased")
