"""An OpenAI-compatible endpoint on loopback that answers as a test says, in every way in which endpoints go wrong."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memoryd.learning.budget import DailyBudget, Limits
from memoryd.learning.language_model import LanguageModel
from memoryd.llm.endpoint import ChatEndpoint

__all__ = ["MADE", "Chat", "chat_endpoint", "facts", "model_at", "said"]

MADE: list[LanguageModel] = []
"""What `model_at` has made; the fixture `chat` closes it."""


class Chat:
    """What the endpoint is asked, and what it answers: `answer` is a text, a number, or a function of both."""

    def __init__(self) -> None:
        """Answer that there is nothing to note."""
        self.answer: Any = '{"facts": []}'
        self.asked: list[dict[str, Any]] = []
        self.usage: dict[str, int] | None = {"prompt_tokens": 100, "completion_tokens": 10}
        self.stopping = threading.Event()
        self.url = ""

    def lines(self, n: int = -1) -> list[dict[str, Any]]:
        """Return the lines of JSON of a question."""
        return [json.loads(line) for line in self.asked[n]["messages"][1]["content"].splitlines()]


def said(text: str, usage: dict[str, int] | None = None) -> bytes:
    """Return the body of an answer."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return json.dumps({"choices": [choice], "usage": usage}).encode()


def facts(*some: tuple[str, int] | dict[str, Any]) -> str:
    """Return a reply with facts: of (text, number of the message), or as they are."""
    return json.dumps(
        {
            "facts": [
                one
                if isinstance(one, dict)
                else {"fact": one[0], "message": one[1], "category": "personal", "confidence": 0.9}
                for one in some
            ]
        }
    )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    chat: Chat

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.chat.asked.append({"path": self.path, "key": self.headers.get("Authorization"), **body})
        answer = self.chat.answer(body) if callable(self.chat.answer) else self.chat.answer
        ways: dict[str, Callable[[], None]] = {
            "hang": self._hang, "drip": self._drip, "die": self._die, "flood": self._flood, "redirect": self._redirect,
        }  # fmt: skip
        if isinstance(answer, str) and answer in ways:
            ways[answer]()
        elif isinstance(answer, int):
            self._send(answer, b"refused: sk-secret", {"Retry-After": "7"})
        else:
            self._send(200, answer if isinstance(answer, bytes) else said(answer, self.chat.usage))

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _hang(self) -> None:
        self.chat.stopping.wait(30)
        self.close_connection = True

    def _drip(self) -> None:
        """Send a byte now and then, which no time-out of a single read notices."""
        self._begin(1000)
        while not self.chat.stopping.is_set():
            try:
                self.wfile.write(b" ")
                self.wfile.flush()
            except OSError:
                break
            time.sleep(0.05)
        self.close_connection = True

    def _die(self) -> None:
        self._begin(1000)
        self.wfile.write(b'{"choices": [{"mess')
        self.close_connection = True

    def _flood(self) -> None:
        self._begin(1 << 30)
        try:
            while not self.chat.stopping.is_set():
                self.wfile.write(b"x" * 65536)
        except OSError:
            self.close_connection = True

    def _redirect(self) -> None:
        self._send(307, b"", {"Location": f"{self.chat.url}/elsewhere"})

    def _begin(self, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def chat_endpoint(port: int = 0) -> Iterator[Chat]:
    """Serve an endpoint, and yield what it is asked and answers."""
    chat = Chat()
    server = ThreadingHTTPServer(("127.0.0.1", port), type("Handler", (_Handler,), {"chat": chat}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    chat.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield chat
    finally:
        chat.stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()


def model_at(chat: Chat, ports: Any, clock: Any, *, timeout_s: float = 5, **limits: Any) -> LanguageModel:
    """Return a language model at the endpoint, with a budget in the store of some ports."""
    budget = DailyBudget(ports, Limits(**limits), clock, clock.now.tzinfo)
    MADE.append(LanguageModel(ChatEndpoint(chat.url, "m", timeout_s=timeout_s), budget, clock))
    return MADE[-1]
