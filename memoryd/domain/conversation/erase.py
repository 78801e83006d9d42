"""Erasing a thread: its messages, sessions and summary, and, if asked for, what was learnt from them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from memoryd.domain.conversation.threads import ThreadKey, known_thread
from memoryd.domain.forgetting.forget import KEPT, forgetting_change
from memoryd.domain.forgetting.sweep import Match, forget_matching, matching
from memoryd.domain.pipeline import Decision, answering, decide_and_commit
from memoryd.domain.ports import Ports
from memoryd.domain.shared import thread_lock
from memoryd.errors import TrustTooLow
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import PURGE, ChangeSet, ConversationChange
from memoryd.model.conversation import Thread
from memoryd.model.memory import Source
from memoryd.model.talk import ErasedThread
from memoryd.store.base import Store
from memoryd.store.conversations import MessageSelector

__all__ = ["erase_thread"]

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
    match = Match(source=Source(thread_id=seen.id), shared=key.shared)
    backups = ports.copies()
    if dry_run:
        ids = await _first_ids(seen, ports.store)
        memories = await matching(match, caller, ports, now) if with_memories else []
        return ErasedThread(seen, tuple(ids), tuple(memory.id for memory in memories), backups, dry_run=True)

    async def decide() -> Decision[ErasedThread]:
        thread = await known_thread(key, owner, ports)
        _refuse_higher(thread, caller)
        await _refuse_others(thread, caller, ports.store)
        memories = await matching(match, caller, ports, now) if with_memories else []
        if not all(map(caller.may_erase, memories)):
            raise TrustTooLow(KEPT)
        entries = await ports.entries_of(memories)
        change = await forgetting_change(entries, ports, now=now, due_time=None, trust=caller.trust)
        ids = tuple(await _first_ids(thread, ports.store))
        talk = ConversationChange(owner, purge_threads=(thread,), purged_ids=ids[: limits.MAX_AUDITED_IDS])
        change = replace(change or ChangeSet(marks={PURGE: now}), conversation=talk)
        receipt = ErasedThread(thread, ids, tuple(memory.id for memory in memories), backups)
        return Decision(change, answering(receipt))

    locks = [thread_lock(owner, key.thread_id), *(caller.visibility.owners if with_memories else ())]
    erased = await decide_and_commit(locks, decide, ports, now=now, grant_id=caller.grant_id)
    if not with_memories:
        return erased
    rest = await forget_matching(match, caller, ports, now=now, purge=True)
    return replace(erased, memory_ids=(*erased.memory_ids, *rest.deleted_ids))


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
