"""
Changes in the words people use are noticed, and what is no change retires nothing.

`changes.txt` holds 1,200 changes and 1,200 non-changes made from grammars; `changes_apart.txt` a thousand in other
words; `changes_read.txt` and `changes_unread.txt` 1,200 each by people who did not know the rules, of which the first
was read to mend them. What the rules do not read, the change reader does: the daemon has both.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from memoryd.embedding.packaged import builtin_encoder
from memoryd.embedding.readers.change import builtin_reader
from memoryd.embedding.readers.thresholds import CONTESTED, LEAST_NEAR
from memoryd.knowledge.comparison.comparison import compare
from memoryd.knowledge.comparison.rules import Relation
from memoryd.knowledge.read_statement import Reader

FOLDER = Path(__file__).parent
NOTICED = {Relation.CHANGED, Relation.DOUBTFUL}


def pairs(name: str) -> list[tuple[str, str, str, str, str]]:
    lines = (line for line in (FOLDER / name).read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return [tuple(line.split("\t")) for line in lines]


def vectors_of(texts: list[str]) -> dict[str, np.ndarray]:
    encoder, found = builtin_encoder(), {}
    for n in range(0, len(texts), 32):
        some = texts[n : n + 32]
        found |= dict(zip(some, map(np.asarray, encoder.encode(some, query=False)), strict=True))
    return found


class Judged(NamedTuple):
    """A pair, how near its statements are, and what the rules decide."""

    label: str
    topic: str
    old: str
    new: str
    near: float
    relation: Relation


def judged(name: str) -> list[Judged]:
    reader, rows = Reader(), pairs(name)
    vectors = vectors_of(sorted({text for row in rows for text in row[3:]}))
    found = []
    for label, topic, _, old, new in rows:
        near = float(vectors[old] @ vectors[new])
        finding = compare(reader.read(new), reader.read(old), similarity=near, same_subject=True)
        found.append(Judged(label, topic, old, new, near, finding.relation))
    return found


def share(some: list[bool]) -> float:
    return sum(some) / len(some)


@pytest.mark.parametrize(
    ("name", "least", "together"),
    [
        ("changes.txt", 0.9, None),
        ("changes_apart.txt", 0.42, (0.96, 0.12)),
        ("changes_read.txt", 0.4, None),
        ("changes_unread.txt", 0.13, (0.77, 0.1)),
    ],
)
async def test_rules_notice_changes_and_retire_nothing_else_and_a_reader_notices_more(name, least, together):
    found = judged(name)
    assert {("change", "preference"), ("change", "state"), ("none", "preference"), ("none", "state")} == {
        (one.label, one.topic) for one in found
    }
    for topic in ("preference", "state"):
        changes, others = ([o.relation for o in found if (o.label, o.topic) == (k, topic)] for k in ("change", "none"))
        assert share([one in NOTICED for one in changes]) >= least, topic
        assert share([one in NOTICED for one in others]) <= 0.005, topic
        assert Relation.CHANGED not in others, topic
    if together is not None:
        await notice_together(found, *together)


async def notice_together(found: list[Judged], least: float, most: float) -> None:
    """Rules and reader, in the words of strangers."""
    reader = builtin_reader()
    unnoticed = [one for one in found if one.relation not in NOTICED and one.near >= LEAST_NEAR]
    scores = await reader.read([(one.old, one.new) for one in unnoticed])
    reader.close()
    read = {id(one) for one, score in zip(unnoticed, scores, strict=True) if score >= CONTESTED}
    noticed = [one.relation in NOTICED or id(one) in read for one in found]
    assert share([by for one, by in zip(found, noticed, strict=True) if one.label == "change"]) >= least
    assert share([by for one, by in zip(found, noticed, strict=True) if one.label == "none"]) <= most
