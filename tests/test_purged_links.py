"""What else a purge changes: links, names given by hand, what counts again."""

from __future__ import annotations

import gc
from dataclasses import replace
from datetime import timedelta

import pytest
from memory_client import Draft, Filter

from memoryd.domain.forgetting.collect import collect
from memoryd.model.change import PURGE, ChangeSet, Entry
from memoryd.model.entity import Entity, EntityType, Form, Mention
from memoryd.model.memory import Judgement
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.store.duckdb.migrations import MIGRATIONS
from memoryd.store.duckdb.writer import write
from tests.builders import (
    ALICE,
    MEMORY_LIMIT,
    NOW,
    Local,
    entry,
    memory,
    open_database,
    open_duckdb,
    ports_over,
    ram_store,
    traces_in,
)
from tests.doors import a_world
from tests.forgotten_helpers import CONFIG, NEST, _held_by
from tests.forking import run_command
from tests.support import running


async def test_those_that_stay_forget_what_they_were_linked_to():
    async with ports_over(ram_store()) as ports:
        memory = Local(ports, lambda: NOW, user_id="alice")
        first = (await memory.add("My favorite color is red")).memory.id
        second = (await memory.add("My favorite color is blue")).memory.id
        await memory.restore(first)
        assert (first,) == (await memory.get(second)).contested_with
        await memory.delete(first, purge=True)
        left = await memory.get(second)
        assert ((), (), None) == (left.contested_with, left.supersedes, left.judgement)
        third = (await memory.add("My favorite color is green")).memory.id
        await memory.delete(third, purge=True)
        left = await memory.get(second)
        assert ("", "") == (left.superseded_by, left.judgement.evidence)
        assert left.supersede_time is not None


async def test_a_name_given_by_hand_goes_with_the_last_memory_that_names_them():
    async with ports_over(ram_store()) as ports:
        memory = Local(ports, lambda: NOW, user_id="alice")
        ids = [(await memory.add(text)).memory.id for text in ("Sarah likes tea", "Sarah lives in Rome")]
        await memory.rename_entity("Sarah", "Sarah Connor")
        await memory.delete(ids[0], purge=True)
        assert ["Sarah Connor"] == [row.name for row in await ports.store.people.entities(Owner("default", ALICE))]
        await memory.delete(ids[1])
        await collect(ports, now=NOW + timedelta(days=1))
        assert ["Sarah Connor"] == [row.name for row in await ports.store.people.entities(Owner("default", ALICE))]
        await collect(ports, now=NOW + timedelta(days=31))
        assert [] == await ports.store.people.entities(Owner("default", ALICE))


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
async def test_nobody_is_kept_apart_from_whom_was_forgotten(kind, folder):
    async with ports_over(ram_store() if kind == "ram" else open_duckdb(folder)) as ports:
        alice = Local(ports, lambda: NOW, user_id="alice")
        for text in ("Chris likes jazz", "Christina lives in Oslo"):
            await alice.add(text)
        await alice.unmerge_entity("Chris")
        await alice.add("I met Christina at the gym")
        gone = (await alice.entity("Christina")).entity.id
        assert 1 == (await alice.forget_person(gone)).purged_count
        assert [()] == [row.apart for row in await ports.store.people.entities(Owner("default", ALICE))]
        assert [] == await traces_in(ports.store, gone)


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
async def test_an_id_in_the_metadata_of_another_keeps_no_given_name(kind, folder):
    async with ports_over(ram_store() if kind == "ram" else open_duckdb(folder)) as ports:
        alice = Local(ports, lambda: NOW, user_id="alice")
        told = (await alice.add("Sarah likes tea")).memory.id
        person = (await alice.rename_entity("Sarah", "Sarah Connor")).id
        await alice.add("the gate is blue", metadata={"entity": person})
        await alice.delete(told, purge=True)
        assert [] == await ports.store.people.entities(Owner("default", ALICE))


async def test_an_older_database_is_cleaned_of_what_was_purged_before(folder):
    path = folder / "memory.duckdb"
    opened = open_database(path, memory_limit_bytes=MEMORY_LIMIT, migrations=MIGRATIONS[:3])
    gone, named, unnamed = "g" * 26, "n" * 26, "u" * 26
    mention = Mention(named, "Sarah", Form.NAME, EntityType.PERSON, about=True)
    other = memory("it stays")
    stays = memory(
        "Sarah stays", contested_with=(gone, other.id), supersedes=(gone,), mentions=(mention,),
        judgement=Judgement("r", "because", gone), decay_rate=0.0,
    )  # fmt: skip
    ended = memory("it was replaced", superseded_by=gone, supersede_time=NOW, judgement=Judgement("r", "so", gone))
    rows = [
        Entity(named, stays.owner, NOW, Trust.HOST, name="Sarah C"),
        Entity(unnamed, stays.owner, NOW, Trust.HOST, name="Zebedee"),
        Entity("m" * 26, stays.owner, NOW, Trust.HOST, merged_into=named),
    ]
    change = ChangeSet(inserts=(Entry(stays), Entry(ended), Entry(other)), entities=tuple(rows))
    opened.connection.execute("ALTER TABLE memories ADD COLUMN traits VARCHAR")  # what is written today, as it was then
    opened.connection.begin()
    write(opened.connection, [change], 1, ())
    opened.connection.execute("ALTER TABLE memories DROP COLUMN traits")
    opened.connection.execute("INSERT INTO uses VALUES (?, ?, 1, NULL)", [gone, NOW.replace(tzinfo=None)])
    opened.connection.commit()
    opened.close()
    store = open_duckdb(folder)
    found = {e.memory.id: e.memory for e in await store.memories.entries(stays.owner, [stays.id, ended.id])}
    left = found[stays.id]
    assert ((other.id,), (), other.id, 0.0) == (
        left.contested_with, left.supersedes, left.judgement.evidence, left.decay_rate,
    )  # fmt: skip
    assert ("", "", True) == (
        found[ended.id].superseded_by, found[ended.id].judgement.evidence, found[ended.id].supersede_time == NOW,
    )  # fmt: skip
    assert {named, "m" * 26} == {row.id for row in await store.people.entities(stays.owner)}
    copy = "memory.duckdb.before-schema-4"
    assert {copy} == {place.partition(":")[0] for place in await traces_in(store, gone)}  # nothing but in the copy
    assert f"{copy}:memories.content" in await traces_in(store, "it was replaced")
    assert PURGE in await store.work.marks()
    (folder / copy).write_bytes(b"no database")
    assert [f"{copy}:unreadable"] == await traces_in(store, gone)
    (folder / copy).unlink()
    assert not await traces_in(store, gone)
    await store.close()


def test_verify_tells_a_purged_id_from_one_that_is_there_and_one_that_never_was(folder):
    with running(folder, config=CONFIG) as daemon, daemon.client() as memory:

        def ask(*words):
            done = run_command(daemon.command("verify", *words), capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr

        made, other = (memory.add(text).memory.id for text in (NEST, "my favorite color is blue"))
        code, out = ask("--forgotten", made)
        assert (1, True, True) == (
            code,
            "not purged but live" in out,
            f"memory delete --now --user alice {made}" in out,
        )
        memory.delete(made)
        code, out = ask("--forgotten", made)
        assert (1, True) == (code, "not purged but deleted, and kept until" in out)
        memory.delete(made, purge=True)
        memory.compact_store()
        code, out = ask("--forgotten", made, "--text", "favorite color")
        assert (1, True) == (code, "memories.content: the text stands there, of this memory or another" in out)
        code, out = ask("--forgotten", made)
        assert (0, True, True) == (code, "nothing is left" in out, "purged 20" in out)
        code, out = ask("--forgotten", "a" * 26)
        assert (3, True) == (code, "no memory ever had this id" in out)
        assert [0, 3] == [ask("--json", "--forgotten", one)[0] for one in (made, "a" * 26)]
        memory.delete(other)
        proof = memory.verify_forgotten(made)
        assert proof.log_start_time <= proof.seen_time <= proof.purge_time
    (folder / "memoryd.toml").write_text(CONFIG + '[audit]\npath = ""\n')
    with running(folder, config=CONFIG + '[audit]\npath = ""\n') as daemon:
        code, out = ask("--forgotten", "a" * 26)
        assert (0, True) == (code, "is not known: there is no audit log, or it is empty" in out)


async def test_a_recall_that_is_written_down_after_the_purge_leaves_no_id(folder):
    store = open_duckdb(folder)
    gone = entry("herons everywhere")
    await store.commits.write(ChangeSet(inserts=(gone,)))
    await store.commits.write(ChangeSet(purges=(gone.memory,)))
    await store.memories.note_recalls({gone.memory.owner: {gone.memory.id: (NOW, 1, NOW)}})
    assert not await traces_in(store, gone.memory.id)
    await store.close()


@pytest.mark.parametrize("first", [0, 1])
async def test_a_rival_that_was_deleted_before_forgets_the_purged_one_too(folder, first):
    store = open_duckdb(folder)
    async with ports_over(store) as ports:
        memory = Local(ports, lambda: NOW, user_id="alice")
        one = (await memory.add("My favorite color is red")).memory.id
        other = (await memory.add("My favorite color is blue")).memory.id
        await memory.restore(one)
        ids = [one, other]
        kept, gone = ids[first], ids[1 - first]
        await memory.delete(kept)
        await memory.delete(gone, purge=True)
        assert not await traces_in(store, gone)
        gc.collect()
        assert not [text for text in _held_by(ports) if gone in text]
        assert "" == (await memory.restore(kept)).superseded_by


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
async def test_a_name_is_kept_while_a_memory_shows_another_to_be_them(kind, folder):
    store = ram_store() if kind == "ram" else open_duckdb(folder)
    async with ports_over(store) as ports:
        owner = memory().owner
        named, shown = "g" * 26, "h" * 26
        mention = Mention(shown, "Sara", Form.NAME, EntityType.PERSON, about=True, same_as=named)
        alone = memory("about g", mentions=(replace(mention, entity_id=named, same_as=""),))
        both = memory("g is h", mentions=(mention,))
        rows = (Entity(named, owner, NOW, Trust.HOST, name="Sarah"),)
        await store.commits.write(ChangeSet(inserts=(Entry(alone), Entry(both)), entities=rows))
        local = Local(ports, lambda: NOW, user_id="alice")
        await local.delete(alone.id, purge=True)
        assert [named] == [row.id for row in await store.people.entities(owner)]
        await local.delete(both.id, purge=True)
        assert [] == await store.people.entities(owner)


def test_the_audit_log_calls_purged_what_was_purged_and_not_its_neighbour(folder):
    with running(folder, config=CONFIG) as daemon, daemon.client() as memory:
        one = memory.add("My favorite color is red").memory.id
        other = memory.add("My favorite color is blue").memory.id
        memory.restore(one)
        memory.delete(one, purge=True)
        assert memory.verify_forgotten(one).purge_time is not None
        assert memory.verify_forgotten(other).purge_time is None
        made = [r.memory.id for r in memory.add_batch([Draft(content=f"statement {n} of many") for n in range(100)])]
        made += [r.memory.id for r in memory.add_batch([Draft(content=f"statement {n} of more") for n in range(100)])]
        memory.delete_matching(text="statement", purge=True)
        assert all(memory.verify_forgotten(one).purge_time is not None for one in made[::40])


def test_what_a_sandbox_takes_back_with_a_purge_has_replaced_nothing(folder):
    with a_world(folder) as world:
        boxes = [world.sandbox(user_id=user, chat_ids=("team",)) for user in ("bob", "mallory")]
        with world.inside(boxes[0], chat_id="team") as bob, world.inside(boxes[1], chat_id="team") as mallory:
            said = bob.add("the deadline is Friday", shared=True, key="deadline").memory.id
            heir = mallory.add("the deadline is Monday", shared=True, key="deadline")
            assert (said,) == heir.superseded_ids
            mallory.delete(heir.memory.id, purge=True)
            left = bob.get(said)
            assert ("live", "", None) == (left.state.value, left.superseded_by, left.judgement)
            assert said == bob.search("deadline").hits[0].memory.id


@pytest.mark.parametrize("at_once", [True, False])
def test_a_chain_of_statements_that_is_purged_gives_back_what_stood_before_it(folder, at_once):
    with a_world(folder) as world:
        boxes = [world.sandbox(user_id=user, chat_ids=("team",)) for user in ("bob", "mallory")]
        with world.inside(boxes[0], chat_id="team") as bob, world.inside(boxes[1], chat_id="team") as mallory:
            said = bob.add("the deadline is Friday", shared=True, key="deadline").memory.id
            chain = [
                mallory.add(f"the deadline is {day}", shared=True, key="deadline", tags=["x"]).memory.id
                for day in ("Monday", "Tuesday")
            ]
            if at_once:
                wanted = Filter(tags=("x",), include_superseded=True)
                assert 2 == mallory.delete_matching(filter=wanted, purge=True).deleted_count
            else:
                for one in reversed(chain):
                    mallory.delete(one, purge=True)
            assert "live" == bob.get(said).state.value


def test_a_purge_gives_nothing_back_that_the_host_decided_or_that_was_said_anew(folder):
    with a_world(folder) as world:
        boxes = [world.sandbox(user_id=user, chat_ids=("team",)) for user in ("bob", "mallory")]
        with (
            world.inside(boxes[0], chat_id="team") as bob,
            world.inside(boxes[1], chat_id="team") as mallory,
            world.admin(user_id="carol", chat_id="team") as host,
        ):
            said = bob.add("the deadline is Friday", shared=True, key="deadline").memory.id
            heir = mallory.add("the deadline is Monday", shared=True, key="deadline").memory.id
            mallory.delete(heir)
            now = host.add("the deadline is Sunday", shared=True, key="deadline").memory.id
            mallory.delete(heir, purge=True)
            assert "superseded" == bob.get(said).state.value  # its key is the host's now
            assert "live" == host.get(now).state.value

            old = bob.add("the build server is Jenkins", shared=True).memory.id
            new = mallory.add("the build server is Buildkite", shared=True)
            assert old in (*new.contested_ids, *new.superseded_ids)
            host.confirm(new.memory.id)
            assert "superseded" == bob.get(old).state.value
            mallory.delete(new.memory.id, purge=True)
            assert "superseded" == bob.get(old).state.value


async def test_what_was_restored_after_its_end_names_nobody_who_replaced_it():
    now = [NOW]
    async with ports_over(ram_store()) as ports:
        memory = Local(ports, lambda: now[0], user_id="alice")
        old = (await memory.add("the code is 4711", key="code", expires_days=1)).memory
        new = (await memory.add("the code is 1234", key="code")).memory
        now[0] = NOW + timedelta(days=2)
        back = await memory.restore(old.id)
        assert ("expired", frozenset()) == (back.state.value, back.links)
        await memory.delete(new.id, purge=True)
        assert [] == await traces_in(ports.store, new.id)


async def test_a_purge_of_very_many_builds_the_index_anew():
    async with ports_over(ram_store()) as ports:
        memory = Local(ports, lambda: NOW, user_id="alice")
        for n in range(4):
            await memory.add_batch([Draft(content=f"zanzibarite number {n} {m} about X{n}{m}") for m in range(100)])
        await memory.add("an ordinary fact")
        gone = [entry.memory for entry in ports.store._state.entries.values() if "zanzibarite" in entry.memory.content]
        await ports.store.commits.write(ChangeSet(purges=tuple(gone)))
        gc.collect()
        assert not [text for text in _held_by(ports) if "zanzibarit" in text]
        assert ["an ordinary fact"] == [hit.memory.content for hit in (await memory.search("ordinary fact")).hits]


async def test_what_has_replaced_the_purged_names_it_no_more():
    async with ports_over(ram_store()) as ports:
        alice = Local(ports, lambda: NOW, user_id="alice")
        old = (await alice.add("the code is 4711", key="code")).memory.id
        new = await alice.add("the code is 1234", key="code")
        assert (old,) == new.memory.supersedes
        await alice.delete(old, purge=True)
        assert () == (await alice.get(new.memory.id)).supersedes
