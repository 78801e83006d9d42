"""Erasing all that a user has with an agent: memories in every state, people, conversations and working memory."""

from __future__ import annotations

from datetime import datetime

from memoryd.domain.notes.reading import note_lock
from memoryd.domain.pipeline import Decision, answering, decide_and_commit
from memoryd.domain.ports import Ports
from memoryd.errors import InvalidArgument, TrustTooLow
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import PURGE, ChangeSet, ConversationChange
from memoryd.model.reports import ErasedUser
from memoryd.model.scope import Owner
from memoryd.model.validation import check_id

__all__ = ["erase_user", "forget_user"]


async def forget_user(caller: Caller, ports: Ports, *, now: datetime, dry_run: bool) -> ErasedUser:
    """Erase all that the calling user has with this agent; what was said in chats stays. See ForgetUser."""
    return await _erase(caller.writes_to(shared=False), caller, ports, now, dry_run=dry_run)


async def erase_user(user_id: str, agent_id: str, ports: Ports, *, now: datetime, dry_run: bool) -> list[ErasedUser]:
    """Erase all that a user has with an agent, or with every agent (""); see EraseUser."""
    user_id = check_id(user_id, "user_id")
    if not user_id:
        raise InvalidArgument("user_id is empty; name the user to erase", field="user_id")
    owners = await ports.store.owners.of_user(user_id, check_id(agent_id, "agent_id"))
    each = [(owner, Caller(agent_id=owner.agent_id, user_id=user_id)) for owner in owners]
    return [await _erase(owner, caller, ports, now, dry_run=dry_run) for owner, caller in each]


async def _erase(owner: Owner, caller: Caller, ports: Ports, now: datetime, *, dry_run: bool) -> ErasedUser:
    async def decide() -> Decision[ErasedUser]:
        contents = await ports.store.owners.contents(owner, limit=limits.MAX_NAMED_IDS)
        if any(trust.outranks(caller.trust) for trust in contents.trusts):
            raise TrustTooLow("some of it is of higher trust; nothing was erased")
        receipt = ErasedUser(
            owner.agent_id,
            contents.memory_count,
            contents.message_count,
            contents.thread_count,
            contents.memory_ids,
            contents.message_ids,
            None if dry_run else now,
            ports.copies(),
            dry_run,
            contents.note_count,
        )

        answer = answering(receipt)
        if dry_run or contents.is_empty:
            return Decision(None, answer)
        gone = (*contents.memory_ids, *contents.message_ids)[: limits.MAX_AUDITED_IDS]
        talk = ConversationChange(owner, purge_all=True, purged_ids=gone)
        return Decision(ChangeSet(purge_owner=owner, conversation=talk, marks={PURGE: now}), answer)

    locks = [owner, note_lock(owner)]  # a note that the host puts meanwhile is of higher trust
    return await decide_and_commit(locks, decide, ports, now=now, grant_id=caller.grant_id)
