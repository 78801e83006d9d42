"""The terms that filters look up are those of one version, and a store brings older ones up to it."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta

import duckdb
import pytest

from memoryd.model import filter_terms
from memoryd.model.change import ChangeSet
from memoryd.model.entity import EntityType, Form, Mention
from memoryd.model.memory import Judgement, Kind, Memory, Source
from memoryd.model.query import Filter
from memoryd.model.scope import Scope
from memoryd.model.trust import Trust
from memoryd.store.duckdb import facets
from memoryd.store.opening import StoreRefused
from tests.builders import ALICE, MEMORY_LIMIT, NOW, entry, memory, open_database, open_duckdb, visible_to

LATER = NOW + timedelta(days=1)
SHOWN_ONLY = {"state", "entities", "said_by", "said_time"}
FULL = Memory(
    id="a" * 26, agent_id="helper", scope=Scope(user_id="alice"), content="Ben said that Zoë plays chess",
    create_time=NOW, event_time=LATER, kind=Kind.EPISODE, subjects=("Zoë", "BEN"), tags=("Game", "=x"),
    category="hobby", metadata={"a=b": "c"}, key="k", source=Source("Ben", "chat", "t 1", "s:1", ("m1",)),
    confidence=0.5, decay_rate=0.1, trust=Trust.SANDBOX, grant_id="g", protected=True, recall_time=LATER,
    recall_count=3, reinforce_time=LATER, expire_time=LATER, supersede_time=LATER, delete_time=LATER, purge_time=LATER,
    supersedes=("b" * 26,), superseded_by="c" * 26, contested_with=("d" * 26,), judgement=Judgement("rule"),
    delete_trust=Trust.HOST, supersede_trust=Trust.HOST, delete_reason="forgotten", trusted_recall_time=LATER,
    claims=("claim",), mentions=(Mention("e1", "Zoë", Form.NAME, EntityType.PERSON, "", ""),), enrich_time=LATER,
    author="alice", import_id="old", external_id="m-1", judged=False,
)  # fmt: skip
TERMS = [
    "subject:zoë", "subject:ben", "tag:Game", "tag:=x", "metadata:3:a=b=c", "category:hobby", "import:old",
    "contested:", "entity:e1",
    "thread:t 1", "session:s:1",
]  # fmt: skip


def test_a_statement_has_the_thread_that_it_was_learnt_from():
    learnt = memory("I keep bees", source=Source(thread_id="t 1"))
    assert ["source:t 1"] == filter_terms.filter_terms_of(learnt)
    assert ["source:t 1"] == filter_terms.required_terms(Filter(source_thread_id="t 1"))
    said = memory("I keep bees", kind=Kind.EPISODE, source=Source(thread_id="t 1"))
    assert not Filter(source_thread_id="t 1", kinds=frozenset({Kind.EPISODE})).admits(said, NOW)


def test_the_terms_of_a_full_memory_are_those_of_the_version():
    assert (2, TERMS) == (filter_terms.VERSION, filter_terms.filter_terms_of(FULL)), "raise VERSION with other terms"


@pytest.mark.parametrize("name", [item.name for item in fields(Memory) if item.name not in SHOWN_ONLY])
def test_the_full_memory_has_every_field_that_is_stored(name):
    plain = Memory(id="", agent_id="", scope=ALICE, content="", create_time=NOW, event_time=NOW)
    assert getattr(plain, name) != getattr(FULL, name) or name in {"create_time", "scope"}


async def test_terms_of_an_older_version_are_written_anew_at_the_start(folder, monkeypatch):
    monkeypatch.setattr(facets, "PAGE", 10)
    store = open_duckdb(folder)
    made = [entry(memory(f"statement {n}", tags=("old",) if n % 2 else ())) for n in range(25)]
    await store.commits.write(ChangeSet(inserts=tuple(made)))
    await store.close()
    path = folder / "memory.duckdb"
    with duckdb.connect(str(path)) as con:  # as a version wrote it that did not know tags
        con.execute("UPDATE memories SET facets = ''")
        con.execute("UPDATE meta SET value = '0' WHERE name = 'filter_terms'")
    told = []
    opened = open_database(path, memory_limit_bytes=MEMORY_LIMIT, tell=lambda *how_far: told.append(how_far))
    opened.close()
    assert [(10, 25), (20, 25), (25, 25)] == told
    told.clear()
    open_database(path, memory_limit_bytes=MEMORY_LIMIT, tell=lambda *how_far: told.append(how_far)).close()
    assert [] == told
    store = open_duckdb(folder)
    try:
        found = await store.memories.page(visible_to(ALICE), Filter(tags=("old",)), now=LATER, limit=99)
        assert {one.memory.id for one in made[1::2]} == {one.id for one in found}
    finally:
        await store.close()


async def test_terms_of_a_later_version_are_refused(folder):
    await open_duckdb(folder).close()
    path = folder / "memory.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("UPDATE meta SET value = '7' WHERE name = 'filter_terms'")
    with pytest.raises(StoreRefused, match="filter terms of version 7; this memoryd knows up to 2"):
        open_database(path, memory_limit_bytes=MEMORY_LIMIT)


async def test_after_a_crash_while_terms_are_written_all_are_written_again(folder):
    store = open_duckdb(folder)
    await store.commits.write(ChangeSet(inserts=tuple(entry(memory(f"s{n}", tags=("a",))) for n in range(9))))
    await store.close()
    path = folder / "memory.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("UPDATE memories SET facets = ''")
        con.execute("UPDATE meta SET value = '0' WHERE name = 'filter_terms'")

    def crash(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_database(path, memory_limit_bytes=MEMORY_LIMIT, tell=crash)
    with duckdb.connect(str(path)) as con:
        assert [("0",)] == con.execute("SELECT value FROM meta WHERE name = 'filter_terms'").fetchall()
    store = open_duckdb(folder)
    try:
        assert 9 == len(await store.memories.page(visible_to(ALICE), Filter(tags=("a",)), now=LATER, limit=99))
    finally:
        await store.close()
