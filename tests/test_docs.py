"""Documentation is a product: what it names exists, and what exists is named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from memory_cli.parser import make_parser
from memory_client import AsyncMemoryClient, MemoryClient

from memoryd import admin_cli
from memoryd.config import Config, load_config
from memoryd.v1 import admin_service_pb2, context_service_pb2, error_reason_pb2, memory_service_pb2

ROOT = Path(__file__).parent.parent
DOCS = {path.name: path.read_text() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]}


def subcommands(parser) -> set[str]:
    return next(
        set(action.choices) for action in parser._actions if hasattr(action, "choices") and action.dest == "command"
    )


def test_every_key_of_the_configuration_is_documented_with_its_default():
    rows = re.findall(
        r"^\| `([a-z]+\.[a-z_]+)` \| `(.*?)` \| (.*?) \| (.*?) \|$", DOCS["configuration.md"], re.MULTILINE
    )
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
    for command in subcommands(admin_cli.make_parser()):
        assert f"memoryd {command}" in DOCS["runbook.md"] + DOCS["CHANGELOG.md"], command


def test_every_rpc_is_documented_and_has_its_method_in_both_clients():
    for module in (memory_service_pb2, context_service_pb2, admin_service_pb2):
        for service in module.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                assert f"| `{method.name}` |" in DOCS["api.md"]
                assert method.name in DOCS["sandbox-guide.md"]
    methods = re.findall(
        r"^\| ((?:`\w+`(?:, )?)+) \| \w+", DOCS["sandbox-guide.md"].partition("| method |")[2], re.MULTILINE
    )
    names = {name for cell in methods for name in re.findall(r"\w+", cell)}
    for client in (MemoryClient, AsyncMemoryClient):
        public = {name for name in vars(client) if not name.startswith("_")} - {"close", "acting_for"}
        assert names == public


def test_both_clients_have_the_same_methods_with_the_same_arguments():
    import inspect

    for name, method in vars(MemoryClient).items():
        if name.startswith("__") and name != "__init__":
            continue
        twin = getattr(AsyncMemoryClient, name)
        if callable(method):
            assert inspect.signature(method).parameters.keys() == inspect.signature(twin).parameters.keys(), name


def test_every_reason_is_documented():
    for name in error_reason_pb2.ErrorReason.keys():  # noqa: SIM118  an enum wrapper
        reason = name.removeprefix("ERROR_REASON_")
        assert reason == "UNSPECIFIED" or f"| `{reason}` |" in DOCS["api.md"]


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


@pytest.mark.parametrize("name", ["README.md", "quick-start.md", "sandbox-guide.md"])
def test_the_python_of_the_guides_runs(name, daemon, user, monkeypatch, capsys):
    monkeypatch.setenv("MEMORY_ENDPOINT", daemon.endpoint)
    monkeypatch.setenv("MEMORY_USER_ID", user)
    programs = re.findall(r"```python\n(.*?)```", DOCS[name], re.DOTALL)
    assert programs
    for program in programs:
        exec(compile(program, name, "exec"), {})  # noqa: S102  our own documentation
    assert capsys.readouterr().out


def test_the_unit_is_what_systemd_accepts():
    import shutil
    import subprocess

    unit = (ROOT / "deploy" / "memoryd.service").read_text()
    for line in ("Type=notify", "WatchdogSec=30", "StateDirectory=memoryd", "LimitNOFILE=65536", "PrivateNetwork=yes"):
        assert line in unit.splitlines()
    if shutil.which("systemd-analyze"):
        command = ["systemd-analyze", "security", "--offline=yes", "--threshold=10"]
        unit_file = str(ROOT / "deploy" / "memoryd.service")
        score = subprocess.run([*command, unit_file], capture_output=True, text=True, check=True)
        assert "SAFE" in score.stdout.splitlines()[-1]
