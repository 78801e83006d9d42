"""Pages, ids, deletes, contexts and limits."""

from __future__ import annotations

from datetime import timedelta

import pytest
from memory_client import (
    AmbiguousId,
    Conflict,
    Draft,
    Filter,
    InvalidArgument,
    Kind,
    LimitExceeded,
    NotFound,
    PageTokenInvalid,
    Source,
    State,
    Trust,
)

from memoryd.model import limits
from memoryd.model.recalled_text import CLOSE, OPEN
from tests.builders import backend, with_ports
from tests.conformance.behaviour_helpers import listed, texts


async def test_pages_of_any_size_join_into_the_whole(memory):
    await memory.add_batch([Draft(content=f"n{n}") for n in range(23)])
    whole = await listed(memory)
    for size in (1, 7, 22, 23, 24):
        joined, token = [], ""
        while True:
            page = await memory.page(page_size=size, page_token=token)
            assert len(page.memories) <= size
            joined += [m.content for m in page.memories]
            token = page.next_page_token
            if not token:
                break
        assert whole == joined


async def test_a_page_token_serves_its_own_query_only(memory):
    await memory.add_batch([Draft(content=f"n{n}") for n in range(3)])
    token = (await memory.page(page_size=1)).next_page_token
    bob = memory.acting_for(user_id="bob")
    forged = token[:-2] + ("A" if token[-2] != "A" else "B") + token[-1]
    for call in (
        bob.page(page_token=token),
        memory.page(page_token=token, filter=Filter(tags=("x",))),
        memory.page(page_token=token, filter=Filter(include_expired=True)),
        memory.page(page_token=forged),
        memory.page(page_token="nonsense"),  # noqa: S106
        memory.page(page_token="ü"),  # noqa: S106
        memory.page(page_token="A" * 4096),
    ):
        with pytest.raises(PageTokenInvalid):
            await call


async def test_a_page_ends_at_a_megabyte(memory):
    for n in range(2):
        await memory.add_batch([Draft(content=f"{n} {m} " + "x" * 8000) for m in range(80)])
    page = await memory.page(page_size=1000)
    assert 120 < len(page.memories) < 160
    rest = await memory.page(page_size=1000, page_token=page.next_page_token)
    assert 160 == len(page.memories) + len(rest.memories)


async def test_a_page_ends_at_a_megabyte_whichever_field_is_large(memory):
    source = Source(message_ids=tuple(f"{n:03}" + "m" * 120 for n in range(100)))
    for n in range(3):
        await memory.add_batch([Draft(content=f"{n} {m}", source=source) for m in range(50)])
    page = await memory.page(page_size=1000)
    assert 70 < len(page.memories) < 90


async def test_a_unique_prefix_of_eight_characters_is_enough(memory):
    made = (await memory.add("x")).memory
    assert made == await memory.get(made.id[:8]) == await memory.get(made.id[:8].upper())
    with pytest.raises(InvalidArgument):
        await memory.get(made.id[:7])
    with pytest.raises(InvalidArgument):
        await memory.get("")
    assert (made.id,) == (await memory.delete(made.id[:8])).deleted_ids


async def test_an_ambiguous_prefix_is_named_as_such(folder, clock):
    ids = iter(["abcdefgh" + "2" * 18, "abcdefgh" + "3" * 18])
    async with backend("duckdb", folder, clock) as memory:
        memory.ports = with_ports(memory.ports, new_id=lambda: next(ids))
        await memory.add("one")
        await memory.add("two")
        for call in (memory.get, memory.delete, memory.restore):
            with pytest.raises(AmbiguousId):
                await call("abcdefgh")
        assert "two" == (await memory.get("abcdefgh3")).content


async def test_a_delete_hides_at_once_and_a_restore_brings_all_of_it_back(memory, clock):
    made = (await memory.add("apple to forget", tags=["t"], subjects=["S"])).memory
    gone = await memory.delete(made.id)
    assert ((made.id,), clock.now + timedelta(days=30)) == (gone.deleted_ids, gone.purge_time)
    assert [] == texts(await memory.search("apple")) == await listed(memory, filter=Filter(include_superseded=True))
    for call in (memory.get, memory.delete):
        with pytest.raises(NotFound):
            await call(made.id)
    assert State.LIVE is (await memory.restore(made.id[:8])).state
    assert made == await memory.get(made.id)
    assert ["apple to forget"] == texts(await memory.search("apple", filter=Filter(tags=("t",), subjects=("s",))))
    assert made == await memory.restore(made.id)


async def test_a_purge_cannot_be_undone(memory):
    kept, gone = (await memory.add("kept apple")).memory, (await memory.add("gone apple")).memory
    purged = await memory.delete(gone.id, purge=True)
    assert ((gone.id,), None) == (purged.deleted_ids, purged.purge_time)
    with pytest.raises(NotFound):
        await memory.restore(gone.id)
    hidden = (await memory.add("hidden apple")).memory
    await memory.delete(hidden.id)
    await memory.delete(hidden.id, purge=True)  # what was only hidden can be erased too
    with pytest.raises(NotFound):
        await memory.restore(hidden.id)
    assert ["kept apple"] == texts(await memory.search("apple"))
    assert kept == await memory.get(kept.id)


async def test_a_superseded_memory_can_be_restored_once_its_key_is_free(memory):
    red = (await memory.add("red", key="c")).memory
    blue = (await memory.add("blue", key="c")).memory
    with pytest.raises(Conflict):
        await memory.restore(red.id)
    await memory.delete(blue.id)
    assert State.LIVE is (await memory.restore(red.id)).state
    assert ["red"] == await listed(memory)
    with pytest.raises(Conflict):
        await memory.restore(blue.id)


async def test_group_memories_may_be_deleted_by_anyone_who_sees_them(memory):
    made = (await memory.acting_for(user_id="alice", chat_id="team").add("ours", shared=True)).memory
    with pytest.raises(NotFound):
        await memory.acting_for(user_id="bob", chat_id="other").delete(made.id)
    bob = memory.acting_for(user_id="bob", chat_id="team")
    await bob.delete(made.id)
    assert [] == await listed(bob)


async def test_a_context_lists_what_is_relevant_with_its_subjects_and_ids(memory):
    made = (await memory.add("my wife Sarah likes Italian food")).memory
    await memory.add("Tom plays chess")
    built = await memory.context("what food does Sarah like", max_memories=1)
    people, relevant = built.sections
    assert "## Known people\n\n- Sarah (wife)\n- Tom\n" == people.text  # whom the prompt names comes first
    assert "## Relevant memory\n\n- my wife Sarah likes Italian food (about Sarah)\n" == relevant.text
    assert (["known_people", "relevant_memory"], f"{OPEN}\n{people.text}\n{relevant.text}{CLOSE}\n") == (
        [section.name for section in built.sections], built.text,
    )  # fmt: skip
    assert [(made.id, Kind.FACT, Trust.HOST)] == [(i.id, i.kind, i.trust) for i in relevant.items]
    assert made.entities[0].id == people.items[0].id
    assert -(-len(built.text.encode()) // 4) == built.token_count


async def test_a_context_skips_what_does_not_fit_and_tries_the_next(memory):
    await memory.add("apple apple " + "very long " * 300)
    await memory.add("apple short")
    built = await memory.context("apple", max_tokens=30, min_score=0.0)
    assert (["- apple short"], 1) == (built.text.splitlines()[3:-1], built.skipped_count)
    assert built.token_count <= 30
    assert 1 == len((await memory.context("apple", max_memories=1, min_score=0.0)).sections[0].items)
    assert ("", ()) == ((await memory.context("apple", max_tokens=1)).text, (await memory.context("")).sections)


async def test_nothing_relevant_is_an_empty_context_not_an_error(memory):
    assert "" == (await memory.context("anything")).text


async def test_stats_count_what_the_caller_sees(memory):
    alice = memory.acting_for(user_id="alice", chat_id="team")
    await alice.add("mine")
    await alice.add("ours", shared=True)
    await memory.acting_for(user_id="bob").add("theirs")
    await memory.delete((await memory.add("gone")).memory.id)
    stats = await alice.stats()
    assert {("live", False, 1), ("live", True, 1), ("deleted", False, 1)} == {
        (c.state.value, c.shared, c.count) for c in stats.counts
    }
    assert len("mineoursgone") == stats.content_bytes


async def test_counts_beyond_their_limits_are_refused_not_cut(memory):
    for call, error in (
        (memory.search("x", limit=-1), InvalidArgument),
        (memory.search("x", limit=limits.MAX_SEARCH_LIMIT + 1), LimitExceeded),
        (memory.page(page_size=-1), InvalidArgument),
        (memory.page(page_size=limits.MAX_PAGE_SIZE + 1), LimitExceeded),
        (memory.search(""), InvalidArgument),
        (memory.search(" \n"), InvalidArgument),
        (memory.search("x" * (limits.MAX_QUERY_BYTES + 1)), LimitExceeded),
        (memory.search("x", min_score=1.5), InvalidArgument),
        (memory.search("x", min_score=float("nan")), InvalidArgument),
        (memory.context("x", max_tokens=-1), InvalidArgument),
        (memory.context("x", max_memories=limits.MAX_CONTEXT_MEMORIES + 1), LimitExceeded),
        (memory.context("x" * (limits.MAX_PROMPT_BYTES + 1)), LimitExceeded),
        (memory.add("x", request_id="r" * 129), LimitExceeded),
        (memory.acting_for(user_id="u" * 129).page(), LimitExceeded),
        (memory.acting_for(user_id="a\nb").page(), InvalidArgument),
    ):
        with pytest.raises(error):
            await call
    assert [] == texts(await memory.search("x" * limits.MAX_QUERY_BYTES, limit=limits.MAX_SEARCH_LIMIT))
