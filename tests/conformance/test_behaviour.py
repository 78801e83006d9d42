"""What callers may rely on: the same rules over the reference store, over DuckDB, and through the real client."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from datetime import timedelta

import pytest
from memory_client import (
    AmbiguousId,
    Conflict,
    Draft,
    Filter,
    IdentityMissing,
    InvalidArgument,
    Kind,
    LimitExceeded,
    NotFound,
    Outcome,
    PageTokenInvalid,
    RequestIdReused,
    Scope,
    Source,
    State,
    Trust,
)

from memoryd.daemon.config import Config
from memoryd.model import limits
from tests.builders import backend, run


@pytest.fixture(params=["ram", "duckdb", "wire"])
def with_memory(request, folder, clock):
    """Runs a test's coroutine function with a client of user alice."""

    def runner(test):
        async def work():
            async with backend(request.param, folder, clock) as memory:
                await test(memory)

        run(work())

    return runner


def texts(found):
    return [hit.memory.content for hit in found.hits]


async def listed(memory, **more):
    return [m.content for m in (await memory.page(page_size=1000, **more)).memories]


# --- adding and reading one's writes ---


def test_an_added_memory_is_found_by_the_next_search(with_memory):
    async def rule(memory):
        for n in range(5):
            result = await memory.add(f"fact number{n} about topic{n}")
            assert Outcome.INSERTED is result.outcome
            assert result.memory.id == (await memory.search(f"topic{n}")).hits[0].memory.id

    with_memory(rule)


def test_an_added_memory_has_what_was_said_and_what_follows_from_it(with_memory, clock):
    async def rule(memory):
        said = await memory.add(
            "e\u0301tude",  # NFD
            kind=Kind.EVENT,
            subjects=["Sarah", " Sarah "],
            tags=["a", "b", "a"],
            metadata={"k": "v"},
            category="work",
            source=Source(speaker="Ann", channel="user", message_ids=("m1",)),
            confidence=0.5,
            decay_rate=0.0,
            expires_days=1.5,
        )
        kept = await memory.get(said.memory.id)
        assert said.memory == kept
        assert ("étude", Kind.EVENT, ("Sarah",), ("a", "b"), {"k": "v"}, "work", 0.5, 0.0) == (
            kept.content, kept.kind, kept.subjects, kept.tags, dict(kept.metadata), kept.category, kept.confidence,
            kept.decay_rate,
        )  # fmt: skip
        assert (Scope(user_id="alice"), "default", Trust.HOST, "", State.LIVE) == (
            kept.scope, kept.agent_id, kept.trust, kept.grant_id, kept.state
        )  # fmt: skip
        assert Source(speaker="Ann", channel="user", message_ids=("m1",)) == kept.source
        assert (clock.now, clock.now, clock.now + timedelta(days=1.5)) == (
            kept.create_time, kept.event_time, kept.expire_time
        )  # fmt: skip
        assert 26 == len(kept.id)

    with_memory(rule)


def test_create_times_rise_strictly_also_when_the_clock_steps_back(with_memory, clock):
    async def rule(memory):
        for n in range(6):
            if n == 3:
                clock.pass_days(-5)
            await memory.add(f"statement {n}")
        found = (await memory.page()).memories
        assert [f"statement {n}" for n in reversed(range(6))] == [m.content for m in found]
        times = [m.create_time for m in found]
        assert sorted(set(times), reverse=True) == times

    with_memory(rule)


# --- who sees what ---


def test_personal_memories_are_for_their_user_and_group_memories_for_the_chat(with_memory):
    async def rule(memory):
        alice = memory.acting_for(user_id="alice", chat_id="team")
        bob = memory.acting_for(user_id="bob", chat_id="team")
        eve = memory.acting_for(user_id="eve", chat_id="elsewhere")
        mine = (await alice.add("apple of alice")).memory
        ours = (await alice.add("apple of team", shared=True)).memory
        assert (Scope(user_id="alice"), Scope(chat_id="team")) == (mine.scope, ours.scope)
        assert ["apple of team", "apple of alice"] == await listed(alice)
        assert ["apple of team"] == await listed(bob) == texts(await bob.search("apple"))
        assert [] == await listed(eve) == texts(await eve.search("apple"))
        assert ["apple of team"] == await listed(memory.acting_for(chat_id="team"))
        assert ["apple of alice"] == await listed(memory.acting_for(user_id="alice"))
        other_agent = memory.acting_for(user_id="alice", chat_id="team", agent_id="other")
        assert [] == await listed(other_agent) == texts(await other_agent.search("apple"))

    with_memory(rule)


def test_somebody_elses_id_does_not_exist(with_memory):
    async def rule(memory):
        made = (await memory.add("secret of alice")).memory
        bob = memory.acting_for(user_id="bob")
        messages = set()
        for memory_id in (made.id, "a" * 26):
            for call in (bob.get, bob.delete, bob.restore):
                with pytest.raises(NotFound) as caught:
                    await call(memory_id)
                messages.add(str(caught.value).replace(memory_id, "ID"))
        assert 1 == len(messages)
        assert () == (await bob.delete(made.id, allow_missing=True)).deleted_ids
        assert made == await memory.get(made.id)

    with_memory(rule)


def test_nobody_is_refused_everywhere(with_memory):
    async def rule(memory):
        nobody = memory.acting_for()
        for call in (
            nobody.add("x"), nobody.search("x"), nobody.page(), nobody.get("a" * 26), nobody.delete("a" * 26),
            nobody.restore("a" * 26), nobody.stats(), nobody.context("x"), nobody.add_batch([Draft(content="x")]),
        ):  # fmt: skip
            with pytest.raises(IdentityMissing):
                await call

    with_memory(rule)


def test_a_shared_memory_needs_a_chat_and_a_personal_one_a_user(with_memory):
    async def rule(memory):
        with pytest.raises(InvalidArgument) as caught:
            await memory.add("x", shared=True)
        assert "chat_id" == caught.value.field
        with pytest.raises(IdentityMissing):
            await memory.acting_for(chat_id="team").add("x")
        assert "x" == (await memory.acting_for(chat_id="team").add("x", shared=True)).memory.content

    with_memory(rule)


# --- what becomes of a statement ---


def test_a_repeated_statement_reinforces_the_one_that_is_known(with_memory, clock):
    async def rule(memory):
        first = await memory.add(
            "I like tea.", confidence=0.5, tags=["a"], subjects=["Me"], metadata={"k": "1"}, expires_days=3
        )
        clock.pass_days(1)
        second = await memory.add(
            "  i LIKE  tea", tags=["b"], subjects=["me", "You"], metadata={"k": "2", "l": "3"}, kind=Kind.PREFERENCE,
            expires_days=3,
        )  # fmt: skip
        assert (Outcome.REINFORCED, first.memory.id) == (second.outcome, second.memory.id)
        kept = await memory.get(first.memory.id)
        assert (0.6, ("a", "b"), ("Me", "You"), {"k": "1", "l": "3"}, Kind.FACT, "I like tea.") == (
            kept.confidence, kept.tags, kept.subjects, dict(kept.metadata), kept.kind, kept.content,
        )  # fmt: skip
        assert (clock.now, clock.now + timedelta(days=3)) == (kept.reinforce_time, kept.expire_time)
        assert 1 == len(await listed(memory))
        assert (await memory.add("I like tea")).memory.expire_time is None
        assert texts(await memory.search("tea", filter=Filter(tags=("a", "b"), subjects=("YOU",)))) == ["I like tea."]

    with_memory(rule)


def test_confidence_does_not_rise_above_one(with_memory):
    async def rule(memory):
        await memory.add("sure", confidence=0.95)
        assert 1.0 == (await memory.add("sure")).memory.confidence

    with_memory(rule)


def test_the_same_key_with_other_content_supersedes(with_memory):
    async def rule(memory):
        red = await memory.add("my favorite color is red", key="color")
        blue = await memory.add("my favorite color is blue", key="color")
        assert (Outcome.SUPERSEDED, (red.memory.id,)) == (blue.outcome, blue.superseded_ids)
        assert ["my favorite color is blue"] == texts(await memory.search("favorite color")) == await listed(memory)
        with_old = Filter(include_superseded=True)
        assert 2 == len((await memory.search("favorite color", filter=with_old)).hits)
        old = await memory.get(red.memory.id)
        assert (State.SUPERSEDED, blue.memory.id, "same_key") == (old.state, old.superseded_by, old.judgement.rule)
        assert (red.memory.id,) == (await memory.get(blue.memory.id)).supersedes
        again = await memory.add("my favorite color is blue", key="color")
        assert (Outcome.REINFORCED, blue.memory.id) == (again.outcome, again.memory.id)

    with_memory(rule)


def test_a_statement_that_was_known_without_the_key_takes_it_over(with_memory):
    async def rule(memory):
        known = await memory.add("A thing")
        other = await memory.add("B thing", key="k")
        taken = await memory.add("a thing.", key="k")
        assert (Outcome.SUPERSEDED, known.memory.id, (other.memory.id,), "k") == (
            taken.outcome, taken.memory.id, taken.superseded_ids, taken.memory.key
        )  # fmt: skip
        assert ["A thing"] == await listed(memory)

    with_memory(rule)


def test_a_key_belongs_to_its_scope_and_agent(with_memory):
    async def rule(memory):
        alice = memory.acting_for(user_id="alice", chat_id="team")
        outcomes = [
            await alice.add("red", key="color"),
            await alice.add("blue", key="color", shared=True),
            await memory.acting_for(user_id="bob").add("green", key="color"),
            await memory.acting_for(user_id="alice", agent_id="other").add("black", key="color"),
        ]
        assert [Outcome.INSERTED] * 4 == [result.outcome for result in outcomes]

    with_memory(rule)


def test_two_keys_are_two_memories_whatever_they_say(with_memory):
    async def rule(memory):
        assert Outcome.INSERTED is (await memory.add("yes", key="a")).outcome
        assert Outcome.INSERTED is (await memory.add("yes", key="b")).outcome
        assert Outcome.REINFORCED is (await memory.add("yes")).outcome

    with_memory(rule)


def test_what_is_hidden_is_no_duplicate_of_anything(with_memory, clock):
    async def rule(memory):
        await memory.add("for a while", expires_days=1)
        clock.pass_days(1)
        assert Outcome.INSERTED is (await memory.add("for a while")).outcome
        deleted = await memory.add("deleted")
        await memory.delete(deleted.memory.id)
        assert Outcome.INSERTED is (await memory.add("deleted")).outcome

    with_memory(rule)


def test_callers_who_say_the_same_at_once_store_it_once(with_memory):
    async def rule(memory):
        results = await asyncio.gather(*(memory.add("said at once") for _ in range(12)))
        assert 1 == len({result.memory.id for result in results}) == len(await listed(memory))
        assert 1 == sum(result.outcome is Outcome.INSERTED for result in results)

    with_memory(rule)


@pytest.mark.parametrize("kind", ["ram", "duckdb", "wire"])
def test_the_statements_of_a_disabled_agent_are_declined_and_nothing_else_is(kind, folder, clock):
    async def rule():
        async with backend(kind, folder, clock, Config(disabled_agents=frozenset({"off"}))) as memory:
            await memory.add("kept")
            off, once = memory.acting_for(user_id="alice", agent_id="off"), str(uuid.uuid4())
            declined = await off.add("x", request_id=once)
            assert (Outcome.REJECTED, None, "disabled") == (declined.outcome, declined.memory, declined.rejection)
            assert declined == await off.add("x", request_id=once)
            assert [declined] * 2 == await off.add_batch([Draft(content="y"), Draft(content="z")])
            with pytest.raises(InvalidArgument):
                await off.add("late", expire_time=clock.now)
            assert [] == await listed(off) == texts(await off.search("x"))
            assert ["kept"] == await listed(memory)

    run(rule())


# --- batches ---


def test_a_batch_keeps_order_and_compares_its_items(with_memory):
    async def rule(memory):
        drafts = [
            Draft(content="one"), Draft(content="red", key="c"), Draft(content="ONE."), Draft(content="blue", key="c"),
        ]  # fmt: skip
        results = await memory.add_batch(drafts)
        assert [Outcome.INSERTED, Outcome.INSERTED, Outcome.REINFORCED, Outcome.SUPERSEDED] == [
            result.outcome for result in results
        ]
        assert results[0].memory.id == results[2].memory.id
        assert (results[1].memory.id,) == results[3].superseded_ids
        assert State.SUPERSEDED is results[1].memory.state
        assert ["blue", "one"] == await listed(memory)
        assert "blue" == texts(await memory.search("blue"))[0]

    with_memory(rule)


def test_one_malformed_item_fails_the_batch_and_is_named(with_memory, clock):
    async def rule(memory):
        good = Draft(content="good")
        late = Draft(content="late", expire_time=clock.now - timedelta(days=1))
        with pytest.raises(InvalidArgument) as caught:
            await memory.add_batch([good, good, good, late])
        assert "requests[3].expire_time" == caught.value.field
        assert [] == await listed(memory)

    with_memory(rule)


# --- idempotency ---


def test_a_request_id_gets_its_first_answer(with_memory):
    async def rule(memory):
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

    with_memory(rule)


def test_a_batch_that_is_sent_again_does_not_bring_back_what_was_purged(with_memory):
    async def rule(memory):
        once = str(uuid.uuid4())
        drafts = [Draft(content="gone"), Draft(content="kept")]
        first = await memory.add_batch(drafts, request_id=once)
        await memory.delete(first[0].memory.id, purge=True)
        again = await memory.add_batch(drafts, request_id=once)
        assert [None, first[1].memory] == [result.memory for result in again]
        assert ["kept"] == await listed(memory)

    with_memory(rule)


def test_a_request_id_with_another_request_is_refused(with_memory):
    async def rule(memory):
        once = str(uuid.uuid4())
        await memory.add("this", request_id=once)
        with pytest.raises(RequestIdReused):
            await memory.add("that", request_id=once)
        assert ["this"] == await listed(memory)
        await memory.acting_for(user_id="bob").add("that", request_id=once)  # another caller's ids are another's

    with_memory(rule)


def test_one_request_id_at_once_stores_once(with_memory):
    async def rule(memory):
        once = str(uuid.uuid4())
        results = await asyncio.gather(*(memory.add("at once", request_id=once) for _ in range(8)))
        assert [Outcome.INSERTED] * 8 == [result.outcome for result in results]
        assert ["at once"] == await listed(memory)

    with_memory(rule)


def test_a_request_id_is_answered_also_after_its_expiry(with_memory, clock):
    async def rule(memory):
        once = str(uuid.uuid4())
        until = clock.now + timedelta(days=1)
        first = await memory.add("for a day", expire_time=until, request_id=once)
        clock.pass_days(2)
        again = await memory.add("for a day", expire_time=until, request_id=once)
        assert (first.memory.id, State.EXPIRED) == (again.memory.id, again.memory.state)

    with_memory(rule)


def test_a_delete_that_is_sent_again_says_the_same_after_a_restore(with_memory):
    async def rule(memory):
        made = (await memory.add("x")).memory
        once = str(uuid.uuid4())
        first = await memory.delete(made.id, request_id=once)
        await memory.restore(made.id)
        assert first == await memory.delete(made.id, request_id=once)
        assert State.LIVE is (await memory.get(made.id)).state

    with_memory(rule)


def test_a_restore_that_is_sent_again_does_not_undo_a_later_delete(with_memory):
    async def rule(memory):
        made = (await memory.add("x")).memory
        once = str(uuid.uuid4())
        await memory.restore(made.id, request_id=once)
        await memory.delete(made.id)
        await memory.restore(made.id, request_id=once)
        assert [] == await listed(memory)

    with_memory(rule)


def test_a_retry_while_the_first_call_is_still_writing_gets_its_answer(folder, clock):
    async def rule():
        async with backend("duckdb", folder, clock) as memory:
            store, once = memory.ports.store, str(uuid.uuid4())
            commit = store.commit

            async def slow(change):
                await asyncio.sleep(0.2)
                return await commit(change)

            store.commit = slow
            first = asyncio.ensure_future(memory.add("said once", request_id=once))
            await asyncio.sleep(0.1)
            first.cancel()  # the caller hangs up; the write goes on
            again = await memory.add("said once", request_id=once)
            assert (Outcome.INSERTED, 1.0) == (again.outcome, again.memory.confidence)
            assert ["said once"] == await listed(memory)

    run(rule())


def test_a_caller_who_goes_before_its_text_is_embedded_stores_nothing(folder, clock):
    async def rule():
        async with backend("duckdb", folder, clock) as memory:

            async def never(texts, *, caller):
                await asyncio.sleep(60)

            memory.ports.embedder.documents = never
            call = asyncio.ensure_future(memory.add("x"))
            await asyncio.sleep(0.05)
            call.cancel()
            await asyncio.sleep(0.05)
            assert [] == await listed(memory)

    run(rule())


# --- searching ---


def test_a_filter_is_applied_inside_the_search(with_memory):
    async def rule(memory):
        await memory.add_batch([Draft(content=f"apple number {n}") for n in range(60)])
        await memory.add("something about an apple tree", tags=["rare"], kind=Kind.EVENT)
        assert ["something about an apple tree"] == texts(
            await memory.search("apple", limit=1, filter=Filter(tags=("rare",)))
        )
        events = Filter(kinds=frozenset({Kind.EVENT}))
        assert ["something about an apple tree"] == texts(await memory.search("apple number", limit=3, filter=events))

    with_memory(rule)


def test_an_episode_is_found_only_when_named(with_memory):
    async def rule(memory):
        await memory.add("apple said", kind=Kind.EPISODE)
        assert [] == texts(await memory.search("apple"))
        assert ["apple said"] == texts(await memory.search("apple", filter=Filter(kinds=frozenset({Kind.EPISODE}))))

    with_memory(rule)


def test_expiry_hides_at_that_instant(with_memory, clock):
    async def rule(memory):
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

    with_memory(rule)


def test_scores_are_shares_and_ties_are_oldest_first(with_memory):
    async def rule(memory):
        for n in range(4):
            await memory.add("same words here", key=f"k{n}")
        hits = (await memory.search("same words here", explain=True)).hits
        assert 1 == len({hit.score for hit in hits})
        assert sorted(hit.memory.create_time for hit in hits) == [hit.memory.create_time for hit in hits]
        assert all(0 < hit.score <= 1 and 0 < hit.lexical <= 1 and -1 <= hit.similarity <= 1.0001 for hit in hits)
        assert {"vector", "keyword"} == {leg.leg.value for leg in hits[0].explanation}
        weighted = sum(leg.score * leg.weight for leg in hits[0].explanation)
        assert abs(weighted - hits[0].score) < 1e-4
        both = memory.acting_for(user_id="alice", chat_id="team")
        await both.add("same words", shared=True)
        ranks = [[leg.rank for leg in hit.explanation] for hit in (await both.search("same words", explain=True)).hits]
        assert [[1, 1], *[[2, 2]] * 4] == ranks  # over both scopes together; equals share a rank

    with_memory(rule)


def test_min_score_leaves_out_what_scores_lower(with_memory):
    async def rule(memory):
        await memory.add_batch([Draft(content="red apple"), Draft(content="red car"), Draft(content="blue sky")])
        hits = (await memory.search("red apple")).hits
        cut = await memory.search("red apple", min_score=hits[1].score)
        assert hits[:2] == cut.hits

    with_memory(rule)


def test_any_punctuation_and_any_script_can_be_searched(with_memory):
    async def rule(memory):
        said = [
            "我喜欢黑猫",
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

    with_memory(rule)


# --- paging ---


def test_pages_of_any_size_join_into_the_whole(with_memory):
    async def rule(memory):
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

    with_memory(rule)


def test_a_page_token_serves_its_own_query_only(with_memory):
    async def rule(memory):
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

    with_memory(rule)


def test_a_page_ends_at_a_megabyte(with_memory):
    async def rule(memory):
        for n in range(2):
            await memory.add_batch([Draft(content=f"{n} {m} " + "x" * 8000) for m in range(80)])
        page = await memory.page(page_size=1000)
        assert 120 < len(page.memories) < 160
        rest = await memory.page(page_size=1000, page_token=page.next_page_token)
        assert 160 == len(page.memories) + len(rest.memories)

    with_memory(rule)


def test_a_page_ends_at_a_megabyte_whichever_field_is_large(with_memory):
    async def rule(memory):
        source = Source(message_ids=tuple(f"{n:03}" + "m" * 120 for n in range(100)))
        for n in range(3):
            await memory.add_batch([Draft(content=f"{n} {m}", source=source) for m in range(50)])
        page = await memory.page(page_size=1000)
        assert 70 < len(page.memories) < 90

    with_memory(rule)


# --- by id ---


def test_a_unique_prefix_of_eight_characters_is_enough(with_memory):
    async def rule(memory):
        made = (await memory.add("x")).memory
        assert made == await memory.get(made.id[:8]) == await memory.get(made.id[:8].upper())
        with pytest.raises(InvalidArgument):
            await memory.get(made.id[:7])
        with pytest.raises(InvalidArgument):
            await memory.get("")
        assert (made.id,) == (await memory.delete(made.id[:8])).deleted_ids

    with_memory(rule)


def test_an_ambiguous_prefix_is_named_as_such(folder, clock):
    async def rule():
        ids = iter(["abcdefgh" + "2" * 18, "abcdefgh" + "3" * 18])
        async with backend("duckdb", folder, clock) as memory:
            memory.ports = replace(memory.ports, new_id=lambda: next(ids))
            await memory.add("one")
            await memory.add("two")
            for call in (memory.get, memory.delete, memory.restore):
                with pytest.raises(AmbiguousId):
                    await call("abcdefgh")
            assert "two" == (await memory.get("abcdefgh3")).content

    run(rule())


# --- forgetting ---


def test_a_delete_hides_at_once_and_a_restore_brings_all_of_it_back(with_memory, clock):
    async def rule(memory):
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

    with_memory(rule)


def test_a_purge_cannot_be_undone(with_memory):
    async def rule(memory):
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

    with_memory(rule)


def test_a_superseded_memory_can_be_restored_once_its_key_is_free(with_memory):
    async def rule(memory):
        red = (await memory.add("red", key="c")).memory
        blue = (await memory.add("blue", key="c")).memory
        with pytest.raises(Conflict):
            await memory.restore(red.id)
        await memory.delete(blue.id)
        assert State.LIVE is (await memory.restore(red.id)).state
        assert ["red"] == await listed(memory)
        with pytest.raises(Conflict):
            await memory.restore(blue.id)

    with_memory(rule)


def test_group_memories_may_be_deleted_by_anyone_who_sees_them(with_memory):
    async def rule(memory):
        made = (await memory.acting_for(user_id="alice", chat_id="team").add("ours", shared=True)).memory
        with pytest.raises(NotFound):
            await memory.acting_for(user_id="bob", chat_id="other").delete(made.id)
        bob = memory.acting_for(user_id="bob", chat_id="team")
        await bob.delete(made.id)
        assert [] == await listed(bob)

    with_memory(rule)


# --- context and numbers ---


def test_a_context_lists_what_is_relevant_with_its_subjects_and_ids(with_memory):
    async def rule(memory):
        made = (await memory.add("my wife Sarah likes Italian food")).memory
        await memory.add("Tom plays chess")
        built = await memory.context("what food does Sarah like", max_memories=1)
        people, relevant = built.sections
        assert "## Known people\n\n- Sarah (wife)\n- Tom\n" == people.text  # whom the prompt names comes first
        assert "## Relevant memory\n\n- my wife Sarah likes Italian food (about Sarah)\n" == relevant.text
        assert (["known_people", "relevant_memory"], f"{people.text}\n{relevant.text}") == (
            [section.name for section in built.sections], built.text,
        )  # fmt: skip
        assert [(made.id, Kind.FACT, Trust.HOST)] == [(i.id, i.kind, i.trust) for i in relevant.items]
        assert made.entities[0].id == people.items[0].id
        assert -(-len(built.text.encode()) // 4) == built.token_count

    with_memory(rule)


def test_a_context_skips_what_does_not_fit_and_tries_the_next(with_memory):
    async def rule(memory):
        await memory.add("apple apple " + "very long " * 300)
        await memory.add("apple short")
        built = await memory.context("apple", max_tokens=30)
        assert (["- apple short"], 1) == (built.text.splitlines()[2:], built.skipped_count)
        assert built.token_count <= 30
        assert 1 == len((await memory.context("apple", max_memories=1)).sections[0].items)
        assert ("", ()) == ((await memory.context("apple", max_tokens=1)).text, (await memory.context("")).sections)

    with_memory(rule)


def test_nothing_relevant_is_an_empty_context_not_an_error(with_memory):
    async def rule(memory):
        assert "" == (await memory.context("anything")).text

    with_memory(rule)


def test_stats_count_what_the_caller_sees(with_memory):
    async def rule(memory):
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

    with_memory(rule)


# --- limits, as far as a well-made client lets them through ---


def test_counts_beyond_their_limits_are_refused_not_cut(with_memory):
    async def rule(memory):
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

    with_memory(rule)
