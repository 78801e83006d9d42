"""Mistakes that operators make: each is told at once, and costs nothing."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from memoryd.backup.chain import MANIFEST
from memoryd.backup.folder import _alone_in
from memoryd.daemon.backups import Backups
from memoryd.daemon.config import BackupConfig, Config
from memoryd.daemon.jobs import Progress
from memoryd.store.refusal import StoreRefused
from tests.builders import NOW, open_duckdb
from tests.support import running, until
from tests.test_backup import shipped
from tests.test_backup_operators import NO_MODEL, copied, memoryd, taken  # noqa: F401  the fixture


def test_a_chain_that_has_lost_its_first_line_is_told_by_every_command(taken):  # noqa: F811
    folder = copied(taken, "emptied")
    assert 0 == memoryd("backup", "take", folder, "--data-dir", taken / "d").returncode
    manifest = max(folder.glob(f"*/*/{MANIFEST}"))
    manifest.write_bytes(b"")
    said = memoryd("backup", "verify", folder)
    assert (65, True) == (said.returncode, f"{manifest} has lost its first line" in said.stderr), said
    for words in (("backup", "list", folder), ("restore", folder, "--data-dir", taken / "older")):
        done = memoryd(*words)
        assert (0, True) == (done.returncode, f"warning: {manifest} has lost its first line" in done.stderr), done


def test_a_transaction_that_no_backup_reaches_is_refused(taken):  # noqa: F811
    for words in (
        ("restore", taken / "b", "--data-dir", taken / "never", "--transaction", 999_999),
        ("backup", "snapshot", taken / "b", "-o", taken / "never.tar", "--transaction", 999_999),
    ):
        done = memoryd(*words)
        assert (78, True) == (done.returncode, "no backup reaches transaction 999999; the last is" in done.stderr), done
    assert not (taken / "never").exists()
    assert not (taken / "never.tar").exists()


def test_json_of_a_restore_has_its_warnings(taken):  # noqa: F811
    assert 0 == memoryd("backup", "snapshot", taken / "b", "-o", taken / "s.tar").returncode
    for more, words in (("dry", ("--dry-run",)), ("real", ())):
        done = memoryd("restore", taken / "s.tar", "--data-dir", taken / f"of-snapshot-{more}", "--json", *words)
        told = json.loads(done.stdout)
        assert "what was purged after this snapshot" in told["warnings"][0], told
        assert "memoryd: warning: what was purged after this snapshot" in done.stderr
    assert told["sandboxes_closed"] is True
    done = memoryd("restore", taken / "b", "--data-dir", taken / "of-chain", "--json", "--reopen-sandboxes")
    assert ([], False) == (json.loads(done.stdout)["warnings"], json.loads(done.stdout)["sandboxes_closed"])


def test_what_is_purged_while_the_ledger_is_lost_is_said_to_be_unknown(folder):
    backup, data = folder / "backup", folder / "data"
    for path in (backup, data):
        path.mkdir()
    config = f'{NO_MODEL}[backup]\ndirectory = "{backup}"\nship_s = 1\n'
    with running(data, config=config) as daemon, daemon.client() as memory:
        for n in range(3):
            memory.add(f"note {n} of tea")
        memory.delete(memory.page().memories[0].id, purge=True)
        until(lambda: any(backup.glob("*/*/image-*")))
    assert "warning" not in memoryd("backup", "verify", backup).stderr
    shutil.rmtree(data / "ledger")
    with running(data, config=config) as daemon, daemon.client() as memory:
        assert "store_warning" in daemon.log.read_text()
        memory.delete(memory.page().memories[0].id, purge=True)
        until(lambda: memory.server_info().warnings and "does not go on" in str(memory.server_info().warnings))
        last = memory.server_info().commit_seq
        until(lambda: f'"transaction":{last}' in str([p.read_text() for p in backup.glob(f"*/*/{MANIFEST}")]))
    for words in (("backup", "verify", backup), ("restore", backup, "--data-dir", folder / "back")):
        done = memoryd(*words)
        assert 0 == done.returncode, done
        assert "states were stored while the ledger of purges was lost" in done.stderr, done


def test_an_export_to_a_dash_goes_to_standard_output(folder):
    with running(folder, config=NO_MODEL) as daemon:
        with daemon.client() as memory:
            memory.add("I like tea")
        command = ["export", "-o", "-", "--socket", daemon.socket]
        done = memoryd(*command)
        assert '"content":"I like tea"' in done.stdout
        assert not Path("-").exists()
        first = memoryd("export", "-o", folder / "x.jsonl", "--socket", daemon.socket)
        assert 0 == first.returncode
        lines = (folder / "x.jsonl").read_bytes()
        part = folder / "y.jsonl.part"
        part.write_bytes(lines[:-100])
        (folder / "y.jsonl.part.cursor").write_text(json.dumps({"cursor": "", "bytes": len(lines), "user": ""}))
        cut = memoryd("export", "-o", folder / "y.jsonl", "--resume", "--socket", daemon.socket)
        assert (65, True) == (cut.returncode, "cut or damaged" in cut.stderr), cut
        assert "Traceback" not in cut.stderr


@pytest.mark.parametrize("words", [("upgrade", "--dry-run"), ("upgrade",), ("downgrade",), ("check", "--adopt")])
def test_a_data_directory_that_is_not_there_is_refused_and_not_made(folder, words):
    done = memoryd(*words, "--data-dir", folder / "typo")
    assert 78 == done.returncode, done
    assert "name the --data-dir" in done.stderr
    assert not (folder / "typo").exists()


def test_of_two_restores_of_one_name_one_wins(folder):
    part = folder / ".new.restoring"
    with _alone_in(part):
        (part / "memory.duckdb").write_text("begun")
        with pytest.raises(StoreRefused, match="another restore fills"), _alone_in(part):
            pass
        assert (part / "memory.duckdb").exists()
    (part / "ledger").mkdir()
    with _alone_in(part):
        assert [] == list(part.iterdir()), "what a killed one has left is removed"


async def test_no_backup_goes_by_its_age_while_the_clock_is_in_doubt(folder):
    async with shipped(folder) as (client, shipper):
        for n in range(3):
            await client.add(f"note {n} of tea")
            await shipper.begin_chain()
    store = open_duckdb(folder / "data")
    info = await store.info()
    config, later = Config(backup=BackupConfig(directory=str(folder / "backup"))), NOW + timedelta(days=400)
    gone = []
    for doubt in ("the clock has gone forward by 400 days", ""):
        backups = Backups(config, store.files.shipping, info, folder / "data" / "ledger", lambda _, why=doubt: why)
        gone.append(len(backups._prune(Progress(later, dry_run=True), dry_run=True)))
    await store.close()
    assert [0, 2] == gone


def test_the_socket_of_figures_may_be_in_a_folder_that_is_made(folder):
    config = f'{NO_MODEL}[metrics]\nlisten = "{folder}/new/metrics.sock"\n'
    (folder / "d").mkdir()
    with running(folder / "d", config=config) as daemon:
        assert (folder / "new" / "metrics.sock").is_socket()
        assert daemon.process.poll() is None
