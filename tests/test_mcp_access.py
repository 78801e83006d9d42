"""Who may do what through memory-mcp: every tool and resource × every kind of caller, as for the daemon itself."""

from __future__ import annotations

import asyncio
import socket
from datetime import UTC, datetime, timedelta

import httpx2 as httpx
import pytest
from mcp.shared.exceptions import MCPError
from memory_client import Credentials, MessageDraft
from memory_mcp import callers
from memory_mcp.resources import RESOURCES
from memory_mcp.tools import TOOLS

from memoryd.errors import LimitExceeded, MemorydError
from memoryd.model.grant import Permission
from memoryd.model.token import mint
from tests.doors import a_world, socket_of
from tests.mcp_helpers import http_server, on_stdio, over_http, text_of
from tests.support import PATIENCE_S, short_folder, until

GIVEN = {
    "remember": {"text": "I keep bees"},
    "search": {"query": "bees"},
    "list_memories": {},
    "correct": {"id": "a" * 26, "text": "I keep wasps"},
    "confirm": {"id": "a" * 26},
    "forget": {"id": "a" * 26},
    "forget_person": {"name": "Sarah"},
    "about": {"name": "Sarah"},
    "context": {"prompt": "bees"},
    "log": {"thread": "t", "role": "user", "text": "hello"},
    "recent": {"thread": "t"},
    "whoami": {},
}
MOST_HEADERS = 1 << 16  # bytes that the HTTP library takes in before it gives up
NOT_THERE = ("MEMORY_NOT_FOUND", "ENTITY_NOT_FOUND")


@pytest.fixture(scope="module")
def served(world):
    with http_server(world.shared) as (url, _):
        yield url


def test_every_tool_is_in_the_matrix():
    assert set(GIVEN) == set(TOOLS)


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
async def test_a_tool_takes_its_permission_and_no_other(world, served, user, tool):
    everything = {permission.value for permission in Permission}
    if tool.needs is not None:
        async with over_http(served, world.token(*(everything - {tool.needs.value}), user_id=user)) as client:
            assert tool.name not in {shown.name for shown in (await client.list_tools()).tools}
            answer = await client.call_tool(tool.name, GIVEN[tool.name])
            assert answer.is_error
            assert text_of(answer).startswith("PERMISSION_DENIED: ")
    needed = tool.needs.value if tool.needs else "search"
    async with over_http(served, world.token(needed, user_id=user)) as client:
        assert tool.name in {shown.name for shown in (await client.list_tools()).tools}
        answer = await client.call_tool(tool.name, GIVEN[tool.name])
        assert not answer.is_error or text_of(answer).startswith(NOT_THERE), text_of(answer)


@pytest.mark.parametrize("uri", RESOURCES)
async def test_a_resource_takes_its_permission_and_no_other(world, served, user, uri):
    needed = RESOURCES[uri].needs
    others = {permission.value for permission in Permission} - {needed.value}
    async with over_http(served, world.token(*others, user_id=user)) as client:
        assert uri not in {str(shown.uri) for shown in (await client.list_resources()).resources}
        with pytest.raises(MCPError, match="PERMISSION_DENIED"):
            await client.read_resource(uri)
    async with over_http(served, world.token(needed.value, user_id=user)) as client:
        assert uri in {str(shown.uri) for shown in (await client.list_resources()).resources}
        assert (await client.read_resource(uri)).contents


@pytest.mark.parametrize("tool", TOOLS)
async def test_no_tool_reaches_another_user_by_any_argument(world, served, user, tool):
    with world.admin(f"{user}-victim") as victim:
        stored = victim.add("My sister Sarah keeps bees").memory
        victim.append("t", MessageDraft(content="my bees are secret"))
    before = await _all_of(world, f"{user}-victim")
    given = {**GIVEN[tool], **({"id": stored.id} if "id" in GIVEN[tool] else {})}
    async with over_http(served, world.token(user_id=user, chat_ids=())) as client:
        answer = await client.call_tool(tool, given)
        assert "secret" not in text_of(answer)
        assert "sister" not in text_of(answer)
        for name in ("user_id", "user", "chat_id", "agent_id", "owner", "acting_for", "scope", "token"):
            refused = await client.call_tool(tool, {**given, name: f"{user}-victim"})
            assert refused.is_error, name
            assert f"{user}-victim" not in text_of(refused)
    assert await _all_of(world, f"{user}-victim") == before


async def _all_of(world, user):
    with world.admin(user) as host:
        said = [message.content for message in host.messages("t").messages]
        return [(memory.id, memory.content, memory.state) for memory in host.pages()], said


async def test_what_the_environment_says_does_not_decide_who_one_is(world, user):
    endpoint = socket_of(world.sandbox(user_id=user))
    for words, env in (((), {"MEMORY_USER_ID": "bob"}), (("--user", "bob"), {}), (("--agent", "other"), {})):
        async with on_stdio(endpoint, *words, **env) as client:
            answer = await client.call_tool("search", {"query": "bees"})
            assert answer.is_error
            assert text_of(answer).startswith("SCOPE_MISMATCH: ")
    async with on_stdio(endpoint, "--user", user) as client:
        assert not (await client.call_tool("search", {"query": "bees"})).is_error


def test_a_token_that_counts_for_nothing_gets_nowhere(world, served, user):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "whoami", "arguments": {}}}
    soon = datetime.now(UTC) + timedelta(seconds=1)
    elsewhere = world.token(user_id=user, via="tcp")
    ended = world.token(user_id=user, expire_time=soon)
    until = soon + timedelta(seconds=0.5)
    while datetime.now(UTC) < until:
        continue
    for token in (elsewhere, ended, "x" * 5000, "x" * 70_000, "é".encode().decode("latin-1")):
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
        encoded = {name: value.encode("latin-1") for name, value in headers.items()}
        try:
            status = httpx.post(served, headers=encoded, json=message).status_code
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
            assert len(token) > MOST_HEADERS, token[:20]  # cut off with bytes unread: the answer may be lost with them
        else:
            assert status in {401, 400, 431}, token[:20]


async def test_of_many_tokens_the_last_ones_keep_their_channel_and_calls_under_way_end(world, user, monkeypatch):
    monkeypatch.setattr(callers, "MOST_CALLERS", 2)
    known = callers.ByToken(world.shared)
    tokens = [world.token(user_id=f"{user}-{n}") for n in range(4)]
    async with known._of(tokens[0]) as first:
        for token in tokens[1:]:
            assert await known.establish(token)
            async with known._of(token):
                pass
        assert len(known._known) == 2
        assert (await first.client.whoami()).user_id == f"{user}-0"  # dropped, and still open for this call
    with pytest.raises(MemorydError, match="closed"):
        await first.client.whoami()
    for n in range(20):
        assert not await known.establish(f"nonsense{n}")
    assert len(known._known) == 2  # what counts for nothing takes no one's place


async def test_who_comes_when_many_made_up_tokens_wait_is_told_to_come_again(world, user, monkeypatch):
    known, go = callers.ByToken(world.shared), asyncio.Event()

    async def counts(_token: str) -> bool:
        await go.wait()
        return False

    monkeypatch.setattr(known, "_counts", counts)
    made_up = [mint("k", b"k" * 32, f"g{n}", f"t{n}").text() for n in range(callers.MOST_ASKED)]
    waiting = [asyncio.ensure_future(known.establish(token)) for token in made_up]
    await asyncio.sleep(0)
    with pytest.raises(callers.TooManyCalls):
        await known.establish(world.token(user_id=user))
    assert not await known.establish("nonsense")  # which has no form, and waits for no one
    go.set()
    assert {False} == set(await asyncio.gather(*waiting))
    monkeypatch.undo()
    assert await known.establish(world.token(user_id=user))


async def test_one_token_can_have_so_many_calls_under_way_and_is_still_verified(world, user):
    known, token = callers.ByToken(world.shared), world.token(user_id=user)
    held = [known._of(token) for _ in range(callers.MOST_WAITING)]
    waiting = [asyncio.ensure_future(one.__aenter__()) for one in held]
    await asyncio.sleep(0.1)
    assert sum(one.done() for one in waiting) == callers.CALLS_AT_ONCE
    assert await asyncio.wait_for(known.establish(token), PATIENCE_S)
    with pytest.raises(LimitExceeded):
        await known._of(token).__aenter__()
    for one in waiting[callers.CALLS_AT_ONCE :]:
        one.cancel()
    for one in held[: callers.CALLS_AT_ONCE]:
        await one.__aexit__(None, None, None)


async def test_a_daemon_that_asks_for_certificates_gets_them():
    with short_folder() as place, a_world(place, client_ca=True) as world:
        token = world.token()
        certified = Credentials(
            ca_file=world.ca_file, certificate_file=f"{place}/cert.pem", key_file=f"{place}/key.pem"
        )
        assert await callers.ByToken(world.tcp, certified).establish(token)
        assert not await callers.ByToken(world.tcp, certified).establish("nonsense")


async def test_a_socket_that_asks_for_no_token_is_not_served_by_token(world, user):
    sandbox = world.sandbox(user_id=user)
    with world.admin() as host:
        token = host.issue_token(sandbox.grant.id).token
    assert not await callers.ByToken(socket_of(sandbox)).establish(token)
    assert not await callers.ByToken(world.daemon.endpoint).establish(token)


async def test_a_token_that_was_not_established_for_this_request_is_no_ones(world, user):
    known, token = callers.ByToken(world.shared), world.token(user_id=user)
    assert await known.verify_token(token) is None
    assert await known.establish(token)
    assert (await known.verify_token(token)).token == token
    assert await known.verify_token(f"{token}x") is None


async def test_a_token_past_its_calls_a_second_is_not_taken_for_bad(world, user):
    token = world.token(user_id=user, quota={"calls_per_second": 1})
    assert await callers.ByToken(world.shared).establish(token)
    with pytest.raises(callers.TooManyCalls):
        await callers.ByToken(world.shared).establish(token)


def test_who_sends_nothing_is_closed_and_keeps_no_one_out(world, user):
    token = world.token(user_id=user)
    with http_server(world.shared) as (url, _):
        port = int(url.rpartition(":")[2].partition("/")[0])
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(530)]
        idle[0].sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        assert until(lambda: any(_is_closed(one) for one in idle[512:]))
        for one in idle[300:]:
            one.close()
        message = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}

        def answers() -> bool:
            try:
                return httpx.post(url, headers=headers, json=message).status_code == 200
            except httpx.HTTPError:
                return False

        assert until(answers)
        head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Length: 500\r\n"
        with socket.create_connection(("127.0.0.1", port)) as slow:
            slow.sendall(f"{head}Content-Type: application/json\r\n\r\n{{".encode())
            assert until(lambda: _is_closed(idle[0]), pause_s=0.5)  # its headers did not arrive in time
            slow.settimeout(PATIENCE_S)
            assert b" 408 " in slow.recv(200)
        for one in idle[:300]:
            one.close()


def _is_closed(one: socket.socket) -> bool:
    one.settimeout(0.01)
    try:
        return one.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True
