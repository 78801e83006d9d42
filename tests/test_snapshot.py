"""A state of a backup as one file: written, piped, restored; what is no snapshot is refused."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from memory_client import MessageDraft

from tests.support import BIN, PATIENCE_S, running, short_folder, until

CONFIG = '[embedding]\nprovider = "none"\n[backup]\ndirectory = "{}"\nship_s = 1\n'


def memoryd(*words: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    env = {"PATH": os.environ["PATH"], "HOME": "/", "MEMORYD_EMBEDDING_PROVIDER": "none"}
    command = [BIN / "memoryd", *map(str, words)]
    return subprocess.run(command, input=stdin, env=env, capture_output=True, check=False, timeout=PATIENCE_S)


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
            until(lambda: any(f'"transaction":{last}' in p.read_text() for p in folder.glob("b/*/*/manifest.jsonl")))
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
    assert not list(folder.glob("b/*/.snapshot-*"))
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
    assert not list(folder.glob(".snapshot-*"))


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
