"""People and entities: what callers may rely on, over every store and through the real client."""

from __future__ import annotations

import pytest
from memory_client import (
    AmbiguousName,
    EntityNotFound,
    EntityType,
    Filter,
    InvalidArgument,
    NotFound,
    PageTokenInvalid,
    Source,
)

from tests.conformance.people_helpers import told


async def names(memory):
    return [person.name for person in (await memory.people()).people]


async def test_a_wife_a_name_and_a_handle_are_one_person(memory):
    made = await told(
        memory,
        "my wife likes tulips",
        "My wife's name is Sarah",
        "Sarah (@sarah) plays chess",
        "@sarah speaks Dutch",
    )
    person = (await memory.entity("Sarah")).entity
    assert (EntityType.PERSON, ("wife",), ("@sarah",)) == (person.type, person.relations, person.aliases)
    assert 4 == person.mention_count
    assert person == (await memory.entity("my wife")).entity == (await memory.entity("@sarah")).entity
    assert ["Sarah"] == await names(memory)
    assert ("Sarah",) == (await memory.get(made[0].id)).subjects  # it is known now whom it was about
    hits = (await memory.search("tulips", filter=Filter(subjects=("Sarah",)))).hits
    assert (4, made[0].id) == (len(hits), hits[0].memory.id)


async def test_the_subject_of_a_text_is_found_without_being_named_by_the_caller(memory):
    (made,) = await told(memory, "my wife Sarah likes Italian food")
    assert ("Sarah",) == made.subjects
    assert [("Sarah", True)] == [(ref.name, ref.about) for ref in made.entities]
    (met,) = await told(memory, "I met Sarah and Tom Bell at the gym")
    assert ((), {"Sarah", "Tom Bell"}) == (met.subjects, {ref.name for ref in met.entities})
    found = await memory.page(filter=Filter(subjects=("my wife",)))
    assert {made.id, met.id} == {m.id for m in found.memories}


async def test_names_are_compared_as_wholes(memory):
    await told(memory, "my sister Ann likes tea", "my neighbor Joanna likes tea", "my cousin Hannah likes tea")
    assert {"Ann", "Joanna", "Hannah"} == set(await names(memory))
    assert 1 == len((await memory.page(filter=Filter(subjects=("ann",)))).memories)


async def test_a_nickname_means_somebody_where_one_alone_can_be_meant(memory):
    await told(memory, "my brother Robert lives in Ohio", "Bob likes fishing")
    assert ["Robert"] == await names(memory)
    await told(memory, "my friend Roberta likes jazz", "Bobbie sings")
    assert "Roberta" in await names(memory)


async def test_two_people_of_one_first_name_stay_two(memory):
    await told(memory, "my sister Anna Bell is a nurse", "my boss Anna Kern is strict", "Anna called")
    people = await names(memory)
    assert {"Anna Bell", "Anna Kern", "Anna"} == set(people)
    await told(memory, "my daughter Mia is 5", "my teacher Mia is 50")
    assert 2 == sum(name == "Mia" for name in await names(memory))
    with pytest.raises(AmbiguousName):
        await memory.entity("Mia")


async def test_of_two_who_may_be_meant_none_is_taken(memory):
    await told(memory, "Ann Miller is my boss", "Ann Smith is my neighbor", "Annie plays tennis")
    assert ["Ann Miller", "Ann Smith", "Annie"] == sorted(await names(memory))
    for call in (memory.entity("Ann"), memory.rename_entity("Ann", "Zoe")):
        with pytest.raises(AmbiguousName):
            await call
    for call in (
        memory.delete_matching(filter=Filter(subjects=("Ann",)), dry_run=True),
        memory.forget_person("Ann"),
    ):
        with pytest.raises(EntityNotFound, match="near are Ann"):
            await call


async def test_a_full_name_and_a_relation_are_not_those_of_somebody_else(memory):
    await told(memory, "Bob Jones is my friend", "Bob likes tea", "Bob Clark is my plumber")
    await told(memory, "Sarah is my wife", "Sally is my colleague")
    assert {"Bob Jones", "Bob Clark", "Sarah", "Sally"} == set(await names(memory))


async def test_deleting_by_subject_leaves_what_merely_mentions_them(memory):
    about, mentioning = await told(memory, "Bob likes chess", "I had lunch with Bob in Rome")
    gone = await memory.delete_matching(filter=Filter(subjects=("Bob",)))
    assert (about.id,) == gone.deleted_ids
    assert mentioning.id == (await memory.get(mentioning.id)).id


async def test_a_new_boss_is_the_boss_and_the_old_one_is_somebody_still(memory):
    await told(memory, "My boss is Tom", "Tom hates mornings", "My boss is Anna", "my boss likes tea")
    assert ("boss",) == (await memory.entity("Anna")).entity.relations
    assert () == (await memory.entity("Tom")).entity.relations
    assert "Anna" == (await memory.entity("my boss")).entity.name
    assert 2 == (await memory.entity("Anna")).entity.mention_count


async def test_what_is_deleted_takes_its_names_along(memory):
    _, named = await told(memory, "my wife likes tulips", "My wife's name is Sarah")
    await memory.delete(named.id)
    with pytest.raises(EntityNotFound):
        await memory.entity("Sarah")
    assert "wife" == (await memory.entity("my wife")).entity.name
    await memory.restore(named.id)
    assert "Sarah" == (await memory.entity("my wife")).entity.name


async def test_a_rename_keeps_the_old_name_as_an_alias(memory):
    (made,) = await told(memory, "my friend Sara likes tea")
    renamed = await memory.rename_entity("Sara", "Sarah Miller")
    assert ("Sarah Miller", ("Sara",)) == (renamed.name, renamed.aliases)
    assert ("Sarah Miller",) == (await memory.get(made.id)).subjects
    await told(memory, "Sarah Miller moved to Rome")
    assert 2 == (await memory.entity("Sara")).entity.mention_count


async def test_a_merge_that_is_undone_takes_along_what_was_merged_before(memory):
    await told(memory, "Mrs Oliveira sells boats", "Beatriz Oliveira sails on Sundays", "Maia sings")
    first = await memory.merge_entities("Mrs Oliveira", "Beatriz Oliveira")
    assert (1, ("Mrs Oliveira",)) == (len(first.entity.merged_ids), first.entity.merged_names)
    second = await memory.merge_entities(first.entity.id, "Maia")
    assert {"Mrs Oliveira", "Beatriz Oliveira"} == set(second.entity.merged_names)
    again = await memory.unmerge_entity(second.merged_id)
    assert (first.entity.id, 2, first.entity.merged_ids) == (again.id, again.mention_count, again.merged_ids)
    assert 1 == (await memory.entity("Maia")).entity.mention_count
    alone = await memory.unmerge_entity(first.merged_id)
    assert (("Mrs Oliveira", 1), 1) == (
        (alone.name, alone.mention_count), (await memory.entity(first.entity.id)).entity.mention_count
    )  # fmt: skip


async def test_a_merge_can_be_undone(memory):
    await told(memory, "Sally likes tea", "my friend Zoe likes jam")
    merged = await memory.merge_entities("Sally", "Zoe")
    assert (("Sally",), 2) == (merged.entity.aliases, merged.entity.mention_count)
    assert (merged.merged_id,) == merged.entity.merged_ids
    with pytest.raises(InvalidArgument):
        await memory.merge_entities("Sally", "Zoe")
    alone = await memory.unmerge_entity(merged.merged_id)
    assert ("Sally", 1) == (alone.name, alone.mention_count)
    assert {"Sally", "Zoe"} == set(await names(memory))


async def test_what_a_memory_showed_to_be_one_can_be_kept_apart(memory):
    first, _, _ = await told(memory, "my wife likes tulips", "Sarah plays chess", "My wife's name is Sarah")
    assert 3 == (await memory.entity("Sarah")).entity.mention_count
    wife = first.entities[0].id
    alone = await memory.unmerge_entity(wife)
    assert ("wife", 1) == (alone.name, alone.mention_count)
    assert 2 == (await memory.entity("Sarah")).entity.mention_count


async def test_a_rename_takes_no_other_s_name_and_no_relation_for_one(memory):
    await told(memory, "my friend Sara likes tea", "my boss Bob likes jazz")
    with pytest.raises(InvalidArgument, match="called 'bob'"):
        await memory.rename_entity("Sara", "bob")
    with pytest.raises(InvalidArgument, match="relation"):
        await memory.rename_entity("Sara", "Wife")
    assert "Sara" == (await memory.rename_entity("Sara", "Sara")).name


async def test_a_short_name_that_has_become_one_is_not_another(memory):
    for text in ("Chris likes tea", "Christina likes jazz", "Christopher likes chess"):
        await told(memory, text)
    assert ["Christina", "Christopher"] == sorted(person.name for person in (await memory.people()).people)


async def test_nicknames_that_contradict_each_other_are_contested(memory):
    (sam,) = await told(memory, "Sam lives in Rome")
    made = await memory.add("Samuel lives in Oslo")
    assert ((), (sam.id,)) == (made.superseded_ids, made.contested_ids)


async def test_a_shared_mailbox_makes_nobody_one(memory):
    await told(memory, "Anna's email is family@acme.com", "Ella's email is family@acme.com", "Ella lives in Oslo")
    assert {"Anna", "Ella"} == {person.name for person in (await memory.people()).people}


async def test_a_sister_is_no_wife_of_the_same_name(memory):
    await told(memory, "My sister Sarah likes tea", "My wife Sarah likes jazz")
    assert [("sister",), ("wife",)] == sorted(person.relations for person in (await memory.people()).people)


async def test_an_alias_that_is_another_s_is_taken_out(memory):
    await told(
        memory,
        "Chris lives in Rome",
        "Christina likes tea",
        "Christina's email is tina@acme.com",
        "my wife Chris likes jazz",
    )
    assert ["Christina"] == [person.name for person in (await memory.people()).people]
    alone = await memory.unmerge_entity("Chris")
    assert ("Chris", (), 2) == (alone.name, alone.relations, alone.mention_count)
    rest = (await memory.entity("Christina")).entity
    assert ("Christina", ("tina@acme.com",)) == (rest.name, rest.aliases)
    await told(memory, "Christina plays chess", "Chris plays golf")
    about_chris = Filter(subjects=frozenset({"Chris"}))
    said = {hit.memory.content for hit in (await memory.search("plays", filter=about_chris)).hits}
    assert "Chris plays golf" in said
    assert not any("Christina" in content for content in said)
    with pytest.raises(InvalidArgument, match="no alias"):
        await memory.unmerge_entity("Christina")
    with pytest.raises(EntityNotFound):
        await memory.unmerge_entity("Zoe")


async def test_a_first_wife_is_not_the_wife(memory):
    await told(memory, "My wife is Julia now", "My first wife was Clara")
    assert "Julia" == (await memory.entity("my wife")).entity.name


async def test_of_two_that_are_meant_the_other_one_is_merged_into(memory):
    await told(memory, "my friend Sara likes tea", "my boss Sally likes jazz")
    await memory.rename_entity("Sara", "Sarah Miller")
    merged = (await memory.merge_entities("Sally", "Sarah")).entity
    assert ("Sarah Miller", 2) == (merged.name, merged.mention_count)
    assert merged.id == (await memory.entity(merged.id[:8])).entity.id


async def test_names_begin_with_the_capitals_of_other_alphabets_too(memory):
    await told(memory, "Çağla is my wife", "my brother Øystein lives in Oslo", "моя: my friend Ольга likes tea")
    assert {"Çağla", "Øystein", "Ольга"} <= {person.name for person in (await memory.people()).people}
    assert "Çağla" == (await memory.entity("my wife")).entity.name


async def test_a_person_is_forgotten_with_a_receipt(memory):
    about = await told(memory, "my friend Bob lives in Ohio", "Bob likes fishing")
    (mentioning,) = await told(memory, "I met Bob at the lake")
    (other,) = await told(memory, "my friend Eve likes tea")
    await memory.delete(about[0].id)  # a hidden one goes too
    await memory.rename_entity("Bob", "Robert the Bold")
    preview = await memory.forget_person("Bob", dry_run=True)
    assert (2, None) == (preview.purged_count, preview.purge_time)
    receipt = await memory.forget_person("Bob")
    assert {m.id for m in about} == set(receipt.purged_ids)
    assert (mentioning.id,) == receipt.mentioning_ids
    for gone in about:
        with pytest.raises(NotFound):
            await memory.restore(gone.id)
    for name in ("Bob", preview.entity.id, "Robert the Bold"):
        with pytest.raises(EntityNotFound):
            await memory.entity(name)
    assert {mentioning.id, other.id} == {m.id for m in (await memory.page()).memories}
    again = await memory.add("Bob likes fishing", source=Source(channel="extraction"))
    assert "forgotten" == again.rejection


async def test_nobody_else_sees_whom_one_knows(memory):
    await told(memory, "my wife Sarah likes tea")
    bob = memory.acting_for(user_id="bob")
    assert () == (await bob.people()).people
    with pytest.raises(EntityNotFound):
        await bob.entity("Sarah")
    mine = (await memory.entity("Sarah")).entity.id
    retyped = bob.set_entity_type(mine, EntityType.OTHER)
    for call in (
        bob.entity(mine),
        bob.rename_entity(mine, "x"),
        retyped,
        bob.unmerge_entity(mine),
        bob.forget_person(mine),
    ):
        with pytest.raises(EntityNotFound):
            await call


async def test_people_are_paged_those_named_most_often_first(memory):
    for n in range(5):
        await told(memory, f"my friend Person{chr(97 + n)} Smith{chr(97 + n)} likes tea number{n}")
    await told(memory, "Persone Smithe lives in Rome")
    first = await memory.people(page_size=2)
    assert "Persone Smithe" == first.people[0].name
    rest = await memory.people(page_size=9, page_token=first.next_page_token)
    assert 5 == len({p.id for p in (*first.people, *rest.people)})
    assert "" == rest.next_page_token
    with pytest.raises(PageTokenInvalid):
        await memory.people(page_token="x" * 40)


async def test_organizations_addresses_and_places_are_entities_too_and_no_people(memory):
    await told(
        memory, "I study at Oxford University", "write to info@acme.example about it", "see https://acme.example/x"
    )
    assert [] == await names(memory)
    for name, kind in (
        ("Oxford University", EntityType.ORGANIZATION),
        ("info@acme.example", EntityType.EMAIL),
        ("https://acme.example/x", EntityType.URL),
    ):
        assert kind is (await memory.entity(name)).entity.type


async def test_people_who_come_and_go_between_pages_hide_and_repeat_no_others(memory):
    listed = ["Anna", "Bruno", "Clara", "Dario", "Elena", "Fabio"]
    for name in listed:
        await memory.add(f"{name} plays chess", subjects=[name])
    first = await memory.people(page_size=2)
    assert listed[:2] == [person.name for person in first.people]
    await memory.forget_person("Anna")
    await memory.add("Bianca plays chess", subjects=["Bianca"])  # sorted onto the first page
    seen, token = [], first.next_page_token
    while token:
        page = await memory.people(page_size=2, page_token=token)
        seen, token = seen + [person.name for person in page.people], page.next_page_token
    assert listed[2:] == seen
