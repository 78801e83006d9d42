"""
The composition root: opens the store, loads the model, wires the ports, serves the admin socket, and stops in order.

Only here are the clock and randomness read; below, both are handed in.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import resource
import secrets
import signal
import sys
import time
from base64 import b32encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import structlog
from google.protobuf.duration_pb2 import Duration
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from memoryd import limits
from memoryd.config import Config
from memoryd.domain.forget import collect
from memoryd.domain.ports import Policy, Ports, Stamps
from memoryd.embedding.base import Embedder, Encoder, ModelRefused, NoEmbedder
from memoryd.embedding.http import HttpEncoder
from memoryd.embedding.onnx import builtin_encoder, directory_encoder
from memoryd.embedding.scheduler import ScheduledEmbedder
from memoryd.index.cache import ScopeIndexes
from memoryd.service.admin import AdminService
from memoryd.service.context import ContextService
from memoryd.service.memory import MemoryService
from memoryd.service.parsing import Parsing
from memoryd.sockets import SocketLease
from memoryd.store.base import Store
from memoryd.store.duckdb import DuckDBStore, Opened, open_store
from memoryd.supervision import feed_watchdog, notify, watchdog_interval_s
from memoryd.v1 import admin_service_pb2_grpc, context_service_pb2_grpc, memory_service_pb2_grpc

__all__ = ["EXIT_FATAL", "EXIT_OK", "Places", "make_ports", "new_memory_id", "now_utc", "serve"]

EXIT_OK = 0
EXIT_FATAL = 70  # EX_SOFTWARE of sysexits(3): the supervisor starts the daemon anew
RECALL_FLUSH_S = 3.0
ID_BYTES = 16

log = structlog.get_logger("memoryd.daemon")


@dataclass(frozen=True, slots=True)
class Places:
    """Where the daemon's files are."""

    database: Path
    socket: Path


def now_utc() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


def new_memory_id() -> str:
    """Return 128 random bits as 26 lower-case characters, so that the first eight tell memories apart."""
    return b32encode(secrets.token_bytes(ID_BYTES)).decode().rstrip("=").lower()


def _encoder(config: Config) -> Encoder | None:
    embedding = config.embedding
    if embedding.provider == "none":
        return None
    if embedding.provider == "builtin":
        return builtin_encoder(dimensions=embedding.dimensions)
    if embedding.provider == "openai":
        key = ""
        if embedding.api_key_file:
            try:
                key = Path(embedding.api_key_file).read_text(encoding="utf-8").strip()
            except OSError as error:
                raise ModelRefused(f"embedding.api_key_file cannot be read: {error.strerror}") from None
        return HttpEncoder(
            embedding.url,
            embedding.model,
            api_key=key,
            dimensions=embedding.dimensions,
            timeout_s=embedding.timeout_s,
        )
    directory = Path(embedding.provider)
    if not directory.is_dir():
        raise ModelRefused(
            f"embedding.provider is {embedding.provider!r}, which is neither builtin, openai, none nor a directory"
        )
    return directory_encoder(directory, dimensions=embedding.dimensions)


def make_embedder(config: Config) -> Embedder:
    """Return what the configuration names; ModelRefused if it cannot be used."""
    encoder = _encoder(config)
    return NoEmbedder() if encoder is None else ScheduledEmbedder(encoder)


async def make_ports(config: Config, store: Store, embedder: Embedder) -> Ports:
    """Wire store, index and embedder: every commit reaches the index before it is acknowledged."""
    info = await store.info()
    refusal = ""
    strangers = [fingerprint for fingerprint in info.fingerprints if fingerprint != embedder.fingerprint]
    if embedder.fingerprint and strangers:
        refusal = (
            f"the store holds vectors of another model ({', '.join(item[:8] for item in strangers)}) than"
            f" embedding.provider {embedder.provider!r} makes ({embedder.fingerprint[:8]}): searches use words only;"
            " set embedding.provider back to the model that the store was filled with"
        )
    indexes = ScopeIndexes(
        store.read_owner,
        budget_bytes=config.index.memory_bytes,
        dimensions=embedder.dimensions,
        fingerprint=embedder.fingerprint,
        on_fault=lambda fault: log.error("index_dropped", error=fault),
    )
    store.on_commit(indexes.apply)
    policy = Policy(
        delete_grace_days=config.memory.delete_grace_days,
        supersede_grace_days=config.memory.supersede_grace_days,
        expired_grace_days=config.memory.expired_grace_days,
        max_memories=config.context.max_memories,
        max_tokens=config.context.max_tokens,
        disabled_agents=config.disabled_agents,
    )
    return Ports(
        store=store,
        indexes=indexes,
        embedder=embedder,
        new_id=new_memory_id,
        stamps=Stamps(info.newest_create_time),
        secret=info.secret,
        policy=policy,
        vector_refusal=refusal,
    )


def make_server(config: Config) -> grpc.aio.Server:
    """Return a server with every limit set."""
    return grpc.aio.server(
        interceptors=[Parsing()],
        options=[
            ("grpc.max_receive_message_length", limits.MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", limits.MAX_CALL_METADATA_BYTES),
            ("grpc.absolute_max_metadata_size", limits.MAX_CALL_METADATA_BYTES * 2),
            ("grpc.max_allowed_incoming_connections", config.daemon.max_connections),
            ("grpc.server_handshake_timeout_ms", 5000),
            ("grpc.so_reuseport", 0),
        ],
        maximum_concurrent_rpcs=config.daemon.max_concurrent_calls,
    )


class _Daemon:
    """One run: what was started, so that it can be stopped."""

    def __init__(self, config: Config, places: Places, env: Mapping[str, str], version: str) -> None:
        self._config = config
        self._places = places
        self._env = env
        self._version = version
        self._began = time.monotonic()
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._exit = EXIT_OK
        self._loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []

    def _on_fatal(self, fault: str) -> None:
        def end() -> None:
            log.critical("database_failed", error=fault)
            self._exit = EXIT_FATAL
            self._stop.set()

        self._loop.call_soon_threadsafe(end)

    def _on_signal(self) -> None:
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    async def run(self) -> int:
        """Serve until a signal or a fatal fault; return the exit code."""
        lease = SocketLease(self._places.socket)
        try:
            opened, embedder = await self._open()
            store = DuckDBStore(opened, min_free_bytes=self._config.store.min_free_bytes, on_fatal=self._on_fatal)
            try:
                await self._serve(lease, store, embedder)
            finally:
                embedder.close()
                await self._close(store)
        finally:
            lease.close()
        log.info("stopped", exit_code=self._exit)
        return self._exit

    async def _close(self, store: DuckDBStore) -> None:
        """Close the store; one that has failed already cannot fail again."""
        try:
            await store.close()
        except Exception as error:
            if self._exit == EXIT_OK:
                raise
            log.error("store_not_closed", error=type(error).__name__)  # noqa: TRY400  the first fault is the one to tell

    async def _open(self) -> tuple[Opened, Embedder]:
        """Open the database while the model is loaded: each takes about half a second."""
        config = self._config
        opening = asyncio.create_task(
            asyncio.to_thread(open_store, self._places.database, memory_limit_bytes=config.store.memory_limit_bytes)
        )
        try:
            embedder = await asyncio.to_thread(make_embedder, config)
        except BaseException:
            (await opening).close()
            raise
        try:
            return await opening, embedder
        except BaseException:
            embedder.close()
            raise

    async def _serve(self, lease: SocketLease, store: DuckDBStore, embedder: Embedder) -> None:
        ports = await make_ports(self._config, store, embedder)
        server = make_server(self._config)
        memory_service_pb2_grpc.add_MemoryServiceServicer_to_server(MemoryService(ports, now_utc), server)
        context_service_pb2_grpc.add_ContextServiceServicer_to_server(ContextService(ports, now_utc), server)
        admin_service_pb2_grpc.add_AdminServiceServicer_to_server(
            AdminService(ports, now_utc, lambda: self._describe(ports)), server
        )
        healthy = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
        services = ("memoryd.v1.MemoryService", "memoryd.v1.ContextService", "memoryd.v1.AdminService")
        reflection.enable_server_reflection((*services, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
        server.add_insecure_port(lease.address)
        await server.start()
        lease.protect()
        for name in ("", *services):
            await healthy.set(name, health_pb2.HealthCheckResponse.SERVING)
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._on_signal)
        gc.collect()
        gc.freeze()  # what start-up made stays; the collector need not look at it again
        _trim()
        log.info(
            "serving",
            socket=str(lease.path),
            database=str(self._places.database),
            embedding=embedder.provider,
            ready_s=round(time.monotonic() - self._began, 3),
        )
        if ports.vector_refusal:
            log.warning("vectors_not_searched", reason=ports.vector_refusal)
        notify(self._env, "READY=1")
        self._start(self._flush_recalls(ports))
        interval = watchdog_interval_s(self._env)
        if interval is not None:
            self._start(feed_watchdog(self._env, interval, lambda: _self_check(ports)))
        if self._config.memory.auto_gc:
            self._start(_collect_at_start(ports))
        await self._stop.wait()
        notify(self._env, "STOPPING=1")
        log.info("stopping", grace_s=self._config.daemon.shutdown_grace_s)
        await healthy.enter_graceful_shutdown()
        await self._stop_server(server)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._exit == EXIT_OK:
            await _flush(ports)
        ports.indexes.close()

    def _start(self, work: Any) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def _stop_server(self, server: grpc.aio.Server) -> None:
        """Let calls finish within the grace; a second signal ends them at once."""
        stopping = asyncio.create_task(server.stop(self._config.daemon.shutdown_grace_s))
        hurry = asyncio.create_task(self._hurry.wait())
        await asyncio.wait({stopping, hurry}, return_when=asyncio.FIRST_COMPLETED)
        if not stopping.done():
            await server.stop(0)
        hurry.cancel()
        await stopping

    async def _flush_recalls(self, ports: Ports) -> None:
        while True:
            await asyncio.sleep(RECALL_FLUSH_S)
            await _flush(ports)

    async def _describe(self, ports: Ports) -> dict[str, Any]:
        info = await ports.store.info()
        warnings = [ports.vector_refusal] if ports.vector_refusal else []
        if ports.embedder.fingerprint and not ports.vector_refusal and info.unembedded_count:
            warnings.append(f"{info.unembedded_count} memories have no vector and are found by their words only")
        if ports.indexes.faults:
            warnings.append(f"{ports.indexes.faults} indexes were dropped after a fault and built anew; see the log")
        uptime = Duration()
        uptime.FromTimedelta(timedelta(seconds=time.monotonic() - self._began))
        return {
            "version": self._version,
            "uptime": uptime,
            "store_path": info.path,
            "store_id": info.store_id,
            "schema_version": info.schema_version,
            "commit_seq": info.commit_seq,
            "store_bytes": info.store_bytes,
            "memory_count": info.memory_count,
            "embedding_provider": ports.embedder.provider,
            "embedding_fingerprint": ports.embedder.fingerprint,
            "embedding_dimensions": ports.embedder.dimensions,
            "index_scopes": ports.indexes.scopes,
            "index_bytes": ports.indexes.nbytes,
            "warnings": warnings,
            "rss_bytes": _rss_bytes(),
        }


def _trim() -> None:
    """Hand freed memory back to the system; loading a model takes more than it keeps."""
    with contextlib.suppress(OSError, AttributeError):  # a C library other than glibc has no malloc_trim
        ctypes.CDLL(None).malloc_trim(0)


def _rss_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


async def _self_check(ports: Ports) -> None:
    """Write and read through every thread that a call needs."""
    await ports.store.ping()
    async with asyncio.timeout(10):
        await ports.embedder.ping()


async def _flush(ports: Ports) -> None:
    recalls = ports.recalls.take()
    try:
        await ports.store.note_recalls(recalls)
        ports.indexes.note_recalls(recalls)
    except Exception as error:  # noqa: BLE001  counts of recalls may be lost, a search may not fail for them
        log.warning("recalls_not_counted", error=type(error).__name__, count=len(recalls))


async def _collect_at_start(ports: Ports) -> None:
    try:
        report = await collect(ports, now=now_utc())
    except Exception as error:  # noqa: BLE001  the daemon serves all the same
        log.error("gc_failed", error=type(error).__name__)  # noqa: TRY400  a trace may hold content
        return
    log.info(
        "gc",
        expired=report.expired_count,
        superseded=report.superseded_count,
        deleted=report.deleted_count,
        requests=report.request_count,
    )


def serve(config: Config, places: Places, env: Mapping[str, str], version: str) -> int:
    """Run the daemon until it is told to stop; return the exit code."""
    os.umask(0o077)
    sys.setswitchinterval(0.0005)  # a thread that loads a large scope yields to the loop in half a millisecond

    async def run() -> int:
        return await _Daemon(config, places, env, version).run()

    return asyncio.run(run())
