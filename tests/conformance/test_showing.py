"""Who said it and when: what every answer adds so that a statement is understood."""

from __future__ import annotations

from datetime import timedelta

import pytest
from memory_client import Filter, Source

from memoryd.domain.retrieval.presentation import said_by, said_time
from memoryd.knowledge.grammar.times import has_relative_time
from memoryd.model.caller import Caller
from memoryd.model.memory import Kind
from memoryd.model.trust import Trust
from tests.builders import ALICE, NOW, TEAM, Local, ports_over, ram_store
from tests.builders import memory as made


async def test_in_a_chat_nobody_reads_what_another_says_of_themselves_as_their_own(memory):
    bob = memory.acting_for(user_id="bob", chat_id="room")
    carol = memory.acting_for(user_id="carol", chat_id="room")
    chat = memory.acting_for(chat_id="room")
    told = (await bob.add("I am allergic to nuts", shared=True)).memory
    assert "" == told.said_by
    for one, said in ((bob, ""), (carol, "bob"), (chat, "bob")):
        label = f"[{said}] " if said else ""
        found = (await one.search("allergic")).hits[0].memory
        listed = (await one.page()).memories[0]
        assert (said, said, said) == (found.said_by, listed.said_by, (await one.get(told.id)).said_by)
        assert f"- {label}I am allergic to nuts" in (await one.context("Which nuts may we eat?", min_score=0.0)).text


async def test_the_speaker_is_named_before_the_user_for_whom_it_was_stored(memory):
    host = memory.acting_for(user_id="bob", chat_id="room")
    await host.add("I am allergic to nuts", shared=True, source=Source(speaker="Dave"))
    await memory.add("I like figs", source=Source(speaker="Dave"))
    assert "- [Dave] I am allergic to nuts" in (await host.context("nuts")).text
    assert "- [Dave] I like figs" in (await memory.context("figs")).text


@pytest.mark.parametrize(
    ("speaker", "author", "trust", "said"),
    [
        ("", "carol", Trust.HOST, ""),
        ("user", "carol", Trust.SANDBOX, ""),
        ("Carol", "carol", Trust.HOST, ""),
        ("Carol", "", Trust.HOST, ""),  # the host vouches for it
        ("carol", "", Trust.SANDBOX, "carol, as unknown says"),  # nobody does
        ("carol", "bob", Trust.HOST, "carol, as bob says"),
        ("user", "bob", Trust.HOST, "bob"),
        ("", "", Trust.HOST, "unknown"),
        ("Dave", "bob", Trust.SANDBOX, "Dave, as bob says"),
        ("assistant", "carol", Trust.HOST, "assistant"),
    ],
)
def test_nobody_becomes_the_asking_user_by_being_named_so(speaker, author, trust, said):
    one = made("I am allergic", scope=TEAM, source=Source(speaker=speaker), author=author, trust=trust)
    assert said == said_by(one, Caller(user_id="carol", chat_id="team"))


@pytest.mark.parametrize(("grant_id", "said"), [("", ""), ("g" * 26, "unknown")])
def test_what_the_daemon_sums_up_of_a_chat_is_said_by_no_one(grant_id, said):
    one = made("We met twice", scope=TEAM, kind=Kind.REFLECTION, grant_id=grant_id)
    assert said == said_by(one, Caller(user_id="carol", chat_id="team"))


def test_ones_own_memory_names_only_others():
    caller = Caller(user_id="alice")
    for speaker, said in (("", ""), ("Alice", ""), ("user", ""), ("Bob", "Bob")):
        assert said == said_by(made("I swim", scope=ALICE, source=Source(speaker=speaker)), caller)


async def test_a_date_is_told_where_it_is_needed(memory, clock):
    for text in ("I like figs", "my exam is next week"):
        await memory.add(text)
    await memory.add("I moved in", event_time=NOW - timedelta(days=3))
    text = (await memory.context("figs, the exam, and when I moved in", min_score=0.0)).text
    assert "- I like figs\n" in text
    assert "- [2026-11-01] my exam is next week\n" in text
    assert "- [2026-10-29] I moved in\n" in text
    clock.pass_days(29)
    assert "- I like figs\n" in (await memory.context("figs")).text
    clock.pass_days(1)
    assert "- [2026-11-01] I like figs\n" in (await memory.context("figs")).text
    hits = (await memory.search("figs", filter=Filter(event_time_from=NOW - timedelta(days=1)))).hits
    assert hits[0].memory.event_time == hits[0].memory.said_time


def test_the_clock_s_last_microseconds_are_no_time_of_its_own():
    near = made("x", event_time=NOW, create_time=NOW + timedelta(milliseconds=5))
    far = made("x", event_time=NOW, create_time=NOW + timedelta(seconds=5))
    assert (None, NOW) == (said_time(near, NOW, 30), said_time(far, NOW, 30))


@pytest.mark.parametrize(
    "text",
    [
        "my exam is next week", "see you tomorrow", "I moved two years ago", "the car is at the garage for now",
        "we meet on Monday", "Monday is a holiday", "the flight is in three days", "I started a new job last month",
        "my wife comes back this weekend", "I am currently in Rome", "rent is due on 3 May", "I retire in June",
        "dentist on May 4th", "she left a few weeks ago", "the sale ends in 2 hours", "we fly out by the end of July",
        "Morgen habe ich einen Termin", "ich fliege nächste Woche", "demain je vois le médecin", "il y a deux jours",
        "Mañana tengo cita", "la semana que viene", "amanhã viajo", "domani parto",
    ],
)  # fmt: skip
def test_a_relative_time_is_seen(text):
    assert has_relative_time(text)


@pytest.mark.parametrize(
    "text",
    [
        "I like tea", "we meet every Monday", "I swim on Mondays", "I was born in May 1990", "I live in Nowy Targ",
        "rent is due on 3 May 2026", "I may come", "she marches fast", "my wife works each Friday",
        "I have two weeks of leave a year", "the standup is at 9am", "I was born on 4 July 1990",
        "I moved on May 4th, 2020",
    ],
)  # fmt: skip
def test_what_means_the_same_on_every_day_is_no_relative_time(text):
    assert not has_relative_time(text)


async def test_a_relation_is_his_who_says_it():
    async with ports_over(ram_store()) as ports:
        alice, bob = (Local(ports, lambda: NOW, user_id=user, chat_id="team") for user in ("alice", "bob"))
        await alice.add("my wife Sarah likes tulips", shared=True)
        await alice.add("my boss is a pain", shared=True)
        await bob.add("my sister Nora likes opera", shared=True)
        told = (await bob.add("my wife likes roses", shared=True)).memory
        known = {person.name: person.relations for person in (await bob.people()).people}
        assert {"Sarah": ("wife of alice",), "Nora": ("sister",), "wife": ("wife",)} == {
            name: known[name] for name in ("Sarah", "Nora", "wife")
        }
        assert "boss" not in known
        assert ("wife",) == {p.name: p.relations for p in (await alice.people()).people}["Sarah"]
        context = (await bob.context("What does Sarah like?")).text
        assert "- Sarah (wife of alice)\n" in context
        mine = (await bob.search("roses", filter=Filter(subjects=("my wife",)))).hits
        assert [told.id] == [hit.memory.id for hit in mine]
        assert 1 == (await alice.forget_person("Sarah", dry_run=True)).purged_count  # nothing that bob says
