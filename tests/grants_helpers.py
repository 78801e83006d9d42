"""What the tests of one subject share."""

from __future__ import annotations

from memoryd.model.grant import PRESETS, Grant
from tests.builders import NOW

NO_MODEL = '[embedding]\nprovider = "none"\n'


def grant(grant_id: str = "g" * 26, **more) -> Grant:
    given = {"agent_id": "default", "user_id": "alice", "permissions": PRESETS["full"], "create_time": NOW}
    return Grant(id=grant_id, listener=True, **{**given, **more})


class _Server:
    async def start(self):
        pass

    async def stop(self, grace):
        pass
