"""Notes in another store: exports of them, and copies of before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from memory_client import Conflict

from memoryd.domain.transfer.bring_in import bring_in
from tests.builders import Local, ports_over, ram_store
from tests.test_ledger import copied, served
from tests.test_notes import STORES
from tests.test_transfer import exported


@STORES
async def test_versions_are_lines_and_become_one_note_also_in_parts(folder, clock, opened):
    longest = "\x01" * (256 * 1024 - 2)
    async with ports_over(ram_store()) as ports:
        me = Local(ports, clock, user_id="alice")
        for n in range(11):
            clock.now += timedelta(seconds=1)
            await me.put_note("long", f"{longest}{n}")
        await me.put_note("searched", "the harbour", is_searched=True)
        await me.put_note("z", "named Bob Miller")
        await me.put_note("z", "no one")
        lines = await exported(ports, most_bytes=1)
        assert (13, True) == (len(lines), max(map(len, lines)) < 4 << 20)
        assert lines == await exported(ports)
    async with ports_over(opened(folder)) as ports:
        me = Local(ports, clock, user_id="alice")
        assert 13 == (await bring_in(lines, ports, now=clock(), dry_run=True)).new.total()
        for n in range(0, 13, 4):
            assert len(lines[n : n + 4]) == (await bring_in(lines[n : n + 4], ports, now=clock())).new.total()
        assert lines == await exported(ports)
        await me.move_note("long", "moved")
        assert 13 == (await bring_in(lines, ports, now=clock())).known.total(), "a note is one wherever it is"
        await me.put_note("long", "another of this path")
        assert 13 == (await bring_in(lines, ports, now=clock())).known.total()
        await me.delete_notes("moved")
        with pytest.raises(Conflict):
            await bring_in(lines, ports, now=clock())
        done = await bring_in(lines, ports, now=clock(), skips_conflicts=True)
        assert (10, 3) == (done.kept.total(), done.known.total())


async def test_a_version_after_those_that_are_there_is_another(clock):
    async with ports_over(ram_store()) as ports:
        me = Local(ports, clock, user_id="alice")
        await me.put_note("n", "first")
        await me.put_note("n", "second")
        newer, older = await exported(ports)
    async with ports_over(ram_store()) as ports:
        await bring_in([older], ports, now=clock())
        with pytest.raises(Conflict, match="another note version"):
            await bring_in([newer], ports, now=clock())
        assert [older] == await exported(ports)


async def test_an_erased_version_does_not_come_back_with_an_export(folder):
    async with served(folder) as client:
        await client.put_note("z", "named Bob Miller")
        await client.put_note("z", "no one")
        lines = await exported(client.ports)
        await client.add("Bob Miller likes tea")
        await client.forget_person("Bob Miller", with_messages=True)
        done = await bring_in(lines, client.ports, now=datetime.now(UTC))
        assert (1, 1) == (done.known.total(), done.erased.total())
        assert [2] == [version.revision for version in (await client.note("z")).versions]


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
