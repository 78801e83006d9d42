"""`make fuzz`: atheris on each target in turn; an input that fails is written down, to be put into the corpus."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import atheris

from tests.fuzz import CORPUS, NAMES

MOST_BYTES = 65_536
HANG_S = 20


def main() -> int:
    """Run the targets that are asked for, each in a process of its own, as libFuzzer ends the one that it runs in."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--target", choices=NAMES, action="append", help="one of them; may be given again")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--runs", type=int, default=0, help="for each target, instead of seconds")
    parser.add_argument("--found", type=Path, default=Path("build/fuzz"), help="where what is found is kept")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        return fuzz(given.here, given.runs, given.seconds, given.found)
    failed = []
    for name in given.target or NAMES:
        limits = ["--runs", str(given.runs), "--seconds", str(given.seconds), "--found", str(given.found)]
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", "tests.fuzz", "--here", name, *limits], check=False).returncode:
            failed.append(name)
    print(f"failed: {', '.join(failed)}; what failed lies in {given.found}" if failed else "nothing was found")
    return 1 if failed else 0


def fuzz(name: str, runs: int, seconds: int, found: Path) -> int:
    """Hand the process over to libFuzzer."""
    with atheris.instrument_imports(include=["memoryd"]):
        from tests.fuzz.targets import TARGETS
    found = found / name
    found.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fuzz") as grown:
        limit = f"-runs={runs}" if runs else f"-max_total_time={seconds}"
        options = [
            limit,
            f"-max_len={MOST_BYTES}",
            f"-timeout={HANG_S}",
            f"-artifact_prefix={found}/",
            "-rss_limit_mb=4096",
        ]
        atheris.Setup([sys.argv[0], *options, "-print_final_stats=1", grown, str(CORPUS / name)], TARGETS[name])
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
