"""Notes in a store: quotas, restarts, compaction, the ledger, copies, and who may erase what."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from memory_client import (
    Conflict,
    Filter,
    InvalidArgument,
    Kind,
    LimitExceeded,
    MemoryClient,
    NoteNotFound,
    PermissionDenied,
    StoreDamaged,
    TrustTooLow,
)

from memoryd.domain.forgetting.collect import collect
from memoryd.domain.notes.erase import erase_notes
from memoryd.domain.notes.keep import _touch
from memoryd.domain.transfer.bring_in import bring_in
from memoryd.domain.writing.reembed import Reembedder
from memoryd.model.trust import Trust
from tests.builders import Local, open_duckdb, ports_over, ram_store
from tests.doors import socket_of
from tests.test_reembed import OtherEncoder
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


async def near(me: Local, query: str) -> dict[str, float]:
    result = await me.search(query, filter=Filter(kinds=frozenset({Kind.NOTE})), min_score=0.0, limit=100)
    return {hit.memory.key: round(hit.similarity, 3) for hit in result.hits}


async def test_notes_keep_words_and_vectors_over_a_restart_and_get_those_of_a_new_model(folder, clock):
    def opened(encoder=None):
        return ports_over(open_duckdb(folder), encoder=encoder)

    async with opened() as ports:
        me = Local(ports, clock, user_id="alice")
        for n in range(40):
            await me.put_note(f"n{n}", f"the harbour of town {n}, {'and so on ' * (n * 40)}", is_searched=n % 2 == 0)
        await me.move_note("n2", "moved")
        await me.put_note("n4", "a walnut tree", is_searched=True)
        await me.put_note("n6", "the harbour of town 6, " + "and so on " * 240)
        before = await near(me, "the harbour of town 8")
        assert (20 - 1, set()) == (len(before), {"n2", "n6", "n7"} & before.keys())
        assert before["n4"] < before["moved"] < before["n0"]
    async with opened() as ports:
        assert before == await near(Local(ports, clock, user_id="alice"), "the harbour of town 8")
        lines = await exported(ports)
    async with opened(OtherEncoder()) as ports:
        me = Local(ports, clock, user_id="alice")
        assert 0.0 == (await near(me, "the harbour of town 8"))["moved"], "vectors of two models are not compared"
        reembedder = Reembedder(ports, clock, lambda *_: None)
        while await reembedder._step():
            pass
        assert [] == await ports.store.notes.unembedded(OtherEncoder.fingerprint, limit=100)
        assert before.keys() == (await near(me, "the harbour of town 8")).keys()
        assert (await near(me, "the harbour of town 8"))["moved"] > 0.0
    (folder / "other").mkdir()
    async with ports_over(open_duckdb(folder / "other")) as ports:
        await bring_in(lines, ports, now=clock())
        me = Local(ports, clock, user_id="alice")
        assert before.keys() - {"n4"} == (await near(me, "the harbour of town 8")).keys(), "by their words"
        reembedder = Reembedder(ports, clock, lambda *_: None)
        while await reembedder._step():
            pass
        assert before == await near(me, "the harbour of town 8")
        assert lines == await exported(ports)


async def test_a_piece_that_is_lost_is_damage_and_no_shorter_note(folder, clock):
    async with ports_over(open_duckdb(folder)) as ports:
        me = Local(ports, clock, user_id="alice")
        await me.put_note("n", "x" * 10_000)
        await ports.store._writer.run(lambda con: con.execute("DELETE FROM note_texts WHERE ends_with(key, ':1')"))
        with pytest.raises(StoreDamaged, match="lost a piece of a note"):
            await me.note("n")
        await ports.store._writer.run(lambda con: con.execute("DELETE FROM note_texts"))
        for read in (lambda: me.note("n"), lambda: me.notes(with_content=True), lambda: exported(ports)):
            with pytest.raises(StoreDamaged, match="lost the text of a note"):
                await read()


async def test_what_was_put_anew_meanwhile_is_looked_at_again(clock):
    async with ports_over(ram_store()) as ports:
        me = Local(ports, clock, user_id="alice")
        for path in ("a", "b", "c"):
            await me.put_note(path, "old")
        seen = await ports.store.notes.page(await owner_of(me), limit=9)
        await me.put_note("a", "new")
        await me.delete_notes("b")
        await me.put_note("b", "another of this path")
        await erase_notes(seen, ports, now=clock(), is_meant=lambda note: note.revision == 1)
        assert ["a", "b"] == [note.path async for note in me.all_notes()]


async def test_what_was_moved_meanwhile_is_erased_where_it_is(clock):
    async with ports_over(ram_store()) as ports:
        me = Local(ports, clock, user_id="alice")
        for path in ("a", "b"):
            await me.put_note(path, "ask Bob Miller")
        seen = await ports.store.notes.page(await owner_of(me), limit=9)
        await me.move_note("a", "elsewhere")
        await me.put_note("a", "another")
        assert ["elsewhere", "b"] == [note.path for note in await erase_notes(seen, ports, now=clock())]
        assert [] == await erase_notes(seen, ports, now=clock())
        assert ["a"] == [note.path async for note in me.all_notes()]


async def test_a_note_that_the_host_puts_meanwhile_is_not_forgotten_by_a_sandbox(clock):
    async with ports_over(ram_store()) as ports:
        host, inside = (Local(ports, clock, user_id="alice") for _ in range(2))
        inside._grant["trust"] = Trust.SANDBOX
        await inside.put_note("a", "ask Bob Miller")
        await inside.add("Bob Miller likes tea")
        texts, put = ports.store.notes.texts, []

        async def late(owner, versions):
            if len(put) < 2:  # before the second of two looks
                put.append(1)
                if len(put) == 2:
                    await host.put_note("a", "the host asks Bob Miller")
            return await texts(owner, versions)

        ports.store.notes.texts = late
        with pytest.raises(TrustTooLow):
            await inside.forget_person("Bob Miller", with_messages=True)
        assert "the host asks Bob Miller" == (await host.note("a")).text


@STORES
async def test_a_new_text_keeps_no_vector_of_the_old(folder, clock, opened):
    async with ports_over(opened(folder)) as ports:
        for user in ("ola", "pia"):
            inside = Local(ports, clock, user_id=user, chat_id="crew")
            inside._grant["trust"] = Trust.SANDBOX
            await inside.put_note("n", f"the harbour of {user}", shared=True, is_searched=user == "ola")
            waiting = await ports.store.notes.unembedded(ports.embedder.fingerprint, limit=9)
            assert ["n"] * (user == "pia") == [note.path for note in waiting]


async def test_a_read_moves_the_end_neither_back_nor_past_what_was_said(clock):
    async with ports_over(ram_store()) as ports:
        me = Local(ports, clock, user_id="alice")
        begun = clock.now
        put = await me.put_note("n", "a", expire_after_s=250, expire_after_access_s=100)
        assert timedelta(seconds=100) == put.expire_time - begun
        for seconds in (90, 90, 60):
            clock.now += timedelta(seconds=seconds)
            found = await me.note("n")
        assert timedelta(seconds=250) == found.expire_time - begun
        clock.now += timedelta(seconds=10)
        with pytest.raises(NoteNotFound):
            await me.note("n")
        await me.put_note("m", "a", expire_after_access_s=100)
        old = await ports.store.notes.get(await owner_of(me), "m")
        await me.put_note("m", "a")
        clock.now += timedelta(seconds=50)
        await _touch([old], ports, clock.now)
        assert (await me.note("m")).expire_time is None, "what was said since counts"
        await me.put_note("m", "a", expire_after_access_s=1000)
        clock.now += timedelta(seconds=500)
        await _touch([old], ports, clock.now)
        assert 1000 == (await me.note("m")).expire_after_access_s


async def test_more_than_a_hundred_move_in_parts_and_to_no_credential(clock):
    async with ports_over(ram_store()) as ports:
        me = Local(ports, clock, user_id="alice")
        for n in range(101):
            await me.put_note(f"a/{n}", "x")
        with pytest.raises(LimitExceeded, match="move parts of them"):
            await me.move_note("a", "b", recursive=True)
        await me.delete_notes("a/0")
        assert 100 == (await me.move_note("a", "b", recursive=True)).moved_count
        token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
        for put in (lambda: me.put_note(f"a/{token}", "x"), lambda: me.move_note("b/1", f"a/{token}")):
            with pytest.raises(InvalidArgument, match="path holds a credential"):
                await put()


def test_a_sandbox_keeps_notes_and_takes_none_of_the_host(world):
    box = world.sandbox("full", user_id="nora", chat_ids=("team",))
    with world.admin("nora") as host, MemoryClient(socket_of(box), user_id="nora") as inside:
        host.put_note("rules", "the host's")
        inside.put_note("mine", "first")
        assert "sandbox" == inside.note("mine").now.trust.value
        inside.put_note("found", "the lighthouse keeper", is_searched=True)
        notes = Filter(kinds=frozenset({Kind.NOTE}))
        assert ["found"] == [hit.memory.key for hit in inside.search("lighthouse keeper", filter=notes).hits]
        searching = world.sandbox("search", user_id="nora")
        with MemoryClient(socket_of(searching), user_id="nora") as other, pytest.raises(PermissionDenied):
            other.search("lighthouse keeper", filter=notes)
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
        assert 3 == host.delete_notes("", recursive=True).deleted_count
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
        for harm in (
            lambda: ola.move_note("plan", "away", shared=True),
            lambda: ola.put_note("plan", "pia's", shared=True, expire_after_s=60),
            lambda: ola.put_note("plan", "x", shared=True, expire_after_access_s=60),
        ):
            with pytest.raises(TrustTooLow):
                harm()
        for n in range(20):
            ola.put_note("plan", f"ola's {n}", shared=True)
        versions = ola.note("plan", shared=True).versions
        assert (10, ["pia"]) == (len(versions), [one.author for one in versions if one.author != "ola"])
        assert "pia's" == pia.note("plan", shared=True, revision=2).text
        pia.put_note("kept", "pia's harbour", shared=True, expire_after_s=900, is_searched=True)
        assert (ola.put_note("kept", "ola's", shared=True).is_searched, True) == (True, True)
        assert pia.note("kept", shared=True).expire_time is not None
        with pytest.raises(NoteNotFound):
            ola.note("plan")
