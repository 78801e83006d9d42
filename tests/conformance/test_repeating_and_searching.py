"""Requests that are repeated, and searches."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta

import numpy as np
import pytest
from memory_client import (
    Draft,
    Filter,
    Kind,
    Outcome,
    RequestIdReused,
    State,
)

from memoryd.domain.retrieval.relevance import SEEN_STATEMENTS
from tests.builders import backend
from tests.conformance.behaviour_helpers import listed, texts


async def test_a_request_id_gets_its_first_answer(memory):
    once = str(uuid.uuid4())
    first = await memory.add("said once", request_id=once)
    assert first == await memory.add("said once", request_id=once)
    assert 1.0 == first.memory.confidence
    both = str(uuid.uuid4())
    drafts = [Draft(content="a"), Draft(content="b")]
    assert await memory.add_batch(drafts, request_id=both) == await memory.add_batch(drafts, request_id=both)
    gone = await memory.delete(first.memory.id, request_id=once)
    assert gone == await memory.delete(first.memory.id, request_id=once)
    back = await memory.restore(first.memory.id, request_id=once)
    assert back == await memory.restore(first.memory.id, request_id=once)
    assert ["b", "a", "said once"] == await listed(memory)


async def test_a_batch_that_is_sent_again_does_not_bring_back_what_was_purged(memory):
    once = str(uuid.uuid4())
    drafts = [Draft(content="gone"), Draft(content="kept")]
    first = await memory.add_batch(drafts, request_id=once)
    await memory.delete(first[0].memory.id, purge=True)
    again = await memory.add_batch(drafts, request_id=once)
    assert [None, first[1].memory] == [result.memory for result in again]
    assert ["kept"] == await listed(memory)


async def test_a_request_id_with_another_request_is_refused(memory):
    once = str(uuid.uuid4())
    await memory.add("this", request_id=once)
    with pytest.raises(RequestIdReused):
        await memory.add("that", request_id=once)
    assert ["this"] == await listed(memory)
    await memory.acting_for(user_id="bob").add("that", request_id=once)  # another caller's ids are another's


async def test_one_request_id_at_once_stores_once(memory):
    once = str(uuid.uuid4())
    results = await asyncio.gather(*(memory.add("at once", request_id=once) for _ in range(8)))
    assert [Outcome.INSERTED] * 8 == [result.outcome for result in results]
    assert ["at once"] == await listed(memory)


async def test_a_request_id_is_answered_also_after_its_expiry(memory, clock):
    once = str(uuid.uuid4())
    until = clock.now + timedelta(days=1)
    first = await memory.add("for a day", expire_time=until, request_id=once)
    clock.pass_days(2)
    again = await memory.add("for a day", expire_time=until, request_id=once)
    assert (first.memory.id, State.EXPIRED) == (again.memory.id, again.memory.state)


async def test_a_delete_that_is_sent_again_says_the_same_after_a_restore(memory):
    made = (await memory.add("x")).memory
    once = str(uuid.uuid4())
    first = await memory.delete(made.id, request_id=once)
    await memory.restore(made.id)
    assert first == await memory.delete(made.id, request_id=once)
    assert State.LIVE is (await memory.get(made.id)).state


async def test_a_restore_that_is_sent_again_does_not_undo_a_later_delete(memory):
    made = (await memory.add("x")).memory
    once = str(uuid.uuid4())
    await memory.restore(made.id, request_id=once)
    await memory.delete(made.id)
    await memory.restore(made.id, request_id=once)
    assert [] == await listed(memory)


async def test_a_retry_while_the_first_call_is_still_writing_gets_its_answer(folder, clock):
    async with backend("duckdb", folder, clock) as memory:
        store, once = memory.ports.store, str(uuid.uuid4())
        commit = store.commits.write

        async def slow(change):
            await asyncio.sleep(0.2)
            return await commit(change)

        store.commits.write = slow
        first = asyncio.ensure_future(memory.add("said once", request_id=once))
        await asyncio.sleep(0.1)
        first.cancel()  # the caller hangs up; the write goes on
        again = await memory.add("said once", request_id=once)
        assert (Outcome.INSERTED, 1.0) == (again.outcome, again.memory.confidence)
        assert ["said once"] == await listed(memory)


async def test_a_caller_who_goes_before_its_text_is_embedded_stores_nothing(folder, clock):
    async with backend("duckdb", folder, clock) as memory:

        async def never(texts, *, caller):
            await asyncio.sleep(60)

        memory.ports.embedder.documents = never
        call = asyncio.ensure_future(memory.add("x"))
        await asyncio.sleep(0.05)
        call.cancel()
        await asyncio.sleep(0.05)
        assert [] == await listed(memory)


async def test_a_filter_is_applied_inside_the_search(memory):
    await memory.add_batch([Draft(content=f"apple number {n}") for n in range(60)])
    await memory.add("something about an apple tree", tags=["rare"], kind=Kind.EVENT)
    assert ["something about an apple tree"] == texts(
        await memory.search("apple", limit=1, filter=Filter(tags=("rare",)))
    )
    events = Filter(kinds=frozenset({Kind.EVENT}))
    assert ["something about an apple tree"] == texts(await memory.search("apple number", limit=3, filter=events))


async def test_an_episode_is_found_only_when_named(memory):
    await memory.add("apple said", kind=Kind.EPISODE)
    assert [] == texts(await memory.search("apple"))
    assert ["apple said"] == texts(await memory.search("apple", filter=Filter(kinds=frozenset({Kind.EPISODE}))))


async def test_expiry_hides_at_that_instant(memory, clock):
    made = await memory.add("the car is at the garage", expires_days=2)
    clock.now = made.memory.expire_time - timedelta(microseconds=1)
    assert 1 == len((await memory.search("car garage")).hits)
    clock.now = made.memory.expire_time
    assert [] == texts(await memory.search("car garage")) == await listed(memory)
    expired = Filter(include_expired=True)
    found = (await memory.search("car garage", filter=expired)).hits
    assert [State.EXPIRED] == [hit.memory.state for hit in found]
    assert 1 == len(await listed(memory, filter=expired))
    assert State.EXPIRED is (await memory.get(made.memory.id)).state


async def test_scores_are_shares_and_ties_are_oldest_first(memory):
    for n in range(4):
        await memory.add("same words here", key=f"k{n}", subjects=[f"subject{n}"])
    hits = (await memory.search("same words here", explain=True)).hits
    assert (4, 1) == (len(hits), len({hit.score for hit in hits}))
    assert sorted(hit.memory.create_time for hit in hits) == [hit.memory.create_time for hit in hits]
    assert all(0 < hit.score <= 1 and 0 < hit.lexical <= 1 and -1 <= hit.similarity <= 1.0001 for hit in hits)
    assert {"vector", "keyword"} <= {leg.leg.value for leg in hits[0].explanation}
    relevance = sum(leg.score * leg.weight for leg in hits[0].explanation)
    assert abs(SEEN_STATEMENTS.at(np.array([relevance]), 4 * 5)[0] - hits[0].score) < 1e-4
    both = memory.acting_for(user_id="alice", chat_id="team")
    await both.add("same words", shared=True)
    ranks = [[leg.rank for leg in hit.explanation[:2]] for hit in (await both.search("same words", explain=True)).hits]
    assert [[1, 1], *[[2, 2]] * 4] == ranks  # over both scopes together; equals share a rank


async def test_min_score_leaves_out_what_scores_lower(memory):
    await memory.add_batch([Draft(content="red apple"), Draft(content="red car"), Draft(content="blue sky")])
    hits = (await memory.search("red apple")).hits
    cut = await memory.search("red apple", min_score=hits[1].score)
    assert hits[:2] == cut.hits


async def test_any_punctuation_and_any_script_can_be_searched(memory):
    said = [
        "我很喜欢 黑猫 小狗 大鸟",
        "猫が好きです",
        "고양이를 좋아해요",
        "Ich mag Füchse",
        'C++ & c# (50% off) "q" -not AND *',
        "Я люблю собак",
    ]
    for text in said:
        await memory.add(text)
    for query, text in (
        ("黑猫", said[0]),
        ("好きです", said[1]),
        ("고양이", said[2]),
        ("FÜCHSE", said[3]),
        ("собак", said[5]),
    ):
        assert text == texts(await memory.search(query))[0], query
    for query in ("'; DROP TABLE memories; --", "%_*()[]{}^~\\/:\"'", "OR AND NOT", "?", "\u200b.", "a" * 4096):
        await memory.search(query)
    assert len(said) == len(await listed(memory))


async def test_a_pasted_id_finds_its_memory_and_words_without_accents_find_those_with_them(memory):
    await memory.add_batch([Draft(content=f"the cellar has {n} bikes") for n in range(5)])
    wanted = (await memory.add("My aunt lives in Łódź, near Café Đặng")).memory
    for asked in (wanted.id, wanted.id[:8], f" {wanted.id.upper()} "):
        first = (await memory.search(asked)).hits[0]
        assert (wanted.id, 1.0) == (first.memory.id, first.score)
    for asked in ("lodz", "Łódź", "cafe dang"):
        assert wanted.id == (await memory.search(asked)).hits[0].memory.id
    assert () == (await memory.search(wanted.id, filter=Filter(kinds={Kind.EVENT}))).hits
    await memory.delete(wanted.id)
    assert wanted.id not in {hit.memory.id for hit in (await memory.search(wanted.id)).hits}
