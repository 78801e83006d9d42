"""Names that a sandbox gives stand before nobody whom the host knows, and tell nothing to who may not read."""

from __future__ import annotations

import pytest
from memory_client import EntityNotFound, EntityType, Filter, InvalidArgument, TrustTooLow

from memoryd.entities.directory import Directory
from memoryd.entities.lookup import meant_by, near
from memoryd.entities.spellings import MOST
from memoryd.model.entity import Entity, Form, Mention
from memoryd.model.entity import EntityType as StoredType
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from tests.builders import ALICE, NOW, Local, memory, open_duckdb, ports_over

ALICE_S = Owner("default", ALICE)


def test_what_a_sandbox_says_somebody_is_lapses_once_the_host_names_them(world):
    box = world.sandbox(user_id="wilma", chat_ids=())
    with world.admin("wilma") as host, world.inside(box) as inside:
        inside.add("Bob likes fishing")
        assert EntityType.OTHER is inside.set_entity_type("Bob", EntityType.OTHER).type
        assert () == host.people().people
        host.add("Bob plays chess")
        assert ["Bob"] == [person.name for person in host.people().people]
        with pytest.raises(TrustTooLow):
            inside.set_entity_type("Bob", EntityType.OTHER)
        host.set_entity_type("Bob", EntityType.OTHER)
        assert () == host.people().people


@pytest.mark.parametrize(
    ("known", "asked", "lookalike"),
    [
        ("Bob Miller", "Bob", "Dr Bob"),
        ("Bob Miller", "Bob", "Bób"),
        ("Robert", "Bob", "Bob."),
        ("Conceição", "conceicao", "Conçeicao"),
        ("Conceição", "conceicao", "Conceicao"),
        ("José", "jose", "@jose"),
        ("Bob Miller", "Bob", "@Bob"),
        ("Dr O'Sullivan", "O'Sullivan", "O'Sullivan"),
    ],
)
def test_a_lookalike_of_a_sandbox_is_not_taken_for_whom_the_host_knows(world, known, asked, lookalike):
    user = f"xena-{lookalike}"
    box = world.sandbox("add", user_id=user, chat_ids=())
    with world.admin(user) as host, world.inside(box) as inside:
        host.add(f"{known} is allergic to nuts", subjects=[known])
        inside.add("The visit is on Monday", subjects=[lookalike])
        assert known == host.entity(asked).entity.name
        assert [f"{known} is allergic to nuts"] == [
            hit.memory.content for hit in host.search("allergic", filter=Filter(subjects=(asked,))).hits
        ]


def test_a_crowd_of_lookalikes_hides_nobody_in_hints():
    people = Directory()
    people.add(memory("h", mentions=(named("zz", "José"),), trust=Trust.HOST))
    for n in range(200):
        accents = "".join(chr(0x300 + (n >> bit & 1)) for bit in range(8))
        people.add(memory(f"s{n}", mentions=(named(f"s{n}", f"Jose{accents}"),), trust=Trust.SANDBOX))
    assert {"zz"} == meant_by("jose", people)
    assert "zz" == near("josee", people)[0]
    assert MOST >= len(people.spelt("jose"))
    for n in range(400):
        people.put(Entity(f"r{n}", ALICE_S, NOW, Trust.SANDBOX, name=f"Jx{'a' * 38}{n}x"))
        people.add(memory(f"j{n}", mentions=(named(f"j{n}", f"Jx{'a' * 38}{n}"),), trust=Trust.SANDBOX))
    people.add(memory("h2", mentions=(named("zzz", f"Jx{'b' * 40}"),), trust=Trust.HOST))
    assert "zzz" == near(f"jx{'b' * 39}", people)[0]


def named(entity_id: str, name: str) -> Mention:
    return Mention(entity_id, name, Form.NAME, StoredType.PERSON, about=True)


def test_a_sandbox_does_not_override_what_the_host_says_something_is(world):
    box = world.sandbox(user_id="yuri", chat_ids=())
    with world.admin("yuri") as host, world.inside(box) as inside:
        inside.add("Grumio cooks")
        inside.add("@evil sings")
        host.set_entity_type("Grumio", EntityType.PERSON)
        inside.set_entity_type("@evil", EntityType.OTHER)
        inside.add("Grumio (@evil) sings")
        assert EntityType.PERSON is host.entity("Grumio").entity.type
        with pytest.raises(TrustTooLow):
            inside.forget_person("Grumio")


def test_a_sandbox_makes_no_two_one_of_which_the_host_says_different_things(world):
    box = world.sandbox(user_id="yves", chat_ids=())
    with world.admin("yves") as host, world.inside(box) as inside:
        inside.add("Walter cooks")
        inside.add("@luna sings")
        host.set_entity_type("Walter", EntityType.PERSON)
        host.set_entity_type("@luna", EntityType.OTHER)
        inside.add("Walter (@luna) sings")
        assert ["Walter"] == [person.name for person in host.people().people]


def test_of_two_scopes_the_host_s_person_is_named_and_shown(world):
    with world.admin("yara", "c1") as host, world.inside(world.sandbox("add", user_id="yara")) as inside:
        host.add("Walter Hill plays chess", subjects=["Walter Hill"], shared=True)
        inside.add("they sing", subjects=[f"Walter Hil{letter}" for letter in "abcdx"])
        with pytest.raises(EntityNotFound, match="Walter Hill "):
            host.entity("walter hilz")
        inside.add("it sings", subjects=["Walter Hill"])
        assert ["Walter Hill plays chess"] == [one.content for one in host.entity("Walter Hill").memories]


def test_who_only_corrects_or_deletes_reads_no_names(world):
    with world.admin("zora") as host:
        host.add("Walter Hill (@walt) has a debt", subjects=["Walter Hill"])
        for name in ("Ümit", "Úmit"):
            host.add(f"{name} plays chess", subjects=[name])
    with world.admin("zora") as host, world.inside(world.sandbox("add", user_id="zora", chat_ids=())) as inside:
        inside.add("Grumio hides his ulcer", subjects=["Grumio"])
        with world.inside(world.sandbox("correct", user_id="zora", chat_ids=())) as corrects:
            shown = corrects.set_entity_type("Grumio", EntityType.PERSON)
            assert ("Grumio", "", ()) == (shown.name, shown.summary, shown.aliases)
            assert ("", ()) == ((renamed := corrects.rename_entity("Grumio", "Greta")).summary, renamed.aliases)
            with pytest.raises(EntityNotFound) as unknown:
                corrects.rename_entity("walter hil", "x")
            assert "Walter" not in str(unknown.value)
            with pytest.raises(InvalidArgument) as refused:
                corrects.unmerge_entity("walt")
            assert "Walter" not in str(refused.value)
        with world.inside(world.sandbox("delete", user_id="zora", chat_ids=())) as deletes:
            with pytest.raises(EntityNotFound) as unknown:
                deletes.forget_person("umit")
            assert "mit (" not in str(unknown.value)
        with pytest.raises(EntityNotFound, match="Walter Hill"):
            host.rename_entity("walter hil", "x")


async def test_a_type_is_there_after_a_restart(folder, clock):
    for given in (EntityType.OTHER, EntityType.PERSON):
        async with ports_over(open_duckdb(folder)) as ports:
            alice = Local(ports, clock, user_id="alice")
            await alice.add("Luna slept on my keyboard")
            await alice.set_entity_type("Luna", StoredType(given.value))
        async with ports_over(open_duckdb(folder)) as ports:
            alice = Local(ports, clock, user_id="alice")
            assert given.value == (await alice.entity("Luna")).entity.type.value
