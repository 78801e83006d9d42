"""`make test-adapters`: the tests of the adapters with each library alone, at its oldest and newest version."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).parent / "uv"
TOOLS = ("pytest>=9,<10", "pytest-asyncio", "hypothesis", "trustme")


def main(words: Sequence[str]) -> int:
    """Try each line of environments.txt, or those that hold one of some words; return how many failed."""
    lines = (ROOT / "tests" / "adapters" / "environments.txt").read_text(encoding="utf-8").splitlines()
    failed = 0
    for line in lines:
        if line.startswith("#") or not line.strip() or (words and not any(word in line for word in words)):
            continue
        tests, library = line.split(maxsplit=1)
        with tempfile.TemporaryDirectory() as place:
            python = str(Path(place) / "bin" / "python")
            subprocess.run([UV, "venv", "-q", "--python", sys.executable, place], check=True)
            install = [UV, "pip", "install", "-q", "--python", python, "-e", ".[server,metrics]", *TOOLS, library]
            subprocess.run(install, check=True, cwd=ROOT)
            found = subprocess.run(
                [UV, "pip", "freeze", "--python", python], capture_output=True, text=True, check=True
            )
            name = library.partition("=")[0].rstrip("<>")
            version = next((one for one in found.stdout.splitlines() if one.startswith(f"{name}==")), library)
            done = subprocess.run(
                [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests], cwd=ROOT, check=False
            )
            print(f"{'ok    ' if done.returncode == 0 else 'FAILED'} {tests} with {version}", flush=True)
            failed += done.returncode != 0
    return min(failed, 100)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
