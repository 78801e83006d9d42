"""The command memory-mcp: what it refuses, where it listens, and what it prints for the configuration of hosts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from memory_mcp.main import main

from memoryd.errors import InvalidArgument
from memoryd.web.listen import Listen
from tests.mcp_helpers import told
from tests.support import BIN


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--user ID"),
        (["http"], "admin socket"),
        (["http", "--listen", "0.0.0.0:80"], "TLS"),
        (["--user", "alice", "http"], "leave --user out"),
        (["http", "--listen", "10.0.0.1:80"], "TLS"),
        (["http", "--listen", "[::]:80"], "TLS"),
        (["http", "--listen", "127.0.0.1:99999"], "neither"),
        (["http", "--listen", "unix:relative"], "absolute"),
        (["serve"], "no command"),
        (["config", "emacs"], "invalid choice"),
        (["config", "claude", "--user", ""], "empty"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(world, capsys, monkeypatch, words, said):
    for name in [name for name in os.environ if name.startswith("MEMORY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MEMORY_ENDPOINT", world.daemon.endpoint)
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


def test_where_it_may_listen():
    assert Listen.read("localhost:0") == Listen(host="127.0.0.1", port=0)
    assert Listen.read("[::1]:8765") == Listen(host="::1", port=8765)
    assert Listen.read("unix:///run/x.sock") == Listen(path="/run/x.sock")
    for text in ("", "x", ":80", "example.org:80", "127.0.0.1:", "127.0.0.1:-1", "unix:"):
        with pytest.raises(InvalidArgument):
            Listen.read(text)


def _configured(capsys, monkeypatch, *words: str, **env: str) -> str:
    for name in [name for name in os.environ if name.startswith("MEMORY_")]:
        monkeypatch.delenv(name)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", [str(BIN / "memory-mcp")])
    assert main(["config", *words]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("# ")
    return out


def test_the_snippet_of_every_host(capsys, monkeypatch):
    socket = "unix:///run/memory/memory.sock"
    for host in ("claude", "cursor", "vscode"):
        entry = json.loads(_configured(capsys, monkeypatch, host, "--user", 'al"ice', MEMORY_ENDPOINT=socket))
        started = entry["servers" if host == "vscode" else "mcpServers"]["memory"]
        assert started["command"] == str(BIN / "memory-mcp")
        assert started["args"] == ["--user", 'al"ice']
        assert started["env"] == {"MEMORY_ENDPOINT": socket}
        called = _configured(
            capsys,
            monkeypatch,
            host,
            "--url",
            "http://127.0.0.1:8765/mcp",
            MEMORY_TOKEN="secret-token",  # noqa: S106  none
        )
        assert "http://127.0.0.1:8765/mcp" in called
        assert "secret-token" not in called
        assert "Bearer ${" in called
    entry = tomllib.loads(_configured(capsys, monkeypatch, "codex", "--user", 'a"\\', MEMORY_ENDPOINT=socket))
    assert entry["mcp_servers"]["memory"]["args"] == ["--user", 'a"\\']
    assert entry["mcp_servers"]["memory"]["env"] == {"MEMORY_ENDPOINT": socket}
    called = tomllib.loads(_configured(capsys, monkeypatch, "codex", "--url", "http://127.0.0.1:1/mcp"))
    assert called["mcp_servers"]["memory"] == {"url": "http://127.0.0.1:1/mcp", "bearer_token_env_var": "MEMORY_TOKEN"}


async def test_what_config_prints_starts_a_server_that_works(world, user, capsys, monkeypatch):
    printed = _configured(capsys, monkeypatch, "claude", "--user", user, "--endpoint", world.daemon.endpoint)
    entry = json.loads(printed)["mcpServers"]["memory"]
    parameters = StdioServerParameters(
        command=entry["command"], args=entry["args"], env={"PATH": os.environ["PATH"], **entry["env"]}
    )
    async with Client(stdio_client(parameters)) as client:
        assert (await told(client, "whoami"))["user_id"] == user


def test_the_base_starts_without_the_protocols_library():
    code = (
        "import sys; import memory_client, memory_cli.main; sys.exit('mcp' in sys.modules or 'pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
