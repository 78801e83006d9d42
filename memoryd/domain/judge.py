"""
Decides what happens when a statement is offered.

Nothing here reads the clock, the disk or a request; all three are handed in. The order of judgement: the caller's own
key, then the exact text; what neither settles is new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memoryd.checks import check_metadata, check_subjects, check_tags, fold, text_digest
from memoryd.errors import TrustTooLow
from memoryd.model import Draft, Judgement, Memory, Outcome, Owner

__all__ = ["REINFORCEMENT", "Verdict", "judge", "memory_of", "reinforced"]

REINFORCEMENT = 0.1  # added to the confidence each time that a statement is repeated; the cap is 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, and what to do: store `new`, or write `changed` over what is there."""

    outcome: Outcome
    new: Memory | None = None
    changed: tuple[Memory, ...] = ()
    superseded_ids: tuple[str, ...] = ()

    @property
    def memory(self) -> Memory:
        """The memory that says it now."""
        return self.new or self.changed[0]


def judge(
    draft: Draft, new: Memory, digest: bytes, *, of_key: Sequence[Memory], same_text: Sequence[Memory], now: datetime
) -> Verdict:
    """Return what becomes of a draft, whose memory would be `new`, beside the live memories of its key and its text."""
    for known in of_key:
        if text_digest(known.content) == digest:
            return _said_again(known, draft, new, now)
    if of_key:
        if any(known.trust.outranks(new.trust) for known in of_key):
            raise TrustTooLow(
                f"key {draft.key!r} is held by a memory of higher trust, which is not replaced; take another key",
                field="key",
            )
        ids = tuple(known.id for known in of_key)
        # it was said before, without the key
        unnamed = next((known for known in same_text if not known.key and _may_change(known, new)), None)
        heir = new if unnamed is None else reinforced(unnamed, draft, new, now)
        heir = replace(heir, supersedes=(*heir.supersedes, *ids))
        why = Judgement("same_key", f"another statement was stored under the key {draft.key!r}", heir.id)
        retired = tuple(replace(known, supersede_time=now, superseded_by=heir.id, judgement=why) for known in of_key)
        if unnamed is None:
            return Verdict(Outcome.SUPERSEDED, heir, retired, ids)
        return Verdict(Outcome.SUPERSEDED, None, (heir, *retired), ids)
    for known in sorted(same_text, key=lambda memory: new.trust.outranks(memory.trust)):  # its equals and betters first
        if draft.key and (known.key or not (_may_change(known, new) or new.trust.outranks(known.trust))):
            continue  # two keys are two memories, whatever they say; and nobody names what is another's
        return _said_again(known, draft, new, now)
    return Verdict(Outcome.INSERTED, new)


def _may_change(known: Memory, new: Memory) -> bool:
    """Whether what says `new` may change what is known: only who stated it, which is its trust and its grant."""
    return known.trust is new.trust and known.grant_id == new.grant_id


def _said_again(known: Memory, draft: Draft, new: Memory, now: datetime) -> Verdict:
    """
    Return what a repetition does: it reinforces, unless it comes from higher up.

    What the host says is the host's from then on: it is stored anew and retires what a sandbox said, so that nothing
    of it goes with the sandbox's memories and nothing that a sandbox wrote gains trust.
    """
    if not new.trust.outranks(known.trust):
        return Verdict(Outcome.REINFORCED, changed=(reinforced(known, draft, new, now),))
    heir = replace(new, supersedes=(known.id,))
    why = Judgement("higher_trust", f"the same was stated with trust {new.trust.value!r}", heir.id)
    retired = replace(known, supersede_time=now, superseded_by=heir.id, judgement=why)
    return Verdict(Outcome.SUPERSEDED, heir, (retired,), (known.id,))


def memory_of(draft: Draft, owner: Owner, memory_id: str, create_time: datetime, **door: object) -> Memory:
    """Return the memory that a draft would become; `door` holds trust and grant_id."""
    return Memory(
        id=memory_id,
        agent_id=owner.agent_id,
        scope=owner.scope,
        content=draft.content,
        kind=draft.kind,
        subjects=draft.subjects,
        tags=draft.tags,
        category=draft.category,
        metadata=draft.metadata,
        key=draft.key,
        source=draft.source,
        confidence=draft.confidence,
        decay_rate=draft.decay_rate,
        create_time=create_time,
        event_time=draft.event_time or create_time,
        expire_time=draft.expiry(create_time),
        **door,  # type: ignore[arg-type]
    )


def _united(known: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    seen = {fold(value) for value in known}
    return (*known, *(value for value in added if fold(value) not in seen))


def _later(known: datetime | None, added: datetime | None) -> datetime | None:
    return None if known is None or added is None else max(known, added)


def reinforced(known: Memory, draft: Draft, new: Memory, now: datetime) -> Memory:
    """
    Return a known memory after it was stated again.

    Confidence rises by 0.1 to at most 1; tags and subjects are united; metadata keys are added, none overwritten; the
    later expiry holds, and none beats any; the kind stays. LimitExceeded if that is more than one memory may hold.
    What came through another door or grant only notes that it was said again: whoever repeats it changes nothing of it,
    so that nothing is left of a grant once its memories are removed.
    """
    if not _may_change(known, new):
        return replace(known, reinforce_time=now)
    metadata: Mapping[str, str] = {**draft.metadata, **known.metadata}
    return replace(
        known,
        confidence=min(1.0, known.confidence + REINFORCEMENT),
        reinforce_time=now,
        subjects=check_subjects(_united(known.subjects, draft.subjects)),
        tags=check_tags(tuple(dict.fromkeys((*known.tags, *draft.tags)))),
        metadata=check_metadata(metadata),
        category=known.category or draft.category,
        key=known.key or draft.key,
        expire_time=_later(known.expire_time, new.expire_time),
    )
