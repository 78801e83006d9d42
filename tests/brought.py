"""Bringing memories in by an import, and having them judged."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from memoryd.domain.transfer.import_memories import import_memories
from memoryd.learning import imports
from memoryd.learning.imports import ImportJudge
from memoryd.model.caller import Caller
from memoryd.model.imported import ImportDraft
from memoryd.model.memory import Draft
from memoryd.model.query import Filter
from memoryd.model.trust import Trust
from tests.builders import NOW, Local

DAY = timedelta(days=1)


def item(content: str, external_id: str, *, age: float = 10.0, **more) -> ImportDraft:
    names = ("create_time", "supersede_time", "superseded_by")
    own = {name: more.pop(name) for name in names if name in more}
    own.setdefault("create_time", NOW - age * DAY)
    return ImportDraft(draft=Draft(content=content, **more), external_id=external_id, **own)


async def brought(memory: Local, *items: ImportDraft, import_id: str = "old", dry_run: bool = False, **caller):
    local = Local(memory.ports, memory.clock, **(caller or {"user_id": "alice"}))
    done = await import_memories(items, import_id, local._caller, memory.ports, now=memory.clock(), dry_run=dry_run)
    return [(result.outcome.value, result.id, result.rejection) for result in done.results]


async def outcomes(memory: Local, *items: ImportDraft, **more) -> list[str]:
    return [rejection or outcome for outcome, _, rejection in await brought(memory, *items, **more)]


def judging(memory: Local) -> ImportJudge:
    return ImportJudge(memory.ports, memory.clock, pytest.fail)


async def judged(memory: Local) -> None:
    memory.clock.now += imports.QUIET
    await judging(memory).step()


async def live(memory: Local, **more) -> list[str]:
    return sorted(one.content for one in (await memory.page(page_size=1000, filter=Filter(**more))).memories)


def who(memory: Local, trust: Trust) -> Caller:
    return replace(memory._caller, trust=trust, grant_id="g" if trust.is_sandbox else "")
