"""How scores follow what the answer reader says: who passes whom, and who bounds whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memoryd.domain.retrieval.answers_read import Answers
from memoryd.domain.retrieval.followed import following
from memoryd.model.results import Hit, Miss, SearchResult
from memoryd.model.trust import Trust
from tests.builders import memory


def hit_of(n: int, score: float, *, trust: Trust = Trust.HOST, author: str = "", grant_id: str = "") -> Hit:
    made = replace(memory(f"text {n}"), id=f"m{n}", trust=trust, author=author, grant_id=grant_id)
    return Hit(made, score)


def test_lower_trust_is_bounded_by_what_stands_above_it_and_a_member_by_none():
    hits = (
        hit_of(0, 0.9, author="bob"),
        hit_of(1, 0.8, trust=Trust.SANDBOX, grant_id="g1"),
        hit_of(2, 0.7, author="carol"),
        hit_of(3, 0.6, author="bob"),
    )
    read = Answers({"m0": 0.01, "m1": 0.99, "m2": 0.99, "m3": 0.99})
    followed = following(SearchResult(hits), read, explain=False).hits
    assert ["m2", "m0", "m1", "m3"] == [hit.memory.id for hit in followed]
    assert followed[1].score == followed[2].score == followed[3].score < 0.7 < followed[0].score
    reranked = following(SearchResult(hits), read, explain=False, is_reranked=True).hits
    assert ["m0", "m1", "m2", "m3"] == [hit.memory.id for hit in reranked]
    assert reranked[0].score < reranked[3].score
    assert hits == following(SearchResult(hits), Answers(), explain=False).hits


def test_what_was_not_read_passes_nothing_that_was():
    hits = (
        hit_of(0, 0.9, trust=Trust.SANDBOX, grant_id="g1"),
        hit_of(1, 0.8, trust=Trust.SANDBOX, grant_id="g2"),
        hit_of(2, 0.7),
    )
    followed = following(SearchResult(hits), Answers({"m0": 0.3}), explain=False).hits
    assert ["m2", "m0", "m1"] == [hit.memory.id for hit in followed]  # no sandbox bounds the host
    assert followed[1].score == followed[2].score < 0.7 == followed[0].score


@pytest.mark.parametrize(
    ("reasons", "missing", "told"),
    [
        (("same",), "m8", ("reader",)),
        (("limit",), "m9", ("reader",)),
        (("deleted",), "m9", ("deleted",)),
    ],
)
def test_what_stands_behind_the_hidden_is_missing_for_the_same_reason(reasons, missing, told):
    hit = replace(hit_of(0, 0.5), same_ids=("m8",))
    result = SearchResult((hit,), miss=Miss(missing, 2, 0.4, reasons))
    followed = following(result, Answers({"m0": 0.0}, frozenset({"m0"})), explain=False)
    assert ((), told) == (followed.hits, followed.miss.reasons)
