"""No text that can be stored or asked breaks a scope, holds the loop, or hides what others said."""

from __future__ import annotations

import threading
import time
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.domain.retrieval.question import read_question
from memoryd.domain.retrieval.search import Asked, search
from memoryd.embedding.packaged import builtin_encoder
from memoryd.embedding.tokens import known_share
from memoryd.index.analysis import analyse
from memoryd.index.scope import ScopeIndex
from memoryd.index.traits import Traits, traits_of
from memoryd.knowledge.grammar.dates import days_named
from memoryd.knowledge.grammar.questions import clauses, question_share, signs_of, wanted_of
from memoryd.knowledge.text_traits import SHARES
from memoryd.model.change import Entry
from memoryd.model.memory import Kind, Source
from memoryd.model.query import Filter
from tests.builders import NOW, memory

TODAY = date(2024, 5, 15)
ODD = st.text(alphabet=st.sampled_from("?？؟!. \t\n,;aA1年ب-"), max_size=60)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=200), ODD), st.sampled_from(Kind), st.sampled_from(["", " " * 2000, "x" * 2000]))
def test_every_text_can_be_read(text, kind, before):
    made = memory((before + text) or "x", kind=kind)
    trait = traits_of(made)
    assert 0 <= trait.text.asking <= SHARES
    assert question_share(before + text) <= 1
    for read in (signs_of, wanted_of, clauses):
        read(before + text)
    days_named(text, TODAY, (2023, 2024))


def test_a_mark_past_what_is_read_is_no_question():
    assert 0.0 == question_share(" " * 2000 + "why?")


@pytest.mark.parametrize(
    "text",
    ["jan 1 " * 680, "may 1 - " * 500, "in may " * 600, "every " * 700, "the " * 1000, "1 of " * 800, "(" * 4000],
)
def test_reading_days_takes_no_long_time(text):
    began = time.thread_time()
    for _ in range(3):
        days_named(text, TODAY, tuple(range(2000, 2030)))
    assert time.thread_time() - began < 6  # 200 times what is measured: it took minutes


def test_a_search_goes_on_while_messages_come_in():
    """In another thread, as of large scopes."""

    def said(n: int) -> Entry:
        return Entry(
            memory(f"word{n % 7} said", kind=Kind.EPISODE, source=Source("Ann", session_id="s")), f"word{n % 7} said"
        )

    index = ScopeIndex([[said(n) for n in range(300)]])
    question = read_question(
        "word3 said", None, Filter(kinds=frozenset({Kind.EPISODE})), NOW + timedelta(days=1), [index]
    )
    faults: list[BaseException] = []
    over = threading.Event()

    def look() -> None:
        try:
            while not over.is_set():
                search([index], Asked(question, 10, 0.0))
        except BaseException as fault:  # noqa: BLE001  told by the test
            faults.append(fault)

    looking = threading.Thread(target=look)
    looking.start()
    for n in range(3000):
        index.insert(said(n))
    over.set()
    looking.join()
    assert [] == faults


def test_many_equal_texts_take_no_quadratic_time():
    took = {}
    for count in (500, 4000):
        made = [Entry(memory("ok thanks", key=f"k{n}", subjects=(f"s{n}",)), "ok thank") for n in range(count)]
        index = ScopeIndex([made])
        question = read_question("ok thanks", None, Filter(), NOW + timedelta(days=1), [index])
        tries = []
        for _ in range(5):
            began = time.thread_time()  # of this thread alone, however busy the machine is
            hits = search([index], Asked(question, 10, 0.0))
            tries.append(time.thread_time() - began)
            assert 10 == len(hits)
        took[count] = min(tries)
    assert took[4000] < 30 * max(took[500], 0.002)  # 8 × the texts; it would be 64


def test_how_much_is_read_of_a_long_question_is_that_of_its_beginning():
    encoder = builtin_encoder()
    text = "Where did we plan to go next summer with the children and their grandparents? " * 50
    assert 1.0 == encoder.read([text], query=True)[0].known_share
    assert 0.0 == known_share("我", [(0, 1)], [True])


def test_what_is_erased_leaves_no_days_and_no_speaker():
    traits = Traits()
    made = memory("On 3 March 2019 we met", kind=Kind.EPISODE, source=Source("Ann", session_id="s"))
    traits.append(0, traits_of(made))
    assert 1 == len(traits.named_days(1)[0])
    traits.remove(0, is_said=True, is_trusted=True)
    traits.erase(np.array([0]))
    assert 0 == len(traits.named_days(1)[0])
    assert not traits.speaks("ann")
    assert not traits.said_by("ann", 1).any()
    assert frozenset() == traits.years


def test_one_far_date_hides_no_other_year():
    far = memory("the comet comes back", kind=Kind.EVENT, event_time=datetime(2045, 5, 1, tzinfo=UTC))
    near = memory("we hiked in the hills", kind=Kind.EVENT, event_time=datetime(2023, 5, 3, tzinfo=UTC))
    other = memory("we hiked in the snow", kind=Kind.EVENT, event_time=datetime(2023, 12, 3, tzinfo=UTC))
    index = ScopeIndex([[Entry(one, " ".join(analyse(one.content))) for one in (other, near, far)]])
    question = read_question("we hiked in May", None, Filter(), datetime(2024, 1, 1, tzinfo=UTC), [index])
    assert "we hiked in the hills" == search([index], Asked(question, 10, 0.0))[0].memory.content


def test_a_habit_on_a_weekday_and_the_day_of_storing_are_no_events():
    habit = memory("the trash is collected on Thursday")
    assert () == traits_of(habit).text.days
    assert traits_of(habit).day < 0
    happened = memory("we met on Thursday", kind=Kind.EPISODE)
    assert traits_of(happened).text.days
