"""A database is opened when it is what it was, and refused with a way out when it is not."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from memoryd.model.change import ChangeSet
from memoryd.model.grant import GrantUsage
from memoryd.model.query import Filter
from memoryd.model.scope import Scope
from memoryd.store.duckdb.checking import repair_database
from memoryd.store.duckdb.migrations import MIGRATIONS
from memoryd.store.duckdb.watermark import CommitWatermark, read_watermark
from memoryd.store.opening import StoreRefused
from tests.builders import (
    ALICE,
    MEMORY_LIMIT,
    NOW,
    entry,
    memory,
    open_database,
    open_duckdb,
    run,
    visible_to,
)

PUT = """
import asyncio, os, sys
from pathlib import Path
from memoryd.model.change import ChangeSet
from memoryd.daemon.wiring import new_id
from tests.builders import entry, memory, open_duckdb

async def work():
    store = open_duckdb(Path(sys.argv[1]))
    for n in range(int(sys.argv[2])):
        await store.commits.write(ChangeSet(inserts=(entry(memory(f"m{n}" + "x" * 2000, id=new_id())),)))
    os._exit(0)  # as kill -9: nothing is folded, nothing is closed

asyncio.run(work())
"""


def put_and_die(folder: Path, count: int) -> None:
    """Write memories in a process that dies at once, so that they are in the log alone."""
    subprocess.run([sys.executable, "-c", PUT, str(folder), str(count)], check=True)


def refused(folder: Path, tried=open_database, **more) -> str:
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in {".duckdb", ".seq"}}
    with pytest.raises(StoreRefused) as caught:
        tried(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT, **more)
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.name in before}
    assert before.keys() == after.keys()
    assert before.get("memory.duckdb.seq") == after.get("memory.duckdb.seq")
    return str(caught.value)


def contents(folder: Path) -> list[str]:
    async def work():
        store = open_duckdb(folder)
        found = await store.memories.page(visible_to(ALICE), Filter(), now=NOW, limit=1000)
        await store.close()
        return sorted(memory.content.rstrip("x") for memory in found)

    return run(work())


def test_a_store_opens_again_with_all_that_it_held(folder):
    put_and_die(folder, 5)
    assert [f"m{n}" for n in range(5)] == contents(folder) == contents(folder)
    assert not (folder / "memory.duckdb.wal.aside").exists()


def test_files_are_for_their_owner_alone(folder):
    put_and_die(folder, 1)
    contents(folder)
    for name in ("memory.duckdb", "memory.duckdb.seq", "memory.duckdb.lock"):
        assert 0o600 == stat.S_IMODE((folder / name).stat().st_mode), name


def test_a_log_that_was_emptied_is_noticed(folder):
    put_and_die(folder, 1)
    contents(folder)
    put_and_die(folder, 20)
    (folder / "memory.duckdb.wal").write_bytes(b"")
    message = refused(folder)
    assert "20 are missing" in message
    assert "--accept-loss 1" in message


def test_a_log_with_a_flipped_bit_is_noticed_and_kept_aside(folder):
    put_and_die(folder, 60)
    wal = folder / "memory.duckdb.wal"
    original = wal.read_bytes()
    broken = bytearray(original)
    broken[len(broken) // 2] ^= 1
    wal.write_bytes(broken)
    message = refused(folder)
    assert "memory.duckdb.wal.aside" in message
    assert bytes(broken) == (folder / "memory.duckdb.wal.aside").read_bytes()


def test_a_loss_is_given_up_only_by_its_number(folder):
    put_and_die(folder, 1)
    contents(folder)
    put_and_die(folder, 3)
    (folder / "memory.duckdb.wal").unlink()
    for number in (0, 3):
        assert "nothing was changed" in refused(folder, repair_database, accept_loss=number)
    repair_database(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT, accept_loss=1)
    assert ["m0"] == contents(folder)


def test_a_database_ahead_of_its_side_file_is_normal(folder):
    put_and_die(folder, 5)
    store_id, seq = read_watermark(folder / "memory.duckdb.seq")
    CommitWatermark(folder / "memory.duckdb.seq", store_id, seq - 3).close()
    assert 5 == len(contents(folder))


def test_a_missing_side_file_is_refused_until_it_is_adopted(folder):
    put_and_die(folder, 2)
    (folder / "memory.duckdb.seq").unlink()
    assert "--adopt" in refused(folder)
    repair_database(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT, adopt=True)
    assert 2 == len(contents(folder))


def test_a_damaged_side_file_is_refused_until_it_is_adopted(folder):
    put_and_die(folder, 2)
    (folder / "memory.duckdb.seq").write_bytes(b"\xff" * 64)
    assert "damaged" in refused(folder)


def test_a_torn_slot_of_the_side_file_leaves_the_other(folder):
    put_and_die(folder, 5)
    side = folder / "memory.duckdb.seq"
    raw = bytearray(side.read_bytes())
    _, seq = read_watermark(side)
    newer = next(n for n in (0, 1) if seq.to_bytes(8, "little") == raw[32 * n + 16 : 32 * n + 24])
    raw[32 * newer + 20] ^= 0xFF
    side.write_bytes(raw)
    assert seq - 1 == read_watermark(side)[1]
    assert 5 == len(contents(folder))


@pytest.mark.parametrize("left", [".wal", ".seq"])
def test_a_missing_database_beside_its_other_files_is_refused(folder, left):
    put_and_die(folder, 2)
    for path in folder.iterdir():
        if path.suffix != left:
            path.unlink()
    assert "is missing" in refused(folder)
    assert not (folder / "memory.duckdb").exists()


def test_a_first_start_that_died_at_once_starts_again(folder):
    put_and_die(folder, 0)
    for path in folder.iterdir():
        if path.suffix != ".seq":
            path.unlink()
    assert [] == contents(folder)


def test_the_side_file_of_another_database_is_refused(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    put_and_die(folder, 1)
    put_and_die(other, 1)
    shutil.copy(other / "memory.duckdb.seq", folder)
    assert "belongs to" in refused(folder)


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 999, b"SQLite format 3\0" * 256])
def test_a_foreign_file_is_refused(folder, content):
    put_and_die(folder, 1)
    contents(folder)
    (folder / "memory.duckdb").write_bytes(content)
    (folder / "memory.duckdb.wal").unlink(missing_ok=True)
    assert refused(folder)


def test_a_database_of_something_else_is_refused(folder):
    duckdb.connect(str(folder / "memory.duckdb")).execute("CREATE TABLE t (a INT)").close()
    assert "not a memoryd database" in refused(folder, repair_database, adopt=True)


def test_a_truncated_database_is_refused(folder):
    put_and_die(folder, 300)
    contents(folder)
    path = folder / "memory.duckdb"
    os.truncate(path, path.stat().st_size // 2)
    assert refused(folder)


def test_a_newer_schema_is_refused_with_the_way_out(folder):
    put_and_die(folder, 1)
    opened = open_database(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT)
    opened.connection.execute("UPDATE meta SET value = '99' WHERE name = 'schema_version'")
    opened.close()
    assert "schema 99" in refused(folder)


def test_a_second_opener_is_refused(folder):
    opened = open_database(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT)
    with pytest.raises(StoreRefused, match="another memoryd"):
        open_database(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT)
    opened.close()


def test_a_folder_that_cannot_be_written_is_refused(folder):
    (folder / "file").write_text("in the way")
    with pytest.raises(StoreRefused, match="cannot write"):
        open_database(folder / "file" / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT)


def test_a_migration_is_whole_or_not_at_all_and_keeps_a_copy(folder):
    put_and_die(folder, 3)
    path = folder / "memory.duckdb"

    def add_column(con):
        con.execute("ALTER TABLE memories ADD COLUMN mood VARCHAR")

    def fail(con):
        add_column(con)
        raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        open_database(path, memory_limit_bytes=MEMORY_LIMIT, migrations=(*MIGRATIONS, fail))
    assert 3 == len(contents(folder))
    opened = open_database(path, memory_limit_bytes=MEMORY_LIMIT, migrations=(*MIGRATIONS, add_column))
    newer = len(MIGRATIONS) + 1
    assert newer == opened.schema_version
    opened.connection.execute("SELECT mood FROM memories")
    opened.close()
    assert (folder / f"memory.duckdb.before-schema-{newer}").exists()
    assert f"schema {newer}" in refused(folder)


async def test_a_new_database_does_not_say_that_something_was_purged(folder):
    store = open_duckdb(folder)
    assert {} == await store.work.marks()
    await store.close()


async def test_what_came_through_grants_of_many_owners_outlives_a_restart(folder):
    made = [entry(memory("text", scope=Scope(f"u{n}"), grant_id=f"g{n % 5}", create_time=NOW)) for n in range(12)]
    again = [
        entry(memory("text", scope=m.scope, grant_id=m.grant_id, create_time=NOW)) for m in (e.memory for e in made)
    ]
    for stored in (made[:6], made[6:], again):
        store = open_duckdb(folder)
        await store.commits.write(*(ChangeSet(inserts=(one,)) for one in stored))
        await store.close()
    store = open_duckdb(folder)
    try:
        expected = [GrantUsage(count, count, 4 * count) for count in (6, 6, 4, 4, 4)]
        assert expected == [await store.grants.usage(f"g{n}", NOW.date()) for n in range(5)]
    finally:
        await store.close()


async def test_below_the_watermark_inserts_are_refused_and_nothing_is_lost(folder):
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    store = open_duckdb(folder)
    kept = entry("kept")
    await store.commits.write(ChangeSet(inserts=(kept,)))
    await store.close()
    store = open_duckdb(folder, min_free_bytes=free * 2)
    try:
        with pytest.raises(Exception, match="min_free_bytes"):
            await store.commits.write(ChangeSet(inserts=(entry("new"),)))
        await store.commits.write(ChangeSet(purges=(kept.memory,)))  # forgetting frees space
        assert [] == await store.memories.page(visible_to(ALICE), Filter(), now=NOW, limit=9)
    finally:
        await store.close()
