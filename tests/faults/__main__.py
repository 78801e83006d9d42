"""`make faults`: every kind of fault on every file, as a table; exit code 1 where a promise is broken."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.faults import FaultKind, compiler
from tests.faults.campaign import TARGETS, try_faults


def main() -> int:
    """Print the table."""
    if compiler() is None:
        print("make faults needs a C compiler (Debian: gcc libc6-dev)", file=sys.stderr)
        return 2
    print("| file | fault | calls that failed | answered | refused | not known | daemon |")
    print("|---|---|---|---|---|---|---|")
    broken = []
    for target in TARGETS:
        with tempfile.TemporaryDirectory(prefix="m") as folder:
            for row in try_faults(Path(folder), [(target, kind) for kind in FaultKind]):
                ended = "went on" if row.exit_code is None else f"ended with {row.exit_code}, started again"
                name = row.kind.name.lower().replace("_", " ")
                print(
                    f"| {row.target} | {name} | {row.hits} | {row.answered} | {row.refused} | {row.unknown} | {ended} |"
                )
                broken += [f"{row.target}, {name}: {what}" for what in row.broken]
                broken += [] if row.hits else [f"{row.target}, {name}: no call was made to fail"]
    for what in broken:
        print(f"BROKEN {what}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
