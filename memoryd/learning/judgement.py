"""
A language model decides what the rules left contested: the newer statement replaces the older one, or both hold.

It never ends what is of more trust than the newer statement, or what someone has confirmed. Each pair is asked about
once; what the model is unsure of stays contested.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import groupby
from typing import Any

from memoryd.domain.ports import Ports
from memoryd.errors import Conflict, NotFound, TrustTooLow
from memoryd.learning.conflicts import resolve_conflict
from memoryd.learning.language_model import LanguageModel
from memoryd.llm.endpoint import QuestionRefused
from memoryd.llm.replies import verdict_in_reply
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet
from memoryd.model.learnt import Resolution
from memoryd.model.memory import Memory
from memoryd.store.base import Store
from memoryd.store.memories import NOT_RETIRED, owner_place

__all__ = ["PROMPT", "judge_contested"]

PROMPT = "judgement.v1"
JUDGED = "llm_judged"  # the mark of the create time of the newest pair that was asked about
READ_AT_ONCE = 500
REPLACES, BOTH, UNSURE = "replaces", "both", "unsure"
_VERDICTS = frozenset([REPLACES, BOTH, UNSURE])
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": sorted(_VERDICTS)}},
    "required": ["verdict"],
    "additionalProperties": False,
}


async def judge_contested(
    ports: Ports, model: LanguageModel, *, now: datetime, until: datetime | None = None, dry_run: bool = False
) -> Counter[str]:
    """
    Ask about each pair that contests each other and was not asked about; return how many there were of each verdict.

    With `until`, only of what was stored by then: what came later may yet be contested by what is read in between.

    Raises what keeps the model from answering; the next run goes on there. With dry_run it only counts.
    """
    counts: Counter[str] = Counter()
    done = (await ports.store.work.marks()).get(JUDGED)
    asked = await _pairs(ports.store, done, now if until is None else min(now, until))
    for at, pairs in groupby(asked, key=lambda pair: pair[0].create_time):
        for newer, older in pairs:
            counts["pairs"] += 1
            if not dry_run:
                verdict = await _verdict(newer, older, model)
                counts[verdict] += await _carry_out(verdict, newer, older, model, ports, now)
        if not dry_run:
            await ports.store.commits.write(ChangeSet(marks={JUDGED: at}, marks_before={JUDGED: done}))
            done = at
    return counts


async def _pairs(store: Store, after: datetime | None, now: datetime) -> list[tuple[Memory, Memory]]:
    """Return the pairs that contest each other, the newer one first, in the order of the newer ones' times."""
    contested: dict[str, Memory] = {}
    last = ""
    while page := await store.memories.scan(NOT_RETIRED, limit=READ_AT_ONCE, after=last):
        last = owner_place(page[-1])
        contested |= {memory.id: memory for memory in page if memory.contested_with}
        await asyncio.sleep(0)
    found = [
        pair
        for memory in contested.values()
        if memory.create_time <= now and (after is None or memory.create_time > after)
        for pair in _of(memory, contested)
    ]
    return sorted(found, key=lambda pair: (pair[0].create_time, pair[0].id, pair[1].id))


def _of(memory: Memory, contested: Mapping[str, Memory]) -> Iterator[tuple[Memory, Memory]]:
    """Yield the pairs with a memory as the newer one."""
    for other_id in memory.contested_with:
        other = contested.get(other_id)
        if other is None or (other.create_time, other.id) >= (memory.create_time, memory.id):
            continue
        if not _was_restored(memory, other) and not _was_restored(other, memory):
            yield memory, other


def _was_restored(memory: Memory, other: Memory) -> bool:
    """Whether someone brought a memory back next to the other: that is for people to decide."""
    why = memory.judgement
    return why is not None and why.rule == "restored" and why.evidence == other.id


async def _verdict(newer: Memory, older: Memory, model: LanguageModel) -> str:
    said = {
        name: {"day": f"{memory.create_time:%Y-%m-%d}", "speaker": memory.narrator, "text": memory.content}
        for name, memory in (("older", older), ("newer", newer))
    }
    try:
        reply = await model.ask(PROMPT, json.dumps(said, ensure_ascii=False), SCHEMA)
    except QuestionRefused:
        return UNSURE
    return verdict_in_reply(reply.text, _VERDICTS) or UNSURE


def _may_end(newer: Memory, older: Memory) -> bool:
    """Whether one statement may end another one because a model says so: as much as by the rules, and no more."""
    if older.key or older.trust.outranks(newer.trust) or (older.protected and not newer.protected):
        return False
    is_of_one = (newer.grant_id, newer.narrator) == (older.grant_id, older.narrator)
    return newer.trust.outranks(older.trust) or (is_of_one and newer.confidence >= older.confidence)


async def _carry_out(
    verdict: str, newer: Memory, older: Memory, model: LanguageModel, ports: Ports, now: datetime
) -> int:
    """Do what the verdict says as far as the newer statement may; return 1, or 0 where the pair stands no more."""
    if verdict == UNSURE or (verdict == REPLACES and not _may_end(newer, older)):
        return 1
    caller = Caller(newer.agent_id, newer.scope.user_id, newer.scope.chat_id, trust=newer.trust)
    resolution = Resolution.SUPERSEDE if verdict == REPLACES else Resolution.KEEP_BOTH
    reason = f"a language model decided ({model.model}, {PROMPT})"[:256]
    try:
        await resolve_conflict(newer.id, older.id, resolution, caller, ports, now=now, reason=reason)
    except (Conflict, NotFound, TrustTooLow):  # one of them was changed meanwhile
        return 0
    return 1
