"""What operators and authors meet first: faults named at once, errors for programs, colours, advice to paste."""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta

import pytest
from memory_cli.parser import parse_time
from memory_client import Draft, InvalidArgument, MessageDraft

from memoryd.paths import open_to_others
from tests.builders import memory as stated
from tests.forking import run_command
from tests.support import BIN, PATIENCE_S, running

NO_MODEL = '[embedding]\nprovider = "none"\n[memory]\nauto_gc = false\n'


def admin(*words: object, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `memoryd …`; without a model where no configuration is named, as it takes seconds to load."""
    values = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **env}
    if "--config" not in words:
        values.setdefault("MEMORYD_EMBEDDING_PROVIDER", "none")
    return run_command([BIN / "memoryd", *map(str, words)], env=values, capture_output=True, text=True, check=False)


def on_terminal(command: list[str], env: dict[str, str], *, until_said: str = "") -> str:
    """Run a command on a terminal, until it ends, or until it has said something and is then interrupted."""
    pid, end = pty.fork()
    if not pid:
        os.execvpe(command[0], command, env)  # noqa: S606  the command under test
    said, deadline = b"", time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if select.select([end], [], [], 0.2)[0]:
            try:
                said += os.read(end, 65_536)
            except OSError:  # it has ended
                break
        if until_said and until_said.encode() in said:
            os.kill(pid, signal.SIGINT)
            until_said = ""
    os.waitpid(pid, 0)
    return said.decode()


def test_check_names_all_faults_at_once_and_last(folder):
    config = folder / "c.toml"
    config.write_text(
        '[stor]\nx = 1\n[embedding]\nprovider = "/nowhere"\ntimeout_s = "long"\n[schedule]\ndecay = "never"\n'
        'gc = "61 * * * *"\n[context]\nmax_tokens = 777\n[tcp]\nlisten = "nowhere"\n'
        f'[sandbox]\ndirectory = "/tmp/{"x" * 90}"\n[search]\nrerank = "/nope"\n'
        f'[audit]\npath = "{config}/audit.jsonl"\nmax_bytes = 1\n'
    )
    done = admin("check", "--config", config, "--data-dir", folder / "data", MEMORYD_STORE_PTH="x")
    assert 78 == done.returncode
    for fault in (
        "unknown section [stor]; did you mean store?", "embedding.timeout_s must be a number, not 'long'",
        "MEMORYD_STORE_PTH", "schedule.decay is 'never'", "schedule.gc is '61 * * * *'", "tcp.listen is 'nowhere'",
        "tcp.listen needs TLS", "embedding.provider is '/nowhere'",
        f"the file of the audit log, {config}/audit.jsonl, cannot be written",
        "is too long for a socket; name a shorter one",
        "/nope has neither onnx/model.onnx", "max_bytes is 1; it must be at least 4096 and at most",
    ):  # fmt: skip
        assert 1 == done.stderr.count(fault), fault
    assert "context.max_tokens = 777" in done.stdout
    assert "will be made at the first start" in done.stdout
    quiet = admin("check", "--quiet", "--config", config, "--data-dir", folder / "data", MEMORYD_STORE_PTH="x")
    assert (78, "", done.stderr) == (quiet.returncode, quiet.stdout, quiet.stderr)
    told = json.loads(admin("check", "--json", "--config", config, "--data-dir", folder / "data").stdout)
    assert len(done.stderr.splitlines()) - 1 == len(told["faults"])  # without the variable
    served = admin("serve", "--config", config, "--data-dir", folder / "data")
    assert (78, True, True) == (served.returncode, "unknown section" in served.stderr, "'long'" in served.stderr)
    whole = admin("check", "--quiet", "--data-dir", folder / "data", "--socket", folder / "s")
    assert (0, "", "") == tuple(vars(whole)[k] for k in CHECKED)


CHECKED = ("returncode", "stdout", "stderr")


def test_check_finds_readers_that_the_daemon_cannot_load(folder):
    config, readers = folder / "c.toml", ("retrieval", "answer", "change", "people", "keeping")
    config.write_text("[readers]\n" + "".join(f'{name} = "/nowhere"\n' for name in readers))
    done = admin("check", "--config", config, "--data-dir", folder / "data")
    assert 78 == done.returncode
    for name in readers:
        assert 1 == done.stderr.count(f"readers.{name} is '/nowhere'")


def test_check_finds_places_that_the_daemon_cannot_use(folder):
    file, config = folder / "file", folder / "c.toml"
    file.touch()
    socket = folder / ("s" * (80 - len(str(folder)))) / "s"
    config.write_text(f'[shared]\nsocket = "{socket}"\n')
    said = admin("check", "--quiet", "--config", config, "--data-dir", file / "data", "--socket", socket)
    assert (78, 3) == (said.returncode, len(said.stderr.splitlines())), said.stderr
    for fault in (f"{socket}, the admin socket; name another shared.socket",
                  f"sandbox.directory {socket.parent}/sandboxes is too long for a socket",
                  f"the folder of the database, {file}/data, cannot be written: {file} is a file"):  # fmt: skip
        assert fault in said.stderr
    assert "the folder of the socket" in admin("check", "--data-dir", folder / "d", "--socket", file / "s").stderr
    config.write_text(f'[shared]\nsocket = "{file}/s"\n[audit]\npath = "{folder}/{"x" * 300}/a"\n')
    said = admin("check", "--quiet", "--config", config, "--data-dir", folder / "d", "--socket", folder / "s")
    assert 78 == said.returncode
    assert f"the folder of the shared socket, {file}, cannot be written: it is a file" in said.stderr
    assert "cannot be written: file name too long; name another audit.path" in said.stderr
    config.write_text(f'[shared]\nsocket = "{folder}/s"\n[embedding]\nprovider = "none"\n')
    served = admin("serve", "--config", config, "--data-dir", folder / "data", "--socket", folder / "s")
    assert (78, True) == (served.returncode, "the admin socket; name another shared.socket" in served.stderr)
    (folder / "sandboxes").mkdir(mode=0o755)
    (folder / "sandboxes").chmod(0o755)
    open_to_all = admin("check", "--quiet", "--data-dir", folder / "data", "--socket", folder / "s")
    assert (78, True) == (open_to_all.returncode, "this user alone may enter" in open_to_all.stderr)


def test_advice_names_the_places_that_were_given(folder):
    data = folder / "a place"
    data.mkdir(mode=0o700)
    with running(data, config=NO_MODEL) as daemon:
        daemon.client().add("x")
    (data / "memory.duckdb.seq").unlink()
    lost = admin("check", "--data-dir", data, "--socket", folder / "s")
    assert f"run: memoryd check --data-dir '{data}' --socket {folder}/s --adopt" in lost.stderr
    advised = lost.stderr.rpartition("run: memoryd ")[2].strip()
    assert 0 == subprocess.run(f"{BIN / 'memoryd'} {advised}", shell=True, capture_output=True, check=False).returncode  # noqa: S602


def test_a_data_directory_that_others_may_write_is_warned_of(folder):
    folder.chmod(0o777)
    with running(folder, config=NO_MODEL) as daemon:
        said = admin("status", "--socket", daemon.socket).stdout
        assert f"warning   other users may write in {folder} (mode 777); run: chmod go-w {folder}" in said
        folder.chmod(0o755)
        assert "other users" not in admin("status", "--socket", daemon.socket).stdout
    folder.chmod(0o775)
    assert "other users may write" in admin("check", "--quiet", "--data-dir", folder).stderr
    assert 1 == len(json.loads(admin("check", "--json", "--data-dir", folder).stdout)["warnings"])
    folder.chmod(0o700)
    below = folder / "above" / "data"
    below.mkdir(parents=True, mode=0o700)
    below.parent.chmod(0o777)
    said = admin("check", "--quiet", "--data-dir", below).stderr
    assert f"write in {below.parent} (mode 777), and so replace {below}; run: chmod go-w {below.parent}" in said
    assert "so replace" in admin("check", "--quiet", "--data-dir", below / "not" / "yet").stderr
    link = below.parent / "link"
    link.symlink_to(folder)
    assert f"so replace {link}" in admin("check", "--quiet", "--data-dir", link).stderr
    below.parent.chmod(0o1777)  # as /tmp: nobody replaces what another one owns
    assert "other users" not in admin("check", "--quiet", "--data-dir", below).stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_a_data_directory_that_another_user_owns_or_may_replace_is_warned_of(folder):
    above, data = folder / "above", folder / "above" / "data"
    data.mkdir(parents=True, mode=0o700)
    (folder / "link").symlink_to(data)
    assert not open_to_others(data)
    assert not open_to_others(folder / "link")
    os.chown(folder / "link", 4_242, -1, follow_symlinks=False)
    assert f"{folder}/link belongs to 4242, who may replace {folder}/link" in open_to_others(folder / "link")
    os.chown(data, 4_242, -1)
    assert not open_to_others(data)  # root looks at the folder of a service
    assert f"{data} belongs to 4242, who may change it" in open_to_others(data, user=4_243)
    os.chown(above, 4_244, -1)
    assert f"{above} belongs to 4244, who may replace {data}" in open_to_others(data)
    os.chown(above, 0, 4_242)
    above.chmod(0o770)
    assert f"write in {above} (mode 770), and so replace {data}" in open_to_others(data)
    above.chmod(0o1770)
    assert not open_to_others(data)


def test_errors_are_json_where_json_is_asked_for(daemon, user):
    env = {"PATH": os.environ["PATH"], "HOME": "/", "MEMORY_ENDPOINT": daemon.endpoint, "MEMORY_USER_ID": user}

    def refused(*words: str, program: str = "memory") -> tuple[int, str, dict[str, str]]:
        done = run_command([BIN / program, *words, "--json"], env=env, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, json.loads(done.stderr)["error"]

    code, out, error = refused("get", "aaaaaaaa")
    assert (3, "", "NOT_FOUND", "MEMORY_NOT_FOUND") == (code, out, error["code"], error["reason"])
    code, _, error = refused("search", "x", "--limit", "100000")
    assert (5, "limit") == (code, error["field"])
    code, _, error = refused("serch", "x")
    assert (2, "WRONG_USAGE", True) == (code, error["reason"], "did you mean search" in error["message"])
    code, _, error = refused("add", "x", "--meta", "a=1", "--meta", "a=2")
    assert (2, "--meta names a key twice") == (code, error["message"])
    code, _, error = refused("status", "--socket", "/nowhere/s", program="memoryd")
    assert (1, "UNAVAILABLE") == (code, error["code"])
    code, _, error = refused("jobs", "show", "nothing", "--socket", str(daemon.socket), program="memoryd")
    assert (1, "RUN_NOT_FOUND") == (code, error["reason"])
    code, _, error = refused("gc", "--nonsense", program="memoryd")
    assert (2, "WRONG_USAGE") == (code, error["reason"])


def test_colours_are_for_terminals_that_want_them(daemon, user):
    with daemon.client(user) as memory:
        memory.add("I drive an old Volvo V50")
        memory.add("I drive a new Volvo V60, they say")
    env = {"PATH": os.environ["PATH"], "HOME": "/", "MEMORY_ENDPOINT": daemon.endpoint, "MEMORY_USER_ID": user}
    command = [str(BIN / "memory"), "search", "Which Volvo do I drive?"]
    coloured = on_terminal(command, {**env, "TERM": "xterm"})
    assert re.search(r"\x1b\[3[26]m\[[01]\.\d\d (strong|likely)\]\x1b\[0m", coloured)
    for more in ({"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}, {}):
        plain = on_terminal(command, {**env, **more})
        assert (True, False) == ("Volvo" in plain, "\x1b" in plain)
    assert b"\x1b" not in run_command(command, env={**env, "TERM": "xterm"}, capture_output=True, check=True).stdout


def test_tables_and_bars_fit_70_columns(daemon, user):
    with daemon.client(user) as memory:
        memory.add("Ann hiked for days near the fjords of Norway in July 2025")
        memory.append("t", [MessageDraft(content="Hello there")])
        memory.start_session("t")
    env = {"PATH": os.environ["PATH"], "HOME": "/", "MEMORY_ENDPOINT": daemon.endpoint, "MEMORY_USER_ID": user,
           "TERM": "dumb"}  # fmt: skip
    explained = on_terminal(
        [str(BIN / "memory"), "search", "--explain", "Where did Ann hike in July 2025?"], env
    ).splitlines()
    bars = [line for line in explained if "█" in line]
    assert len(bars) >= 3
    rows = [on_terminal([str(BIN / "memoryd"), *words.split(), "--socket", str(daemon.socket)], env).splitlines()
            for words in ("jobs list", f"sessions --user {user}", f"users --limit {10_000 // 10}")]  # fmt: skip
    assert all(len(table) >= 2 for table in rows)
    rows[1] = [line.rsplit(" ", 1)[0] for line in rows[1]]  # the id of a session is as long as its host makes it
    assert [] == [line for line in [*bars, *(line for table in rows for line in table)] if len(line) > 70]


def test_serve_says_on_a_terminal_in_one_line_that_it_serves(folder):
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb", "MEMORYD_EMBEDDING_PROVIDER": "none"}
    socket = folder / "s"
    command = [str(BIN / "memoryd"), "serve", "--data-dir", str(folder / "data"), "--socket", str(socket)]
    said = on_terminal(command, env, until_said="job_done")
    (line,) = [one for one in said.splitlines() if "serving on" in one]
    assert f"MEMORY_ENDPOINT=unix://{socket} memory add" in line
    assert "{" not in said
    assert "stopped" in said


def test_owners_are_listed_with_what_is_stored_of_them(folder):
    with running(folder, config=NO_MODEL) as daemon:
        assert ((), 0) == (daemon.client().list_owners().owners, daemon.client().list_owners().owner_count)
        with daemon.client("ann", "team") as ann:
            ann.add("süß" * 10)
            ann.add("shared words", shared=True)
            ann.delete(ann.add("gone").memory.id)
            ann.append("t", [MessageDraft(content="Hello")])
        with daemon.client("bob") as bob:
            bob.add("x")
        with daemon.client("cid") as cid:
            cid.set_working_memory("buy milk")
        with daemon.client("bob") as bob:
            found = bob.list_owners()
            sizes = {(one.user_id, one.chat_id): (one.memory_count, one.message_count, one.content_bytes) for one in
                     found.owners}  # fmt: skip
            assert {(one.new_memory_count, one.new_message_count) for one in found.owners} == {
                (one.memory_count, one.message_count) for one in found.owners
            }
            assert {
                ("ann", ""): (2, 1, 59),
                ("", "team"): (1, 0, 12),
                ("bob", ""): (1, 0, 1),
                ("cid", ""): (0, 0, 0),
            } == sizes
            assert (4, ["ann"]) == (found.owner_count, [one.user_id for one in bob.list_owners(limit=1).owners])
            assert 0 == bob.list_owners(agent_id="other").owner_count
            with pytest.raises(InvalidArgument, match="limit is 1001"):
                bob.list_owners(limit=1001)
        shown = admin("users", "--socket", daemon.socket).stdout.splitlines()
        assert "       2        1    59 bytes  user ann" == shown[0]
        assert "chat team" in shown[1]
        listed = json.loads(admin("users", "--limit", "2", "--json", "--socket", daemon.socket).stdout)
        assert (2, 4, True) == (len(listed["owners"]), listed["owner_count"], listed["more"])


def test_without_a_model_the_advice_fits(folder):
    with running(folder, config=NO_MODEL) as daemon:
        env = {"PATH": os.environ["PATH"], "HOME": "/", "MEMORY_ENDPOINT": daemon.endpoint, "MEMORY_USER_ID": "ann"}
        done = run_command([BIN / "memory", "search", "x"], env=env, capture_output=True, text=True, check=True)
        assert "by words alone" in done.stderr
        assert "ask in the words that were stored" in done.stderr
        assert "embedding.provider is none" in admin("reembed", "--socket", daemon.socket).stdout
    assert "by words alone" in admin("check", "--data-dir", folder, MEMORYD_EMBEDDING_PROVIDER="none").stdout


def test_how_long_becomes_a_time(daemon, user):
    with daemon.client(user) as memory:
        made = memory.add("The car is at the garage", expire_time=timedelta(weeks=2)).memory
        assert timedelta(days=13, hours=23) < made.expire_time - datetime.now(UTC) < timedelta(days=14, minutes=1)
        for wrong in (timedelta(0), timedelta(days=-1)):
            with pytest.raises(InvalidArgument, match="more than 0"):
                memory.add("x", expire_time=wrong)
        with pytest.raises(InvalidArgument):
            memory.add("x", expire_time=timedelta(days=1), expires_days=1)
    assert 0.5 == Draft(content="x", expire_time=timedelta(hours=12)).expires_days


def test_a_repr_says_what_is_not_the_default():
    made = stated("tea", tags=("hot",))
    assert repr(made).startswith(f"Memory(id='{made.id}'")
    assert "content='tea'" in repr(made)
    assert "delete_time" not in repr(made)
    assert len(repr(made)) < 300
    assert "tags=('hot',)" in repr(made)
    assert "expires_days" in repr(Draft(content="x"))  # by that of a draft are requests known that old daemons noted


def test_a_refusal_says_what_the_grant_allows_and_whom_to_ask(daemon):
    opened = json.loads(
        admin("sandbox", "open", "--user", "ann", "--allow", "add,search", "--label", "code runner", "--json",
              "--socket", daemon.socket).stdout
    )  # fmt: skip
    env = {"PATH": os.environ["PATH"], "HOME": "/", "MEMORY_ENDPOINT": f"unix://{opened['directory']}/memory.sock"}
    done = run_command([BIN / "memory", "list"], env=env, capture_output=True, text=True, check=False)
    assert 4 == done.returncode
    assert "does not allow 'list'; it allows add, search" in done.stderr
    assert f"(grant {opened['grant']['id'][:8]} 'code runner')" in done.stderr


def test_check_names_a_zone_that_there_is_not_and_goes_on(folder):
    config = folder / "c.toml"
    config.write_text('[schedule]\ntimezone = "Mars"\n[embedding]\nprovider = "/nowhere"\n')
    told = admin("check", "--json", "--config", config, "--data-dir", folder / "data")
    faults = json.loads(told.stdout)["faults"]
    assert (78, 2) == (told.returncode, len(faults))
    assert "schedule.timezone is 'Mars'" in faults[0]


def test_check_finds_a_path_too_long_and_toml_too_deep_and_shows_no_escape(folder):
    config = folder / "c.toml"
    config.write_text('["\\u001b[31mx"]\na = 1\n')
    told = admin("check", "--quiet", "--config", config, "--data-dir", folder / "data", "--socket", f"/{'s' * 200}")
    assert (78, False) == (told.returncode, "\x1b" in told.stderr)
    assert "longer than 107 bytes" in told.stderr
    config.write_text("a = " + "[" * 5000)
    told = admin("check", "--quiet", "--config", config, "--data-dir", folder / "data")
    assert (78, True) == (told.returncode, "is not TOML" in told.stderr)


@pytest.mark.parametrize(("text", "day"), [("18.11.2026", 18), ("1.11.2026", 1), ("2026-11-18", 18)])
def test_days_are_read_as_they_are_written(text, day):
    assert (2026, 11, day) == parse_time(text).astimezone().timetuple()[:3]


@pytest.mark.parametrize("text", ["18.11.26", "32.11.2026", "11/18/2026", "18.13.2026"])
def test_days_that_may_mean_another_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="nor a date|no day or time"):
        parse_time(text)


def test_an_empty_text_behind_a_flag_is_an_empty_text(memory):
    code, _, error = memory("add", "--json", "")
    assert (2, True) == (code, "content" in error)
    assert "what follows --tag is empty" in memory("add", "tea", "--tag", "")[2]
