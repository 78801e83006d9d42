"""Names as people type them: without accents, apostrophes, hyphens and titles."""

from __future__ import annotations

import re

import pytest
from memory_client import AmbiguousName, EntityNotFound, EntityType, Filter

from tests.conformance.people_helpers import told


@pytest.mark.parametrize(
    ("known", "typed"),
    [
        ("Conceição", "conceicao"),
        ("Siobhán O'Sullivan", "siobhan osullivan"),
        ("Dr O'Sullivan", "O'Sullivan"),
        ("Dr O'Sullivan", "dr osullivan"),
        ("Señora Núñez", "nunez"),
        ("Anne-Marie", "anne marie"),
        ("Łukasz Żółw", "Lukasz Zolw"),
        ("Jørgen", "jorgen"),
        ("Þór", "thor"),
        ("J.R. Ewing", "j r ewing"),
    ],
)
async def test_a_name_is_found_however_it_is_typed(memory, known, typed):
    await memory.add(f"{known} plays chess", subjects=(known,))
    await memory.add("Bob plays tennis", subjects=("Bob",))
    assert known == (await memory.entity(typed)).entity.name
    assert 1 == len((await memory.search("chess", filter=Filter(subjects=(typed,)))).hits)


@pytest.mark.parametrize(
    ("known", "other"),
    [
        ("Mrs Smith", "Mr Smith"),
        ("ダン", "タン"),
        ("धर्म", "धरम"),
        ("jo.smith@example.com", "jo-smith@example.com"),
        ("www.my-site.example.com", "www.my.site.example.com"),
        ("Joanna", "Anna"),
    ],
)
async def test_what_only_looks_alike_is_another(memory, known, other):
    await memory.add(f"{known} plays chess", subjects=(known,))
    assert known == (await memory.entity(known)).entity.name
    with pytest.raises(EntityNotFound):
        await memory.entity(other)


async def test_an_accent_tells_two_people_apart_where_both_are_known(memory):
    for name in ("José", "Jose"):
        await memory.add(f"{name} plays chess", subjects=(name,))
        assert name == (await memory.entity(name)).entity.name
    for name in ("Ümit", "Úmit"):
        await memory.add(f"{name} plays chess", subjects=(name,))
    with pytest.raises(AmbiguousName, match="Ümit"):
        await memory.entity("umit")
    with pytest.raises(EntityNotFound) as unknown:
        await memory.entity("Josee")
    assert "José (" in str(unknown.value)
    assert "Jose (" in str(unknown.value)


async def test_a_first_name_is_found_without_its_accent_and_a_slip_in_it_is_answered(memory):
    for text in ("Siobhán O'Connor is kind", "my friend Renée Dubois likes jam", "Małgorzata Wójcik sings"):
        await told(memory, text)
    assert "Siobhán O'Connor" == (await memory.entity("siobhan")).entity.name
    assert "Renée Dubois" == (await memory.entity("renee")).entity.name
    for typed, known in (
        ("Sibhan", "Siobhán"),
        ("wojcik", "Wójcik"),
        ("Mrs O'Connor", "Siobhán"),
        ("oconnor", "O'Connor"),
    ):
        with pytest.raises(EntityNotFound, match=known):
            await memory.entity(typed)


async def test_a_first_name_is_enough_whatever_else_somebody_is_called(memory):
    await told(memory, "Katarzyna Nowak sings", "Kasia Nowak paints")
    await memory.merge_entities("Kasia Nowak", "Katarzyna Nowak")
    assert (
        2
        == (await memory.entity("Katarzyna")).entity.mention_count
        == (await memory.entity("kasia")).entity.mention_count
    )


async def test_another_surname_is_another_person(memory):
    await told(memory, "Katarzyna Nowak sings", "Katarzyna likes jam")
    assert "Katarzyna Nowak" == (await memory.entity("Katarzyna")).entity.name
    with pytest.raises(EntityNotFound, match="Katarzyna Nowak"):
        await memory.entity("Katarzyna Smith")


async def test_a_relation_may_stand_before_the_name(memory):
    await told(memory, "my grandma Rosa bakes", "my mother-in-law Maeve paints", "Bob paints")
    assert "Rosa" == (await memory.entity("grandma Rosa")).entity.name
    assert "Maeve" == (await memory.entity("my mother in law")).entity.name
    with pytest.raises(EntityNotFound):
        await memory.entity("grandma Bob")


async def test_namesakes_are_told_apart_by_what_they_are(memory):
    await told(memory, "Luna slept on my keyboard")
    await memory.set_entity_type("Luna", EntityType.OTHER)
    await told(memory, "my sister Luna is allergic to nuts")
    with pytest.raises(AmbiguousName) as several:
        await memory.entity("Luna")
    assert {"Luna (sister", "Luna (other"} <= {*re.findall(r"Luna \(\w+", str(several.value))}


@pytest.mark.parametrize("apostrophe", ["\u2019", "\u2018", "\u00b4", "\u02bc", "\uff07", "\u2032"])
async def test_every_apostrophe_is_the_one_of_a_keyboard(memory, apostrophe):
    await memory.add("O'Brien plays chess", subjects=("O'Brien",))
    assert "O'Brien" == (await memory.entity(f"O{apostrophe}Brien")).entity.name


async def test_without_a_title_somebody_of_the_same_first_name_may_be_meant(memory):
    for name in ("Dr Bob", "Bob Miller", "Anne", "Anne-Marie"):
        await memory.add(f"{name} plays chess", subjects=(name,))
    with pytest.raises(AmbiguousName, match=r"Bob Miller .*Dr Bob|Dr Bob .*Bob Miller"):
        await memory.entity("Bob")
    assert "Dr Bob" == (await memory.entity("dr. bob")).entity.name
    assert "Anne-Marie" == (await memory.entity("anne marie")).entity.name


@pytest.mark.parametrize(("known", "typed"), [("Élodie", "Elodi"), ("Dr O'Sullivan", "osulivan"), ("Łódź", "Lodzz")])
async def test_a_slip_in_a_name_with_accents_is_answered_with_the_name(memory, known, typed):
    await memory.add(f"{known} plays chess", subjects=(known,))
    with pytest.raises(EntityNotFound, match=known):
        await memory.entity(typed)


async def test_what_erases_takes_no_other_spelling(memory):
    await memory.add("Conceição plays chess", subjects=("Conceição",))
    with pytest.raises(EntityNotFound, match="Conceição"):
        await memory.forget_person("Conceicao")
    await memory.rename_entity("Conceição", "Zoë")
    assert "Zoë" == (await memory.entity("zoe")).entity.name
    await memory.forget_person("Zoë")
    with pytest.raises(EntityNotFound):
        await memory.entity("zoe")


async def test_an_apostrophe_is_one_whichever_it_is_typed_with(memory):
    curly = "O\u2019Brien"
    first = (await memory.add("likes tea", subjects=(curly,))).memory
    await told(memory, f"{curly} plays chess", "O'Brien plays golf")
    assert 3 == (await memory.entity("O'Brien")).entity.mention_count
    known = (await memory.entity(curly)).entity
    assert (3, ()) == (known.mention_count, known.aliases)
    assert ("O'Brien",) == (await memory.get(first.id)).subjects
    await memory.rename_entity("O'Brien", "Sam Miller")
    assert "O'Brien" == (await memory.unmerge_entity(curly)).name
