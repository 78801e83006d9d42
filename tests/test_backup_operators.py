"""What an operator meets around backups: folders that cannot work, files that are none, and what each command says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memoryd.backup.chain import MANIFEST
from tests.forking import run_command
from tests.support import BIN, PATIENCE_S, Daemon, running, short_folder, until
from tests.test_encrypted_backup import identity_in

NO_MODEL = '[embedding]\nprovider = "none"\n'


def memoryd(*words: object, **env: str) -> subprocess.CompletedProcess[str]:
    values = {"PATH": os.environ["PATH"], "HOME": "/", "MEMORYD_EMBEDDING_PROVIDER": "none", **env}
    command = [BIN / "memoryd", *map(str, words)]
    return run_command(command, env=values, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def taken():
    """A store, and a backup of it in clear."""
    with short_folder() as folder:
        for name in ("b", "d"):
            (folder / name).mkdir()
        with running(folder / "d", config=NO_MODEL) as daemon, daemon.client() as memory:
            memory.add("I like tea")
        assert 0 == memoryd("backup", "take", folder / "b", "--data-dir", folder / "d").returncode
        yield folder


def copied(taken: Path, name: str) -> Path:
    return shutil.copytree(taken / "b", taken / name)


@pytest.mark.parametrize("kind", ["pipe", "link to an endless device", "folder", "gone"])
def test_a_manifest_that_is_none_is_told_at_once(taken, kind):
    folder = copied(taken, kind.replace(" ", ""))
    manifest = next(folder.glob(f"*/*/{MANIFEST}"))
    manifest.unlink()
    {"pipe": os.mkfifo, "folder": os.mkdir, "gone": str}.get(kind, lambda path: path.symlink_to("/dev/zero"))(manifest)
    for words in (("backup", "verify"), ("backup", "list"), ("restore", "--data-dir", taken / "none")):
        done = memoryd(*words, folder)
        assert (65, True) == (done.returncode, f"{manifest} cannot be read" in done.stderr), done


def test_all_histories_of_a_folder_are_verified(taken):
    folder = copied(taken, "two")
    with running(taken / "d", config=NO_MODEL) as daemon, daemon.client() as memory:
        memory.add("I like coffee")
    assert 0 == memoryd("restore", folder, "--data-dir", taken / "again").returncode
    assert 0 == memoryd("backup", "take", folder, "--data-dir", taken / "again").returncode
    said = memoryd("backup", "verify", folder)
    assert (0, 2) == (said.returncode, said.stdout.count("every block could be read")), said
    told = json.loads(memoryd("backup", "verify", folder, "--json").stdout)
    assert (2, 2) == (len(told["histories"]), len(told["chains"]))
    image = max(folder.glob("*/*/image-000001"))
    image.write_bytes(image.read_bytes()[:-1] + b"x")
    damaged = memoryd("backup", "verify", folder)
    assert (65, True) == (damaged.returncode, str(image) in damaged.stderr), damaged


def test_the_key_of_the_ledger_goes_with_the_last_chain_in_clear(taken):
    folder, (key, recipient) = copied(taken, "mixed"), identity_in(taken)
    (taken / "to").write_text(recipient)
    done = memoryd("backup", "take", folder, "--data-dir", taken / "d", "--encrypt-to", taken / "to")
    assert 0 == done.returncode, done
    clear = next(folder.glob("*/ledger/key"))
    assert 0 == memoryd("restore", folder, "--data-dir", taken / "r1", "--identity", key).returncode
    assert "1 of 2" in memoryd("backup", "prune", folder, "--keep-days", 0).stdout
    assert not clear.exists()
    assert 0 == memoryd("restore", folder, "--data-dir", taken / "r2", "--identity", key).returncode


def test_check_tells_what_would_keep_backups_from_being_written(folder):
    (folder / "file").write_text("")
    (folder / "bad").write_text("hello\n")
    config, good = folder / "c.toml", f"{folder}/b"
    (folder / "b").mkdir()
    cases = [
        ("directory", f"{folder}/none", "", 0, "is not there; make the folder of backups, or mount its disk"),
        ("directory", f"{folder}/file", "", 0, "is no folder"),
        ("directory", good, f"{folder}/bad", 78, "recipient 1 is not what memoryd encrypts to"),
        ("directory", good, f"{folder}/missing", 78, "missing cannot be read"),
        ("directory", "", f"{folder}/bad", 78, "backup.directory is not: there are no backups"),
    ]
    for key, value, recipients, code, words in cases:
        config.write_text(f'[backup]\n{key} = "{value}"\nencrypt_recipients_file = "{recipients}"\n')
        said = memoryd("check", "--quiet", "--config", config, "--data-dir", folder / "d")
        assert (code, True) == (said.returncode, words in said.stderr), (value, recipients, said)
    config.write_text('[metrics]\nlisten = "/nope/metrics.sock"\n')
    said = memoryd("check", "--quiet", "--config", config, "--data-dir", folder / "d")
    if os.geteuid():
        assert (78, True) == (said.returncode, "metrics.listen" in said.stderr), said


def test_what_goes_wrong_with_shipping_is_logged_with_its_reason_and_not_each_second(folder):
    config = f'{NO_MODEL}[backup]\ndirectory = "{folder}/none"\nship_s = 1\n'
    with running(folder, config=config) as daemon, daemon.client() as memory:
        memory.add("I like tea")
        assert until(lambda: "backup_not_shipped" in daemon.log.read_text())
        assert until(lambda: any("mount its disk" in warning for warning in memory.server_info().warnings))
        run = memoryd("jobs", "run", "backup", "--socket", daemon.socket)
        assert "make the folder of backups, or mount its disk" in run.stderr + run.stdout
        lines = [line for line in daemon.log.read_text().splitlines() if "backup_not_shipped" in line]
        assert ["/none is not there; make the folder" in line for line in lines] == [True], lines


def test_a_job_of_backups_that_are_not_configured_says_what_to_do(folder):
    with running(folder, config=NO_MODEL) as daemon:
        said = memoryd("jobs", "run", "backup", "--socket", daemon.socket)
        assert (2, True) == (said.returncode, "set backup.directory, and restart memoryd" in said.stderr), said


def test_a_command_that_names_another_database_than_the_daemon_serves_is_refused(folder):
    with running(folder, config=NO_MODEL) as daemon, daemon.client() as memory:
        memory.add("I like tea")
        for words in (("user", "erase", "alice", "--yes"), ("compact",), ("users",), ("export",)):
            said = memoryd(*words, "--socket", daemon.socket, "--data-dir", folder / "other")
            assert (2, True) == (said.returncode, "not " in said.stderr and "name the --socket" in said.stderr), said
        assert 0 == memoryd("users", "--socket", daemon.socket, "--data-dir", folder).returncode
        assert ["I like tea"] == [one.content for one in memory.pages()]


def test_an_export_that_did_not_begin_leaves_nothing_in_its_way(folder):
    daemon = Daemon(folder, config=NO_MODEL)
    target = folder / "e.jsonl"
    assert 1 == memoryd("export", "-o", target, "--socket", daemon.socket).returncode
    with running(folder, config=NO_MODEL) as daemon:
        assert 0 == memoryd("export", "-o", target, "--socket", daemon.socket).returncode
        for name in (".", "/"):
            said = memoryd("export", "-o", name, "--socket", daemon.socket)
            assert (2, False) == (said.returncode, "Traceback" in said.stderr), said
        nobody = memoryd("export", "--user", "alicce", "-o", folder / "n.jsonl", "--socket", daemon.socket)
        assert (0, True) == (nobody.returncode, "nothing is stored of user 'alicce'" in nobody.stderr), nobody
        small = memoryd("compact", "--socket", daemon.socket)
        assert "give back" in small.stdout or "least that" in small.stdout, small
    empty = memoryd("import", "")
    assert (2, True) == (empty.returncode, "is empty" in empty.stderr), empty


HANGS = """
import sys, time
from memoryd.backup import shipper
from memoryd.backup.chain_writer import ChainWriter
from memoryd.cli.main import run
ChainWriter.add_log = lambda *_: time.sleep(600)
shipper.PATIENCE_S = 1
sys.exit(run(sys.argv[1:]))
"""


def test_a_stop_does_not_wait_for_a_disk_that_does_not_answer(folder):
    (folder / "b").mkdir()
    (folder / "d").mkdir()
    config = f'{NO_MODEL}[daemon]\nshutdown_grace_s = 1\n[backup]\ndirectory = "{folder}/b"\nship_s = 1\n'
    daemon = Daemon(folder / "d", config=config)
    command = [sys.executable, "-c", HANGS, *daemon.command("serve")[3:]]
    with daemon.log.open("ab") as log:
        daemon.process = subprocess.Popen(command, stdout=log, stderr=log, env=daemon.env)
    assert until(daemon.socket.exists)
    with daemon.client() as memory:
        added = memory.add("I like tea").memory.id
        assert until(lambda: list(folder.glob("b/*/*/manifest.jsonl")))
        time.sleep(2)  # into the piece of the log that hangs
        assert added == memory.get(added).id
    began = time.monotonic()
    assert 0 == daemon.stop(), daemon.log.read_text()
    assert time.monotonic() - began < PATIENCE_S / 2
    assert "backup_not_shipped" in daemon.log.read_text()
    with running(folder / "d", config=config) as again, again.client() as memory:
        assert added == memory.get(added).id


def test_a_dry_run_refuses_the_folder_that_a_restore_would(taken):
    there = taken / "there"
    there.mkdir()
    (there / "file").write_text("x")
    said = memoryd("restore", taken / "b", "--data-dir", there, "--dry-run")
    assert (78, True) == (said.returncode, "is not empty; name a new folder" in said.stderr), said
