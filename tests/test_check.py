"""`memoryd check` reads all of a database and changes nothing, unless it is told to."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.cli import packages
from memoryd.store.duckdb.migrations import MIGRATIONS
from memoryd.store.duckdb.watermark import read_watermark
from memoryd.store.ledger import KEY, LINES, PurgeLedger, PurgeMark
from memoryd.store.opening import StoreInUse, StoreOptions, StoreRefused, check_store, migrate_store, repair_store
from tests.builders import MEMORY_LIMIT, open_database
from tests.forking import run_command
from tests.support import PATIENCE_S
from tests.test_opening import contents, put_and_die

LATEST = len(MIGRATIONS)


def options(folder: Path) -> StoreOptions:
    return StoreOptions(folder / "memory.duckdb", MEMORY_LIMIT)


def all_of(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Return the digest, the mode and the time of change of every file, and those of the folder."""
    files = {str(path.relative_to(folder)): path for path in [folder, *folder.rglob("*")]}
    return {
        name: (hashlib.sha256(path.read_bytes() if path.is_file() else b"").hexdigest(), stat.st_mode, stat.st_mtime_ns)
        for name, path in files.items()
        for stat in [path.stat()]
    }


def check(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "memoryd",
        "check",
        "--data-dir",
        str(folder),
        "--socket",
        str(folder / "s"),
        *words,
    ]
    env = {**os.environ, "MEMORYD_EMBEDDING_PROVIDER": "none"}
    return run_command(command, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def test_a_whole_database_with_a_log_is_read_and_not_changed(folder):
    put_and_die(folder, 20)
    assert (folder / "memory.duckdb.wal").stat().st_size > 1000
    before = all_of(folder)
    checked = check_store(options(folder))
    assert (20, LATEST, LATEST, False) == (
        checked.commit_seq, checked.schema_version, checked.latest_schema_version, checked.migrates
    )  # fmt: skip
    assert before == all_of(folder)
    assert 20 == len(contents(folder))


@pytest.mark.parametrize("schema", range(1, LATEST))
def test_an_older_schema_is_told_and_not_migrated(folder, schema):
    open_database(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT, migrations=MIGRATIONS[:schema]).close()
    before = all_of(folder)
    checked = check_store(options(folder))
    assert (schema, LATEST, True) == (checked.schema_version, checked.latest_schema_version, checked.migrates)
    assert before == all_of(folder)
    migrated = migrate_store(options(folder), random_bytes=os.urandom)
    assert (LATEST, False) == (migrated.schema_version, migrated.migrates)
    assert (folder / f"memory.duckdb.before-schema-{schema + 1}").exists()
    assert not list(folder.glob("*.part"))


def test_the_command_says_what_a_start_would_do_and_does_it_only_when_told(folder):
    open_database(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT, migrations=MIGRATIONS[:5]).close()
    before = all_of(folder)
    done = check(folder)
    assert 0 == done.returncode, done.stderr
    assert f"schema 5, which this memoryd would migrate to {LATEST} at the start" in done.stdout
    told = json.loads(check(folder, "--json").stdout)
    assert {"schema_version": 5, "latest_schema_version": LATEST, "migrates": True}.items() <= told["store"].items()
    assert before == all_of(folder)
    done = check(folder, "--migrate")
    assert (0, True) == (done.returncode, "schema" not in done.stdout.rsplit("database ", 1)[-1])
    assert (folder / "memory.duckdb.before-schema-6").exists()
    assert 2 == check(folder, "--migrate", "--adopt").returncode


def test_a_repair_writes_the_side_file_and_nothing_else(folder):
    open_database(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT, migrations=MIGRATIONS[:5]).close()
    store_id, seq = read_watermark(folder / "memory.duckdb.seq")
    (folder / "memory.duckdb.seq").unlink()
    before = all_of(folder)
    with pytest.raises(StoreRefused, match="--adopt"):
        check_store(options(folder))
    assert before == all_of(folder)
    assert 5 == repair_store(options(folder), adopt=True).schema_version
    assert (store_id, seq) == read_watermark(folder / "memory.duckdb.seq")
    after = {name: known for name, known in all_of(folder).items() if name not in {".", "memory.duckdb.seq"}}
    assert {name: known for name, known in before.items() if name != "."} == after


def test_a_log_that_was_cut_is_refused_and_left_as_it_is(folder):
    put_and_die(folder, 9)
    log = folder / "memory.duckdb.wal"
    log.write_bytes(log.read_bytes()[:-40])
    before = all_of(folder)
    with pytest.raises(StoreRefused, match="--accept-loss 8"):
        check_store(options(folder))
    assert before == all_of(folder)
    assert 8 == repair_store(options(folder), accept_loss=8).commit_seq
    assert 8 == len(contents(folder))


def test_a_store_that_was_never_begun_is_made_at_the_first_start(folder):
    before = all_of(folder)
    assert (0, 0) == (check_store(options(folder)).schema_version, check_store(options(folder)).commit_seq)
    assert before == all_of(folder)
    with pytest.raises(StoreRefused, match="nothing to repair"):
        repair_store(options(folder), adopt=True)


def test_a_database_that_is_served_is_not_looked_at(folder):
    opened = open_database(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT)
    try:
        with pytest.raises(StoreInUse):
            check_store(options(folder))
    finally:
        opened.close()


AS_READER = """
import os, sys
from pathlib import Path
from memoryd.store.duckdb import check_database
from memoryd.store.opening import StoreOptions, check_store
os.setgid(65534); os.setuid(65534)
folder = Path(sys.argv[1])
try:
    (folder / "new").touch()
except PermissionError:
    print(check_store(StoreOptions(folder / "memory.duckdb", 1 << 28)).commit_seq)
"""


def test_a_folder_that_cannot_be_written_is_read(folder):
    if os.getuid():
        pytest.skip("needs root, to become another user")
    put_and_die(folder, 7)
    for path in [*folder.iterdir(), folder]:
        os.chown(path, 65534, 65534)
        path.chmod(0o500 if path.is_dir() else 0o400)
    for above in folder.parents[:-1]:
        above.chmod(above.stat().st_mode | 0o011)
    before = all_of(folder)
    command = [sys.executable, "-c", AS_READER, str(folder)]
    done = run_command(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert ("7\n", 0) == (done.stdout, done.returncode), done.stderr
    assert before == all_of(folder)


def test_packages_other_than_those_of_the_lock_are_named(monkeypatch):
    assert [] == packages.differing_packages()
    real = packages.version

    def other(name):
        return "0.0.1" if name == "duckdb" else real(name)

    monkeypatch.setattr(packages, "version", other)
    assert ["duckdb 0.0.1 (tested with 2.0.0)"] == [str(difference) for difference in packages.differing_packages()]


def test_migrating_what_needs_nothing_changes_nothing(folder):
    assert 0 == migrate_store(options(folder), random_bytes=os.urandom).schema_version
    assert [] == list(folder.iterdir())
    put_and_die(folder, 3)
    before = all_of(folder)
    assert 3 == migrate_store(options(folder), random_bytes=os.urandom).commit_seq
    assert before == all_of(folder)


def test_a_ledger_that_a_start_would_refuse_is_told(folder):
    put_and_die(folder, 3)
    store_id = check_store(options(folder)).store_id
    PurgeLedger(folder / "ledger", store_id, PurgeMark(), random_bytes=os.urandom).close()
    assert 0 == check(folder).returncode
    key, lines = folder / "ledger" / KEY, folder / "ledger" / LINES
    right, whole = key.read_text(), lines.read_bytes()
    lines.write_bytes(whole + b'{"purge":1,"ti')  # a line was torn when the daemon was killed: the start cuts it off
    assert 0 == check(folder).returncode
    lines.write_bytes(whole)
    key.write_text(f"{os.urandom(32).hex()}\n")
    told = check(folder)
    assert (78, True) == (told.returncode, "is not the key of" in told.stderr), told.stderr
    key.unlink()
    assert "is missing, so no one can tell" in check(folder).stderr
    key.write_text(right)
    lines.write_bytes(whole.replace(b'"first"', b'"worst"'))
    assert "is damaged in line 1" in check(folder).stderr


def test_an_address_of_the_figures_that_a_start_would_refuse_is_told(folder, monkeypatch):
    monkeypatch.setenv("MEMORYD_METRICS_LISTEN", "192.0.2.1:9464")
    told = check(folder)
    assert (78, True) == (told.returncode, "which other hosts reach" in told.stderr), told.stderr


TAKEN = {
    "port": "cannot listen on metrics.listen {}: Address already in use",
    "path": "metrics.listen is {}, where something listens already",
}


@pytest.mark.parametrize("kind", ["port", "path"])
def test_an_address_of_the_figures_that_is_taken_is_told_and_left_as_it_is(folder, monkeypatch, kind):
    path = folder / "figures"
    family = socket.AF_INET if kind == "port" else socket.AF_UNIX
    with socket.socket(family) as other:
        other.bind(("127.0.0.1", 0) if kind == "port" else str(path))
        other.listen()
        listen = f"127.0.0.1:{other.getsockname()[1]}" if kind == "port" else str(path)
        monkeypatch.setenv("MEMORYD_METRICS_LISTEN", listen)
        told = check(folder)
        assert (78, True) == (told.returncode, TAKEN[kind].format(listen) in told.stderr), told.stderr
        assert "('" not in told.stderr
    assert (0, kind == "path") == (check(folder).returncode, path.is_socket())
