"""
Sessions for an agent of the host's: which wait, what was said in them, what it has learnt, and when it is done.

A session is leased to one worker, from each call that names it on; the lease is a part of its row, so that it counts
for several daemons.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from memoryd.domain.clock import holds
from memoryd.domain.conversation.sessions import session_change
from memoryd.domain.idempotency import IdempotentRequest, memory_now, statements_of
from memoryd.domain.pipeline import Decision, Write, answering, carry_out, decide_and_commit
from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.page_token import number_after, read_number
from memoryd.domain.retrieval.presentation import present_one
from memoryd.domain.shared import thread_lock
from memoryd.errors import Conflict, InvalidArgument, LimitExceeded, ThreadNotFound, in_part
from memoryd.learning.extractor import Learnt
from memoryd.learning.writing import Judged, Offered, embedded, judged, offered, quota_locks
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, RecordedRequest
from memoryd.model.conversation import Message, Role, Session, SessionState, Thread
from memoryd.model.embedding import Embedded
from memoryd.model.learnt import SaidFact, SessionKey
from memoryd.model.receipt import AddReceipt, Rejection, StatementOutcome
from memoryd.model.results import AddResult
from memoryd.model.scope import Owner
from memoryd.model.validation import check_count, check_id
from memoryd.store.conversations import MessageSelector

__all__ = ["LEASE", "complete_session", "pending_sessions", "save_facts", "session_messages"]

LEASE = timedelta(minutes=10)
LOOK_S, LONGEST_LOOK_S = 0.5, 3.0  # between two looks, while someone waits for a session
MOST_WAIT_S = 60.0
DEFAULT_MESSAGES = 30
READ_AT_ONCE = 200  # pending sessions


async def pending_sessions(  # noqa: PLR0913  one argument for each field of the contract
    ports: Ports,
    clock: Callable[[], datetime],
    *,
    worker: str = "",
    agent_id: str = "",
    user_id: str = "",
    chat_id: str = "",
    exclude: Collection[str] = (),
    limit: int = 0,
    wait_s: float = 0.0,
) -> list[Session]:
    """Return sessions that wait to be learnt from and no one else has leased: first ended first, by owners in turn."""
    size = check_count(limit, "page_size", default=limits.DEFAULT_PAGE_SIZE, limit=limits.MAX_PAGE_SIZE)
    if not 0 <= wait_s <= MOST_WAIT_S:
        raise InvalidArgument(f"wait is {wait_s:g} s; it must lie between 0 and {MOST_WAIT_S:.0f}", field="wait")
    if len(exclude) > limits.MAX_EXCLUDED:
        raise LimitExceeded(
            f"exclude_session_ids has {len(exclude)} entries; the limit is {limits.MAX_EXCLUDED}",
            field="exclude_session_ids",
            limit="exclude_session_ids",
        )

    excluded = frozenset(exclude)

    def wanted(session: Session) -> bool:
        return (
            session.id not in excluded
            and agent_id in {"", session.agent_id}
            and user_id in {"", session.scope.user_id}
            and chat_id in {"", session.scope.chat_id}
            and not _is_leased(session, worker, clock())
        )

    loop = asyncio.get_running_loop()
    deadline, pause_s = loop.time() + wait_s, LOOK_S
    while True:
        sessions: list[Session] = []
        after = ""
        while page := await ports.store.conversations.pending_sessions(limit=READ_AT_ONCE, after=after):
            after = page[-1][0]
            sessions += [session for _, session in page if wanted(session)]
        if sessions or loop.time() >= deadline or ports.shared.stopping.is_set():
            return _in_turns_of_owners(sessions)[:size]
        await asyncio.sleep(min(pause_s, max(0.0, deadline - loop.time())))
        pause_s = min(LONGEST_LOOK_S, 1.5 * pause_s)  # of ten thousand sessions a look takes 0.2 s


def _in_turns_of_owners(sessions: Sequence[Session]) -> list[Session]:
    """Return sessions, those first that ended first, but of each owner one in turn: no one fills the list alone."""
    places: Counter[Owner] = Counter()
    order: list[tuple[int, int, Session]] = []
    for n, session in enumerate(sorted(sessions, key=lambda ended: (ended.end_time or ended.start_time, ended.id))):
        order.append((places[session.owner], n, session))
        places[session.owner] += 1
    return [one for _, _, one in sorted(order, key=lambda row: row[:2])]


def _is_leased(session: Session, worker: str, now: datetime) -> bool:
    """Whether someone else works on a session."""
    return holds(session.lease_time, now, 2 * LEASE) and session.lease_by != worker


async def _thread_and_session(key: SessionKey, ports: Ports) -> tuple[Thread, Session]:
    """Return a session, and first its thread, on which what changes of it is decided; ThreadNotFound."""
    thread = await ports.store.conversations.thread(key.owner, key.thread_id)
    known = await ports.store.conversations.session(key.owner, key.thread_id, key.session_id)
    if thread is None or known is None:
        raise ThreadNotFound(f"there is no session {key.session_id!r} in that thread", field="session")
    return thread, known


async def _leased(key: SessionKey, worker: str, ports: Ports, now: datetime) -> Session:
    """Lease a session to a worker, or renew its lease, and return it; Conflict where another one has it."""
    worker = check_id(worker, "worker")
    if not worker:
        raise InvalidArgument("worker is empty; say who works on the session", field="worker")

    async def decide() -> Decision[Session]:
        thread, known = await _thread_and_session(key, ports)
        if _is_leased(known, worker, now):
            raise Conflict(f"{known.lease_by} works on the session; take another one", field="session")
        if known.state is not SessionState.PENDING:  # no one works on it
            return Decision(None, answering(known))
        session = replace(known, lease_by=worker, lease_time=now + LEASE)
        return Decision(session_change(session, thread, ports), answering(session))

    return await decide_and_commit([thread_lock(key.owner, key.thread_id)], decide, ports, now=now, grant_id="")


async def session_messages(
    key: SessionKey, worker: str, ports: Ports, *, now: datetime, page_size: int = 0, page_token: str = ""
) -> tuple[list[Message], str, Session]:
    """Return the next messages of a session in order, the token of the page after, and the session as it is leased."""
    size = check_count(page_size, "page_size", default=DEFAULT_MESSAGES, limit=limits.MAX_PAGE_SIZE)
    session = await _leased(key, worker, ports, now)
    bound = repr(("session", key.owner, key.thread_id, key.session_id)).encode()
    after = read_number(page_token, ports.page_secret, bound) if page_token else session.first_seq - 1
    messages: list[Message] = []
    used = 0
    while after < session.last_seq and len(messages) < size:
        step = min(size - len(messages), READ_AT_ONCE)
        part = await ports.store.conversations.messages(
            MessageSelector(
                owner=key.owner,
                thread_id=key.thread_id,
                session_id=key.session_id,
                limit=step,
                is_from_end=True,
                after=after,
                before=after + step + 1,
            ),
        )
        for message in part:
            used += message.text_bytes
            if used > limits.MAX_PAGE_BYTES and messages:
                return messages, number_after(messages[-1].seq, ports.page_secret, bound), session
            messages.append(message)
        after += step
    more = after < session.last_seq
    return messages, number_after(after, ports.page_secret, bound) if more else "", session


async def complete_session(key: SessionKey, worker: str, ports: Ports, *, now: datetime) -> Session:
    """Note that a session was learnt from; one that is noted so stays as it is."""
    await _leased(key, worker, ports, now)

    async def decide() -> Decision[Session]:
        thread, known = await _thread_and_session(key, ports)
        if _is_leased(known, worker, now):
            raise Conflict(f"{known.lease_by} works on the session; take another one", field="session")
        if known.state is SessionState.OPEN:
            raise Conflict("the session goes on; end it first", field="session")
        done = replace(known, state=SessionState.DONE, lease_by="", lease_time=None)
        change = session_change(done, thread, ports) if known.state is SessionState.PENDING else None
        return Decision(change, answering(done))

    return await decide_and_commit([thread_lock(key.owner, key.thread_id)], decide, ports, now=now, grant_id="")


async def save_facts(
    key: SessionKey,
    worker: str,
    facts: Sequence[SaidFact],
    ports: Ports,
    *,
    now: datetime,
    request_id: str = "",
) -> list[AddResult]:
    """Save what messages of a session say; see SaveFacts in the contract."""
    if not facts:
        raise InvalidArgument("facts is empty; complete the session if it says nothing", field="facts")
    if len(facts) > limits.MAX_BATCH:
        raise LimitExceeded(
            f"facts has {len(facts)} items; the limit is {limits.MAX_BATCH}", field="facts", limit="facts"
        )
    await _leased(key, worker, ports, now)
    return await carry_out(_SaveFacts(key, facts, ports, now), request_id=request_id)


class _SaveFacts(Write[list[AddResult]]):
    method = "SaveFacts"

    def __init__(self, key: SessionKey, facts: Sequence[SaidFact], ports: Ports, now: datetime) -> None:
        caller = Caller(key.owner.agent_id, key.owner.scope.user_id, key.owner.scope.chat_id)
        super().__init__(caller, ports, now)
        self._key, self._facts = key, facts
        self._offers: list[Offered] = []
        self._places: list[int | None] = []
        """Of each fact its place among the offers; None: it is rejected as not sure enough."""
        self._vectors: list[Embedded | None] = []

    @property
    def payload(self) -> object:
        return (self._key.thread_id, self._key.session_id, tuple(self._facts))

    async def prepare(self) -> None:
        offers = [await self._offer(n, fact) for n, fact in enumerate(self._facts)]
        self._offers = [offer for offer in offers if offer is not None]
        places = iter(range(len(self._offers)))
        self._places = [None if offer is None else next(places) for offer in offers]
        if len({message.grant_id for _, message in self._offers if message.grant_id}) > 1:
            raise InvalidArgument(
                "facts: their messages came through several grants; save those of each grant in a call of their own",
                field="facts",
            )
        self._vectors = await embedded(self._offers, self.ports.embedder)

    async def _offer(self, n: int, fact: SaidFact) -> Offered | None:
        """Return what a fact offers, in the name of the message of lowest trust; None where it is not sure enough."""
        with in_part(f"facts[{n}]"):
            return await self._offered(fact)

    async def _offered(self, fact: SaidFact) -> Offered | None:
        key = self._key
        messages = await self.ports.store.conversations.messages(self._named(fact.message_ids))
        of_session = {message.id: message for message in messages if message.session_id == key.session_id}
        missing = [message_id for message_id in fact.message_ids if message_id not in of_session]
        if missing or not fact.message_ids:
            text = f"{missing[0]!r} is no message of the session" if missing else "name the messages that say so"
            raise InvalidArgument(f"message_ids: {text}", field="message_ids")
        if fact.confidence < self.ports.policy.of(key.owner.agent_id).extraction_threshold:
            return None
        ordered = sorted(
            of_session.values(), key=lambda message: (message.trust.weight, message.role is Role.USER, message.seq)
        )
        learnt = Learnt(
            content=fact.content,
            message=ordered[0],
            kind=fact.kind,
            category=fact.category,
            confidence=fact.confidence,
            event_time=fact.event_time,
            lasts=None if fact.expire_time is None else fact.expire_time - ordered[0].create_time,
            subjects=fact.subjects,
            tags=fact.tags,
            also=tuple(ordered[1:]),
        )
        made = offered(learnt, self.now, is_strict=True)
        if made is None:
            raise InvalidArgument("the fact is over, or holds what was masked")
        return made

    def _named(self, ids: Collection[str]) -> MessageSelector:
        return MessageSelector(owner=self._key.owner, thread_id=self._key.thread_id, ids=ids)

    def locks(self) -> Iterable[Any]:
        key = self._key
        return [key.owner, thread_lock(key.owner, key.thread_id), *quota_locks(self._offers, self.ports.guards)]

    async def decide(self, request: IdempotentRequest) -> Decision[list[AddResult]]:
        if not self.ports.policy.of(self._key.owner.agent_id).enabled:
            return self._answering(None, Rejection.DISABLED, request)
        if not self._offers:
            return self._answering(None, Rejection.CONFIDENCE, request)
        ids = {message_id for draft, _ in self._offers for message_id in draft.source.message_ids}
        there = await self.ports.store.conversations.heads(self._named(ids))
        if ids - {message.id for message in there}:
            raise Conflict("a message that the facts name was erased meanwhile", field="facts")
        done = await judged(self._offers, self._vectors, self._key.owner, self.ports, now=self.now)
        return self._answering(done, Rejection.CONFIDENCE, request)

    def _answering(self, done: Judged | None, why: Rejection, request: IdempotentRequest) -> Decision[list[AddResult]]:
        rejected = StatementOutcome.rejected(why)
        outcomes = tuple(rejected if done is None or place is None else done.outcomes[place] for place in self._places)
        change = ChangeSet() if done is None else done.change
        change = replace(change, request=request.record(AddReceipt(outcomes), self.now))

        async def answer() -> list[AddResult]:
            return [await self._result(outcome, None if done is None else done) for outcome in outcomes]

        return Decision(change, answer)

    async def replay(self, earlier: RecordedRequest) -> list[AddResult]:
        return [await self._result(outcome, None) for outcome in statements_of(earlier)]

    async def _result(self, outcome: StatementOutcome, done: Judged | None) -> AddResult:
        if not outcome.memory_id:
            return outcome.result()
        if done is not None:
            memory = done.session.memory(outcome.memory_id)
        else:
            known = await memory_now(self.ports.store, self.caller.visibility, outcome.memory_id)
            if known is None:
                return outcome.result()
            memory = known
        shown = await present_one(memory, self.caller, self.ports, self.now)
        return outcome.result(shown, memory.contested_with)
