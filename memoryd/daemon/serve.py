"""
The composition root: opens the store, loads the model, wires the ports, serves the admin socket, and stops in order.

Only here are the clock and randomness read; below, both are handed in.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import structlog

from memoryd.audit.log import AuditLog
from memoryd.backup.scratch import remove_stale
from memoryd.daemon.backups import Backups
from memoryd.daemon.config import Config
from memoryd.daemon.garbage import Garbage
from memoryd.daemon.jobs import look_at_clock
from memoryd.daemon.loop_lag import LoopLag
from memoryd.daemon.metrics import Metrics, is_measured
from memoryd.daemon.observe import observe
from memoryd.daemon.patterns import compile_patterns
from memoryd.daemon.schedule import expressions_of
from memoryd.daemon.servers import Servers
from memoryd.daemon.status import Running, describe
from memoryd.daemon.store_options import store_options
from memoryd.daemon.systemd import feed_watchdog, notify, tell_of_start, watchdog_interval_s
from memoryd.daemon.traces import make_traces
from memoryd.daemon.upkeep import flush_recalls, upkeep
from memoryd.daemon.wiring import make_embedder, make_grants, make_ports, now_utc, uptime_s
from memoryd.domain.background import BackgroundWorker
from memoryd.domain.clock import CLOCK_SEEN, ClockWatch
from memoryd.domain.forgetting.catch_up import catch_up
from memoryd.domain.ports import Ports
from memoryd.embedding.base import Embedder
from memoryd.errors import EXIT_REFUSED, StoreDamaged, Unavailable
from memoryd.identity.socket_lease import SocketLease
from memoryd.model.measures import NO_MEASURES, Measures
from memoryd.paths import Places
from memoryd.store.base import Spool, Store, StoreInfo
from memoryd.store.opening import StoreRefused, open_store
from memoryd.turns import started

__all__ = ["EXIT_FATAL", "EXIT_OK", "serve"]

EXIT_OK = 0
EXIT_FATAL = 70  # EX_SOFTWARE of sysexits(3): the supervisor restarts the daemon
TEND_S = 1.0  # a socket whose grant has expired serves no one anyway; within so long it is gone
WORKERS = 8  # threads for what blocks now and then: starts, searches of files, backups
REOPEN_AFTER = 10  # of those, and a socket that could not be opened is tried again

log = structlog.get_logger("memoryd.daemon")


class _Daemon:
    """One run: what was started, so that it can be stopped."""

    def __init__(self, config: Config, places: Places, env: Mapping[str, str], version: str, *, reopens: bool) -> None:
        self._reopens = reopens
        self._config = config
        self._places = places
        self._env = env
        self._id = secrets.token_hex(4)
        self._began = time.monotonic()
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._exit = EXIT_OK
        self._loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self._store: Store | None = None
        self._audit: AuditLog | None = None
        self._serving = False
        self._lag = LoopLag(lambda s, times: log.warning("loop_blocked", duration_s=round(s, 3), count=times))
        self._terms = self._where = ""
        self._metrics = Metrics(config, self._loop) if is_measured(config) else None
        self._running = Running(version, places, self._began, self._lag)

    def _on_terms(self, done: int, total: int) -> None:
        log.info("filter_terms_written", done=done, total=total)
        self._terms = f", {done} of {total} memories prepared"

    def _progress(self) -> str:
        """Return what a start that takes long is at."""
        database = self._places.database
        if self._config.store.engine == "postgres":
            return f"opening the database on the server{self._terms}"
        sizes = [
            path.stat().st_size >> 20 if path.exists() else 0
            for path in (database, database.with_name(f"{database.name}.wal"))
        ]
        return f"opening {sizes[0]} MiB, replaying {sizes[1]} MiB of log{self._terms}"

    def _on_fatal(self, fault: str) -> None:
        def end() -> None:
            log.critical("database_failed", error=fault)
            damaged = self._store is not None and self._store.files is not None and self._store.files.ended_by_damage
            self._exit = EXIT_REFUSED if damaged else EXIT_FATAL  # a damaged file is no better after a restart
            self._stop.set()

        self._loop.call_soon_threadsafe(end)

    def _on_signal(self) -> None:
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    async def run(self) -> int:
        """Serve until a signal or a fatal fault; return the exit code."""
        expressions_of(self._config)  # refused before anything is opened
        lease = SocketLease(self._places.socket)
        self._loop.set_default_executor(started(ThreadPoolExecutor(WORKERS, "worker"), WORKERS))
        self._starting = asyncio.create_task(tell_of_start(self._env, self._progress))
        try:
            store, embedder = await self._open()
            self._store, audit = store, self._audit
            try:
                await self._serve(lease, store, embedder, audit)
            except StoreDamaged:
                if self._serving:
                    raise
                raise StoreRefused(store.files.damage if store.files is not None else "the store is damaged") from None
            finally:
                embedder.close()
                await self._close(store)
                await self._ship(finish=True)
                if audit is not None:
                    audit.close()
        finally:
            lease.close()
        log.info("stopped", exit_code=self._exit)
        return self._exit

    @property
    def _measures(self) -> Measures:
        return NO_MEASURES if self._metrics is None else self._metrics.figures

    async def _close(self, store: Store) -> None:
        """Close the store; one that has failed already cannot fail again."""
        try:
            await store.close()
        except Exception as error:
            if self._exit == EXIT_OK:
                raise
            log.error("store_not_closed", error=type(error).__name__)  # noqa: TRY400  the first fault is the one to tell

    async def _open(self) -> tuple[Store, Embedder]:
        """Open the store while the model is loaded: each takes about half a second."""
        config = self._config
        opening = asyncio.create_task(
            asyncio.to_thread(
                open_store,
                store_options(
                    config,
                    self._places,
                    min_free_bytes=config.store.min_free_bytes,
                    ledger=self._places.ledger,
                    spool=Spool(config.backup.spool_bytes, now_utc) if config.backup.directory else None,
                    measures=self._measures,
                ),
                random_bytes=secrets.token_bytes,
                on_fatal=self._on_fatal,
                open_journal=self._open_audit,
                tell=self._on_terms,
                clock=now_utc,
            )
        )
        try:
            embedder = await asyncio.to_thread(make_embedder, config, self._measures)
        except BaseException:
            await (await opening).close()
            if self._audit is not None:
                self._audit.close()
            raise
        try:
            return await opening, embedder
        except BaseException:
            embedder.close()
            if self._audit is not None:
                self._audit.close()
            raise

    def _open_audit(self) -> AuditLog | None:
        path, config = self._places.audit, self._config.audit
        if path is None:
            return None
        self._audit = AuditLog(
            path,
            required=config.required,
            max_bytes=config.max_bytes,
            keep_files=config.keep_files,
            daemon_id=self._id,
            on_fault=lambda fault: log.error("audit_not_written", error=fault, required=config.required),
        )
        return self._audit

    def _make_backups(self, store: Store, info: StoreInfo, clock: ClockWatch) -> Backups | None:
        """Return the backups of the store, if there are to be any."""
        remove_stale(self._places.database.parent)  # copies of the database, of a proof that was killed
        if store.files is None or not self._config.backup.directory:
            return None
        made = Backups(self._config, store.files.shipping, info, self._places.ledger, clock.doubt)
        store.files.backups = made.held
        return made

    async def _serve(self, lease: SocketLease, store: Store, embedder: Embedder, audit: AuditLog | None) -> None:
        info = await store.info()
        if info.damage:
            raise StoreRefused(info.damage)
        self._where = info.path
        if info.sandboxes_closed and self._reopens and store.files is not None:
            await store.files.open_sandboxes()
            info = await store.info()
        clock = ClockWatch(now_utc(), (await store.work.marks()).get(CLOCK_SEEN), uptime_s)
        self._running.backups = self._make_backups(store, info, clock)
        for warning in store.warnings:
            log.warning("store_warning", reason=warning)
        grants = await make_grants(store)
        ports = await make_ports(
            self._config,
            store,
            embedder,
            grants=grants,
            clock=clock,
            tokenizers=self._places.tokenizers,
            measures=self._measures,
        )
        if await catch_up(ports, now=now_utc()):
            log.warning("purges_caught_up", ledger=str(self._places.ledger))
        doors = Servers(
            self._config,
            ports,
            grants,
            audit,
            store_id=info.store_id,
            sandboxes=self._places.sandboxes,
            clock=now_utc,
            describe=lambda: describe(self._running, ports, doors, audit),
            backups=self._running.backups,
            closed=info.sandboxes_closed,
            figures=None if self._metrics is None else self._metrics.text,
            traces=make_traces(self._config),
        )
        try:
            if self._metrics is not None:
                self._metrics.open(
                    lambda: observe(self._running, ports, doors, audit, self._config.store.min_free_bytes)
                )
            self._running.faults = await doors.open(lease)
            self._serving = True
            await self._until_stopped(ports, doors, lease, audit)
        finally:
            await doors.stop(0)
            doors.let_go()
            if self._metrics is not None:
                await asyncio.to_thread(self._metrics.close)
        if self._exit == EXIT_OK:
            await flush_recalls(ports)
            with contextlib.suppress(Unavailable):  # the next start then believes the time before it
                await look_at_clock(ports, now_utc())
        await self._ship(finish=False)
        ports.close()

    def is_held_up(self) -> bool:
        """Whether something still waits for the folder of backups."""
        return self._running.backups is not None and self._running.backups.is_held_up

    async def _ship(self, *, finish: bool) -> None:
        """Ship what is left to the backups, before and after the store is closed."""
        if self._running.backups is not None:
            await self._running.backups.at_stop(finish=finish, grace_s=self._config.daemon.shutdown_grace_s)

    async def _until_stopped(self, ports: Ports, doors: Servers, lease: SocketLease, audit: AuditLog | None) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._on_signal)
        garbage = Garbage()
        log.info(
            "serving",
            daemon=self._id,
            socket=str(lease.path),
            database=self._where,
            sandboxes=len(doors.listeners),
            elsewhere=doors.issuer.elsewhere(now_utc()),
            shared=self._config.shared.socket,
            tcp=self._config.tcp.listen,
            embedding=ports.embedder.provider,
            ready_s=round(time.monotonic() - self._began, 3),
        )
        for fault in self._running.faults:
            log.warning("sandbox_not_open", reason=fault)
        self._starting.cancel()
        notify(self._env, "READY=1\nSTATUS=serving")
        backups = self._running.backups
        if backups is not None:
            self._start(backups.serve())
        for step, pause_s, fault in upkeep(ports):
            self._repeat(step, pause_s=pause_s, fault=fault)
        embedders = (doors.reembedder.serve(), doors.message_embedder.serve())
        own = (self._lag.watch(), garbage.collect(), compile_patterns(self._stop))
        for work in (*own, *embedders, *doors.learners.serve()):
            self._start(work)
        if self._config.embedding.reembed:
            doors.reembedder.start()
        self._repeat(self._tender(doors, audit), pause_s=TEND_S, fault="sandboxes_not_tended")
        interval = watchdog_interval_s(self._env)
        if interval is not None:
            self._start(feed_watchdog(self._env, interval, lambda: _self_check(ports)))
        self._start(doors.jobs.serve())
        self._start(doors.jobs.begin(gc=self._config.memory.auto_gc))
        await self._stop.wait()
        notify(self._env, "STOPPING=1")
        log.info("stopping", grace_s=self._config.daemon.shutdown_grace_s)
        ports.shared.stopping.set()  # calls that wait for something to happen end
        await asyncio.gather(doors.jobs.stop(), self._stop_doors(doors))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await doors.learners.close()

    def _start(self, work: Any) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def _stop_doors(self, doors: Servers) -> None:
        """Let calls finish within the grace; a second signal ends them at once."""
        stopping = asyncio.create_task(doors.stop(self._config.daemon.shutdown_grace_s))
        hurry = asyncio.create_task(self._hurry.wait())
        await asyncio.wait({stopping, hurry}, return_when=asyncio.FIRST_COMPLETED)
        if not stopping.done():
            await doors.stop(0)
        hurry.cancel()
        await stopping

    def _repeat(self, step: Callable[[], Awaitable[object]], *, pause_s: float, fault: str) -> None:
        """Begin what is done again and again until the daemon stops; what goes wrong with it is logged."""
        worker = BackgroundWorker(step=step, pause_s=pause_s, tell=lambda error: log.error(fault, error=error))
        self._start(worker.serve(begins_with_pause=True))

    def _tender(self, doors: Servers, audit: AuditLog | None) -> Callable[[], Awaitable[None]]:
        """Return what closes the sockets of grants that expire, opens those that could not be, tells the audit log."""
        seconds = count(1)

        async def tend() -> None:
            second = next(seconds)
            for grant_id in await doors.issuer.close_ended(now_utc()):
                log.info("sandbox_expired", grant_id=grant_id)
            if self._running.faults and second % REOPEN_AFTER == 0:
                self._running.faults = await doors.issuer.reopen(now_utc())
            if audit is not None:
                audit.tell_repeats(now_utc())

        return tend


async def _self_check(ports: Ports) -> None:
    """Write and read through every thread that a call needs."""
    await ports.store.ping()
    async with asyncio.timeout(10):
        await ports.embedder.ping()


def serve(
    config: Config, places: Places, env: Mapping[str, str], version: str, *, reopens_sandboxes: bool = False
) -> int:
    """
    Run the daemon until it is told to stop; return the exit code.

    With reopens_sandboxes, the doors of a store that was restored from a backup are opened again.
    """
    os.umask(0o077)
    sys.setswitchinterval(0.0005)  # a thread that loads a large scope yields to the loop in half a millisecond

    async def run() -> int:
        daemon = _Daemon(config, places, env, version, reopens=reopens_sandboxes)
        code = await daemon.run()
        if daemon.is_held_up():
            os._exit(code)  # all is closed; a thread that waits for a disk that does not answer would be waited for
        return code

    return asyncio.run(run())
