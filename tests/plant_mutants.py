"""
`make mutants`: plants each bug of mutants.py in a copy of the project, and runs the tests that must fail.

A mutant that survives means that a rule has no test.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.mutants import MUTANTS

ROOT = Path(__file__).parent.parent
PATIENCE_S = 120


def killed(copy: Path, tests: str) -> bool:
    env = {
        **os.environ,
        "PYTHONPATH": f"{copy}:{copy / 'client'}:{copy / 'sandbox_cli'}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests.split()]
    try:
        done = subprocess.run(command, cwd=copy, env=env, capture_output=True, check=False, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return True  # pages that never end are a bug that shows
    return done.returncode == 1


def main(words: Sequence[str]) -> int:
    """Plant each mutant, or those of files or tests whose names hold one of some words; return how many survived."""
    survivors = 0
    chosen = [one for one in MUTANTS if not words or any(word in f"{one[0]} {one[3]}" for word in words)]
    for number, (name, old, new, tests) in enumerate(chosen, 1):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "copy"
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv*", "__pycache__", "build"))
            text = (copy / name).read_text()
            if text.count(old) < 1:
                print(f"{number:>2} {name}: what it replaces is gone: {old!r}")
                survivors += 1
                continue
            (copy / name).write_text(text.replace(old, new, 1))
            dead = killed(copy, tests)
        survivors += not dead
        print(f"{number:>2} {'killed' if dead else 'SURVIVED'}  {name}: {new[:70]!r}", flush=True)
    print(f"{len(chosen) - survivors} passed, {survivors} failed")
    return min(survivors, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
