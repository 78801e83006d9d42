"""On a full disk all can be read, deletes work, and nothing that fails for want of space ends the daemon."""

from __future__ import annotations

import errno
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import duckdb
import pytest
from memory_client import Unavailable

from memoryd.model.change import PURGE, ChangeSet, ConversationChange, Tombstone
from memoryd.store.duckdb import compactor
from memoryd.store.duckdb.files import log_size
from memoryd.store.duckdb.migrations import MIGRATIONS
from memoryd.store.duckdb.reserve import MOST_BYTES, Reserve
from memoryd.store.duckdb.space import LEAST_FREE_BYTES, FreeSpace, needed_bytes
from memoryd.store.duckdb.watermark import CommitWatermark
from memoryd.store.refusal import StoreRefused
from tests.builders import MEMORY_LIMIT, NOW, entry, memory, open_database, open_duckdb, run
from tests.conformance.store_helpers import grant
from tests.forking import run_command
from tests.small_disk import SCENARIOS

ALICE_S = memory().owner


async def test_deletes_work_where_there_is_only_the_reserve(folder, monkeypatch):
    free = {"bytes": 1 << 40}
    store = open_duckdb(folder, min_free_bytes=64 << 20)
    reserve = folder / "memory.duckdb.reserve"
    assert 4 << 20 == reserve.stat().st_size
    monkeypatch.setattr(FreeSpace, "bytes", property(lambda _: free["bytes"] + (0 if reserve.exists() else 4 << 20)))
    kept, gone = entry("kept"), entry("gone")
    await store.commits.write(ChangeSet(inserts=(kept, gone)))
    free["bytes"] = 0
    with pytest.raises(Unavailable, match="min_free_bytes"):
        await store.commits.write(ChangeSet(inserts=(entry("one more"),)))
    assert reserve.exists()
    with pytest.raises(Unavailable, match="min_free_bytes"):
        await store.commits.write(ChangeSet(grants=(grant(),)))
    await store.commits.write(ChangeSet(grants=(grant(revoke_time=NOW),)))
    assert [NOW] == [one.revoke_time for one in await store.grants.all()]
    await store.commits.write(ChangeSet(purges=(gone.memory,)))
    assert not reserve.exists()
    assert [kept.memory.id] == [
        e.memory.id for e in await store.memories.entries(kept.memory.owner, [kept.memory.id, gone.memory.id])
    ]
    free["bytes"] = -(4 << 20)
    with pytest.raises(Unavailable, match="free some space"):
        await store.commits.write(ChangeSet(purges=(kept.memory,)))
    assert reserve not in store.files.paths()
    await store.close()


def test_the_reserve_is_taken_only_where_there_is_room(folder):
    path = folder / "r"
    reserve = Reserve(path, 512 << 20)
    reserve.take(512 << 20)
    assert not path.exists()
    reserve.take(1 << 30)
    assert (MOST_BYTES, True) == (path.stat().st_size, path.stat().st_blocks * 512 >= MOST_BYTES)
    reserve.release()
    reserve.release()
    assert not path.exists()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_disk_that_is_really_full(folder, scenario):
    """See `tests/small_disk.py`."""
    apart, disk = ["unshare", "-Urm"], folder / "disk"
    disk.mkdir()
    probe = subprocess.run([*apart, "mount", "-t", "tmpfs", "none", str(disk)], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("needs mount and user namespaces")
    command = [*apart, sys.executable, "-m", "tests.small_disk", scenario, str(disk)]
    tried = run_command(command, capture_output=True, text=True, check=False)
    assert 0 == tried.returncode, tried.stderr


async def copy_of_a_store_that_was_killed(folder: Path) -> Path:
    store = open_duckdb(folder, min_free_bytes=64 << 20)
    await store.commits.write(ChangeSet(inserts=(entry("kept"),)))
    for suffix in ("", ".wal", ".seq", ".reserve"):
        shutil.copy(folder / f"memory.duckdb{suffix}", folder / f"copy.duckdb{suffix}")
    await store.close()
    return folder / "copy.duckdb"


def without_space(monkeypatch) -> None:
    def copyfileobj(source, target, length=0):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", copyfileobj)


def test_a_log_is_replayed_on_a_full_disk_and_the_reserve_stays(folder, monkeypatch):
    copy = run(copy_of_a_store_that_was_killed(folder))
    without_space(monkeypatch)
    opened = open_database(copy, memory_limit_bytes=MEMORY_LIMIT)
    assert 1 == opened.commit_seq
    assert copy.with_name("copy.duckdb.reserve").exists()
    opened.close()


def a_cut_log(copy: Path, monkeypatch) -> dict:
    log = copy.with_name("copy.duckdb.wal")
    log.write_bytes(log.read_bytes()[:-40])
    return {"match": "1 was acknowledged: 1 are missing. Restore a backup, or"}


def a_side_file_of_another_database(copy: Path, monkeypatch) -> dict:
    CommitWatermark(copy.with_name("copy.duckdb.seq"), UUID(int=7), 1).close()
    return {"match": "belongs to 00000000-0000-0000-0000-000000000007"}


def an_older_memoryd(copy: Path, monkeypatch) -> dict:
    return {"match": "Install the newer memoryd again", "migrations": MIGRATIONS[:-1]}


def a_migration_without_room(copy: Path, monkeypatch) -> dict:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    return {"match": "Nothing was changed", "migrations": (*MIGRATIONS, lambda _: None)}


@pytest.mark.parametrize(
    "cause", [a_cut_log, a_side_file_of_another_database, an_older_memoryd, a_migration_without_room]
)
def test_a_start_that_is_refused_on_a_full_disk_changes_nothing(folder, monkeypatch, cause):
    copy = run(copy_of_a_store_that_was_killed(folder))
    whole = {path: path.read_bytes() for path in folder.glob("copy.duckdb*")}
    with monkeypatch.context() as full:
        without_space(full)
        wanted = cause(copy, full)
        match = wanted.pop("match")
        found = {path: path.read_bytes() for path in folder.glob("copy.duckdb*")}
        for _ in range(2):
            with pytest.raises(StoreRefused, match=match):
                open_database(copy, memory_limit_bytes=MEMORY_LIMIT, **wanted)
        left = {path: path.read_bytes() for path in folder.glob("copy.duckdb*") if path.suffix != ".lock"}
        assert left == found
    for path, data in whole.items():
        path.write_bytes(data)
    opened = open_database(copy, memory_limit_bytes=MEMORY_LIMIT)
    assert [(1,)] == opened.connection.execute("SELECT count(*) FROM memories").fetchall()
    opened.close()


def test_all_that_erases_goes_on_down_to_the_last_space():
    mib, talk = 1 << 20, ConversationChange(ALICE_S, purge_all=True)
    least = LEAST_FREE_BYTES
    for change in (
        ChangeSet(purge_owner=ALICE_S, conversation=talk, marks={PURGE: NOW}),
        ChangeSet(tombstones=(Tombstone(ALICE_S, b"digest"),)),
        ChangeSet(updates=(entry("a name less"),), marks={PURGE: NOW}),
        ChangeSet(purges=(memory("gone"),)),
    ):
        assert least == needed_bytes([[change]], 256 * mib), change
    assert 64 * mib == needed_bytes([[ChangeSet(updates=(entry("changed"),))]], 256 * mib)
    assert 256 * mib == needed_bytes([[ChangeSet(inserts=(entry("new"),), marks={PURGE: NOW})]], 256 * mib)


async def test_what_upkeep_writes_does_not_use_the_reserve_up(folder, monkeypatch):
    store = open_duckdb(folder, min_free_bytes=64 << 20)
    reserve = folder / "memory.duckdb.reserve"
    monkeypatch.setattr(FreeSpace, "bytes", 0)
    with pytest.raises(Unavailable, match="min_free_bytes"):
        await store.commits.write(ChangeSet(marks={"clock seen": NOW}))
    assert reserve.exists()
    await store.close()


async def test_a_compaction_that_runs_out_of_space_at_its_end_leaves_the_database_as_it_was(folder, monkeypatch):
    store = open_duckdb(folder)
    await store.commits.write(ChangeSet(inserts=(entry("kept"),)))
    before = (folder / "memory.duckdb").stat().st_ino

    def full(*_: object, **more: object) -> None:
        raise duckdb.IOException("IO Error: Could not write file: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(compactor, "catch_up", full)
        with pytest.raises(Unavailable, match="could not be written"):
            await store.files.compact()
    with monkeypatch.context() as patch:
        patch.setattr(store._writer.checkpoints, "has_room", lambda: False)
        with pytest.raises(Unavailable, match="too little space to fold the log in"):
            await store.files.compact()
    assert [] == list(folder.glob("*.compact"))
    await store.commits.write(ChangeSet(inserts=(entry("one more"),)))
    await store.files.compact()
    assert before != (folder / "memory.duckdb").stat().st_ino
    await store.close()


async def test_after_a_copy_that_could_not_be_folded_in_the_log_is(folder):
    store = open_duckdb(folder)
    for n in range(4):
        await store.commits.write(ChangeSet(inserts=tuple(entry(f"{n} {m} " + "x" * 2000) for m in range(500))))
        await store._writer.run(lambda _: store._writer._fold())
    await store.commits.write(ChangeSet(inserts=(entry("one more"),)))
    file = folder / "memory.duckdb"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size // 3, limits[1]))
    try:
        with pytest.raises(Unavailable, match="the copy could not be written"):
            await store.files.compact()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [] == list(folder.glob("*.compact*"))
    await store._writer.run(lambda _: store._writer._fold())
    assert 0 == log_size(file)
    await store.files.compact()
    await store.close()
