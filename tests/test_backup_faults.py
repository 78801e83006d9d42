"""What goes wrong while a backup is written leaves no state that is not what it says, and no ledger that is lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import threading
import zlib
from pathlib import Path

import pytest

from memoryd.backup import shipper as shippers
from memoryd.backup.chain import MANIFEST, BackupDamaged, Chain
from memoryd.backup.chain_writer import ChainWriter
from memoryd.backup.folder import chains_of, point_of, prove, restore
from memoryd.backup.ledgers import LEDGER, LedgerMirror
from memoryd.backup.points import Point, Points
from memoryd.backup.shipper import Shipper
from memoryd.errors import Unavailable
from memoryd.store.ledger import KEY, LINES
from memoryd.store.lines import LineFile, read_line
from memoryd.store.opening import StoreRefused
from tests.builders import MEMORY_LIMIT, open_duckdb
from tests.support import until
from tests.test_backup import SPOOL, digests, digests_of, restored, shipped


def the_store(folder: Path) -> Path:
    return next((folder / "backup").iterdir())


async def test_a_file_that_changes_while_it_is_copied_is_not_a_state(folder, monkeypatch):
    async with shipped(folder) as (client, shipper):
        for n in range(30):
            await client.add(f"note {n} of tea " + "x" * 2000)
        store, loop = client.ports.store, asyncio.get_running_loop()
        copy = ChainWriter.copy

        def changed_meanwhile(self, source, size):
            image = copy(self, source, size)
            work = store._writer.run(lambda con: con.execute("CHECKPOINT"))  # as DuckDB makes one by itself
            asyncio.run_coroutine_threadsafe(work, loop).result(30)
            return image

        with monkeypatch.context() as planted:
            planted.setattr(ChainWriter, "copy", changed_meanwhile)
            with pytest.raises(Unavailable, match="copied again"):
                await shipper.step()
        assert all(not chain.points for chain in chains_of(the_store(folder)))
        await shipper.step()
        expected = await digests(store)
    target, _ = restored(chains_of(the_store(folder)), folder)
    assert expected == digests_of(target / "memory.duckdb")


@pytest.mark.parametrize("at", ["step", "add_log", "copy", "add_image"])
async def test_a_step_that_is_cancelled_anywhere_loses_nothing(folder, monkeypatch, at):
    async with shipped(folder) as (client, shipper):
        await client.add("first")
        await shipper.step()
        reached, go_on = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        where = LedgerMirror if at == "step" else ChainWriter
        real = getattr(where, at)

        def slow(*args, **more):
            loop.call_soon_threadsafe(reached.set)
            asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(30)
            return real(*args, **more)

        with monkeypatch.context() as planted:
            planted.setattr(where, at, slow)
            for n in range(3):
                await client.add(f"note {n}")
                if at in {"copy", "add_image"}:
                    await client.ports.store._writer.run(lambda _: client.ports.store._writer._fold())
                reached.clear()
                go_on.clear()
                step = asyncio.create_task(shipper.step())
                await asyncio.wait_for(reached.wait(), 30)
                step.cancel()
                await asyncio.sleep(0.05)
                go_on.set()
                with contextlib.suppress(asyncio.CancelledError):
                    await step
        await shipper.step()
        assert not client.ports.store._writer.checkpoints.tails.is_copied
        expected = await digests(client.ports.store)
    chains = chains_of(the_store(folder))
    sum(count for chain in chains for count in chain.check())
    target, _ = restored(chains, folder)
    assert expected == digests_of(target / "memory.duckdb")


@pytest.mark.parametrize("writes", [1, 9])
async def test_the_last_state_is_that_of_the_store_that_an_operator_has_put_back(folder, writes):
    async with shipped(folder) as (client, shipper):
        await client.add("first")
        await shipper.step()
    older = folder / "older"
    shutil.copytree(folder / "data", older, ignore=shutil.ignore_patterns("ledger", "*.lock"))
    async with shipped(folder) as (client, shipper):
        for n in range(5):
            await client.add(f"given up {n}")
        await shipper.step()
    shutil.copytree(older, folder / "data", dirs_exist_ok=True)
    (folder / "data" / "memory.duckdb.wal").unlink(missing_ok=True)
    async with shipped(folder) as (client, shipper):
        for n in range(writes):  # before anything is shipped: more than was given up
            await client.add(f"it goes on from here, {n}")
        await shipper.step()
        expected = await digests(client.ports.store)
    chains = chains_of(the_store(folder))
    first, second = (chain.header["reason"] for chain in chains)
    assert "there was none" == first
    assert second.startswith(f"{chains[0].folder.name} ends with transaction {chains[0].points[-1].commit_seq}, the st")
    target, _ = restored(chains, folder)
    assert expected == digests_of(target / "memory.duckdb")
    given_up = chains[0].points[-1].commit_seq
    chain, point = point_of(chains, transaction=given_up)
    assert (chains[0] if writes == 1 else chains[1], given_up) == (chain, point.commit_seq)  # nine have passed it
    assert f"ends with transaction {given_up}" in shipper.put_back


async def test_a_chain_that_was_asked_for_first_is_gone_on_with_after_a_fault(folder):
    async with shipped(folder) as (client, shipper):
        await client.add("before the first look")
        await shipper.begin_chain()
        for n in range(3):
            await client.add(f"note {n}")
            await shipper.step()
            shipper._drop()
    assert ["it was asked for", ""] == [chains_of(the_store(folder))[0].header["reason"], shipper.put_back]
    assert 1 == len(chains_of(the_store(folder)))


def test_a_transaction_is_taken_from_the_newest_chain_that_reaches_it():
    def chain(name: str, *numbers: int) -> Chain:
        made = Chain(Path(name), {}, points=Points())
        for number in numbers:
            made.points.append(Point(number, number, 1, 0))
        return made

    given_up, after = chain("1", *range(1, 61)), chain("2", *(n for n in range(40, 56) if n != 50))  # put back at 40
    told = {n: point_of([given_up, after], transaction=n) for n in range(1, 61)}
    found = {n: (chain.folder.name, point.commit_seq) for n, (chain, point) in told.items()}
    assert {n: ("1", n) for n in range(1, 40)} == {n: found[n] for n in range(1, 40)}
    assert ("2", 49) == found[50], "a state that the new chain lacks is not looked for among what was given up"
    assert {("2", n) for n in range(40, 56) if n != 50} <= set(found.values())
    assert {n: ("1", n) for n in range(56, 61)} == {n: found[n] for n in range(56, 61)}
    with pytest.raises(StoreRefused, match="no backup reaches transaction 61; the last is 60"):
        point_of([given_up, after], transaction=61)


async def test_numbers_are_never_given_twice(folder):
    async with shipped(folder) as (client, shipper):
        await client.add("first")
        await shipper.step()
    chain, point = point_of(chains_of(the_store(folder)))
    more = {"memory_limit_bytes": MEMORY_LIMIT, "random_bytes": os.urandom, "closes_sandboxes": True}
    ledger = the_store(folder) / LEDGER
    assert 1_000_000 == restore(chain, point, folder / "a", ledger, **more)
    assert 3_000_000 == restore(chain, point, folder / "b", ledger, above=2_000_017, **more)


async def test_a_ledger_never_takes_the_place_of_one_that_knows_more(folder):
    async with shipped(folder) as (client, shipper):
        gone = (await client.add("my locker code is blue")).memory
        await client.delete(gone.id, purge=True)
        await shipper.step()
    mirrored = (the_store(folder) / LEDGER / LINES).read_bytes()
    shutil.rmtree(folder / "data" / "ledger")
    async with shipped(folder) as (client, shipper):
        await client.add("more")
        await shipper.step()
        assert "does not go on with" in shipper.ledger_fault
    assert mirrored == (the_store(folder) / LEDGER / LINES).read_bytes()
    with pytest.raises(StoreRefused, match="does not go on with"):
        LedgerMirror(folder / "data" / "ledger", the_store(folder)).step()
    shutil.copytree(the_store(folder) / LEDGER, folder / "data" / "ledger", dirs_exist_ok=True)
    key = folder / "data" / "ledger" / KEY
    key.write_text(f"{os.urandom(32).hex()}\n")
    with pytest.raises(StoreRefused, match="is not the key of"):
        open_duckdb(folder / "data", ledger=folder / "data" / "ledger")


async def test_the_mirror_of_a_ledger_is_added_to_and_takes_whole_lines_alone(folder):
    async with shipped(folder) as (client, shipper):
        await shipper.step()
        ledger, mirrored = folder / "data" / "ledger" / LINES, the_store(folder) / LEDGER / LINES
        was = mirrored.stat().st_ino
        for n in range(5):
            gone = (await client.add(f"my locker code is {n} blue")).memory
            await client.delete(gone.id, purge=True)
            if n == 3:
                with mirrored.open("ab") as torn:  # of a step that was killed
                    torn.write(ledger.read_bytes()[mirrored.stat().st_size :][:7])
            await shipper.step()
            assert ledger.read_bytes() == mirrored.read_bytes()
        assert was == mirrored.stat().st_ino
        whole = ledger.read_bytes()
        with ledger.open("ab") as half:
            half.write(b'{"purge":6,')
        LedgerMirror(ledger.parent, the_store(folder)).step()
        assert whole == mirrored.read_bytes()
        os.truncate(ledger, len(whole))


async def test_a_step_that_hangs_holds_no_one_up_and_nothing_is_written_until_it_ends(folder, monkeypatch):
    async with shipped(folder) as (client, shipper):
        await shipper.step()
        let_go, real = threading.Event(), ChainWriter.add_log
        monkeypatch.setattr(shippers, "PATIENCE_S", 0.05)
        monkeypatch.setattr(ChainWriter, "add_log", lambda *args: let_go.wait(30) and real(*args))
        await client.add("first")
        step = asyncio.create_task(shipper.step())
        await asyncio.sleep(0.3)
        step.cancel()
        with pytest.raises(asyncio.CancelledError):
            await step
        assert shipper.is_stuck
        with pytest.raises(Unavailable, match="does not answer"):
            await shipper.step()
        let_go.set()
        assert await asyncio.to_thread(until, lambda: not shipper.is_stuck)
        await client.add("second")
        await shipper.step()
        expected = await digests(client.ports.store)
    target, _ = restored(chains_of(the_store(folder)), folder)
    assert expected == digests_of(target / "memory.duckdb")


async def test_no_link_in_the_folder_of_backups_is_followed(folder):
    precious = folder / "precious"
    async with shipped(folder) as (client, shipper):
        await shipper.step()
        store = the_store(folder)
        chain = next(path.parent for path in store.glob(f"*/{MANIFEST}"))
        for place in (chain / "log-000001", chain / "image-000002.part", store / LEDGER / f"{KEY}.part"):
            precious.write_bytes(b"mine")
            place.unlink(missing_ok=True)
            place.symlink_to(precious)
            (store / LEDGER / KEY).unlink(missing_ok=True)
            await client.add(f"note of {place.name}")
            if place.name.startswith("image"):
                await client.ports.store._writer.run(lambda _: client.ports.store._writer._fold())
            with contextlib.suppress(OSError):
                await shipper.step()
            assert b"mine" == precious.read_bytes(), place
            place.unlink(missing_ok=True)
        await shipper.step()


async def test_a_proof_that_is_stopped_leaves_no_copy(folder):
    async with shipped(folder) as (client, shipper):
        await client.add("I like tea")
        await shipper.begin_chain()
        store = the_store(folder)
        proof = asyncio.create_task(shipper.prove(MEMORY_LIMIT))
        assert await asyncio.to_thread(until, lambda: any(store.glob(".memoryd-scratch-*")))
        proof.cancel()
        with pytest.raises(asyncio.CancelledError):
            await proof
        assert not list(store.glob(".memoryd-scratch-*"))


async def test_a_manifest_that_someone_made_is_refused_by_its_name(folder):
    async with shipped(folder) as (client, shipper):
        await client.add("I like tea")
        await shipper.step()
    manifest = next(the_store(folder).glob(f"*/{MANIFEST}"))
    header = read_line(manifest.read_bytes().splitlines()[0], manifest, 1)
    nested = b'{"number":1,"x":' + b"[" * 200_000 + b"]" * 200_000
    for name, value in (("recipients", 5), ("recipients", [5]), ("store_id", 7), ("key", None), ("time", 1.5)):
        manifest.unlink()
        file = LineFile(manifest)
        file.write({**header, name: value})
        file.close()
        with pytest.raises(BackupDamaged, match="is no manifest of a backup"):
            chains_of(the_store(folder))
    manifest.unlink()
    file = LineFile(manifest)
    file.write(header)
    file.close()
    with manifest.open("ab") as written:
        written.write(nested + b',"crc":' + str(zlib.crc32(nested)).encode() + b"}\n")
    faults = []
    assert [] == chains_of(the_store(folder), faults)
    assert "damaged in line 2" in faults[0]


async def test_a_restored_store_does_not_start_without_a_ledger(folder):
    async with shipped(folder) as (client, shipper):
        await client.add("first")
        await shipper.step()
    target, _ = restored(chains_of(the_store(folder)), folder)
    with pytest.raises(StoreRefused, match="holds no ledger of purges"):
        open_duckdb(target, ledger=folder / "elsewhere")
    await open_duckdb(target, ledger=target / "ledger").close()
    shutil.rmtree(the_store(folder) / LEDGER)
    with pytest.raises(StoreRefused, match="is missing: without the ledger"):
        restored(chains_of(the_store(folder)), folder)


async def test_a_chain_that_cannot_be_read_does_not_keep_the_others_from_being_used(folder):
    async with shipped(folder) as (client, shipper):
        for n in range(3):
            await client.add(f"note {n}")
            await shipper.begin_chain()
        expected = await digests(client.ports.store)
    store, faults = the_store(folder), []
    manifest = chains_of(store)[0].folder / "manifest.jsonl"
    data = manifest.read_bytes()
    manifest.write_bytes(data[:50] + b"!" + data[51:])
    chains = chains_of(store, faults)
    assert (2, 1) == (len(chains), len(faults))
    target, _ = restored(chains, folder)
    assert expected == digests_of(target / "memory.duckdb")
    chain, point = point_of(chains)
    prove(chain, point, memory_limit_bytes=MEMORY_LIMIT)
    assert {path.name for path in store.glob(".*")} <= {".lock"}  # nothing of the trial


async def test_two_daemons_do_not_ship_to_one_folder(folder):
    async with shipped(folder) as (client, shipper):
        await client.add("first")
        await shipper.step()
        files = client.ports.store.files
        other = Shipper(files.shipping, the_store(folder), folder / "data" / "ledger", {}, SPOOL.clock)
        with pytest.raises(StoreRefused, match="another memoryd ships"):
            await other.step()


async def test_a_copy_that_fails_leaves_nothing_behind(folder, monkeypatch):
    async with shipped(folder) as (client, shipper):
        await client.add("first")
        await shipper.step()
        before = sorted(path.name for path in the_store(folder).rglob("*"))
        await client.add("second")
        await client.ports.store._writer.run(lambda _: client.ports.store._writer._fold())

        def full(*_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as planted:
            planted.setattr(os, "pread", full)
            for _ in range(3):
                with pytest.raises(OSError, match="No space"):
                    await shipper.step()
        assert before == sorted(path.name for path in the_store(folder).rglob("*"))
        await shipper.step()
        assert "" == shipper.fault
