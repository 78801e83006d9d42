"""A damaged file is told as what it is, with the way out; on a full disk deletes still work."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from memory_client import Draft, MemorydError, NotFound, StoreDamaged, Unavailable

from memoryd.model.change import ChangeSet
from memoryd.store.duckdb.damage import damage_of
from memoryd.store.duckdb.reserve import MOST_BYTES, Reserve
from memoryd.store.duckdb.space import FreeSpace
from tests.builders import MEMORY_LIMIT, NOW, entry, open_database, open_duckdb, run
from tests.conformance.store_helpers import grant
from tests.support import PATIENCE_S, Daemon, short_folder

CONFIG = '[embedding]\nprovider = "none"\n[memory]\nauto_gc = false\n'
HEADERS = 3 * 4096  # of a DuckDB file, before its first block
BLOCK = 256 * 1024
FIGURES = '"count(*)"'


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A database of several blocks, folded in."""
    folder = tmp_path_factory.mktemp("whole")

    async def fill():
        store = open_duckdb(folder)
        for n in range(10):
            texts = (f"statement {n * 200 + m} says {os.urandom(60).hex()}" for m in range(200))
            await store.commits.write(ChangeSet(inserts=tuple(map(entry, texts))))
        await store.close()

    run(fill())
    return folder


def blocks(database: Path) -> range:
    return range((database.stat().st_size - HEADERS) // BLOCK)


def spoilt(whole: Path, folder: Path, block: int) -> Path:
    """Copy the database and turn over some bits of one block."""
    for file in whole.glob("memory.duckdb*"):
        shutil.copy(file, folder)
    with (folder / "memory.duckdb").open("r+b") as file:
        file.seek(HEADERS + block * BLOCK + 1000)
        was = file.read(64)
        file.seek(HEADERS + block * BLOCK + 1000)
        file.write(bytes(byte ^ 0x5A for byte in was))
    return folder / "memory.duckdb"


def check(folder: Path) -> tuple[int, str]:
    with short_folder() as short:
        command = [sys.executable, "-m", "memoryd", "check", "--data-dir", str(folder), "--socket", str(short / "s")]
        env = {"PATH": os.environ["PATH"], "HOME": str(folder), "MEMORYD_EMBEDDING_PROVIDER": "none"}
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
        return done.returncode, done.stderr


def test_every_damaged_block_is_told_as_damage(whole, folder):
    """Whichever block it is: the daemon refuses to start, or serves what it can, and its status says so."""
    refused = served = 0
    for block in blocks(whole / "memory.duckdb"):
        place = folder / str(block)
        place.mkdir()
        database = spoilt(whole, place, block)
        code, said = check(place)
        if code == 0:
            continue  # a block that is free
        assert (78, True, True) == (code, f"{database} is damaged" in said, "put back the last good copy" in said)
        daemon = Daemon(place, config=CONFIG)
        try:
            daemon.start()
        except AssertionError:
            refused += 1
            assert 78 == daemon.process.returncode
            assert f"{database} is damaged" in daemon.log.read_text()
            continue
        served += 1
        with daemon.client(timeout_s=PATIENCE_S) as memory:
            failed = []
            for call in (lambda: list(memory.pages()), lambda: memory.search("statement 7"), memory.stats):
                try:
                    call()
                except MemorydError as error:
                    failed.append(error)
            assert all(isinstance(error, StoreDamaged) for error in failed), failed
            assert all("memoryd status" in error.message and str(place) not in error.message for error in failed)
            if failed:
                assert any(f"{database} is damaged" in warning for warning in memory.server_info().warnings)
        daemon.kill()
    assert refused
    assert served


def test_a_write_that_meets_damage_ends_the_daemon_for_good(whole, folder):
    """A restart would not help, so the exit code says so to systemd."""
    codes = set()
    for block in blocks(whole / "memory.duckdb"):
        place = folder / str(block)
        place.mkdir()
        spoilt(whole, place, block)
        daemon = Daemon(place, config=CONFIG)
        try:
            daemon.start()
        except AssertionError:
            assert "is damaged" in daemon.log.read_text()
            continue
        with daemon.client("bob", timeout_s=PATIENCE_S, wait_for_ready=False) as memory:
            try:
                memory.add("one more")
            except StoreDamaged:
                codes.add("refused")
                daemon.kill()
            except MemorydError:
                codes.add(daemon.process.wait(20))
                assert "is damaged" in daemon.log.read_text()
            else:
                daemon.kill()
    assert codes <= {"refused", 78}
    assert 78 in codes


def test_a_whole_database_passes(whole):
    assert (0, "") == check(whole)


# --- a full disk ---


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


def fill(path: Path) -> None:
    """Write until there is no room."""
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * (1 << 20)):
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


IN_A_SMALL_DISK = """
mount -t tmpfs -o size=96m none "$1" || exit 99
exec "$2" -m memoryd serve --data-dir "$1" --socket "$3" --config "$4"
"""


def test_a_really_full_disk_takes_deletes_and_nothing_more(folder):
    probe = subprocess.run(
        ["unshare", "-Urm", "mount", "-t", "tmpfs", "none", str(folder)], capture_output=True, check=False
    )
    if probe.returncode:
        pytest.skip("needs mount and user namespaces")
    disk = folder / "disk"
    disk.mkdir()
    config = folder / "memoryd.toml"
    config.write_text(CONFIG + "[store]\nmin_free_bytes = 33554432\n")
    daemon = Daemon(folder)
    script = ["unshare", "-Urm", "sh", "-c", IN_A_SMALL_DISK, "sh", disk, sys.executable, daemon.socket, config]
    daemon.spawn = lambda: _spawned(daemon, list(map(str, script)))
    daemon.start()
    try:
        with daemon.client(timeout_s=PATIENCE_S) as memory:
            ids = [r.memory.id for r in memory.add_batch([Draft(content=f"statement {n}") for n in range(60)])]
            inside = Path(f"/proc/{daemon.process.pid}/root{disk}")
            fill(inside / "filler")
            with pytest.raises(Unavailable, match="min_free_bytes"):
                memory.add("one more")
            for one in ids[:20]:
                memory.delete(one)
            for one in ids[20:30]:
                memory.delete(one, purge=True)
            assert 30 == memory.delete_matching(text="statement").deleted_count
            assert () == memory.page().memories
            with pytest.raises(NotFound):
                memory.get(ids[25])
            (inside / "filler").unlink()
            assert memory.add("there is room again").memory
        assert 0 == daemon.stop()
        lines = [json.loads(line) for line in daemon.log.read_text().splitlines() if line.startswith("{")]
        assert not [line for line in lines if line.get("event") in {"database_failed", "index_dropped"}]
    finally:
        if daemon.process.poll() is None:
            daemon.kill()


def _spawned(daemon: Daemon, command: list[str]) -> subprocess.Popen[bytes]:
    with daemon.log.open("ab") as log:
        daemon.process = subprocess.Popen(command, stdout=log, stderr=log, env=daemon.env)
    return daemon.process


def test_a_log_is_replayed_though_the_disk_is_full_but_for_the_reserve(folder, monkeypatch):
    async def fill():
        store = open_duckdb(folder, min_free_bytes=64 << 20)
        await store.commits.write(ChangeSet(inserts=(entry("kept"),)))
        return store

    store = run(fill())
    for suffix in ("", ".wal", ".seq", ".reserve"):
        shutil.copy(folder / f"memory.duckdb{suffix}", folder / f"copy.duckdb{suffix}")
    run(store.close())
    real, reserve = shutil.copyfile, folder / "copy.duckdb.reserve"

    def copyfile(source, target):
        if reserve.exists():
            raise OSError(28, "No space left on device")
        return real(source, target)

    monkeypatch.setattr(shutil, "copyfile", copyfile)
    opened = open_database(folder / "copy.duckdb", memory_limit_bytes=MEMORY_LIMIT)
    assert 1 == opened.commit_seq
    assert not reserve.exists()
    opened.close()


async def test_what_upkeep_writes_does_not_use_the_reserve_up(folder, monkeypatch):
    store = open_duckdb(folder, min_free_bytes=64 << 20)
    reserve = folder / "memory.duckdb.reserve"
    monkeypatch.setattr(FreeSpace, "bytes", 0)
    with pytest.raises(Unavailable, match="min_free_bytes"):
        await store.commits.write(ChangeSet(marks={"clock seen": NOW}))
    assert reserve.exists()
    await store.close()


@pytest.mark.parametrize(
    ("error", "is_damage"),
    [
        (duckdb.Error("Corrupt database file: computed checksum 1 does not match stored checksum 2"), True),
        (duckdb.FatalException("FATAL\nOriginal Error: Data Corruption Error: Corrupt database file: x"), True),
        (duckdb.IOException('IO Error: Could not write file "/srv/checksums/m.wal": No space left on device'), False),
        (duckdb.ConstraintException("Duplicate key 'the checksum file' violates corrupt constraint"), False),
        (duckdb.ConversionException("Could not convert string 'corrupt' to INT32"), False),
        (ValueError("corrupt"), False),
    ],
)
def test_damage_is_told_from_what_only_speaks_of_it(error, is_damage):
    assert is_damage is bool(damage_of(Path("/x/memory.duckdb"), error))
