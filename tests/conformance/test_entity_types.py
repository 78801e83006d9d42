"""What somebody says that an entity is, whatever memories say."""

from __future__ import annotations

import pytest
from memory_client import EntityNotFound, EntityType, Filter, InvalidArgument

from tests.conformance.people_helpers import told


async def names(memory):
    return [person.name for person in (await memory.people()).people]


async def test_what_was_taken_for_a_person_is_none_once_somebody_says_so_and_stays_none(memory):
    await told(memory, "Luna slept on my keyboard", "my friend Zoe likes jam")
    assert {"Luna", "Zoe"} == set(await names(memory))
    changed = await memory.set_entity_type("Luna", EntityType.OTHER)
    assert ("Luna", EntityType.OTHER, 1) == (changed.name, changed.type, changed.mention_count)
    await told(memory, "Luna said hello to Zoe")
    assert ["Zoe"] == await names(memory)
    known = await memory.entity("Luna")
    assert (EntityType.OTHER, 2) == (known.entity.type, len(known.memories))
    assert 2 == len((await memory.page(filter=Filter(subjects=frozenset({"Luna"})))).memories)
    assert EntityType.PERSON == (await memory.set_entity_type("Luna", EntityType.PERSON)).type
    assert {"Luna", "Zoe"} == set(await names(memory))


async def test_a_type_stays_with_its_own_where_two_are_made_one(memory):
    await told(memory, "Luna slept on my keyboard", "my friend Zoe likes jam")
    await memory.set_entity_type("Luna", EntityType.OTHER)
    merged = await memory.merge_entities("Luna", "Zoe")
    assert EntityType.PERSON == merged.entity.type
    assert EntityType.OTHER == (await memory.unmerge_entity(merged.merged_id)).type


async def test_a_type_holds_for_what_a_memory_shows_to_be_the_same(memory):
    await told(memory, "@luna slept on my keyboard", "Walter plays chess")
    await memory.set_entity_type("@luna", EntityType.OTHER)
    await told(memory, "Walter (@luna) sings")
    assert (EntityType.OTHER, 3) == ((known := (await memory.entity("Walter")).entity).type, known.mention_count)


async def test_a_sister_is_not_the_cat_of_the_same_name(memory):
    await told(memory, "Luna slept on my keyboard")
    await memory.set_entity_type("Luna", EntityType.OTHER)
    await told(memory, "my sister Luna is allergic to nuts")
    sister = (await memory.entity("my sister")).entity
    assert ("Luna", EntityType.PERSON, 1) == (sister.name, sister.type, sister.mention_count)
    assert ["Luna"] == await names(memory)


@pytest.mark.parametrize("given", [EntityType.EMAIL, EntityType.URL, EntityType.stranger(17)])
async def test_a_type_that_nobody_can_give_is_refused(memory, given):
    await told(memory, "Luna slept on my keyboard")
    with pytest.raises(InvalidArgument, match="person, organization") as refused:
        await memory.set_entity_type("Luna", given)
    assert "type" == refused.value.field
    assert ["Luna"] == await names(memory)


@pytest.mark.parametrize("address", ["luna@example.com", "www.luna.example.com"])
async def test_an_address_is_nothing_else(memory, address):
    await told(memory, f"write to {address} about the cat")
    with pytest.raises(InvalidArgument) as refused:
        await memory.set_entity_type(address, EntityType.PERSON)
    assert "name" == refused.value.field
    assert [] == await names(memory)


async def test_who_is_forgotten_takes_the_decision_along(memory):
    await told(memory, "Luna slept on my keyboard", "I fed the cat that Zoe calls Luna")
    known = (await memory.set_entity_type("Luna", EntityType.OTHER)).id
    await memory.forget_person("Luna")
    with pytest.raises(EntityNotFound):
        await memory.entity(known)
    await told(memory, "Luna slept on my keyboard")
    assert "Luna" in await names(memory)


async def test_who_is_left_under_another_name_keeps_the_decision(memory):
    await told(memory, "Robert slept on my keyboard", "Bob likes fish")
    assert EntityType.OTHER is (await memory.set_entity_type("Robert", EntityType.OTHER)).type
    await memory.forget_person("Bob")
    assert EntityType.OTHER is (await memory.entity("Robert")).entity.type
