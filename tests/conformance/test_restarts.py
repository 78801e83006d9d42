"""What a store that lasts must still know after it was closed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memoryd.model.change import ChangeSet, RecordedRequest
from memoryd.model.query import Filter
from memoryd.model.work import CounterName, Lease
from tests.builders import ALICE, NOW, added, entry, stored, traces_in, visible_to

LATER = NOW + timedelta(days=1)


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
