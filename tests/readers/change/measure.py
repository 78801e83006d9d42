"""
`python -m tests.readers.change.measure`: how many changes are noticed, and how many others are taken for one.

By the rules alone, by the packaged model alone, and by both, on sets that nothing was trained with; pairs that are too
far from each other to be read count as not noticed. `--directory` measures a model of your own.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from memoryd.embedding.readers.change import ChangeReader, builtin_reader, directory_reader
from memoryd.embedding.readers.thresholds import CONTESTED, LEAST_NEAR
from memoryd.knowledge.comparison.comparison import compare
from memoryd.knowledge.comparison.rules import Relation
from memoryd.knowledge.read_statement import Reader
from tests.readers.change.pairs import (
    Pair,
    added_pairs,
    encoded,
    groups_apart,
    held_apart,
    pairs_of,
    strangers_pairs,
    unread_pairs,
    voices_apart,
)

NOTICED = {Relation.CHANGED, Relation.DOUBTFUL}


def measured(pairs: Sequence[Pair], reader: ChangeReader) -> dict[str, np.ndarray]:
    """Return for each pair whether it is noticed: by rules, by the model, by both."""
    knowledge = Reader()
    vectors = encoded([text for pair in pairs for text in (pair.old, pair.new)])
    near = np.einsum("nd,nd->n", vectors[::2], vectors[1::2])
    rules = np.zeros(len(pairs), bool)
    for n, pair in enumerate(pairs):
        new, old = knowledge.read(pair.new), knowledge.read(pair.old)
        rules[n] = compare(new, old, similarity=float(near[n]), same_subject=True).relation in NOTICED
    scores = np.array(asyncio.run(reader.read([(pair.old, pair.new) for pair in pairs])))
    model = (scores >= CONTESTED) & (near >= LEAST_NEAR)
    return {"rules": rules, "model": model, "both": rules | model}


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, help="a model for natural language inference, instead")
    directory = parser.parse_args().directory
    reader = builtin_reader() if directory is None else directory_reader(directory)
    sets = {
        "held apart": list(pairs_of(held_apart())),
        "all true together": groups_apart(),
        "unread": unread_pairs(),
        **{f"strangers, {name}": pairs for name, pairs in strangers_pairs().items()},
        **voices_apart(encoded),
        "added to those tuned with": added_pairs(),
    }
    print(f"{'set':24} {'pairs':>6}  {'':8}" + "  ".join(f"{name:>14}" for name in ("rules", "model", "both")))
    for name, pairs in sets.items():
        is_change = np.array([pair.is_change for pair in pairs])
        found = measured(pairs, reader)
        for label, of in (("changes", is_change), ("others", ~is_change)):
            if not of.any():
                continue
            shares = "  ".join(f"{one[of].mean():14.3f}" for one in found.values())
            print(f"{name:24} {of.sum():6}  {label:8}{shares}")
    reader.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
