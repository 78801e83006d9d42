"""Who may do what over HTTP: every RPC, asked for by every kind of caller, in JSON and in binary."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx
import pytest
from google.protobuf import json_format, message_factory
from memory_client import Caveats, Permission, attenuate

from memoryd.http.door import methods
from tests.access_helpers import ABSENT, DENIED, METHODS, MISMATCH, NEEDS, NOBODY, OK
from tests.doors import World
from tests.http_helpers import BINARY, JSON, Caller
from tests.support import PATIENCE_S
from tests.test_access import ACTING_FOR, FULL, READING, REQUESTS, TOO_LOW, ended, expired, forged, stripped

SERVED = {method.path.removeprefix("/memoryd.v1.") for method in methods()}


def holding(*permissions: str) -> Callable[[str], tuple[str, str]]:
    held = {"anybody", *permissions}
    return lambda need: OK if need in held else ABSENT if need == "host" else DENIED


def always(outcome: tuple[str, str]) -> Callable[[str], tuple[str, str]]:
    return lambda need: ABSENT if need == "host" else outcome


@dataclass
class Kind:
    """A kind of caller: its token, what it says of itself, and what it gets."""

    token: Callable[[World], str]
    expected: Callable[[str], tuple[str, str]]
    says: dict[str, str] | None = None


KINDS = {
    "full": Kind(lambda w: w.token("full"), holding(*FULL)),
    "read-only": Kind(lambda w: w.token("read-only"), holding(*READING)),
    "that says who it is": Kind(
        lambda w: w.token(), holding(*FULL), {"user_id": "alice", "chat_id": "c1", "agent_id": "default"}
    ),
    "as another user": Kind(lambda w: w.token(), always(MISMATCH), {"user_id": "bob"}),
    "in another chat": Kind(lambda w: w.token(), always(MISMATCH), {"chat_id": "c2"}),
    "as another agent": Kind(lambda w: w.token(), always(MISMATCH), {"agent_id": "x"}),
    "attenuated": Kind(
        lambda w: attenuate(w.token(), Caveats(permissions=frozenset({Permission.SEARCH}))), holding("search")
    ),
    "for the shared socket": Kind(lambda w: w.token(via="shared"), holding(*FULL)),
    "for TCP": Kind(lambda w: w.token(via="tcp"), always(NOBODY)),
    "expired": Kind(expired, always(NOBODY)),
    "revoked": Kind(ended, always(NOBODY)),
    "forged": Kind(forged, always(NOBODY)),
    "stripped of its caveat": Kind(stripped, always(NOBODY)),
    "rubbish": Kind(lambda _: "rubbish", always(NOBODY)),
    "none": Kind(lambda _: "", always(NOBODY)),
}


def test_what_a_sandbox_may_call_is_served_and_nothing_of_the_host():
    assert {name for name, need in NEEDS.items() if need != "host"} == SERVED


IN_BINARY = ("full", "as another user", "none")  # what is read differs, who may do what does not


@pytest.mark.parametrize(
    ("kind", "media"), [*((kind, JSON) for kind in KINDS), *((kind, BINARY) for kind in IN_BINARY)]
)
def test_every_rpc_for_every_kind_of_caller(world, address, kind, media):
    caller = KINDS[kind]
    with httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
        calling = Caller(http, caller.token(world), media=media)
        requests = {}
        for name, (_, method) in METHODS.items():
            fields = REQUESTS[name](world)
            if (NEEDS[name] != "host" or name in ACTING_FOR) and "user_id" in method.input_type.fields_by_name:
                fields |= caller.says or {}
            made = message_factory.GetMessageClass(method.input_type)(**fields)
            requests[name] = json_format.MessageToDict(made)

        def answer_to(name: str) -> tuple[str, str]:
            found = calling.ask(name, requests[name])
            return OK if found == TOO_LOW and name == "MemoryService/ForgetUser" else found

        expected = {name: caller.expected(NEEDS[name]) for name in METHODS}
        refused = [name for name in METHODS if expected[name] != OK]
        with ThreadPoolExecutor(6) as pool:  # as each refusal takes its time
            found = dict(zip(refused, pool.map(answer_to, refused), strict=True))
        assert expected == found | {name: answer_to(name) for name in METHODS if name not in found}
