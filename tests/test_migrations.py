"""A database of every older schema opens with all that it holds."""

from __future__ import annotations

import json
from datetime import timedelta

from memory_client import MessageDraft

from memoryd.model.change import ChangeSet, ConversationChange
from memoryd.model.conversation import WorkingMemory
from memoryd.model.grant import GrantUsage
from memoryd.model.memory import Outcome
from memoryd.model.query import Filter
from memoryd.model.receipt import AddReceipt, AppendReceipt, MemoriesReceipt, Rejection, StatementOutcome
from memoryd.model.scope import Owner
from memoryd.model.talk import AppendedMessage
from memoryd.model.times import to_us
from memoryd.model.work import CounterName, Lease
from memoryd.store import rows
from memoryd.store.conversations import thread_name
from memoryd.store.duckdb.columns import entry_row
from memoryd.store.duckdb.migrations import MIGRATIONS, authors_of_texts, marks, receipts
from tests.builders import (
    ALICE,
    BOB,
    MEMORY_LIMIT,
    NOW,
    TEAM,
    Local,
    entry,
    memory,
    open_database,
    open_duckdb,
    ports_over,
    traces_in,
    visible_to,
)


async def test_what_came_through_grants_is_counted_in_a_database_that_did_not_count_it(folder):
    path = folder / "memory.duckdb"
    opened = open_database(path, memory_limit_bytes=MEMORY_LIMIT, migrations=MIGRATIONS[:4])
    made = [("g1", ALICE, NOW), ("g1", TEAM, NOW), ("g1", ALICE, NOW - timedelta(days=1)), ("g2", BOB, NOW)]
    given = [entry(memory("text", scope=scope, create_time=time, grant_id=name)) for name, scope, time in made]
    opened.connection.begin()
    rows_of = [entry_row(one, 1) for one in (*given, entry("of the host"))]
    for row in rows_of:
        for later in ("vector_32", "traits"):
            row.pop(later)
        opened.connection.execute(
            f"INSERT INTO memories ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",  # noqa: S608  our own names
            list(row.values()),
        )
    opened.connection.commit()
    opened.close()
    store = open_duckdb(folder)
    try:
        assert GrantUsage(2, 3, 12) == await store.grants.usage("g1", NOW.date())
        await store.commits.write(ChangeSet(purges=(given[0].memory,)))
        assert GrantUsage(1, 2, 8) == await store.grants.usage("g1", NOW.date())
        assert GrantUsage(1, 1, 4) == await store.grants.usage("g2", NOW.date())
        assert "usage.grant_id" in await traces_in(store, "g2")
        await store.commits.write(ChangeSet(purges=(given[3].memory,)))
        assert "usage.grant_id" not in await traces_in(store, "g2")
    finally:
        await store.close()
    assert (folder / "memory.duckdb.before-schema-5").exists()


async def test_a_working_memory_of_an_older_store_has_no_author(folder):
    team = Owner("default", TEAM)
    before = MIGRATIONS[: MIGRATIONS.index(authors_of_texts)]
    opened = open_database(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT, migrations=before)
    row = [thread_name(team, ""), "default", None, "team", "the plan", rows.naive(NOW), "host", ""]
    opened.connection.execute("INSERT INTO working_memories VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    opened.close()
    store = open_duckdb(folder)
    try:
        assert WorkingMemory("the plan", NOW) == await store.conversations.working_memory(team)
        renewed = WorkingMemory("new", NOW, author="ann")
        await store.commits.write(ChangeSet(conversation=ConversationChange(team, working_memory=renewed)))
        assert renewed == await store.conversations.working_memory(team)
    finally:
        await store.close()


async def test_what_jobs_and_cursors_held_together_becomes_marks_leases_and_counters(folder):
    before = MIGRATIONS[: MIGRATIONS.index(marks)]
    opened = open_database(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT, migrations=before)
    con, day = opened.connection, NOW.date()
    for name, time in (("gc", NOW), ("gc leased until", NOW + timedelta(minutes=1)), ("clock seen", NOW)):
        con.execute("INSERT INTO jobs VALUES (?, ?)", [name, rows.naive(time)])
    counted = {
        "messages:f": 7, "windows:f": 5, "learning": 6, "llm_learning": 4, "contradictions_read": to_us(NOW),
        "llm_judged": to_us(NOW), "llm_day": day.toordinal(), "llm_tokens": 900, "llm_cost": 90, "llm_calls": 3,
    }  # fmt: skip
    con.executemany("INSERT INTO cursors VALUES (?, ?)", list(counted.items()))
    opened.close()
    store = open_duckdb(folder)
    try:
        done = {"gc": NOW, "clock seen": NOW, "contradictions_read": NOW, "llm_judged": NOW}
        assert done == await store.work.marks()
        assert {"gc": Lease("gc", "", NOW + timedelta(minutes=1))} == await store.work.leases()
        of_all_time = {
            CounterName(name): counted[name] for name in ("messages:f", "windows:f", "learning", "llm_learning")
        }
        used = {CounterName(name, day): counted[name] for name in ("llm_tokens", "llm_cost", "llm_calls")}
        assert of_all_time | used == await store.work.counters()
    finally:
        await store.close()


async def test_a_database_of_the_first_schema_opens_with_all_it_holds(folder):
    path = folder / "memory.duckdb"
    opened = open_database(path, memory_limit_bytes=MEMORY_LIMIT, migrations=MIGRATIONS[:1])
    row = entry_row(entry("older than grants"), 1)
    columns = {found[0] for found in opened.connection.execute("DESCRIBE memories").fetchall()}
    names = [name for name in row if name in columns]
    opened.connection.execute(
        f"INSERT INTO memories ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",  # noqa: S608  our own names
        [row[name] for name in names],
    )
    opened.close()
    store = open_duckdb(folder)
    try:
        found = await store.memories.page(visible_to(ALICE), Filter(), now=NOW + timedelta(days=1), limit=9)
        assert [("older than grants", "")] == [(memory.content, memory.grant_id) for memory in found]
    finally:
        await store.close()


async def test_a_database_without_conversations_opens_and_takes_them(folder):
    path = folder / "memory.duckdb"
    opened = open_database(path, memory_limit_bytes=MEMORY_LIMIT, migrations=MIGRATIONS[:5])
    row = dict(entry_row(entry("older than conversations"), 1))
    for later in ("vector_32", "traits"):
        row.pop(later)
    opened.connection.execute(
        f"INSERT INTO memories ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",  # noqa: S608  our own names
        list(row.values()),
    )
    opened.close()
    async with ports_over(open_duckdb(folder)) as ports:
        memory_of = Local(ports, lambda: NOW, user_id="alice")
        await memory_of.append("t", MessageDraft(content="said since"))
        built = await memory_of.context("older conversations said", thread_id="t", min_score=0.0)
        assert ["relevant_memory", "recent_messages"] == [section.name for section in built.sections]
    async with ports_over(open_duckdb(folder)) as ports:
        memory_of = Local(ports, lambda: NOW, user_id="alice")
        assert ["said since"] == [message.content for message in (await memory_of.messages("t")).messages]
    assert (folder / "memory.duckdb.before-schema-6").exists()


async def test_receipts_of_an_older_store_answer_as_before(folder):
    before = MIGRATIONS[: MIGRATIONS.index(receipts)]
    opened = open_database(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT, migrations=before)
    con, owner = opened.connection, Owner("default", ALICE)
    made = [entry(memory(f"statement {n}", scope=TEAM if n == 2 else ALICE)) for n in range(3)]
    for one in made:
        row = entry_row(one, 1)
        row.pop("vector_32")
        con.execute(f"INSERT INTO memories ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))  # noqa: S608  our own names
    con.execute(
        "INSERT INTO threads VALUES (?, 'default', 'alice', NULL, 't', ?, ?, '', 1, '{}', 1)",
        [thread_name(owner, "t"), rows.naive(NOW), rows.naive(NOW)],
    )
    first, second, ours = (one.memory for one in made)
    mark, us = f"thread:{thread_name(owner, 't')}", str(to_us(NOW))
    noted = {
        "add": [[first.id, "superseded", [second.id]], ["", "rejected", ["secret"]], [ours.id, "reinforced", ["tags"]]],
        "delete": [[first.id, None, []], ["", None, []]],
        "gone": [["x" * 26, "inserted", []]],
        "cut": [["", None, [mark, us, "0", "s"]], ["m1", None, [mark, "1", us, "1", "s"]]],  # by an erased id "2"
        "append": [["m1", None, [mark, "1", us, "1", "s"]], ["", None, [mark, "2", us, "0", "s"]]],
        "none": [],
    }
    for name, outcomes in noted.items():
        answer = json.dumps({"payload_hash": "h", "outcomes": outcomes})
        con.execute(
            "INSERT INTO requests VALUES (?, ?, ?)", [rows.request_name(owner, "A", name), answer, rows.naive(NOW)]
        )
    opened.close()
    store = open_duckdb(folder)
    try:
        found = {name: await store.commits.recorded(owner, "A", name) for name in noted}
        assert (None, None) == (found["gone"], found["cut"])
        told = (AppendedMessage("m1", 1, NOW, True), AppendedMessage("", 2, NOW, False))
        statements = (
            StatementOutcome(Outcome.SUPERSEDED, owner, first.id, (second.id,)),
            StatementOutcome.rejected(Rejection.SECRET),
            StatementOutcome(Outcome.REINFORCED, ours.owner, ours.id, untaken_fields=("tags",)),
        )
        expected = {
            "add": AddReceipt(statements), "delete": MemoriesReceipt.of([first]), "none": AddReceipt(),
            "append": AppendReceipt(owner, "t", "s", told),
        }  # fmt: skip
        assert expected == {name: one.receipt for name, one in found.items() if one is not None}
    finally:
        await store.close()
