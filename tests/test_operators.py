"""What operators and newcomers meet first: other users, no HOME, wrong places, sizes, times, recipes that work."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from memory_cli.output import as_json, list_json, one_line, shortest_ids, size
from memory_cli.parser import make_parser, parse_known, parse_past
from memory_client import Credentials, InvalidArgument, MemoryClient, PermissionDenied

from memoryd.paths import NoHomeError, data_dir, find_socket, socket_candidates
from tests.forking import run_command
from tests.support import Daemon, running, short_folder

CONFIG = '[embedding]\nprovider = "none"\n[memory]\nauto_gc = false\n'
ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
AS_NOBODY = (
    "import importlib.metadata, os, sys\n"
    "import duckdb, tokenizers, onnxruntime\n"
    "import memoryd.cli.main, memoryd.daemon.serve, memory_client, memory_cli.main\n"
    "import memoryd.store.duckdb, memoryd.daemon.wiring\n"
    "import memoryd.daemon.logs, memoryd.daemon.schedule, memoryd.daemon.servers\n"
    "from memoryd.__main__ import main\n"
    "version = importlib.metadata.version('memoryd')\n"
    "importlib.metadata.version = lambda name: version\n"
    "os.setgid(65534); os.setuid(65534)\n"
    "sys.exit(main())"
)


def as_nobody(daemon: Daemon, *words: str) -> tuple[int, str]:
    """Run a command as another user, whose packages were read before, as the checkout may be closed to them."""
    if os.getuid():
        pytest.skip("needs root, to become another user")
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "XDG_RUNTIME_DIR": str(daemon.folder),
           "XDG_DATA_HOME": str(daemon.folder), "MEMORYD_EMBEDDING_PROVIDER": "none"}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, *words], env=env, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def private() -> Iterator[Daemon]:
    """A daemon of root's, in a directory that others may pass through but for its own folders."""
    with short_folder() as folder:
        folder.chmod(0o755)
        daemon = Daemon(folder / "memoryd", config="")
        (folder / "memoryd").mkdir(mode=0o700)
        daemon.socket = folder / "memoryd" / "admin.sock"
        daemon._arguments = ["--data-dir", str(folder / "memoryd"), "--socket", str(daemon.socket)]
        daemon.env["MEMORYD_EMBEDDING_PROVIDER"] = "none"
        daemon.start()
        yield daemon
        daemon.stop()


@pytest.mark.parametrize(
    "command",
    ["status", "gc", "sandbox list", "grant list", "audit", "compact", "check --data-dir {}", "audit --data-dir {}",
     "serve --data-dir {}"],
)  # fmt: skip
def test_another_user_gets_one_line_that_says_what_to_do(private, command):
    private_home = Daemon.__new__(Daemon)
    private_home.folder = private.folder.parent
    code, said = as_nobody(private_home, *command.format(private.folder).split())
    assert code in {1, 78}
    assert 1 == len(said.splitlines()), said
    assert "sudo -u root memoryd" in said


def test_the_command_and_the_client_of_another_user_say_the_same(private):
    if os.getuid():
        pytest.skip("needs root, to become another user")
    code = (
        "import os\nfrom memory_client import MemoryClient, PermissionDenied\nos.setgid(65534); os.setuid(65534)\n"
        "try:\n    MemoryClient(user_id='x')\n"
        "except PermissionDenied as error:\n    print(error)"
    )
    env = {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(private.folder.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert (0, True) == (done.returncode, "run as root, whose daemon it is" in done.stdout), done.stderr


def test_a_sandbox_is_never_told_to_run_as_memoryd(folder):
    from memory_client.failures import error_of

    class Refused:
        def code(self):
            import grpc

            return grpc.StatusCode.UNAVAILABLE

        def details(self):
            return "connect: Permission denied (13)"

        def trailing_metadata(self):
            return ()

    error = error_of(Refused(), "unix:/run/memory/memory.sock")
    assert isinstance(error, PermissionDenied)
    assert "memoryd" not in error.message
    assert "mount" in error.message
    assert "run as the user of memoryd" in error_of(Refused(), "unix:/run/memoryd/admin.sock").message


# --- no home, nobody ---


def test_without_a_home_nothing_is_put_anywhere(folder):
    with pytest.raises(NoHomeError):
        data_dir({})
    assert folder / "memoryd" == data_dir({"XDG_DATA_HOME": str(folder)})
    assert (Path("/run/memoryd/admin.sock"),) == socket_candidates({})
    env = {"PATH": os.environ["PATH"], "MEMORYD_EMBEDDING_PROVIDER": "none"}
    done = run_command([BIN / "memoryd", "serve"], env=env, capture_output=True, text=True, check=False)
    assert (2, 1, True) == (done.returncode, len(done.stderr.splitlines()), "HOME is not set" in done.stderr)
    daemon = Daemon(folder, config=CONFIG)
    daemon.env.pop("HOME")
    daemon.start()  # every path is named
    assert 0 == daemon.stop()


def test_an_empty_user_is_refused(folder):
    for command in (["memory", "list", "--user", ""], ["memory", "list", "--chat", " "],
                    ["memory", "add", "--key=", "x"],
                    ["memoryd", "sandbox", "open", "--user", "", "--allow", "search"], ["memoryd", "audit", "--id", ""],
                    ["memoryd", "serve", "--data-dir", ""],
                    ["memoryd", "verify", "--forgotten", "a" * 26, "--text", " "]):  # fmt: skip
        done = run_command([BIN / command[0], *command[1:]], capture_output=True, text=True, check=False)
        assert (2, True) == (done.returncode, "is empty; leave the option out" in done.stderr)


def test_a_token_for_a_grant_that_is_there_and_a_sandbox_of_a_chat_alone(folder):
    with running(folder, config=CONFIG) as daemon:

        def ask(*words):
            done = run_command(daemon.command(*words), capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr

        code, said = ask("sandbox", "open", "--chat", "team", "--allow", "read-only", "--json")
        assert 0 == code, said
        grant = json.loads(said)["grant"]
        assert ("", ["team"]) == (grant["user_id"], grant["chat_ids"])
        code, said = ask("token", "issue", "--grant", grant["id"], "--ttl", "1h", "--out", str(folder / "t"))
        assert (0, True) == (code, grant["id"] in said), said
        assert 0 == ask("sandbox", "close", grant["id"])[0]
        assert re.search(r"ended \d{4}-\d\d-\d\d \d\d:\d\d$", ask("grant", "list", "--all")[1].strip())


def test_the_first_socket_that_is_there_is_taken(folder):
    missing, plain = folder / "a", folder / "b"
    plain.touch()
    with running(folder, config=CONFIG) as daemon:
        assert daemon.socket == find_socket([missing, plain, daemon.socket])
        assert missing == find_socket([missing, plain])


# --- times and sizes ---


def test_times_are_taken_as_the_message_names_them():
    now = datetime.now(UTC)
    assert timedelta(days=3) - timedelta(minutes=1) < now - parse_past("3d") < timedelta(days=3, minutes=1)
    for option in ("--since", "--until"):
        args = make_parser().parse_args(["list", option, "2w"])
        assert abs(now - timedelta(days=14) - getattr(args, option[2:])) < timedelta(minutes=1)
    assert abs(now - timedelta(hours=12) - make_parser().parse_args(["add", "x", "--at", "12h"]).at) < timedelta(
        minutes=1
    )
    assert datetime(2026, 1, 2, tzinfo=UTC) == parse_past("2026-01-02T00:00:00Z")
    for wrong in ("3 days", "yesterday", "9999999y", ""):
        with pytest.raises(Exception, match="neither 2w|before the calendar"):
            parse_past(wrong)


def test_what_was_known_on_a_day_is_known_at_its_end():
    midnight = datetime(2026, 1, 3).astimezone(UTC)  # here, where it is the end of the day before
    assert midnight == parse_known("2026-01-02") == parse_known("2.1.2026")
    assert datetime(2026, 1, 2, tzinfo=UTC) == parse_known("2026-01-02T00:00:00Z")
    now = datetime.now(UTC)
    today = parse_known(f"{now.astimezone():%Y-%m-%d}")
    assert now <= today <= datetime.now(UTC)
    assert timedelta(days=3) - timedelta(minutes=1) < now - parse_known("3d") < timedelta(days=3, minutes=1)


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (33554432, "32.0 MiB"), (5 << 40, "5.0 TiB")],
)
def test_sizes_are_shown_as_people_write_them(count, shown):
    assert shown == size(count)


def test_what_the_commands_show_has_no_bare_numbers_of_bytes(folder):
    with running(folder, config=CONFIG) as daemon:
        with daemon.client() as memory:
            memory.add("a statement")

        def out(*words, **env):
            command = daemon.command(*words) if words[0] != "memory" else [str(BIN / "memory"), *words[1:]]
            values = {"PATH": os.environ["PATH"], "HOME": str(folder), "MEMORY_USER_ID": "alice", **env}
            return run_command(command, env=values, capture_output=True, text=True, check=True).stdout

        box = json.loads(out("sandbox", "open", "--user", "alice", "--allow", "full", "--json"))
        shown = [
            out("status"), out("compact"), out("check"), out("memory", "stats", MEMORY_ENDPOINT=daemon.endpoint),
            out("memory", "whoami", MEMORY_ENDPOINT=f"unix://{box['directory']}/memory.sock"),
        ]  # fmt: skip
    lines = [line for text in shown for line in text.splitlines() if "at " not in line]
    uuid = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # the first part of one may be digits alone
    assert not re.search(r"\de\+\d|\b\d{7,}\b", re.sub(uuid, "", "\n".join(lines)))
    assert "stored_bytes 0 bytes of 256.0 MiB" in shown[-1]


# --- what a terminal gets ---


def test_json_escapes_what_could_drive_a_terminal():
    hostile = "a\x1b[31m\x9b31m\u202eb\u2066c\x7f\u200bd\U000e0041é日😀"
    text = as_json({"x": hostile})
    assert hostile == json.loads(text)["x"]
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert "é日😀" in text
    assert one_line(hostile).isprintable()


def test_every_list_has_one_shape(folder):
    assert {"things": [1], "more": False} == json.loads(list_json("things", [1]))
    with running(folder, config=CONFIG) as daemon:

        def ask(*words):
            env = {"PATH": os.environ["PATH"], "HOME": str(folder), "MEMORY_ENDPOINT": daemon.endpoint,
                   "MEMORY_USER_ID": "alice"}  # fmt: skip
            command = daemon.command(*words[1:]) if words[0] == "memoryd" else [str(BIN / "memory"), *words[1:]]
            done = run_command([*command, "--json"], env=env, capture_output=True, text=True, check=True)
            return json.loads(done.stdout)

        made = [ask("memory", "add", f"Sarah likes {what}")["memory"]["id"] for what in ("tea", "jazz")]
        grant = ask("memoryd", "sandbox", "open", "--user", "alice", "--allow", "full")["grant"]["id"]
        for name, words in (
            ("memories", ["memory", "list"]),
            ("people", ["memory", "people"]),
            ("people", ["memory", "forget", "Sarah", "--dry-run"]),
            ("confirmed", ["memory", "confirm", made[0]]),
            ("deleted", ["memory", "delete", made[0]]),
            ("memories", ["memory", "undelete", made[0]]),
            ("grants", ["memoryd", "sandbox", "list"]),
            ("grants", ["memoryd", "grant", "list"]),
            ("memories", ["memoryd", "grant", "memories", grant]),
            ("grants", ["memoryd", "sandbox", "close", grant]),
        ):
            found = ask(*words)
            assert ({name, "more"}, False, list) == (found.keys(), found["more"], type(found[name])), words


def test_a_list_of_nothing_says_so(folder):
    with running(folder, config=CONFIG) as daemon:
        env = {"PATH": os.environ["PATH"], "HOME": str(folder), "MEMORY_ENDPOINT": daemon.endpoint,
               "MEMORY_USER_ID": "alice"}  # fmt: skip
        for words, said in ((["list"], "nothing is remembered yet"), (["list", "--tag", "x"], "nothing like that")):
            done = run_command([BIN / "memory", *words], env=env, capture_output=True, text=True, check=True)
            assert ("", True) == (done.stdout, said in done.stderr)


def test_short_ids_of_thousands_take_no_time():
    ids = [f"{n:026d}" for n in range(20_000)]
    began = time.thread_time()
    short = shortest_ids(ids)
    assert time.thread_time() - began < 20  # it was 60 s, and is a tenth of one
    assert len(set(short.values())) == len(ids)
    assert {"aaaaaaaab": "aaaaaaaab", "aaaaaaaac": "aaaaaaaac", "b" * 26: "b" * 8} == shortest_ids(
        ["aaaaaaaab", "aaaaaaaac", "b" * 26, "aaaaaaaab"]
    )


# --- recipes ---


def test_the_bubblewrap_example_works_as_it_is_printed(folder):
    if shutil.which("bwrap") is None:
        pytest.skip("needs bwrap")
    with running(folder, config=CONFIG) as daemon, MemoryClient(daemon.endpoint, user_id="alice") as host:
        host.add("my favorite color is blue")
        words = ["sandbox", "open", "--user", "alice", "--allow", "full", "--json"]
        box = json.loads(run_command(daemon.command(*words), capture_output=True, text=True, check=True).stdout)
        example = shlex.split(box["examples"]["bubblewrap"])
        assert ["memory", "whoami"] == example[-2:]
        inside = subprocess.run(example, capture_output=True, text=True, check=False)
        assert (0, True) == (inside.returncode, "user_id:   alice" in inside.stdout), inside.stderr
        found = subprocess.run([*example[:-1], "search", "favorite color"], capture_output=True, text=True, check=True)
        assert "blue" in found.stdout
        assert (
            "1000"
            == subprocess.run([*example[:-2], "id", "-u"], capture_output=True, text=True, check=True).stdout.strip()
        )


def test_the_wheel_holds_the_contract_and_nothing_of_the_tests(tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    run_command([*command, "-w", tmp_path, ROOT], capture_output=True, check=True)
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    assert {f"memoryd/v1/{path.name}" for path in (ROOT / "proto" / "memoryd" / "v1").glob("*.proto")} <= {*names}
    assert {"memoryd/v1/memory_pb2.py", "memory_client/client.py", "memory_cli/main.py"} <= {*names}
    packages = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert packages == {"memoryd", "memory_client", "memory_cli", "memory_mcp"}


def test_the_container_takes_the_servers_packages_alone_in_the_versions_that_are_tested():
    def pinned(path: Path) -> set[str]:
        return set(re.findall(r"^([a-z0-9-]+==\S+) ", path.read_text(), re.MULTILINE))

    server, every = pinned(ROOT / "deploy" / "requirements.lock"), pinned(ROOT / "requirements.lock")
    assert server < every
    assert not {name for name in server if name.split("==")[0] in {"pytest", "ruff", "mypy", "spacy", "grpcio-tools"}}
    recipe = (ROOT / "deploy" / "Containerfile").read_text()
    copied = [name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", recipe, re.MULTILINE) for name in line.split()]
    assert "dist/memoryd-*.whl" in copied  # of make wheel: as for pip, pipx and uvx
    assert all((ROOT / name).exists() for name in copied if not name.startswith("dist/"))


def test_a_home_in_an_argument_or_variable_is_replaced_or_refused(folder):
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_DATA_HOME": "~/data", "XDG_STATE_HOME": "state",
           "MEMORYD_EMBEDDING_PROVIDER": "none"}  # fmt: skip
    asked = [sys.executable, "-m", "memoryd", "check", "--json"]
    done = run_command([*asked, "--data-dir=~/there"], env=env, capture_output=True, text=True, check=True)
    assert f"{folder}/there/memory.duckdb" in done.stdout
    default = run_command(asked, env=env, capture_output=True, text=True, check=True, cwd=folder)
    assert f"{folder}/.local/share/memoryd/memory.duckdb" in default.stdout  # as XDG says
    wrong = [*asked, "--data-dir=~nobody-here/x"]
    refused = subprocess.run(wrong, env=env, capture_output=True, text=True, check=False)
    assert (2, True) == (refused.returncode, "'~nobody-here/x' begins with a home directory" in refused.stderr)
    assert [] == [*folder.glob("**/~*")]
    with pytest.raises(InvalidArgument, match="home directory that is not known"):
        MemoryClient("unix://~nobody-here/s", user_id="u")
    with pytest.raises(InvalidArgument, match="token_file: .* home directory"):
        Credentials(token_file="~nobody-here/t")  # noqa: S106  a file
