"""`memoryd init` makes a first setup, asks nothing, and changes nothing that is there."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from memory_client import Credentials, MemoryClient

from tests.forking import begin_command, run_command
from tests.support import BIN, PATIENCE_S, short_folder, until


@pytest.fixture
def home():
    with short_folder() as folder:
        yield folder


def env_of(home) -> dict[str, str]:
    """The environment of a user of a machine without systemd."""
    return {"HOME": str(home), "PATH": f"{BIN}:/usr/bin:/bin", "LOGNAME": "alice", "USER": "alice"}


def init(home, *words: str, code: int = 0, **env: str) -> dict:
    done = run_command(
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
    with begin_command([BIN / "memoryd", "serve"], env=env_of(home), stderr=subprocess.DEVNULL) as daemon:
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


@contextmanager
def served(home, *words: str):
    """Run the daemon of a setup until the end of the block."""
    with begin_command([BIN / "memoryd", "serve", *words], env=env_of(home), stderr=subprocess.DEVNULL) as daemon:
        try:
            yield
        finally:
            daemon.terminate()


def steps(told: dict) -> dict[str, str]:
    return {step["what"]: step["where"] for step in told["steps"]}


def grants(home, *words: str) -> list[dict]:
    command = [BIN / "memoryd", "grant", "list", "--json", *words]
    said = json.loads(subprocess.check_output(command, env=env_of(home)))
    return [one for one in said["grants"] if not one["grant"].get("end_time")]


def test_what_it_says_to_try_is_pasted_as_one_block(home):
    """The daemon needs some seconds, so what comes after it waits for it."""
    told = init(
        home, "--for", "bob o'hara", "--socket", str(home / "run" / "a.sock"), "--data-dir", str(home / "my data")
    )
    assert ["serve", "init", "add", "search", "inspect"] == [line.split()[1] for line in told["try"]]
    program = "\n".join(told["try"][:-1]) + "\nkill %1; wait"
    done = subprocess.run(
        ["bash", "-mc", program], env=env_of(home), capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert "made" in done.stdout
    assert "I'm allergic to peanuts" in done.stdout
    assert (home / "my data" / "memory.duckdb").exists()
    assert not (home / ".local").exists()
    [token] = (home / ".config" / "memoryd").glob("token*")
    assert "token-bob%20o%27hara" == token.name


def test_each_user_has_a_token_of_its_own(home):
    config = str(home / "my.toml")
    words = ("--config", config)
    first = init(home, *words)
    assert all(f"--config {config}" in line for line in first["try"][:2])
    with served(home, *words):
        mine = init(home, *words, "--wait", "30")
        other = init(home, *words, "--for", "bob")
        files = [
            json.loads(told["mcp"]["snippet"])["mcpServers"]["memory"]["env"]["MEMORY_TOKEN_FILE"]
            for told in (mine, other)
        ]
        assert [str(home / "token"), str(home / "token-bob")] == files
        assert {"alice", "bob"} == {one["grant"]["user_id"] for one in grants(home, *words)}
        (home / "token-bob").write_text((home / "token").read_text())
        told = init(home, *words, "--for", "bob")
        assert ("waits", True) == (
            became(told)["token of the first grant"],
            "is of user 'alice'" in steps(told)["token of the first grant"],
        )


def test_a_token_that_does_not_count_is_told_and_none_is_taken_from_others(home):
    init(home)
    token = home / ".config" / "memoryd" / "token"
    with served(home):
        init(home, "--wait", "30")
        [grant] = grants(home)
        run_command([BIN / "memoryd", "grant", "revoke", grant["grant"]["id"]], env=env_of(home), check=False)
        run_command([BIN / "memoryd", "sandbox", "close", grant["grant"]["id"]], env=env_of(home), check=False)
        assert [] == grants(home)
        for said in ("counts no longer", "holds no token", "is no file", "may be read by others"):
            if said == "holds no token":
                token.write_text("junk")
            elif said == "is no file":
                token.unlink()
                token.symlink_to("/nothing")
            elif said == "may be read by others":
                token.unlink()
                token.write_text("x")
                token.chmod(0o644)
            told = init(home)
            assert ("waits", True) == (
                became(told)["token of the first grant"],
                said in steps(told)["token of the first grant"],
            )
        assert [] == grants(home)
        token.unlink()
        assert "made" == became(init(home))["token of the first grant"]
        assert 1 == len(grants(home))


def test_no_grant_is_left_without_its_token(home):
    """Of four at once one makes the grant; the others take back what they have made."""
    init(home)
    with served(home):
        init(home, "--wait", "30")
        (home / ".config" / "memoryd" / "token").unlink()
        before = len(grants(home))
        with ThreadPoolExecutor(4) as pool:  # of four at once one is the first
            told = [became(one)["token of the first grant"] for one in pool.map(lambda _: init(home), range(4))]
        assert ["made", "there", "there", "there"] == sorted(told)
        assert before + 1 == len(grants(home))


def test_a_home_with_any_letters_has_a_configuration_that_can_be_read(home):
    place = home / "a 😀 'b'\x7f"
    place.mkdir()
    init(home, HOME=str(place))
    assert "there" == became(init(home, HOME=str(place)))["configuration"]


def test_a_folder_that_others_may_write_is_told(home):
    folder = home / ".config" / "memoryd"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert str(folder) in steps(init(home))["folder that others may write"]


def test_a_home_that_cannot_be_written_is_told_with_the_way_out(home):
    (home / "file").write_text("")
    done = run_command(
        [BIN / "memoryd", "init"],
        env={**env_of(home), "HOME": str(home / "file")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (2, 1) == (done.returncode, len(done.stderr.splitlines())), done.stderr
    assert "set HOME" in done.stderr
    assert "sudo" not in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--for", "a\nb"), "user_id must be printable"),
        (("--for", "x" * 300), "user_id"),
        (("--socket", "/" + "x" * 200), "107 bytes"),
        (("--socket", "/tmp/" + "x" * 60 + "/a.sock"), "107 bytes"),
        (("--wait", "nan"), "--wait"),
    ],
)
def test_what_makes_no_setup_is_refused(home, words, said):
    done = run_command([BIN / "memoryd", "init", *words], env=env_of(home), capture_output=True, text=True, check=False)
    assert (True, True) == (done.returncode in {1, 2}, said in done.stderr), done.stderr


def test_what_is_there_stays(home):
    config = home / ".config" / "memoryd" / "memoryd.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[store]\npath = "{data_dir}/mine.duckdb"\n')
    told = init(home, "--for", "bob", "--host", "codex")
    assert "there" == became(told)["configuration"]
    assert "mine" in config.read_text()
    assert "[mcp_servers.memory]" in told["mcp"]["snippet"]
    assert any("--user bob" in line for line in told["try"])
    assert "set [shared] socket" in steps(told)["shared socket"]  # without it the snippet would reach nothing


def test_a_dry_run_of_a_configuration_that_is_not_there_makes_nothing(home):
    told = init(home, "--dry-run", "--config", str(home / "new.toml"))
    assert "would be made" == became(told)["configuration"]
    assert [] == list(home.iterdir())


def test_a_service_is_made_where_systemd_is(home):
    folder = home / "bin"
    folder.mkdir()
    noted = home / "asked"
    (folder / "systemctl").write_text(
        f'#!/bin/sh\necho "$@" >> {noted}\n[ $2 = is-system-running ] && echo running || echo inactive\n'
    )
    (folder / "systemctl").chmod(0o755)
    told = init(home, PATH=f"{folder}:{BIN}:/usr/bin:/bin", XDG_RUNTIME_DIR=str(home / "run"))
    assert "made" == became(told)["service"]
    unit = (home / ".config" / "systemd" / "user" / "memoryd.service").read_text()
    assert f"ExecStart={BIN / 'memoryd'} serve\n" in unit
    assert "waits" == became(told)["daemon"]  # this service manager starts none
    asked = noted.read_text()
    assert "--user daemon-reload" in asked
    assert "--user enable --now memoryd.service" in asked


def test_the_service_begins_with_the_configuration_that_was_named(home):
    folder = home / "bin"
    folder.mkdir()
    (folder / "systemctl").write_text("#!/bin/sh\n[ $2 = is-system-running ] && echo running || echo inactive\n")
    (folder / "systemctl").chmod(0o755)
    config = home / "50% of $HOME" / "my.toml"
    init(home, "--config", str(config), PATH=f"{folder}:{BIN}:/usr/bin:/bin", XDG_RUNTIME_DIR=str(home / "run"))
    unit = (home / ".config" / "systemd" / "user" / "memoryd.service").read_text()
    named = str(config).replace("%", "%%").replace("$", "$$")
    assert f'ExecStart={BIN / "memoryd"} serve --config "{named}"\n' in unit


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
