"""
Every method that the daemon serves, and what it takes to call it: the one table of who may do what.

A method that a service has and the table has not stops the daemon at its start, so that nothing is ever served by
default.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from google.protobuf import message_factory

from memoryd.grant import Permission
from memoryd.refusal import Refusal

__all__ = ["IDENTITY", "RULES", "Access", "Method", "UnguardedMethod", "methods_of"]

IDENTITY = ("agent_id", "user_id", "chat_id")  # the fields by which a request says who asks


class Access(Enum):
    """What a method asks of a caller beside a permission."""

    HOST = "host"
    """The admin socket; elsewhere the method does not exist."""
    ANYBODY = "anybody"
    """To be somebody, whatever the grant permits."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What it takes to call a method, and whether it changes anything that lasts."""

    needs: Permission | Access
    writes: bool = False


_HOST = Rule(Access.HOST)
_HOST_WRITES = Rule(Access.HOST, writes=True)

RULES: Mapping[str, Rule] = {
    "MemoryService/AddMemory": Rule(Permission.ADD, writes=True),
    "MemoryService/BatchAddMemories": Rule(Permission.ADD, writes=True),
    "MemoryService/SearchMemories": Rule(Permission.SEARCH),
    "MemoryService/ListMemories": Rule(Permission.LIST),
    "MemoryService/GetMemory": Rule(Permission.GET),
    "MemoryService/DeleteMemory": Rule(Permission.DELETE, writes=True),
    "MemoryService/RestoreMemory": Rule(Permission.DELETE, writes=True),
    "MemoryService/GetMemoryStats": Rule(Permission.STATS),
    "ContextService/BuildContext": Rule(Permission.CONTEXT),
    "IdentityService/WhoAmI": Rule(Access.ANYBODY),
    "AdminService/GetServerInfo": _HOST,
    "AdminService/RunGc": _HOST_WRITES,
    "GrantService/OpenSandbox": _HOST_WRITES,
    "GrantService/ListGrants": _HOST,
    "GrantService/RevokeGrant": _HOST_WRITES,
    "GrantService/IssueToken": _HOST_WRITES,
    "GrantService/InspectToken": _HOST,
    "GrantService/RotateTokenKeys": _HOST_WRITES,
    "GrantService/ListGrantMemories": _HOST,
    "GrantService/DeleteGrantMemories": _HOST_WRITES,
}


class UnguardedMethod(Refusal):
    """A service has a method that no rule is written for."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method, ready to be called."""

    path: str
    name: str
    rule: Rule
    request: type[Any]
    run: Callable[[Any, Any], Awaitable[Any]]
    names_caller: bool
    """Whether the request says who asks."""
    items: str
    """The repeated field whose messages say so too; empty: none."""

    def weight(self, request: Any) -> int:
        """Return how many writes a request is."""
        if not self.rule.writes:
            return 0
        return len(getattr(request, self.items)) if self.items else 1


def _names_caller(message: Any) -> bool:
    return set(IDENTITY) <= set(message.fields_by_name)


def methods_of(descriptor: Any, service: Any, rules: Mapping[str, Rule] = RULES) -> Iterable[Method]:
    """Yield the methods of a service by its descriptor; UnguardedMethod names those without a rule."""
    unguarded = [method.name for method in descriptor.methods if f"{descriptor.name}/{method.name}" not in rules]
    if unguarded:
        raise UnguardedMethod(f"{descriptor.name} serves {', '.join(unguarded)} without a rule of who may call it")
    for method in descriptor.methods:
        message = method.input_type
        items = [
            field.name
            for field in message.fields
            if field.is_repeated and field.message_type is not None and _names_caller(field.message_type)
        ]
        yield Method(
            f"/{descriptor.full_name}/{method.name}",
            method.name,
            rules[f"{descriptor.name}/{method.name}"],
            message_factory.GetMessageClass(message),
            getattr(service, method.name),
            _names_caller(message),
            items[0] if items else "",
        )
