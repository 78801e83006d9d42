"""Confidence as a pure function of time, preset by preset."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from memoryd.domain.decay import PRESETS, confidence_at, fades
from memoryd.model.memory import Kind, Source
from tests.builders import NOW, memory

LEARNT = Source(channel="extraction")
CREATED = NOW - timedelta(days=1000)


def made(**more):
    return memory(create_time=CREATED, event_time=more.pop("event_time", CREATED), **more)


def after(days):
    return CREATED + timedelta(days=days)


def test_gentle_leaves_alone_what_a_person_stated():
    stated = made(source=Source(channel="user"))

    assert 1.0 == confidence_at(stated, after(5000), "gentle")
    assert not fades(stated, after(5000), "gentle")


@pytest.mark.parametrize(
    ("kind", "rate"), [(Kind.FACT, 0.01), (Kind.PREFERENCE, 0.01), (Kind.PROCEDURE, 0.01), (Kind.EVENT, 0.02)]
)
def test_gentle_fades_what_was_extracted_by_its_kind(kind, rate):
    learnt = made(source=LEARNT, kind=kind, confidence=0.8)

    assert math.isclose(0.8 * math.exp(-rate * 50), confidence_at(learnt, after(50), "gentle"))


def test_an_event_fades_from_its_event_time_and_a_recurring_date_never():
    party = made(source=LEARNT, kind=Kind.EVENT, event_time=after(100), content="the party")
    birthday = made(source=LEARNT, kind=Kind.EVENT, event_time=after(100), content="Anna's birthday is on May 4")

    assert 1.0 == confidence_at(party, after(90), "gentle")
    assert math.isclose(math.exp(-0.02 * 10), confidence_at(party, after(110), "gentle"))
    assert 1.0 == confidence_at(birthday, after(900), "gentle")


def test_ebbinghaus_fades_everything():
    stated = made(confidence=0.5)

    assert math.isclose(0.5 * math.exp(-0.1 * 3), confidence_at(stated, after(3), "ebbinghaus"))
    assert fades(stated, after(24), "ebbinghaus")
    assert not fades(stated, after(23), "ebbinghaus")


def test_step_begins_after_a_week_and_prunes_after_a_month():
    stated = made()

    assert 1.0 == confidence_at(stated, after(7.9), "step")
    assert math.isclose(0.95**3, confidence_at(stated, after(10.5), "step"))
    assert not fades(stated, after(29), "step")
    assert fades(stated, after(31), "step")  # 0.95 ** 24 = 0.29


def test_off_fades_nothing():
    assert 0.2 == confidence_at(made(confidence=0.2, source=LEARNT), after(9999), "off")
    assert not fades(made(confidence=0.01, source=LEARNT), after(9999), "off")


def test_the_host_s_recall_restarts_the_clock_and_a_sandbox_s_does_not():
    kept = made(source=LEARNT, trusted_recall_time=after(90), recall_time=after(90))
    poisoned = made(source=LEARNT, recall_time=after(90))

    assert math.isclose(math.exp(-0.01 * 10), confidence_at(kept, after(100), "gentle"))
    assert math.isclose(math.exp(-0.01 * 100), confidence_at(poisoned, after(100), "gentle"))


def test_reinforcement_restarts_the_clock():
    said_again = made(source=LEARNT, reinforce_time=after(60))

    assert math.isclose(math.exp(-0.01 * 40), confidence_at(said_again, after(100), "gentle"))


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if preset])
def test_protected_memories_reflections_and_messages_never_fade(name):
    for one in (
        made(protected=True, source=LEARNT),
        made(kind=Kind.REFLECTION, source=LEARNT),
        made(kind=Kind.EPISODE, source=LEARNT),
    ):
        assert 1.0 == confidence_at(one, after(9999), name)
        assert not fades(one, after(9999), name)


def test_a_rate_of_its_own_goes_before_the_preset_s():
    fast, never = made(decay_rate=1.0), made(decay_rate=0.0, source=LEARNT)

    assert math.isclose(math.exp(-2.0), confidence_at(fast, after(2), "gentle"))
    assert 1.0 == confidence_at(never, after(9999), "ebbinghaus")


def test_nothing_fades_while_the_clock_stands_before_its_time():
    assert 1.0 == confidence_at(made(source=LEARNT), CREATED - timedelta(days=5), "ebbinghaus")
