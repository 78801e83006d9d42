"""Several histories of one store: what any of them knows was purged does not come back with another."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.backup.chain import MANIFEST, BackupDamaged, Chain
from memoryd.backup.folder import chains_of, histories, history_folder, restore
from memoryd.backup.ledgers import LEDGER, LedgerMirror, ledger_of
from memoryd.backup.shipper import Shipper
from memoryd.domain.forgetting.catch_up import catch_up
from memoryd.store.ledger import KEY, LINES
from memoryd.store.opening import StoreRefused
from tests.builders import MEMORY_LIMIT, NOW, Local, open_duckdb, ports_over
from tests.test_backup import restored, shipped

MORE = {"memory_limit_bytes": MEMORY_LIMIT, "random_bytes": os.urandom, "closes_sandboxes": True}


async def two_texts(folder: Path) -> Path:
    """Ship a store with two memories, and return the folder of its history."""
    async with shipped(folder) as (client, shipper):
        await client.add("my locker code is blue")
        await client.add("I like tea")
        await shipper.step()
    return next((folder / "backup").iterdir())


async def purged(target: Path, text: str) -> set[str]:
    """Start the store in a folder, erase what says some text, and return what is left."""
    store = open_duckdb(target, ledger=target / "ledger")
    async with ports_over(store) as ports:
        await catch_up(ports, now=NOW)
        client = Local(ports, lambda: NOW, user_id="alice")
        for memory in (await client.page()).memories:
            if memory.content == text:
                await client.delete(memory.id, purge=True)
        return {memory.content for memory in (await client.page()).memories}


async def test_what_a_later_history_has_purged_does_not_come_back_with_an_earlier_one(folder):
    first = await two_texts(folder)
    target, _ = restored(chains_of(first), folder)
    assert {"I like tea"} == await purged(target, "my locker code is blue")
    second = history_folder(folder / "backup", first.name, "abcdef0123")
    second.mkdir()
    LedgerMirror(target / "ledger", second).step()
    assert [first, second] == histories(folder / "backup", first.name)
    assert second / LEDGER == ledger_of(first, [second])
    assert second / LEDGER == ledger_of(second, [first])
    chain = chains_of(first)[0]
    restore(chain, chain.points[-1], folder / "again", ledger_of(first, [second]), **MORE)
    assert {"I like tea"} == await purged(folder / "again", "none")


@pytest.mark.parametrize("tail", ['{"purge":2,"transact', "\0" * 300, '{"purge":2,"crc":7}\n'])
async def test_what_is_torn_at_the_end_of_a_mirror_is_no_line_and_is_mended(folder, tail):
    first = await two_texts(folder)
    with (first / LEDGER / LINES).open("a") as torn:
        torn.write(tail)
    target, _ = restored(chains_of(first), folder) if not tail.endswith("\n") else (None, None)
    second = history_folder(folder / "backup", first.name, "abcdef0123")
    if target is not None:
        assert {"I like tea"} == await purged(target, "my locker code is blue")
        second.mkdir()
        LedgerMirror(target / "ledger", second).step()
        assert second / LEDGER == ledger_of(first, [second])
    async with shipped(folder) as (client, shipper):
        await client.delete((await client.add("a note")).memory.id, purge=True)
        await shipper.step()
        assert "" == shipper.ledger_fault
    assert (folder / "data" / "ledger" / LINES).read_bytes() == (first / LEDGER / LINES).read_bytes()


async def test_a_ledger_is_taken_for_a_restore_only_if_it_knows_what_the_backup_knows(folder):
    async with shipped(folder) as (client, shipper):
        gone = (await client.add("my locker code is blue")).memory
        await client.add("I like tea")
        await shipper.step()
        older = shutil.copytree(folder / "data" / "ledger", folder / "older")
        await client.delete(gone.id, purge=True)
        await shipper.step()
        newer = folder / "data" / "ledger"
    chain = chains_of(next((folder / "backup").iterdir()))[0]
    before = next(point for point in chain.points if point.commit_seq == 2)
    with pytest.raises(StoreRefused, match="does not go on with the ledger of the backup"):
        restore(chain, before, folder / "a", older, **MORE)
    foreign = shutil.copytree(newer, folder / "foreign")
    (foreign / KEY).write_text(f"{os.urandom(32).hex()}\n")
    with pytest.raises(StoreRefused, match="is not the key"):
        restore(chain, before, folder / "a", foreign, **MORE)
    (foreign / LINES).write_bytes(b"")
    with pytest.raises(StoreRefused, match="is empty"):
        restore(chain, before, folder / "a", foreign, **MORE)
    assert not (folder / "a").exists()
    restore(chain, before, folder / "a", newer, **MORE)
    assert {"I like tea"} == await purged(folder / "a", "none")


async def test_a_newer_ledger_of_the_lost_store_is_refused_once_the_restored_one_goes_on(folder):
    first = await two_texts(folder)
    target, _ = restored(chains_of(first), folder)
    await purged(target, "none")
    lost = folder / "data"
    await purged(lost, "my locker code is blue")
    shutil.copytree(lost / "ledger", target / "ledger", dirs_exist_ok=True)
    with pytest.raises(StoreRefused, match="is of another history of this store"):
        open_duckdb(target, ledger=target / "ledger")


async def test_a_manifest_without_one_of_its_lines_is_refused(folder):
    async with shipped(folder) as (client, shipper):
        for n in range(4):
            await client.add(f"note {n} of tea")
            await shipper.step()
    chain = chains_of(next((folder / "backup").iterdir()))[0]
    manifest = chain.folder / MANIFEST
    lines = manifest.read_bytes().splitlines(keepends=True)
    for gone in range(1, len(lines) - 1):
        manifest.write_bytes(b"".join(line for n, line in enumerate(lines) if n != gone))
        with pytest.raises(BackupDamaged, match=r"manifest\.jsonl is damaged"):
            Chain.read(chain.folder)


async def test_a_folder_that_is_swapped_or_removed_is_shipped_to_anew(folder):
    async with shipped(folder) as (client, shipper):
        await client.add("first")
        await shipper.step()
        mine = next((folder / "backup").iterdir())
        shutil.copytree(mine, folder / "copy")
        mine.rename(folder / "old")
        (folder / "copy").rename(mine)
        await client.add("second")
        await shipper.step()
        assert 2 == chains_of(mine)[-1].points[-1].commit_seq
        shutil.rmtree(mine)
        await client.add("third")
        await shipper.step()
        chain = chains_of(mine)[-1]
        assert 3 == chain.points[-1].commit_seq
        sum(chain.check())
        other = Shipper(client.ports.store.files.shipping, mine, folder, {}, lambda: NOW)
        with pytest.raises(StoreRefused, match="another memoryd ships to"):
            await other.step()


async def test_a_data_directory_that_cannot_be_made_is_refused_at_once(folder):
    first = await two_texts(folder)
    chain = chains_of(first)[0]
    (folder / "file").write_text("")
    (folder / "link").symlink_to(folder / "elsewhere")
    for name in ("file", "link"):
        with pytest.raises(StoreRefused, match="is there, and no folder"):
            restore(chain, chain.points[-1], folder / name, first / LEDGER, **MORE)
    with pytest.raises(StoreRefused, match="is a mount point"):
        restore(chain, chain.points[-1], Path("/proc"), first / LEDGER, **MORE)


async def test_a_folder_of_backups_is_used_from_inside_and_under_another_name(folder):
    first = await two_texts(folder)
    renamed = first.rename(first.with_name("the-store"))

    def run(at: Path, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "memoryd", *words], cwd=at, capture_output=True, text=True, check=False, timeout=120
        )

    done = run(renamed, "restore", ".", "--data-dir", str(folder / "new"))
    assert 0 == done.returncode, done.stderr
    told = run(renamed.parent, "backup", "verify", ".")
    assert (0, True) == (told.returncode, "a ledger of 1 lines" in told.stdout), told.stderr
    lines = renamed / LEDGER / LINES
    lines.write_bytes(lines.read_bytes().replace(b'"format"', b'"formal"'))
    broken = run(renamed.parent, "backup", "verify", ".")
    assert (78, True) == (broken.returncode, LINES in broken.stderr), broken.stderr
