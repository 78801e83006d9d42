"""What is purged leaves nothing: in the tables, in the indexes, and after a compaction in the bytes of the files."""

from __future__ import annotations

import asyncio
import gc
import itertools
import random
import threading
import time
from datetime import timedelta

import duckdb
import pytest
from memory_client import Draft, LimitExceeded, MemorydError, Unavailable

from memoryd.daemon.config import Config, MemoryConfig
from memoryd.domain.forgetting.verify import compact, verify_forgotten
from memoryd.knowledge.lexicon.spelling import stem
from memoryd.knowledge.statement.reader import Statement
from memoryd.model.change import ChangeSet
from memoryd.model.memory import Memory
from memoryd.store.duckdb.compactor import Compactor
from tests.builders import (
    NOW,
    Local,
    entry,
    located,
    open_duckdb,
    ports_over,
    ram_store,
    run,
    traces_in,
)
from tests.forgotten_helpers import CONFIG, NEST, _held_by
from tests.forking import run_command
from tests.support import PATIENCE_S, Daemon, running


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


def test_a_compaction_makes_the_files_smaller(folder):
    with running(folder, config=CONFIG) as daemon, daemon.client() as memory:
        memory.add_batch([Draft(content=f"statement {n} about tea") for n in range(60)])
        full = memory.compact_store().after_bytes
        memory.forget_user()
        empty = memory.compact_store().after_bytes
        assert empty < full
        for _ in range(2):  # tables that have not changed are not written twice
            assert memory.compact_store().after_bytes <= empty


def test_the_command_says_what_is_left_by_its_exit_code(folder):
    with running(folder, config=CONFIG) as daemon, daemon.client() as memory:
        made = memory.add(NEST).memory
        memory.delete(made.id, purge=True)

        def ask(*words):
            done = run_command(daemon.command(*words), capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr

        code, out = ask("verify", "--forgotten", made.id)
        assert (1, True) == (code, "run: memoryd compact" in out)
        assert 0 == ask("compact")[0]
        code, out = ask("verify", "--forgotten", made.id, "--text", "heron nests")
        assert (0, True) == (code, "nothing is left" in out)
        assert 2 == ask("verify", "--forgotten", "short")[0]
        code, out = ask("verify", "--forgotten", "a" * 26)
        assert (3, True, False) == (code, "the id is not known; read" in out, "is left" in out or "are left" in out)


def test_calls_go_on_while_the_database_is_written_anew(folder):
    with running(folder, config=CONFIG) as daemon, daemon.client(timeout_s=PATIENCE_S) as memory:
        for n in range(20):
            memory.add_batch([Draft(content=f"number{n}x{m} of topic{n}y{m}") for m in range(100)])
        added: list[str] = []
        found: list[int] = []
        stop = threading.Event()

        def write():
            with daemon.client(timeout_s=PATIENCE_S) as mine:
                while not stop.is_set():
                    added.append(mine.add(f"meanwhile{len(added)} about something{len(added)}").memory.id)

        def read():
            with daemon.client(timeout_s=PATIENCE_S) as mine:
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
    with daemon.client(timeout_s=PATIENCE_S) as memory:
        ids = {r.memory.id for r in memory.add_batch([Draft(content=f"number{n} of topic{n}") for n in range(100)])}

        def compact():
            try:
                with daemon.client(timeout_s=PATIENCE_S, wait_for_ready=False) as mine:
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


async def test_what_is_purged_during_the_copy_is_not_in_the_new_file(folder):
    store = open_duckdb(folder)
    gone, kept = entry("herons everywhere"), entry("an ordinary fact")
    await store.commits.write(ChangeSet(inserts=(gone, kept)))
    copies = []
    copy = store.files._compactor._copy

    def purging_copy():
        seq = copy()
        copies.append(seq)
        if len(copies) == 1:
            asyncio.run_coroutine_threadsafe(store.commits.write(ChangeSet(purges=(gone.memory,))), loop).result()
        return seq

    loop = asyncio.get_running_loop()
    store.files._compactor._copy = purging_copy
    await store.files.compact()
    assert 2 == len(copies)
    assert b"herons" not in (folder / "memory.duckdb").read_bytes()
    assert [kept.memory.id] == [
        e.memory.id for e in await store.memories.entries(kept.memory.owner, [gone.memory.id, kept.memory.id])
    ]
    await store.close()


async def test_where_purges_do_not_end_what_was_purged_before_is_gone_all_the_same(folder):
    store = open_duckdb(folder)
    async with ports_over(store) as ports:
        me = Local(ports, lambda: NOW, user_id="alice")
        await me.delete((await me.add("the blue herons nest here")).memory.id, purge=True)
        kept = [(await me.add(f"note {n} of the day about {NEST}")).memory.id for n in range(6)]
        copy, loop, ids = store.files._compactor._copy, asyncio.get_running_loop(), iter(kept)

        def overtaken():
            seq = copy()
            asyncio.run_coroutine_threadsafe(me.delete(next(ids), purge=True), loop).result()
            return seq

        store.files._compactor._copy = overtaken
        done = await compact(ports, now=NOW)
        assert done.purged_meanwhile
        assert b"herons" not in (folder / "memory.duckdb").read_bytes()
        assert kept[5:] == [memory.id for memory in (await me.page()).memories]
        proof = await verify_forgotten(kept[4], "", ports)
        assert ["database"] == [trace.place for trace in proof.traces if "since the last compaction" in trace.detail]
        store.files._compactor._copy = copy
        assert not (await compact(ports, now=NOW)).purged_meanwhile
        assert () == (await verify_forgotten(kept[4], "", ports)).traces


async def test_what_goes_from_a_small_table_while_the_copy_is_made_leaves_no_byte(folder, monkeypatch):
    store = open_duckdb(folder)
    values = ", ".join(
        f"('e{n}', 'a', 'u', NULL, '{name}', now()::TIMESTAMP)" for n, name in enumerate(["Quillfeather", "", ""])
    )
    columns = "(id, agent_id, user_id, chat_id, details, create_time)"
    await store._writer.run(lambda con: con.execute(f"INSERT INTO entities {columns} VALUES {values}"))  # noqa: S608
    real, loop, copies = Compactor._copy, asyncio.get_running_loop(), []

    def copy_and_erase(self):
        copies.append(real(self))
        erasing = store._writer.run(lambda con: con.execute("DELETE FROM entities WHERE id = 'e0'"))
        asyncio.run_coroutine_threadsafe(erasing, loop).result()
        return copies[-1]

    monkeypatch.setattr(Compactor, "_copy", copy_and_erase)
    await store.files.compact()
    assert copies
    await store.close()
    assert b"Quillfeather" not in (folder / "memory.duckdb").read_bytes()


async def test_a_copy_that_a_purge_has_overtaken_is_made_again(folder, monkeypatch):
    store = open_duckdb(folder, ledger=folder / "ledger")
    await store.commits.write(ChangeSet(inserts=(entry("kept"),)))
    real, loop, copies = Compactor._copy, asyncio.get_running_loop(), []

    async def store_and_purge():
        one = entry("here and gone")
        await store.commits.write(ChangeSet(inserts=(one,)))
        await store.commits.write(ChangeSet(purges=(one.memory,)))

    def copy_and_purge(self):
        copies.append(real(self))
        if len(copies) < 3:
            asyncio.run_coroutine_threadsafe(store_and_purge(), loop).result()
        return copies[-1]

    monkeypatch.setattr(Compactor, "_copy", copy_and_purge)
    await store.files.compact()
    assert 3 == len(copies)
    await store.close()


async def test_rows_that_are_too_long_to_be_copied_at_once_are_copied_with_more_memory(folder):
    async with ports_over(open_duckdb(folder)) as ports:
        memory = Local(ports, lambda: NOW, user_id="alice")
        await memory.add("I like tea")
        files, writer = ports.store.files, ports.store._writer
        long = "SELECT string_agg(md5((i * 1000 + j)::VARCHAR), '') FROM range({}) t(j)"
        for n in range(1, 2_400, 300):
            again = (
                f"m.* REPLACE (m.id || i AS id, ({long.format(900)}) AS terms, ({long.format(300)}) AS content,"
                f" ({long.format(1000)})::BLOB AS token_vectors, ({long.format(300)}) AS facets)"
            )
            source = f"memories m, range({n}, {n + 300}) r(i) WHERE length(m.id) = 26"
            rows = f"INSERT INTO memories SELECT {again} FROM {source}"  # noqa: S608
            await writer.run(lambda con, rows=rows: con.execute(rows))
        with pytest.raises(LimitExceeded):
            await ports.store._readers.read(files._compactor._copy)
        await files.compact()
        limit = await writer.run(lambda con: con.execute("SELECT current_setting('memory_limit')").fetchall())
        assert [("256.0 MiB",)] == limit
        assert [(2401,)] == await writer.run(lambda con: con.execute("SELECT count(*) FROM memories").fetchall())


async def test_memory_that_cannot_be_given_back_keeps_no_later_compaction_from_its_turn(folder, monkeypatch):
    store = open_duckdb(folder)

    def too_long(_: Compactor) -> None:
        raise LimitExceeded("the call needs more memory")

    async def set_memory(_: Compactor, times: int) -> None:
        if times == 1:
            raise LimitExceeded("it is in use")

    with monkeypatch.context() as patch:
        patch.setattr(Compactor, "_copy", too_long)
        patch.setattr(Compactor, "_set_memory", set_memory)
        with pytest.raises(LimitExceeded, match="it is in use"):
            await store.files.compact()
    await store.files.compact()
    await store.close()


async def test_one_compaction_at_a_time_and_none_without_room(folder):
    store = open_duckdb(folder)
    await store.commits.write(ChangeSet(inserts=tuple(entry(f"number{n}") for n in range(500))))
    first, second = await asyncio.gather(store.files.compact(), store.files.compact(), return_exceptions=True)
    assert isinstance(second, Unavailable)
    assert first.after_bytes > 0
    store.files._writer.space.min_free_bytes = 1 << 60
    with pytest.raises(Unavailable, match="free space"):
        await store.files.compact()
    await store.close()


def test_nothing_that_was_read_of_a_purged_memory_is_kept():
    async def add_and_purge():
        async with ports_over(ram_store()) as ports:
            memory = Local(ports, lambda: NOW, user_id="alice")
            made = (await memory.add(NEST)).memory
            await memory.add("the blue heron nests elsewhere")
            assert (await memory.search("heron")).hits
            await memory.delete(made.id, purge=True)
            del made

    run(add_and_purge())
    gc.collect()
    kept = [thing for thing in gc.get_objects() if isinstance(thing, Memory | Statement)]
    assert not [thing for thing in kept if NEST in (thing.content if isinstance(thing, Memory) else thing.text)]


SECRET_WORDS = ("Quillfeather", "zanzibarite", "ornithologizing", "featherweightish", "Longbeak", "nestbox")
WAYS = {
    "by its id": lambda memory, ids: [memory.delete(one, purge=True) for one in ids],
    "by a filter": lambda memory, _: [memory.delete_matching(text="zanzibarite", purge=True)],
    "as a person": lambda memory, _: [memory.forget_person("Zebedee Longbeak")],
}


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
@pytest.mark.parametrize("way", WAYS)
async def test_nothing_in_memory_names_what_was_purged(folder, kind, way):
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
        assert not await traces_in(store, "Longbeak")
        assert not await traces_in(store, "Quillfeather")
        assert [None] * len(ids) == [await located(store, one) for one in ids]
        gc.collect()
        assert (0, 1) == (ports.indexes.faults, ports.indexes.scopes)
        kept = list(_held_by(ports))
        assert any("ordinary" in text for text in kept)  # the walk reaches what is there
        assert not {text[:80] for text in kept for needle in needles if needle in text or needle.lower() in text}
        found = await memory.search("ordinary fact number 7")
        assert "an ordinary fact, number 7, that stays" == found.hits[0].memory.content
        for stayed in (await memory.page(page_size=100)).memories:
            assert not {*stayed.contested_with, *stayed.supersedes, stayed.superseded_by} & {*ids}


async def test_rows_that_were_purged_leave_the_file_with_the_next_checkpoints(folder):
    store = open_duckdb(folder)
    held = []
    for n in range(12):
        new = tuple(entry(f"statement {n} {m}") for m in range(100))
        await store.commits.write(ChangeSet(inserts=new, purges=tuple(one.memory for one in held)))
        held = new
        await store._writer.run(lambda _: store._writer._fold())
    await store.close()
    with duckdb.connect(str(folder / "memory.duckdb"), read_only=True) as con:
        segments = "pragma_storage_info('memories') WHERE column_id = 0 AND segment_type != 'VALIDITY'"
        rows = con.execute(f"SELECT sum(count) FROM {segments}").fetchall()[0][0]  # noqa: S608
    assert rows <= 200, "those of the last round, and of the one before"
