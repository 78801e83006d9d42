"""What is known of people, as a user meets it: who is asked for stands first, and who is forgotten is gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memoryd.domain.retrieval.search import ScoredMemory, _of_named_first
from memoryd.model.entity import EntityType, Form, Mention
from memoryd.model.trust import Trust
from tests.builders import memory
from tests.doors import a_world
from tests.support import short_folder

FAMILY = [
    "I live in Antwerp and play the trumpet", "My mother lives in Leuven", "My sister An moved to Ghent last spring",
    "An outgrew her old desk", "An electrician came on Monday", "I eat pasta on Fridays", "An doesn't eat pork",
    "My mother eats fish on Fridays",
]  # fmt: skip


def test_what_is_said_of_somebody_who_is_asked_for_stands_above_what_others_do(daemon, user):
    with daemon.client(user) as memory:
        for text in FAMILY:
            memory.add(text)
        for asked, best in (("Where does An live?", FAMILY[2]), ("What does An not eat?", FAMILY[6]),
                            ("Where does my sister live?", FAMILY[2])):  # fmt: skip
            hits = memory.search(asked).hits
            assert best == hits[0].memory.content
            assert sorted((hit.score for hit in hits), reverse=True) == [hit.score for hit in hits]
        assert FAMILY[0] == memory.search("Where do I live?").hits[0].memory.content
        people = {one.name: one.relations for one in memory.people().people}
        assert ("sister",) == people["An"]
        assert "Antwerp" not in {one.name for one in memory.people().people if one.type.value == "person"}


def test_who_says_what_they_are_called_is_asked_for_by_that_name_too(daemon, user):
    with daemon.client(user) as memory:
        for text in ("I'm Lotte", "I live in Antwerp", "My friend Emil lives in Ghent"):
            memory.add(text)
        assert "I live in Antwerp" in [hit.memory.content for hit in memory.search("Where does Lotte live?").hits][:2]


def test_of_who_is_named_and_the_user_all_stands_above_what_is_of_others(daemon, user):
    with daemon.client(user) as memory:
        for text in (
            "I'm An",
            "My mother lives in Bruges",
            "I live in Ghent",
            "The party is on Friday",
            "An likes tea",
        ):
            memory.add(text)
        found = [hit.memory.content for hit in memory.search("Where does An live?", min_score=0.0).hits]
        assert found.index("I live in Ghent") < found.index("My mother lives in Bruges")


def test_forgetting_takes_all_that_is_about_somebody_and_names_the_rest(daemon, user):
    with daemon.client(user) as memory:
        about = [
            memory.add(text).memory.id
            for text in (
                "Emil outgrew his bike", "Last week Emil sprained his ankle", "Our youngest, Emil, starts judo",
                "Emil can't stand coriander",
            )
        ]  # fmt: skip
        named = memory.add("I borrowed the drill that belongs to Emil").memory.id
        other = memory.add("Emilia likes judo").memory.id
        done = memory.forget_person("Emil", dry_run=True)
        assert set(about) == set(done.purged_ids)
        assert named in done.mentioning_ids
        assert other not in {*done.purged_ids, *done.mentioning_ids}
        memory.forget_person("Emil")
        assert {named, other} == {one.id for one in memory.page().memories}


@pytest.mark.parametrize(
    ("said", "now", "related"),
    [
        (["My sister Anna lives in Oslo", "Anna moved to Bergen"], "Anna", ("sister",)),
        (["My boss Jane lives in Ghent", "Jane moved to Antwerp"], "Jane", ("boss",)),
        (["My boss Jane lives in Ghent", "Jane moved to Antwerp", "My boss is Tom"], "Jane", ()),
        (["My friend Ines lives in Faro", "Ines moved to Lagos", "My wife Ines likes figs"], "Ines", ("wife",)),
        (["My best friend is Anna", "My best friend is Ben"], "Anna", ()),
        (["Jane is my friend", "Jane is no longer my friend"], "Jane", ()),
    ],
)
def test_a_relation_outlives_what_else_was_said_with_it(daemon, user, said, now, related):
    with daemon.client(user) as memory:
        first = memory.add(said[0]).memory.id
        for text in said[1:]:
            memory.add(text)
        assert memory.get(first).supersede_time is not None
        people = {one.name: one.relations for one in memory.people().people}
        assert related == people.get(now, ())
        assert "friend" not in people  # nobody without a name is one


def test_what_a_key_or_a_correction_replaces_gives_no_relation_any_more(daemon, user):
    with daemon.client(user) as memory:
        memory.add("My sister Anna lives in Oslo", key="anna")
        memory.add("Anna lives in Oslo", key="anna")
        memory.correct(memory.add("My brother Emil plays chess").memory.id, "Emil plays chess")
        assert {()} == {memory.entity(name).entity.relations for name in ("Anna", "Emil")}


def test_what_another_says_of_somebody_takes_no_relation_of_mine(daemon, user):
    with daemon.client(user, chat_id="team") as alice, daemon.client(f"{user}-bob", chat_id="team") as bob:
        alice.add("My cousin Dora lives in Rome", shared=True)
        alice.add("Dora moved to Paris", shared=True)
        bob.add("My neighbor Dora likes tea", shared=True)
        people = {one.name: one.relations for one in alice.people().people}
        assert "cousin" in people["Dora"]


@pytest.fixture(scope="module")
def world():
    with short_folder() as folder, a_world(folder, config="") as made:
        yield made


def of_user(world, user):
    """The host as this user, and a sandbox of theirs."""
    box = world.sandbox("search", "add", user_id=user)
    return world.daemon.client(user), world.inside(box)


def test_no_sandbox_pushes_the_hosts_statement_down_by_naming_somebody(world):
    host, box = of_user(world, "ann")
    with host, box:
        host.add("I live in Antwerp and play the trumpet")
        box.add("Zoltan likes cheese")
        for limit in (1, 5):
            hit = host.search("Do I play the trumpet with Zoltan?", limit=limit).hits[0]
            assert hit.memory.content.startswith("I live in Antwerp")


def test_no_sandbox_turns_the_order_off_by_an_introduction(world):
    host, box = of_user(world, "ben")
    with host, box:
        for text in FAMILY[:3]:
            host.add(text)
        box.add("I'm An")
        assert FAMILY[2] == host.search("Where does An live?").hits[0].memory.content


@pytest.mark.parametrize(
    ("asked", "stated", "other"),
    [
        ("我住在哪里：斑马长颈鹿玉米大象河马犀牛狮子老虎？", "我住在安特卫普", "斑马长颈鹿玉米大象河马犀牛狮子老虎"),
        ("Где я живу: зебры, жирафы, слоны, носороги?", "Я живу в Антверпене", "зебры жирафы слоны носороги"),
    ],
)
def test_no_sandbox_makes_words_known_that_the_host_has_not(world, asked, stated, other):
    host, box = of_user(world, f"dora{len(asked)}")
    with host, box:
        host.add(stated)
        alone = host.search(asked).hits[0].score
        box.add(other)
        found = {hit.memory.content: hit.score for hit in host.search(asked).hits}
        assert found[stated] > 0.6 * alone  # the rarity of words is that of all texts; nothing else changes


def test_a_sandbox_that_says_who_it_is_moves_nothing_of_the_hosts():
    an = (Mention("an", "An", Form.NAME, EntityType.PERSON, about=True),)
    mother = (Mention("mother", "mother", Form.RELATION, EntityType.PERSON, about=True),)
    told = [
        ("I'm An", Trust.SANDBOX, an),
        ("My mother lives in Bruges", Trust.HOST, mother),
        ("The party is on Friday", Trust.SANDBOX, ()),
        ("I live in Ghent", Trust.HOST, ()),
    ]
    hits = [
        ScoredMemory(0.9 - n / 10, 0.0, 0.0, replace(memory(text), id=f"m{n}", trust=trust, mentions=mentions))
        for n, (text, trust, mentions) in enumerate(told)
    ]
    assert hits == _of_named_first(hits, {"an"})
    of_host = [replace(hit, memory=replace(hit.memory, trust=Trust.HOST)) for hit in hits]
    assert ["m0", "m2", "m3", "m1"] == [hit.memory.id for hit in _of_named_first(of_host, {"an"})]
    by_another = [*of_host[:3], replace(of_host[3], memory=replace(of_host[3].memory, author="bob"))]
    assert by_another == _of_named_first(by_another, {"an"})
