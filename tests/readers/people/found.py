"""`make eval SETS=people`: who is found in sentences with hard names, by a daemon after its enrichment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.readers.voices import Voice
from tests.support import Daemon

__all__ = ["people"]

TABLE = Path(__file__).with_name("people.tsv")


def people(daemon: Daemon, _some: Sequence[Voice], _stores: Mapping[str, Sequence[str]]) -> None:
    """Print how many of the people of some sentences are found, and how many of those found are people."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    told: Counter[str] = Counter()
    for n, line in enumerate(lines):
        with daemon.client(f"n-{n}") as memory:
            memory.add(line.partition("\t")[0])
    with daemon.client() as host:
        while (done := host.run_enrichment()).remaining_count and not done.skipped:
            pass
    for n, line in enumerate(lines):
        names = line.partition("\t")[2]
        wanted = {name.casefold() for name in names.split(",") if name}
        with daemon.client(f"n-{n}") as memory:
            found = {one.name.casefold() for one in memory.people(page_size=50).people if one.name not in one.relations}
        told["wanted"] += len(wanted)
        told["found"] += len(found)
        told["right"] += sum(any(_is_name(name, one) for one in wanted) for name in found)
        told["met"] += sum(any(_is_name(name, one) for name in found) for one in wanted)
    print(
        f"people: of those named found {told['met'] / told['wanted']:.3f} of {told['wanted']};"
        f" of those found people {told['right'] / told['found']:.3f} of {told['found']}"
    )


def _is_name(found: str, wanted: str) -> bool:
    """Whether one name is the other, or a part of it."""
    one, other = set(found.split()), set(wanted.split())
    return one <= other or other <= one
