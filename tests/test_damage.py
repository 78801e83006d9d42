"""A damaged file is told as what it is, with the way out; on a full disk deletes still work."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import duckdb
import pytest
from memory_client import MemorydError, StoreDamaged

from memoryd.model.change import ChangeSet
from memoryd.store.duckdb import damage, files
from memoryd.store.duckdb.damage import damage_of
from tests.builders import entry, open_duckdb, run
from tests.forking import run_command
from tests.support import PATIENCE_S, Daemon, short_folder

CONFIG = '[embedding]\nprovider = "none"\n[memory]\nauto_gc = false\n'
HEADERS = 3 * 4096  # of a DuckDB file, before its first block
BLOCK = 256 * 1024
FIGURES = '"count(*)"'


@pytest.fixture(scope="module", params=["v1.5.0", files.STORAGE_VERSION])
def whole(tmp_path_factory, request) -> Path:
    """A database of several blocks, folded in; also as an earlier memoryd has made it."""
    folder = tmp_path_factory.mktemp(f"whole-{request.param}-")

    async def fill():
        store = open_duckdb(folder)
        for n in range(10):
            texts = (f"statement {n * 200 + m} says {os.urandom(60).hex()}" for m in range(200))
            await store.commits.write(ChangeSet(inserts=tuple(map(entry, texts))))
        await store.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "STORAGE_VERSION", request.param)
        run(fill())
    return folder


def blocks(whole: Path) -> range:
    """Return the blocks of a database; of one that an earlier memoryd has made every third, the first among them."""
    step = 1 if files.STORAGE_VERSION in whole.name else 3
    return range(0, ((whole / "memory.duckdb").stat().st_size - HEADERS) // BLOCK, step)


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
        done = run_command(command, capture_output=True, text=True, env=env, check=False)
        return done.returncode, done.stderr


def test_every_damaged_block_is_told_as_damage(whole, folder):
    """Whichever block it is: the daemon refuses to start, or serves what it can, and its status says so."""
    refused = served = 0
    for block in blocks(whole):
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


def test_a_write_that_meets_damage_is_refused_or_ends_the_daemon_for_good(whole, folder):
    """Where the engine is dead a restart would not help, so the exit code says so to systemd."""
    codes = set()
    for block in blocks(whole):
        place = folder / str(block)
        place.mkdir()
        spoilt(whole, place, block)
        daemon = Daemon(place, config=CONFIG)
        try:
            daemon.start()
        except AssertionError:
            assert "is damaged" in daemon.log.read_text()
            continue
        with daemon.client(timeout_s=PATIENCE_S, wait_for_ready=False) as memory:
            try:
                memory.add("one more")
                memory.delete(next(memory.pages()).id, purge=True)
            except StoreDamaged:
                codes.add("refused")
                daemon.kill()
            except MemorydError:
                codes.add(daemon.process.wait(20))
                assert "is damaged" in daemon.log.read_text()
            else:
                daemon.kill()
    assert codes
    assert codes <= {"refused", 78}
    with duckdb.connect(str(whole / "memory.duckdb"), read_only=True) as con:
        tags = con.execute("SELECT tags FROM duckdb_databases() WHERE NOT internal").fetchall()[0][0]
    if tags["storage_version"].startswith("v1.5"):
        assert 78 in codes


def test_a_whole_database_passes(whole):
    assert (0, "") == check(whole)


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


def test_rows_that_are_too_long_to_be_read_at_once_are_read_a_few_at_a_time(tmp_path):
    with duckdb.connect(str(tmp_path / "x"), config={"memory_limit": "128MB", "threads": 1}) as con:
        for table in ("t", "more"):
            con.execute(f"CREATE TABLE {table} (number BIGINT, details VARCHAR)")
        for n in range(150):
            con.execute("INSERT INTO t VALUES (?, ?)", [n, os.urandom(400_000).hex()])
        con.execute("INSERT INTO more SELECT range, range::VARCHAR FROM range(100000)")
        con.execute("CHECKPOINT")
        with pytest.raises(duckdb.OutOfMemoryException):
            con.execute("SELECT bit_xor(hash(COLUMNS(*))) FROM t").fetchall()
        damage.read_everything(con, threads=2)
    with (tmp_path / "x").open("r+b") as file:
        for place in range(HEADERS + BLOCK, (tmp_path / "x").stat().st_size, 10 * BLOCK):
            file.seek(place + 5000)
            file.write(b"damage")
    with duckdb.connect(str(tmp_path / "x"), read_only=True, config={"memory_limit": "128MB", "threads": 1}) as con:
        with pytest.raises(duckdb.Error) as refused:
            damage.read_everything(con, threads=2)
        assert damage_of(tmp_path / "x", refused.value)
