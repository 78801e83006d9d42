"""What the tests of the HTTP door share: the door over a real daemon, and calls at it in JSON and binary."""

from __future__ import annotations

import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from google.protobuf import json_format, message_factory
from google.rpc.error_details_pb2 import ErrorInfo

from tests.access_helpers import METHODS
from tests.forking import Forked, begin_command
from tests.support import PATIENCE_S

BINARY, JSON = "application/proto", "application/json"


@contextmanager
def door(
    endpoint: str, *words: str, listen: str = "127.0.0.1:0", **env: str
) -> Iterator[tuple[str, subprocess.Popen | Forked]]:
    """Run the command, and give the address that it says it listens on."""
    command = [sys.executable, "-m", "memoryd", "http", "--endpoint", endpoint, "--listen", listen, *words]
    with begin_command(command, stderr=subprocess.PIPE, text=True, env=env or None) as process:
        try:
            yield process.stderr.readline().strip().removeprefix("memoryd: "), process
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


class Caller:
    """Calls methods over HTTP with a token."""

    def __init__(self, http: httpx.Client, token: str = "", *, media: str = JSON) -> None:
        self.http = http
        self.media = media
        self.headers = {"Content-Type": media} | ({"Authorization": f"Bearer {token}"} if token else {})

    def send(self, name: str, fields: dict, **headers: str) -> httpx.Response:
        """Call a method by its name, `MemoryService/AddMemory`."""
        _, method = METHODS[name]
        request = json_format.ParseDict(fields, message_factory.GetMessageClass(method.input_type)())
        binary = self.media == BINARY
        body = request.SerializeToString() if binary else json_format.MessageToJson(request).encode()
        return self.http.post(f"/memoryd.v1.{name}", content=body, headers={**self.headers, **headers})

    def ask(self, name: str, fields: dict) -> tuple[str, str]:
        """Call a method and return code and reason, as gRPC names them."""
        return outcome_of(self.send(name, fields))

    def told(self, name: str, fields: dict) -> dict:
        """Call a method and return its answer as JSON has it."""
        answer = self.send(name, fields)
        assert 200 == answer.status_code, answer.text
        return self.read(name, answer)

    def read(self, name: str, answer: httpx.Response) -> dict:
        """Return an answer as JSON has it."""
        assert self.media == answer.headers["content-type"]
        if self.media == JSON:
            return answer.json()
        _, method = METHODS[name]
        message = message_factory.GetMessageClass(method.output_type).FromString(answer.content)
        return json_format.MessageToDict(message)


def outcome_of(answer: httpx.Response) -> tuple[str, str]:
    """Return code and reason of an answer."""
    if answer.status_code == 200:
        return "OK", ""
    told = answer.json()
    assert JSON == answer.headers["content-type"]
    reasons = [detail for detail in told.get("details", []) if detail["type"] == "google.rpc.ErrorInfo"]
    assert len(reasons) <= 1
    for detail in reasons:
        raw = detail["value"]
        info = ErrorInfo.FromString(b64decode(raw + "=" * (-len(raw) % 4)))
        assert detail["debug"]["reason"] == info.reason
        assert "memoryd" == info.domain
        return told["code"].upper(), info.reason
    return told["code"].upper(), ""
