"""A daemon with every door open, and callers of every kind at them."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import trustme
from memory_client import Credentials, GrantSpec, GrantStatus, MemoryClient, check_permissions

from tests.support import PATIENCE_S, Daemon, running

NO_MODEL = '[embedding]\nprovider = "none"\n[metrics]\nenabled = true\n'


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class World:
    """A running daemon with a shared socket and TCP, and what is needed to get in."""

    daemon: Daemon
    shared: str
    tcp: str
    ca_file: str
    channels: list[grpc.Channel] = field(default_factory=list)

    def admin(self, user_id: str = "alice", chat_id: str = "") -> MemoryClient:
        return self.daemon.client(user_id, chat_id)

    def sandbox(self, *allow: str, user_id: str = "alice", chat_ids=("c1",), **more) -> GrantStatus:
        """Open the socket of a sandbox."""
        with self.admin() as host:
            return host.open_sandbox(spec(*allow, user_id=user_id, chat_ids=chat_ids, **more))

    def token(self, *allow: str, via: str = "", expire_time=None, user_id="alice", chat_ids=("c1",), **more) -> str:
        """Issue a token of a grant of its own."""
        given = spec(*allow, user_id=user_id, chat_ids=chat_ids, **more)
        with self.admin() as host:
            return host.issue_token(given, via=via, expire_time=expire_time).token

    def client(self, endpoint: str, token: str = "", **identity) -> MemoryClient:
        """A client as a sandbox has it, which says nothing of who it is unless it is told to."""
        said = {"user_id": "", "chat_id": "", "agent_id": "", "timeout_s": PATIENCE_S, **identity}
        shown = Credentials(token=token, ca_file=self.ca_file)
        return MemoryClient(endpoint, credentials=shown, wait_for_ready=False, **said)

    def inside(self, sandbox: GrantStatus, token: str = "", **identity) -> MemoryClient:
        """A client on the socket of a sandbox."""
        return self.client(socket_of(sandbox), token, **identity)

    def channel(self, endpoint: str) -> grpc.Channel:
        """A bare channel to a door; closed with the world."""
        if endpoint.startswith("unix:"):
            channel = grpc.insecure_channel(endpoint.replace("unix://", "unix:"))
        else:
            channel = grpc.secure_channel(endpoint, grpc.ssl_channel_credentials(Path(self.ca_file).read_bytes()))
        self.channels.append(channel)
        return channel


def spec(*allow: str, **more) -> GrantSpec:
    return GrantSpec(permissions=check_permissions(allow or ("full",)), **more)


def socket_of(sandbox: GrantStatus) -> str:
    return f"unix://{sandbox.directory}/memory.sock"


@contextmanager
def a_world(folder: Path, *, config: str = NO_MODEL, client_ca: bool = False, **options):
    """A daemon with all doors; by default without a model, so that it starts at once."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    files = {name: folder / f"{name}.pem" for name in ("ca", "cert", "key")}
    authority.cert_pem.write_to_path(str(files["ca"]))
    certificate.cert_chain_pems[0].write_to_path(str(files["cert"]))
    certificate.private_key_pem.write_to_path(str(files["key"]))
    tcp = f"127.0.0.1:{free_port()}"
    shared = folder / "shared" / "memory.sock"
    asks = f'client_ca_file = "{files["ca"]}"\n' if client_ca else ""
    doors = (
        f'[shared]\nsocket = "{shared}"\n[tcp]\nlisten = "{tcp}"\ncertificate_file = "{files["cert"]}"\n'
        f'key_file = "{files["key"]}"\n{asks}[agents.reviewed.memory]\nextraction_review = true\n'
    )
    with running(folder, config=config + doors, **options) as daemon:
        world = World(daemon, f"unix://{shared}", tcp, str(files["ca"]))
        try:
            yield world
        finally:
            for channel in world.channels:
                channel.close()
