"""Messages get their vectors in the background: in order, once, over restarts, and by the model in use."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from memory_client import MessageDraft, MessageSearch, SessionState

from memoryd.daemon.config import Config, ConversationConfig
from memoryd.domain.conversation.embed import PAGE, MessageEmbedder
from memoryd.domain.conversation.waking import end_idle_sessions
from memoryd.domain.shared import EmbeddingLag
from memoryd.model.change import ChangeSet
from memoryd.model.scope import Owner
from memoryd.model.work import CounterName
from tests.builders import ALICE, BOB, HashEncoder, Local, open_duckdb, ports_over, ram_store

WANTED = MessageSearch(text="message 7", top_k=1)


class OtherEncoder(HashEncoder):
    """Another model."""

    fingerprint = "other"

    def encode(self, texts, *, query):
        return -super().encode(texts, query=query)


class BrokenEncoder(HashEncoder):
    """A model that fails."""

    def encode(self, texts, *, query):
        raise RuntimeError


def drafts(count: int) -> list[MessageDraft]:
    return [MessageDraft(content=f"message {n} of many") for n in range(count)]


async def embedded(embedder: MessageEmbedder) -> int:
    steps = 0
    while await embedder.step():
        steps += 1
    return steps


async def test_messages_are_embedded_page_after_page_and_go_on_after_a_restart(folder, clock):
    async with ports_over(open_duckdb(folder)) as ports:
        memory = Local(ports, clock, user_id="alice")
        for _ in range(3):
            await memory.append("t", drafts(100))
        hit = (await memory.search_messages(WANTED)).hits[0]
        assert ("message 7 of many", 0.0) == (hit.message.content, hit.similarity)
        assert await MessageEmbedder(ports, clock, print).step()
    async with ports_over(open_duckdb(folder)) as ports:
        memory = Local(ports, clock, user_id="alice")
        embedder = MessageEmbedder(ports, clock, print)
        assert 300 - PAGE == await embedder.pending()
        assert 2 == await embedded(embedder)
        assert 0 == await embedder.pending() == ports.shared.lag.waiting
        assert (await memory.search_messages(WANTED)).hits[0].similarity > 0.5
    async with ports_over(open_duckdb(folder)) as ports:  # loaded from the store they are the same
        found = (await Local(ports, clock, user_id="alice").search_messages(WANTED)).hits[0]
        assert found.similarity > 0.5
        assert 0 == await embedded(MessageEmbedder(ports, clock, print))


async def test_another_model_begins_again_and_no_vector_of_the_first_is_left(folder, clock):
    for encoder in (HashEncoder(), OtherEncoder(), HashEncoder()):
        async with ports_over(open_duckdb(folder), encoder=encoder) as ports:
            memory = Local(ports, clock, user_id="alice")
            if not (await memory.threads()).threads:
                await memory.append("t", drafts(20))
            embedder = MessageEmbedder(ports, clock, print)
            assert 20 == await embedder.pending()
            await embedded(embedder)
            vector = (await ports.embedder.query("message 7", owner=None)).vector
            near = await ports.store.conversations.nearest(
                memory._caller.visibility.owners,
                vector,
                encoder.fingerprint,
                limit=100,
            )
            assert 20 == len(near)
            others = {HashEncoder.fingerprint, "other"} - {encoder.fingerprint}
            for other in others:
                owners = memory._caller.visibility.owners
                assert [] == await ports.store.conversations.nearest(owners, vector, other, limit=100)
            assert (await memory.search_messages(WANTED)).hits[0].similarity > 0.5
            assert {f"messages:{encoder.fingerprint}"} == {name.name for name in await ports.store.work.counters()}


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
async def test_vectors_of_messages_go_where_a_change_says_so_and_by_no_counter(kind, folder, clock):
    async with ports_over(ram_store() if kind == "ram" else open_duckdb(folder)) as ports:
        memory, store = Local(ports, clock, user_id="alice"), ports.store
        await memory.append("t", drafts(5))
        await embedded(MessageEmbedder(ports, clock, print))

        async def count():
            vector = np.ones(ports.embedder.dimensions, np.float32)
            owners = memory._caller.visibility.owners
            return len(await store.conversations.nearest(owners, vector, ports.embedder.fingerprint, limit=100))

        await store.commits.write(ChangeSet(counters={CounterName("messages:x"): 7, CounterName("windows:x"): 7}))
        await store.commits.write(ChangeSet(message_vectors_of=ports.embedder.fingerprint))
        assert 5 == await count()
        await store.commits.write(ChangeSet(message_vectors_of="x"))
        assert 0 == await count()


async def test_what_is_erased_while_it_is_embedded_gets_no_vector(clock):
    store = ram_store()
    async with ports_over(store) as ports:
        memory = Local(ports, clock, user_id="alice")
        await memory.append("t", drafts(5))
        await memory.append("u", drafts(5))
        embedder = MessageEmbedder(ports, clock, print)
        documents = ports.embedder.documents

        async def slow(*args, **more):
            await memory.delete_thread("t")
            return await documents(*args, **more)

        ports.embedder.documents = slow
        assert await embedder.step()
        assert {"u"} == {hit.message.thread_id for hit in (await memory.search_messages(WANTED)).hits}
        vector = np.ones(ports.embedder.dimensions, np.float32)
        owners = memory._caller.visibility.owners
        found = await store.conversations.nearest(owners, vector, ports.embedder.fingerprint, limit=100)
        assert {"u"} == {message.thread_id for message, _ in found}


def test_appending_is_slowed_where_too_many_messages_wait():
    lag = EmbeddingLag()
    lag.rate = 50.0
    mine, others = Owner("default", ALICE), Owner("default", BOB)
    assert 0.0 == lag.pause_s(mine, 100, 1000)
    lag.add(mine, 950)
    assert (0.0, 2.0) == (lag.pause_s(mine, 50, 1000), lag.pause_s(mine, 100, 1000))
    assert 0.0 == lag.pause_s(others, 100, 1000)  # it is not they who fill the line
    lag.is_held = True  # nothing is embedded now: what waits is in the store alone
    assert 0.0 == lag.pause_s(mine, 100, 1000)


async def test_a_session_that_is_silent_too_long_ends_by_itself(clock):
    async with ports_over(ram_store(), Config(conversation=ConversationConfig(session_idle_minutes=10))) as ports:
        memory = Local(ports, clock, user_id="alice")
        await memory.append("t", drafts(2), session_id="s")
        last = clock.now
        assert 0 == await end_idle_sessions(ports, print, now=clock.now + timedelta(minutes=9))
        clock.now -= timedelta(days=1)  # a clock that was set back ends nothing
        assert 0 == await end_idle_sessions(ports, print, now=clock.now)
        clock.now += timedelta(days=1, minutes=11)
        assert 1 == await end_idle_sessions(ports, print, now=clock.now)
        assert 0 == await end_idle_sessions(ports, print, now=clock.now)
        session = (await memory.sessions("t")).sessions[0]
        assert (SessionState.PENDING, "idle", last) == (session.state, session.end_reason, session.end_time)
        assert "" == (await memory.thread("t")).session_id
