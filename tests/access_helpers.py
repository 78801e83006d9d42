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

# What each method asks for, said a second time: by the contract, not by the table under test.
NEEDS = {
    "MemoryService/AddMemory": "add",
    "MemoryService/BatchAddMemories": "add",
    "MemoryService/SearchMemories": "search",
    "MemoryService/ListMemories": "list",
    "MemoryService/GetMemory": "get",
    "MemoryService/DeleteMemory": "delete",
    "MemoryService/RestoreMemory": "delete",
    "MemoryService/DeleteMemories": "delete",
    "MemoryService/GetMemoryHistory": "get",
    "MemoryService/CorrectMemory": "correct",
    "MemoryService/ConfirmMemory": "correct",
    "MemoryService/UpdateMemory": "correct",
    "MemoryService/ImportMemories": "host",
    "MemoryService/GetMemoryStats": "stats",
    "MemoryService/GetUserProfile": "list",
    "MemoryService/ForgetUser": "delete",
    "EntityService/ListPeople": "list",
    "EntityService/GetEntity": "get",
    "EntityService/RenameEntity": "correct",
    "EntityService/SetEntityType": "correct",
    "EntityService/MergeEntities": "correct",
    "EntityService/UnmergeEntity": "correct",
    "EntityService/ForgetPerson": "delete",
    "ConversationService/AppendMessages": "append",
    "ConversationService/ImportMessages": "host",
    "ConversationService/ListMessages": "read_messages",
    "ConversationService/GetThread": "read_messages",
    "ConversationService/ListThreads": "read_messages",
    "ConversationService/DeleteThread": "delete",
    "ConversationService/DeleteMessages": "delete",
    "ConversationService/SearchMessages": "search_messages",
    "ConversationService/SetSummary": "summarize",
    "ConversationService/GetSummary": "read_messages",
    "ConversationService/CompactThread": "summarize",
    "ConversationService/SetWorkingMemory": "summarize",
    "ConversationService/GetWorkingMemory": "read_messages",
    "ConversationService/StartSession": "sessions",
    "ConversationService/EndSession": "sessions",
    "ConversationService/ListSessions": "read_messages",
    "NoteService/PutNote": "notes",
    "NoteService/GetNote": "notes",
    "NoteService/DeleteNote": "notes",
    "NoteService/ListNotes": "notes",
    "NoteService/MoveNote": "notes",
    "NoteService/ImportNotes": "host",
    "ContextService/BuildContext": "context",
    "IdentityService/WhoAmI": "anybody",
    "GrantService/OpenSandbox": "host",
    "GrantService/ListGrants": "host",
    "GrantService/RevokeGrant": "host",
    "GrantService/IssueToken": "host",
    "GrantService/InspectToken": "host",
    "GrantService/RotateTokenKeys": "host",
    "GrantService/ListGrantMemories": "host",
    "GrantService/DeleteGrantMemories": "host",
    "AdminService/GetServerInfo": "host",
    "AdminService/RunGc": "host",
    "AdminService/RunDecay": "host",
    "AdminService/RunEnrichment": "host",
    "AdminService/RunReembedding": "host",
    "AdminService/CompactStore": "host",
    "AdminService/GetMetrics": "host",
    "AdminService/ExportRecords": "host",
    "AdminService/ImportRecords": "host",
    "AdminService/VerifyForgotten": "host",
    "AdminService/EraseUser": "host",
    "AdminService/ListOwners": "host",
    "AdminService/ListDeletedMemories": "host",
    "JobService/ListJobs": "host",
    "JobService/ListJobRuns": "host",
    "JobService/GetJobRun": "host",
    "JobService/RunJob": "host",
    "JobService/CancelJobRun": "host",
    "JobService/ListParkedThreads": "host",
    "JobService/RetryParkedThreads": "host",
    "ConsolidationService/ListPendingSessions": "host",
    "ConsolidationService/GetSessionMessages": "host",
    "ConsolidationService/SaveFacts": "host",
    "ConsolidationService/DetectConflicts": "host",
    "ConsolidationService/ResolveConflict": "host",
    "ConsolidationService/CompleteSession": "host",
    "ConsolidationService/ListProposals": "host",
    "ConsolidationService/ApproveProposal": "host",
    "ConsolidationService/RejectProposal": "host",
}


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
