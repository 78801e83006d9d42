"""
Every method that the daemon serves, and what it takes to call it: the one table of who may do what.

A method that a service has and the table has not stops the daemon at its start, so that nothing is ever served by
default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from google.protobuf import message_factory
from google.protobuf.message import DecodeError

from memoryd.errors import InvalidArgument, LimitExceeded, StartupError
from memoryd.model import limits
from memoryd.model.grant import Permission
from memoryd.wire.contract import writes_of
from memoryd.wire.raw import Counted, check_counts, counted

__all__ = ["IDENTITY", "RULES", "Access", "Method", "UnguardedMethod", "methods_of"]

IDENTITY = ("agent_id", "user_id", "chat_id")  # the fields by which a request says who asks


class Access(Enum):
    """What a method asks of a caller besides a permission."""

    HOST = "host"
    """The admin socket; elsewhere the method does not exist."""
    ANYBODY = "anybody"
    """To be someone, whatever the grant permits."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What it takes to call a method, and how large its request may be."""

    needs: Permission | Access
    most_bytes: int = limits.MAX_REQUEST_BYTES
    items: str = ""
    """The repeated field whose messages count as a write each, where they do not say who asks."""
    takes_every_agent: bool = False
    """Whether the host may ask it of all agents of a user at once."""


_HOST = Rule(Access.HOST)

RULES: Mapping[str, Rule] = {
    "MemoryService/AddMemory": Rule(Permission.ADD),
    "MemoryService/BatchAddMemories": Rule(Permission.ADD, most_bytes=limits.MAX_MESSAGE_BYTES),
    "MemoryService/SearchMemories": Rule(Permission.SEARCH),
    "MemoryService/ListMemories": Rule(Permission.LIST, takes_every_agent=True),
    "MemoryService/GetMemory": Rule(Permission.GET),
    "MemoryService/DeleteMemory": Rule(Permission.DELETE),
    "MemoryService/RestoreMemory": Rule(Permission.DELETE),
    "MemoryService/DeleteMemories": Rule(Permission.DELETE),
    "MemoryService/GetMemoryHistory": Rule(Permission.GET),
    "MemoryService/CorrectMemory": Rule(Permission.CORRECT),
    "MemoryService/ConfirmMemory": Rule(Permission.CORRECT),
    "MemoryService/UpdateMemory": Rule(Permission.CORRECT),
    "MemoryService/ImportMemories": Rule(Access.HOST, most_bytes=limits.MAX_MESSAGE_BYTES, items="memories"),
    "MemoryService/GetMemoryStats": Rule(Permission.STATS),
    "MemoryService/GetUserProfile": Rule(Permission.LIST),
    "MemoryService/ForgetUser": Rule(Permission.DELETE),
    "EntityService/ListPeople": Rule(Permission.LIST),
    "EntityService/GetEntity": Rule(Permission.GET),
    "EntityService/RenameEntity": Rule(Permission.CORRECT),
    "EntityService/SetEntityType": Rule(Permission.CORRECT),
    "EntityService/MergeEntities": Rule(Permission.CORRECT),
    "EntityService/UnmergeEntity": Rule(Permission.CORRECT),
    "EntityService/ForgetPerson": Rule(Permission.DELETE),
    "ConversationService/AppendMessages": Rule(
        Permission.APPEND, most_bytes=limits.MAX_MESSAGE_BYTES, items="messages"
    ),
    "ConversationService/ImportMessages": Rule(Access.HOST, most_bytes=limits.MAX_MESSAGE_BYTES, items="messages"),
    "ConversationService/ListMessages": Rule(Permission.READ_MESSAGES),
    "ConversationService/GetThread": Rule(Permission.READ_MESSAGES),
    "ConversationService/ListThreads": Rule(Permission.READ_MESSAGES),
    "ConversationService/DeleteThread": Rule(Permission.DELETE),
    "ConversationService/DeleteMessages": Rule(Permission.DELETE),
    "ConversationService/SearchMessages": Rule(Permission.SEARCH_MESSAGES),
    "ConversationService/SetSummary": Rule(Permission.SUMMARIZE),
    "ConversationService/GetSummary": Rule(Permission.READ_MESSAGES),
    "ConversationService/CompactThread": Rule(Permission.SUMMARIZE),
    "ConversationService/SetWorkingMemory": Rule(Permission.SUMMARIZE),
    "ConversationService/GetWorkingMemory": Rule(Permission.READ_MESSAGES),
    "ConversationService/StartSession": Rule(Permission.SESSIONS),
    "ConversationService/EndSession": Rule(Permission.SESSIONS),
    "ConversationService/ListSessions": Rule(Permission.READ_MESSAGES),
    "NoteService/PutNote": Rule(Permission.NOTES, most_bytes=limits.MAX_MESSAGE_BYTES),
    "NoteService/GetNote": Rule(Permission.NOTES),
    "NoteService/DeleteNote": Rule(Permission.NOTES),
    "NoteService/ListNotes": Rule(Permission.NOTES),
    "NoteService/MoveNote": Rule(Permission.NOTES),
    "NoteService/ImportNotes": Rule(Access.HOST, most_bytes=limits.MAX_MESSAGE_BYTES, items="notes"),
    "ContextService/BuildContext": Rule(Permission.CONTEXT, most_bytes=2 * limits.MAX_PROMPT_BYTES),
    "IdentityService/WhoAmI": Rule(Access.ANYBODY),
    "AdminService/GetServerInfo": _HOST,
    "AdminService/RunGc": _HOST,
    "AdminService/RunDecay": _HOST,
    "AdminService/RunEnrichment": _HOST,
    "AdminService/RunReembedding": _HOST,
    "AdminService/CompactStore": _HOST,
    "AdminService/GetMetrics": _HOST,
    "AdminService/ExportRecords": _HOST,
    "AdminService/ImportRecords": Rule(Access.HOST, most_bytes=limits.MAX_MESSAGE_BYTES),
    "AdminService/VerifyForgotten": _HOST,
    "AdminService/EraseUser": _HOST,
    "AdminService/ListOwners": _HOST,
    "AdminService/ListDeletedMemories": _HOST,
    "JobService/ListJobs": _HOST,
    "JobService/ListJobRuns": _HOST,
    "JobService/GetJobRun": _HOST,
    "JobService/RunJob": _HOST,
    "JobService/CancelJobRun": _HOST,
    "JobService/ListParkedThreads": _HOST,
    "JobService/RetryParkedThreads": _HOST,
    "ConsolidationService/ListPendingSessions": _HOST,
    "ConsolidationService/GetSessionMessages": _HOST,  # it leases the session
    "ConsolidationService/SaveFacts": Rule(Access.HOST, most_bytes=limits.MAX_MESSAGE_BYTES),
    "ConsolidationService/DetectConflicts": _HOST,
    "ConsolidationService/ResolveConflict": _HOST,
    "ConsolidationService/CompleteSession": _HOST,
    "ConsolidationService/ListProposals": _HOST,
    "ConsolidationService/ApproveProposal": _HOST,
    "ConsolidationService/RejectProposal": _HOST,
    "GrantService/OpenSandbox": _HOST,
    "GrantService/ListGrants": _HOST,
    "GrantService/RevokeGrant": _HOST,
    "GrantService/IssueToken": _HOST,
    "GrantService/InspectToken": _HOST,
    "GrantService/RotateTokenKeys": _HOST,
    "GrantService/ListGrantMemories": _HOST,
    "GrantService/DeleteGrantMemories": _HOST,
}


class UnguardedMethod(StartupError):
    """A service has a method that no rule is written for."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method, ready to be called."""

    path: str
    name: str
    rule: Rule
    request: type[Any]
    run: Callable[[Any, Any], Coroutine[Any, Any, Any]]
    writes: bool
    """Whether it changes anything that lasts, as the contract says by its idempotency level."""
    names_caller: bool
    """Whether the request says who asks."""
    items: str
    """The repeated field whose messages count as a write each, and may say who asks too; empty: none."""
    counted: Mapping[int, Counted]
    """How much of what a request may hold, by the numbers of its fields."""

    def parse(self, raw: bytes) -> Any:
        """
        Return the request of these bytes; LimitExceeded before anything is made of more than a request may hold.

        A few bytes an item become a kilobyte each in memory, so all lists are counted before they are read.
        """
        if len(raw) > self.rule.most_bytes:
            raise LimitExceeded(
                f"the request has {len(raw)} bytes; the limit is {self.rule.most_bytes}", limit="request_bytes"
            )
        check_counts(raw, self.counted)
        try:
            return self.request.FromString(raw)
        except (DecodeError, UnicodeDecodeError):
            raise InvalidArgument("the request is not the message that this method takes") from None

    def weight(self, request: Any) -> int:
        """
        Return how many writes a request is: one for each of its items, and at least one for each 16 KiB.

        What is written and erased again stays in backups: so it is bounded by its size too.
        """
        if not self.writes:
            return 0
        items = len(getattr(request, self.items)) if self.items else 1
        return max(items, math.ceil(int(request.ByteSize()) / limits.BYTES_A_WRITE))


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
        rule = rules[f"{descriptor.name}/{method.name}"]
        items = [rule.items] if rule.items else items
        most = {"tool_calls": limits.MAX_TOOL_CALLS} | dict.fromkeys(items, limits.MAX_BATCH)
        yield Method(
            f"/{descriptor.full_name}/{method.name}",
            method.name,
            rule,
            message_factory.GetMessageClass(message),
            getattr(service, method.name),
            writes_of(method),
            _names_caller(message),
            items=items[0] if items else "",
            counted=counted(message, most),
        )
