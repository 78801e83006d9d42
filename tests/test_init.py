"""`memoryd init` makes a first setup, asks nothing, and changes nothing that is there."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tomllib

import pytest
from memory_client import Credentials, MemoryClient

from tests.support import BIN, PATIENCE_S, short_folder, until


@pytest.fixture
def home():
    with short_folder() as folder:
        yield folder


def env_of(home) -> dict[str, str]:
    """The environment of a user of a machine without systemd."""
    return {"HOME": str(home), "PATH": f"{BIN}:/usr/bin:/bin", "LOGNAME": "alice", "USER": "alice"}


def init(home, *words: str, code: int = 0, **env: str) -> dict:
    done = subprocess.run(
        [BIN / "memoryd", "init", "--json", *words], env={**env_of(home), **env}, capture_output=True, text=True,
        timeout=PATIENCE_S, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def became(told: dict) -> dict[str, str]:
    return {step["what"]: step["became"] for step in told["steps"]}


def test_a_first_setup_works_and_is_made_once(home):
    assert {"would be made", "waits"} == set(became(init(home, "--dry-run")).values())
    assert [] == list(home.iterdir())
    first = became(init(home))
    assert ("made", "waits", "waits") == (first["configuration"], first["service"], first["token of the first grant"])
    config = home / ".config" / "memoryd" / "memoryd.toml"
    assert 0o600 == stat.S_IMODE(config.stat().st_mode)
    shared = tomllib.loads(config.read_text())["shared"]["socket"]
    with subprocess.Popen([BIN / "memoryd", "serve"], env=env_of(home), stderr=subprocess.DEVNULL) as daemon:
        try:
            assert until(lambda: os.path.exists(shared))
            told = init(home)
            assert "made" == became(told)["token of the first grant"]
            token_file = home / ".config" / "memoryd" / "token"
            assert 0o600 == stat.S_IMODE(token_file.stat().st_mode)
            before = {path: path.read_bytes() for path in (config, token_file)}
            assert {"there", "waits"} == set(became(init(home)).values())
            assert before == {path: path.read_bytes() for path in before}
            [server] = json.loads(told["mcp"]["snippet"])["mcpServers"].values()
            assert {"MEMORY_ENDPOINT": f"unix://{shared}", "MEMORY_TOKEN_FILE": str(token_file)} == server["env"]
            shown = Credentials(token_file=str(token_file))
            with MemoryClient(server["env"]["MEMORY_ENDPOINT"], user_id="", credentials=shown) as client:
                client.add("I'm allergic to peanuts")
                assert "alice" == client.whoami().user_id
            for line in told["try"][:2]:  # what it says to try works
                done = subprocess.run(line, shell=True, env=env_of(home), capture_output=True, text=True, check=True)  # noqa: S602
            assert "peanuts" in done.stdout
        finally:
            daemon.terminate()


def test_what_is_there_stays(home):
    config = home / ".config" / "memoryd" / "memoryd.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[store]\npath = "{data_dir}/mine.duckdb"\n')
    told = init(home, "--for", "bob", "--host", "codex")
    assert "there" == became(told)["configuration"]
    assert "mine" in config.read_text()
    assert "[mcp_servers.memory]" in told["mcp"]["snippet"]
    assert any("--user bob" in line for line in told["try"])


def test_a_service_is_made_where_systemd_is(home):
    folder = home / "bin"
    folder.mkdir()
    noted = home / "asked"
    (folder / "systemctl").write_text(f'#!/bin/sh\necho "$@" >> {noted}\necho running\n')
    (folder / "systemctl").chmod(0o755)
    told = init(home, PATH=f"{folder}:{BIN}:/usr/bin:/bin", XDG_RUNTIME_DIR=str(home / "run"))
    assert "made" == became(told)["service"]
    unit = (home / ".config" / "systemd" / "user" / "memoryd.service").read_text()
    assert f"ExecStart={BIN / 'memoryd'} serve\n" in unit
    asked = noted.read_text()
    assert "--user daemon-reload" in asked
    assert "--user enable --now memoryd.service" in asked


def test_no_service_is_made_of_a_copy_that_may_go(home):
    folder = home / "archive-v0" / "bin"
    folder.mkdir(parents=True)
    (folder / "systemctl").write_text("#!/bin/sh\necho running\n")
    program = "import sys; sys.argv[0]='$0'; from memoryd.__main__ import main; main()"
    (folder / "memoryd").write_text(f'#!/bin/sh\nexec {BIN / "python"} -c "{program}" "$@"\n')
    for name in ("systemctl", "memoryd"):
        (folder / name).chmod(0o755)
    env = {**env_of(home), "PATH": f"{folder}:/usr/bin:/bin", "XDG_RUNTIME_DIR": str(home / "run")}
    done = subprocess.run([folder / "memoryd", "init", "--json"], env=env, capture_output=True, text=True, check=True)
    assert "waits" == became(json.loads(done.stdout))["service"]
    assert not (home / ".config" / "systemd").exists()


def test_without_a_home_or_a_name_it_says_what_to_name(home):
    done = subprocess.run(
        [sys.executable, "-m", "memoryd", "init"], env={"PATH": "/usr/bin"}, capture_output=True, text=True, check=False
    )
    assert (2, "", 1) == (done.returncode, done.stdout, len(done.stderr.splitlines()))
