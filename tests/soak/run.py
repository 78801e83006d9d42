"""The course of a soak: start, load, restarts, restores, steps of the clock, and the account at the end."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
from memory_client import MemoryClient, MemorydError, RunState

from tests.soak.clock import FastClock
from tests.soak.load import Account, Figures, Worker
from tests.soak.watch import HOUR_S, Sample, fresh_size, sample
from tests.support import PATIENCE_S, Daemon

__all__ = ["Plan", "Soak"]

CONFIG = """[backup]
directory = "{backup}"
keep_days = 2
[learning]
wait_s = 60
[schedule]
timezone = "UTC"
compaction = "0 5 * * *"
reflection = "0 6 * * *"
"""
SHIP_S = 60.0
"""Simulated seconds after which what was acknowledged has to be in the backup; `ship_s` is 5."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long (real seconds), how fast, how many, and what happens when (simulated seconds)."""

    seconds: float
    factor: float
    workers: int
    seed: int
    pace_s: float = 0.1
    restart_s: float = 1.5 * HOUR_S
    restarts: int = 8
    """Then the daemon goes on to the end, so that what grows in a process is seen."""
    restore_s: float = 6 * HOUR_S
    restores: int = 4
    steps: Mapping[int, float] = field(
        default_factory=dict
    )  # by how much the clock is set while it is down the nth time
    sample_s: float = 5.0  # real
    config: str = ""  # more of the configuration


@dataclass(slots=True)
class Found:
    """What a soak has seen."""

    samples: list[Sample] = field(default_factory=list)
    restarts: list[tuple[str, int, float, float]] = field(default_factory=list)  # signal, code, s to stop, s to start
    restores: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    jobs: dict[str, int] = field(default_factory=dict)
    checked: int = 0
    file_ratio: float = 0.0


class Soak:
    """One daemon in a folder of its own, and all that is done to it."""

    def __init__(self, folder: Path, plan: Plan, *, say: Callable[[str], None] = print) -> None:
        self.plan, self.found, self.figures = plan, Found(), Figures()
        self._folder, self._say = folder, say
        self._backup = folder / "backup"
        self._backup.mkdir()
        place = folder / "data"
        place.mkdir()
        self._clock = FastClock(plan.factor)
        self._config = CONFIG.format(backup=self._backup) + plan.config
        self._daemon = Daemon(place, config=self._config)
        self._is_down, self._ended = threading.Event(), threading.Event()
        self._runs, self._run_began_s = 0, 0.0
        self._rng = random.Random(plan.seed)
        self._runs_seen: set[str] = set()

    def run(self) -> Found:
        """Run it to its end; what went wrong is in `faults`."""
        self._start()
        workers = [
            Worker(
                number, self._connect, self.figures, ended=self._ended, is_down=self._is_down, seed=self.plan.seed,
                pace_s=self.plan.pace_s,
            )
            for number in range(self.plan.workers)
        ]  # fmt: skip
        for worker in workers:
            worker.start()
        try:
            self._course(workers)
        finally:
            self._ended.set()
            for worker in workers:
                worker.join(60)
            if sys.exc_info()[0]:
                self._daemon.kill()
        self._account(workers)
        return self.found

    def _connect(self, user_id: str) -> MemoryClient:
        """Connect as a user; gRPC's deadlines count by the clock of the daemon."""
        return self._daemon.client(user_id, timeout_s=30 * self.plan.factor)

    def _start(self) -> float:
        self._daemon.env.update(self._clock.env())
        took_s = self._daemon.start()
        self._runs += 1
        self._run_began_s = self._clock.passed_s()
        return took_s

    def _course(self, workers: list[Worker]) -> None:
        end = time.monotonic() + self.plan.seconds
        next_sample, next_restart, next_restore = 0.0, self.plan.restart_s, self.plan.restore_s
        while time.monotonic() < end or self._is_behind(end + 10 * PATIENCE_S):
            time.sleep(0.1)
            passed = self._clock.passed_s()
            if self._daemon.process.poll() is not None:
                self.found.faults.append(f"the daemon ended by itself with {self._daemon.process.returncode}")
                return
            if time.monotonic() >= next_sample:
                next_sample = time.monotonic() + self.plan.sample_s
                self._sample()
            if passed >= next_restore and len(self.found.restores) < self.plan.restores:
                next_restore += self.plan.restore_s
                self._restore(workers)
            if self._clock.passed_s() >= next_restart and len(self.found.restarts) < self.plan.restarts:
                next_restart += self.plan.restart_s
                self._restart()

    def _is_behind(self, last: float) -> bool:
        """Whether something that was planned is still to come; a slow machine gets much more time for it."""
        planned = self.plan.restarts, self.plan.restores
        return (len(self.found.restarts), len(self.found.restores)) < planned and time.monotonic() < last

    def _sample(self) -> None:
        at_s = self._clock.passed_s()
        taken = sample(
            self._daemon.process.pid,
            self._daemon.folder,
            at_s=at_s,
            run=self._runs,
            age_s=at_s - self._run_began_s,
        )
        self.found.samples.append(taken)

    def _restart(self) -> None:
        how = signal.SIGTERM if len(self.found.restarts) % 2 == 0 else signal.SIGKILL
        self._note_jobs()
        self._is_down.set()
        self.figures.restarts += 1
        began = time.monotonic()
        self._daemon.process.send_signal(how)
        code = self._daemon.process.wait()
        stopped_s = time.monotonic() - began
        self._clock.clean_up(self._daemon.process.pid)
        by_s = self.plan.steps.get(len(self.found.restarts) + 1, 0)
        if by_s:
            self._clock.step(by_s)
        started_s = self._start()
        time.sleep(0.5)
        self._is_down.clear()
        self.found.restarts.append((how.name, code, stopped_s, started_s))
        if code not in {0, -signal.SIGKILL}:
            self.found.faults.append(f"{how.name} ended the daemon with {code}")
        at_h, clock = self._clock.passed_s() / HOUR_S, f", the clock is set by {by_s / HOUR_S:+.0f} h" if by_s else ""
        self._say(f"{at_h:5.1f} h  {how.name}: {code} in {stopped_s:.1f} s, up in {started_s:.1f} s{clock}")
        with self._connect("host") as client:
            for warning in client.server_info().warnings:
                self._say(f"         {warning}")

    def _note_jobs(self) -> None:
        """Count the last runs of each job that were not counted yet, by job and state."""
        try:
            with self._connect("host") as client:
                for run in [run for job in client.jobs() for run in client.job_runs(job=job.name, page_size=100)]:
                    if run.id in self._runs_seen or run.state is RunState.RUNNING:
                        continue
                    self._runs_seen.add(run.id)
                    name = f"{run.job} {run.state.value}"
                    self.found.jobs[name] = self.found.jobs.get(name, 0) + 1
                    if run.error:
                        self.found.faults.append(f"job {run.job}: {run.error}")
        except MemorydError as error:
            self.found.faults.append(f"the runs of jobs could not be listed: {error}")

    def _restore(self, workers: list[Worker]) -> None:
        """Restore the newest state while writes go on: what was acknowledged some time before is there."""
        self._note_jobs()
        noted = {worker.user_id: worker.noted() for worker in workers}
        time.sleep(max(SHIP_S / self.plan.factor, 3.0))
        target = self._folder / "restored"
        began = time.monotonic()
        done = self._command("restore", str(self._backup), "--data-dir", str(target))
        took_s = time.monotonic() - began
        if done.returncode:
            self.found.faults.append(f"restore ended with {done.returncode}: {done.stderr[-500:]}")
            return
        held = [fault for user_id, account in noted.items() for fault in missing(target, user_id, account, workers)]
        self.found.faults += held
        count = sum(len(account.memories) for account in noted.values())
        self.found.restores.append(f"{count} memories, {took_s:.1f} s")
        self._say(f"{self._clock.passed_s() / HOUR_S:5.1f} h  restored in {took_s:.1f} s, {len(held)} faults")
        shutil.rmtree(target)

    def _command(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": os.environ["PATH"], "HOME": str(self._folder)}
        call = [sys.executable, "-m", "memoryd", *words]
        return subprocess.run(call, env=env, capture_output=True, text=True, check=False, timeout=600)

    def _account(self, workers: list[Worker]) -> None:
        self.found.faults += [worker.fault for worker in workers if worker.fault]
        self.found.faults += [f"{worker.name} waits for an answer" for worker in workers if worker.is_alive()]
        if self._daemon.process.poll() is not None:
            return
        for worker in workers:
            account = worker.noted()
            self.found.checked += len(account.memories) + len(account.purged) + len(account.deleted)
            self.found.checked += sum(map(len, account.threads.values()))
            with self._connect(worker.user_id) as memory:
                self.found.faults += [f"{worker.user_id}: {fault}" for fault in account.faults(memory)]
        self._note_jobs()
        code = self._daemon.stop()
        self._clock.clean_up(self._daemon.process.pid)
        if code:
            self.found.faults.append(f"the last stop ended with {code}")
        copy = self._folder / "fresh.duckdb"
        self.found.file_ratio = self._daemon.database.stat().st_size / fresh_size(self._daemon.database, copy)
        checked = self._command("check", "--data-dir", str(self._daemon.folder))
        if checked.returncode:
            self.found.faults.append(f"check ended with {checked.returncode}: {checked.stderr[-500:]}")
        for line in self._daemon.log.read_text(errors="replace").splitlines():
            try:
                told = json.loads(line)
            except ValueError:
                told = {"level": "error", "event": line}
            if told.get("level") in {"error", "critical"}:
                self.found.faults.append(f"log: {line[:300]}")


def missing(target: Path, user_id: str, noted: Account, workers: list[Worker]) -> list[str]:
    """Return what a restored store lacks of an account, less what was erased meanwhile, and what came back in it."""
    now = next(worker for worker in workers if worker.user_id == user_id).noted()
    with duckdb.connect(str(target / "memory.duckdb"), read_only=True) as connection:
        ids = {row[0] for row in connection.execute("SELECT id FROM memories").fetchall()}
        query = "SELECT content FROM messages WHERE user_id = ? AND thread_id = ?"
        kept = {
            thread
            for thread in noted.threads
            if now.threads.get(thread, [])[: len(noted.threads[thread])] == noted.threads[thread]
        }
        stored = {t: {r[0] for r in connection.execute(query, [user_id, t]).fetchall()} for t in kept}
    faults = [
        f"{user_id}: memory {i} is not in the backup" for i in noted.memories if i in now.memories and i not in ids
    ]
    faults += [f"{user_id}: memory {i} came back with the backup" for i in noted.purged & ids]
    return faults + [
        f"{user_id}: {len(lost)} messages of {thread} are not in the backup"
        for thread in kept
        if (lost := set(noted.threads[thread]) - stored[thread])
    ]
