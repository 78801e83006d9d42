"""
Changes that the rules do not read: a small model reads what is new next to what is near it, soon after, by itself.

"We handed back the keys" ends "I rent a flat in Leeds", and no rule knows. What the model is sure of is contested, and
never retired: of two statements it knows no more than their words.

What a commit adds waits in memory and is read in seconds; users and chats take turns. Once nothing waits, the time is
marked; at its start a daemon lets wait what was stored since some minutes before that, as an earlier one may
have ended with something unread. To read a statement twice changes nothing: it is read next to the same ones, and what
someone has decided in between stands.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.background import BackgroundWorker, class_of
from memoryd.domain.pipeline import Decision, answering, decide_and_commit
from memoryd.domain.ports import Ports
from memoryd.domain.shares import first_places
from memoryd.domain.writing.contest import contested_both
from memoryd.domain.writing.judge import Neighbour
from memoryd.domain.writing.known import KnownStatements
from memoryd.domain.writing.pending import Pending
from memoryd.embedding.base import ModelRefused, PairReader
from memoryd.embedding.readers.thresholds import CONTESTED, LEAST_NEAR
from memoryd.errors import MemorydError
from memoryd.index.scope import ScopeIndex
from memoryd.learning.follow import Progress
from memoryd.learning.writing import daemon_call
from memoryd.model.call_context import in_call
from memoryd.model.change import ChangeSet
from memoryd.model.commits import Applied
from memoryd.model.memory import KEPT, NO_STATEMENTS, Judgement, Memory, State
from memoryd.model.scope import Owner
from memoryd.model.work import Run, RunState
from memoryd.store.memories import NOT_RETIRED, Order, place_in_time

__all__ = ["CONTRADICTION_JOB", "CONTRADICTION_RULE", "Contradictions", "suspects"]

CONTRADICTION_JOB = "contradictions"
CONTRADICTION_RULE = "model"
READ = "contradictions_read"  # the mark of when nothing waited to be read
NEAREST = 100  # statements of any speaker among which those are that a new one is read next to
MOST_BESIDE = 4  # statements that a new one is read next to, the nearest; of lower trust half as many
MOST_CONTESTED = 2  # by one new statement; of lower trust half as many
LOOK_S = 2.0
AGAIN = timedelta(minutes=5)  # a call may commit so long after the time that it gives
MOST_WAITING = 10_000  # statements of one user or chat; what it stores faster than that is not read
A_PAGE = 1000  # statements of an earlier daemon
A_TURN = 25  # statements of one user or chat
PLAIN = ("I have a cat.", "I like to read.")  # what any model can read
END_OF_TIME = datetime.max.replace(tzinfo=UTC)  # a clock that was ahead has stored what is still to come


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, ModelRefused) else class_of(error)


class Contradictions:
    """Reads what is new next to what is near it, and marks what the model is sure of."""

    def __init__(
        self,
        ports: Ports,
        model: PairReader | None,
        clock: Callable[[], datetime],
        tell: Callable[[str], None],
        *,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """
        Follow the commits of the store from here on; without a model nothing is ever read.

        While `is_busy`, nothing is read but by a job: what is learnt from many messages at once is read after them.
        """
        self._ports, self._model, self._clock, self._tell, self._is_busy = ports, model, clock, tell, is_busy
        self._turn = asyncio.Lock()  # the daemon's own reading and a job may be at it at once
        self._waiting: dict[Owner, dict[str, None]] = {}
        """What was stored and not read yet: ids by owner, who take turns."""
        self._is_behind = True
        """Whether an earlier daemon may have left something."""
        self.fault = ""
        """Why nothing can be read until the next start; empty: it can."""
        if model is not None:
            ports.store.commits.memories.follow(self._follow)

    def _follow(self, applied: Applied) -> None:
        if not self.fault:
            self.take(entry.memory for entry in applied.change.inserts)

    def take(self, memories: Iterable[Memory]) -> None:
        """Let memories wait to be read; imports come once they are judged."""
        for memory in memories if self._model is not None else ():
            self._add(memory)

    def _add(self, memory: Memory) -> None:
        if memory.kind not in NO_STATEMENTS and memory.judged and memory.supersede_time is None:
            waiting = self._waiting.setdefault(memory.owner, {})
            if len(waiting) < MOST_WAITING:
                waiting[memory.id] = None

    def _count(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def serve(self) -> None:
        """Read what is new until it is cancelled."""
        if self._model is not None and not self.fault:
            await BackgroundWorker(
                step=self._look, pause_s=LOOK_S, tell=self._tell, describe=_why, ends_with=(ModelRefused,)
            ).serve()

    async def _look(self) -> None:
        try:
            await self.step()
        except ModelRefused as error:
            self.fault = str(error)
            self._waiting.clear()  # the next start finds it by the mark
            raise

    async def read_until(self) -> datetime | None:
        """Return until when all that was stored has been read; None where nothing reads."""
        return None if self._model is None or self.fault else (await self._ports.store.work.marks()).get(READ)

    async def step(self) -> Counter[str]:
        """Read what is new, as one run of the job; return what came of it."""
        if not self._is_behind and not self._waiting:
            return Counter()
        began = self._clock()
        counts = await self._read_all(Counter())
        run = Run(
            id=self._ports.new_id(),
            job=CONTRADICTION_JOB,
            state=RunState.DONE,
            start_time=began,
            end_time=self._clock(),
            trigger="memories",
            done_count=counts["statements"],
            total_count=counts["statements"],
            counts=dict(counts),
        )
        await self._note((run,) if counts["pairs"] else ())
        return counts

    async def everything(self, progress: Progress) -> dict[str, int]:
        """Read what is new; with dry_run only count it."""
        if self._model is None:
            return {}
        if progress.dry_run:
            await self._find_left()
            return {"statements": self._count()}
        counts = await self._read_all(progress.counts, progress)
        await self._note()
        return dict(counts)

    async def _note(self, runs: tuple[Run, ...] = ()) -> None:
        """Note that nothing waits now, unless something does."""
        marks = {} if self._waiting or self._is_behind else {READ: self._clock()}
        if marks or runs:
            await self._ports.store.commits.write(ChangeSet(marks=marks, runs=runs))

    async def _find_left(self) -> None:
        """Let wait what an earlier daemon may have left; what was stored before there was a model is not read."""
        noted = (await self._ports.store.work.marks()).get(READ) if self._is_behind else None
        if noted is not None:
            since, after = min(noted, self._clock()) - AGAIN, ""
            left = replace(NOT_RETIRED, is_statement=True, created_after=since, created_until=END_OF_TIME)
            while page := await self._ports.store.memories.scan(left, limit=A_PAGE, after=after, order=Order.OLDEST):
                for memory in page:
                    self._add(memory)
                after = place_in_time(page[-1].create_time, page[-1].id)
        self._is_behind = False

    async def _read_all(self, counts: Counter[str], progress: Progress | None = None) -> Counter[str]:
        async with self._turn:
            await self._find_left()
            while self._waiting and not (progress is None and self._is_busy()):
                owner, waiting = next(iter(self._waiting.items()))
                await self._read_of(owner, list(waiting)[:A_TURN], counts)
                if owner in self._waiting:  # its turn is over
                    self._waiting[owner] = self._waiting.pop(owner)
                if progress is not None:
                    progress.done_count = counts["statements"]
                    progress.total_count = progress.done_count + self._count()
        return counts

    async def _read_of(self, owner: Owner, ids: Collection[str], counts: Counter[str]) -> None:
        """Read some statements of an owner that are live, which then wait no more."""
        now = self._clock()
        entries = await self._ports.store.memories.entries(owner, ids)
        live = [entry.memory for entry in entries if entry.memory.state_at(now) is State.LIVE]
        if live:
            counts += await self._read_or_pass(live)
        waiting = self._waiting[owner]
        for one in ids:
            waiting.pop(one, None)
        if not waiting:
            del self._waiting[owner]

    async def _read_or_pass(self, statements: Sequence[Memory]) -> Counter[str]:
        """Read statements of one owner; what cannot be read keeps no other from it."""
        assert self._model is not None  # noqa: S101  the callers ask
        try:
            return await self._read(statements, self._model)
        except (MemorydError, ModelRefused):  # the store, or the model, and not the statements
            raise
        except Exception as error:  # noqa: BLE001  whatever a text brings about
            self._tell(class_of(error))
        if len(statements) == 1:
            await self._model.read([PLAIN])  # else it is the model
            return Counter(statements=1, failed=1)
        counts: Counter[str] = Counter()
        for memory in statements:
            counts += await self._read_or_pass([memory])
        return counts

    async def _read(self, statements: Sequence[Memory], model: PairReader) -> Counter[str]:
        """Read statements of one owner, each next to what is near it, and contest what the model is sure of."""
        counts = Counter({"statements": len(statements)})
        beside = await suspects(statements, self._ports, now=self._clock())
        pairs = [(older, newer) for newer, others in beside for older in others]
        counts["pairs"] = len(pairs)
        scores = await model.read([(older.content, newer.content) for older, newer in pairs])
        sure: dict[str, list[tuple[float, Memory]]] = {}
        for (older, newer), score in zip(pairs, scores, strict=True):
            if score >= CONTESTED:
                sure.setdefault(newer.id, []).append((score, older))
        for newer, _ in beside:
            surest = sorted(sure.get(newer.id, []), key=lambda pair: -pair[0])
            chosen = _with_equals(newer, [older for _, older in surest], MOST_CONTESTED)
            if chosen:
                counts["contested"] += await self._contest(newer, chosen)
        return counts

    async def _contest(self, newer: Memory, others: Sequence[Memory]) -> int:
        """Mark statements as contested by a newer one, as they are now; return how many are."""
        ports, now = self._ports, self._clock()

        async def decide() -> Decision[int]:
            entries = {entry.memory.id: entry for entry in await ports.entries_of([newer, *others])}
            live = {one: entry.memory for one, entry in entries.items() if entry.memory.state_at(now) is State.LIVE}
            known = live.pop(newer.id, None)
            if known is None:
                return Decision(None, answering(0))
            why = Judgement(CONTRADICTION_RULE, "a model reads the newer one as a change of it", newer.id)
            marked, rivals = contested_both(
                known, [(memory, why) for memory in live.values() if _is_open(known, memory)]
            )
            updates = tuple(replace(entries[memory.id], memory=memory) for memory in (marked, *rivals))
            return Decision(ChangeSet(updates=updates) if rivals else None, answering(len(rivals)))

        with in_call(daemon_call(newer.owner, CONTRADICTION_JOB, ports, now)):
            return await decide_and_commit([newer.owner], decide, ports, now=now, grant_id="")


def _is_open(newer: Memory, older: Memory) -> bool:
    """Whether no one has decided between two statements, or said the older one again since."""
    if older.id in newer.contested_with or (older.reinforce_time and older.reinforce_time >= newer.create_time):
        return False
    return not any(
        memory.judgement is not None and (memory.judgement.rule, memory.judgement.evidence) == (KEPT, other.id)
        for memory, other in ((newer, older), (older, newer))
    )


async def suspects(statements: Sequence[Memory], ports: Ports, *, now: datetime) -> list[tuple[Memory, list[Memory]]]:
    """Return statements of one owner, each with the older ones that it may be a change of, the nearest first."""
    owner = statements[0].owner
    index = await ports.indexes.get(owner)
    known, found = KnownStatements(ports, {owner: index}, Pending(now), now), []
    reader = known.reader(owner)
    for newer in statements:
        vector = await _vector_of(newer, index, ports)
        if vector is None:
            continue
        beside = await known.neighbours(newer, vector, limit=NEAREST, floor=LEAST_NEAR, until=newer.create_time)
        content = reader.read(newer.content).words.content
        others = [
            neighbour.memory
            for neighbour in sorted(beside, key=lambda neighbour: -neighbour.similarity)
            if _may_be_of(newer, neighbour) and reader.read(neighbour.memory.content).words.content != content
        ]  # in one frame, what fills it tells them apart: the rules have judged that
        found.append((newer, _with_equals(newer, others, MOST_BESIDE)))
        await asyncio.sleep(0)
    return found


async def _vector_of(memory: Memory, index: ScopeIndex | None, ports: Ports) -> NDArray[np.float32] | None:
    """Return the vector of a statement by the model in use; None where it has none."""
    row = None if index is None else index.row_of(memory.id)
    if index is not None and row is not None and index.vectors is not None:
        return index.vectors.row(row) if index.vectors.has(row) else None
    entry = await ports.entry_of(memory)
    return None if entry is None or entry.fingerprint != ports.embedder.fingerprint else entry.vector


def _with_equals(newer: Memory, others: Sequence[Memory], most: int) -> list[Memory]:
    """Return the first of some statements, so that those of lower trust take half of the places at the most."""
    return first_places(others, most, lambda memory: newer.trust.outranks(memory.trust), keeps_free=True)


def _may_be_of(newer: Memory, beside: Neighbour) -> bool:
    """Whether a statement may be a change of one that is next to it."""
    older = beside.memory
    return (
        (older.create_time, older.id) < (newer.create_time, newer.id)
        and beside.similarity >= LEAST_NEAR
        and older.is_told_as(newer)
        and not (older.key and newer.key)
        and "?" not in newer.content  # what asks states nothing
        and _is_of_same(newer, beside)
    )


def _is_of_same(newer: Memory, beside: Neighbour) -> bool:
    """Whether both are about someone in common, or no one tells them apart; a successor's name does not."""
    if beside.same_subject:
        return True
    about = [mention.text for mention in beside.memory.mentions if mention.about]
    if about and any(re.search(rf"\b{re.escape(name)}\b", newer.content, re.IGNORECASE) for name in about):
        return True
    return beside.same_people and not (about and any(mention.about for mention in newer.mentions))
