"""No caller of the HTTP door takes it from the others, and no one gets past it without a token."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread

import grpc
import httpx
import pytest
from memory_client import Caveats, Permission, attenuate

from memoryd.http.lines import LINES, MOST_LARGE_OF_ONE, MOST_OF_CALLER, MOST_OF_LINE, MOST_REQUESTS, Shown
from memoryd.model.token import mint
from tests.access_helpers import NOBODY
from tests.doors import NO_MODEL
from tests.http_helpers import JSON, Caller, door, outcome_of
from tests.support import PATIENCE_S, running, until

SOON = datetime.now(UTC) + timedelta(hours=1)
WHO = "IdentityService/WhoAmI"
ADD, LIST = "MemoryService/AddMemory", "MemoryService/ListMemories"


def sent_partly(address: str, token: str, length: int, body: bytes) -> socket.socket:
    """A connection on which the headers of an add were sent, and the beginning of its body."""
    host, port = address.removeprefix("http://").strip("/").split(":")
    head = (
        f"POST /memoryd.v1.{ADD} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {JSON}\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n"
    )
    opened = socket.create_connection((host, int(port)))
    opened.sendall(head.encode() + body)
    return opened


def made(name: str) -> str:
    """A token in the form of one, of no key that a daemon has."""
    return mint("k", b"k" * 32, name, name).text()


def test_no_large_body_is_taken_from_someone_whose_token_does_not_count(http):
    """What comes after the first bytes is not waited for: the answer is there before the body is."""
    taken = []

    def body():
        for _ in range(64):
            taken.append(1)
            yield b" " * 65_536

    headers = {"Content-Type": JSON, "Authorization": f"Bearer {made('none')}", "Expect": ""}
    answer = http.post(f"/memoryd.v1.{ADD}", content=body(), headers=headers)
    assert (401, NOBODY) == (answer.status_code, outcome_of(answer))
    assert "unauthenticated" == answer.json()["code"]


def test_one_token_takes_few_of_the_places_for_large_bodies(world, address):
    """Others are served while one caller sends as many large bodies as it can, and slowly."""
    token = world.token(chat_ids=(), quota={"calls_per_second": 0})
    narrowed = attenuate(token, Caveats(permissions=frozenset({Permission.ADD, Permission.LIST}), expire_time=SOON))
    shown = [token, *[narrowed] * (MOST_LARGE_OF_ONE - 1)]
    slow = [sent_partly(address, one, 4_000_000, b" " * 70_000) for one in shown]
    try:
        with httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
            large = b" " * 70_000 + b'{"content": "a"}'

            def sent(by: str) -> int:
                return http.post(f"/memoryd.v1.{ADD}", content=large, headers=Caller(http, by).headers).status_code

            assert until(lambda: sent(token) == 503)
            assert 200 == sent(world.token(user_id="other", chat_ids=()))
            assert 200 == Caller(http, token).send(LIST, {}).status_code
            for one in slow:
                one.close()
            assert until(lambda: sent(token) == 200)
    finally:
        for one in slow:
            one.close()


def _known(request, context):
    return b""


def _unknown(request, context):
    context.abort(grpc.StatusCode.UNAUTHENTICATED, "")


class FakeDaemon:
    """A daemon that asks for a token, and then does what a test says."""

    def __init__(self, path: Path, answer, go: Event | None = None) -> None:
        self.server = grpc.server(ThreadPoolExecutor(64))
        self.count = self.strangers = 0
        self.refused: set[str] = set()
        self.go = go
        self.server.add_generic_rpc_handlers((self,))
        self.server.add_insecure_port(f"unix:{path}")
        self.answer = answer

    def service(self, details):
        token = dict(details.invocation_metadata).get("authorization", "")
        if token.removeprefix("Bearer ") in self.refused:
            self.strangers += 1
            return grpc.unary_unary_rpc_method_handler(self.refused_later)
        if details.method.endswith("/WhoAmI"):
            return grpc.unary_unary_rpc_method_handler(_known if token else _unknown)
        self.count += 1
        return grpc.unary_unary_rpc_method_handler(self.answer)

    def refused_later(self, request, context):
        self.go.wait(PATIENCE_S)
        _unknown(request, context)

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop(0).wait()


def test_a_call_ends_when_its_caller_leaves(folder):
    begun, ended = Event(), Event()

    def answer(_, context):
        context.add_callback(ended.set)
        begun.set()
        ended.wait(PATIENCE_S)
        return b""

    with FakeDaemon(folder / "fake.sock", answer), door(f"unix://{folder}/fake.sock") as (address, _):
        with sent_partly(address, made("x"), 2, b"{}"):
            assert begun.wait(PATIENCE_S)
        assert ended.wait(PATIENCE_S / 2)


def test_no_call_takes_longer_than_a_minute_whatever_its_caller_says(folder):
    left = []

    def answer(_, context):
        left.append(context.time_remaining())
        return b""

    with FakeDaemon(folder / "fake.sock", answer), door(f"unix://{folder}/fake.sock") as (address, _):
        with httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
            for given in ("9999999999", "60001", "5000"):
                assert 200 == Caller(http, made("x")).send(LIST, {}, **{"Connect-Timeout-Ms": given}).status_code
    assert [True, True, True] == [0 < one <= most + 1 for one, most in zip(left, (60, 60, 5), strict=True)], left


def test_a_write_whose_connection_broke_is_in_doubt(folder):
    """The daemon may have carried it out, so no reason says that nothing was written."""
    ended = Event()

    def answer(_, context):
        Thread(target=fake.server.stop, args=(0,)).start()
        ended.wait(PATIENCE_S)
        return b""

    with FakeDaemon(folder / "fake.sock", answer) as fake, door(f"unix://{folder}/fake.sock") as (address, _):
        with httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
            answer = Caller(http, made("x")).send("EntityService/ForgetPerson", {"name": "Sarah"})
            ended.set()
            away = Caller(http, made("x")).send(LIST, {})
    assert (503, ("UNAVAILABLE", "")) == (answer.status_code, outcome_of(answer))
    assert "a write may have happened" in answer.json()["message"]
    assert (503, ("UNAVAILABLE", "UNAVAILABLE")) == (away.status_code, outcome_of(away))


def test_a_flood_of_strangers_or_of_one_caller_takes_no_turn_of_another(world, address):
    """The daemon refuses more than 64 calls at once on a connection, and holds each refusal for a while."""
    busy = world.token(user_id="busy", chat_ids=(), quota={"calls_per_second": 0})
    quiet = world.token(user_id="quiet", chat_ids=())
    flooded = Event()

    def flood(n: int) -> set[str]:
        with httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
            told = set()
            while not flooded.is_set():
                answer = Caller(http, made(f"rubbish{n}.{len(told)}") if n % 2 else busy).send(LIST, {})
                told.add(f"{answer.status_code}" if answer.status_code in {200, 401} else answer.text)
            return told

    with ThreadPoolExecutor(160) as pool, httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
        floods = [pool.submit(flood, n) for n in range(160)]
        seen = [Caller(http, quiet).send(LIST, {}).status_code for _ in range(30)]
        flooded.set()
        assert {"200", "401"} == set().union(*(one.result() for one in floods))
    assert {200} == set(seen)


def test_one_caller_does_not_fill_the_connection_that_it_shares(folder):
    """Callers are spread over some connections, so that each shares one with others."""
    go = Event()

    def answer(_, context):
        if Shown.read(dict(context.invocation_metadata())["authorization"]).grant_id == "busy":
            go.wait(PATIENCE_S)
        return b""

    busy = made("busy")
    place = Shown.read(f"Bearer {busy}").digest[0] % LINES
    quiet = next(
        token for n in range(99) if Shown.read(f"Bearer {(token := made(f'quiet{n}'))}").digest[0] % LINES == place
    )
    narrowed = [attenuate(busy, Caveats(chat_ids=frozenset({f"c{n}"}))) for n in range(20)]
    with FakeDaemon(folder / "fake.sock", answer) as fake, door(f"unix://{folder}/fake.sock") as (address, _):
        with httpx.Client(base_url=address, timeout=PATIENCE_S, limits=httpx.Limits(max_connections=99)) as http:
            shown = [f"Bearer {busy}", f"bearer   {busy}", *(f"Bearer {token}" for token in narrowed)]
            callers = [Caller(http) for _ in range(60)]
            for n, caller in enumerate(callers):  # however they spell it, and however they narrow it
                caller.headers["Authorization"] = shown[n % len(shown)]
                if n < len(shown):
                    caller.told(WHO, {})
            with ThreadPoolExecutor(60) as pool:
                sent = [pool.submit(caller.send, LIST, {}) for caller in callers]
                assert until(lambda: fake.count >= MOST_OF_CALLER)
                assert 200 == Caller(http, quiet).send(LIST, {}).status_code
                assert MOST_OF_CALLER == fake.count - 1
                go.set()
                assert {200} == {one.result().status_code for one in sent}


def test_those_whose_token_has_not_counted_yet_have_a_connection_of_their_own(folder):
    go = Event()

    def answer(_, context):
        return b""

    with FakeDaemon(folder / "fake.sock", answer, go) as fake, door(f"unix://{folder}/fake.sock") as (address, _):
        with httpx.Client(base_url=address, timeout=PATIENCE_S, limits=httpx.Limits(max_connections=99)) as http:
            Caller(http, made("known")).told(LIST, {})
            with ThreadPoolExecutor(60) as pool:
                tokens = [made(f"stranger{n}") for n in range(60)]
                fake.refused |= set(tokens)
                strangers = [pool.submit(Caller(http, token).send, LIST, {}) for token in tokens]
                assert until(lambda: fake.strangers >= MOST_OF_LINE)
                assert 200 == Caller(http, made("known")).send(LIST, {}).status_code
                go.set()
                assert {401} == {one.result().status_code for one in strangers}


@pytest.mark.parametrize("name", ["Authorization", "Origin", "Content-Type"])
def test_a_header_that_counts_is_there_once(world, address, name):
    with httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
        token = world.token(chat_ids=())
        given = [("Authorization", f"Bearer {token}"), ("Content-Type", JSON), ("Origin", address.strip("/"))]
        more = next((key, value) for key, value in given if key == name)
        assert 200 == http.post(f"/memoryd.v1.{LIST}", content="{}", headers=given).status_code
        answer = http.post(f"/memoryd.v1.{LIST}", content="{}", headers=[*given, more])
    assert (400, True) == (answer.status_code, "twice" in answer.text)


def test_one_grant_has_few_requests_under_way_and_others_are_served(world, address):
    token = world.token(chat_ids=(), quota={"calls_per_second": 0})
    with httpx.Client(base_url=address, timeout=PATIENCE_S) as http, ExitStack() as held:
        assert 200 == Caller(http, token).send(LIST, {}).status_code
        end = time.monotonic() + PATIENCE_S
        while (
            Caller(http, token).send(LIST, {}).status_code != 503
        ):  # a body that does not come is waited for some seconds
            assert time.monotonic() < end
            for _ in range(MOST_REQUESTS):
                held.enter_context(sent_partly(address, token, 4000, b"{"))
        assert 200 == Caller(http, world.token(user_id="other", chat_ids=())).send(LIST, {}).status_code


def test_the_first_call_of_a_token_costs_one_call(world, http):
    caller = Caller(http, world.token(chat_ids=(), quota={"calls_per_second": 1}))
    assert 200 == caller.send(LIST, {}).status_code


@pytest.mark.parametrize("token", ["x" * 5000, "x" * 20_000, "rubbish", "é"])
def test_what_is_no_token_is_refused_at_the_door(http, token):
    headers = {"Content-Type": JSON, "Authorization": f"Bearer {token}".encode("latin-1")}
    for body in (b"{}", b" " * 100_000):
        try:
            answer = http.post(f"/memoryd.v1.{LIST}", content=body, headers=headers)
        except httpx.HTTPError:  # more headers than a request may have
            continue
        assert answer.status_code in {400, 401, 431}, answer.text


def test_what_the_door_refuses_is_charged_for(world, http):
    """A body that is none costs as much as a call that is one."""
    caller = Caller(http, world.token(chat_ids=(), quota={"calls_per_second": 4}))
    answers = {http.post(f"/memoryd.v1.{LIST}", content="{", headers=caller.headers).status_code for _ in range(9)}
    assert {400, 429} == answers


def test_a_door_before_the_admin_socket_lets_no_one_in_without_a_token(folder):
    """The daemon may be away when the door begins, so the door cannot find out."""
    endpoint = f"unix://{folder}/run/admin.sock"
    with door(endpoint) as (address, _), running(folder, config=NO_MODEL) as daemon:
        assert endpoint == daemon.endpoint
        with httpx.Client(base_url=address, timeout=PATIENCE_S) as http:
            for caller in (Caller(http), Caller(http, "rubbish"), Caller(http, made("rubbish"))):
                assert until(lambda caller=caller: caller.send(LIST, {"user_id": "alice"}).status_code == 401)
