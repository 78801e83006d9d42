"""
From the messages of a thread to memories: what an extractor finds goes the way of every statement.

How far a thread is read is a row of its owner, written with the memories themselves in one transaction: after a crash,
or with two daemons, each message is learnt from once. What is learnt has the trust, the grant, the speaker and the
scope of its message, and counts against the quota of its grant.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from memoryd.domain.pipeline import Decision, answering, decide_and_commit, no_answer
from memoryd.domain.ports import Ports
from memoryd.domain.shared import thread_lock
from memoryd.errors import Contended
from memoryd.learning.extractor import Exchange, Extractor, Learnt
from memoryd.learning.review import proposed
from memoryd.learning.rules import PLAY_MESSAGES
from memoryd.learning.writing import daemon_call, embedded, judged, offered, quota_locks
from memoryd.model.call_context import in_call
from memoryd.model.change import ChangeSet
from memoryd.model.conversation import FirstSaid, Message, Thread
from memoryd.model.work import EXTRACTION_JOB, LLM_EXTRACTION_JOB, CounterName, Work, WorkState
from memoryd.store.base import Store
from memoryd.store.conversations import MessageSelector

__all__ = [
    "NOTICED",
    "Extracted",
    "at_once",
    "extract_thread",
    "extract_threads",
    "notice",
    "unnoticed",
    "write_work",
]

AT_ONCE = {EXTRACTION_JOB: 128, LLM_EXTRACTION_JOB: 32}
"""Messages of a thread that are read together: of four times as many, reading costs half as much (measured)."""
MOST_CHARACTERS = {EXTRACTION_JOB: 64_000, LLM_EXTRACTION_JOB: 16_000}
"""Of them, but for one that is longer; a question to a model has room for no more."""
ALONE = 2  # failures in a row from which messages are read one by one
WRITTEN_AT_ONCE = 64  # facts, but for those of one message; other writes of their owner wait meanwhile
NOTICED = 2048  # messages that are looked at together for the threads they are of
_DONE = {EXTRACTION_JOB: CounterName("learning"), LLM_EXTRACTION_JOB: CounterName("llm_learning")}
"""Of each kind of extraction, what counts up to which message of the store it has noted their threads."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """What became of some messages."""

    message_count: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """How many facts were inserted, reinforced, superseded something, or were rejected."""
    goes_on: bool = False
    """Whether the thread has more messages."""
    seq: int = 0
    """The last of them."""


class NothingBehind(Exception):
    """Of what comes after a message nothing is learnt, so it may not be the message that cannot be read."""


async def notice(ports: Ports, *, wait_s: float, now: datetime, kind: str = EXTRACTION_JOB) -> int:
    """
    Note which threads have messages that were not read; return how many messages were looked at.

    A thread is read `wait_s` after the first of them, so that of two threads what was said first is learnt first. One
    that is parked is tried once more.
    """
    known = (await ports.store.work.counters()).get(_DONE[kind])
    page = await ports.store.conversations.first_said(known or 0, limit=NOTICED)
    if not page:
        return 0
    looked = sum(first_said.count for first_said in page)
    threads = {(first_said.owner, first_said.thread_id) for first_said in page}
    async with ports.shared.locks.hold({thread_lock(*thread) for thread in threads}):
        # what was erased meanwhile is no longer there, and must not be noted as if it were
        first_saids = await ports.store.conversations.first_said(known or 0, limit=NOTICED)
        first = [first_said for first_said in first_saids if (first_said.owner, first_said.thread_id) in threads]
        changes = [change async for change in _noted(first, ports.store, wait_s, now, kind)]
        try:
            await ports.store.commits.write(*changes, _moved(page, known, kind))
        except Contended:  # another daemon has noted them
            return looked
    return looked


def _moved(page: Sequence[FirstSaid], known: int | None, kind: str) -> ChangeSet:
    """Return the change that counts a page of messages."""
    last = max(first_said.last_number for first_said in page)
    return ChangeSet(counters={_DONE[kind]: last}, counters_before={_DONE[kind]: known})


async def _noted(
    first: Iterable[FirstSaid], store: Store, wait_s: float, now: datetime, kind: str
) -> AsyncIterator[ChangeSet]:
    """Yield what is noted of threads with a new message each."""
    for first_said in first:
        work = await store.work.get(first_said.owner, kind, first_said.thread_id)
        if work is not None and work.state is WorkState.WAITING:
            continue
        due = min(now, first_said.create_time) + timedelta(seconds=wait_s)
        if work is None:
            work = Work(
                kind=kind, owner=first_said.owner, thread_id=first_said.thread_id, seq=first_said.seq - 1, due_time=due
            )
        yield ChangeSet(work=(replace(work, state=WorkState.WAITING, due_time=due),))


async def unnoticed(store: Store, *, now: datetime, kind: str) -> list[Work]:
    """Return the work that `notice` would note, without noting it."""
    after = (await store.work.counters()).get(_DONE[kind], 0)
    found: dict[object, Work] = {}
    while page := await store.conversations.first_said(after, limit=NOTICED):
        after = max(first_said.last_number for first_said in page)
        for message in page:
            key = message.owner, message.thread_id
            if key not in found:
                work = await store.work.get(message.owner, kind, message.thread_id)
                seq = message.seq - 1 if work is None else work.seq
                found[key] = Work(kind=kind, owner=message.owner, thread_id=message.thread_id, seq=seq, due_time=now)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Step:
    """What is written at once of a thread: how far its work is now, and then, and what was found in between."""

    work: Work
    after: Work
    found: Sequence[Learnt]
    thread: Thread

    @property
    def grant_id(self) -> str:
        """The grant through which it was said; empty where nothing was found."""
        return self.found[0].message.grant_id if self.found else ""


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of a thread."""

    said: Extracted
    found: list[Learnt]
    steps: Sequence[_Step] = ()


async def extract_thread(
    work: Work, extractor: Extractor, ports: Ports, *, now: datetime, dry_run: bool = False, skips: bool = False
) -> tuple[Extracted, list[Learnt]]:
    """
    Read the next messages of a thread, and write down what they say; return what became of them, and what was found.

    After a failure fewer are read together, then one by one, so that a message that cannot be read keeps only itself
    from being learnt from. With `skips` the first one is left out, if something is learnt from those behind it
    (NothingBehind). Raises whatever keeps the extractor or the store from it; then nothing more was written.
    """
    read = await _read(work, extractor, ports, now=now, dry_run=dry_run, skips=skips)
    outcomes: Counter[str] = Counter()
    for step in () if dry_run else read.steps:
        outcomes += await _write([step], ports, now)
    return replace(read.said, outcomes=dict(outcomes)), read.found


async def extract_threads(
    works: Sequence[Work], extractor: Extractor, ports: Ports, *, now: datetime
) -> tuple[list[Extracted], Counter[str]]:
    """
    Read the next messages of some threads of one owner, and write what they say in as few transactions as it takes.

    A commit costs more than the reading of a thread (measured). Returns what was read of each, in their order, and what
    became of the facts. Raises what keeps the extractor or the store from any of them; then nothing more was written.
    """
    reads = [await _read(work, extractor, ports, now=now) for work in works]
    outcomes: Counter[str] = Counter()
    together: list[_Step] = []
    for step in (step for read in reads for step in read.steps):
        most = WRITTEN_AT_ONCE - sum(len(step.found) for step in together)
        same = all(other.work.thread_id != step.work.thread_id for other in together)
        if together and not (same and len(step.found) <= most and step.grant_id == together[0].grant_id):
            outcomes += await _write(together, ports, now)
            together = []
        together.append(step)
    if together:
        outcomes += await _write(together, ports, now)
    return [read.said for read in reads], outcomes


async def _read(
    work: Work, extractor: Extractor, ports: Ports, *, now: datetime, dry_run: bool = False, skips: bool = False
) -> _Read:
    """Read the next messages of a thread; of one with nothing new, or that is gone, the work is done at once."""
    thread = await ports.store.conversations.thread(work.owner, work.thread_id)
    if thread is None or work.seq >= thread.last_seq:
        done = replace(work, state=WorkState.IDLE, attempts=0, error="", due_time=now)
        if not dry_run:
            await write_work(work, done, ports, now=now)
        return _Read(Extracted(), [])
    count = AT_ONCE[work.kind] // 4 if skips else at_once(work)
    last = min(thread.last_seq, work.seq + count + skips)
    wanted = MessageSelector(
        owner=work.owner,
        thread_id=work.thread_id,
        limit=count + PLAY_MESSAGES + skips,
        is_from_end=True,
        before=last + 1,
        after=max(0, work.seq - PLAY_MESSAGES),
    )
    messages = await ports.store.conversations.messages(wanted)
    known = sum(message.seq <= work.seq for message in messages)
    messages = _within(messages, known, MOST_CHARACTERS[work.kind] if count > 1 else 0)
    last = messages[-1].seq if len(messages) > known else last
    exchange = Exchange(messages, known + skips)
    facts = await extractor.extract(exchange) if _learns(work, ports) else []
    if skips and not facts:
        raise NothingBehind
    least = ports.policy.of(work.owner.agent_id).extraction_threshold
    sure = sorted((fact for fact in facts if fact.confidence >= least), key=lambda fact: fact.message.seq)
    goes_on = last < thread.last_seq
    attempts = work.attempts if goes_on and not skips else 0  # one by one, up to the one that fails
    return _Read(
        Extracted(len(exchange.new), goes_on=goes_on, seq=last),
        sure,
        [*_steps(replace(work, attempts=attempts, error="", due_time=now), work, _parts(sure), last, thread)],
    )


def _steps(begun: Work, known: Work, parts: Sequence[Sequence[Learnt]], last: int, thread: Thread) -> Iterator[_Step]:
    """Yield the steps in which the parts of a page are written; the last one goes to its end."""
    for n, part in enumerate(parts):
        is_last = n == len(parts) - 1
        is_done = is_last and last == thread.last_seq
        after = replace(
            begun,
            seq=last if is_last else part[-1].message.seq,
            state=WorkState.IDLE if is_done else WorkState.WAITING,
        )
        yield _Step(known, after, part, thread)
        known = after


def at_once(work: Work) -> int:
    """Return how many messages are read together: after a failure a quarter, after another one alone."""
    return AT_ONCE[work.kind] // 4**work.attempts if work.attempts < ALONE else 1


async def write_work(known: Work, new: Work, ports: Ports, *, now: datetime) -> None:
    """Write down where the work on a thread stands, unless someone went on with it meanwhile, or it is gone."""

    async def decide() -> Decision[None]:
        work = await ports.store.work.get(known.owner, known.kind, known.thread_id)
        same = work is not None and work.seq == known.seq
        return Decision(ChangeSet(work=(new,)) if same else None, no_answer)

    locks = [known.owner, thread_lock(known.owner, known.thread_id)]
    await decide_and_commit(locks, decide, ports, now=now, grant_id="")


def _parts(facts: Sequence[Learnt]) -> list[list[Learnt]]:
    """Return facts, in the order of their messages, in parts that are written together: of one grant, and not many."""
    parts: list[list[Learnt]] = [[]]
    for fact in facts:
        last = parts[-1][-1].message if parts[-1] else fact.message
        is_full = len(parts[-1]) >= WRITTEN_AT_ONCE and last.seq != fact.message.seq
        if is_full or last.grant_id != fact.message.grant_id:
            parts.append([])
        parts[-1].append(fact)
    return parts


def _within(messages: list[Message], known: int, most: int) -> list[Message]:
    """Return as many of some messages as are read together: one that is new, and more while they are short."""
    total = 0
    for n, message in enumerate(messages[known:]):
        total += len(message.content)
        if n and most and total > most:
            return messages[: known + n]
    return messages


def _learns(work: Work, ports: Ports) -> bool:
    """Whether anything is learnt for an agent."""
    policy = ports.policy.of(work.owner.agent_id)
    return policy.enabled and policy.extraction_enabled


async def _write(steps: Sequence[_Step], ports: Ports, now: datetime) -> Counter[str]:
    """
    Judge what was found in threads of one owner, and write it with how far their work has come.

    A thread with which someone else has gone on meanwhile is left out.
    """
    owner = steps[0].work.owner
    offers = [(n, offer) for n, step in enumerate(steps) for fact in step.found if (offer := offered(fact, now))]
    vectors = await embedded([offer for _, offer in offers], ports.embedder)
    places = {
        message.id: (message.thread_id, message.seq)
        for step in steps
        for learnt in step.found
        for message in (learnt.message, *learnt.also)
    }

    async def decide() -> Decision[Counter[str]]:
        news = {n: new for n, step in enumerate(steps) if (new := await _still(step, ports.store)) is not None}
        if not news:
            return Decision(None, answering(Counter()))
        work = tuple(news.values())
        heads = await ports.store.conversations.heads(MessageSelector(owner=owner, places=set(places.values())))
        stored = {(head.thread_id, head.seq) for head in heads}
        left = [
            (offer, vector)
            for (n, offer), vector in zip(offers, vectors, strict=True)
            if n in news and all(places[message_id] in stored for message_id in offer[0].source.message_ids)
        ]  # what was erased meanwhile is not learnt
        if not left:
            return Decision(ChangeSet(work=work), answering(Counter()))
        if ports.policy.of(owner.agent_id).extraction_review:
            waiting = await proposed([offer for offer, _ in left], ports, now)
            return Decision(ChangeSet(work=work, proposals=waiting), answering(Counter(proposed=len(waiting))))
        row, known = zip(*left, strict=True)
        done = await judged(row, known, owner, ports, now=now)
        return Decision(
            replace(done.change, work=work), answering(Counter(outcome.outcome.value for outcome in done.outcomes))
        )

    threads = [thread_lock(owner, step.work.thread_id) for step in steps]
    locks = [owner, *threads, *quota_locks([offer for _, offer in offers], ports.guards)]
    with in_call(daemon_call(owner, steps[0].work.kind, ports, now)) if offers else contextlib.nullcontext():
        return await decide_and_commit(locks, decide, ports, now=now, grant_id="")


async def _still(step: _Step, store: Store) -> Work | None:
    """Return how far a thread's work is then; None if another daemon was faster, or the thread is gone."""
    work = await store.work.get(step.work.owner, step.work.kind, step.work.thread_id)
    there = await store.conversations.thread(step.work.owner, step.work.thread_id)
    if work is None or work.seq != step.work.seq or there is None or there.create_time != step.thread.create_time:
        return None
    goes_on = step.after.state is WorkState.IDLE and there.last_seq > step.after.seq  # what came meanwhile is read next
    return replace(step.after, state=WorkState.WAITING) if goes_on else step.after
