"""Documentation is a product: what it names exists, and what exists is named."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from memory_cli import main as codes
from memory_cli.parser import EXIT_CODES, make_parser
from memory_client import AsyncMemoryClient, MemoryClient

from memoryd.cli import main as admin_cli
from memoryd.daemon.config import Config
from memoryd.daemon.config_file import load_config
from memoryd.daemon.servers import SERVICES
from memoryd.v1 import error_reason_pb2
from tests.support import BIN

ROOT = Path(__file__).parent.parent
DOCS = {path.name: path.read_text() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]}


def subcommands(parser) -> dict[str, argparse.ArgumentParser]:
    """The commands of a parser, by name; none if it has none."""
    groups = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(groups[0]) if groups else {}


def test_every_key_of_the_configuration_is_documented_with_its_default():
    rows = re.findall(r"^\| `([a-z.]+\.[a-z_]+)` \| `(.*?)` \| (.*?) \| (.*?) \|$", DOCS["keys.md"], re.MULTILINE)
    expected = [(f"{k.section}.{k.name}", json.dumps(k.default), k.unit, k.meaning) for k in Config().entries()]
    assert expected == rows


def test_the_sample_configuration_holds_every_key_at_its_default(tmp_path):
    text = (ROOT / "deploy" / "memoryd.toml").read_text()
    keys = text.partition("# One agent")[0]
    uncommented = re.sub(r"^# (?=[a-z_]+ = )", "", keys, flags=re.MULTILINE)
    (tmp_path / "memoryd.toml").write_text(uncommented)
    assert Config() == load_config(tmp_path / "memoryd.toml", {})
    assert {key.name for key in Config().entries()} == set(re.findall(r"^# ([a-z_]+) = ", keys, re.MULTILINE))


def test_every_command_is_documented():
    for command in subcommands(make_parser()):
        assert f"| `memory {command}" in DOCS["sandbox-guide.md"], command
    operators = DOCS["runbook.md"] + DOCS["host-guide.md"]
    for command, parser in subcommands(admin_cli.make_parser()).items():
        assert f"memoryd {command}" in operators, command
        for action in subcommands(parser):
            assert f"memoryd {command} {action}" in operators, (command, action)


def test_every_rpc_is_documented_and_has_its_method_in_both_clients():
    guides = DOCS["sandbox-guide.md"].partition("| method |")[2] + DOCS["host-guide.md"].partition("| method |")[2]
    for service in SERVICES:
        page = re.search(rf"\[{service.name}\]\(reference/([a-z-]+\.md)\)", DOCS["api.md"])[1]
        for method in service.methods:
            assert f"| [`{method.name}`](#{method.name.lower()}) |" in DOCS[page]
            assert method.name in guides
    methods = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| \w+", guides, re.MULTILINE)
    names = {name for cell in methods for name in re.findall(r"\w+", cell)}
    for client in (MemoryClient, AsyncMemoryClient):
        held = {name for kind in client.__mro__[:-1] for name in vars(kind)}
        public = {name for name in held if not name.startswith("_")} - {"close", "acting_for"}
        assert names == public


def test_both_clients_have_the_same_methods_with_the_same_arguments():
    import inspect

    for name, method in [pair for kind in MemoryClient.__mro__[:-1] for pair in vars(kind).items()]:
        if name.startswith("__") and name != "__init__":
            continue
        twin = getattr(AsyncMemoryClient, name)
        if callable(method):
            assert inspect.signature(method).parameters.keys() == inspect.signature(twin).parameters.keys(), name


def test_what_another_memory_calls_is_there_by_the_name_that_is_told():
    rows = [line for line in DOCS["coming-from.md"].splitlines() if line.startswith("| ")]
    named = {name for row in rows for name in re.findall(r"(?<!\.)\b([a-z_]+)\(", row.split(" | ", 1)[1])}
    assert {"add", "append", "search", "restore", "entity", "forget_user", "profile"} <= named
    assert [] == sorted(name for name in named if not hasattr(MemoryClient, name))


def test_every_exit_code_is_documented_and_in_the_help():
    told = {int(code) for code in re.findall(r"^\| (\d) \|", DOCS["sandbox-guide.md"], re.MULTILINE)}
    helped = {
        int(code) for code in re.findall(r"(?:^|  )(\d)  \w", EXIT_CODES.partition("environment:")[0], re.MULTILINE)
    }
    assert {0, 1, *codes.EXIT_CODES.values()} == told == helped


def test_every_reason_is_documented():
    names = error_reason_pb2.ErrorReason.keys()
    reasons = {name.removeprefix("ERROR_REASON_") for name in names} - {"UNSPECIFIED"}
    assert [] == [reason for reason in sorted(reasons) if f"| `{reason}` |" not in DOCS["api.md"]]


@pytest.mark.parametrize("name", sorted(DOCS))
def test_every_link_and_every_named_file_exists(name):
    page = next(path for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")] if path.name == name)
    for target in re.findall(r"\]\(([^)#:]+?)\)", DOCS[name]):
        assert (page.parent / target).exists(), target
    for target in re.findall(r"`((?:tests|memoryd|deploy|docs|proto)/[\w./]+)`", DOCS[name]):
        assert (ROOT / target).exists(), target


def test_every_make_target_that_is_named_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for name, text in DOCS.items():
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE):
            assert target in targets, (name, target)


GUIDES = [
    "README.md", "quick-start.md", "sandbox-guide.md", "search.md", "agent-loop.md", "context.md", "learning.md",
    "notes.md", "mcp.md", "adapters.md", "mem0.md", "import.md",
    "doors.md",
]  # fmt: skip


@pytest.mark.parametrize("name", GUIDES)
def test_the_python_of_the_guides_runs(name, daemon, user, monkeypatch, capfd):
    monkeypatch.setenv("MEMORY_ENDPOINT", daemon.endpoint)
    monkeypatch.setenv("MEMORY_USER_ID", user)
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    programs = re.findall(r"```python\n(.*?)```", DOCS[name], re.DOTALL)
    assert programs
    for program in programs:
        exec(compile(program, name, "exec"), {})  # noqa: S102  our own documentation
    assert capfd.readouterr().out or name == "agent-loop.md"  # which asserts by itself


def test_the_unit_holds_what_the_daemon_relies_on():
    unit = (ROOT / "deploy" / "memoryd.service").read_text()
    for line in (
        "Type=notify", "WatchdogSec=30", "StateDirectory=memoryd", "StateDirectoryMode=0700",
        "RuntimeDirectoryMode=0700", "RuntimeDirectoryPreserve=yes", "LimitNOFILE=65536", "PrivateNetwork=yes",
        "UMask=0077", "NoNewPrivileges=yes", "RestrictAddressFamilies=AF_UNIX", "CapabilityBoundingSet=",
        "MemoryMax=3G", "TasksMax=512", "OOMPolicy=stop", "ConfigurationDirectoryMode=0750",
    ):  # fmt: skip
        assert line in unit.splitlines(), line


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_the_unit_is_sound_and_safe_with_and_without_tcp(tmp_path):
    unit = (ROOT / "deploy" / "memoryd.service").read_text()
    for name, drop_in, most in (("plain", "", 10), ("tcp", (ROOT / "deploy" / "memoryd-tcp.conf").read_text(), 15)):
        folder = tmp_path / name
        (folder / "memoryd.service.d").mkdir(parents=True)
        (folder / "memoryd.service").write_text(unit.replace("/usr/local/bin/memoryd", sys.executable))
        (folder / "memoryd.service.d" / "door.conf").write_text(drop_in)
        path = str(folder / "memoryd.service")
        command = ["systemd-analyze", "security", "--offline=yes", f"--threshold={most}", path]
        scored = subprocess.run(command, capture_output=True, text=True, check=False)
        assert 0 == scored.returncode, scored.stdout[-400:]
        verified = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True, check=False
        )
        assert "" == verified.stdout + verified.stderr


def test_no_table_is_cut_by_a_blank_line():
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")):
        lines = page.read_text(encoding="utf-8").splitlines()
        begins = [n for n, line in enumerate(lines) if line.startswith("|") and not lines[n - 1].startswith("|")]
        assert all(set(lines[n + 1]) <= set("|-: ") for n in begins), page


def test_every_test_of_the_track_record_exists():
    named = set(re.findall(r"`(test_\w+)`", DOCS["track-record.md"]))
    written = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert named
    assert [] == sorted(name for name in named if not re.search(rf"(def |^){name}\b", written, re.MULTILINE))
