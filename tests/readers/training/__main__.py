"""
`make train-readers [READER=change]`: makes the files of the readers anew, from the texts of tests/readers.

Each reader takes minutes to an hour on two cores. Needs jax and optax, in an environment of their own.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.readers.training import answer, change, keeping, people, retrieval

FILES = Path(__file__).parents[3] / "memoryd" / "embedding" / "data" / "readers"
READERS = {
    "change": change.train,
    "answer": answer.train,  # begins from the change reader's file
    "keeping": keeping.train,
    "people": people.train,
    "retrieval": retrieval.train,
}


def main() -> int:
    """Train the readers that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readers", nargs="*", help=f"of {', '.join(READERS)}; none named: all")
    parser.add_argument("--out", type=Path, default=FILES, help="the directory of the files NAME.npz")
    parser.add_argument("--on", action="store_true", help="train on from the packaged files, with the voices alone")
    args = parser.parse_args()
    unknown = [name for name in args.readers if name not in READERS]
    if unknown:
        parser.error(f"there is no reader {unknown[0]!r}; there are: {', '.join(READERS)}")
    for name in args.readers or READERS:
        READERS[name](args.out / f"{name}.npz", FILES / f"{name}.npz" if args.on else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
