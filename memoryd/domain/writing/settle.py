"""Decides what becomes of memories that were stored unjudged, once all of an import are there: the later holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.rules import Rules
from memoryd.domain.writing.judge import DEMOTED, Neighbour, Verdict, finding_of, is_doubt, replaced, retired
from memoryd.domain.writing.repetition import reinforced
from memoryd.domain.writing.retiring import may_retire, told_time
from memoryd.errors import LimitExceeded
from memoryd.knowledge.comparison.rules import Relation
from memoryd.knowledge.read_statement import Reader
from memoryd.model.memory import Draft, Judgement, Memory, Outcome
from memoryd.turns import in_turns

__all__ = ["MOST_SUPERSEDED", "judge_late", "outlives"]

MOST_SUPERSEDED = 100  # by one memory that it names, of what was judged late; each names it all the same


async def judge_late(
    memory: Memory, known: Sequence[Neighbour], reader: Reader, *, now: datetime, rules: Rules
) -> Verdict:
    """
    Return what becomes of a memory that was stored unjudged, next to what is known, older or newer: the later holds.

    The memory is the verdict's `new`, or among `changed` where one that is known is told later, or tells it better.
    """
    judged = replace(memory, judged=True)
    retired: list[tuple[Memory, Judgement]] = []
    contested: list[tuple[Memory, Judgement]] = []
    repeated: list[tuple[Memory, Judgement]] = []
    async for neighbour in in_turns(sorted(known, key=lambda neighbour: -neighbour.similarity)):
        other = neighbour.memory
        if other.id in judged.contested_with:
            continue  # someone has looked at the two
        is_newer = min(told_time(judged), now) >= min(told_time(other), now)
        newer, older = (judged, other) if is_newer else (other, judged)
        finding = finding_of(newer, older, neighbour, reader, rules)
        why = Judgement(finding.rule, finding.reason, newer.id)
        if finding.relation is Relation.SAME:
            if _takes_in(judged, other, neighbour):
                repeated.append((other, replace(why, evidence=judged.id)))
            elif _takes_in(other, judged, neighbour):
                return _heir_of(_united(other, judged, now), judged, replace(why, evidence=other.id), now)
        elif finding.relation is Relation.CHANGED and neighbour.same_subject:
            if older.key or older.protected or not may_retire(newer, older, None, now, rules):
                contested.append((other, why))
            elif is_newer:
                retired.append((other, why))
            elif not rules.demote:
                return _heir_of(other, judged, why, now)
            else:
                judged = replace(judged, confidence=min(DEMOTED, judged.confidence))
                contested.append((other, why))
        elif is_doubt(finding, neighbour):
            contested.append((other, why))
    return _with_repeated(replaced(judged, retired, contested, now, rules), repeated, now)


def _takes_in(heir: Memory, memory: Memory, neighbour: Neighbour) -> bool:
    """Whether one of two that say the same stands for both: of an equal pair the one that was there."""
    if not neighbour.same_subject or heir.key or memory.key or memory.protected or outlives(memory, heir):
        return False
    return heir.trust.outranks(memory.trust) or (heir is neighbour.memory and not memory.trust.outranks(heir.trust))


def _with_repeated(verdict: Verdict, repeated: Sequence[tuple[Memory, Judgement]], now: datetime) -> Verdict:
    """Return a verdict that retires what its memory repeats, too, whatever the policy is for contradictions."""
    gone = tuple(retired(other, verdict.memory.id, why, now, trust=verdict.memory.trust) for other, why in repeated)
    heir = replace(verdict.memory, supersedes=(*verdict.memory.supersedes, *(other.id for other, _ in repeated)))
    return replace(verdict, new=heir, changed=(*verdict.changed, *gone))


def outlives(memory: Memory, other: Memory) -> bool:
    """Whether a memory holds longer than another one of other trust, which its end does not move."""
    if memory.trust is other.trust or other.expire_time is None:
        return False
    return memory.expire_time is None or memory.expire_time > other.expire_time


def _united(known: Memory, said: Memory, now: datetime) -> Memory:
    """Return a memory after one that is stored says the same, as far as it may change it; see `reinforced`."""
    labels = Draft(
        content=known.content,
        kind=said.kind,
        subjects=said.subjects,
        tags=said.tags,
        category=known.category or said.category,
        metadata={**said.metadata, **known.metadata},
    )
    try:
        stronger = reinforced(known, labels, said, now)
    except LimitExceeded:
        return known
    ends = (known.expire_time, said.expire_time)
    if known.trust is not said.trust:
        return stronger
    return replace(stronger, expire_time=None if None in ends else max(end for end in ends if end is not None))


def _heir_of(heir: Memory, memory: Memory, why: Judgement, now: datetime) -> Verdict:
    """Return what retires a memory for another one that is there."""
    if len(heir.supersedes) < MOST_SUPERSEDED:  # what a file brings must not swell what it cannot change
        heir = replace(heir, supersedes=tuple(dict.fromkeys((*heir.supersedes, memory.id))))
    return Verdict(
        Outcome.SUPERSEDED,
        changed=(retired(memory, heir.id, why, now, trust=heir.trust), heir),
        superseded_ids=(memory.id,),
    )
