"""A scope that is loaded from columns answers like one that was made memory by memory."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.domain.conversation.embed import MessageEmbedder
from memoryd.index import cache
from memoryd.index.scope import ScopeIndex
from memoryd.knowledge import text_traits
from memoryd.knowledge.text_traits import as_text, forget_texts, from_text, read_text, stored_traits
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.conversation import Role, ToolCall
from memoryd.model.entity import EntityType, Form, Mention
from memoryd.model.memory import HAPPENED, Judgement, Kind, Source
from memoryd.model.message_draft import MessageDraft
from memoryd.model.query import Filter
from memoryd.model.recalled_text import CLOSE, OPEN
from memoryd.model.trust import Trust
from memoryd.model.validation import text_digest
from memoryd.store import loading
from memoryd.store.duckdb.changes import write
from memoryd.store.duckdb.migrations import MIGRATIONS
from memoryd.store.duckdb.store import DuckDBStore
from tests.builders import (
    ALICE,
    MEMORY_LIMIT,
    NOW,
    HashEncoder,
    Local,
    entry,
    memory,
    open_database,
    open_duckdb,
    ports_over,
    visible_to,
)
from tests.index_helpers import LATER, OWNER, WANTED, ask, question
from tests.test_index_commits import indexes_over

TEXT = "tea rum mint Paris müller 東京 did you go on Friday last week in 2021 we walked? is it so. 9 May"
WORDS = TEXT.split()
PEOPLE = [Mention(f"e{n}", name, Form.NAME, EntityType.PERSON, n == 1, "") for n, name in enumerate(("Ann", "Bob"))]


def varied(count: int, seed: int = 1) -> list:
    """Memories of all kinds and states."""
    rng = random.Random(seed)
    made = []
    for n in range(count):
        kind = rng.choice(list(Kind))
        more = {
            "kind": kind,
            "trust": rng.choice([Trust.HOST, Trust.HOST, Trust.SANDBOX, Trust.IMPORTED]),
            "tags": tuple(rng.sample(["red", "blue", "grün"], rng.randrange(3))),
            "subjects": tuple(rng.sample(["Ann", "tea"], rng.randrange(3))),
            "category": rng.choice(["", "user", "assistant", "home"]),
            "metadata": {"place": "x\x1e=y"} if n % 7 == 0 else {},
            "key": f"k{n}" if n % 5 == 0 else "",
            "confidence": rng.choice([1.0, 0.1, 0.30000000000000004]),
            "claims": ("likes",) if n % 4 == 0 else (),
            "mentions": (rng.choice(PEOPLE),) if n % 3 == 0 else (),
            "source": Source(rng.choice(["Ann", "Bob", "user", ""]), "", f"t{n % 2}", f"s{n % 5}" if n % 6 else ""),
            "expire_time": NOW + timedelta(days=rng.choice([-1, 3])) if n % 8 == 0 else None,
            "supersede_time": NOW if n % 9 == 1 else None,
            "judgement": Judgement("key", "other") if n % 9 == 1 else None,
            "decay_rate": 0.0 if n % 10 == 0 else None,
            "protected": n % 11 == 0,
            "author": "alice" if n % 2 else "",
        }
        text = " ".join(rng.choices(WORDS, k=rng.randrange(1, 14)))
        one = entry(f"{text} {n if n % 12 else ''}".strip(), **more)
        if n % 5 == 2:
            happened = NOW - timedelta(days=rng.randrange(900), hours=n)
            one = replace(one, memory=replace(one.memory, event_time=happened))
        made.append(one if n % 13 else replace(one, vector=None, fingerprint=""))
    first, second = made[0], made[1]
    made[0] = replace(first, memory=replace(first.memory, contested_with=(second.memory.id,)))
    made[1] = replace(second, memory=replace(second.memory, contested_with=(first.memory.id,)))
    return made


async def stored(folder, made: list, *, unread: bool = False):
    store = open_duckdb(folder)
    read = tuple(replace(one, traits=stored_traits(one.memory)) for one in made)
    await store.commits.write(ChangeSet(inserts=read))
    if unread:
        await store._writer.run(lambda con: con.execute("UPDATE memories SET traits = '' WHERE id > '8'"))
    return store


def assert_same(index: ScopeIndex, other: ScopeIndex) -> None:
    count = other.count
    assert (count, len(other)) == (index.count, len(index))
    everything = Filter(kinds=frozenset(Kind), include_superseded=True, include_expired=True)
    filters = [
        everything,
        Filter(),
        Filter(kinds=frozenset({Kind.EPISODE})),
        Filter(tags=("grün",)),
        Filter(subjects=("TEA",)),
        Filter(entity_ids=frozenset({"e1"})),
        Filter(metadata={"place": "x\x1e=y"}),
        Filter(thread_id="t1"),
        Filter(exclude_session_ids=("s1", "s2")),
        Filter(event_time_from=NOW - timedelta(days=300), event_time_to=NOW),
        Filter(as_of=NOW, kinds=frozenset(Kind)),
    ]
    for wanted in filters:
        assert np.array_equal(other.mask(wanted, LATER), index.mask(wanted, LATER)), wanted
    rows = np.arange(count)
    for one, two in ((index.traits, other.traits), (index.columns, other.columns)):
        for name, column in vars(two).items():
            if hasattr(column, "view"):
                assert np.array_equal(column.view(), getattr(one, name).view()), name
    for name in ("_named", "_all_speakers", "_trusted_speakers", "_years"):
        assert getattr(other.traits, name) == getattr(index.traits, name), name
    assert np.array_equal(other.traits._lengths, index.traits._lengths)
    trusted = other.columns.trusts.view() > 0
    for step in (-2, -1, 1, 2):
        beside = (one.sequences.beside(rows, step, count, trusted) for one in (index, other))
        assert np.array_equal(next(beside), next(beside))
    for row in rows.tolist():
        memory = other.memory_at(row)
        assert memory == index.memory_at(row)
        assert index.row_of(memory.id) == row
        digest = text_digest(memory.content)
        assert set(other.says(digest)) == set(index.says(digest))
    assert other.listings.keys == index.listings.keys
    assert other.listings.claims == index.listings.claims
    assert other._contested == index._contested
    assert vars(vars(other.people)["_names"])["_called"] == vars(vars(index.people)["_names"])["_called"]
    terms = ["tea", "pari", "mint", "nowhere"]
    assert other.corpus(terms) == index.corpus(terms)
    stats = other.corpus(terms)
    assert np.array_equal(other.postings.score(terms, stats, count), index.postings.score(terms, stats, count))


@pytest.mark.parametrize("unread", [False, True])
async def test_what_is_loaded_from_columns_is_what_was_stored(folder, unread):
    made = varied(400)
    store = await stored(folder, made, unread=unread)
    options = {"dimensions": WANTED.dimensions, "fingerprint": WANTED.fingerprint}
    index = await asyncio.to_thread(
        store.commits.memories.snapshot, OWNER, lambda s: ScopeIndex(s.read(WANTED), **options)
    )
    one_by_one = ScopeIndex(**options)
    for each in made:
        one_by_one.insert(each)
    for other in (ScopeIndex([made[:150], made[150:]], **options), one_by_one):
        assert_same(index, other)
        assert np.array_equal(other.vectors.rows(np.arange(400)), index.vectors.rows(np.arange(400)))
        assert other.vectors.missing == index.vectors.missing
    await store.close()


def talk(count: int) -> list[MessageDraft]:
    rng = random.Random(5)
    made = []
    for n in range(count):
        text = " ".join(rng.choices(WORDS, k=rng.randrange(1, 12)))
        role = rng.choice(list(Role))
        calls = [ToolCall("lookup", f'{{"q": "{n}"}}', f"c{n}")] if role is Role.ASSISTANT and n % 3 == 0 else []
        made.append(
            MessageDraft(
                content=f"{OPEN}\nwhat was known\n{CLOSE}\n{text}" if n % 9 == 0 else f"{text} {n % 7}",
                role=role,
                name=rng.choice(["", "Ann", "Müller"]),
                tool_calls=calls,
                tool_call_id=f"c{n}" if role is Role.TOOL else "",
                input_source="web" if n % 11 == 0 else "",
                id=f"own-{n}" if n % 2 else "",
            )
        )
    return [*made, MessageDraft(content="x" * 30_000)]


@pytest.mark.parametrize("large", [False, True])
async def test_messages_that_are_loaded_are_those_that_were_said(folder, clock, large, monkeypatch):
    if large:
        monkeypatch.setattr(cache, "LARGE", 20)
    async with ports_over(open_duckdb(folder)) as ports:
        memory = Local(ports, clock, user_id="alice")
        grown = await ports.episodes.get(OWNER)
        said = talk(150)
        for thread in ("t", "u"):
            for n in range(0, len(said), 20):
                await memory.append(thread, said[n : n + 20])
        embedder = MessageEmbedder(ports, clock, print)
        await embedder.step()  # some have vectors
        grown = await ports.episodes.get(OWNER)
        again = indexes_over(ports.store.commits.messages)
        index = await again.get(OWNER)
        assert_same(index, grown)
        assert 0 < index.vectors.missing == grown.vectors.missing
        rows = np.arange(index.count)
        assert np.allclose(grown.vectors.rows(rows), index.vectors.rows(rows), atol=1e-4)
        assert [grown.tokens.row(n) for n in rows] == [index.tokens.row(n) for n in rows]
        again.close()


async def test_what_changes_after_a_load_changes_alike(folder):
    made = varied(300, seed=2)
    store = await stored(folder, made)
    options = {"dimensions": WANTED.dimensions, "fingerprint": WANTED.fingerprint}
    index = await asyncio.to_thread(
        store.commits.memories.snapshot, OWNER, lambda s: ScopeIndex(s.read(WANTED), **options)
    )
    other = ScopeIndex([made], **options)
    more = varied(20, seed=4)
    for one in (index, other):
        rng = random.Random(3)
        for each in rng.sample(made, 60):
            changed = replace(each.memory, tags=("new",), recall_count=each.memory.recall_count + 1)
            one.update(replace(each, memory=changed, vector=None))
        for each in rng.sample(made, 30):
            one.note_recalls(each.memory.id, (LATER, 2, LATER))
        for each in rng.sample(made, 30):
            one.remove(each.memory.id)
        one.erase({each.memory.id for each in rng.sample(made, 40)})
        for each in more:
            one.insert(each)
    wanted = Filter(kinds=frozenset(Kind), include_superseded=True, include_expired=True)
    assert np.array_equal(other.mask(wanted, LATER), index.mask(wanted, LATER))
    for row in range(other.count):
        assert other.memory_at(row) == index.memory_at(row)
    for each in made:
        assert other.row_of(each.memory.id) == index.row_of(each.memory.id)
        assert other.memory(each.memory.id) == index.memory(each.memory.id)
        digest = text_digest(each.memory.content)
        assert set(other.says(digest)) == set(index.says(digest))
    asked = question(HashEncoder().encode(["tea in Paris"], query=True)[0], ("tea", "pari"), limit=50)
    assert ask(other, asked) == ask(index, asked)
    await store.close()


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=120), st.sampled_from([TEXT, "Did you? On 3 May"])), st.sampled_from(Kind))
def test_what_is_read_of_a_text_comes_back_from_the_store(text, kind):
    way = {"is_said": kind is Kind.EPISODE, "is_dated": kind in HAPPENED}
    read = read_text(text, NOW.date(), **way)
    assert read == from_text(as_text(read, **way), **way)
    assert from_text("", **way) is None
    assert from_text(as_text(read, is_said=not way["is_said"], is_dated=True), **way) is None


async def test_what_a_load_reads_is_not_kept(folder):
    store = await stored(folder, varied(50), unread=True)
    forget_texts()
    await asyncio.to_thread(store.commits.memories.snapshot, OWNER, lambda s: ScopeIndex(s.read(WANTED)))
    assert 0 == text_traits.read_once.cache_info().currsize
    await store.close()


async def test_what_ranking_reads_follows_a_change_of_kind(folder):
    said = entry("Did you go? On 3 May we went", kind=Kind.EPISODE)
    store = await stored(folder, [said])
    change = replace(entry(replace(said.memory, kind=Kind.FACT)), vector=None)
    await store.commits.write(ChangeSet(updates=(change,)))
    (text,) = await store._readers.read(store._readers.rows, "SELECT traits FROM memories")
    assert from_text(text[0], is_said=False, is_dated=False) is not None
    await store.close()


async def test_what_was_said_before_its_place_was_listed_is_listed_now(folder):
    opened = open_database(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT, migrations=MIGRATIONS[:8])
    one = entry("we went", kind=Kind.EPISODE, tags=("x",), source=Source("", "", 't"1', "s1"))
    opened.connection.begin()
    write(opened.connection, [ChangeSet(inserts=(replace(one, vector=None, fingerprint=""),))], 1, ())
    opened.connection.execute("UPDATE memories SET facets = ?", ['\x1f"tag:x"\x1f'])
    opened.connection.commit()
    opened.close()
    store = open_duckdb(folder)
    index = await asyncio.to_thread(store.commits.memories.snapshot, OWNER, lambda s: ScopeIndex(s.read(WANTED)))
    assert {"tag:x", 'thread:t"1', "session:s1"} == set(index.columns.filter_terms)
    found = await store.memories.page(
        visible_to(ALICE),
        Filter(thread_id='t"1', kinds=frozenset(Kind)),
        now=LATER,
        limit=5,
    )
    assert ["we went"] == [memory.content for memory in found]
    index.erase({one.memory.id})
    assert {} == index.columns.filter_terms
    await store.close()


async def test_texts_that_are_more_than_duckdb_may_take_at_once_are_loaded_by_and_by(folder, clock, monkeypatch):
    def open_small() -> DuckDBStore:
        return DuckDBStore(open_database(folder / "memory.duckdb", memory_limit_bytes=128 << 20))

    async def lengthen(store, table: str, numbered: str, changed: str) -> None:
        for n in range(0, 441, 20):
            change = f"UPDATE {table} SET {changed} WHERE {numbered} BETWEEN {n} AND {n + 19}"  # noqa: S608  our own
            await store._writer.run(lambda con, sql=change: con.execute(sql))
            await store._writer.run(lambda con: con.execute("CHECKPOINT"))

    store = open_small()
    async with ports_over(store) as ports:
        await store.commits.write(
            ChangeSet(inserts=tuple(Entry(memory(f"{'x' * 2700} {n}"), "river") for n in range(440))),
        )
        talker = Local(ports, clock, user_id="alice")
        for _ in range(4):
            await talker.append("t", [MessageDraft(content="said")] * 100)
        # the words of a text that gets longer when it is normalised, and what a tool may answer
        await lengthen(store, "memories", "split_part(content, ' ', 2)::INT", "terms = repeat('river lamp ', 15000)")
        await lengthen(store, "messages", "seq", "content = repeat('river lamp ', 22000), text_bytes = 242000")
    async with ports_over(open_small()) as ports:
        with monkeypatch.context() as patch:
            patch.setattr(loading, "MOST_BYTES", 1 << 20)  # as all is a quarter of what it is with more memory
            assert 440 == len(await ports.indexes.get(OWNER))
        assert 400 == len(await ports.episodes.get(OWNER))
        embedder = MessageEmbedder(ports, clock, print)
        while await embedder.step():
            pass
        assert 0 == (await ports.episodes.get(OWNER)).vectors.missing


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 12 << 20), max_size=40))
def test_windows_hold_every_row_once_and_no_more_than_they_may(sizes):
    numbers = np.arange(len(sizes), dtype=np.int64) * 3
    known = loading.Rows(numbers, np.array(sizes, dtype=np.int64), np.zeros(len(sizes), dtype=np.int64))
    windows = [range(first // 3, last // 3 + 1) for first, last in known.windows()]
    assert list(range(len(sizes))) == [row for window in windows for row in window]
    assert all(len(window) == 1 or sum(sizes[row] for row in window) <= loading.MOST_BYTES for window in windows)
