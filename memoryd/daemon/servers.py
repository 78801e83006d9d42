"""
The ways in, as servers: the admin socket, the sandboxes' sockets, the shared socket, TCP with TLS.

All of them serve the same methods through a gate each; see `service.gate` for the way of a call.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from memoryd.audit.log import AuditLog
from memoryd.audit.reading import Sighting, sighting_of
from memoryd.daemon.backups import Backups
from memoryd.daemon.config import Config
from memoryd.daemon.config_key import ConfigError
from memoryd.daemon.job_table import JobTable
from memoryd.daemon.jobs import Jobs
from memoryd.daemon.learners import Learners
from memoryd.daemon.wiring import new_id
from memoryd.domain.conversation.embed import MessageEmbedder
from memoryd.domain.ports import Ports
from memoryd.domain.writing.reembed import Reembedder
from memoryd.identity.authentication import Authenticator, VerifiedTokens
from memoryd.identity.grants import Grants
from memoryd.identity.issuer import GrantIssuer
from memoryd.identity.listeners import Listeners, most_connections, raise_descriptor_limit
from memoryd.identity.socket_lease import SocketLease, check_apart
from memoryd.model import limits
from memoryd.model.call_context import NO_TRACES, Traces
from memoryd.model.grant import Door, Grant, Quota
from memoryd.model.reports import Reembedding
from memoryd.service.admin import AdminService
from memoryd.service.consolidation import ConsolidationService
from memoryd.service.context import ContextService
from memoryd.service.conversation import ConversationService
from memoryd.service.entity import EntityService
from memoryd.service.gate import Gate
from memoryd.service.grants import GrantService
from memoryd.service.identity import IdentityService
from memoryd.service.job import JobService
from memoryd.service.memory import MemoryService
from memoryd.service.methods import Method, methods_of
from memoryd.service.note import NoteService
from memoryd.v1 import (
    admin_service_pb2,
    consolidation_service_pb2,
    context_service_pb2,
    conversation_service_pb2,
    entity_service_pb2,
    grant_service_pb2,
    identity_service_pb2,
    job_service_pb2,
    memory_service_pb2,
    note_service_pb2,
)

__all__ = ["SERVICES", "Servers", "make_server", "server_credentials"]

SERVICES: tuple[Any, ...] = tuple(
    module.DESCRIPTOR.services_by_name[name]
    for module, name in (
        (memory_service_pb2, "MemoryService"),
        (entity_service_pb2, "EntityService"),
        (conversation_service_pb2, "ConversationService"),
        (note_service_pb2, "NoteService"),
        (context_service_pb2, "ContextService"),
        (identity_service_pb2, "IdentityService"),
        (grant_service_pb2, "GrantService"),
        (admin_service_pb2, "AdminService"),
        (job_service_pb2, "JobService"),
        (consolidation_service_pb2, "ConsolidationService"),
    )
)
log = structlog.get_logger("memoryd.daemon")

# Calls that have ended count until they are cleaned up, and gRPC refuses others meanwhile: of 60 callers a few calls a
# second. That keeps out who opens and resets streams all the time; the host is trusted.
TRUSTED_STREAMS = ("grpc.http.overload_protection", 0)
MOST_STREAMS = 64  # calls under way on one connection, so that one cannot take the whole door
HANDSHAKE_MS = 5000  # who has not said hello by then is not waited for
IDLE_MS = 60 * 1000  # a connection without calls for so long is closed, but for the host's; a client makes a new one
AGE_MS = 60 * 60 * 1000  # of connections over TCP, so that a caller who drips cannot stay for ever
AGE_GRACE_MS = 60 * 1000


def _tell(event: str, known: Reembedding) -> None:
    """Write down that re-embedding begins, pauses or ends; where there is nothing to do, nothing."""
    if known.pending_count or known.embedded_count or known.failed_count or known.fault:
        write = log.warning if known.fault else log.info
        write(event, pending=known.pending_count, embedded=known.embedded_count, failed=known.failed_count,
              fault=known.fault)  # fmt: skip


def make_server(connections: int, calls: int, *options: tuple[str, int]) -> grpc.aio.Server:
    """Return a server with every limit set."""
    return grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", limits.MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", limits.MAX_CALL_METADATA_BYTES),
            ("grpc.absolute_max_metadata_size", limits.MAX_CALL_METADATA_BYTES),
            ("grpc.max_allowed_incoming_connections", connections),
            ("grpc.max_concurrent_streams", min(calls, MOST_STREAMS)),
            ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
            ("grpc.so_reuseport", 0),
            *options,
        ],
        maximum_concurrent_rpcs=calls,
    )


class _Certificate:
    """The files of a TLS server, read again when they change, so that a renewed certificate needs no restart."""

    def __init__(self, config: Config) -> None:
        tcp = config.tcp
        self._files = [Path(name) for name in (tcp.certificate_file, tcp.key_file, tcp.client_ca_file) if name]
        self._seen = self._stamps()
        self._refused: list[tuple[int, int, int]] | None = None

    def _stamps(self) -> list[tuple[int, int, int]]:
        return [(stat.st_mtime_ns, stat.st_ino, stat.st_size) for stat in (file.stat() for file in self._files)]

    def read(self) -> Any:
        """Return the configuration for gRPC; OSError if a file cannot be read, ssl.SSLError if they are no pair."""
        pair = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        pair.load_cert_chain(self._files[0], self._files[1])  # gRPC would not say what is wrong
        certificate, key, *ca = [file.read_bytes() for file in self._files]
        return grpc.ssl_server_certificate_configuration([(key, certificate)], ca[0] if ca else None)

    def read_if_changed(self) -> Any:
        """Return the configuration if a file has changed since; else, and while it cannot be read, None."""
        try:
            stamps = self._stamps()
        except OSError:
            return None  # it is gone for a moment
        if stamps == self._seen:
            return None
        try:
            content = self.read()
        except OSError as error:  # it is being replaced; the old one serves until the new one is whole
            if stamps != self._refused:
                log.warning("certificate_not_renewed", error=_said(error))
                self._refused = stamps
            return None
        self._seen = stamps
        log.info("certificate_renewed")
        return content


def _said(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return f"certificate_file and key_file do not go together ({error.reason or 'not PEM'})"
    return f"{error.filename} cannot be read: {error.strerror}"


def server_credentials(config: Config) -> grpc.ServerCredentials:
    """Return the credentials of the TCP door; ConfigError if its files cannot be used."""
    try:
        certificate = _Certificate(config)
        content = certificate.read()
    except OSError as error:
        raise ConfigError(f"tcp: {_said(error)}") from None
    return grpc.dynamic_ssl_server_credentials(
        content, certificate.read_if_changed, require_client_authentication=bool(config.tcp.client_ca_file)
    )


def _look_up(audit: AuditLog | None) -> Callable[[str], Sighting]:
    return (lambda _: Sighting()) if audit is None else partial(sighting_of, audit.path)


class Servers:
    """Every server of the daemon."""

    def __init__(  # noqa: PLR0913  the wiring of all parts
        self,
        config: Config,
        ports: Ports,
        grants: Grants,
        audit: AuditLog | None,
        *,
        store_id: str,
        sandboxes: Path,
        clock: Callable[[], datetime],
        describe: Callable[[], Awaitable[dict[str, Any]]],
        backups: Backups | None = None,
        closed: bool = False,
        figures: Callable[[], bytes] | None = None,
        traces: Traces = NO_TRACES,
    ) -> None:
        """
        Wire them; nothing is open yet. UnguardedMethod if a service has a method that no one thought about.

        Closed, only the admin socket is opened.
        """
        self._closed, self._measures, self._traces = closed, ports.measures, traces
        self._config = config
        self._grants = grants
        self._audit = audit
        self._store_id = store_id
        self._clock = clock
        self._verified_tokens = VerifiedTokens()
        sandbox = config.sandbox
        limit = raise_descriptor_limit()
        taken = config.daemon.max_connections + config.shared.max_connections + config.tcp.max_connections
        self.listeners = Listeners(sandboxes, self._make_sandbox_server, descriptor_limit=limit - taken)
        self.issuer = GrantIssuer(
            grants,
            self.listeners,
            store_id=store_id,
            host_id=sandbox.host_id,
            secret=ports.page_secret,
            default_quota=Quota(**{name: getattr(sandbox, name) for name in Quota.__dataclass_fields__}).checked(),
            new_id=new_id,
            random_bytes=secrets.token_bytes,
        )
        self.reembedder = Reembedder(ports, clock, _tell)
        self.message_embedder = MessageEmbedder(
            ports, clock, lambda fault: log.warning("messages_not_embedded", fault=fault)
        )
        self.learners = Learners(ports, config, clock)
        table = JobTable(ports, config, self.issuer, self.learners, self.reembedder, backups)
        self.jobs = Jobs(ports, config, table.jobs(), clock)
        services = (
            MemoryService(ports),
            EntityService(ports),
            ConversationService(ports),
            NoteService(ports),
            ContextService(ports),
            IdentityService(grants, ports.policy),
            GrantService(ports, grants, self.issuer),
            AdminService(
                ports, self.issuer, self.reembedder, config.sandbox.ended_grace_days, describe, _look_up(audit), figures
            ),
            JobService(ports, self.jobs),
            ConsolidationService(ports, clock),
        )
        self._methods: Mapping[str, Method] = {
            method.path: method
            for descriptor, service in zip(SERVICES, services, strict=True)
            for method in methods_of(descriptor, service)
        }
        self._health = health.aio.HealthServicer()
        self._servers: list[grpc.aio.Server] = []
        self._leases: list[SocketLease] = []

    def gate(self, door: Door, grant_id: str = "") -> Gate:
        """Return the gate of a door."""
        authenticator = Authenticator(
            door, self._grants, store_id=self._store_id, grant_id=grant_id, verified=self._verified_tokens
        )
        most = self._config.sandbox.max_concurrent_calls
        return Gate(
            authenticator,
            self._methods,
            self._grants,
            self._audit,
            self._clock,
            secrets.token_bytes,
            most_calls=most,
            measures=self._measures,
            traces=self._traces,
        )

    def _make_sandbox_server(self, grant: Grant, address: str) -> grpc.aio.Server:
        calls = self._config.sandbox.max_concurrent_calls
        server = make_server(most_connections(grant), calls, ("grpc.max_connection_idle_ms", IDLE_MS))
        server.add_generic_rpc_handlers((self.gate(Door.SANDBOX, grant.id),))
        server.add_insecure_port(address)
        return server

    async def open(self, admin: SocketLease) -> list[str]:
        """Open every door, the admin socket last; return what went wrong with sandboxes' sockets, in words."""
        check_apart(admin.path, self._config.shared.socket)
        self.listeners.take()
        faults = [] if self._closed else await self._open_sandboxes()
        config = self._config
        server = make_server(config.daemon.max_connections, config.daemon.max_concurrent_calls, TRUSTED_STREAMS)
        server.add_generic_rpc_handlers((self.gate(Door.ADMIN),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = [descriptor.full_name for descriptor in SERVICES]
        reflection.enable_server_reflection((*names, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
        server.add_insecure_port(admin.address)
        await self._start(server)
        admin.protect()
        for name in ("", *names):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        return faults

    async def _open_sandboxes(self) -> list[str]:
        """Open the doors of sandboxes; return what went wrong with their sockets, in words."""
        faults = await self.issuer.reopen(self._clock())
        config = self._config
        calls = config.daemon.max_concurrent_calls
        if config.shared.socket:
            lease = SocketLease(Path(config.shared.socket), mode=0o666, key="shared.socket")
            self._leases.append(lease)
            server = make_server(config.shared.max_connections, calls, ("grpc.max_connection_idle_ms", IDLE_MS))
            server.add_generic_rpc_handlers((self.gate(Door.SHARED),))
            server.add_insecure_port(lease.address)
            await self._start(server)
            lease.protect()
        if config.tcp.listen:
            aging = (("grpc.max_connection_age_ms", AGE_MS), ("grpc.max_connection_age_grace_ms", AGE_GRACE_MS))
            idle = ("grpc.max_connection_idle_ms", IDLE_MS)
            server = make_server(config.tcp.max_connections, calls, idle, *aging)
            server.add_generic_rpc_handlers((self.gate(Door.TCP),))
            try:
                server.add_secure_port(config.tcp.listen, server_credentials(config))
            except RuntimeError:
                raise ConfigError(f"cannot listen on tcp.listen {config.tcp.listen}; is the port taken?") from None
            await self._start(server)
        return faults

    async def _start(self, server: grpc.aio.Server) -> None:
        self._servers.append(server)
        await server.start()

    async def stop(self, grace_s: float) -> None:
        """Take no more calls, and let those in flight finish within the grace."""
        await self._health.enter_graceful_shutdown()
        await asyncio.gather(*(server.stop(grace_s) for server in self._servers), self.issuer.close_all(grace_s))

    def let_go(self) -> None:
        """Let go of the sockets' paths, and hand over the last spans."""
        self._traces.close()
        self.listeners.let_go()
        for lease in self._leases:
            lease.close()
        self._leases.clear()
