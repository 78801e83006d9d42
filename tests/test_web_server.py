"""Connections over HTTP are bounded in number and in time, also those that say nothing, and those that read nothing."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest
import trustme
import uvicorn

from memoryd.errors import InvalidArgument
from memoryd.web import bodies, server
from memoryd.web.listen import Listen
from tests.support import PATIENCE, PATIENCE_S, until

SHORT_S = 0.4 * PATIENCE
ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
LARGE = 4 << 20


async def app(scope, receive, send):
    """Answers what is asked for: little, or much."""
    if scope["type"] != "http":
        return
    body = b"x" * (LARGE if scope["path"] == "/much" else 2)
    length = str(len(body)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def serving(**more):
    """Serve on loopback, and give the address."""
    opened = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, http=server.BoundedConnection, ws="none", lifespan="off", log_level="error", access_log=False,
        timeout_graceful_shutdown=1, **more,
    )  # fmt: skip
    running = server.BoundedServer(config)
    thread = threading.Thread(target=running.run, args=([opened],))
    thread.start()
    try:
        assert until(lambda: running.started)
        yield opened.getsockname(), running
    finally:
        running.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    for module in (server, bodies):
        monkeypatch.setattr(module, "RECEIVE_S", SHORT_S)
    monkeypatch.setattr(server, "HANDSHAKE_S", SHORT_S)
    server.BoundedConnection.waiting.clear()
    server.BoundedConnection.draining.clear()


def asked(address) -> bytes:
    """The first bytes of an answer; none where the connection is refused."""
    try:
        with socket.create_connection(address, timeout=PATIENCE_S) as one:
            one.sendall(ASK)
            return one.recv(15)
    except OSError:
        return b""


def is_ended(one: socket.socket) -> bool:
    """Whether the server has ended a connection; what it has sent before is read."""
    one.settimeout(PATIENCE_S)
    try:
        while one.recv(1 << 20):
            pass
    except ConnectionResetError:
        return True
    return True


def test_one_that_says_nothing_or_says_it_slowly_is_ended():
    with serving() as (address, _), ExitStack() as held:
        for said in (b"", b"GET / HTTP/1.1\r\nHost: "):
            one = held.enter_context(socket.create_connection(address))
            one.sendall(said)
            assert is_ended(one)


def test_one_that_takes_no_answer_is_ended():
    with serving() as (address, running), socket.create_connection(address) as one:
        one.sendall(ASK.replace(b"/ ", b"/much ", 1) * 4)
        assert until(lambda: len(running.server_state.connections) == 1)
        assert until(lambda: not running.server_state.connections)


@pytest.mark.parametrize("what", ["says nothing", "waits after an answer", "takes no answer"])
def test_a_new_connection_takes_the_place_of_one_that_waits(monkeypatch, what):
    monkeypatch.setattr(server, "RECEIVE_S", PATIENCE_S)
    monkeypatch.setattr(server.BoundedConnection, "most", 8)
    with serving(timeout_keep_alive=int(PATIENCE_S)) as (address, running), ExitStack() as held:
        for _ in range(8):
            one = held.enter_context(socket.create_connection(address))
            if what == "waits after an answer":
                one.sendall(ASK)
                assert one.recv(15)
            elif what == "takes no answer":
                one.sendall(ASK.replace(b"/ ", b"/much ", 1) * 4)
        assert until(lambda: len(running.server_state.connections) == 8)
        if what == "takes no answer":
            assert until(lambda: len(server.BoundedConnection.draining) == 8)
        for _ in range(20):
            assert b"HTTP/1.1 200 OK" == asked(address)
        assert len(running.server_state.connections) <= 8


def test_a_burst_of_connections_is_served(monkeypatch):
    monkeypatch.setattr(server, "MOST_HANDSHAKES", 4)
    with serving() as (address, _), ThreadPoolExecutor(100) as pool:
        assert {b"HTTP/1.1 200 OK"} == set(pool.map(lambda _: asked(address), range(300)))


def test_an_answer_that_is_taken_slowly_is_sent_whole():
    with serving() as (address, _), socket.create_connection(address, timeout=PATIENCE_S) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        one.sendall(ASK.replace(b"/ ", b"/much ", 1))
        taken = 0
        while taken < LARGE:
            part = one.recv(LARGE // 16)
            assert part, taken
            taken += len(part)
            time.sleep(SHORT_S / 4)  # all in all many times as long as one that takes nothing may stay


def test_an_upgrade_is_a_request_as_any_other():
    with serving() as (address, _):
        for _ in range(20):
            with socket.create_connection(address, timeout=PATIENCE_S) as one:
                more = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                one.sendall(ASK[:-2] + more + b"Sec-WebSocket-Version: 13\r\n\r\n")
                assert b"HTTP/1.1 200 OK" == one.recv(15)
        assert until(lambda: not server.BoundedConnection.waiting)


@pytest.fixture
def certificate(tmp_path):
    authority = trustme.CA()
    made = authority.issue_cert("localhost")
    made.private_key_pem.write_to_path(tmp_path / "key.pem")
    made.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    context = ssl.create_default_context()
    authority.configure_trust(context)
    files = {"ssl_keyfile": str(tmp_path / "key.pem"), "ssl_certfile": str(tmp_path / "cert.pem")}
    return files, context


def test_handshakes_that_do_not_end_keep_no_one_out(monkeypatch, certificate, caplog):
    files, context = certificate
    monkeypatch.setattr(server, "MOST_HANDSHAKES", 8)
    monkeypatch.setattr(server, "HANDSHAKE_S", 9 * PATIENCE_S)
    with caplog.at_level(logging.DEBUG), serving(**files) as (address, running), ExitStack() as held:
        silent = [held.enter_context(socket.create_connection(address)) for _ in range(40)]
        for _ in range(5):
            with socket.create_connection(address, timeout=PATIENCE_S) as raw:
                with context.wrap_socket(raw, server_hostname="localhost") as one:
                    one.sendall(ASK)
                    assert b"HTTP/1.1 200 OK" == one.recv(15)
        assert len(running._handshakes) <= 8
        assert is_ended(silent[0])
    assert [] == [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_one_that_is_to_be_closed_and_says_no_goodbye_keeps_no_one_out(monkeypatch, certificate):
    files, context = certificate
    monkeypatch.setattr(server, "RECEIVE_S", 9 * PATIENCE_S)
    monkeypatch.setattr(server, "HANDSHAKE_S", 9 * PATIENCE_S)
    monkeypatch.setattr(server.BoundedConnection, "most", 4)
    with serving(**files) as (address, _), ExitStack() as held:
        for _ in range(4):
            raw = held.enter_context(socket.create_connection(address, timeout=PATIENCE_S))
            one = held.enter_context(context.wrap_socket(raw, server_hostname="localhost", suppress_ragged_eofs=False))
            one.sendall(ASK[:-2] + b"Connection: close\r\n\r\n")
            assert one.recv(15)
        with socket.create_connection(address, timeout=PATIENCE_S) as raw:
            with context.wrap_socket(raw, server_hostname="localhost") as one:
                one.sendall(ASK)
                assert b"HTTP/1.1 200 OK" == one.recv(15)


def test_a_handshake_that_takes_too_long_or_is_none_is_ended(certificate):
    files, _ = certificate
    with serving(**files) as (address, running):
        for said in (b"", b"GET / HTTP/1.1\r\n\r\n"):
            with socket.create_connection(address) as one:
                one.sendall(said)
                assert is_ended(one)
        assert until(lambda: not running._handshakes)


def test_a_socket_whose_server_has_no_time_is_not_taken_from_it(tmp_path):
    path = tmp_path / "busy.sock"
    with socket.socket(socket.AF_UNIX) as busy, ExitStack() as held:
        busy.bind(str(path))
        busy.listen(0)
        for _ in range(3):
            one = held.enter_context(socket.socket(socket.AF_UNIX))
            one.setblocking(False)
            try:
                one.connect(str(path))
            except BlockingIOError:
                break
        with pytest.raises(InvalidArgument, match="another server listens there"), Listen(path=str(path)).opened():
            pass
        assert path.exists()


def test_a_server_removes_its_own_socket_and_not_that_of_its_successor(tmp_path):
    path = tmp_path / "http.sock"
    with Listen(path=str(path)).opened():
        path.unlink()
        successor = socket.socket(socket.AF_UNIX)
        successor.bind(str(path))
    assert path.exists()
    successor.close()
    with Listen(path=str(path)).opened():  # the path of a server that has ended
        assert path.exists()
    assert not path.exists()
