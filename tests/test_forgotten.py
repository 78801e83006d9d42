"""What is purged leaves nothing: in the tables, in the indexes, and after a compaction in the bytes of the files."""

from __future__ import annotations

import asyncio
import gc
import itertools
import random
import subprocess
import sys
import threading
import time
import types
from array import array
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from memory_client import Draft, Filter, MemorydError, Unavailable

from memoryd.daemon.config import Config, MemoryConfig
from memoryd.domain.forgetting.collect import collect
from memoryd.knowledge.claims.statement import Statement
from memoryd.knowledge.language.stems import stem
from memoryd.model.change import PURGE, ChangeSet, Entry
from memoryd.model.entity import Entity, EntityType, Form, Mention
from memoryd.model.memory import Judgement, Memory
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
    open_duckdb,
    open_store,
    ports_over,
    ram_store,
    run,
)
from tests.doors import a_world
from tests.support import Daemon, running

CONFIG = '[embedding]\nprovider = "none"\n[memory]\nauto_gc = false\n'
NEST = "the blue heron nests behind the third lighthouse"


def raw(daemon: Daemon) -> bytes:
    return b"".join(path.read_bytes() for path in daemon.folder.glob("memory.duckdb*") if path.is_file())


def test_after_a_purge_and_a_compaction_no_byte_is_left(folder):
    with running(folder, config=CONFIG) as daemon, daemon.client() as memory:
        made = memory.add(NEST, subjects=["Zebedee Quillfeather"], tags=["ornithology"]).memory
        kept = memory.add("an ordinary fact that stays").memory
        memory.search("heron")
        assert any("memories.content" == trace.place for trace in memory.verify_forgotten(made.id, text="heron").traces)
        memory.delete(made.id, purge=True)
        traces = memory.verify_forgotten(made.id, text="heron nests").traces
        assert {"database"} <= {trace.place for trace in traces} <= {"database", "memory.duckdb", "memory.duckdb.wal"}
        done = memory.compact_store()
        assert done.pause.total_seconds() > 0
        proof = memory.verify_forgotten(made.id, text="heron nests")
        assert ((), True) == (proof.traces, proof.byte_count > 0)
        for word in (b"heron", b"Quillfeather", b"ornithology", made.id.encode()):
            assert word not in raw(daemon)
        assert [kept.id] == [m.id for m in memory.page().memories]
        memory.add("writes go on after it")
    with running(folder, config=CONFIG) as daemon, daemon.client() as memory:
        assert {"an ordinary fact that stays", "writes go on after it"} == {m.content for m in memory.page().memories}


def test_the_command_says_what_is_left_by_its_exit_code(folder):
    with running(folder, config=CONFIG) as daemon, daemon.client() as memory:
        made = memory.add(NEST).memory
        memory.delete(made.id, purge=True)

        def ask(*words):
            done = subprocess.run(daemon.command(*words), capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr

        code, out = ask("verify", "--forgotten", made.id)
        assert (1, True) == (code, "run: memoryd compact" in out)
        assert 0 == ask("compact")[0]
        code, out = ask("verify", "--forgotten", made.id, "--text", "heron nests")
        assert (0, True) == (code, "nothing is left" in out)
        assert 2 == ask("verify", "--forgotten", "short")[0]


def test_calls_go_on_while_the_database_is_written_anew(folder):
    with running(folder, config=CONFIG) as daemon, daemon.client(timeout_s=30) as memory:
        for n in range(20):
            memory.add_batch([Draft(content=f"number{n}x{m} of topic{n}y{m}") for m in range(100)])
        added: list[str] = []
        found: list[int] = []
        stop = threading.Event()

        def write():
            with daemon.client(timeout_s=30) as mine:
                while not stop.is_set():
                    added.append(mine.add(f"meanwhile{len(added)} about something{len(added)}").memory.id)

        def read():
            with daemon.client(timeout_s=30) as mine:
                while not stop.is_set():
                    found.append(len(mine.page(page_size=50).memories))

        threads = [threading.Thread(target=work) for work in (write, read)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            memory.compact_store()
        stop.set()
        for thread in threads:
            thread.join()
        assert added
        assert {50} == set(found)
        ids = {m.id for m in memory.pages(page_size=1000)}
        assert ids.issuperset(added)
        assert 2000 + len(added) == len(ids)


@pytest.mark.parametrize("seed", range(4))
def test_killed_while_it_compacts_it_loses_nothing(folder, seed):
    dice = random.Random(seed)
    daemon = Daemon(folder, config=CONFIG)
    daemon.start()
    with daemon.client(timeout_s=30) as memory:
        ids = {r.memory.id for r in memory.add_batch([Draft(content=f"number{n} of topic{n}") for n in range(100)])}

        def compact():
            try:
                with daemon.client(timeout_s=30, wait_for_ready=False) as mine:
                    for _ in range(20):
                        mine.compact_store()
            except MemorydError:
                return

        thread = threading.Thread(target=compact)
        thread.start()
        end = time.monotonic() + dice.uniform(0.05, 0.8)
        n = 0
        while time.monotonic() < end:
            ids.add(memory.add(f"meanwhile{n} about something{n}").memory.id)
            n += 1
        daemon.kill()
        thread.join()
    daemon.start()
    with daemon.client() as memory:
        assert ids <= {m.id for m in memory.pages(page_size=1000)}
        memory.compact_store()
        assert not list(folder.glob("*.compact*"))
    daemon.stop()


def test_what_is_purged_during_the_copy_is_not_in_the_new_file(folder):
    async def rule():
        store = open_duckdb(folder)
        gone, kept = entry("herons everywhere"), entry("an ordinary fact")
        await store.commit(ChangeSet(inserts=(gone, kept)))
        copies = []
        copy = store._compactor._copy

        def purging_copy():
            seq = copy()
            copies.append(seq)
            if len(copies) == 1:
                asyncio.run_coroutine_threadsafe(store.commit(ChangeSet(purges=(gone.memory,))), loop).result()
            return seq

        loop = asyncio.get_running_loop()
        store._compactor._copy = purging_copy
        await store.compact()
        assert 2 == len(copies)
        assert b"herons" not in (folder / "memory.duckdb").read_bytes()
        assert [kept.memory.id] == [
            e.memory.id for e in await store.entries(kept.memory.owner, [gone.memory.id, kept.memory.id])
        ]
        await store.close()

    run(rule())


def test_one_compaction_at_a_time_and_none_without_room(folder):
    async def rule():
        store = open_duckdb(folder)
        await store.commit(ChangeSet(inserts=tuple(entry(f"number{n}") for n in range(500))))
        first, second = await asyncio.gather(store.compact(), store.compact(), return_exceptions=True)
        assert isinstance(second, Unavailable)
        assert first.after_bytes > 0
        store._compactor._min_free = 1 << 60
        with pytest.raises(Unavailable, match="free space"):
            await store.compact()
        await store.close()

    run(rule())


def test_nothing_that_was_read_of_a_purged_memory_is_kept():
    async def rule():
        async with ports_over(ram_store()) as ports:
            memory = Local(ports, lambda: NOW, user_id="alice")
            made = (await memory.add(NEST)).memory
            await memory.add("the blue heron nests elsewhere")
            assert (await memory.search("heron")).hits
            await memory.delete(made.id, purge=True)
            del made

    run(rule())
    gc.collect()
    kept = [thing for thing in gc.get_objects() if isinstance(thing, Memory | Statement)]
    assert not [thing for thing in kept if NEST in (thing.content if isinstance(thing, Memory) else thing.text)]


def _held_by(*roots) -> Iterator[str]:
    """Every text that can be reached from some objects, and from the modules of memoryd."""
    modules = [vars(module) for name, module in list(sys.modules.items()) if name.split(".")[0] == "memoryd"]
    pending, seen = [*roots, *modules], {}  # what was seen is kept, so that no id is given again
    while pending:
        one = pending.pop()
        if id(one) in seen or isinstance(one, types.ModuleType | types.CodeType | types.FrameType):
            continue
        seen[id(one)] = one
        if isinstance(one, str):
            yield one
        elif isinstance(one, types.FunctionType):
            pending.extend([one.__closure__, one.__defaults__])  # not the module that it is of
        elif isinstance(one, bytes | bytearray | array):
            yield bytes(one).decode("latin-1")
        else:
            pending.extend(one if isinstance(one, dict) else ())  # the collector passes over keys that are texts
            pending.extend(gc.get_referents(one))


SECRET_WORDS = ("Quillfeather", "zanzibarite", "ornithologizing", "featherweightish", "Longbeak", "nestbox")
WAYS = {
    "by its id": lambda memory, ids: [memory.delete(one, purge=True) for one in ids],
    "by a filter": lambda memory, _: [memory.delete_matching(text="zanzibarite", purge=True)],
    "as a person": lambda memory, _: [memory.forget_person("Zebedee Longbeak")],
}


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
@pytest.mark.parametrize("way", WAYS)
def test_nothing_in_memory_names_what_was_purged(folder, kind, way):
    async def rule():
        clock = itertools.count()
        store = ram_store() if kind == "ram" else open_duckdb(folder)
        async with ports_over(store, Config(memory=MemoryConfig(max_entries=40))) as ports:
            memory = Local(ports, lambda: NOW + timedelta(seconds=next(clock)), user_id="alice")
            for n in range(30):
                await memory.add(f"an ordinary fact, number {n}, that stays")
            said = [
                "Zebedee Quillfeather lives in zanzibarite Paris",
                "Zebedee Quillfeather lives in zanzibarite Rome",
                "Zebedee Quillfeather has moved to zanzibarite Oslo",
                "Zebedee Quillfeather is ornithologizing with his zanzibarite nestbox",
            ]
            ids = []
            for n, text in enumerate(said):
                made = await memory.add(
                    text,
                    subjects=["Zebedee Quillfeather"],
                    tags=["featherweightish"],
                    metadata={"k": "zanzibarite"},
                    key="nestbox" if n == 3 else "",
                )
                ids.append(made.memory.id)
            person = (await memory.rename_entity("Zebedee Quillfeather", "Zebedee Longbeak")).id
            await memory.delete(ids[3])
            await memory.restore(ids[3])
            await memory.confirm(ids[3])
            for n in range(12):  # more than there is room for, so that some are chosen to go
                await memory.add(f"another ordinary fact, number {n + 100}, that stays")
            assert (await memory.search("where is Zebedee Quillfeather ornithologizing? zanzibarite")).hits
            assert (await memory.history(ids[0])).memories
            needles = [*SECRET_WORDS, *stem([word.lower() for word in SECRET_WORDS]), *ids, person]
            for doing in WAYS[way](memory, ids):
                await doing
            del made
            assert not await store.traces("Longbeak")
            assert not await store.traces("Quillfeather")
            assert [None] * len(ids) == [await store.locate(one) for one in ids]
            gc.collect()
            assert (0, 1) == (ports.indexes.faults, ports.indexes.scopes)
            kept = list(_held_by(ports))
            assert any("ordinary" in text for text in kept)  # the walk reaches what is there
            assert not {text[:80] for text in kept for needle in needles if needle in text or needle.lower() in text}
            found = await memory.search("ordinary fact number 7")
            assert "an ordinary fact, number 7, that stays" == found.hits[0].memory.content
            for stayed in (await memory.page(page_size=100)).memories:
                assert not {*stayed.contested_with, *stayed.supersedes, stayed.superseded_by} & {*ids}

    run(rule())


def test_those_that_stay_forget_what_they_were_linked_to():
    async def rule():
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

    run(rule())


def test_a_name_given_by_hand_goes_with_the_last_memory_that_names_them():
    async def rule():
        async with ports_over(ram_store()) as ports:
            memory = Local(ports, lambda: NOW, user_id="alice")
            ids = [(await memory.add(text)).memory.id for text in ("Sarah likes tea", "Sarah lives in Rome")]
            await memory.rename_entity("Sarah", "Sarah Connor")
            await memory.delete(ids[0], purge=True)
            assert ["Sarah Connor"] == [row.name for row in await ports.store.entities(Owner("default", ALICE))]
            await memory.delete(ids[1])
            await collect(ports, now=NOW + timedelta(days=1))
            assert ["Sarah Connor"] == [row.name for row in await ports.store.entities(Owner("default", ALICE))]
            await collect(ports, now=NOW + timedelta(days=31))
            assert [] == await ports.store.entities(Owner("default", ALICE))

    run(rule())


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
def test_nobody_is_kept_apart_from_whom_was_forgotten(kind, folder):
    async def rule():
        async with ports_over(ram_store() if kind == "ram" else open_duckdb(folder)) as ports:
            alice = Local(ports, lambda: NOW, user_id="alice")
            for text in ("Chris likes jazz", "Christina lives in Oslo"):
                await alice.add(text)
            await alice.unmerge_entity("Chris")
            await alice.add("I met Christina at the gym")
            gone = (await alice.entity("Christina")).entity.id
            assert 1 == (await alice.forget_person(gone)).purged_count
            assert [()] == [row.apart for row in await ports.store.entities(Owner("default", ALICE))]
            assert [] == await ports.store.traces(gone)

    run(rule())


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
def test_an_id_in_the_metadata_of_another_keeps_no_given_name(kind, folder):
    async def rule():
        async with ports_over(ram_store() if kind == "ram" else open_duckdb(folder)) as ports:
            alice = Local(ports, lambda: NOW, user_id="alice")
            told = (await alice.add("Sarah likes tea")).memory.id
            person = (await alice.rename_entity("Sarah", "Sarah Connor")).id
            await alice.add("the gate is blue", metadata={"entity": person})
            await alice.delete(told, purge=True)
            assert [] == await ports.store.entities(Owner("default", ALICE))

    run(rule())


def test_an_older_database_is_cleaned_of_what_was_purged_before(folder):
    path = folder / "memory.duckdb"
    opened = open_store(path, memory_limit_bytes=MEMORY_LIMIT, migrations=MIGRATIONS[:3])
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
    opened.connection.begin()
    write(opened.connection, [change], 1)
    opened.connection.execute("INSERT INTO uses VALUES (?, ?, 1, NULL)", [gone, NOW.replace(tzinfo=None)])
    opened.connection.commit()
    opened.close()

    async def rule():
        store = open_duckdb(folder)
        found = {e.memory.id: e.memory for e in await store.entries(stays.owner, [stays.id, ended.id])}
        left = found[stays.id]
        assert ((other.id,), (), other.id, 0.0) == (
            left.contested_with, left.supersedes, left.judgement.evidence, left.decay_rate,
        )  # fmt: skip
        assert ("", "", True) == (
            found[ended.id].superseded_by, found[ended.id].judgement.evidence, found[ended.id].supersede_time == NOW,
        )  # fmt: skip
        assert {named, "m" * 26} == {row.id for row in await store.entities(stays.owner)}
        copy = "memory.duckdb.before-schema-4"
        assert {copy} == {place.partition(":")[0] for place in await store.traces(gone)}  # nothing but in the copy
        assert f"{copy}:memories.content" in await store.traces("it was replaced")
        assert PURGE in await store.jobs()
        (folder / copy).write_bytes(b"no database")
        assert [f"{copy}:unreadable"] == await store.traces(gone)
        (folder / copy).unlink()
        assert not await store.traces(gone)
        await store.close()

    run(rule())


def test_verify_tells_a_purged_id_from_one_that_is_there_and_one_that_never_was(folder):
    with running(folder, config=CONFIG) as daemon, daemon.client() as memory:

        def ask(*words):
            done = subprocess.run(daemon.command("verify", *words), capture_output=True, text=True, check=False)
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
        memory.delete(other)
        proof = memory.verify_forgotten(made)
        assert proof.log_start_time <= proof.seen_time <= proof.purge_time
    (folder / "memoryd.toml").write_text(CONFIG + '[audit]\npath = ""\n')
    with running(folder, config=CONFIG + '[audit]\npath = ""\n') as daemon:
        code, out = ask("--forgotten", "a" * 26)
        assert (0, True) == (code, "is not known: there is no audit log" in out)


def test_a_recall_that_is_written_down_after_the_purge_leaves_no_id(folder):
    async def rule():
        store = open_duckdb(folder)
        gone = entry("herons everywhere")
        await store.commit(ChangeSet(inserts=(gone,)))
        await store.commit(ChangeSet(purges=(gone.memory,)))
        await store.note_recalls({gone.memory.owner: {gone.memory.id: (NOW, 1, NOW)}})
        assert not await store.traces(gone.memory.id)
        await store.close()

    run(rule())


@pytest.mark.parametrize("first", [0, 1])
def test_a_rival_that_was_deleted_before_forgets_the_purged_one_too(folder, first):
    async def rule():
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
            assert not await store.traces(gone)
            gc.collect()
            assert not [text for text in _held_by(ports) if gone in text]
            assert "" == (await memory.restore(kept)).superseded_by

    run(rule())


def test_a_name_is_kept_while_a_memory_shows_another_to_be_them(folder):
    async def rule(store):
        async with ports_over(store) as ports:
            owner = memory().owner
            named, shown = "g" * 26, "h" * 26
            mention = Mention(shown, "Sara", Form.NAME, EntityType.PERSON, about=True, same_as=named)
            alone = memory("about g", mentions=(replace(mention, entity_id=named, same_as=""),))
            both = memory("g is h", mentions=(mention,))
            rows = (Entity(named, owner, NOW, Trust.HOST, name="Sarah"),)
            await store.commit(ChangeSet(inserts=(Entry(alone), Entry(both)), entities=rows))
            local = Local(ports, lambda: NOW, user_id="alice")
            await local.delete(alone.id, purge=True)
            assert [named] == [row.id for row in await store.entities(owner)]
            await local.delete(both.id, purge=True)
            assert [] == await store.entities(owner)

    run(rule(ram_store()))
    run(rule(open_duckdb(folder)))


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


def test_what_was_restored_after_its_end_names_nobody_who_replaced_it():
    async def rule():
        now = [NOW]
        async with ports_over(ram_store()) as ports:
            memory = Local(ports, lambda: now[0], user_id="alice")
            old = (await memory.add("the code is 4711", key="code", expires_days=1)).memory
            new = (await memory.add("the code is 1234", key="code")).memory
            now[0] = NOW + timedelta(days=2)
            back = await memory.restore(old.id)
            assert ("expired", frozenset()) == (back.state.value, back.links)
            await memory.delete(new.id, purge=True)
            assert [] == await ports.store.traces(new.id)

    run(rule())


def test_a_purge_of_very_many_builds_the_index_anew():
    async def rule():
        async with ports_over(ram_store()) as ports:
            memory = Local(ports, lambda: NOW, user_id="alice")
            for n in range(4):
                await memory.add_batch([Draft(content=f"zanzibarite number {n} {m} about X{n}{m}") for m in range(100)])
            await memory.add("an ordinary fact")
            gone = [entry.memory for entry in ports.store._entries.values() if "zanzibarite" in entry.memory.content]
            await ports.store.commit(ChangeSet(purges=tuple(gone)))
            gc.collect()
            assert not [text for text in _held_by(ports) if "zanzibarit" in text]
            assert ["an ordinary fact"] == [hit.memory.content for hit in (await memory.search("ordinary fact")).hits]

    run(rule())


def test_what_has_replaced_the_purged_names_it_no_more():
    async def rule():
        async with ports_over(ram_store()) as ports:
            alice = Local(ports, lambda: NOW, user_id="alice")
            old = (await alice.add("the code is 4711", key="code")).memory.id
            new = await alice.add("the code is 1234", key="code")
            assert (old,) == new.memory.supersedes
            await alice.delete(old, purge=True)
            assert () == (await alice.get(new.memory.id)).supersedes

    run(rule())
