"""What a store that lasts must still know after it was closed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from memoryd.model.change import (
    ChangeSet,
    ConversationChange,
    Embedding,
    Entry,
    NewMessage,
    RecordedRequest,
    Tombstone,
)
from memoryd.model.conversation import Message, Role, Session, SessionState, Thread, WorkingMemory, message_key
from memoryd.model.entity import Entity, EntityType, Form, Mention
from memoryd.model.grant import TokenKey
from memoryd.model.learnt import Proposal
from memoryd.model.query import Filter
from memoryd.model.receipt import AddReceipt
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.model.work import CounterName, Lease, Run, RunState, Work, WorkState
from memoryd.store.conversations import MessageSelector
from memoryd.store.memories import MemorySelector
from tests.builders import ALICE, BOB, NOW, HashEncoder, added, entry, stored, traces_in, visible_to
from tests.conformance.store_helpers import grant
from tests.index_helpers import read_whole

LATER = NOW + timedelta(days=1)
VECTOR = HashEncoder().encode(["hello"], query=False)[0]


@pytest.mark.category("restart")
async def test_what_was_written_is_there_after_a_restart(engine, folder):
    store = engine.open(folder)
    made, owner = entry("I live in Oslo"), entry().memory.owner
    request = RecordedRequest(owner, "AddMemory", "r", "h", added(made.memory), NOW)
    await store.commits.write(ChangeSet(inserts=(made,), request=request))
    lease = Lease("gc", "run", LATER)
    counters = {CounterName("learning"): 7}
    await store.commits.write(
        ChangeSet(marks={"gc": NOW}, leases=(lease,), leases_before={"gc": None}, counters=counters)
    )
    before = await store.commits.memories.head(owner)
    await store.close()
    store = engine.open(folder)
    try:
        found = await store.memories.page(visible_to(ALICE), Filter(), now=LATER, limit=9)
        assert [made.memory] == found
        assert made.vector.tolist() == (await stored(store, made.memory)).vector.tolist()
        assert request == await store.commits.recorded(owner, "AddMemory", "r")
        assert ({"gc": NOW}, {"gc": lease}, counters) == (
            await store.work.marks(), await store.work.leases(), await store.work.counters(),
        )  # fmt: skip
        after = await store.commits.memories.head(owner)
        assert (after.newest_create_time, after.commit_seq >= before.commit_seq) == (made.memory.create_time, True)
    finally:
        await store.close()


async def told_by(store) -> dict[str, object]:
    """Return what a store says of everything that `written` wrote."""
    alice, bob = Owner("default", ALICE), Owner("default", BOB)
    talk, work = store.conversations, store.work
    messages = await talk.messages(MessageSelector(owner=alice, thread_id="t"))
    (near, _), *_ = await talk.nearest([alice], VECTOR, HashEncoder.fingerprint, limit=1)
    info = await store.info()
    return {
        "memories": await store.memories.scan(MemorySelector(), limit=0),
        "tombstones": await store.memories.tombstones(alice, [b"gone" * 4, b"lifted" * 4]),
        "deleted": await store.memories.count(MemorySelector(is_deleted=True)),
        "messages": messages,
        "nearest": near,
        "totals": await talk.totals(),
        "threads": [await talk.thread(alice, name) for name in ("t", "erased")],
        "sessions": [await talk.session(alice, "t", "s"), await talk.pending_sessions(limit=9)],
        "working memory": await talk.working_memory(alice),
        "people": await store.people.entities(alice),
        "named": await store.people.is_named(alice, ["e" * 26], but=()),
        "grants": await store.grants.all(),
        "keys": [(key.id, key.secret, key.create_time) for key in await store.grants.token_keys()],
        "usage": await store.grants.usage("g1", NOW.date()),
        "work": await work.find(states=list(WorkState), limit=9),
        "counts": await work.counts(),
        "proposals": await work.proposals(limit=9),
        "runs": await work.runs(limit=9),
        "marks": [await work.marks(), await work.leases(), await work.counters()],
        "requests": [await store.commits.recorded(alice, "A", name) for name in ("r1", "r2", "r3")],
        "owners": [await store.owners.contents(owner, limit=9) for owner in (alice, bob)],
        "identity": [info.store_id, info.secret, info.memory_count, info.newest_create_time],
        "snapshots": [
            store.commits.memories.snapshot(alice, lambda it: (it.entities, it.tombstones)),
            store.commits.messages.snapshot(alice, lambda it: [memory for memory, _ in read_whole(it)]),
        ],
    }


async def written(store) -> None:
    """Write something of every noun, change it, and take some of it away again."""
    alice, bob = Owner("default", ALICE), Owner("default", BOB)
    mentions = (Mention("e" * 26, "Ann", Form.NAME, EntityType.PERSON, about=True),)
    first, second, gone = entry("I live in Oslo", grant_id="g1", mentions=mentions), entry("deleted"), entry("gone")
    await store.commits.write(ChangeSet(inserts=(first, second, gone), request=noted("r1", first)))
    later = replace(second, memory=replace(second.memory, delete_time=NOW, purge_time=LATER, delete_reason="deleted"))
    await store.commits.write(ChangeSet(updates=(later,), purges=(gone.memory,), request=noted("r2", first, gone)))
    await store.commits.write(ChangeSet(inserts=(entry("of bob", scope=BOB),)))
    await store.commits.write(ChangeSet(grants=(grant(),), token_keys=(TokenKey("k", b"s" * 32, NOW),)))
    people = Entity("e" * 26, alice, NOW, Trust.HOST, "Anna", apart=("f" * 26,))
    stones = Tombstone(alice, b"gone" * 4), Tombstone(alice, b"lifted" * 4)
    await store.commits.write(ChangeSet(entities=(people,), tombstones=stones))
    await store.commits.write(ChangeSet(lift=stones[1:]))
    said = [
        Message(
            id=f"m{n}", agent_id="default", scope=ALICE, thread_id=name, seq=n, session_id="s", role=Role.USER,
            content=f"hello {n}", create_time=NOW, grant_id="g1",
        )
        for n, name in ((1, "t"), (2, "t"), (1, "erased"))
    ]  # fmt: skip
    threads = [
        Thread(id=name, agent_id="default", scope=ALICE, create_time=NOW, update_time=NOW, revision=1, session_id="s")
        for name in ("t", "erased")
    ]
    session = Session(
        id="s", agent_id="default", scope=ALICE, thread_id="t", state=SessionState.PENDING, start_time=NOW,
        update_time=NOW, end_time=LATER, end_reason="ended",
    )  # fmt: skip
    talk = ConversationChange(
        alice, messages=tuple(map(NewMessage, said)), threads=tuple(threads), sessions=(session,),
        working_memory=WorkingMemory("notes", NOW, grant_id="g1"),
    )  # fmt: skip
    await store.commits.write(ChangeSet(conversation=talk))
    embedded = Embedding(alice, message_key("t", 2), VECTOR, HashEncoder.fingerprint, message_id="m2")
    await store.commits.write(ChangeSet(conversation=ConversationChange(alice, embeddings=(embedded,))))
    await store.commits.write(ChangeSet(conversation=ConversationChange(alice, purge_threads=(threads[1],))))
    proposal = Proposal(id="p", agent_id="default", scope=ALICE, thread_id="t", message_ids=("m1",), content="x",
                        create_time=NOW)  # fmt: skip
    work = Work(kind="learning", owner=bob, thread_id="t", seq=3, due_time=NOW)
    run = Run(id="run", job="gc", state=RunState.DONE, start_time=NOW, counts={"deleted": 1})
    await store.commits.write(ChangeSet(proposals=(proposal,)), ChangeSet(work=(work,)))
    lease = Lease("gc", "run", LATER)
    await store.commits.write(
        ChangeSet(
            runs=(run,), marks={"gc": NOW}, leases=(lease,), leases_before={"gc": None},
            counters={CounterName("learning"): 7, CounterName("tokens", NOW.date()): 9},
        )
    )  # fmt: skip
    await store.memories.note_recalls({alice: {first.memory.id: (LATER, 2, LATER)}})


def noted(name: str, *about: Entry) -> RecordedRequest:
    named = AddReceipt(tuple(one for made in about for one in added(made.memory).statements))
    return RecordedRequest(Owner("default", ALICE), "A", name, "h", named, NOW)


@pytest.mark.category("restart")
async def test_a_store_says_the_same_of_everything_after_a_restart(engine, folder):
    store = engine.open(folder)
    await written(store)
    before = await told_by(store)
    assert [name for name, value in before.items() if not value] == []
    await store.close()
    store = engine.open(folder)
    try:
        after = await told_by(store)
        assert before.keys() == after.keys()
        assert {name for name in before if before[name] != after[name]} == set()
    finally:
        await store.close()


@pytest.mark.category("files")
async def test_what_is_purged_leaves_no_trace_after_a_compaction(engine, folder):
    store = engine.open(folder)
    try:
        gone, kept = entry("zanzibarite is blue"), entry("quartz is white")
        await store.commits.write(ChangeSet(inserts=(gone, kept)))
        assert ["memories.content", "memories.terms"] == await traces_in(store, "zanzibarit")
        await store.commits.write(ChangeSet(purges=(gone.memory,)))
        assert store.files is not None
        await store.files.compact()
        assert [] == await traces_in(store, "zanzibarit")
        assert not any(b"zanzibarit" in path.read_bytes() for path in store.files.paths())
        assert ([], "") == (store.files.copies(), store.files.damage)
    finally:
        await store.close()
