"""On a full disk all can be read, deletes work, and nothing that fails for want of space ends the daemon."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from memory_client import Unavailable

from memoryd.model.change import ChangeSet
from memoryd.store.duckdb import opening
from memoryd.store.duckdb.reserve import MOST_BYTES, Reserve
from memoryd.store.duckdb.space import FreeSpace
from memoryd.store.refusal import StoreRefused
from tests.builders import MEMORY_LIMIT, NOW, entry, open_database, open_duckdb, run
from tests.conformance.store_helpers import grant
from tests.small_disk import SCENARIOS


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
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 0 == tried.returncode, tried.stderr


async def copy_of_a_store_that_was_killed(folder: Path) -> Path:
    store = open_duckdb(folder, min_free_bytes=64 << 20)
    await store.commits.write(ChangeSet(inserts=(entry("kept"),)))
    for suffix in ("", ".wal", ".seq", ".reserve"):
        shutil.copy(folder / f"memory.duckdb{suffix}", folder / f"copy.duckdb{suffix}")
    await store.close()
    return folder / "copy.duckdb"


def without_space(monkeypatch) -> None:
    def copyfile(source, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", copyfile)


def test_a_log_is_replayed_on_a_full_disk_and_the_reserve_stays(folder, monkeypatch):
    copy = run(copy_of_a_store_that_was_killed(folder))
    without_space(monkeypatch)
    opened = open_database(copy, memory_limit_bytes=MEMORY_LIMIT)
    assert 1 == opened.commit_seq
    assert copy.with_name("copy.duckdb.reserve").exists()
    opened.close()


def test_a_log_that_is_replayed_in_vain_on_a_full_disk_is_left_as_it_was(folder, monkeypatch):
    copy = run(copy_of_a_store_that_was_killed(folder))
    log = copy.with_name("copy.duckdb.wal")
    cut = log.read_bytes()[:-40]
    log.write_bytes(cut)
    without_space(monkeypatch)
    with pytest.raises(StoreRefused, match="1 was acknowledged"):
        open_database(copy, memory_limit_bytes=MEMORY_LIMIT)
    assert cut == log.read_bytes()


def test_a_log_too_large_to_be_held_takes_the_reserve(folder, monkeypatch):
    copy = run(copy_of_a_store_that_was_killed(folder))
    monkeypatch.setattr(opening, "MOST_HELD_BYTES", 10)
    without_space(monkeypatch)
    with pytest.raises(StoreRefused, match="aside before replaying it: No space left"):
        open_database(copy, memory_limit_bytes=MEMORY_LIMIT)
    assert not copy.with_name("copy.duckdb.reserve").exists()


async def test_what_upkeep_writes_does_not_use_the_reserve_up(folder, monkeypatch):
    store = open_duckdb(folder, min_free_bytes=64 << 20)
    reserve = folder / "memory.duckdb.reserve"
    monkeypatch.setattr(FreeSpace, "bytes", 0)
    with pytest.raises(Unavailable, match="min_free_bytes"):
        await store.commits.write(ChangeSet(marks={"clock seen": NOW}))
    assert reserve.exists()
    await store.close()
