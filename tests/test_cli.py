"""The `memory` and `memoryd` commands, as a shell sees them."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import json
import os
import re
import socket
import subprocess
import sys
import threading

import pytest
from memory_cli.parser import make_parser

from memoryd.cli.main import make_parser as make_host_parser
from memoryd.daemon.config import Config
from memoryd.errors import InvalidArgument
from tests.forking import run_command
from tests.support import BIN, running


def test_the_words_of_the_requirements_work_as_written(memory):
    assert 0 == memory("add", "I'm allergic to peanuts")[0]
    memory("add", "--about", "Sarah", "my wife Sarah likes Italian food")
    memory("add", "--key", "color", "my favorite color is red")
    assert "superseded" in memory("add", "--key", "color", "my favorite color is blue")[1]
    _, out, _ = memory("search", "-n", "1", "What should I avoid eating?")
    assert out.startswith("[0.")
    assert "] I'm allergic to peanuts  " in out
    assert (
        "my wife Sarah likes Italian food (about Sarah)"
        in memory("search", "What does my wife like?")[1].splitlines()[0]
    )
    assert "my wife Sarah likes Italian food (about Sarah)" in memory("search", "--about", "sarah", "anything")[1]
    found = memory("search", "favorite color")[1]
    assert "blue" in found
    assert "red" not in found


def test_what_is_added_is_listed_shown_deleted_and_taken_back(memory):
    code, out, _ = memory("add", "-", stdin="a long\nnote\n")
    short = out.split()[1]
    assert (0, "inserted", 8) == (code, out.split()[0], len(short))
    assert f"{short}  " in memory("list")[1]
    assert "a long note" in memory("get", short)[1]
    assert f"would delete {short}" in memory("delete", "--dry-run", short)[1]
    assert f"deleted {short}, can be taken back until" in memory("delete", short)[1]
    assert "" == memory("list")[1]
    assert f"restored {short}\n" == memory("undelete", short)[1]
    assert f"deleted {short} for good\n" == memory("delete", "--now", short)[1]
    assert 3 == memory("undelete", short)[0]
    assert "not there" in memory("delete", "--allow-missing", "a" * 26)[1]


def test_of_several_ids_those_that_can_be_are_done_and_the_rest_is_named(memory):
    ids = [json.loads(memory("add", "--json", f"note {n}")[1])["memory"]["id"] for n in range(2)]
    code, out, err = memory("delete", "--json", ids[0], "z" * 26, ids[1])
    assert (3, ids) == (code, [item["deleted_ids"][0] for item in json.loads(out)["deleted"]])
    assert "z" * 26 in json.loads(err)["error"]["message"]
    assert 0 == memory("undelete", *ids)[0]
    assert 2 == len(memory("list")[1].splitlines())


@pytest.mark.parametrize("command", ["memory list", "memory list --json", "memory search note"])
def test_a_terminal_without_unicode_and_a_full_disk_are_no_crash(daemon, memory, user, command):
    memory("add", "café note")
    env = {"PATH": f"{BIN}:{os.environ['PATH']}", "MEMORY_ENDPOINT": daemon.endpoint, "MEMORY_USER_ID": user,
           "PYTHONIOENCODING": "ascii"}  # fmt: skip
    done = run_command(command.split(), env=env, capture_output=True, check=True)
    assert "café" in done.stdout.decode()
    full = subprocess.run(["bash", "-c", f"{command} > /dev/full"], env=env, capture_output=True, check=False)
    assert (1, b"memory: cannot write: No space left on device\n") == (full.returncode, full.stderr)
    closed = subprocess.run(["bash", "-c", "memory add - <&-"], env=env, capture_output=True, check=False)
    assert (2, b"memory: standard input is closed\n") == (closed.returncode, closed.stderr)
    for mute in (f"{command} >&-", f"{command} 2>&-", f"{command} >&- 2>&-", f"{command} | true"):
        done = subprocess.run(["bash", "-c", mute], env=env, capture_output=True, check=False)
        assert (0, b"") == (done.returncode, done.stderr), mute
    wrong = subprocess.run(["memory", "serch", "x"], env=env, capture_output=True, check=False)
    assert (2, True) == (wrong.returncode, b"did you mean search" in wrong.stderr)
    shown = subprocess.run(["memory", "search", "--help"], env=env, capture_output=True, check=False)
    assert (0, True, b"") == (shown.returncode, shown.stdout.startswith(b"usage: memory search"), shown.stderr)


def test_json_has_the_names_of_the_contract(memory):
    added = json.loads(memory("add", "--json", "--tag", "t", "--meta", "k=v", "--expires", "2w", "my note")[1])
    assert ("inserted", "my note", "live", ["t"], {"k": "v"}) == (
        added["outcome"], added["memory"]["content"], added["memory"]["state"], added["memory"]["tags"],
        added["memory"]["metadata"],
    )  # fmt: skip
    assert "cli" == added["memory"]["source"]["channel"]
    hit = json.loads(memory("search", "--json", "note")[1])["hits"][0]
    named = "memory score similarity lexical explanation same_ids said_by_other newer"
    assert {*named.split()} == hit.keys()
    assert added["memory"]["id"] == json.loads(memory("list", "--json")[1])["memories"][0]["id"]
    assert added["memory"]["id"] == json.loads(memory("get", "--json", added["memory"]["id"])[1])["id"]
    assert "relevant_memory" == json.loads(memory("context", "--json", "note")[1])["sections"][0]["name"]
    assert 1 == json.loads(memory("stats", "--json")[1])["counts"][0]["count"]
    assert [added["memory"]["id"]] == json.loads(memory("delete", "--json", added["memory"]["id"])[1])["deleted"][0][
        "deleted_ids"
    ]


def test_the_identity_comes_from_the_environment_and_the_options(memory, user):
    memory("add", "--shared", "ours", MEMORY_CHAT_ID=f"chat-{user}")
    assert "ours" in memory("list", MEMORY_CHAT_ID=f"chat-{user}", MEMORY_USER_ID="somebody")[1]
    assert "ours" in memory("list", "--chat", f"chat-{user}")[1]
    assert "" == memory("list")[1]
    assert "" == memory("list", "--chat", f"chat-{user}", "--agent", "other")[1]
    who = json.loads(memory("whoami", "--json", MEMORY_CHAT_ID="c")[1])
    assert ("default", user, "c") == (who["agent_id"], who["user_id"], who["chat_id"])
    nobody = json.loads(memory("whoami", "--json", MEMORY_USER_ID="")[1])
    assert getpass.getuser() == nobody["user_id"]  # on the admin socket, as psql does
    alone = json.loads(memory("whoami", "--json", "--no-user", "--chat", f"chat-{user}")[1])
    assert ("", f"chat-{user}") == (alone["user_id"], alone["chat_id"])
    assert "ours" in memory("list", "--no-user", "--chat", f"chat-{user}")[1]
    assert "neither user_id nor chat_id" in memory("list", "--no-user")[2]
    early = "memory: options stand behind the command: memory COMMAND --no-user …; see memory --help\n"
    assert (2, "", early) == memory("--no-user", "--chat", "c", "list")
    assert "not allowed with argument --no-user" in memory("list", "--no-user", "--user", "x")[2]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["add", ""], 2, "content is empty"),
        (["add", "x" * 9000], 5, "the limit is 8192"),
        (["add", "--shared", "x"], 2, "--shared needs a chat"),
        (["add", "--expires", "soon", "x"], 2, "neither 2w"),
        (["add", "--expires", "2001-01-01", "x"], 2, "not in the future"),
        (["add", "--meta", "novalue", "x"], 2, "KEY=TEXT"),
        (["search", "--limit", "101", "x"], 5, "the limit is 100"),
        (["search", "--limit", "-3", "x"], 2, "limit is -3; it must be at least 1"),
        (["search", "--limit", "-1", "x"], 2, "at least 1"),
        (["search", "--limit", "99999999999", "x"], 5, "limit is 99999999999"),
        (["list", "--limit", "0"], 2, "at least 1"),
        (["add", "--meta", "a=1", "--meta", "a=2", "x"], 2, "twice"),
        (["add", "\u200b"], 2, "content is empty"),
        (["list", "--timeout", "nan"], 2, "timeout_s"),
        (["list", "--timeout", "-1"], 2, "timeout_s"),
        (["list", "--endpoint", "localhost:99999999"], 2, "host:port"),
        (["get", "short"], 2, "at least 8"),
        (["get", "a" * 26], 3, "no memory"),
        (["frobnicate"], 2, "there is no command"),
        (["--nonsense"], 2, "--help"),
        (["list", "--endpoint", "unix:///nowhere/s"], 6, "/nowhere/s"),
        (["list", "--endpoint", "nonsense"], 2, "host:port"),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(memory, words, code, said):
    found, out, err = memory(*words)
    assert (code, "", 1) == (found, out, len(err.strip().splitlines())), err
    assert said in err


def test_input_that_is_no_text_is_refused(memory):
    code, _, err = memory("add", "-", stdin=b"\xff\xfe")
    assert (2, "memory: standard input is not UTF-8 text\n") == (code, err)


def test_control_characters_do_not_reach_the_terminal(memory):
    memory("add", "red \x1b[31malert\x07 text")
    for command in (["list"], ["search", "red alert text"], ["context", "--min-score", "0", "alert"]):
        out = memory(*command)[1]
        assert "alert" in out
        assert "\x1b" not in out


def test_a_closed_pipe_is_no_error(daemon, memory, user):
    for n in range(3):
        memory("add", f"line {n} " + "x" * 4000)
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {BIN}/memory list --all | head -c 1"],
        env={"PATH": os.environ["PATH"], "MEMORY_ENDPOINT": daemon.endpoint, "MEMORY_USER_ID": user},
        capture_output=True, check=False,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_completes(memory, shell):
    code, script, _ = memory("completion", shell)
    assert 0 == code
    for word in ("add", "undelete", "whoami", "expires" if shell == "fish" else "--expires"):
        assert word in script
    if shell == "bash":
        check = f'{script}\nCOMP_WORDS=(memory sea); COMP_CWORD=1; _shtab_memory; echo "${{COMPREPLY[@]}}"'
        assert b"search\n" == subprocess.run(["bash", "-c", check], capture_output=True, check=True).stdout


def test_a_subcommand_completes_its_own_options_and_no_other():
    script = run_command([BIN / "memoryd", "completion", "bash"], capture_output=True, text=True, check=True).stdout
    for action, offered in (("open", "--mount"), ("close", "")):
        asked = f'COMP_WORDS=(memoryd sandbox {action} --mo); COMP_CWORD=3; _shtab_memoryd; echo "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", f"{script}\n{asked}"], capture_output=True, text=True, check=True)
        assert offered == done.stdout.strip()


def test_every_command_has_examples(memory):
    for command in ("add", "search", "list", "get", "delete", "undelete", "context", "stats", "whoami", "completion"):
        code, out, _ = memory(command, "--help")
        assert 0 == code
        assert "examples:" in out


def admin(*words: str, **env: str):
    values = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **env}
    return run_command([BIN / "memoryd", *words], env=values, capture_output=True, text=True, check=False)


def test_status_and_gc_ask_the_daemon(daemon):
    status = admin("status", "--socket", str(daemon.socket))
    assert 0 == status.returncode
    assert "embedding builtin, 384 dimensions" in status.stdout
    info = json.loads(admin("status", "--json", "--socket", str(daemon.socket)).stdout)
    assert {"version", "commit_seq", "rss_bytes", "warnings"} <= info.keys()
    assert "would erase 0 deleted" in admin("gc", "--dry-run", "--socket", str(daemon.socket)).stdout
    assert json.loads(admin("gc", "--dry-run", "--json", "--socket", str(daemon.socket)).stdout)["dry_run"]
    lost = admin("status", "--socket", "/nowhere/s")
    assert (1, "") == (lost.returncode, lost.stdout)


def test_check_prints_every_key_and_looks_at_the_database(folder):
    places = "--data-dir", str(folder), "--socket", str(folder / "s")
    fresh = admin("check", *places, MEMORYD_CONTEXT_MAX_TOKENS="123")
    assert 0 == fresh.returncode, fresh.stderr
    for key in Config().entries():
        assert f"{key.section}.{key.name} = " in fresh.stdout
    assert "context.max_tokens = 123 tokens (default 2000)" in fresh.stdout
    assert "will be made at the first start" in fresh.stdout
    config = '[embedding]\nprovider = "none"\n[memory]\nauto_gc = false\n'
    with running(folder, config=config) as daemon:
        daemon.client().add("x")
        assert "is in use by a running memoryd" in admin("check", *places).stdout
        assert 78 == admin("check", "--adopt", *places).returncode
    last = re.search(r"whole, up to transaction (\d+)\n", admin("check", *places).stdout)
    assert last is not None  # up to which one nobody knows: the daemon's own jobs commit too
    (folder / "memory.duckdb.seq").unlink()
    lost = admin("check", *places)
    assert (78, True) == (lost.returncode, "--adopt" in lost.stderr)
    assert 0 == admin("check", "--adopt", *places).returncode
    assert json.loads(admin("check", "--json", *places).stdout)["config"]


def test_without_the_servers_packages_the_daemon_says_how_to_get_them():
    code = "import sys; sys.modules['duckdb'] = None; from memoryd.__main__ import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code, "serve"], capture_output=True, text=True, check=False)
    assert (1, "memoryd: duckdb is not installed; run: pip install 'memoryd[server]'\n") == (
        done.returncode,
        done.stderr,
    )


def test_a_command_that_is_not_there_names_the_nearest(memory, daemon):
    code, out, err = memory("serch", "tea")
    assert (2, "", "memory: there is no command 'serch'; did you mean search; see memory --help\n") == (code, out, err)
    assert "there are add, search, list" in memory("zzz")[2]
    done = run_command(daemon.command("statsu"), capture_output=True, text=True, check=False)
    assert (2, True) == (done.returncode, "there is no command 'statsu'; did you mean status" in done.stderr)


def without_examples(parser: argparse.ArgumentParser, name: str) -> list[str]:
    """Return the commands of a parser whose help shows no example."""
    found = [] if "example" in parser.format_help() else [name]
    for action in parser._actions:
        for command, below in action.choices.items() if isinstance(action.choices, dict) else ():
            found += without_examples(below, f"{name} {command}")
    return found


def test_the_help_of_every_command_shows_examples():
    assert [] == without_examples(make_host_parser(), "memoryd")
    assert [] == without_examples(make_parser(), "memory")


def test_an_option_that_is_not_there_names_the_nearest_one_of_its_command(memory, daemon):
    told = "memory search: unrecognized arguments: --limt; did you mean --limit; see memory search --help\n"
    assert (2, "", told) == memory("search", "tea", "--limt")
    done = run_command(daemon.command("sandbox", "list", "--jsn"), capture_output=True, text=True, check=False)
    assert (2, True) == (done.returncode, "memoryd sandbox list: unrecognized arguments: --jsn" in done.stderr)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "--expires", "999y", "tea"), "--expires is 364635.0 days; it must"),
        (("list", "--since", "2026-05-01", "--until", "2026-04-01"), "--until must be later than --since"),
        (("add", "--shared", "tea"), "--shared needs a chat (--chat, or MEMORY_CHAT_ID)"),
        (("search", "tea", "--since", "2026-02-30"), "there is no day or time '2026-02-30'"),
    ],
)
def test_errors_name_what_was_typed(memory, words, said):
    code, out, error = memory(*words)
    assert (2, "") == (code, out)
    assert said in error


def test_what_fails_of_several_is_json_where_json_is_asked_for(memory):
    made = json.loads(memory("add", "--json", "I like tea")[1])["memory"]["id"]
    code, out, error = memory("delete", "--json", made, "z" * 26)
    assert (3, [made]) == (code, json.loads(out)["deleted"][0]["deleted_ids"])
    assert "MEMORY_NOT_FOUND" == json.loads(error)["error"]["reason"]


@pytest.mark.parametrize(
    "words",
    [
        ("sandbox", "close", "aaaaaaaa"), ("token", "revoke", "aaaaaaaa"), ("review", "approve", "aaaaaaaa"),
        ("review", "approve", "aaaaaaaa", "bbbbbbbb", "--as", "x"), ("sessions",), ("jobs", "show", "nothing"),
    ],
)  # fmt: skip
def test_errors_of_the_host_s_commands_are_json_where_json_is_asked_for(daemon, words):
    done = run_command(daemon.command(*words, "--json"), capture_output=True, text=True, check=False)
    assert done.returncode in {1, 2}
    assert json.loads(done.stderr)["error"]["message"]


def test_messages_that_are_added_as_a_statement_are_pointed_to_append(daemon, user):
    with daemon.client(user) as client, pytest.raises(InvalidArgument, match=r"append\(thread_id, messages\)"):
        client.add([{"role": "user", "content": "hi"}])


def test_an_error_over_tls_is_json_alone_where_json_is_asked_for():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)

        def answer():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    connection.recv(100)
                    connection.sendall(b"HTTP/1.1 400 this speaks no TLS\r\n\r\n")
                    connection.close()

        threading.Thread(target=answer, daemon=True).start()
        endpoint = f"127.0.0.1:{listener.getsockname()[1]}"
        command = [str(BIN / "memory"), "whoami", "--json", "--endpoint", endpoint]
        done = run_command(command, capture_output=True, text=True, check=False)
    assert (6, "UNAVAILABLE") == (done.returncode, json.loads(done.stderr)["error"]["code"])


def test_what_was_deleted_is_listed_for_the_host(memory):
    memory("add", "I keep bees")
    short = memory("list")[1].split()[0]
    memory("delete", short)
    listed = memory("list", "--deleted")[1]
    assert listed.startswith(short)
    assert "I keep bees" in listed
    assert "takes no filter" in memory("list", "--deleted", "--about", "Sarah")[2]
    memory("undelete", short)
    assert "nothing is deleted" in memory("list", "--deleted")[2]
