"""A long text is found by a question about any part of it, also where the two share no telling word."""

from __future__ import annotations

import random
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from memory_client import Draft, MessageDraft, MessageSearch

from memoryd.domain.conversation.embed import LONG_PAGE, MessageEmbedder
from memoryd.domain.retrieval.relevance import LEAST_SCORE, LEAST_SCORE_BY_WINDOW, above_floor, scores_of
from memoryd.embedding.windows import LONG_BYTES, SIZE, codes_of, later_windows
from memoryd.errors import Unavailable
from memoryd.index import cache
from memoryd.index.scope import ScopeIndex
from memoryd.index.vectors import Vectors
from memoryd.index.window_vectors import SHARE, WindowVectors
from memoryd.store.duckdb.columns import entry_row
from memoryd.store.duckdb.migrations import MIGRATIONS, window_vectors
from memoryd.store.memories import MemorySelector
from tests.builders import MEMORY_LIMIT, HashEncoder, Local, entry, open_database, open_duckdb, ports_over, ram_store
from tests.support import until
from tests.test_long_texts import FACTS
from tests.test_message_embedding import OtherEncoder, embedded
from tests.test_ranking import indexed, ranked_of, said

TALK = (
    "The tram was late again and we stood in the rain for ten minutes. At the bakery they had run out of rye bread. "
    "Later the neighbours came over with their new puppy. Somebody had painted the fence green over night. The meeting "
    "about the budget went on until noon. We tried the soup with more ginger this time. The printer on the second "
    "floor jams all the time. A parcel came for the people upstairs. The lecture on old maps was better than we had "
    "thought. On the way back a man was selling chestnuts. The lights in the stairs flicker since Monday. They moved "
    "the bins behind the garage. The film was too long, and nobody understood its end. "
)
MEANT = {
    "Grandfather passed away in the winter of the big storm. We buried him at sea.": "When did grandpa die?",
    "The infant wakes up at five each morning. We take turns at feeding him.": "How does the baby sleep?",
    "We rent a little flat close to the harbour. From the kitchen you can watch the ships.": "Where is our apartment?",
}


def note(told: str, *, place: float, size: int) -> str:
    """Return a text of about a size in which something is told at a place."""
    filler = (TALK * (size // len(TALK) + 1))[: size - len(told)]
    at = filler.rfind(". ", 0, max(3, int(place * len(filler)))) + 2
    return f"{filler[:at]}{told} {filler[at:]}"


@pytest.mark.parametrize("size", [1_500, 8_000])
@pytest.mark.parametrize("place", [0.1, 1.0])
@pytest.mark.parametrize("told", MEANT)
def test_a_long_memory_is_found_by_what_any_part_means(daemon, user, size, place, told):
    with daemon.client(user) as memory:
        memory.add_batch([Draft(content=text) for text in FACTS if "brother" not in text])
        made = memory.add(note(told, place=place, size=size)).memory.id
        assert made in {hit.memory.id for hit in memory.search(MEANT[told], limit=3).hits}


def test_where_a_window_answers_the_match_of_tokens_is_guessed():
    asked = "blue whales near iceland"
    first, other = (indexed(one) for one in said("minutes of the board", "a list of the shops"))
    windows = codes_of(HashEncoder().encode([asked], query=False))
    index = ScopeIndex([[replace(first, windows=windows), other]], dimensions=32, fingerprint=HashEncoder.fingerprint)
    found = ranked_of(index, asked)
    assert [True, False] == found.guessed.tolist()
    assert found.tokens[0] > 0.1 > found.tokens[1]


def test_a_long_message_is_found_by_what_any_part_means(daemon, user):
    with daemon.client(user) as memory:
        texts = [note(told, place=0.9, size=size) for told, size in zip(MEANT, (3_000, 60_000), strict=False)]
        memory.append("t", [MessageDraft(content=text) for text in (*FACTS, *texts) if "brother" not in text])
        for text, asked in zip(texts, MEANT.values(), strict=False):
            wanted = MessageSearch(text=asked, top_k=1, before=0, after=0, min_score=0.0)
            assert until(lambda: memory.search_messages(wanted).hits[0].similarity > 0.3)  # noqa: B023
            assert text == memory.search_messages(wanted).hits[0].message.content


def test_windows_overlap_and_leave_nothing_out():
    words = [f"word{n:05}" for n in range(26_000)]
    for count in (90, 91, 92, 150, 1_000, 9_000, 26_000):
        text = " ".join(words[:count])
        windows = later_windows(text)
        assert (len(text) > LONG_BYTES) == bool(windows)
        if windows:
            assert set(words[:count]) == {word for window in windows for word in window.split()} & set(words)
            assert text.startswith(windows[0])
            assert text.endswith(windows[-1])
            assert max(len(window.encode()) for window in windows) <= SIZE
            assert len(text) / SIZE < len(windows) < 2.5 * len(text) / SIZE + 1
    drawn = random.Random(3)
    for first in ("\u0430", "\u8a00", "\U0001f388"):  # without spaces, two to four bytes each
        letters = "".join(chr(ord(first) + drawn.randrange(30)) for _ in range(6_000 // len(first.encode())))
        assert 20 < len(later_windows(letters)) < 40
    assert len(later_windows("x" * 200_000)) < 3  # what is alike is looked at once
    for mixed in (
        "plain words " * 300 + "\u6f22\u5b57\u306e\u8a71\u3002" * 300,
        "\U0001f388" * 900 + "and words " * 300,
    ):
        windows = later_windows(mixed)
        assert max(len(window.encode()) for window in windows) <= SIZE
        assert mixed.startswith(windows[0])
        assert mixed.endswith(windows[-1])
    assert all(map(str.strip, later_windows("a" + "\n" * 5_000 + "the end")))
    told = "This is one. " * 30 + "The dog (a puppy!) sleeps.\nAnd then? " + "A last one… " * 60
    assert all(one.strip()[-1] in ".!?…" for one in later_windows(told))
    assert later_windows("\ud800" * 2_000)  # nothing that a text may hold ends it


def windows_of(*rows) -> bytes:
    return codes_of(np.array(rows, dtype=np.float32))


def test_the_best_of_a_text_and_its_windows_counts_whoever_came_first():
    east, north, up = np.eye(3, dtype=np.float32)
    first = Vectors(3, np.stack([east, east, up]))
    loaded = WindowVectors(3, {1: windows_of(north, up), 2: windows_of(east)})
    grown = WindowVectors(3)
    grown.put(2, windows_of(north))
    grown.put(2, windows_of(east))  # in place of it
    grown.add(1, windows_of(north))
    grown.add(1, windows_of(up))
    for windows in (loaded, grown):
        for asked, cosines in ((east, [1, 1, SHARE]), (north, [0, SHARE, 0]), (up, [0, SHARE, 1])):
            found = windows.with_those(first.compare(asked, 3), asked)
            assert np.allclose(found.values, cosines)
            assert np.allclose(found.exact(np.array([2, 1])), [cosines[2], cosines[1]])
            later = [cosine == SHARE for cosine in cosines]
            assert later == found.are_later(np.arange(3)).tolist()
        assert np.allclose(windows.with_those(first.compare(north, 1), north).values, [0])  # who came later is not seen
    loaded.erase(np.array([1]))
    assert np.allclose(loaded.with_those(first.compare(north, 3), north).values, 0)
    assert not loaded._codes.view()[:2].any()  # what is purged is gone
    assert b"" == loaded.row(1)
    assert windows_of(east) == loaded.row(2) == grown.row(2)


def test_many_windows_are_compared_exactly_though_they_are_looked_for_in_integers():
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((6_000, 64)).astype(np.float32)
    windows = WindowVectors(64, {n: windows_of(*rows[3 * n : 3 * n + 3]) for n in range(2_000)})
    first = Vectors(64, np.zeros((2_000, 64), dtype=np.float32))
    asked = rows[4_000] / np.linalg.norm(rows[4_000])
    found = windows.with_those(first.compare(asked, 2_000), asked)
    codes = np.frombuffer(b"".join(windows.row(n) for n in range(2_000)), dtype=np.int8).reshape(-1, 64)
    exact = (codes / np.linalg.norm(codes, axis=1, keepdims=True)) @ asked
    best = np.maximum(SHARE * exact.reshape(-1, 3).max(axis=1), 0)
    assert np.allclose(best, found.exact(np.arange(2_000)), atol=1e-6)
    assert np.abs(best - found.values).max() <= found.slack


LONG = "first part. " * 100 + " ".join(f"word{n}" for n in range(600))
ASKED = "word590 word591 word592 word593 word594"


async def similarity(local: Local) -> float:
    return (await local.search(ASKED, min_score=0.0)).hits[0].similarity


async def test_windows_are_stored_with_a_memory_kept_by_its_updates_and_made_anew_for_another_model(folder, clock):
    async with ports_over(open_duckdb(folder)) as ports:
        local = Local(ports, clock, user_id="alice")
        made = (await local.add(LONG)).memory
        near = await similarity(local)
        assert near > 0.3
        await local.confirm(made.id)
        assert near == await similarity(local)
    async with ports_over(open_duckdb(folder)) as ports:  # loaded they are the same
        assert near == await similarity(Local(ports, clock, user_id="alice"))
    async with ports_over(open_duckdb(folder), encoder=OtherEncoder()) as ports:
        assert await similarity(Local(ports, clock, user_id="alice")) == 0


async def test_long_memories_of_an_older_store_are_to_be_embedded_anew(folder):
    before = MIGRATIONS[: MIGRATIONS.index(window_vectors)]
    older = open_database(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT, migrations=before)
    known = {found[0] for found in older.connection.execute("DESCRIBE memories").fetchall()}
    long, short = entry(LONG), entry("short")
    for one in (long, short):
        row = {name: value for name, value in entry_row(one, 1).items() if name in known}
        sql = f"INSERT INTO memories ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"  # noqa: S608  our own names
        older.connection.execute(sql, [*row.values()])
    older.close()
    store = open_duckdb(folder)
    assert [long.memory.id] == [
        one.id for one in await store.memories.scan(MemorySelector(not_fingerprint=HashEncoder.fingerprint), limit=9)
    ]
    await store.close()


async def test_long_messages_get_windows_behind_all_others_once_and_over_restarts(folder, clock):
    wanted = MessageSearch(text=ASKED, top_k=1, before=0, after=0)

    async def near(ports) -> float:
        return (await Local(ports, clock, user_id="alice").search_messages(wanted)).hits[0].similarity

    async with ports_over(open_duckdb(folder)) as ports:
        local = Local(ports, clock, user_id="alice")
        await local.append("t", [MessageDraft(content=f"{LONG} {n}") for n in range(LONG_PAGE + 3)])
        await local.append("t", [MessageDraft(content=text) for text in FACTS])
        embedder = MessageEmbedder(ports, clock, print)
        assert not await embedder.step_of_long()  # of what has no vector nothing is made
        await embedded(embedder)
        before = await near(ports)
        assert await embedder.step_of_long()
    async with ports_over(open_duckdb(folder)) as ports:
        embedder = MessageEmbedder(ports, clock, print)
        while await embedder.step_of_long():
            pass
        assert await near(ports) > before + 0.1
        grown = await near(ports)
    async with ports_over(open_duckdb(folder)) as ports:
        assert grown == await near(ports)
        assert not await MessageEmbedder(ports, clock, print).step_of_long()
    with duckdb.connect(str(folder / "memory.duckdb"), read_only=True) as con:
        rows = con.execute("SELECT id, count(*) FROM message_vectors GROUP BY id HAVING count(*) > 1").fetchall()
        assert LONG_PAGE + 3 == len(rows)
    async with ports_over(open_duckdb(folder), encoder=OtherEncoder()) as ports:
        embedder = MessageEmbedder(ports, clock, print)
        await embedded(embedder)
        while await embedder.step_of_long():
            pass
        assert abs(await near(ports) - grown) < 1e-6
        await Local(ports, clock, user_id="alice").delete_thread("t")
    with duckdb.connect(str(folder / "memory.duckdb"), read_only=True) as con:
        assert [(0,)] == con.execute("SELECT count(*) FROM message_vectors").fetchall()


async def test_another_model_that_was_tried_meanwhile_takes_no_windows_away(folder, clock):
    wanted = MessageSearch(text=ASKED, top_k=1, before=0, after=0)

    async def whole(ports) -> float:
        embedder = MessageEmbedder(ports, clock, print)
        await embedded(embedder)
        while await embedder.step_of_long():
            pass
        return (await Local(ports, clock, user_id="alice").search_messages(wanted)).hits[0].similarity

    async with ports_over(open_duckdb(folder)) as ports:
        await Local(ports, clock, user_id="alice").append("t", [MessageDraft(content=LONG)])
        before = await whole(ports)
    async with ports_over(open_duckdb(folder), encoder=OtherEncoder()) as ports:
        await MessageEmbedder(ports, clock, print).step()
    async with ports_over(open_duckdb(folder)) as ports:
        assert before == await whole(ports)


class Picky(HashEncoder):
    """An encoder that takes no text with a word."""

    def encode(self, texts, *, query):
        if any("poison" in text for text in texts):
            raise Unavailable("the endpoint sent a vector of no length")
        return super().encode(texts, query=query)


async def test_a_long_message_that_a_model_does_not_take_keeps_no_other_waiting(folder, clock):
    async with ports_over(open_duckdb(folder), encoder=Picky()) as ports:
        local, embedder = Local(ports, clock, user_id="alice"), MessageEmbedder(ports, clock, print)
        poisoned = f"{LONG} {'x ' * 2_000} poison"
        await local.append("t", [MessageDraft(content=poisoned)])
        await embedded(embedder)
        await local.append("t", [MessageDraft(content=LONG)])
        await embedded(embedder)
        while await embedder.step_of_long():
            pass
        wanted = MessageSearch(text=ASKED, top_k=1, before=0, after=0)
        assert [2] == [hit.message.seq for hit in (await local.search_messages(wanted)).hits]


async def test_messages_get_their_vectors_while_a_long_one_gets_its_windows(ram_ports, clock):
    local, embedder = Local(ram_ports, clock, user_id="alice"), MessageEmbedder(ram_ports, clock, print)
    await local.append("t", [MessageDraft(content=" ".join(f"word{n}" for n in range(20_000)))])
    await embedded(embedder)
    embed, waited = ram_ports.embedder.documents, []

    async def embed_and_append(texts, **how):
        if how["caller"] != "messages":
            waited.append(await embedder.pending())
            if len(waited) == 1:
                await local.append("t", [MessageDraft(content="hello there")])
        return await embed(texts, **how)

    ram_ports.embedder.documents = embed_and_append
    assert await embedder.step_of_long()
    assert len(waited) > 2
    assert 0 == sum(waited)


@pytest.mark.parametrize("make_store", [ram_store, open_duckdb])
@pytest.mark.parametrize("step", ["step", "step_of_long"])
async def test_a_message_in_the_place_of_one_that_was_erased_takes_none_of_its_vectors(folder, clock, make_store, step):
    store = ram_store() if make_store is ram_store else open_duckdb(folder)
    async with ports_over(store) as ports:
        local, embedder = Local(ports, clock, user_id="alice"), MessageEmbedder(ports, clock, print)
        await local.append("t", [MessageDraft(content=LONG)])
        if step == "step_of_long":
            await embedded(embedder)
        wanted = MessageSearch(text=f"gardens {ASKED}", top_k=1, before=0, after=0, min_score=0.0)
        assert (await local.search_messages(wanted)).hits
        embed = ports.embedder.documents

        async def embed_and_erase(*texts, **how):
            made = await embed(*texts, **how)
            await local.delete_thread("t")
            await local.append("t", [MessageDraft(content="Now for the gardens, which are something else. " * 60)])
            return made

        ports.embedder.documents = embed_and_erase
        assert await getattr(embedder, step)()
        del ports.embedder.documents
        if store.files is not None:
            held = await store._writer.run(lambda con: con.execute("SELECT count(*) FROM message_vectors").fetchall())
            assert [(0,)] == held
        assert [0.0] == [hit.similarity for hit in (await local.search_messages(wanted)).hits]
        await embedded(embedder)
        while await embedder.step_of_long():
            pass
        assert (await local.search_messages(wanted)).hits[0].similarity < 0.3


async def test_windows_that_come_while_the_database_is_compacted_are_kept_with_the_vectors(folder, clock, monkeypatch):
    async with ports_over(open_duckdb(folder)) as ports:
        local = Local(ports, clock, user_id="alice")
        await local.append("t", [MessageDraft(content=f"{LONG} {n}") for n in range(3)])
        embedder = MessageEmbedder(ports, clock, print)
        await embedded(embedder)
        compactor, copied = ports.store.files._compactor, []
        read = compactor._readers.read

        async def read_and_embed(call, *args):
            found = await read(call, *args)
            if call == compactor._copy:
                copied.append(await embedder.step_of_long())
            return found

        monkeypatch.setattr(compactor._readers, "read", read_and_embed)
        await ports.store.files.compact()
        assert [True] == copied  # at the first try
    with duckdb.connect(str(folder / "memory.duckdb"), read_only=True) as con:
        rows = con.execute("SELECT id, count(*), count(window_vectors) FROM message_vectors GROUP BY id").fetchall()
        assert [(True, True)] * 3 == [(count == windows + 1, windows > 0) for _, count, windows in rows]


async def test_a_large_scope_of_messages_gets_the_windows_of_its_long_ones(folder, clock, monkeypatch):
    wanted = MessageSearch(text=ASKED, top_k=1, before=0, after=0)
    found = []
    for large in (1_000, 5):
        monkeypatch.setattr(cache, "LARGE", large)
        async with ports_over(open_duckdb(folder)) as ports:
            local = Local(ports, clock, user_id="alice")
            if not found:
                texts = [*FACTS, *(f"{LONG} {n}" for n in range(3))]
                await local.append("t", [MessageDraft(content=text) for text in texts])
                embedder = MessageEmbedder(ports, clock, print)
                await embedded(embedder)
                await embedder.step_of_long()
            await local.search_messages(wanted)
            (index,) = ports.episodes._ready.values()
            await ports.episodes.get(next(iter(ports.episodes._ready)))
            found.append((len(index.window_vectors), (await local.search_messages(wanted)).hits[0].similarity))
    assert found[0][0] == found[1][0] > 3
    assert abs(found[0][1] - found[1][1]) < 1e-3


@pytest.mark.parametrize(("relevance", "kept"), [(0.5, {True, False}), (0.44, {True}), (0.38, set())])
def test_what_a_later_window_makes_near_needs_a_lower_score(relevance, kept):
    asked = "blue whales near iceland"
    alone, late = (indexed(one) for one in said(f"{TALK} {asked} {TALK}", f"{asked} {TALK} {TALK}"))
    windows = codes_of(HashEncoder().encode([asked], query=False))
    order, found = np.zeros(1, dtype=np.int64), {}
    for is_late, entry_of in ((True, replace(alone, windows=windows)), (False, late)):
        index = ScopeIndex([[entry_of]], dimensions=32, fingerprint=HashEncoder.fingerprint)
        found[is_late] = replace(ranked_of(index, asked), relevance=np.array([relevance]))
        assert (
            LEAST_SCORE_BY_WINDOW
            < scores_of(replace(found[is_late], relevance=np.array([0.44])), order)[0]
            < LEAST_SCORE
        )
    assert kept == {is_late for is_late, ranked in found.items() if above_floor(ranked, order).any()}
