"""
Appending messages: durable and found by their words when the call returns, with no embedding and no judgement before.

Where more messages wait for their vectors than the operator allows, appends take as long as embedding does, so that
what waits stays bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from memoryd.domain.batching import in_parts
from memoryd.domain.completion import is_abandoned
from memoryd.domain.conversation.sessions import session_for, updated
from memoryd.domain.conversation.threads import ThreadKey, is_enabled, new_thread, refuse_secret_names
from memoryd.domain.idempotency import IdempotentRequest, receipt_of
from memoryd.domain.pipeline import Decision, Write, answering, carry_out
from memoryd.domain.ports import Ports
from memoryd.domain.preparing import ON_LOOP, preparing
from memoryd.domain.quotas import check_quota, quota_lock
from memoryd.domain.shared import thread_lock
from memoryd.errors import Conflict, Contended, InvalidArgument, in_part
from memoryd.index.analysis import analyse, indexed_text
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, ConversationChange, NewMessage, RecordedRequest
from memoryd.model.conversation import Message, Role, Session, Thread
from memoryd.model.measures import Event
from memoryd.model.message_draft import MessageDraft
from memoryd.model.receipt import AppendReceipt
from memoryd.model.talk import Appended, AppendedMessage
from memoryd.model.trust import Trust
from memoryd.model.validation import check_batch, check_id
from memoryd.store.conversations import MessageSelector

__all__ = ["append"]

IN_ONE_GO = 32 * 1024  # characters, after which it is asked whether the call still counts


async def append(  # noqa: PLR0913  one argument for each field of the contract
    key: ThreadKey,
    drafts: Sequence[MessageDraft],
    caller: Caller,
    ports: Ports,
    *,
    now: datetime,
    session_id: str = "",
    request_id: str = "",
    skip_existing: bool = False,
    dry_run: bool = False,
) -> Appended:
    """
    Append messages to a thread in order, all or none; see AppendMessages in the contract.

    With dry_run they are only looked at, and whatever is wrong with them is raised.
    """
    write = _Append(key, drafts, check_id(session_id, "session_id"), caller, ports, now, skip_existing=skip_existing)
    if dry_run or not is_enabled(caller, ports.policy):
        return Appended(stored=False)
    appended = await carry_out(write, request_id=request_id)
    pause_s = ports.shared.lag.pause_s(key.owner(caller), len(drafts), ports.policy.conversation.slow_after)
    if pause_s:
        await asyncio.sleep(pause_s)
    return appended


class _Append(Write[Appended]):
    method = "AppendMessages"
    is_looked_up_first = False

    def __init__(
        self,
        key: ThreadKey,
        drafts: Sequence[MessageDraft],
        session_id: str,
        caller: Caller,
        ports: Ports,
        now: datetime,
        *,
        skip_existing: bool,
    ) -> None:
        super().__init__(caller, ports, now)
        self._key, self._session_id, self._skip_existing = key, session_id, skip_existing
        self._drafts = list(drafts)
        self._owner = key.owner(caller)
        _check(self._drafts, caller)
        refuse_secret_names(
            {"thread_id": key.thread_id, "session_id": session_id}
            | {f"messages[{n}].id": draft.id for n, draft in enumerate(self._drafts)},
            ports.guards,
        )
        self._said: list[tuple[MessageDraft, bool, str]] = []
        """Each draft without credentials, whether one was masked, and its analysed words."""

    @property
    def payload(self) -> object:
        asked = self._key, self._session_id, self._drafts
        return (*asked, "skip_existing") if self._skip_existing else asked

    async def replay(self, earlier: RecordedRequest) -> Appended:
        thread = await self.ports.store.conversations.thread(self._owner, self._key.thread_id)
        append_receipt = receipt_of(earlier, AppendReceipt)
        counts = (0, 0) if thread is None else (thread.message_count, thread.turn_count)
        return Appended(True, append_receipt.messages, append_receipt.session_id, *counts)

    async def prepare(self) -> None:
        if self._said:
            return  # decided again
        size = sum(draft.characters for draft in self._drafts)
        is_gone = is_abandoned()
        if size <= ON_LOOP:
            self._said = [self._prepared(draft, is_gone) for draft in self._drafts]
            return
        judged = []
        async with preparing(self._owner, self.caller, self.ports, self.now) as run:
            for some in in_parts(self._drafts, lambda draft: draft.characters, IN_ONE_GO):
                judged += await run(self._prepared_all, some, is_gone)
        self._said = judged

    def _prepared_all(
        self, drafts: Sequence[MessageDraft], is_gone: Callable[[], bool]
    ) -> list[tuple[MessageDraft, bool, str]]:
        return [self._prepared(draft, is_gone) for draft in drafts]

    def _prepared(self, draft: MessageDraft, is_gone: Callable[[], bool]) -> tuple[MessageDraft, bool, str]:
        clean = draft.masked(self.ports.guards.masker(draft.characters, is_gone), self.ports.guards.is_token)
        probe = self._message(clean, "", 0, "", draft.create_time or self.now, masked=False)
        if clean != draft:
            self.ports.measures.count(Event.MASKED)
        return clean, clean != draft, " ".join(analyse(indexed_text(probe.create_time, probe.voice, (), probe.words)))

    def _message(
        self, draft: MessageDraft, message_id: str, seq: int, session_id: str, create_time: datetime, *, masked: bool
    ) -> Message:
        return Message(
            id=message_id,
            agent_id=self._owner.agent_id,
            scope=self._owner.scope,
            thread_id=self._key.thread_id,
            seq=seq,
            session_id=session_id,
            role=draft.role,
            content=draft.content,
            create_time=create_time,
            name=draft.name,
            tool_calls=draft.tool_calls,
            tool_call_id=draft.tool_call_id,
            input_source=draft.input_source,
            metadata=draft.metadata,
            masked=masked,
            trust=self.caller.trust,
            grant_id=self.caller.grant_id,
            author=self.caller.user_id or "",
        )

    def locks(self) -> Iterable[Any]:
        return [thread_lock(self._owner, self._key.thread_id), *quota_lock(self.caller)]

    async def decide(self, request: IdempotentRequest) -> Decision[Appended]:
        thread, current = await self._thread()
        known = await self._known(thread)
        if len(known) == len(self._said):
            return await self._nothing_new(known)
        session, sessions = await session_for(
            thread, current, self._session_id, self.caller.trust, self.ports, self.now
        )
        session_id = session.id
        messages = self._messages(thread, session_id, known)
        size = sum(new_message.message.text_bytes for new_message in messages)
        await check_quota(size, f"these messages have {size}", self.caller, self.ports.store, self.now)
        changed = self._thread_after(thread, [new_message.message for new_message in messages], session_id)
        new = iter(messages)
        appended = tuple(known.get(draft.id) or _named(next(new).message) for draft, _, _ in self._said)
        note = request.record(AppendReceipt(self._owner, thread.id, session_id, appended), self.now)
        talk = ConversationChange(self._owner, messages=tuple(messages), threads=(changed,), sessions=sessions)

        async def answer() -> Appended:
            self.ports.shared.lag.add(self._owner, len(messages))
            self.ports.shared.last_threads.put(changed, session)
            before = "" if thread.session_id in {"", session_id} else thread.session_id
            return Appended(True, appended, session_id, changed.message_count, changed.turn_count, before)

        return Decision(ChangeSet(conversation=talk, request=note), answer)

    async def _known(self, thread: Thread) -> dict[str, AppendedMessage]:
        """Return what the thread has already of what is appended, by id; Conflict where that is not asked for."""
        given = {draft.id: (n, draft) for n, (draft, _, _) in enumerate(self._said) if draft.id}
        if not thread.message_count or not given:
            return {}
        conversations = self.ports.store.conversations
        named = MessageSelector(owner=self._owner, thread_id=thread.id, ids=given.keys())
        heads = await conversations.heads(named)
        if not heads:
            return {}
        if not self._skip_existing:
            n, draft = min(given[head.id] for head in heads)
            with in_part(f"messages[{n}]"):
                raise Conflict(f"the thread has a message {draft.id!r} already; leave it out", field="id")
        known = {}
        for message in await conversations.messages(named):
            n, draft = given[message.id]
            if not draft.says_the_same(message):
                with in_part(f"messages[{n}]"):
                    raise Conflict(
                        f"the thread has a message {draft.id!r} that says something else; give this one another id",
                        field="id",
                    )
            known[message.id] = replace(_named(message), existed=True)
        return known

    async def _nothing_new(self, known: Mapping[str, AppendedMessage]) -> Decision[Appended]:
        """Return the answer where the thread has all of it: nothing is written, which would notice other daemons."""
        thread = await self.ports.store.conversations.thread(self._owner, self._key.thread_id)
        if thread is None:
            raise Contended("the thread was erased at the same time; try again")
        messages = tuple(known[draft.id] for draft, _, _ in self._said)
        return Decision(
            None, answering(Appended(True, messages, thread.session_id, thread.message_count, thread.turn_count))
        )

    async def _thread(self) -> tuple[Thread, Session | None]:
        """Return the thread as it is now, or a new one, and its open session."""
        known = self.ports.shared.last_threads.take(self._owner, self._key.thread_id)
        if known is not None:
            return known
        store = self.ports.store
        thread = await store.conversations.thread(self._owner, self._key.thread_id)
        if thread is None:
            return new_thread(self._key, self._owner, self.now, self.caller.trust), None
        session = (
            await store.conversations.session(self._owner, thread.id, thread.session_id) if thread.session_id else None
        )
        return thread, session

    def _messages(self, thread: Thread, session_id: str, known: Collection[str]) -> list[NewMessage]:
        made = []
        for n, (draft, masked, terms) in enumerate(one for one in self._said if one[0].id not in known):
            created = draft.create_time or self.now + timedelta(microseconds=n)
            message_id = draft.id or self.ports.new_id()
            message = self._message(draft, message_id, thread.last_seq + 1 + n, session_id, created, masked=masked)
            made.append(NewMessage(message, terms))
        return made

    def _thread_after(self, thread: Thread, messages: Sequence[Message], session_id: str) -> Thread:
        """Return the thread with messages appended; past `max_history` its older ones leave the prompts."""
        policy = self.ports.policy.of(thread.agent_id).conversation
        last = thread.last_seq + len(messages)
        view = thread.view_seq
        # who is of lower trust moves nothing of higher trust out of the prompts
        may_compact = not thread.trust.outranks(self.caller.trust)
        if may_compact and policy.max_history and last - max(view, thread.summary_seq) > policy.max_history:
            view = max(view, last - policy.retain_recent)
        return replace(
            thread,
            update_time=updated(thread, self.now),
            message_count=thread.message_count + len(messages),
            turn_count=thread.turn_count + sum(message.role is Role.USER for message in messages),
            last_seq=last,
            session_id=session_id,
            view_seq=view,
            trust=Trust.highest(self.caller.trust, thread.trust),
            revision=thread.revision + 1,
        )


def _named(message: Message) -> AppendedMessage:
    return AppendedMessage(message.id, message.seq, message.create_time, message.masked)


def _check(drafts: Sequence[MessageDraft], caller: Caller) -> None:
    """Check a call as a whole; InvalidArgument or LimitExceeded names what is wrong."""
    check_batch(len(drafts), "messages", "append")
    seen: set[str] = set()
    for n, draft in enumerate(drafts):
        with in_part(f"messages[{n}]"):
            for name in ("id", "create_time"):
                if getattr(draft, name) and caller.trust is Trust.SANDBOX:
                    raise InvalidArgument(f"{name} is for hosts and importers; leave it out", field=name)
            if draft.id and draft.id in seen:
                raise InvalidArgument("id comes twice", field="id")
        seen.add(draft.id)
