"""Notes in a store: quotas, restarts, compaction, the ledger, copies, and who may erase what."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from memory_client import (
    Conflict,
    LimitExceeded,
    MemoryClient,
    NoteNotFound,
    PermissionDenied,
    StoreDamaged,
    TrustTooLow,
)

from memoryd.domain.forgetting.collect import collect
from memoryd.domain.notes.erase import erase_notes, notes_of
from memoryd.domain.transfer.bring_in import bring_in
from tests.builders import Local, open_duckdb, ports_over, ram_store
from tests.doors import socket_of
from tests.test_ledger import copied, served
from tests.test_transfer import exported

STORES = pytest.mark.parametrize("opened", [lambda _: ram_store(), open_duckdb], ids=["ram", "duckdb"])


@STORES
async def test_a_grant_stores_no_more_bytes_than_its_quota(folder, clock, opened):
    async with ports_over(opened(folder)) as ports:
        inside = Local(ports, clock, user_id="alice", grant_id="g", stored_bytes=1000)

        async def used() -> int:
            return (await ports.store.grants.usage("g", clock().date())).stored_bytes

        await inside.put_note("a", "x" * 600)
        with pytest.raises(LimitExceeded, match="600 of 1000"):
            await inside.put_note("b", "x" * 500)
        with pytest.raises(LimitExceeded):
            await inside.put_note("a", "y" * 500)
        await inside.put_note("a", "y" * 300)
        assert 900 == await used()
        await inside.move_note("a", "c")
        assert 900 == await used()
        for n in range(12):
            await inside.put_note("c", f"{n}")
        assert 12 == await used(), "ten versions, two of them of two digits"
        await inside.delete_notes("c")
        assert 0 == await used()
        await inside.put_note("d", "x" * 100)
        await Local(ports, clock, user_id="alice").forget_user()
        assert 0 == await used()


@STORES
async def test_what_has_expired_is_collected_after_its_grace(folder, clock, opened):
    async with ports_over(opened(folder)) as ports:
        for user in ("alice", "bob"):
            for n in range(3):
                await Local(ports, clock, user_id=user).put_note(f"n{n}", "x", expire_after_s=3600 * (n + 1))
        alice = Local(ports, clock, user_id="alice")
        clock.now += timedelta(days=ports.policy.expired_grace_days, hours=2, minutes=30)
        assert 4 == (await collect(ports, now=clock(), dry_run=True)).note_count
        assert 4 == (await collect(ports, now=clock())).note_count
        assert 0 == (await collect(ports, now=clock())).note_count
        assert 1 == await ports.store.notes.count(await owner_of(alice))


async def owner_of(local: Local):
    return local._caller.writes_to(shared=False)


@pytest.mark.parametrize("seed", range(3))
async def test_notes_are_what_a_dictionary_would_say_over_restarts_compactions_and_copies(folder, clock, seed):
    chance, expected = random.Random(seed), {}
    for _ in range(4):
        async with ports_over(open_duckdb(folder)) as ports:
            me = Local(ports, clock, user_id="alice")
            for _ in range(40):
                clock.now += timedelta(seconds=1)
                path = f"{chance.choice('abc')}/{chance.randrange(4)}"
                step = chance.randrange(6)
                if step <= 2:
                    text = "".join(chance.choice("aé😀 ") for _ in range(chance.choice([0, 5, 5000, 30_000])))
                    await me.put_note(path, text)
                    before = expected.get(path, [])
                    expected[path] = before if before[:1] == [text] else [text, *before][:10]
                elif step == 3 and path in expected:
                    await me.delete_notes(path)
                    del expected[path]
                elif step == 4 and path in expected:
                    target = f"{chance.choice('abc')}/{chance.randrange(4)}"
                    if target in expected:
                        if target != path:
                            with pytest.raises(Conflict):
                                await me.move_note(path, target)
                    else:
                        await me.move_note(path, target)
                        expected[target] = expected.pop(path)
            if chance.random() < 0.5:
                await ports.store.files.compact()
            await agree(me, expected)
        async with ports_over(open_duckdb(folder)) as ports:
            await agree(Local(ports, clock, user_id="alice"), expected)
    async with ports_over(open_duckdb(folder)) as ports:
        lines = await exported(ports)
    (folder / "other").mkdir()
    async with ports_over(open_duckdb(folder / "other")) as ports:
        await bring_in(lines, ports, now=clock())
        await agree(Local(ports, clock, user_id="alice"), expected)
        assert lines == await exported(ports)
        again = await bring_in(lines, ports, now=clock())
        assert (0, len(lines)) == (again.new.total(), again.known.total())


async def agree(me: Local, expected: dict[str, list[str]]) -> None:
    found = {}
    async for note in me.all_notes():
        versions = [version.revision for version in (await me.note(note.path)).versions]
        found[note.path] = [(await me.note(note.path, revision=one)).text for one in versions]
    assert expected == found


async def test_a_piece_that_is_lost_is_damage_and_no_shorter_note(folder, clock):
    async with ports_over(open_duckdb(folder)) as ports:
        me = Local(ports, clock, user_id="alice")
        await me.put_note("n", "x" * 10_000)
        await ports.store._writer.run(lambda con: con.execute("DELETE FROM note_texts WHERE ends_with(key, ':1')"))
        with pytest.raises(StoreDamaged, match="lost a piece of a note"):
            await me.note("n")


async def test_what_was_put_anew_meanwhile_is_looked_at_again(clock):
    async with ports_over(ram_store()) as ports:
        me = Local(ports, clock, user_id="alice")
        for path in ("a", "b", "c"):
            await me.put_note(path, "old")
        seen = await notes_of(await owner_of(me), ports)
        await me.put_note("a", "new")
        await me.delete_notes("b")
        await me.put_note("b", "another of this path")
        await erase_notes(seen, ports, now=clock(), is_meant=lambda note: note.revision == 1)
        assert ["a", "b"] == [note.path async for note in me.all_notes()]


async def test_an_erased_note_does_not_come_back_with_an_older_copy(folder):
    async with served(folder) as client:
        for path in ("a", "b", "c"):
            await client.put_note(path, f"secret {path}")
        for n in range(12):
            await client.put_note("a", f"secret number {n}")
        await client.put_note("named", "ask Bob Miller")
        await client.put_note("named", "ask someone")
    copied(folder, folder / "before")
    async with served(folder) as client:
        for n in range(12):
            await client.put_note("a", f"later {n}")
        await client.delete_notes("a")
        await client.move_note("b", "moved")
        await client.delete_notes("moved")
        await client.put_note("b", "a new one")
        await client.add("Bob Miller likes tea")
        await client.forget_person("Bob Miller", with_messages=True)
    copied(folder / "before", folder)
    async with served(folder) as client:
        assert ["c", "named"] == [note.path async for note in client.all_notes()]
        assert [2] == [version.revision for version in (await client.note("named")).versions]
        for gone in ("secret number", "secret b", "Bob Miller"):
            assert [] == await client.ports.store.files.traces(gone)
        assert 1 == (await client.put_note("a", "again")).revision
    async with served(folder) as client:
        assert "again" == (await client.note("a")).text


def test_a_sandbox_keeps_notes_and_takes_none_of_the_host(world):
    box = world.sandbox("full", user_id="nora", chat_ids=("team",))
    with world.admin("nora") as host, MemoryClient(socket_of(box), user_id="nora") as inside:
        host.put_note("rules", "the host's")
        inside.put_note("mine", "first")
        assert "sandbox" == inside.note("mine").now.trust.value
        for call in (
            lambda: inside.put_note("rules", "overwritten"),
            lambda: inside.delete_notes("rules"),
            lambda: inside.delete_notes("", recursive=True),
            lambda: inside.delete_notes("", recursive=True, dry_run=True),
            lambda: inside.move_note("rules", "away"),
            inside.forget_user,
        ):
            with pytest.raises(TrustTooLow):
                call()
        assert "the host's" == inside.note("rules").text
        host.put_note("mine", "the host's now")
        with pytest.raises(TrustTooLow):
            inside.put_note("mine", "again")
        with pytest.raises(TrustTooLow):
            inside.delete_notes("mine")
        assert 2 == host.delete_notes("", recursive=True).deleted_count
        inside.put_note("own", "x")
        assert 1 == inside.delete_notes("own").deleted_count
    with MemoryClient(socket_of(world.sandbox("read-only", user_id="nora")), user_id="nora") as reader:
        with pytest.raises(PermissionDenied):
            reader.notes()


def test_among_users_of_a_chat_a_sandbox_erases_no_note_of_another(world):
    boxes = [world.sandbox("full", user_id=user, chat_ids=("crew",)) for user in ("ola", "pia")]
    with (
        MemoryClient(socket_of(boxes[0]), chat_id="crew") as ola,
        MemoryClient(socket_of(boxes[1]), chat_id="crew") as pia,
    ):
        ola.put_note("plan", "ola's", shared=True)
        assert ("ola's", "ola") == (pia.note("plan", shared=True).text, pia.note("plan", shared=True).now.author)
        with pytest.raises(TrustTooLow):
            pia.delete_notes("plan", shared=True)
        pia.put_note("plan", "pia's", shared=True)
        assert "ola's" == ola.note("plan", shared=True, revision=1).text
        with pytest.raises(TrustTooLow):
            ola.delete_notes("plan", shared=True)
        with pytest.raises(NoteNotFound):
            ola.note("plan")
