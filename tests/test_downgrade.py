"""After an upgrade there is a way back, that gives up what came since, says so, and loses no file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.store.duckdb import downgrading
from memoryd.store.duckdb.migrations import MIGRATIONS
from memoryd.store.opening import StoreInUse, StoreOptions, StoreRefused, check_store, downgrade_store, migrate_store
from tests.builders import MEMORY_LIMIT, open_database
from tests.forking import run_command
from tests.support import PATIENCE_S
from tests.test_opening import contents, put_and_die

BEFORE = len(MIGRATIONS) - 1


def options(folder: Path) -> StoreOptions:
    return StoreOptions(folder / "memory.duckdb", MEMORY_LIMIT)


def open_older(folder: Path):
    return open_database(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT, migrations=MIGRATIONS[:BEFORE])


def upgraded(folder: Path) -> None:
    """A database of the schema before, migrated, and written to since."""
    open_older(folder).close()
    migrate_store(options(folder), random_bytes=os.urandom)
    put_and_die(folder, 5)


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "memoryd", *words, "--data-dir", str(folder)]
    return run_command(call, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def test_the_way_back_and_forth(folder):
    upgraded(folder)
    would = downgrade_store(options(folder), dry_run=True)
    assert (BEFORE, BEFORE + 1, 0, 5) == (
        would.schema_version, would.from_schema_version, would.commit_seq, would.given_up_seq
    )  # fmt: skip
    assert BEFORE + 1 == check_store(options(folder)).schema_version
    done = downgrade_store(options(folder))
    assert would == done
    older = open_older(folder)
    assert (BEFORE, 0) == (older.schema_version, older.commit_seq)
    older.close()
    refused = command(folder, "downgrade", "--dry-run")
    assert (78, True) == (refused.returncode, f"has schema {BEFORE} already" in refused.stderr), refused.stderr
    assert BEFORE == check_store(options(folder)).schema_version
    kept = Path(done.kept)
    for suffix in ("", ".wal", ".seq"):
        kept.with_name(kept.name + suffix).rename(folder / f"memory.duckdb{suffix}")
    assert 5 == len(contents(folder))


def test_what_the_older_store_notes_does_not_reach_the_side_file_of_the_newer_one(folder):
    upgraded(folder)
    kept = Path(downgrade_store(options(folder)).kept)
    log = kept.with_name(f"{kept.name}.wal")
    assert log.stat().st_size
    log.write_bytes(b"")
    for suffix in ("", ".wal", ".seq"):
        kept.with_name(kept.name + suffix).rename(folder / f"memory.duckdb{suffix}")
    with pytest.raises(StoreRefused, match="5 was acknowledged: 5 are missing"):
        check_store(options(folder))


@pytest.mark.parametrize("step", range(8))
def test_a_crash_in_between_leaves_nothing_that_is_served_as_whole(folder, monkeypatch, step):
    upgraded(folder)
    calls = [0]

    def counted(real):
        def call(*args, **more):
            calls[0] += 1
            if calls[0] == step + 1:
                raise KeyboardInterrupt
            return real(*args, **more)

        return call

    with monkeypatch.context() as planted:
        planted.setattr(downgrading.os, "link", counted(os.link))
        planted.setattr(downgrading, "sync_folder", counted(downgrading.sync_folder))
        planted.setattr(downgrading, "CommitWatermark", counted(downgrading.CommitWatermark))
        planted.setattr(Path, "replace", counted(Path.replace))
        planted.setattr(Path, "unlink", counted(Path.unlink))
        with pytest.raises(KeyboardInterrupt):
            downgrade_store(options(folder))
    try:
        checked = check_store(options(folder))
    except StoreRefused:
        assert list(folder.glob("memory.duckdb.before-downgrade-*"))
    else:
        assert (BEFORE + 1, 5) == (checked.schema_version, checked.commit_seq)


def test_what_cannot_be_gone_back_to_is_refused(folder):
    with pytest.raises(StoreRefused, match="nothing to go back from"):
        downgrade_store(options(folder))
    put_and_die(folder, 1)
    with pytest.raises(StoreRefused, match="no copy from before an upgrade"):
        downgrade_store(options(folder))
    (folder / "memory.duckdb.before-schema-7").write_bytes(b"nonsense")
    with pytest.raises(StoreRefused, match="there are those of 6"):
        downgrade_store(options(folder), schema=9)
    with pytest.raises(StoreRefused, match="before-schema-7"):
        downgrade_store(options(folder))
    assert 1 == len(contents(folder))
    opened = open_database(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT)
    try:
        with pytest.raises(StoreInUse):
            downgrade_store(options(folder))
    finally:
        opened.close()


def test_the_commands(folder):
    open_older(folder).close()
    would = command(folder, "upgrade", "--dry-run")
    assert (0, True) == (would.returncode, f"would migrate schema {BEFORE} to {BEFORE + 1}" in would.stdout), (
        would.stderr
    )
    assert not list(folder.glob("*.before-*"))
    done = command(folder, "upgrade")
    assert f"migrated schema {BEFORE} to {BEFORE + 1}; go back with: memoryd downgrade" in done.stdout
    assert "nothing to do" in command(folder, "upgrade").stdout
    put_and_die(folder, 3)
    told = json.loads(command(folder, "downgrade", "--dry-run", "--json").stdout)
    assert {"schema_version": BEFORE, "given_up_seq": 3, "dry_run": True}.items() <= told.items()
    back = command(folder, "downgrade")
    assert "gave up 3 transactions, 1 to 3" in back.stdout, back.stderr
    assert "ledger" in back.stderr
    again = command(folder, "downgrade")
    assert (78, True) == (again.returncode, "nothing to go back from" in again.stderr)
