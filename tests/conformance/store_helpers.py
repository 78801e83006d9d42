"""What the tests of one subject share."""

from __future__ import annotations

from datetime import timedelta

from memoryd.model.change import ChangeSet
from memoryd.model.grant import PRESETS, Grant
from memoryd.model.query import Filter
from tests.builders import ALICE, NOW, visible_to

LATER = NOW + timedelta(days=1)


async def put(store, *entries):
    await store.commits.write(*ChangeSet(inserts=entries).by_owner())


async def page(store, scope=ALICE, wanted=None, *, limit=9, after=None, chat_id=None):
    return await store.memories.page(
        visible_to(scope, chat_id=chat_id),
        wanted or Filter(),
        now=LATER,
        limit=limit,
        after=after,
    )


def grant(grant_id="g1", **more):
    given = {"agent_id": "default", "user_id": "alice", "permissions": PRESETS["full"], "create_time": NOW}
    return Grant(id=grant_id, listener=True, **{**given, **more})
