"""What each job does: the use cases of domain and learning, by the names of the schedule."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta

from memoryd.daemon.backups import Backups
from memoryd.daemon.config import Config
from memoryd.daemon.jobs import Job, Progress
from memoryd.daemon.learners import Learners
from memoryd.domain.forgetting.decay import forget_faded
from memoryd.domain.forgetting.verify import compact
from memoryd.domain.people.enrich import enrich
from memoryd.domain.ports import Ports
from memoryd.domain.writing.reembed import Reembedder
from memoryd.identity.garbage import run_gc
from memoryd.identity.issuer import GrantIssuer
from memoryd.learning.contradictions import CONTRADICTION_JOB
from memoryd.learning.imports import IMPORT_JOB
from memoryd.learning.judgement import judge_contested
from memoryd.learning.nightly import end_learnt_sessions
from memoryd.learning.reflection import DAYS, LEAST_NEW, reflect
from memoryd.model.work import LLM_EXTRACTION_JOB

__all__ = ["JobTable"]

LOOK_S = 0.5  # at how far re-embedding is
RUNS_A_NIGHT = 10  # of enrichment


class JobTable:
    """The jobs, over what they need."""

    def __init__(
        self,
        ports: Ports,
        config: Config,
        issuer: GrantIssuer,
        learners: Learners,
        reembedder: Reembedder,
        backups: Backups | None = None,
    ) -> None:
        """Do nothing yet."""
        self._backups = backups
        self._ports, self._config, self._issuer = ports, config, issuer
        self._learners, self._reembedder = learners, reembedder

    def jobs(self) -> Mapping[str, Job]:
        """Return every job by its name, in the order in which they run where several are due."""
        jobs = (
            Job("enrichment", "look again for the people and things that facts name", self.enrichment),
            Job("extraction", "learn from the messages of threads that wait", self.extraction),
            Job(
                "consolidation",
                "learn from all that waits, and end the sessions that were learnt from",
                self.consolidation,
            ),
            Job(IMPORT_JOB, "judge what was imported, in the order of event times", self.imports),
            *self._of_contradictions(),
            *self._of_the_model(),
            Job("decay", "forget what has faded", self.decay),
            Job("gc", "erase what is past its grace", self.gc),
            Job("reflection", "sum up the last seven days of each user and chat", self.reflection),
            Job(
                "compaction",
                "rewrite the database without the bytes of what was purged",
                self.compaction,
                has_dry_run=False,
            ),
            Job("reembedding", "give every memory a vector of the model in use", self.reembedding),
            *self._of_backups(),
        )
        return {job.name: job for job in jobs}

    def _of_backups(self) -> Iterator[Job]:
        """Yield the job of backups, if there are any."""
        if self._backups is not None:
            yield Job("backup", "begin a new chain of backups, prove it, and remove old ones", self._backups.run)

    def _of_contradictions(self) -> Iterator[Job]:
        """Yield the job of the model that reads two statements together, if there is one."""
        if self._ports.readers.change_reader is not None:
            meaning = "read what is new next to what is near it, and contest what it changes"
            yield Job(CONTRADICTION_JOB, meaning, self.contradictions)

    async def imports(self, progress: Progress) -> Mapping[str, int]:
        """Judge what imports have brought."""
        return await self._learners.imports.everything(progress)

    async def contradictions(self, progress: Progress) -> Mapping[str, int]:
        """Look for changes that the rules do not read."""
        return await self._learners.contradictions.everything(progress)

    def _of_the_model(self) -> Iterator[Job]:
        """Yield the jobs of the language model, as far as it is used."""
        if LLM_EXTRACTION_JOB in self._learners.kinds:
            yield Job(LLM_EXTRACTION_JOB, "have the language model read the threads that wait", self.llm_extraction)
        if self._learners.judge is not None:
            yield Job("judgement", "have the language model decide what is contested", self.judgement)

    async def llm_extraction(self, progress: Progress) -> Mapping[str, int]:
        """Have the language model read the threads that wait."""
        return await self._learners.llm.everything(progress)

    async def judgement(self, progress: Progress) -> Mapping[str, int]:
        """Have the language model decide what is contested."""
        judge = self._learners.judge
        assert judge is not None  # noqa: S101  the job is listed where there is one
        until = await self._learners.contradictions.read_until()
        return await judge_contested(self._ports, judge, now=progress.now, until=until, dry_run=progress.dry_run)

    async def enrichment(self, progress: Progress) -> Mapping[str, int]:
        """Look again for names in facts, RUNS_A_NIGHT times as many as one call does."""
        linked = denied = remaining = 0
        for _ in range(1 if progress.dry_run else RUNS_A_NIGHT):
            done = await enrich(self._ports, now=progress.now, dry_run=progress.dry_run)
            progress.done_count += done.examined_count
            linked, denied = linked + done.linked_count, denied + done.denied_count
            remaining = done.remaining_count
            if done.skipped or not remaining:
                break
        progress.total_count = progress.done_count
        return {"examined": progress.done_count, "linked": linked, "denied": denied, "remaining": remaining}

    async def extraction(self, progress: Progress) -> Mapping[str, int]:
        """Learn from the threads that wait."""
        return await self._learners.rules.everything(progress)

    async def consolidation(self, progress: Progress) -> Mapping[str, int]:
        """Learn from all that waits, and end sessions that were learnt from."""
        read = await self._learners.rules.everything(progress)
        sessions = await end_learnt_sessions(
            self._ports, now=progress.now, dry_run=progress.dry_run, kinds=self._learners.kinds
        )
        return {**read, **sessions}

    async def decay(self, progress: Progress) -> Mapping[str, int]:
        """Forget what has faded."""

        def tell(examined: int) -> None:
            progress.done_count = examined
            progress.total_count = max(progress.total_count, examined)

        progress.total_count = (await self._ports.store.info()).memory_count  # with those that are hidden
        done = await forget_faded(self._ports, now=progress.now, dry_run=progress.dry_run, tell=tell)
        progress.total_count = progress.done_count
        return {"examined": done.examined_count, "decayed": done.decayed_count, "held": int(bool(done.held))}

    async def gc(self, progress: Progress) -> Mapping[str, int]:
        """Erase what is past its grace."""

        def tell(erased: int, whole: int) -> None:
            progress.done_count, progress.total_count = erased, whole

        done = await run_gc(
            self._ports,
            self._issuer,
            now=progress.now,
            ended_grace_days=self._config.sandbox.ended_grace_days,
            dry_run=progress.dry_run,
            tell=tell,
        )
        return {
            "expired": done.expired_count,
            "superseded": done.superseded_count,
            "deleted": done.deleted_count,
            "requests": done.request_count,
            "grants": done.grant_count,
            "notes": done.note_count,
            "held": int(bool(done.held)),
        }

    async def reflection(self, progress: Progress) -> Mapping[str, int]:
        """Write the weekly digests."""
        if not self._learners.writes:
            return {"owners": 0, "reflections": 0}
        owners = await self._ports.store.owners.active_since(progress.now - timedelta(days=DAYS), least=LEAST_NEW)
        progress.total_count = len(owners)
        counts: Counter[str] = Counter(owners=0, reflections=0)
        for owner in owners:
            done = await reflect(
                self._ports, [owner], now=progress.now, dry_run=progress.dry_run, model=self._learners.writer
            )
            counts.update(done)
            progress.done_count += 1
            await asyncio.sleep(0)
        return counts

    async def compaction(self, progress: Progress) -> Mapping[str, int]:
        """Rewrite the files."""
        done = await compact(self._ports, now=progress.now)
        counts = {"before_bytes": done.before_bytes, "after_bytes": done.after_bytes}
        return {**counts, "purged_meanwhile": int(done.purged_meanwhile)}

    async def reembedding(self, progress: Progress) -> Mapping[str, int]:
        """Ask for the vectors of the model in use, and wait for them."""
        known = await self._reembedder.progress()
        if not progress.dry_run and known.pending_count:
            self._reembedder.start()
            await asyncio.sleep(LOOK_S)
            while (known := await self._reembedder.progress()).running:
                progress.done_count = known.embedded_count
                progress.total_count = known.embedded_count + known.pending_count
                await asyncio.sleep(LOOK_S)
        return {"embedded": known.embedded_count, "pending": known.pending_count, "failed": known.failed_count}
