"""What the tests of one subject share."""

from __future__ import annotations

import os

import grpc
from google.protobuf import message_factory
from memory_client import Memory, MemoryClient

from memoryd.daemon.servers import SERVICES
from tests.doors import World, socket_of
from tests.support import PATIENCE_S, reason_of

METHODS = {f"{service.name}/{method.name}": (service, method) for service in SERVICES for method in service.methods}


def own(world: World) -> Memory:
    """A memory about a new person, of the trust that a sandbox has, in a slot of its own each time."""
    name = "".join(chr(97 + byte % 26) for byte in os.urandom(8)).capitalize()
    with MemoryClient(socket_of(world.sandbox())) as memory:
        return memory.add(f"my friend {name} {name}son likes tea").memory


OK = ("OK", "")
DENIED = ("PERMISSION_DENIED", "PERMISSION_DENIED")
MISMATCH = ("PERMISSION_DENIED", "SCOPE_MISMATCH")
NOBODY = ("UNAUTHENTICATED", "UNAUTHENTICATED")
ABSENT = ("UNIMPLEMENTED", "")


def ask(channel: grpc.Channel, name: str, fields: dict, token: str = "") -> tuple[str, str]:
    """Call a method and return code and reason."""
    service, method = METHODS[name]
    request = message_factory.GetMessageClass(method.input_type)(**fields)
    return ask_raw(channel, f"/{service.full_name}/{method.name}", request.SerializeToString(), token)


def ask_raw(channel: grpc.Channel, path: str, raw: bytes, token: str = "") -> tuple[str, str]:
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    try:
        channel.unary_unary(path)(raw, timeout=PATIENCE_S, metadata=metadata)
    except grpc.RpcError as error:
        return error.code().name, reason_of(error)
    return OK
