"""Statements and people with very many names, and people whom very many statements name."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from memoryd.domain.retrieval.recall import write_recalls
from memoryd.entities.directory import Directory
from memoryd.model import limits
from memoryd.model.change import ChangeSet
from memoryd.model.entity import EntityType, Form, Mention
from memoryd.model.memory import State
from memoryd.model.trust import Trust
from tests.builders import ALICE, NOW, Local, entry, located, memory, ports_over, ram_store


async def test_a_statement_that_is_said_again_and_again_names_no_more_entities_than_one_may(clock):
    async with ports_over(ram_store()) as ports:
        alice = Local(ports, clock, user_id="alice")
        for n in range(limits.MAX_MENTIONS + 3):
            said = await alice.add("Sally Miller runs")
            name = f"Zoe N{'aeiou'[n % 5]}{'lmnrst'[n // 5]}er"
            await alice.add(f"My colleague {name} sleeps")
            await alice.merge_entities("Sally Miller", name)  # from now on she is somebody else
        stored = await located(ports.store, said.memory.id)
        assert limits.MAX_MENTIONS == len({mention.entity_id for mention in stored.mentions})
        assert ["Sally Miller"] * limits.MAX_MENTIONS == [mention.text for mention in stored.mentions]


def statement(n: int, chance: random.Random, names: list[str]):
    about = chance.sample(names, 2)
    return memory(
        f"{' and '.join(about)} did {n}",
        scope=ALICE,
        create_time=NOW + timedelta(seconds=n),
        trust=chance.choice([*Trust]),
        confidence=chance.choice([0.5, 0.9, 1.0]),
        recall_count=chance.randrange(3),
        expire_time=chance.choice([None, None, NOW + timedelta(hours=1), NOW + timedelta(days=9)]),
        supersede_time=chance.choice([None, None, None, NOW]),
        mentions=tuple(Mention(name.lower(), name, Form.NAME, EntityType.PERSON, True) for name in about),
    )


@pytest.mark.parametrize("seed", range(6))
async def test_of_many_statements_the_best_sum_a_person_up_and_the_newest_are_shown(seed, clock):
    chance = random.Random(seed)
    names = ["Anna", "Bob", "Cleo", "Dan"]
    made = {one.id: one for one in (statement(n, chance, names) for n in range(80))}
    ids = [*made]
    clock.now = NOW + timedelta(days=1)
    async with ports_over(ram_store()) as ports:
        alice = Local(ports, clock, user_id="alice")
        await ports.store.commits.write(ChangeSet(inserts=tuple(entry(made[one]) for one in ids[:70])))
        await alice.people()  # it is loaded; what follows is brought in
        await ports.store.commits.write(ChangeSet(inserts=tuple(entry(made[one]) for one in ids[70:])))
        made |= {one: replace(made[one], confidence=0.95) for one in chance.sample(ids, 9)}
        await ports.store.commits.write(
            ChangeSet(updates=tuple(entry(one) for one in made.values() if one.confidence == 0.95)),
        )
        recalls = {one: (NOW, chance.randrange(1, 5), None) for one in chance.sample(ids, 30)}
        await write_recalls({made[ids[0]].owner: recalls}, ports)
        for one, (_, count, _) in recalls.items():
            made[one] = replace(made[one], recall_count=made[one].recall_count + count, recall_time=NOW)
        profiles = {profile.name: profile for profile in (await alice.people()).people}
        for name in names:
            named = [one for one in made.values() if name in one.content and one.state_at(clock.now) is State.LIVE]
            most = max(one.trust.weight for one in named)
            best = sorted(
                (one for one in named if one.trust.weight == most),
                key=lambda one: (-one.confidence, -one.recall_count, one.create_time),
            )
            newest = sorted(named, key=lambda one: one.create_time, reverse=True)
            for limit in (1, 7, 100):
                told = await alice.entity(name, limit=limit)
                assert [one.id for one in newest[:limit]] == [one.id for one in told.memories]
                assert profiles[name] == told.entity
            assert " · ".join(one.content for one in best[:3]) == told.entity.summary


async def test_whom_a_statement_is_about_is_never_left_out_for_those_whom_it_only_names(clock):
    firsts, lasts = ("Anna", "Bob", "Cleo", "Dan", "Eva"), ("Ray", "Lee", "Fox", "Day", "Kay")
    names = [f"{first} {last}" for first in firsts for last in lasts]
    text = ", ".join(names[: limits.MAX_MENTIONS]) + " met"
    async with ports_over(ram_store()) as ports:
        alice = Local(ports, clock, user_id="alice")
        await alice.add(text)
        await alice.add(text, subjects=["Victor Hill"])
        assert [text] == [one.content for one in (await alice.entity("Victor Hill")).memories]
        await alice.add(f"{text} again", subjects=["Walter Hill"])
        assert 1 == (await alice.forget_person("Walter Hill")).purged_count


def test_a_view_of_people_sees_at_once_that_higher_trust_names_somebody():
    people = Directory()
    called = [Mention("e1", name, Form.NAME, EntityType.PERSON, True) for name in ("Evil Sarah", "Sarah Connor")]
    people.add(memory("of a sandbox", mentions=(called[0],), trust=Trust.SANDBOX))
    view = people.seen_by("alice")
    assert ["Evil Sarah"] == view.names("e1")
    people.add(memory("of the host", mentions=(called[1],), trust=Trust.HOST))
    assert ["Sarah Connor"] == view.names("e1") == people.names("e1")
