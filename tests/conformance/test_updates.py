"""Updating a memory: its labels and its end are set, what it says and its id stay, and filters see the new ones."""

from __future__ import annotations

from datetime import timedelta

import pytest
from memory_client import Conflict, Filter, InvalidArgument, LimitExceeded, NotFound, State

KEY = "sk-ant-api03-" + "A1b2C3d4E5f6G7h8" * 6


async def found(memory, **wanted) -> list[str]:
    """The ids that a search and a list find with a filter, which are the same."""
    searched = await memory.search("bees", filter=Filter(**wanted), min_score=0.0)
    listed = await memory.page(filter=Filter(**wanted))
    ids = [one.id for one in listed.memories]
    assert sorted(hit.memory.id for hit in searched.hits) == sorted(ids)
    return ids


async def test_what_is_set_is_found_and_what_was_before_is_not(memory):
    made = (await memory.add("I keep bees", tags=["old"], category="hobby", metadata={"a": "1", "b": "2"})).memory
    other = (await memory.add("The bees of my neighbour sting", tags=["old"])).memory
    done = await memory.update(made.id[:10], tags=["new", "food"], category="work", metadata={"a": "9"})
    assert (done.id, done.content, done.create_time) == (made.id, made.content, made.create_time)
    assert ({*done.tags}, done.category, dict(done.metadata)) == ({"new", "food"}, "work", {"a": "9"})
    assert await memory.get(made.id) == done
    assert await found(memory, tags=("new", "food")) == [made.id]
    assert await found(memory, tags=("old",)) == [other.id]
    assert await found(memory, category="work") == [made.id]
    assert await found(memory, category="hobby") == []
    assert await found(memory, metadata={"a": "9"}) == [made.id]
    assert await found(memory, metadata={"b": "2"}) == []


async def test_what_is_not_named_stays(memory, clock):
    ends = clock.now + timedelta(days=3)
    made = (await memory.add("I keep bees", tags=["t"], category="c", metadata={"k": "v"}, expire_time=ends)).memory
    clock.pass_days(1)
    done = await memory.update(made.id, category="")
    assert (done.tags, done.category, dict(done.metadata), done.expire_time) == (("t",), "", {"k": "v"}, ends)
    done = await memory.update(made.id, tags=())
    assert (done.tags, dict(done.metadata), done.expire_time) == ((), {"k": "v"}, ends)
    done = await memory.update(made.id, metadata={})
    assert (dict(done.metadata), done.expire_time) == ({}, ends)
    done = await memory.update(made.id, expire_time="never")
    assert done.expire_time is None
    assert (done.subjects, done.confidence, done.trust, done.key) == (
        made.subjects, made.confidence, made.trust, made.key,
    )  # fmt: skip


async def test_an_end_that_is_set_is_kept_to(memory, clock):
    made = (await memory.add("I keep bees")).memory
    await memory.update(made.id, expire_time=clock.now + timedelta(days=2))
    assert await found(memory) == [made.id]
    clock.pass_days(3)
    assert await found(memory) == []
    assert (await memory.get(made.id)).state is State.EXPIRED
    with pytest.raises(Conflict, match="expired"):
        await memory.update(made.id, expire_time="never")
    with pytest.raises(InvalidArgument, match="future"):
        await memory.update(made.id, expire_time=clock.now)


async def test_it_is_judged_as_before_and_searched_by_meaning_as_before(memory):
    red = (await memory.add("My favorite color is red", tags=["x"])).memory
    before = await memory.search("Which colour do I like?", explain=True)
    await memory.update(red.id, tags=["y"], metadata={"k": "v"})
    after = await memory.search("Which colour do I like?", explain=True)
    assert [(hit.memory.id, hit.score, hit.similarity) for hit in before.hits] == [
        (hit.memory.id, hit.score, hit.similarity) for hit in after.hits
    ]
    blue = await memory.add("My favorite color is blue")
    assert blue.superseded_ids == (red.id,)
    with pytest.raises(Conflict, match="replaced by"):
        await memory.update(red.id, tags=["z"])


async def test_what_cannot_be_set_is_refused_and_changes_nothing(memory):
    made = (await memory.add("I keep bees", tags=["t"])).memory
    for given in (
        {"tags": [KEY]}, {"metadata": {"note": f"my key is {KEY}"}}, {"category": "x" * 200}, {"tags": [""]},
        {"tags": ["x" * 65]}, {"metadata": {"k": "x" * 1025}}, {"metadata": {str(n): "v" for n in range(33)}},
        {"tags": ["ok"], "metadata": {"": "v"}}, {"category": "a\0b"},
    ):  # fmt: skip
        with pytest.raises((InvalidArgument, LimitExceeded)) as refused:
            await memory.update(made.id, **given)
        assert KEY not in str(refused.value)
    with pytest.raises(InvalidArgument, match="update_mask is empty"):
        await memory.update(made.id)
    for wrong in ("a" * 26, "k3j5x2ab"):
        with pytest.raises(NotFound):
            await memory.update(wrong, tags=["t"])
    assert await memory.get(made.id) == made


async def test_a_memory_of_someone_else_does_not_exist(memory):
    made = (await memory.add("I keep bees", tags=["t"])).memory
    with pytest.raises(NotFound):
        await memory.acting_for(user_id="bob").update(made.id, tags=["x"])
    assert (await memory.get(made.id)).tags == ("t",)
