"""What a statement that is stated again does to the one that is known, and what of it is not taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from memoryd.domain.decay import EXTRACTION
from memoryd.model import limits
from memoryd.model.entity import Mention
from memoryd.model.memory import NO_STATEMENTS, Draft, Kind, Memory
from memoryd.model.validation import check_metadata, check_subjects, check_tags, fold

__all__ = ["REINFORCEMENT", "reinforced", "untaken"]

REINFORCEMENT = 0.1  # added to the confidence each time that a statement is repeated; the cap is 1


def _may_change(known: Memory, new: Memory) -> bool:
    """Whether what says `new` may change what is known: only who stated it, which is its trust and its grant."""
    return known.trust is new.trust and known.grant_id == new.grant_id


def _united(known: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    seen = {fold(value) for value in known}
    return (*known, *(value for value in added if fold(value) not in seen))


def _expiry(known: Memory, draft: Draft, new: Memory) -> datetime | None:
    """
    Return until when a repeated statement holds: as was said last.

    Without an end it holds for ever. What extraction reads, maybe of an older message, only sets a later end.
    """
    said = new.expire_time
    if draft.source.channel == EXTRACTION and said is not None:
        return known.expire_time and max(known.expire_time, said)
    return said


def reinforced(known: Memory, draft: Draft, new: Memory, now: datetime) -> Memory:
    """
    Return a known memory after it was stated again.

    Confidence rises by 0.1 to at most 1; tags, subjects and mentions are united, mentions of MAX_MENTIONS entities at
    most. What was said last holds: of a metadata key the value, the category, the kind unless it is the default, the
    event time and the decay rate where one is given, and the expiry; a repetition without one holds for ever.
    LimitExceeded if that is more than one memory may hold. A repetition through another door or grant is only noted and
    changes nothing else, so that nothing is left of a grant once its memories are removed; see `untaken`.
    """
    if known.trust.outranks(new.trust):
        return known  # lower trust does not keep it from fading
    if not _may_change(known, new):
        return replace(known, reinforce_time=now)
    metadata: Mapping[str, Any] = {**known.metadata, **draft.metadata}
    learnt = draft.source.channel == EXTRACTION  # what is told again of an event is no other time of it
    return replace(
        known,
        confidence=min(1.0, known.confidence + REINFORCEMENT),
        reinforce_time=now,
        subjects=check_subjects(_united(known.subjects, draft.subjects)),
        tags=check_tags(tuple(dict.fromkeys((*known.tags, *draft.tags)))),
        metadata=check_metadata(metadata),
        kind=draft.kind if _takes_kind(known, draft) else known.kind,
        category=draft.category or known.category,
        event_time=known.event_time if draft.event_time is None or learnt else draft.event_time,
        decay_rate=known.decay_rate if draft.decay_rate is None else draft.decay_rate,
        expire_time=_expiry(known, draft, new),
        mentions=_with_mentions(known.mentions, new.mentions, draft.subjects),
    )


def _takes_kind(known: Memory, draft: Draft) -> bool:
    """Whether a repetition changes the kind: the default says nothing, and a statement stays one."""
    return draft.kind is not Kind.FACT and known.kind not in NO_STATEMENTS and draft.kind not in NO_STATEMENTS


def untaken(memory: Memory, draft: Draft, new: Memory) -> tuple[str, ...]:
    """
    Return the fields that a repetition brought and that the memory, as it is after it, does not have.

    Of a memory that it may not change these are all that it brought, without a look: who only adds learns nothing.
    """
    said = {
        "kind": None if draft.kind is Kind.FACT else draft.kind,
        "tags": draft.tags,
        "subjects": draft.subjects,
        "category": draft.category,
        "metadata": draft.metadata,
        "event_time": draft.event_time,
        "decay_rate": draft.decay_rate,
        "expire_time": new.expire_time,
    }
    brought = (name for name, value in said.items() if value or value == 0)
    if not _may_change(memory, new):
        return tuple(brought)
    return tuple(name for name in brought if not _holds(getattr(memory, name), said[name]))


def _holds(known: Any, said: Any) -> bool:
    """Whether what is known of a field has what was said: of several values all of them."""
    if isinstance(said, Mapping):
        return bool(said.items() <= known.items())
    if isinstance(said, tuple):
        return {*map(fold, said)} <= {*map(fold, known)}
    return bool(known == said)


def _with_mentions(known: Sequence[Mention], new: Sequence[Mention], subjects: Iterable[str]) -> tuple[Mention, ...]:
    """Return the mentions of both, of as many entities as one memory may name; those of its subjects come first."""
    both, about = dict.fromkeys((*known, *new)), {fold(subject) for subject in subjects}
    named = dict.fromkeys(
        mention.entity_id for mention in sorted(both, key=lambda mention: fold(mention.text) not in about)
    )
    most = max(limits.MAX_MENTIONS, len({mention.entity_id for mention in known}))
    kept = {*list(named)[:most]}
    return tuple(mention for mention in both if mention.entity_id in kept)
