"""Threads as callers name them: one key in one scope; and how a change of a thread is decided."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

from memoryd.domain.conversation.sessions import session_now
from memoryd.domain.pipeline import Decision, answering, decide_and_commit
from memoryd.domain.policy import Policy
from memoryd.domain.ports import Guards, Ports
from memoryd.domain.quotas import check_texts, quota_lock
from memoryd.domain.retrieval.page_token import bound_to, page_token_after, read_page_token
from memoryd.domain.shared import thread_lock
from memoryd.errors import InvalidArgument, ThreadNotFound, TrustTooLow
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, ConversationChange
from memoryd.model.conversation import Session, SessionState, Thread, WorkingMemory
from memoryd.model.scope import Owner
from memoryd.model.talk import CompactedThread, SessionPage, Summary, ThreadPage
from memoryd.model.trust import Trust
from memoryd.model.validation import check_count, check_id, check_text
from memoryd.store.base import Store
from memoryd.store.memories import Cursor

__all__ = [
    "ThreadKey",
    "change_thread",
    "compact_thread",
    "get_summary",
    "get_thread",
    "get_working_memory",
    "is_enabled",
    "list_sessions",
    "list_threads",
    "new_thread",
    "refuse_secret_names",
    "set_summary",
    "set_working_memory",
    "thread_as_it_is",
    "working_memory_of",
]

T = TypeVar("T")
NEVER = datetime.fromtimestamp(0, UTC)  # when a thread of an agent that is switched off was begun


@dataclass(frozen=True, slots=True)
class ThreadKey:
    """Which thread a call names: the caller's own key, in their personal scope or in that of the chat."""

    thread_id: str
    shared: bool = False

    def __post_init__(self) -> None:
        """Check the key; InvalidArgument if it is empty."""
        object.__setattr__(self, "thread_id", check_id(self.thread_id, "thread_id"))
        if not self.thread_id:
            raise InvalidArgument("thread_id is empty; name the conversation, for example cli:alice", field="thread_id")

    def owner(self, caller: Caller) -> Owner:
        """Return whose thread it is; IdentityMissing or InvalidArgument if the call does not say."""
        return caller.writes_to(shared=self.shared)


def new_thread(key: ThreadKey, owner: Owner, now: datetime, trust: Trust = Trust.HOST) -> Thread:
    """Return a thread that has no message yet; `trust` is that of the one who begins it."""
    return Thread(
        id=key.thread_id, agent_id=owner.agent_id, scope=owner.scope, create_time=now, update_time=now, trust=trust
    )


def is_enabled(caller: Caller, policy: Policy) -> bool:
    """Whether anything is stored for the agent of a call; if not, calls succeed and change nothing."""
    return policy.of(caller.agent_id).enabled


async def thread_as_it_is(
    key: ThreadKey, owner: Owner, store: Store, now: datetime, trust: Trust = Trust.HOST
) -> Thread:
    """Return a thread, or an empty one where there is none: what a call answers for an agent that is switched off."""
    return await store.conversations.thread(owner, key.thread_id) or new_thread(key, owner, now, trust)


async def known_thread(key: ThreadKey, owner: Owner, ports: Ports) -> Thread:
    """Return a thread; NotFound if there is none, unless its agent is switched off: that has empty ones."""
    thread = await ports.store.conversations.thread(owner, key.thread_id)
    if thread is None and not ports.policy.of(owner.agent_id).enabled:
        return new_thread(key, owner, NEVER)
    if thread is None:
        where = "the chat" if key.shared else "this user"
        raise ThreadNotFound(f"{where} has no thread {key.thread_id!r}", field="thread_id")
    return thread


async def get_thread(key: ThreadKey, caller: Caller, ports: Ports) -> Thread:
    """Return a thread; see GetThread in the contract."""
    return await known_thread(key, key.owner(caller), ports)


async def get_summary(key: ThreadKey, caller: Caller, store: Store) -> Summary:
    """Return what sums up a thread; an empty one where nothing does."""
    thread = await store.conversations.thread(key.owner(caller), key.thread_id)
    if thread is None or not thread.summary:
        return Summary()
    return Summary(
        thread.summary,
        thread.summary_seq,
        thread.summary_time,
        thread.summary_trust,
        thread.summary_by,
        thread.summary_author,
    )


async def list_threads(
    caller: Caller, ports: Ports, *, page_size: int = 0, page_token: str = "", prefix: str = ""
) -> ThreadPage:
    """Return one page of the threads that a caller sees, latest first; see ListThreads in the contract."""
    size = check_count(page_size, "page_size", default=limits.DEFAULT_PAGE_SIZE, limit=limits.MAX_PAGE_SIZE)
    prefix = check_text(prefix, "prefix", limit=limits.MAX_ID_BYTES)
    bound = bound_to("threads", caller, prefix)
    after = read_page_token(page_token, ports.page_secret, bound) if page_token else None
    threads = await ports.store.conversations.threads(
        caller.visibility, limit=size + 1, after=None if after is None else (after.create_time, after.id), prefix=prefix
    )
    page = _within_an_answer(threads[:size])
    token = ""
    if len(threads) > len(page):
        token = page_token_after(Cursor(page[-1].update_time, page[-1].id), ports.page_secret, bound)
    return ThreadPage(tuple(page), token)


def _within_an_answer(threads: Sequence[Thread]) -> list[Thread]:
    """Return the first threads, as many as an answer holds with their summaries and working memories; at least one."""
    sizes = (len(thread.summary.encode()) + len(thread.working_memory.encode()) for thread in threads)
    return list(threads[: max(1, limits.how_many_fit(sizes, limits.MAX_PAGE_BYTES))])


async def list_sessions(
    caller: Caller,
    ports: Ports,
    *,
    key: ThreadKey | None = None,
    states: frozenset[SessionState] = frozenset(),
    page_size: int = 0,
    page_token: str = "",
) -> SessionPage:
    """Return one page of sessions, latest first; see ListSessions in the contract."""
    size = check_count(page_size, "page_size", default=limits.DEFAULT_PAGE_SIZE, limit=limits.MAX_PAGE_SIZE)
    thread_id = "" if key is None else key.thread_id
    owners = caller.visibility.owners if key is None else (key.owner(caller),)
    bound = bound_to("sessions", caller, thread_id, owners, sorted(state.value for state in states))
    after = read_page_token(page_token, ports.page_secret, bound) if page_token else None
    sessions = await ports.store.conversations.sessions(
        owners,
        limit=size + 1,
        after=None if after is None else (after.create_time, after.id),
        thread_id=thread_id,
        states=states,
    )
    page = sessions[:size]
    token = ""
    if len(sessions) > size:
        token = page_token_after(Cursor(page[-1].start_time, page[-1].id), ports.page_secret, bound)
    threads = {
        (session.owner, session.thread_id): await ports.store.conversations.thread(session.owner, session.thread_id)
        for session in page
        if session.state is SessionState.OPEN
    }
    shown = [session_now(session, threads.get((session.owner, session.thread_id))) for session in page]
    return SessionPage(tuple(shown), token)


async def change_thread(
    key: ThreadKey,
    caller: Caller,
    ports: Ports,
    change: Callable[[Thread], Awaitable[tuple[Thread, tuple[Session, ...], T]]],
    *,
    now: datetime,
) -> T:
    """Change a thread that is there: decided under its lock, and again where others come between."""
    owner = key.owner(caller)

    async def decide() -> Decision[T]:
        known = await known_thread(key, owner, ports)
        ports.shared.last_threads.take(owner, key.thread_id)  # it is another one from here on
        changed, sessions, answer = await change(known)
        if changed is known:
            return Decision(None, answering(answer))
        changed = replace(changed, revision=known.revision + 1)
        before = () if changed.texts == known.texts else (known,)
        await check_texts(changed.texts, known.texts, caller, ports.store, now)
        talk = ConversationChange(owner, threads=(changed,), threads_before=before, sessions=sessions)
        return Decision(ChangeSet(conversation=talk), answering(answer))

    locks = [thread_lock(owner, key.thread_id), *quota_lock(caller)]
    return await decide_and_commit(locks, decide, ports, now=now, grant_id=caller.grant_id)


async def set_summary(
    key: ThreadKey, summary: str, up_to_seq: int, caller: Caller, ports: Ports, *, now: datetime
) -> Thread:
    """
    Set what sums up a thread up to a message (0: all that have left the prompts, else all); see SetSummary.

    An empty summary removes it.
    """
    text = check_text(summary, "summary", limit=limits.MAX_SUMMARY_BYTES).strip()
    _refuse_secrets(text, "summary", ports.guards)
    if not is_enabled(caller, ports.policy):
        return await thread_as_it_is(key, key.owner(caller), ports.store, now)

    async def change(thread: Thread) -> tuple[Thread, tuple[Session, ...], Thread]:
        if not 0 <= up_to_seq <= thread.last_seq:
            raise InvalidArgument(
                f"up_to_seq is {up_to_seq}; the thread has messages 1 to {thread.last_seq}", field="up_to_seq"
            )
        _refuse_lower_trust(caller, thread.summary_trust if thread.summary else None, "summary")
        covered = (up_to_seq or thread.view_seq or thread.last_seq) if text else thread.view_seq
        time = now if text else None
        changed = replace(
            thread,
            summary=text,
            summary_seq=covered,
            summary_time=time,
            summary_trust=caller.trust,
            summary_by="",
            summary_author=_author(text, caller, shared=key.shared),
            summary_grant_id=caller.grant_id if text else "",
        )
        return changed, (), changed

    return await change_thread(key, caller, ports, change, now=now)


def _author(text: str, caller: Caller, *, shared: bool) -> str:
    """Return whose call sets a text that a chat shares; "" for one of the user's own, and where none is set."""
    return caller.user_id or "" if shared and text else ""


def _refuse_lower_trust(caller: Caller, known: Trust | None, what: str) -> None:
    if known is not None and known.outranks(caller.trust):
        raise TrustTooLow(f"the {what} is of higher trust; it stays as it is")


def refuse_secret_names(named: Mapping[str, str], guards: Guards) -> None:
    """Raise InvalidArgument where a key or an id is a credential: it is not masked, as it is what names things."""
    for field, name in named.items():
        if guards.is_token(name):
            raise InvalidArgument(f"{field} holds a credential; name it otherwise", field=field)


def _refuse_secrets(text: str, field: str, guards: Guards) -> None:
    if text and guards.secrets([text]):
        raise InvalidArgument(f"{field} holds a credential; leave it out", field=field)


async def compact_thread(
    key: ThreadKey, retain_recent: int, caller: Caller, ports: Ports, *, emergency: bool, now: datetime
) -> CompactedThread:
    """
    Let a thread's older messages leave its prompts, and return it and how many they are; see CompactThread.

    Nothing is deleted.
    """
    policy = ports.policy.of(caller.agent_id).conversation
    default = policy.emergency_retain if emergency else policy.retain_recent
    retained = check_count(retain_recent, "retain_recent", default=default, limit=limits.MAX_RECENT_MESSAGES)
    if not is_enabled(caller, ports.policy):
        return CompactedThread(await thread_as_it_is(key, key.owner(caller), ports.store, now), 0)

    async def change(thread: Thread) -> tuple[Thread, tuple[Session, ...], CompactedThread]:
        first = max(thread.view_seq, thread.last_seq - retained)
        if first > thread.view_seq:
            _refuse_lower_trust(caller, thread.trust, "thread")
        changed = replace(thread, view_seq=first)
        return changed, (), CompactedThread(changed, first - thread.view_seq)

    return await change_thread(key, caller, ports, change, now=now)


async def get_working_memory(key: ThreadKey | None, caller: Caller, store: Store, *, shared: bool) -> WorkingMemory:
    """Return the working memory of a thread, or that of the user or chat; an empty one if none is set."""
    if key is None:
        return await store.conversations.working_memory(caller.writes_to(shared=shared))
    thread = await store.conversations.thread(key.owner(caller), key.thread_id)
    return WorkingMemory() if thread is None else working_memory_of(thread)


def working_memory_of(thread: Thread) -> WorkingMemory:
    """Return the working memory of a thread."""
    return WorkingMemory(
        thread.working_memory,
        thread.working_memory_time,
        thread.working_memory_trust,
        author=thread.working_memory_author,
    )


async def set_working_memory(
    key: ThreadKey | None, text: str, caller: Caller, ports: Ports, *, shared: bool, now: datetime
) -> WorkingMemory:
    """Replace the working memory of a thread, or that of the user or chat; an empty text removes it."""
    text = check_text(text, "text", limit=limits.MAX_WORKING_MEMORY_BYTES).strip()
    _refuse_secrets(text, "text", ports.guards)
    author = _author(text, caller, shared=shared)
    working_memory = WorkingMemory(text, now if text else None, caller.trust, caller.grant_id if text else "", author)
    if not is_enabled(caller, ports.policy):
        return await get_working_memory(key, caller, ports.store, shared=shared)
    if key is not None:

        async def change(thread: Thread) -> tuple[Thread, tuple[Session, ...], WorkingMemory]:
            _refuse_lower_trust(
                caller, thread.working_memory_trust if thread.working_memory else None, "working memory"
            )
            changed = replace(
                thread,
                working_memory=text,
                working_memory_time=working_memory.update_time,
                working_memory_trust=caller.trust,
                working_memory_author=author,
                working_memory_grant_id=working_memory.grant_id,
            )
            return changed, (), working_memory

        return await change_thread(key, caller, ports, change, now=now)
    owner = caller.writes_to(shared=shared)

    async def decide() -> Decision[WorkingMemory]:
        known = await ports.store.conversations.working_memory(owner)
        _refuse_lower_trust(caller, known.trust if known.text else None, "working memory")
        await check_texts(working_memory.texts, known.texts, caller, ports.store, now)
        return Decision(
            ChangeSet(conversation=ConversationChange(owner, working_memory=working_memory)), answering(working_memory)
        )

    locks = [("working memory", owner), owner, *quota_lock(caller)]  # whoever erases the owner holds it too
    return await decide_and_commit(locks, decide, ports, now=now, grant_id=caller.grant_id)
