"""The list of slow tests names what is there, and a file is left out whole only with a reason."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.conftest import SLOW

ROOT = SLOW.parent.parent
WHOLE = {
    "tests/test_backup_crash.py": "test_backup_daemon.py restores what was shipped",
    "tests/test_faults_of_files.py": "test_fault_sweep.py has a fault of each call",
    "tests/test_learning_crash.py": "test_talk_crash.py kills while messages are written",
    "tests/test_release.py": "make wheel and make release build it",
    "tests/test_site.py": "make site-check builds it",
}
"""Files of slow tests alone, and what is tried instead."""


def _functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_slow_test_is_there_and_each_file_keeps_a_shorter_one():
    lines = [line for line in SLOW.read_text().splitlines() if not line.startswith("#")]
    assert sorted(set(lines)) == lines
    whole, listed = set(), defaultdict(set)
    for line in lines:
        file, _, test = line.partition("::")
        assert (ROOT / file).is_file(), line
        function = test.partition("[")[0]
        assert not function or function in _functions(file), line
        if not test:
            whole.add(file)
        elif "[" not in test:
            listed[file].add(function)
    for file, names in listed.items():
        if names >= {name for name in _functions(file) if name.startswith("test_")}:
            whole.add(file)
    assert whole == WHOLE.keys()
