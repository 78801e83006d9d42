"""What import-linter cannot see: who reads the clock, the environment and randomness, and how full the root is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "memoryd"
ABOVE = {"daemon", "cli", "__main__.py", "v1"}
BELOW = sorted(path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in ABOVE)
READ = {
    "datetime": {"now", "today", "utcnow"},
    "time": {"time", "time_ns", "clock_gettime"},
    "os": {"environ", "getenv", "urandom"},
    "secrets": {"token_bytes", "token_hex", "token_urlsafe", "choice", "randbelow", "SystemRandom"},
    "random": {"random", "randbytes", "choice", "randint", "Random", "uniform"},
    "uuid": {"uuid1", "uuid4"},
}
SET = "embedding/__init__.py"  # it sets a variable, for a library that would call home
ROOM = 5  # modules in the root


@pytest.mark.parametrize("path", BELOW, ids=lambda path: str(path.relative_to(ROOT)))
def test_clock_environment_and_randomness_are_handed_in(path):
    read = [
        f"{node.value.id}.{node.attr} in line {node.lineno}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.attr in READ.get(node.value.id, ())
    ]
    imported = [
        f"from {node.module} import {name.name}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if name.name in READ.get(node.module or "", ())
    ]
    allowed = ["os.environ"] if str(path.relative_to(ROOT)) == SET else []
    assert allowed == [one.partition(" ")[0] for one in read] + imported


def test_the_root_holds_few_modules_and_every_folder_says_what_belongs_there():
    assert len(list(ROOT.glob("*.py"))) <= ROOM
    for init in ROOT.rglob("__init__.py"):
        if init.parent.name != "v1" and "completions" not in str(init):
            assert ast.get_docstring(ast.parse(init.read_text())), init


def test_one_place_checks_the_grant_before_a_commit():
    places = [str(path.relative_to(ROOT)) for path in BELOW if "grants.admit(grant_id" in path.read_text()]
    assert ["domain/pipeline.py"] == places
