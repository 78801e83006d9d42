"""A state of a backup as one file: written, piped, restored; what is no snapshot is refused."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from memory_client import MessageDraft

from memoryd.backup.chain import Chain
from memoryd.backup.digests import digest_of
from memoryd.backup.scratch import scratch
from memoryd.cli import snapshots
from memoryd.cli.main import run
from memoryd.store.lines import LineFile, read_line
from tests.forking import run_command
from tests.support import BIN, PATIENCE_S, running, short_folder, until

CONFIG = '[embedding]\nprovider = "none"\n[backup]\ndirectory = "{}"\nship_s = 1\n'


def memoryd(*words: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    env = {"PATH": os.environ["PATH"], "HOME": "/", "MEMORYD_EMBEDDING_PROVIDER": "none"}
    command = [BIN / "memoryd", *map(str, words)]
    return run_command(command, input=stdin, env=env, capture_output=True, check=False, timeout=PATIENCE_S)


def reaches(chain: Path, transaction: int) -> bool:
    point = Chain.read(chain).point()
    return point is not None and point.commit_seq >= transaction


def rewrite(manifest: Path, change) -> None:
    """Write a manifest anew, with checksums that fit."""
    lines = [read_line(line, manifest, n) for n, line in enumerate(manifest.read_bytes().splitlines(), 1)]
    manifest.unlink()
    written = LineFile(manifest)
    for line in lines:
        written.write(change(line))
    written.close()


@pytest.fixture(scope="module")
def backup():
    """A backup of two memories and a message, of a third one that was purged, and of a time before the purge."""
    with short_folder() as folder:
        (folder / "b").mkdir()
        (folder / "d").mkdir()
        with running(folder / "d", config=CONFIG.format(folder / "b")) as daemon, daemon.client() as memory:
            memory.add("I like tea")
            purged = memory.add("my locker code is heliotrope").memory
            memory.append("t", [MessageDraft(content="hello")])
            before = datetime.now(UTC)
            memory.delete(purged.id, purge=True)
            memory.add("I like coffee")
            last = memory.server_info().commit_seq
            assert until(lambda: any(reaches(path.parent, last) for path in folder.glob("b/*/*/manifest.jsonl")))
        yield folder, before


def contents(place: Path) -> tuple[set[str], list[str]]:
    with running(place) as daemon, daemon.client() as memory:
        found = {one.content for one in memory.pages()}
        return found, [message.content for message in memory.messages("t").messages]


def test_a_snapshot_is_piped_and_restored_without_what_was_purged(backup):
    folder, _ = backup
    written = memoryd("backup", "snapshot", folder / "b", "-o", "-")
    assert 0 == written.returncode, written.stderr
    assert b"every block could be read" in written.stderr
    assert b"heliotrope" not in written.stdout
    assert not list(folder.glob("b/*/.memoryd-scratch-*"))
    done = memoryd("restore", "-", "--data-dir", folder / "r1", "--json", stdin=written.stdout)
    assert 0 == done.returncode, done.stderr
    assert json.loads(done.stdout)["next_transaction"] > 1_000_000
    assert ({"I like tea", "I like coffee"}, ["hello"]) == contents(folder / "r1")
    with tarfile.open(fileobj=io.BytesIO(written.stdout)) as tar:
        tar.extractall(folder / "unpacked", filter="data")
    verified = memoryd("backup", "verify", folder / "unpacked")
    assert 0 == verified.returncode, verified.stderr


def test_a_snapshot_of_before_a_purge_brings_nothing_back(backup):
    folder, before = backup
    target = folder / "old.tar"
    written = memoryd("backup", "snapshot", folder / "b", "--at", before.isoformat(), "-o", target, "--json")
    assert 0 == written.returncode, written.stderr
    assert json.loads(written.stdout)["database_bytes"] > 0
    assert 0o600 == target.stat().st_mode & 0o777
    again = memoryd("backup", "snapshot", folder / "b", "-o", target)
    assert (2, True) == (again.returncode, b"is there; name another file" in again.stderr)
    tried = memoryd("restore", target, "--data-dir", folder / "r2", "--dry-run")
    assert (0, False) == (tried.returncode, (folder / "r2").exists()), tried.stderr
    done = memoryd("restore", target, "--data-dir", folder / "r2")
    assert 0 == done.returncode, done.stderr
    assert ({"I like tea"}, ["hello"]) == contents(folder / "r2")
    assert not list(folder.glob(".memoryd-scratch-*"))


def test_what_is_no_whole_snapshot_is_refused_and_leaves_nothing(backup):
    folder, _ = backup
    whole = memoryd("backup", "snapshot", folder / "b", "-o", "-").stdout
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    outside, link = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=outside, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("../../etc/passwd"), io.BytesIO(b""))
    with tarfile.open(fileobj=link, mode="w") as tar:
        member = tarfile.TarInfo("a" * 36 + "/ledger/key")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(member)
    for data in (b"", b"no tar", whole[: len(whole) // 3], bytes(damaged), outside.getvalue(), link.getvalue()):
        done = memoryd("restore", "-", "--data-dir", folder / "r3", stdin=data)
        assert 65 == done.returncode, (data[:40], done.stderr)
        assert b"Traceback" not in done.stderr
        assert not (folder / "r3").exists()
        assert not list(folder.glob(".*"))


def test_a_snapshot_that_is_cut_short_is_no_success_and_leaves_no_copy(backup):
    folder, _ = backup
    env = {"PATH": os.environ["PATH"], "HOME": "/", "MEMORYD_EMBEDDING_PROVIDER": "none"}
    command = [BIN / "memoryd", "backup", "snapshot", folder / "b", "-o", "-"]
    for number in (None, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
            assert process.stdout.read(1000)
            if number is None:
                process.stdout.close()  # the reader has gone
            else:
                process.send_signal(number)
            assert (1 if number is None else 130) == process.wait(PATIENCE_S), number
            assert (b"not whole" in process.stderr.read()) == (number is None)
        assert not list(folder.glob("b/*/.memoryd-scratch-*"))


def test_a_copy_that_a_killed_process_left_is_removed_by_the_next_one(backup):
    folder, _ = backup
    store = next(path.parent.parent for path in folder.glob("b/*/*/manifest.jsonl"))
    (store / ".memoryd-scratch-old").mkdir()
    (store / ".memoryd-scratch-old" / "memory.duckdb").write_bytes(b"heliotrope")
    (folder / "k.tar.part").write_bytes(b"left")
    with scratch(store) as held:
        assert 0 == memoryd("backup", "snapshot", folder / "b", "-o", folder / "k.tar").returncode
        assert held.exists()
    assert not list(store.glob(".memoryd-scratch-*"))
    assert not (folder / "k.tar.part").exists()


def test_an_old_snapshot_takes_the_newer_ledger_of_the_backup_or_warns(backup):
    folder, before = backup
    folder_of = next(path.parent.parent for path in folder.glob("b/*/*/manifest.jsonl"))
    old = folder / "older"
    shutil.copytree(folder / "b", old)
    ledger = next(old.glob("*/ledger/purges.jsonl"))
    first = ledger.read_bytes().splitlines(keepends=True)[0]
    ledger.write_bytes(first)
    refused = memoryd("backup", "snapshot", old, "--at", before.isoformat(), "-o", folder / "before.tar")
    assert (65, True) == (refused.returncode, b"by the chains it had" in refused.stderr), refused
    for command in (("verify",), ("restore", "--data-dir", folder / "none")):
        refused = memoryd(*(["backup"] if command == ("verify",) else []), command[0], old, *command[1:])
        assert (65, True) == (refused.returncode, b"by the chains it had" in refused.stderr), refused
    mark = [len(first), digest_of(first[:-1])]
    for manifest in old.glob("*/*/manifest.jsonl"):  # and as all of it was before the purge
        rewrite(manifest, lambda line: {**line, "ledger": mark} if "ledger" in line else line)
    written = memoryd("backup", "snapshot", old, "--at", before.isoformat(), "-o", folder / "before.tar")
    assert 0 == written.returncode, written.stderr
    told = memoryd("restore", folder / "before.tar", "--data-dir", folder / "r4")
    assert (0, True) == (told.returncode, b"name" in told.stderr or b"--ledger" in told.stderr)
    assert b"not known here" in told.stderr
    config = folder / "c.toml"
    config.write_text(CONFIG.format(folder / "b"))
    known = memoryd("restore", folder / "before.tar", "--data-dir", folder / "r5", "--config", config)
    assert (0, False) == (known.returncode, b"not known here" in known.stderr), known.stderr
    assert ({"I like tea"}, ["hello"]) == contents(folder / "r5")
    assert folder_of.exists()


def test_a_minute_lasts_to_its_end_and_an_age_is_a_time():
    assert 59 == snapshots.until("2026-11-29T11:16").second
    assert 7 == snapshots.until("2026-11-29T11:16:07").second
    assert datetime.now(UTC) - snapshots.until("90m") > timedelta(minutes=89)


def test_a_folder_that_cannot_be_written_is_verified_and_archived_elsewhere(backup, monkeypatch, capsys, tmp_path):
    folder, _ = backup
    used, real = [], scratch

    def noted(parent):
        used.append(parent)
        return real(parent)

    for module in ("folder", "snapshot"):
        monkeypatch.setattr(f"memoryd.backup.{module}.scratch", noted)
    monkeypatch.setattr(
        "os.access", lambda path, how, **_: how != os.W_OK or not Path(path).is_relative_to(folder / "b")
    )
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("MEMORYD_EMBEDDING_PROVIDER", "none")
    for words in (("verify", "b"), ("snapshot", "b", "-o", str(tmp_path / "s.tar"))):
        assert 0 == run(["backup", words[0], str(folder / words[1]), *words[2:]]), capsys.readouterr()
    assert [tmp_path, tmp_path] == used
