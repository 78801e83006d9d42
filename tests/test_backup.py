"""A backup leads to every transaction, says what is damaged, and keeps what is needed."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from memory_client import MessageDraft

from memoryd.backup.chain import MANIFEST, BackupDamaged, Chain
from memoryd.backup.folder import chains_of, point_of, prove, prune, restore
from memoryd.backup.points import Point, Points
from memoryd.backup.shipper import Shipper
from memoryd.domain.forgetting.catch_up import catch_up
from memoryd.store.base import Spool
from memoryd.store.opening import StoreRefused
from tests.builders import MEMORY_LIMIT, NOW, Local, open_duckdb, ports_over

STATES = int(os.environ.get("MEMORYD_STATES", "36"))
"""Of all seeds together; `make properties`: 200."""

SPOOL = Spool(64 << 20, lambda: datetime.now(UTC))


@asynccontextmanager
async def shipped(folder: Path, encryption=None):
    """A store whose backups go to a folder, a client of alice, and its shipper."""
    data = folder / "data"
    data.mkdir(exist_ok=True)
    (folder / "backup").mkdir(exist_ok=True)
    store = open_duckdb(data, ledger=data / "ledger", spool=SPOOL)
    info = await store.info()
    header = {"store_id": info.store_id, "schema": info.schema_version}
    target = folder / "backup" / info.store_id
    shipper = Shipper(store.files.shipping, target, data / "ledger", header, SPOOL.clock, encryption)
    async with ports_over(store) as ports:
        await catch_up(ports, now=NOW)
        yield Local(ports, lambda: NOW, user_id="alice"), shipper
        await shipper.step()  # as the daemon does before it stops
    await shipper.finish()


async def digests(store) -> dict[str, tuple]:
    """Return what tells the rows of every table apart."""
    read = store._readers
    tables = await read.read(read.rows, "SELECT table_name FROM duckdb_tables() WHERE NOT internal ORDER BY 1")
    return {
        name: (await read.read(read.rows, f'SELECT count(*), bit_xor(hash("{name}")) FROM "{name}"'))[0]  # noqa: S608
        for (name,) in tables
        if name not in {"meta", "commits", "uses"}
    }


def digests_of(path: Path) -> dict[str, tuple]:
    with duckdb.connect(str(path), read_only=True) as con:
        tables = con.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal ORDER BY 1").fetchall()
        return {
            name: con.execute(f'SELECT count(*), bit_xor(hash("{name}")) FROM "{name}"').fetchall()[0]  # noqa: S608
            for (name,) in tables
            if name not in {"meta", "commits", "uses"}
        }


async def checkpoint(store) -> None:
    await store._writer.run(lambda _: store._writer._fold())


def restored(chains, folder: Path, **wanted) -> tuple[Path, int]:
    chain, point = point_of(chains, **wanted)
    target = folder / "restored"
    shutil.rmtree(target, ignore_errors=True)
    seq = restore(
        chain, point, target, chain.folder.parent / "ledger",
        memory_limit_bytes=MEMORY_LIMIT, random_bytes=os.urandom, closes_sandboxes=True,
    )  # fmt: skip
    return target, seq


@pytest.mark.parametrize("seed", range(3))
async def test_every_transaction_is_reached_and_all_rows_are_equal(folder, seed):
    rng, states = random.Random(seed), {}
    for _ in range(3):
        async with shipped(folder) as (client, shipper):
            store = client.ports.store
            await shipper.step()
            for n in range(rng.randrange(15, 40) + STATES // 8):
                kind = rng.random()
                if kind < 0.5:
                    await client.add(f"note {n} of {rng.random()}")
                elif kind < 0.7:
                    await client.append(f"t{n % 3}", [MessageDraft(content=f"said {n} " * rng.randrange(1, 60))])
                elif kind < 0.85 and (page := (await client.page()).memories):
                    await client.delete(rng.choice(page).id, purge=rng.random() < 0.5)
                states[store._writer.commit_seq] = await digests(store)
                if rng.random() < 0.12:
                    await checkpoint(store)
                if rng.random() < 0.3:
                    await shipper.step()
                if rng.random() < 0.04:
                    await store.files.compact()
    chains = chains_of(next((folder / "backup").iterdir()))
    reached = {point.commit_seq for chain in chains for point in chain.points} & states.keys()
    assert len(reached) > 0.8 * len(states)
    assert max(states) in reached
    assert STATES // 3 <= len(reached), "raise the writes with the states"
    for seq in rng.sample(sorted(reached), STATES // 3):
        target, now = restored(chains, folder, transaction=seq)
        assert states[seq] == digests_of(target / "memory.duckdb"), seq
        assert now == 1_000_000


async def test_a_restored_store_is_served_and_what_was_purged_later_is_gone(folder):
    async with shipped(folder) as (client, shipper):
        store = client.ports.store
        gone = (await client.add("my locker code is blue")).memory
        kept = (await client.add("I like tea")).memory
        await shipper.step()
        before = store._writer.commit_seq
        at = datetime.now(UTC)
        await asyncio.sleep(0.01)
        await client.delete(gone.id, purge=True)
        late = (await client.add("I like boats in Lyon")).memory
        await shipper.step()
    chains = chains_of(next((folder / "backup").iterdir()))
    for wanted in ({"transaction": before}, {"time": at}):
        target, _ = restored(chains, folder, **wanted)
        store = open_duckdb(target, ledger=target / "ledger", spool=SPOOL)
        async with ports_over(store) as ports:
            assert await catch_up(ports, now=NOW)
            client = Local(ports, lambda: NOW, user_id="alice")
            assert [kept.id] == [m.id for m in (await client.page()).memories]
            assert [] == await store.files.traces(gone.id)
            await client.add("and it goes on")
    target, _ = restored(chains, folder)
    store = open_duckdb(target, ledger=target / "ledger")
    async with ports_over(store) as ports:
        assert not await catch_up(ports, now=NOW)
        client = Local(ports, lambda: NOW, user_id="alice")
        assert {kept.id, late.id} == {m.id for m in (await client.page()).memories}
    chain, point = point_of(chains)
    more = {"memory_limit_bytes": MEMORY_LIMIT, "random_bytes": os.urandom, "closes_sandboxes": True}
    with pytest.raises(StoreRefused, match="not empty"):
        restore(chain, point, target, target / "ledger", **more)
    with pytest.raises(StoreRefused, match="no backup reaches back to"):
        point_of(chains, time=datetime(2020, 1, 1, tzinfo=UTC))


async def made(folder: Path) -> Chain:
    """A chain with two images and logs."""
    async with shipped(folder) as (client, shipper):
        for n in range(12):
            await client.add(f"note {n} of tea")
            if n in {3, 7}:
                await checkpoint(client.ports.store)
            await shipper.step()
    return chains_of(next((folder / "backup").iterdir()))[0]


async def test_each_damaged_cut_swapped_or_missing_file_is_refused_by_name(folder):
    chain = await made(folder)
    files = sorted(path for path in chain.folder.iterdir() if path.name != MANIFEST)
    assert {"image-000001", "image-000002", "log-000002"} <= {path.name for path in files}
    sum(chain.check())

    def tried(name: str) -> None:
        with pytest.raises(BackupDamaged, match=name):
            sum(Chain.read(chain.folder).check())
        wanted = Chain.read(chain.folder)
        point = wanted.points[-1]
        if name in {f"log-{point.generation:06d}", *(image.name for image in wanted.images)}:
            with pytest.raises(BackupDamaged, match=name):
                restored([wanted], folder)
            assert not list(folder.glob("restored*"))

    for path in files:
        whole = path.read_bytes()
        if not whole:
            continue
        for damage in (
            lambda data: bytes([*data[: len(data) // 2], data[len(data) // 2] ^ 1, *data[len(data) // 2 + 1 :]]),
            lambda data: data[: len(data) // 2],
            lambda data: data[::-1],
        ):
            path.write_bytes(damage(whole))
            tried(path.name)
        path.unlink()
        tried(path.name)
        path.write_bytes(whole)
    sum(Chain.read(chain.folder).check())
    manifest = chain.folder / MANIFEST
    whole = manifest.read_bytes()
    for at in range(40, len(whole) - 2, len(whole) // 40):
        manifest.write_bytes(whole[:at] + bytes([whole[at] ^ 2]) + whole[at + 1 :])
        with pytest.raises(BackupDamaged, match=r"manifest\.jsonl"):
            Chain.read(chain.folder)
    for end in range(len(whole.splitlines()[0]) + 1, len(whole), len(whole) // 25):
        manifest.write_bytes(whole[:end])
        cut = Chain.read(chain.folder)
        if cut.points:
            restored([cut], folder)


async def test_what_was_written_in_part_does_not_count_and_the_next_step_goes_on(folder):
    chain = await made(folder)
    last = chain.points[-1]
    with (chain.folder / f"log-{chain.generation:06d}").open("ab") as file:
        file.write(b"half a piece")
    (chain.folder / "image-000099.part").write_bytes(b"half an image")
    with (chain.folder / MANIFEST).open("ab") as file:
        file.write(b'{"log":9,"start"')
    begun = chain.folder.with_name("999999999999-20990101T000000Z")
    begun.mkdir()
    (begun / MANIFEST).write_bytes(b'{"format":1,"store')
    async with shipped(folder) as (client, shipper):
        await client.add("one more")
        await shipper.step()
        seq = client.ports.store._writer.commit_seq
    again = chains_of(next((folder / "backup").iterdir()))
    assert [chain.folder] == [one.folder for one in again]
    assert last.commit_seq < seq == again[0].points[-1].commit_seq
    restored(again, folder)


async def test_a_folder_that_cannot_be_written_is_told_and_shipped_to_when_it_can_again(folder):
    async with shipped(folder) as (client, shipper):
        await client.add("I like tea")
        await shipper.step()
        store_folder = shipper._store
        away = store_folder.rename(folder / "away")
        store_folder.write_text("a file")
        await client.add("I like boats in Lyon")
        for _ in range(3):
            with pytest.raises((FileExistsError, NotADirectoryError)):
                await shipper.step()
        assert shipper.fault
        assert not client.ports.store._writer.checkpoints.tails.is_copied
        await client.add("writes go on")
        store_folder.unlink()
        away.rename(store_folder)
        await shipper.step()
        assert "" == shipper.fault
        expected = await digests(client.ports.store)
    target, _ = restored(chains_of(store_folder), folder)
    assert expected == digests_of(target / "memory.duckdb")


async def test_a_copy_does_not_stop_writes_and_is_of_one_moment(folder):
    async with shipped(folder) as (client, shipper):
        for n in range(40):
            await client.add(f"note {n} of tea " + "x" * 3000)
        await shipper.step()
        store = client.ports.store

        async def write():
            for n in range(30):
                await client.add(f"more {n}")
                await checkpoint(store)  # waits while the file is copied

        writing = asyncio.create_task(write())
        for _ in range(4):
            await shipper.begin_chain()
        await writing
        await shipper.step()
        expected = await digests(store)
        assert store._writer.checkpoints.tails.is_copied is False
    chains = chains_of(next((folder / "backup").iterdir()))
    assert len(chains) > 1
    target, _ = restored(chains, folder)
    assert expected == digests_of(target / "memory.duckdb")


async def test_old_chains_go_whole_and_never_the_newest_or_the_last_proved(folder):
    async with shipped(folder) as (client, shipper):
        for n in range(5):
            await client.add(f"note {n} of tea")
            await shipper.begin_chain()
            if n == 2:
                await shipper.prove(MEMORY_LIMIT)
    store = next((folder / "backup").iterdir())
    chains = chains_of(store)
    assert 5 == len(chains)
    later = datetime.now(UTC) + timedelta(days=40)
    assert [] == prune(chains, now=datetime.now(UTC), keep=timedelta(days=30))
    would = prune(chains, now=later, keep=timedelta(days=30), dry_run=True)
    gone = [chains[0], chains[1], chains[3]]
    assert [chain.folder for chain in gone] == [pruned.chain.folder for pruned in would]
    assert 5 == len(chains_of(store))
    prune(chains, now=later, keep=timedelta(days=30))
    left = chains_of(store)
    assert [chains[2].folder, chains[4].folder] == [chain.folder for chain in left]
    prove(left[0], left[0].points[-1], memory_limit_bytes=MEMORY_LIMIT)


async def test_a_manifest_names_nothing_that_was_stored(folder):
    chain = await made(folder)
    text = (chain.folder / MANIFEST).read_text()
    assert "tea" not in text
    assert "alice" not in text
    assert all(json.loads(line) for line in text.splitlines())
    assert all(0o600 == path.stat().st_mode & 0o777 for path in chain.folder.iterdir())


def test_of_a_million_states_a_daemon_keeps_two_and_a_reader_32_bytes_each():
    whole, brief = Points(), Points(in_brief=True)
    for n in range(100_000):
        for points in (whole, brief):
            points.append(Point(n // 2, 10 * n, 1, 100 * n))
    assert (100_000, 50_000) == (len(whole), whole.state_count)
    assert (2, 50_000) == (len(brief), brief.state_count)
    assert [whole[0], whole[-1]] == list(brief) == [Point(0, 0, 1, 0), Point(49_999, 999_990, 1, 9_999_900)]
    assert whole[70_000:70_002] == [Point(35_000, 700_000, 1, 7_000_000), Point(35_000, 700_010, 1, 7_000_100)]
    assert sum(column.buffer_info()[1] * column.itemsize for column in whole._columns) == 32 * len(whole)


async def test_what_is_kept_in_brief_says_the_same_of_a_chain(folder):
    async with shipped(folder) as (client, shipper):
        for n in range(6):
            await client.add(f"note {n} of the day")
            await shipper.step()
        assert len(shipper._writer.chain.points) == 2
    store = next((folder / "backup").iterdir())
    whole, brief = chains_of(store)[0], chains_of(store, in_brief=True)[0]
    assert len(whole.points) > 2
    assert (whole.points[0], whole.points[-1]) == tuple(brief.points)
    assert whole.points.state_count == brief.points.state_count == len({point.commit_seq for point in whole.points})
    assert (whole.hashes, whole.line_count) == (brief.hashes, brief.line_count)
