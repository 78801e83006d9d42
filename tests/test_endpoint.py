"""An OpenAI-compatible endpoint: its form, its failures, the connections to it and the proxy between."""

from __future__ import annotations

import base64
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from memoryd.daemon.config import Config, EmbeddingConfig
from memoryd.daemon.wiring import make_embedder, proxy_for
from memoryd.embedding.base import ModelRefused
from memoryd.embedding.http import HttpEncoder
from memoryd.errors import Unavailable
from tests.builders import HashEncoder, run


class Endpoint(BaseHTTPRequestHandler):
    """Answers as the API documents; what it is asked is kept."""

    asked: list[dict] = []  # noqa: RUF012  one server a test
    answer: object = "vectors"
    proxy_key: str | None = None
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.seen = 0  # on this connection

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).asked.append({"path": self.path, "key": self.headers.get("Authorization"), **body})
        type(self).proxy_key = self.headers.get("Proxy-Authorization")
        self.seen += 1
        if self.answer == "hang up" and self.seen > 1:
            self.close_connection = True  # a kept connection that breaks as it is used again
            return
        if isinstance(self.answer, int) and self.answer >= 300:
            self.send_error(self.answer)
            return
        rows = HashEncoder().encode(body["input"], query=False) * 3
        if self.answer == "zeros":
            rows *= 0
        data = [{"index": n, "embedding": [float(x) for x in row]} for n, row in enumerate(rows)]
        reply = json.dumps({"data": data[::-1][: 1 if self.answer == "short" else None]}).encode()
        self.send_response(self.answer if isinstance(self.answer, int) else 200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def endpoint():
    Endpoint.asked, Endpoint.answer = [], "vectors"
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_endpoint_is_asked_in_the_form_of_its_api(endpoint, folder):
    (folder / "key").write_text("s3cret\n")
    embedder = make_embedder(
        Config(embedding=EmbeddingConfig(provider="openai", url=endpoint, model="m", api_key_file=str(folder / "key")))
    )
    assert 32 == embedder.dimensions

    async def both():
        return [one.vector for one in await embedder.documents(["red tea", "blue"], caller=1)]

    vectors = run(both())
    embedder.close()
    assert np.allclose(HashEncoder().encode(["red tea", "blue"], query=False), vectors, atol=1e-6)
    last = Endpoint.asked[-1]
    assert ("/v1/embeddings", "Bearer s3cret", "m") == (last["path"], last["key"], last["model"])


def test_an_endpoint_is_asked_for_its_dimensions_only_where_they_are_set(endpoint):
    HttpEncoder(endpoint, "m", dimensions=32).encode(["x"], query=True)
    assert [32] == [asked.get("dimensions") for asked in Endpoint.asked]


@pytest.mark.parametrize(("answer", "left_alone"), [(500, True), (429, True), (400, False), (422, False)])
def test_an_endpoint_that_is_down_is_left_alone_and_one_that_dislikes_a_text_is_not(endpoint, answer, left_alone):
    encoder = HttpEncoder(endpoint, "m", dimensions=32)
    Endpoint.answer = answer
    with pytest.raises(Unavailable):
        encoder.encode(["too long"], query=False)
    Endpoint.answer = "vectors"
    if left_alone:
        with pytest.raises(Unavailable, match="a moment ago"):
            encoder.encode(["good"], query=True)
    else:
        assert 1 == len(encoder.encode(["good"], query=True))


@pytest.mark.parametrize("answer", [500, "zeros", "short"])
def test_an_endpoint_that_fails_is_unavailable(endpoint, answer):
    encoder = HttpEncoder(endpoint, "m")
    Endpoint.answer = answer
    with pytest.raises(Unavailable):
        encoder.encode(["x", "y"], query=False)
    with pytest.raises(ModelRefused, match="set embedding.dimensions"):
        HttpEncoder("http://127.0.0.1:9/v1", "m", timeout_s=1)
    with pytest.raises(ModelRefused, match="must begin with"):
        HttpEncoder("ftp://x", "m")


@pytest.mark.parametrize("code", [200, 201])
def test_every_answer_of_2xx_is_one(endpoint, code):
    Endpoint.answer = code
    assert 32 == HttpEncoder(endpoint, "m").dimensions


def test_a_kept_connection_that_has_broken_is_replaced_and_nobody_waits(endpoint):
    encoder = HttpEncoder(endpoint, "m", dimensions=32)
    Endpoint.answer = "hang up"
    for n in range(3):
        assert (1, 32) == encoder.encode([f"text {n}"], query=False).shape
    assert 5 == len(Endpoint.asked)  # the second and the third were asked twice


def test_the_rest_of_a_refusal_is_not_waited_for():
    """The server says 500 and then keeps sending: the encoder is done all the same."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()
    gave_up = threading.Timer(30, done.set)

    def serve() -> None:
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 500 No\r\nContent-Length: 1000000\r\n\r\n")
        while not done.wait(0.05):
            try:
                connection.sendall(b"x")
            except OSError:  # the encoder has closed the connection
                break
        connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    gave_up.start()
    encoder = HttpEncoder(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", "m", dimensions=32, timeout_s=60)
    with pytest.raises(Unavailable, match="answered 500"):
        encoder.encode(["x"], query=False)
    assert not done.is_set()
    done.set()
    gave_up.cancel()
    thread.join()
    listener.close()


# --- the proxy that the environment names ---


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_the_name_and_password_of_a_proxy_go_with_every_request(endpoint, scheme):
    port = endpoint.removesuffix("/v1").rpartition(":")[2]
    encoder = HttpEncoder("http://embed.invalid/v1", "m", proxy=f"{scheme}user:p%40ss@127.0.0.1:{port}")
    assert "http://embed.invalid/v1/embeddings" == Endpoint.asked[-1]["path"]
    assert Endpoint.proxy_key == "Basic " + base64.b64encode(b"user:p@ss").decode()
    assert 32 == encoder.dimensions


@pytest.mark.parametrize("proxy", ["gopher://proxy:70", "http://[::1", "http://proxy:many"])
def test_a_proxy_that_cannot_be_used_is_refused_at_the_start(proxy):
    with pytest.raises(ModelRefused, match="proxy"):
        HttpEncoder("http://embed.invalid/v1", "m", dimensions=32, proxy=proxy)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://embed.local:8080/v1", ""),
        ("http://name:word@embed.local:8080/v1", ""),
        ("http://embed.local:9090/v1", "http://proxy:3128"),
        ("https://embed.local/v1", ""),
    ],
)
def test_no_proxy_may_name_a_port(monkeypatch, url, expected):
    for name in ("HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "embed.local:8080")
    assert expected == proxy_for(url)
