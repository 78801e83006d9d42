"""Forgetting people: exact names, receipts, and what is left."""

from __future__ import annotations

import re

import pytest
from memory_client import (
    AmbiguousName,
    EntityNotFound,
    Filter,
)

from tests.conformance.people_helpers import told


async def test_what_erases_takes_exact_names_and_shows_what_would_go(memory):
    told_of = await told(memory, "my friend Sarah likes tea", "Sarah Miller plays chess", "I met Sarah at the lake")
    for name in (
        "Sarah Connor",
        "Sara",
        "Sally",
        "my friend",
        "friend",
        "Sarah Miller Jones",
        "Mill",
        told_of[0].id,
    ):
        with pytest.raises(EntityNotFound):
            await memory.forget_person(name)
        with pytest.raises(EntityNotFound):
            await memory.delete_matching(filter=Filter(subjects=(name,)))
    assert 3 == len((await memory.page()).memories)
    preview = await memory.forget_person("sarah miller", dry_run=True)
    assert ["Sarah Miller plays chess"] == [m.content for m in preview.memories if "chess" in m.content]
    assert {m.id for m in preview.memories} == set(preview.purged_ids)
    assert {m.id for m in preview.mentioning_memories} == set(preview.mentioning_ids)


async def test_who_has_no_name_but_a_relation_is_forgotten_by_that(memory):
    await told(memory, "my dentist is strict")
    assert "dentist" == (await memory.people()).people[0].name
    assert 1 == (await memory.forget_person("dentist")).purged_count


@pytest.mark.parametrize(
    ("one", "other"), [("Robert", "Bob"), ("Sarah", "Sara"), ("Alexandra", "Alex"), ("Katherine", "Kate")]
)
async def test_nobody_is_erased_for_being_called_like_somebody(memory, one, other):
    ids = [(await memory.add(f"{one} plays chess", subjects=[one])).memory.id]
    ids.append((await memory.add(f"{other} plays go", subjects=[other])).memory.id)
    known = {person.name for person in (await memory.people()).people}
    for name, theirs, left in ((one, *ids), (other, *reversed(ids))):
        preview = await memory.forget_person(name, dry_run=True)
        assert (name, (theirs,)) == (preview.entity.name, preview.purged_ids)
        assert preview.mentioning_ids == ((left,) if len(known) == 1 else ())  # they were taken for one
    person = (await memory.entity(one)).entity
    if len(known) == 1:
        assert 2 == (await memory.forget_person(person.id, dry_run=True)).purged_count
        for name in (one, other):
            with pytest.raises(AmbiguousName, match="no one has said that they are one"):
                await memory.delete_matching(filter=Filter(subjects=(name,)), dry_run=True)
    await memory.forget_person(other)
    assert [ids[0]] == [m.id for m in (await memory.page(filter=Filter(subjects=(one,)))).memories]
    with pytest.raises(EntityNotFound):
        await memory.forget_person(other)
    assert (await memory.forget_person(one)).purged_ids == (ids[0],)


@pytest.mark.parametrize("typed", [0, 1])
async def test_the_way_out_of_a_likeness_works_as_it_is_told(memory, typed):
    ids = [(await memory.add(f"{name} likes tea", subjects=[name])).memory.id for name in ("Sarah", "Sara")]
    with pytest.raises(AmbiguousName) as refused:
        await memory.delete_matching(filter=Filter(subjects=(("Sarah", "Sara")[typed],)))
    await memory.unmerge_entity(re.search(r"--unmerge '(\w+)'", str(refused.value))[1])
    gone = await memory.delete_matching(filter=Filter(subjects=(("Sarah", "Sara")[typed],)))
    assert (ids[typed],) == gone.deleted_ids


async def test_what_holds_a_forgotten_name_is_told_also_where_nobody_was_found_to_be_meant(memory):
    texts = {
        "Sarah Connor": ("the plumber said sarah connor owes him money", "Sarah Connory sings"),
        "Анна": ("анна звонила вчера", "Аннабель поёт"),
        "田中": ("今日は田中さんと話した", "中田さんは医者です"),
    }
    for name, (held, other) in texts.items():
        await memory.add(f"{name} likes tea", subjects=[name])
        left = (await memory.add(held)).memory.id
        strange = (await memory.add(other)).memory.id
        receipt = await memory.forget_person(name)
        assert 1 == receipt.purged_count
        assert left in receipt.mentioning_ids
        assert strange not in receipt.mentioning_ids


async def test_who_shares_a_part_of_a_name_is_near(memory):
    for name in ("Sarah Connor", "John Connor", "Kyle Reese"):
        await memory.add(f"{name} likes tea", subjects=[name])
    for name in ("Connor", "Connor, Sarah"):
        with pytest.raises(EntityNotFound) as refused:
            await memory.forget_person(name)
        assert "Sarah Connor" in str(refused.value)
        assert "Reese" not in str(refused.value)
    with pytest.raises(EntityNotFound, match="John Connor.*Sarah Connor"):
        await memory.forget_person("Connor")


async def test_a_relation_deletes_nobody_who_has_a_name(memory):
    await memory.add("my wife Mia likes sushi", subjects=["Mia"])
    await memory.add("my wife is afraid of spiders", subjects=["my wife"])
    with pytest.raises(EntityNotFound, match="near are Mia"):
        await memory.delete_matching(filter=Filter(subjects=("my wife",)))
    assert 2 == (await memory.forget_person("Mia")).purged_count
    await memory.add("my dentist is strict")
    assert 1 == (await memory.forget_person("my dentist")).purged_count


async def test_names_that_a_statement_or_a_hand_has_made_one_are_erased_together(memory):
    await memory.add("Robert Miller, also known as Bob, plays chess", subjects=["Robert Miller", "Bob"])
    await memory.add("my friend Ann sings")
    await memory.add("Joan cooks")
    await memory.merge_entities("Ann", "Joan")
    assert 2 == (await memory.forget_person("Joan", dry_run=True)).purged_count
