"""
Changes in the words people use are noticed, and what is no change retires nothing.

`changes.txt` holds 1,200 changes and 1,200 non-changes made from grammars; `changes_apart.txt` a thousand in other
words; `changes_read.txt` and `changes_unread.txt` 1,200 each by people who did not know the rules, of which the first
was read to mend them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from memoryd.embedding.packaged import builtin_encoder
from memoryd.knowledge.comparison.comparison import compare
from memoryd.knowledge.comparison.finding import Relation
from memoryd.knowledge.reading import Reader

FOLDER = Path(__file__).parent
NOTICED = {Relation.CHANGED, Relation.DOUBTFUL}


def pairs(name: str) -> list[tuple[str, str, str, str, str]]:
    lines = (line for line in (FOLDER / name).read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return [tuple(line.split("\t")) for line in lines]


def answers(name: str) -> dict[str, Counter]:
    """By label and topic, how many pairs are answered how; by "false", the pairs that retire without reason."""
    encoder, reader = builtin_encoder(), Reader()
    rows = pairs(name)
    texts = sorted({text for row in rows for text in row[3:]})
    vectors = {}
    for n in range(0, len(texts), 32):
        some = texts[n : n + 32]
        vectors |= dict(zip(some, map(np.asarray, encoder.encode(some, query=False)), strict=True))
    found: dict[str, Counter] = {}
    for label, topic, _, old, new in rows:
        similarity = float(vectors[old] @ vectors[new])
        finding = compare(reader.read(new), reader.read(old), similarity=similarity, same_subject=True)
        found.setdefault(f"{label} {topic}", Counter())[finding.relation] += 1
    return found


def share(counts: Counter, relations: set[Relation]) -> float:
    return sum(counts[relation] for relation in relations) / counts.total()


@pytest.mark.parametrize(
    ("name", "least"),
    [("changes.txt", 0.9), ("changes_apart.txt", 0.78), ("changes_read.txt", 0.76), ("changes_unread.txt", 0.3)],
)
def test_changes_are_noticed_and_nothing_else_is_retired(name, least):
    found = answers(name)
    assert {"change preference", "change state", "none preference", "none state"} == set(found)
    for topic in ("preference", "state"):
        assert share(found[f"change {topic}"], NOTICED) >= least, topic
        assert share(found[f"none {topic}"], {Relation.CHANGED}) <= 0.005, topic
        assert share(found[f"none {topic}"], {Relation.DOUBTFUL}) <= 0.02, topic
