"""With permitted calls alone a sandbox changes nothing of how what the host said is found."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.domain.retrieval.relevance import scores_of
from memoryd.domain.retrieval.search import Asked, search
from memoryd.model.memory import Kind, Source
from memoryd.model.query import Filter
from memoryd.model.trust import Trust
from tests.builders import memory
from tests.test_ranking import DAY, NOW, index_of, question_of, ranked_of, said

ALL = Filter(kinds=frozenset(Kind))
FOOD = "What should I avoid eating?"
HOST = [
    *said("Ann: Did you pay the deposit?", "Bob: No, never, not yet.", "Ann: Do you like jazz?", "Bob: Yes, I do."),
    memory("I'm allergic to peanuts and should avoid eating them", create_time=DAY),
    memory("The deposit for the flat is due in May", create_time=DAY),
    memory("I visited the museum of ships", kind=Kind.EVENT, event_time=DAY.replace(month=3, day=10)),
    memory("I visited the museum of cars", kind=Kind.EVENT, event_time=DAY.replace(month=7, day=2)),
]
ASKED = ["Did you pay the deposit?", FOOD, "Which museum did I visit in March?", "What did Bob say of jazz?"]
WORDS = st.sampled_from(sorted({word for asked in ASKED for word in asked.split()} | {"Yes", "no", "hi", "peanuts"}))
TEXTS = st.lists(WORDS, min_size=1, max_size=60).map(" ".join)
SPEAKERS = st.sampled_from(["", "Ann", "Bob", "Zoe", "what", "did"])


@st.composite
def planted(draw):
    """What a sandbox may add: any text, kind, session, time and speaker."""
    kind = draw(st.sampled_from([Kind.EPISODE, Kind.EVENT, Kind.FACT]))
    at = DAY + timedelta(seconds=draw(st.integers(-400, 400)), days=draw(st.sampled_from([0, 0, 306, 2000])))
    source = Source(draw(SPEAKERS), session_id=draw(st.sampled_from(["s", "other"])))
    return memory(draw(TEXTS), kind=kind, event_time=at, source=source, trust=Trust.SANDBOX, create_time=at)


@pytest.mark.parametrize("with_model", [True, False])
@given(more=st.lists(planted(), max_size=25), asked=st.sampled_from(ASKED))
@settings(max_examples=60, deadline=None)
def test_what_sandboxes_add_gives_no_leg_of_the_host_anything(with_model, more, asked):
    alone, both = index_of(HOST, with_model=with_model), index_of([*HOST, *more], with_model=with_model)
    before, after = (ranked_of(one, asked, with_model=with_model, wanted=ALL) for one in (alone, both))
    rows = [n for n, row in enumerate(after.pools[0].rows.tolist()) if row < len(HOST)]
    for leg in ("near", "said_by_named", "said_by_others", "of_named", "time", "names", "by_assistant"):
        assert before.joined(leg).tolist() == after.joined(leg)[rows].tolist(), leg
    for windows in (before.pools[0]._beside, after.pools[0]._beside):
        assert set(windows) == {-1, 1, -2, 2}
    for step, places in before.pools[0]._beside.items():
        there = after.pools[0]._beside[step][rows]
        rows_of = [*after.pools[0].rows.tolist(), -1]
        assert [*places.tolist()] == [rows_of[n] if rows_of[n] >= 0 else len(HOST) for n in there.tolist()]


def ids(found) -> list[str]:
    return [hit.memory.id for hit in found]


@pytest.mark.parametrize("copies", [1, 5, 15, 40, 300])
@pytest.mark.parametrize("min_score", [None, 0.0])
@pytest.mark.parametrize("alike", [True, False])
def test_whoever_repeats_the_question_takes_no_answer_of_the_host_away(copies, min_score, alike):
    planted = [
        memory(FOOD if alike else f"{FOOD} {n}", trust=Trust.SANDBOX, id=f"{n:032x}", create_time=DAY)
        for n in range(copies)
    ]
    question = question_of(index_of(HOST), FOOD, wanted=ALL)
    before = search([index_of(HOST)], Asked(question, 5, min_score, kept=1))
    after = search([index_of([*HOST, *planted])], Asked(question, 5, min_score, kept=1))
    assert before
    assert ids(before)[0] in ids(after)


def test_so_do_messages():
    host = said("Ann: We should avoid eating the peanuts.", "Bob: Good to know.")
    planted = said(*[FOOD] * 40, session="other", trust=Trust.SANDBOX)
    question = question_of(index_of(host), FOOD, wanted=ALL)
    found = search([index_of([*host, *planted])], Asked(question, 5, 0.0, kept=1))
    assert host[0].id in ids(found)


def test_however_much_unrelated_text_a_sandbox_adds_the_score_of_the_host_stays():
    noise = [
        memory(f"word{n} " * 80, trust=Trust.SANDBOX, id=f"{n:032x}", create_time=DAY, kind=kind)
        for n, kind in enumerate([Kind.FACT, Kind.EPISODE] * 150)
    ]
    one, both = index_of(HOST), index_of([*HOST, *noise])
    alone, with_noise = ranked_of(one, FOOD, wanted=ALL), ranked_of(both, FOOD, wanted=ALL)
    assert one.traits.median_pieces == both.traits.median_pieces
    at = [n for n, row in enumerate(with_noise.pools[0].rows.tolist()) if row == 4]
    with_noise.relevance[at] = alone.relevance[4]  # but for the idf of its words
    assert scores_of(alone, [4]).tolist() == scores_of(with_noise, at).tolist()


def test_many_notes_of_one_day_do_not_switch_off_the_days():
    notes = [
        replace(HOST[6], id=f"{n:032x}", content=f"note {n}", trust=Trust.SANDBOX, create_time=NOW) for n in range(200)
    ]
    asked = "Which museum did I visit in March?"
    after = ranked_of(index_of([*HOST, *notes]), asked, wanted=ALL)
    assert after.joined("time")[6] == 1.0


def test_what_was_removed_is_no_text_that_is_searched():
    made = [memory(f"statement number {n} " * 9, create_time=DAY) for n in range(30)]
    index = index_of(made)
    for one in made[:15]:
        index.remove(one.id)
    pool = ranked_of(index, "statement number 20", wanted=ALL).pools[0]
    left = index_of(made[15:]).traits.text_pieces(is_said=False, is_trusted=True)
    assert left == pool.searched(is_said=False, trusted_alone=True) == pool.searched(is_said=False, trusted_alone=False)
