"""Backups of a real daemon: its data directory is lost, or it is put back to an earlier time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from memory_client import GrantSpec, InvalidArgument, MessageDraft, Permission

from tests.forking import run_command
from tests.support import PATIENCE_S, Daemon, running, short_folder, until

CONFIG = '[embedding]\nprovider = "none"\n[backup]\ndirectory = "{}"\nship_s = 1\n'


def command(daemon: Daemon, *words: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(daemon.folder), "MEMORYD_EMBEDDING_PROVIDER": "none"}
    call = [*daemon.command(*words)[:3], *words]
    return run_command(call, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def shipped(backup: Path, transaction: int) -> None:
    """Wait until a transaction is in the backup."""
    for _ in range(600):
        lines = [line for path in backup.glob("*/*/manifest.jsonl") for line in path.read_text().splitlines()]
        states = [known for known in map(json.loads, lines) if "format" not in known]
        if any(transaction <= (state.get("transaction") or 0) for state in states):
            return
        time.sleep(0.1)
    raise AssertionError(f"transaction {transaction} was not shipped")


@pytest.fixture
def backup(folder):
    (folder / "backup").mkdir()
    return folder / "backup"


def test_why_a_chain_was_begun_is_in_the_log_and_in_the_chain(folder, backup):
    with running(folder, config=CONFIG.format(backup)) as daemon, daemon.client() as client:
        client.add("I like tea")
        shipped(backup, client.server_info().commit_seq)
        client.run_job("backup")
        assert until(lambda: 2 == daemon.log.read_text().count("backup_chain_begun"))
        log = [json.loads(line) for line in daemon.log.read_text().splitlines() if "backup_chain_begun" in line]
        listed = json.loads(command(daemon, "backup", "list", str(backup), "--json").stdout)["chains"]
    assert [(line["chain"], line["reason"]) for line in log] == [(one["chain"], one["reason"]) for one in listed]
    assert ["there was none", "it was asked for"] == [one["reason"] for one in listed]
    assert "begun because it was asked for" in command(daemon, "backup", "list", str(backup)).stdout


def test_a_data_directory_that_was_lost_is_restored_with_all_that_was_shipped(folder, backup):
    with short_folder() as data:
        (data / "m").mkdir()
        with running(data / "m", config=CONFIG.format(backup)) as daemon:
            client = daemon.client()
            first = client.add("I like tea").memory
            at = datetime.now(UTC)
            time.sleep(0.01)
            purged = client.add("my locker code is blue").memory
            client.append("t", [MessageDraft(content="hello")])
            page = client.page(page_size=1)
            client.delete(purged.id, purge=True)
            shipped(backup, client.server_info().commit_seq)
            assert not client.server_info().warnings
            client.run_job("backup")
            client.close()
            daemon.kill()
        shutil.rmtree(daemon.folder)

        told = command(daemon, "backup", "list", str(backup), "--json")
        assert 0 == told.returncode, told.stderr
        assert json.loads(told.stdout)["chains"]
        verified = command(daemon, "backup", "verify", str(backup))
        assert 0 == verified.returncode, verified.stderr
        assert "every block could be read" in verified.stdout
        target = data / "n"
        tried = command(daemon, "restore", str(backup), "--data-dir", str(target), "--dry-run")
        assert (0, False) == (tried.returncode, target.exists()), tried.stderr
        done = command(daemon, "restore", str(backup), "--data-dir", str(target), "--at", at.isoformat())
        assert 0 == done.returncode, done.stderr
        assert "reopen-sandboxes" in done.stderr
        with running(target) as restored:
            client = restored.client()
            info = client.server_info()
            assert [first.id] == [m.id for m in client.page().memories]
            assert info.commit_seq > 1_000_000
            assert [w for w in info.warnings if "--reopen-sandboxes" in w]
            with pytest.raises(InvalidArgument, match="page_token"):
                client.page(page_size=1, page_token=page.next_page_token)
        again = command(daemon, "restore", str(backup), "--data-dir", str(target))
        assert (78, True) == (again.returncode, "is not empty" in again.stderr)
        latest = data / "o"
        done = command(daemon, "restore", str(backup), "--data-dir", str(latest), "--reopen-sandboxes", "--json")
        assert 0 == done.returncode, done.stderr
        assert 1_000_001 == json.loads(done.stdout)["next_transaction"]
        with running(latest) as restored:
            client = restored.client()
            assert [first.id] == [m.id for m in client.page().memories]
            assert ["hello"] == [m.content for m in client.messages("t").messages]
            assert not [w for w in client.server_info().warnings if "sandboxes" in w]


def test_what_was_proved_of_an_earlier_history_says_nothing_of_the_restored_one(folder, backup):
    with short_folder() as data:
        (data / "m").mkdir()
        with running(data / "m", config=CONFIG.format(backup)) as daemon, daemon.client() as client:
            client.add("I like tea")
            client.run_job("backup")
            until(lambda: client.server_info().backup_proved_time)
            assert "proved at" in command(daemon, "status", "--socket", str(daemon.socket)).stdout
        target = data / "n"
        assert 0 == command(daemon, "restore", str(backup), "--data-dir", str(target)).returncode
        with running(target, config=CONFIG.format(backup)) as restored, restored.client() as client:
            until(lambda: client.server_info().backup_shipped_time)
            assert client.server_info().backup_proved_time is None
            assert "not proved yet" in command(restored, "status", "--socket", str(restored.socket)).stdout


def test_sandboxes_stay_closed_after_a_restore_until_they_are_opened(folder, backup):
    with short_folder() as data:
        (data / "m").mkdir()
        with running(data / "m", config=CONFIG.format(backup)) as daemon:
            client = daemon.client()
            opened = client.open_sandbox(GrantSpec(user_id="alice", permissions=frozenset({Permission.ADD})))
            assert opened.grant.id
            shipped(backup, client.server_info().commit_seq)
        target = data / "n"
        assert 0 == command(daemon, "restore", str(backup), "--data-dir", str(target)).returncode
        moved = Reopening(target)
        for reopens, expected in ((False, 0), (True, 1), (False, 1)):
            moved.reopens = reopens
            moved.start()
            assert expected == moved.client().server_info().sandbox_count, reopens
            assert 0 == moved.stop()


class Reopening(Daemon):
    """A daemon that opens the doors of sandboxes again, or not."""

    reopens = False

    def command(self, *words: str) -> list[str]:
        more = ["--reopen-sandboxes"] if self.reopens and words == ("serve",) else []
        return [*super().command(*words), *more]


def test_a_stopped_store_is_backed_up_by_hand(folder, backup):
    with running(folder) as daemon:
        daemon.client().add("I like tea")
        served = command(daemon, "backup", "take", str(backup), "--data-dir", str(folder))
        way = "its own backups; set backup.directory"
        assert (78, True) == (served.returncode, way in served.stderr), served.stderr
    done = command(daemon, "backup", "take", str(backup), "--data-dir", str(folder))
    assert 0 == done.returncode, done.stderr
    assert 1 == len(json.loads(command(daemon, "backup", "list", str(backup), "--json").stdout)["chains"])
    chain = next(backup.glob("*/*/manifest.jsonl")).parent
    image = chain / "image-000001"
    image.write_bytes(image.read_bytes()[:-1] + b"x")
    broken = command(daemon, "backup", "verify", str(backup))
    assert (65, True) == (broken.returncode, "image-000001" in broken.stderr), broken.stderr
    empty = command(daemon, "backup", "list", str(folder / "nothing"))
    assert (78, True) == (empty.returncode, "is not there" in empty.stderr)
    kept = command(daemon, "backup", "prune", str(backup), "--keep-days", "0")
    assert (0, "1 of 1 chains stay\n") == (kept.returncode, kept.stdout)
