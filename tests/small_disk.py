"""
What is tried on a file system that is really full: `unshare -Urm python -m tests.small_disk SCENARIO FOLDER`.

It mounts a file system in memory on the folder, in name spaces of its own; AssertionError where a promise is broken.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from memory_client import Draft, MemorydError, MessageDraft, NotFound, Unavailable

from memoryd.store.duckdb import opening
from memoryd.store.duckdb.migrations import MIGRATIONS, long_texts
from memoryd.store.refusal import StoreRefused
from tests.builders import MEMORY_LIMIT, NOW, open_database
from tests.support import PATIENCE_S, Daemon

MIB = 1 << 20
CONFIG = """[embedding]
provider = "none"
[memory]
auto_gc = false
[schedule]
compaction = ""
[store]
min_free_bytes = {}
"""

STARTED: list[Daemon] = []


def fill(path: Path) -> None:
    """Write until there is no room."""
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * MIB):
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


def free_bytes(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize


def daemon_on(disk: Path, min_free_mib: int) -> Daemon:
    place = disk / "d"
    place.mkdir()
    daemon = Daemon(place, config=CONFIG.format(min_free_mib * MIB))
    daemon.log = disk.parent / "log"  # on another disk
    STARTED.append(daemon)
    daemon.start()
    return daemon


def deletes(disk: Path) -> None:
    """A full disk takes deletes and nothing more, and all is as before once there is room."""
    daemon = daemon_on(disk, 32)
    with daemon.client(timeout_s=PATIENCE_S) as memory:
        ids = [r.memory.id for r in memory.add_batch([Draft(content=f"statement {n}") for n in range(60)])]
        fill(disk / "filler")
        with pytest.raises(Unavailable, match="min_free_bytes"):
            memory.add("one more")
        assert any("0 MiB free" in warning for warning in memory.server_info().warnings)
        for one in ids[:20]:
            memory.delete(one)
        for one in ids[20:30]:
            memory.delete(one, purge=True)
        assert 30 == memory.delete_matching(text="statement").deleted_count
        assert () == memory.page().memories
        with pytest.raises(NotFound):
            memory.get(ids[25])
        (disk / "filler").unlink()
        assert memory.add("there is room again").memory
        assert not memory.server_info().warnings
    assert 0 == daemon.stop()
    assert_no_fault(daemon)


def killed(disk: Path) -> None:
    """A daemon that was killed starts on a full disk, also where there is no room for a copy of its log."""
    daemon = daemon_on(disk, 32)
    with daemon.client(timeout_s=PATIENCE_S) as memory:
        ids = []
        for n in range(20):
            drafts = [Draft(content=f"statement {n} {k} " + "x" * 500) for k in range(100)]
            ids += [result.memory.id for result in memory.add_batch(drafts)]
        log = daemon.folder / "memory.duckdb.wal"
        assert log.stat().st_size > MIB
        fill(disk / "filler")
    daemon.kill()
    fill(disk / "filler2")
    assert free_bytes(disk) < log.stat().st_size
    daemon.start()
    with daemon.client(timeout_s=PATIENCE_S) as memory:
        assert memory.search("statement 3").hits
        memory.delete(ids[5])
        memory.delete(ids[6], purge=True)
        with pytest.raises(Unavailable, match="min_free_bytes"):
            memory.append("t", [MessageDraft(content="hello")])
    daemon.kill()
    daemon.start()
    with daemon.client(timeout_s=PATIENCE_S) as memory:
        for gone in ids[5:7]:
            with pytest.raises(NotFound):
                memory.get(gone)
        assert len(ids) - 2 == sum(1 for _ in memory.pages(page_size=1000))
    assert 0 == daemon.stop()


def compaction(disk: Path) -> None:
    """A compaction for which there is no room, or that runs out of it, leaves the database as it was, and served."""
    daemon = daemon_on(disk, 4)
    with daemon.client(timeout_s=PATIENCE_S) as memory:
        for n in range(50):
            memory.add_batch([Draft(content=f"statement {n} {k} {os.urandom(600).hex()}") for k in range(100)])
    daemon.stop()
    daemon.start()
    size = daemon.database.stat().st_size
    refused = done = 0
    with daemon.client(timeout_s=PATIENCE_S) as memory:
        for left_mib in [0.3, 1.5, 2.5]:
            left = int(left_mib * size) + 4 * MIB
            with (disk / "filler").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, max(free_bytes(disk) - left, 1))
            for wait_s in (None, 0.1, 0.2):  # the rest of the disk is filled while it runs
                filling = threading.Timer(wait_s or 0, lambda: fill(disk / "more"))
                if wait_s:
                    filling.start()
                try:
                    memory.compact_store()
                    done += 1
                except Unavailable:
                    refused += 1
                if wait_s:
                    filling.join()
                    (disk / "more").unlink()
                assert daemon.process.poll() is None
                assert not (daemon.folder / "memory.duckdb.compact").exists()
                held = [os.readlink(path) for path in Path(f"/proc/{daemon.process.pid}/fd").iterdir()]
                assert not [path for path in held if "compact" in path and path.endswith("(deleted)")]
                assert memory.search("statement 7").hits
                memory.delete(memory.page(page_size=1).memories[0].id)
            (disk / "filler").unlink()
            time.sleep(0.05)
        assert 5_000 - 9 == sum(1 for _ in memory.pages(page_size=1000))
    assert refused
    assert done
    assert 0 == daemon.stop()
    assert_no_fault(daemon)


def migration(disk: Path) -> None:
    """A migration that finds too little room says so, leaves all as it was, and succeeds once there is room."""
    path, last = disk / "memory.duckdb", MIGRATIONS.index(long_texts)
    old = open_database(path, memory_limit_bytes=MEMORY_LIMIT, migrations=MIGRATIONS[:last])
    columns = (
        "number, thread, agent_id, thread_id, id, seq, content, details, metadata, create_time, grant_id, text_bytes"
    )
    for n in range(15):
        metadata = base64.b64encode(random.Random(n).randbytes(750_000)).decode()
        values = [
            n,
            1,
            "default",
            "t",
            f"m{n}",
            n,
            "hello",
            '{"role": "user", "trust": "host"}',
            metadata,
            NOW,
            "",
            10**6,
        ]
        marks = ", ".join("?" * len(values))
        old.connection.execute(f"INSERT INTO messages ({columns}, terms, commit_seq) VALUES ({marks}, '', 1)", values)  # noqa: S608
    old.close()
    size, copy = path.stat().st_size, disk / f"memory.duckdb.before-schema-{last + 1}"
    filler = disk / "filler"
    for times, left, told in (
        (opening.WRITES_ANEW, size // 2, "cannot keep a copy"),
        (1, size * 5 // 4, "disk of .* is full"),
    ):
        opening.WRITES_ANEW = times
        filler.write_bytes(b"\0" * (free_bytes(disk) - left))
        with pytest.raises(StoreRefused, match=told):
            open_database(path, memory_limit_bytes=MEMORY_LIMIT)
        assert not copy.exists()
        filler.unlink()
    old = open_database(path, memory_limit_bytes=MEMORY_LIMIT, migrations=MIGRATIONS[:last])
    assert [(15, 15 * 10**6)] == old.connection.execute(
        "SELECT count(*), sum(strlen(metadata)) FROM messages"
    ).fetchall()
    old.close()
    new = open_database(path, memory_limit_bytes=MEMORY_LIMIT)
    assert [(15 * 10**6,)] == new.connection.execute("SELECT sum(strlen(text)) FROM long_texts").fetchall()
    new.close()
    assert copy.exists()


def assert_no_fault(daemon: Daemon) -> None:
    lines = [json.loads(line) for line in daemon.log.read_text().splitlines() if line.startswith("{")]
    assert not [line for line in lines if line.get("event") in {"database_failed", "index_dropped"}]


SCENARIOS = {scenario.__name__: scenario for scenario in (deletes, killed, compaction, migration)}


def main(name: str, folder: str) -> None:
    """Mount and try."""
    disk = Path(folder)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "none", str(disk)], check=True)
    try:
        SCENARIOS[name](disk)
    except MemorydError as error:
        print((disk.parent / "log").read_text()[-4000:], file=sys.stderr)
        raise AssertionError(f"{type(error).__name__}: {error}") from error
    finally:
        for daemon in STARTED:
            if daemon.process is not None and daemon.process.poll() is None:
                daemon.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])
