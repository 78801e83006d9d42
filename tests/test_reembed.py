"""After a change of model every memory gets a new vector, old ones are compared with nothing, and no memory is lost."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress

import numpy as np
import pytest

from memoryd.domain.writing import reembed
from memoryd.domain.writing.reembed import Reembedder
from memoryd.embedding.scheduler import ScheduledEmbedder
from memoryd.errors import TextRefused, Unavailable
from memoryd.index.scope import ScopeIndex
from memoryd.index.vectors import Vectors
from memoryd.model.change import ChangeSet, Embedding, Entry
from memoryd.model.results import Leg
from memoryd.model.scope import Owner
from memoryd.store.memories import MemorySelector, owner_place
from tests import builders
from tests.builders import ALICE, BOB, NOW, HashEncoder, Local, entry, memory, open_duckdb, ports_over, ram_store
from tests.index_helpers import OWNER, ask, question, read_whole
from tests.shared_store import StoreView


class OtherEncoder(HashEncoder):
    """Another model: the same words, other places; some texts it cannot embed, and now and then none."""

    fingerprint = "other-40"
    dimensions = 40

    def __init__(self, *, cannot: str = "", down: int = 0):
        self.cannot, self.down = cannot, down

    def encode(self, texts, *, query):
        if self.down:
            self.down -= 1
            raise Unavailable("the endpoint is down")
        if self.cannot and any(self.cannot in text for text in texts):
            raise TextRefused("the endpoint answered 400")
        return super().encode(texts, query=query)


@pytest.fixture(params=["ram", "duckdb"])
def store(request, folder):
    return ram_store() if request.param == "ram" else open_duckdb(folder)


@asynccontextmanager
async def with_model(store, encoder, clock, *, close=False):
    """Ports whose pass of re-embedding can be awaited, and alice's client."""
    told = []
    async with ports_over(store, encoder=encoder, close=close) as ports:
        reembedder = Reembedder(ports, clock, lambda event, known: told.append((event, known)))
        serving = asyncio.create_task(reembedder.serve())

        async def passed():
            reembedder.start()
            async with asyncio.timeout(20):
                while reembedder.running:  # noqa: ASYNC110  as a user sees it
                    await asyncio.sleep(0.01)
            return await reembedder.progress()

        try:
            yield ports, Local(ports, clock, user_id="alice"), passed, told
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving


async def vectors_of(store, owner):
    found = [await builders.stored(store, memory) for memory, _ in store.commits.memories.snapshot(owner, read_whole)]
    return {one.memory.content: (one.fingerprint, one.vector) for one in found}


async def test_a_pass_gives_every_memory_of_every_owner_and_state_a_new_vector(store, clock):
    scopes = [ALICE, BOB]
    made = [entry(f"statement {n} of tea", scope=scopes[n % 2]) for n in range(40)]
    gone = entry("deleted", delete_time=NOW, purge_time=NOW)
    for owned in (made[::2], made[1::2], [gone]):
        await store.commits.write(ChangeSet(inserts=tuple(owned)))
    async with with_model(store, OtherEncoder(), clock, close=True) as (_, _, passed, told):
        known = await passed()
        assert (0, 41, 0, False, "") == tuple(getattr(known, name) for name in type(known).__slots__)
        assert ["reembedding", "reembedded"] == [event for event, _ in told]
        assert {"other-40": 41} == dict((await store.info()).fingerprints)
        for scope in scopes:
            vectors = await vectors_of(store, Owner("default", scope))
            assert 20 == len(vectors)
            for text, (fingerprint, vector) in vectors.items():
                assert "other-40" == fingerprint
                assert np.allclose(OtherEncoder().encode([text], query=False)[0], vector, atol=1e-6)
        assert 0 == (await passed()).embedded_count
        assert (await builders.stored(store, gone.memory)).vector.shape == (40,)


async def test_until_its_turn_has_come_a_memory_is_found_by_its_words_and_its_old_vector_by_nothing(store, clock):
    await store.commits.write(ChangeSet(inserts=tuple(entry(f"tea and {word}") for word in ("milk", "rum", "mint"))))
    async with with_model(store, OtherEncoder(), clock, close=True) as (_, alice, passed, _):
        before = await alice.search("tea")
        assert 3 == len(before.hits)
        assert (Leg.VECTOR,) == before.unavailable_legs
        assert {0.0} == {hit.similarity for hit in before.hits}
        added = await alice.add("tea and sugar")
        found = await alice.search("tea and sugar", min_score=0.0)
        hits = {hit.memory.content: hit.similarity for hit in found.hits}
        assert hits.pop("tea and sugar") > 0.99
        assert {0.0} == set(hits.values())
        await passed()
        after = await alice.search("tea and milk")
        assert () == after.unavailable_legs
        assert "tea and milk" == after.hits[0].memory.content
        assert after.hits[0].similarity > 0.99
        assert added.memory.id in {hit.memory.id for hit in after.hits}


async def test_the_first_model_comes_back_and_no_memory_is_without_a_vector(store, clock):
    encoders = [HashEncoder(), OtherEncoder(), HashEncoder()]
    for n, encoder in enumerate(encoders):
        async with with_model(store, encoder, clock, close=n == 2) as (_, alice, passed, _):
            await passed()
            await alice.add(f"added under model {n}")
            hits = (await alice.search(f"added under model {n}")).hits
            assert n + 1 == len(hits)
            assert hits[0].similarity > 0.99
            assert all(hit.similarity > 0 for hit in hits)
            assert {encoder.fingerprint: n + 1} == dict((await store.info()).fingerprints)


async def test_what_is_purged_deleted_and_restored_meanwhile_stays_so(store, clock, monkeypatch):
    monkeypatch.setattr(reembed, "PAGE", 4)
    made = [entry(f"statement number {n}") for n in range(12)]
    await store.commits.write(ChangeSet(inserts=tuple(made)))

    class Meddled(OtherEncoder):
        def encode(self, texts, *, query):
            time.sleep(0.05)
            return super().encode(texts, query=query)

    async with with_model(store, Meddled(), clock, close=True) as (_, alice, passed, _):
        going = asyncio.ensure_future(passed())
        await asyncio.sleep(0.02)
        await alice.delete(made[0].memory.id, purge=True)
        await alice.delete(made[11].memory.id)
        await alice.delete(made[10].memory.id)
        known = await going
        assert 0 == known.pending_count
        assert {"other-40": 11} == dict((await store.info()).fingerprints)
        await alice.restore(made[10].memory.id)
        found = {hit.memory.id: hit.similarity for hit in (await alice.search("statement number 10", limit=20)).hits}
        assert found.keys() == {one.memory.id for one in made[1:11]}
        assert found[made[10].memory.id] > 0.99


async def test_a_text_that_cannot_be_embedded_is_counted_and_holds_nobody_up(store, clock):
    await store.commits.write(ChangeSet(inserts=tuple(entry(f"statement {n}") for n in range(6))))
    encoder = OtherEncoder(cannot="statement 3")
    async with with_model(store, encoder, clock, close=True) as (_, _, passed, _):
        known = await passed()
        assert (1, 5, 1) == (known.pending_count, known.embedded_count, known.failed_count)
        encoder.cannot = ""
        known = await passed()
        assert (0, 1, 0) == (known.pending_count, known.embedded_count, known.failed_count)


async def test_a_model_that_is_down_is_waited_for_and_the_reason_is_told(store, clock, monkeypatch):
    monkeypatch.setattr(reembed, "FIRST_PAUSE_S", 0.05)
    await store.commits.write(ChangeSet(inserts=tuple(entry(f"statement {n}") for n in range(3))))
    async with with_model(store, OtherEncoder(down=2), clock, close=True) as (_, _, passed, told):
        assert 0 == (await passed()).pending_count
        assert ["reembedding", "reembedding_paused", "reembedding_paused", "reembedded"] == [one for one, _ in told]
        assert "the endpoint is down" == told[1][1].fault


async def test_a_fault_of_our_own_and_one_of_the_store_are_told_and_the_pass_goes_on(store, clock, monkeypatch):
    monkeypatch.setattr(reembed, "FIRST_PAUSE_S", 0.05)
    await store.commits.write(ChangeSet(inserts=(entry("statement"),)))
    async with with_model(store, OtherEncoder(), clock, close=True) as (_, _, passed, told):
        faults = [ZeroDivisionError(), Unavailable("the store has a fault")]
        read, wrong = store.memories.scan, store.info

        async def failing(*args, **more):
            if faults:
                raise faults.pop()
            return await read(*args, **more)

        async def no_info():
            monkeypatch.setattr(store, "info", wrong)
            raise Unavailable("the store has a fault")

        monkeypatch.setattr(store.memories, "scan", failing)
        monkeypatch.setattr(store, "info", no_info)
        known = await passed()
        assert (0, 1, "") == (known.pending_count, known.embedded_count, known.fault)
        paused = [one.fault for event, one in told if event == "reembedding_paused"]
        assert ["the store has a fault", "the store has a fault", "ZeroDivisionError"] == paused


async def test_an_outage_beside_a_refused_text_leaves_no_other_memory_without_a_vector(store, clock, monkeypatch):
    monkeypatch.setattr(reembed, "FIRST_PAUSE_S", 0.02)
    await store.commits.write(ChangeSet(inserts=tuple(entry(f"statement {n}") for n in range(200))))

    class Flaky(OtherEncoder):
        calls = 0

        def encode(self, texts, *, query):
            self.calls += 1
            if self.calls % 5 == 0:
                raise Unavailable("the endpoint answered 503")
            return super().encode(texts, query=query)

    async with with_model(store, Flaky(cannot="statement 17 "), clock, close=True) as (_, _, passed, _):
        assert 0 == (await passed()).pending_count
    await store.close()


def test_among_memories_with_new_vectors_one_that_waits_stands_by_its_words():
    vector = np.zeros(8, np.float32)
    vector[0] = 1.0
    near = vector
    others = [Entry(memory(f"m{n}"), "house", near, "f") for n in range(20)]
    waits = Entry(memory("waits"), "parcel house", None, "")
    index = ScopeIndex([[*others, waits]], dimensions=8, fingerprint="f")
    first, second = ask(index, question(vector, ("parcel", "house")))[:2]
    assert ("waits", 0.0) == (first.memory.content, first.similarity)
    assert first.score > second.score


async def test_asking_again_while_a_pass_is_under_way_counts_one_pass(store, clock):
    await store.commits.write(ChangeSet(inserts=tuple(entry(f"statement {n}") for n in range(5))))
    async with with_model(store, OtherEncoder(), clock, close=True) as (ports, _, passed, told):
        documents = ports.embedder.documents

        async def slow(*args, **more):
            await asyncio.sleep(0.05)
            return await documents(*args, **more)

        ports.embedder.documents = slow
        done = await asyncio.gather(passed(), asyncio.sleep(0.02), passed())
        assert (5, 5) == (done[0].embedded_count, done[2].embedded_count)
        assert ["reembedding", "reembedded"] == [event for event, _ in told]


async def test_a_pause_ends_when_a_pass_is_asked_for(store, clock, monkeypatch):
    monkeypatch.setattr(reembed, "FIRST_PAUSE_S", 60.0)
    await store.commits.write(ChangeSet(inserts=(entry("statement"),)))
    async with with_model(store, OtherEncoder(down=1), clock, close=True) as (_, _, passed, _):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await passed()
        assert 0 == (await passed()).pending_count


async def test_what_was_deleted_or_changed_before_its_turn_leaves_no_gap_in_what_is_told(store, clock):
    made = [entry(f"tea {n}") for n in range(20)]
    await store.commits.write(ChangeSet(inserts=tuple(made)))
    async with with_model(store, OtherEncoder(), clock, close=True) as (_, alice, passed, _):
        await alice.search("tea")
        for one in made[:11]:
            await alice.delete(one.memory.id)
        for one in made[11:15]:
            await alice.confirm(one.memory.id)
        assert (Leg.VECTOR,) == (await alice.search("tea")).unavailable_legs
        await passed()
        assert () == (await alice.search("tea")).unavailable_legs


async def test_another_daemon_before_the_same_store_learns_of_new_vectors(store, clock):
    await store.commits.write(ChangeSet(inserts=tuple(entry(f"tea {n}") for n in range(5))))
    async with (
        with_model(StoreView(store), OtherEncoder(), clock) as (_, _, passed, _),
        with_model(StoreView(store), OtherEncoder(), clock) as (_, other, _, _),
    ):
        assert (Leg.VECTOR,) == (await other.search("tea 3")).unavailable_legs
        await passed()
        found = await other.search("tea 3")
        assert ("tea 3", True, ()) == (found.hits[0].memory.content, found.hits[0].similarity > 0.99,
                                       found.unavailable_legs)  # fmt: skip
    await store.close()


async def test_a_compaction_meanwhile_loses_no_vector(folder, clock, monkeypatch):
    monkeypatch.setattr(reembed, "PAGE", 8)
    store = open_duckdb(folder)
    await store.commits.write(ChangeSet(inserts=tuple(entry(f"statement {n}") for n in range(200))))
    async with with_model(store, OtherEncoder(), clock) as (_, _, passed, _):
        (first,) = await store.memories.scan(MemorySelector(not_fingerprint=""), limit=1)
        await store.commits.write(ChangeSet(embeddings=(embedding_of(first),)))
        going = asyncio.ensure_future(passed())
        for _ in range(3):
            with suppress(Unavailable):  # the first vector of 40 adds a column
                await store.files.compact()
        await going
        await store.files.compact()
    await store.close()
    store = open_duckdb(folder)
    assert {"other-40": 200} == dict((await store.info()).fingerprints)
    vectors = await vectors_of(store, OWNER)
    expected = OtherEncoder().encode(list(vectors), query=False)
    assert np.allclose(expected, np.stack([vector for _, vector in vectors.values()]), atol=1e-6)
    await store.close()


def embedding_of(known):
    vector = OtherEncoder().encode([known.content], query=False)[0]
    return Embedding(known.owner, known.id, vector, OtherEncoder.fingerprint)


async def test_a_vector_of_a_memory_that_is_gone_changes_nothing_and_pages_go_by_id(store):
    made = sorted((entry(f"statement {n}") for n in range(7)), key=lambda one: one.memory.id)
    await store.commits.write(ChangeSet(inserts=tuple(made)))
    await store.commits.write(
        ChangeSet(embeddings=(embedding_of(memory("never stored")), embedding_of(made[2].memory))),
    )
    first = await store.memories.scan(MemorySelector(not_fingerprint="other-40"), limit=4)
    rest = await store.memories.scan(MemorySelector(not_fingerprint="other-40"), limit=4, after=owner_place(first[-1]))
    assert [one.memory.id for n, one in enumerate(made) if n != 2] == [found.id for found in (*first, *rest)]
    assert {"hash-of-words-32": 6, "other-40": 1} == dict((await store.info()).fingerprints)
    await store.close()


@pytest.mark.parametrize("count", [30, 2_500])
def test_an_index_whose_rows_get_new_vectors_answers_like_one_that_was_built_with_them(count):
    rng = np.random.default_rng(count)

    def vectors(n):
        rows = rng.normal(size=(n, 8)).astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    old, new = vectors(count), vectors(count)
    memories = [memory(f"statement {n}") for n in range(count)]
    one = entry()
    entries = [type(one)(known, "", vector, "old") for known, vector in zip(memories, old, strict=True)]
    index = ScopeIndex([entries[: count // 2]], dimensions=8, fingerprint="new")
    for each in entries[count // 2 :]:
        index.insert(each)
    assert count == index.vectors.missing
    for known, vector in zip(memories, new, strict=True):
        index.embed(Embedding(known.owner, known.id, vector, "new"))
    index.embed(Embedding(OWNER, "nobody", new[0], "new"))
    assert 0 == index.vectors.missing
    assert not index.lacks_vectors
    built = ScopeIndex(
        [[type(one)(known, "", vector, "new") for known, vector in zip(memories, new, strict=True)]],
        dimensions=8,
        fingerprint="new",
    )
    for query in vectors(20):
        asked = question(query)
        assert [(hit.memory.id, hit.similarity) for hit in ask(built, asked)] == [
            (hit.memory.id, hit.similarity) for hit in ask(index, asked)
        ]
    index.embed(Embedding(OWNER, memories[0].id, old[0], "old"))
    assert 1 == index.vectors.missing


def test_rows_without_a_vector_are_counted():
    held = Vectors(2, np.array([[1, 0], [0, 0]], dtype=np.float32))
    held.append(None)
    held.append(np.array([0, 1], dtype=np.float32))
    assert 2 == held.missing
    held.put(0, None)
    assert 3 == held.missing
    held.put(2, np.array([0, 1], dtype=np.float32))
    held.put(2, np.array([1, 0], dtype=np.float32))
    assert 2 == held.missing


async def test_what_is_done_in_the_background_comes_after_all_other_documents():
    order = []

    class Noted(HashEncoder):
        def encode(self, texts, *, query):
            time.sleep(0.02)
            order.append(texts[0].split()[0])
            return super().encode(texts, query=query)

    embedder = ScheduledEmbedder(Noted(), workers=1)
    works = [asyncio.ensure_future(embedder.documents(["first"], caller="a"))]
    await asyncio.sleep(0.005)
    works += [asyncio.ensure_future(embedder.documents(["old " * 200] * 4, caller="re", background=True))]
    works += [asyncio.ensure_future(embedder.documents([f"new{n}"], caller=n)) for n in range(3)]
    works += [asyncio.ensure_future(embedder.query("query", owner="b"))]
    await asyncio.gather(*works)
    embedder.close()
    assert ["first", "query", "new0", "new1", "new2", "old", "old", "old", "old"] == order
