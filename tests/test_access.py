"""Who may do what: every RPC, asked for by every kind of caller, at every door."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from google.protobuf import message_factory
from memory_client import Caveats, MemoryClient, MessageDraft, Permission, attenuate
from memory_client.calls import Call

from memoryd.model import token as tokens
from memoryd.service.methods import RULES, UnguardedMethod, methods_of
from memoryd.v1 import admin_service_pb2, entity_service_pb2, error_reason_pb2
from memoryd.wire.contract import writes_of
from tests.access_helpers import ABSENT, DENIED, METHODS, MISMATCH, NEEDS, NOBODY, OK, ask, own
from tests.doors import World, socket_of
from tests.support import PATIENCE_S

# A request that succeeds for whoever may send it.
NUMBERS = itertools.count()
REQUESTS: dict[str, Callable[[World], dict]] = {
    "MemoryService/AddMemory": lambda w: {"content": "tea"},
    "MemoryService/BatchAddMemories": lambda w: {"requests": [{"content": "tea"}, {"content": "coffee"}]},
    "MemoryService/SearchMemories": lambda w: {"query": "tea"},
    "MemoryService/ListMemories": lambda w: {},
    "MemoryService/GetMemory": lambda w: {"id": stored(w)},
    "MemoryService/DeleteMemory": lambda w: {"id": stored(w)},
    "MemoryService/RestoreMemory": lambda w: {"id": stored(w)},
    "MemoryService/DeleteMemories": lambda w: {"text": "nothing has this"},
    "MemoryService/GetMemoryHistory": lambda w: {"id": stored(w)},
    "MemoryService/CorrectMemory": lambda w: {"id": own(w).id, "content": "said better"},
    "MemoryService/ConfirmMemory": lambda w: {"id": own(w).id},
    "MemoryService/UpdateMemory": lambda w: {"id": own(w).id, "update_mask": {"paths": ["tags"]}},
    "MemoryService/GetMemoryStats": lambda w: {},
    "MemoryService/GetUserProfile": lambda w: {},
    "MemoryService/ForgetUser": lambda w: {"dry_run": True},
    "EntityService/ListPeople": lambda w: {},
    "EntityService/GetEntity": lambda w: {"name": own(w).entities[0].id},
    "EntityService/RenameEntity": lambda w: {"name": own(w).entities[0].id, "new_name": f"Zoe {next(NUMBERS)}"},
    "EntityService/SetEntityType": lambda w: {"name": own(w).entities[0].id, "type": "ENTITY_TYPE_PERSON"},
    "EntityService/MergeEntities": lambda w: {"name": own(w).entities[0].id, "into": own(w).entities[0].id},
    "EntityService/UnmergeEntity": lambda w: {"id": merged(w)},
    "EntityService/ForgetPerson": lambda w: {"name": own(w).entities[0].id},
    "ConversationService/AppendMessages": lambda w: {"thread_id": "t", "messages": [{"content": "hello"}]},
    "ConversationService/ListMessages": lambda w: {"thread_id": spoken(w)},
    "ConversationService/GetThread": lambda w: {"thread_id": spoken(w)},
    "ConversationService/ListThreads": lambda w: {},
    "ConversationService/DeleteThread": lambda w: {"thread_id": spoken(w)},
    "ConversationService/DeleteMessages": lambda w: {"thread_id": spoken(w), "after_seq": 0},
    "ConversationService/SearchMessages": lambda w: {"query": "tea"},
    "ConversationService/SetSummary": lambda w: {"thread_id": spoken(w), "summary": "tea was spoken of"},
    "ConversationService/GetSummary": lambda w: {"thread_id": spoken(w)},
    "ConversationService/CompactThread": lambda w: {"thread_id": spoken(w)},
    "ConversationService/SetWorkingMemory": lambda w: {"thread_id": spoken(w), "text": "tea"},
    "ConversationService/GetWorkingMemory": lambda w: {},
    "ConversationService/StartSession": lambda w: {"thread_id": spoken(w)},
    "ConversationService/EndSession": lambda w: {"thread_id": spoken(w)},
    "ConversationService/ListSessions": lambda w: {},
    "NoteService/PutNote": lambda w: {"path": f"note {next(NUMBERS)}", "text": "tea"},
    "NoteService/GetNote": lambda w: {"path": noted(w)},
    "NoteService/DeleteNote": lambda w: {"path": noted(w)},
    "NoteService/ListNotes": lambda w: {},
    "MemoryService/ImportMemories": lambda w: {
        "import_id": "i",
        "memories": [{"memory": {"content": f"number {next(NUMBERS)} is mine"}, "external_id": "1"}],
    },
    "ConversationService/ImportMessages": lambda w: {
        "thread_id": "imported",
        "messages": [{"content": "a message", "id": f"m{next(NUMBERS)}"}],
    },
    "NoteService/ImportNotes": lambda w: {"notes": [{"path": f"imported/{next(NUMBERS)}", "text": "a note"}]},
    "NoteService/MoveNote": lambda w: {"path": noted(w), "new_path": f"moved {next(NUMBERS)}"},
    "ContextService/BuildContext": lambda w: {"prompt": "tea"},
    "IdentityService/WhoAmI": lambda w: {},
    "GrantService/OpenSandbox": lambda w: {"spec": {"user_id": "alice", "permissions": ["search"]}},
    "GrantService/ListGrants": lambda w: {},
    "GrantService/RevokeGrant": lambda w: {"grant_id": w.sandbox().grant.id},
    "GrantService/IssueToken": lambda w: {"spec": {"user_id": "alice", "permissions": ["search"]}},
    "GrantService/InspectToken": lambda w: {"token": w.token()},
    "GrantService/RotateTokenKeys": lambda w: {},
    "GrantService/ListGrantMemories": lambda w: {"grant_id": w.sandbox().grant.id},
    "GrantService/DeleteGrantMemories": lambda w: {"grant_id": w.sandbox().grant.id},
    "AdminService/GetServerInfo": lambda w: {},
    "AdminService/RunGc": lambda w: {},
    "AdminService/RunDecay": lambda w: {},
    "AdminService/RunEnrichment": lambda w: {},
    "AdminService/RunReembedding": lambda w: {},
    "AdminService/CompactStore": lambda w: {},
    "AdminService/GetMetrics": lambda w: {},
    "AdminService/ExportRecords": lambda w: {},
    "AdminService/ImportRecords": lambda w: {},
    "AdminService/VerifyForgotten": lambda w: {"id": "a" * 26},
    "AdminService/EraseUser": lambda w: {"user_id": "nobody"},
    "AdminService/ListOwners": lambda w: {},
    "AdminService/ListDeletedMemories": lambda w: {"user_id": "nobody"},
    "JobService/ListJobs": lambda w: {},
    "JobService/ListJobRuns": lambda w: {},
    "JobService/GetJobRun": lambda w: {"id": a_run(w)},
    "JobService/RunJob": lambda w: {"job": "decay"},
    "JobService/CancelJobRun": lambda w: {"id": a_run(w)},
    "JobService/ListParkedThreads": lambda w: {},
    "JobService/RetryParkedThreads": lambda w: {},
    "ConsolidationService/ListPendingSessions": lambda w: {},
    "ConsolidationService/GetSessionMessages": lambda w: {"session": over(w)[0], "worker": "w"},
    "ConsolidationService/SaveFacts": lambda w: {"worker": "w", **learnt(w)},
    "ConsolidationService/DetectConflicts": lambda w: {"scope": {"user_id": "alice"}, "id": own(w).id},
    "ConsolidationService/ResolveConflict": lambda w: {
        "scope": {"user_id": "alice"},
        "id": own(w).id,
        "other_id": own(w).id,
        "resolution": 2,
    },
    "ConsolidationService/CompleteSession": lambda w: {"session": over(w)[0], "worker": "w"},
    "ConsolidationService/ListProposals": lambda w: {},
    "ConsolidationService/ApproveProposal": lambda w: {"id": waiting(w)},
    "ConsolidationService/RejectProposal": lambda w: {"id": waiting(w)},
}


def stored(world: World) -> str:
    with world.admin() as host:
        return host.add("something of alice's to look at").memory.id


def merged(world: World) -> str:
    one, two = own(world).entities[0].id, own(world).entities[0].id
    with MemoryClient(socket_of(world.sandbox())) as memory:
        return memory.merge_entities(one, two).merged_id


def spoken(world: World) -> str:
    """A thread of alice's, of the trust that a sandbox has."""
    thread_id = f"talk {next(NUMBERS)}"
    with MemoryClient(socket_of(world.sandbox())) as memory:
        memory.append(thread_id, MessageDraft(content="I like tea"))
    return thread_id


def noted(world: World) -> str:
    """A note of alice's, of the trust that a sandbox has."""
    path = f"note {next(NUMBERS)}"
    with MemoryClient(socket_of(world.sandbox())) as memory:
        memory.put_note(path, "I like tea")
    return path


def a_run(world: World) -> str:
    with world.admin() as host:
        return host.run_job("enrichment", dry_run=True).id


def over(world: World) -> tuple[dict, str]:
    """A session of alice's that has ended, and a message of it."""
    thread_id = f"over {next(NUMBERS)}"
    with world.admin(user_id="alice") as host:
        done = host.append(thread_id, MessageDraft(content="I like tea"), session_id="s")
        host.end_session(thread_id)
    return {"scope": {"user_id": "alice"}, "thread_id": thread_id, "session_id": "s"}, done.messages[0].id


def waiting(world: World) -> str:
    """Something that was learnt, and waits to be approved: of the agent of whom that is asked."""
    said, until = f"I have {next(NUMBERS) + 2} brothers", time.monotonic() + PATIENCE_S
    with world.admin() as host, host.acting_for(user_id="alice", agent_id="reviewed") as reviewed:
        reviewed.append("talk", MessageDraft(content=said))
        while time.monotonic() < until:  # a run may find that the daemon itself is at it
            run = host.run_job("extraction")
            while host.job_run(run.id).end_time is None:
                time.sleep(0.02)
            for proposal in reviewed.proposals(agent_id="reviewed", page_size=1000):
                if proposal.content == said:
                    return proposal.id
    raise AssertionError(f"nothing waits: {said}")


def learnt(world: World) -> dict:
    session, message_id = over(world)
    return {"session": session, "facts": [{"content": "tea", "message_ids": [message_id]}]}


def test_every_rpc_has_a_row():
    assert set(METHODS) == set(NEEDS) == set(REQUESTS) == set(RULES)


def test_a_method_without_a_rule_stops_the_daemon_at_its_start():
    service = admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"]
    rules = {name: rule for name, rule in RULES.items() if name != "AdminService/RunGc"}
    with pytest.raises(UnguardedMethod, match="AdminService serves RunGc without a rule"):
        list(methods_of(service, object(), rules))


IMPORTS = {"MemoryService/ImportMemories", "ConversationService/ImportMessages", "NoteService/ImportNotes"}
ACTING_FOR = {*IMPORTS, "AdminService/ListDeletedMemories"}
"""What the host alone does, for someone."""


def test_whatever_needs_a_permission_says_who_asks():
    for name, (_, method) in METHODS.items():
        names_caller = {"agent_id", "user_id", "chat_id"} <= set(method.input_type.fields_by_name)
        assert names_caller == (NEEDS[name] != "host" or name in ACTING_FOR), name


def test_whatever_changes_something_is_marked_so():
    changing = {name for name, (_, method) in METHODS.items() if writes_of(method)}
    assert changing == {
        "MemoryService/AddMemory", "MemoryService/BatchAddMemories", "MemoryService/DeleteMemory",
        "MemoryService/RestoreMemory", "MemoryService/DeleteMemories", "MemoryService/CorrectMemory",
        "MemoryService/ConfirmMemory", "MemoryService/UpdateMemory", *IMPORTS,
        "EntityService/RenameEntity", "EntityService/SetEntityType",
        "EntityService/MergeEntities", "EntityService/UnmergeEntity", "EntityService/ForgetPerson",
        "AdminService/RunDecay", "ConsolidationService/GetSessionMessages", "ConsolidationService/SaveFacts",
        "ConsolidationService/ApproveProposal", "ConsolidationService/RejectProposal",
        "ConsolidationService/ResolveConflict", "ConsolidationService/CompleteSession",
        "JobService/RunJob", "JobService/CancelJobRun", "JobService/RetryParkedThreads",
        "AdminService/RunEnrichment", "AdminService/RunReembedding", "AdminService/CompactStore",
        "AdminService/ImportRecords",
        "AdminService/RunGc", "GrantService/OpenSandbox", "GrantService/RevokeGrant",
        "GrantService/IssueToken", "GrantService/RotateTokenKeys", "GrantService/DeleteGrantMemories",
        "ConversationService/AppendMessages", "ConversationService/DeleteThread", "ConversationService/SetSummary",
        "ConversationService/DeleteMessages",
        "NoteService/PutNote",
        "NoteService/DeleteNote",
        "NoteService/MoveNote",
        "ConversationService/CompactThread", "ConversationService/SetWorkingMemory",
        "ConversationService/StartSession", "ConversationService/EndSession",
        "MemoryService/ForgetUser", "AdminService/EraseUser",
    }  # fmt: skip


def test_the_client_knows_what_writes():
    for name, (_, method) in METHODS.items():
        request = message_factory.GetMessageClass(method.input_type)()
        assert writes_of(method) == Call(*name.split("/"), request, None, bool).writes, name
    asked = entity_service_pb2.ForgetPersonRequest
    assert not Call("EntityService", "ForgetPerson", asked(dry_run=True), None, bool).writes


GONE = ("UNAVAILABLE", "")
TOO_LOW = ("PERMISSION_DENIED", "TRUST_TOO_LOW")


@dataclass
class Caller:
    """Where a kind of caller knocks, what it shows and says, and what it gets for what it asks for."""

    endpoint: str
    expected: Callable[[str], tuple[str, str]]
    token: str = ""
    says: dict[str, str] | None = None


def holding(*permissions: str) -> Callable[[str], tuple[str, str]]:
    held = {"anybody", *permissions}
    return lambda need: OK if need in held else ABSENT if need == "host" else DENIED


def always(outcome: tuple[str, str]) -> Callable[[str], tuple[str, str]]:
    """The same for everything but what the door does not have."""
    return lambda need: ABSENT if need == "host" else outcome


READING = ("search", "list", "get", "stats", "context", "read_messages", "search_messages")
FULL = (*READING, "add", "correct", "delete", "append", "summarize", "sessions", "notes")


def ended(world: World) -> str:
    token = world.token()
    with world.admin() as host:
        host.revoke_grant(host.inspect_token(token).grant.id)
    return token


def expired(world: World) -> str:
    """A token whose time was over before it is used: its holder has set the end."""
    return attenuate(world.token(), Caveats(expire_time=datetime.now(UTC) - timedelta(seconds=1)))


def forged(world: World) -> str:
    """A genuine token of search, in which somebody has written more, signed with a key of his own."""
    found = tokens.parse_token(world.token("search"))
    return tokens.mint(found.key_id, b"guess" * 8, found.grant_id, found.token_id).text()


def stripped(world: World) -> str:
    """A narrowed token without its caveat."""
    found = tokens.parse_token(attenuate(world.token(), Caveats(permissions=frozenset({Permission.SEARCH}))))
    return tokens.Token(found.key_id, found.grant_id, found.token_id, (), found.signature).text()


def closed(world: World) -> str:
    sandbox = world.sandbox()
    with world.admin() as host:
        host.revoke_grant(sandbox.grant.id)
    return socket_of(sandbox)


def only_search(world: World) -> str:
    return attenuate(world.token(), Caveats(permissions=frozenset({Permission.SEARCH})))


CALLERS: dict[str, Callable[[World], Caller]] = {
    "admin": lambda w: Caller(w.daemon.endpoint, lambda need: OK, says={"user_id": "alice"}),
    "admin with a token": lambda w: Caller(
        w.daemon.endpoint, lambda need: DENIED if need == "host" else holding("search")(need), w.token("search")
    ),
    "sandbox read-only": lambda w: Caller(socket_of(w.sandbox("read-only")), holding(*READING)),
    "sandbox append-only": lambda w: Caller(
        socket_of(w.sandbox("append-only")), holding(*READING, "add", "append", "sessions")
    ),
    "sandbox full": lambda w: Caller(socket_of(w.sandbox("full")), holding(*FULL)),
    "sandbox that says who it is": lambda w: Caller(
        socket_of(w.sandbox()), holding(*FULL), says={"user_id": "alice", "chat_id": "c1", "agent_id": "default"}
    ),
    "sandbox as another user": lambda w: Caller(socket_of(w.sandbox()), always(MISMATCH), says={"user_id": "bob"}),
    "sandbox in another chat": lambda w: Caller(socket_of(w.sandbox()), always(MISMATCH), says={"chat_id": "c2"}),
    "sandbox as another agent": lambda w: Caller(socket_of(w.sandbox()), always(MISMATCH), says={"agent_id": "x"}),
    "sandbox of a chat, as a user": lambda w: Caller(
        socket_of(w.sandbox(user_id="")), always(MISMATCH), says={"user_id": "alice"}
    ),
    "sandbox that was closed": lambda w: Caller(closed(w), lambda need: GONE),
    "token over the shared socket": lambda w: Caller(w.shared, holding(*FULL), w.token()),
    "token over TCP": lambda w: Caller(w.tcp, holding(*READING), w.token("read-only")),
    "token as another user": lambda w: Caller(w.tcp, always(MISMATCH), w.token(), {"user_id": "bob"}),
    "token attenuated": lambda w: Caller(w.tcp, holding("search"), only_search(w)),
    "token attenuated to no chat, naming one": lambda w: Caller(
        w.tcp, always(MISMATCH), attenuate(w.token(), Caveats(chat_ids=frozenset())), {"chat_id": "c1"}
    ),
    "token expired": lambda w: Caller(w.shared, always(NOBODY), expired(w)),
    "token revoked": lambda w: Caller(w.tcp, always(NOBODY), ended(w)),
    "token forged": lambda w: Caller(w.tcp, always(NOBODY), forged(w)),
    "token stripped of its caveat": lambda w: Caller(w.tcp, always(NOBODY), stripped(w)),
    "token of another memoryd": lambda w: Caller(w.tcp, always(NOBODY), attenuate(w.token(), Caveats(audience="x"))),
    "token for the shared socket, over TCP": lambda w: Caller(w.tcp, always(NOBODY), w.token(via="shared")),
    "token for TCP, over the shared socket": lambda w: Caller(w.shared, always(NOBODY), w.token(via="tcp")),
    "token of another grant, in a sandbox": lambda w: Caller(socket_of(w.sandbox()), always(NOBODY), w.token()),
    "rubbish for a token": lambda w: Caller(w.shared, always(NOBODY), "rubbish"),
    "nobody at the shared socket": lambda w: Caller(w.shared, always(NOBODY)),
    "nobody over TCP": lambda w: Caller(w.tcp, always(NOBODY)),
}


@pytest.mark.parametrize("kind", CALLERS)
def test_every_rpc_for_every_kind_of_caller(world, kind):
    caller = CALLERS[kind](world)
    channel = world.channel(caller.endpoint)

    def answer_to(name: str) -> tuple[str, str]:
        found = ask(channel, name, requests[name], caller.token)
        if found == TOO_LOW and name == "MemoryService/ForgetUser":
            return OK  # it was let in; the user has memories of the host
        return found

    expected = {name: caller.expected(NEEDS[name]) for name in METHODS}
    requests = {}
    for name, (_, method) in METHODS.items():
        requests[name] = REQUESTS[name](world)
        if (NEEDS[name] != "host" or name in ACTING_FOR) and "user_id" in method.input_type.fields_by_name:
            requests[name] |= caller.says or {}
    refused = [name for name in METHODS if expected[name] != OK]
    with ThreadPoolExecutor(6) as pool:  # as each refusal takes its time
        found = dict(zip(refused, pool.map(answer_to, refused), strict=True))
    assert expected == found | {name: answer_to(name) for name in METHODS if name not in found}


def test_every_reason_of_the_table_is_one_of_the_contract():
    known = set(error_reason_pb2.ErrorReason.keys())
    for _, reason in (DENIED, MISMATCH, NOBODY):
        assert f"ERROR_REASON_{reason}" in known
