"""Whatever statement of a write fails, nothing of it stays and the next write works."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest

from memoryd.errors import Unavailable
from memoryd.model.change import ChangeSet, RecordedRequest
from memoryd.model.query import Filter
from memoryd.store.duckdb import DuckDBStore
from tests.builders import ALICE, MEMORY_LIMIT, NOW, added, entry, memory, open_database, visible_to


class FailingConnection:
    """A connection whose nth statement fails once armed."""

    def __init__(self, connection) -> None:
        self._connection = connection
        self.left = None
        self.blown = False

    @property
    def execute(self):
        """The connection's own method, so that it is called from the frame whose arrays it scans."""
        return self._next(self._connection.execute)

    @property
    def begin(self):
        return self._next(self._connection.begin)

    @property
    def commit(self):
        return self._next(self._connection.commit)

    def _next(self, statement):
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                self.left, self.blown = None, True
                return self._fail
        return statement

    def _fail(self, *_):
        raise OSError("planted")

    def __getattr__(self, name):
        return getattr(self._connection, name)


async def everything(store):
    visible = visible_to(ALICE)
    found = await store.memories.page(
        visible,
        Filter(include_expired=True, include_superseded=True),
        now=NOW,
        limit=100,
    )
    hidden = [await store.memories.find(visible, m.id, deleted=True) for m in found]
    return (
        found,
        hidden,
        await store.commits.recorded(memory().owner, "AddMemory", "r"),
        await store.memories.stats(visible, NOW),
    )


@pytest.mark.parametrize("what", ["insert", "batch", "update", "purge", "all"])
async def test_a_statement_that_fails_leaves_no_trace(folder, what):
    opened = open_database(folder / "memory.duckdb", memory_limit_bytes=MEMORY_LIMIT)
    failing = opened.connection = FailingConnection(opened.connection)
    store = DuckDBStore(opened)
    old, doomed = entry("old", tags=("a",)), entry("doomed")
    await store.commits.write(ChangeSet(inserts=(old, doomed)))
    before = await everything(store)
    new = [entry(f"new {n}") for n in range(1 if what == "insert" else 9)]
    request = RecordedRequest(old.memory.owner, "AddMemory", "r", "h", added(new[0].memory), NOW)
    update = replace(old, memory=replace(old.memory, tags=("b",)), vector=None)
    change = {
        "insert": ChangeSet(inserts=tuple(new), request=request),
        "batch": ChangeSet(inserts=tuple(new), request=request),
        "update": ChangeSet(updates=(update,), request=request),
        "purge": ChangeSet(purges=(doomed.memory,)),
        "all": ChangeSet(tuple(new), (update,), (doomed.memory,), request, NOW),
    }[what]
    for n in count(1):
        failing.left, failing.blown = n, False
        try:
            await store.commits.write(*change.by_owner())
        except Unavailable:
            assert failing.blown
        failing.left = None
        if not failing.blown:
            assert before != await everything(store)
            assert n > 4  # BEGIN, at least one statement, the number, COMMIT
            await store.close()
            return  # ran clean: every statement has had its turn
        assert before == await everything(store), f"statement {n} left a trace"
