"""
From the messages of a thread to memories: what an extractor finds goes the way of every statement.

How far a thread is read is a row of its owner, written with the memories themselves in one transaction: after a crash,
or with two daemons, each message is learnt from once. What is learnt has the trust, the grant, the speaker and the
scope of its message, and counts against the quota of its grant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from memoryd.domain.pipeline import Decision, decide_and_commit
from memoryd.domain.ports import Ports, thread_lock
from memoryd.domain.writing.session import Recorded
from memoryd.learning.extractor import Exchange, Extractor, Learnt
from memoryd.learning.review import proposed
from memoryd.learning.writing import embedded, judged, offered, quota_locks
from memoryd.model.change import ChangeSet
from memoryd.model.conversation import Message
from memoryd.model.work import EXTRACTION_JOB, LLM_EXTRACTION_JOB, Work, WorkState

__all__ = ["AT_ONCE", "Extracted", "extract_thread", "learns", "notice"]

AT_ONCE = {EXTRACTION_JOB: 128, LLM_EXTRACTION_JOB: 32}
"""Messages of a thread that are read together: of four times as many, reading costs half as much (measured)."""
MOST_CHARACTERS = {EXTRACTION_JOB: 64_000, LLM_EXTRACTION_JOB: 16_000}
"""Of them, but for one that is longer; a question to a model has room for no more."""
WRITTEN_AT_ONCE = 64  # facts, but for those of one message; other writes of their owner wait meanwhile
NOTICED = 512  # messages that are looked at together for the threads they are of
_CURSORS = {EXTRACTION_JOB: "learning", LLM_EXTRACTION_JOB: "llm_learning"}
"""Of each kind of extraction, the cursor over all messages of the store."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """What became of some messages."""

    message_count: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """How many facts were inserted, reinforced, superseded something, or were rejected."""
    goes_on: bool = False
    """Whether the thread has more messages."""


async def notice(ports: Ports, *, wait_s: float, now: datetime, kind: str = EXTRACTION_JOB) -> int:
    """
    Note which threads have messages that were not read; return how many messages were looked at.

    A thread is read `wait_s` after the first of them, so that of two threads what was said first is learnt first. One
    that is parked stays so: its messages are kept for the retry.
    """
    known = await ports.store.cursor(_CURSORS[kind])
    page = await ports.store.messages_past(known or 0, limit=NOTICED)
    if not page:
        return 0
    first: dict[object, Message] = {}
    for _, message in page:
        first.setdefault((message.owner, message.thread_id), message)
    changes = []
    for message in first.values():
        held = await ports.store.work(message.owner, kind, message.thread_id)
        due = min(now, message.create_time) + timedelta(seconds=wait_s)
        if held is None:
            held = Work(
                kind=kind,
                owner=message.owner,
                thread_id=message.thread_id,
                seq=message.seq - 1,
                due_time=due,
            )
        elif held.state is WorkState.IDLE:
            held = replace(held, state=WorkState.WAITING, due_time=due)
        else:
            continue
        changes.append(ChangeSet(work=(held,)))
    moved = ChangeSet(cursors={_CURSORS[kind]: page[-1][0]}, cursors_before={_CURSORS[kind]: known})
    await ports.store.commit(*changes, moved)
    return len(page)


async def extract_thread(
    work: Work, extractor: Extractor, ports: Ports, *, now: datetime, dry_run: bool = False
) -> tuple[Extracted, list[Learnt]]:
    """
    Read the next messages of a thread, and write down what they say; return what became of them, and what was found.

    Raises whatever keeps the extractor or the store from it; then nothing was written.
    """
    thread = await ports.store.thread(work.owner, work.thread_id)
    if thread is None or work.seq >= thread.last_seq:
        done = replace(work, state=WorkState.IDLE, attempts=0, error="", due_time=now)
        if not dry_run and thread is not None:
            await ports.store.commit(ChangeSet(work=(done,)))
        return Extracted(), []
    count = AT_ONCE[work.kind]
    last = min(thread.last_seq, work.seq + count)
    messages = await ports.store.messages(
        work.owner, work.thread_id, limit=count + 1, before=last + 1, after=max(0, work.seq - 1)
    )
    known = sum(message.seq <= work.seq for message in messages)
    messages = _within(messages, known, MOST_CHARACTERS[work.kind])
    last = messages[-1].seq if len(messages) > known else last
    exchange = Exchange(messages, known)
    found = await extractor.extract(exchange) if learns(work, ports) else []
    least = ports.policy.of(work.owner.agent_id).extraction_threshold
    kept = sorted((one for one in found if one.confidence >= least), key=lambda one: one.message.seq)
    if dry_run:
        return Extracted(len(exchange.new), {}, last < thread.last_seq), kept
    outcomes: Counter[str] = Counter()
    parts = _parts(kept)
    held = work
    for n, part in enumerate(parts):
        is_last = n == len(parts) - 1
        seq = last if is_last else part[-1].message.seq
        state = WorkState.IDLE if is_last and last == thread.last_seq else WorkState.WAITING
        after = replace(held, seq=seq, state=state, attempts=0, error="", due_time=now)
        outcomes += await _write(held, after, part, ports, now)
        held = after
    return Extracted(len(exchange.new), dict(outcomes), last < thread.last_seq), kept


def _parts(found: Sequence[Learnt]) -> list[list[Learnt]]:
    """Return facts, in the order of their messages, in parts that are written together: of one grant, and not many."""
    parts: list[list[Learnt]] = [[]]
    for one in found:
        last = parts[-1][-1].message if parts[-1] else one.message
        is_full = len(parts[-1]) >= WRITTEN_AT_ONCE and last.seq != one.message.seq
        if is_full or last.grant_id != one.message.grant_id:
            parts.append([])
        parts[-1].append(one)
    return parts


def _within(messages: list[Message], known: int, most: int) -> list[Message]:
    """Return as many of some messages as are read together: one that is new, and more while they are short."""
    total = 0
    for n, message in enumerate(messages[known:]):
        total += len(message.content)
        if n and total > most:
            return messages[: known + n]
    return messages


def learns(work: Work, ports: Ports) -> bool:
    """Whether anything is learnt for an agent."""
    policy = ports.policy.of(work.owner.agent_id)
    return policy.enabled and policy.extraction_enabled


async def _write(work: Work, after: Work, part: Sequence[Learnt], ports: Ports, now: datetime) -> Counter[str]:
    """Judge what was found, and write it with how far the work has come, unless somebody else has done so."""
    offers = [offer for one in part if (offer := offered(one, now)) is not None]
    vectors = await embedded(offers, ports)

    async def decide() -> Decision[Counter[str]]:
        held = await ports.store.work(work.owner, work.kind, work.thread_id)
        if held is None or held.seq != work.seq:
            return Decision(None, _counted([]))  # another daemon was faster, or the thread is gone
        if not offers:
            return Decision(ChangeSet(work=(after,)), _counted([]))
        if ports.policy.of(work.owner.agent_id).extraction_review:
            waiting = await proposed(offers, ports, now)
            return Decision(ChangeSet(work=(after,), proposals=waiting), _proposals(len(waiting)))
        done = await judged(offers, vectors, work.owner, ports, now=now)
        return Decision(replace(done.change, work=(after,)), _counted(done.recorded))

    locks = [work.owner, thread_lock(work.owner, work.thread_id), *quota_locks(offers, ports)]
    return await decide_and_commit(locks, decide, ports, now=now, grant_id="")


def _proposals(count: int) -> Callable[[], Awaitable[Counter[str]]]:
    async def answer() -> Counter[str]:
        return Counter({"proposed": count} if count else {})

    return answer


def _counted(recorded: Sequence[Recorded]) -> Callable[[], Awaitable[Counter[str]]]:
    async def answer() -> Counter[str]:
        return Counter(outcome.value for _, outcome, _ in recorded if outcome is not None)

    return answer
