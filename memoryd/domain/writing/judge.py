"""
Decides what happens when a statement is offered: the order of judgement, each step a function of values.

Nothing here reads the clock, the disk or a request; all three are handed in. The caller's own key decides first, then
the exact text, then what the words say of the statements next to it: retire, contest, or strengthen. What none of them
settles is new. Texts are read on the way, which takes a while, so it goes in turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memoryd.domain.rules import Rules
from memoryd.domain.writing.contest import marked_by, with_room
from memoryd.domain.writing.repetition import reinforced, untaken
from memoryd.domain.writing.retiring import may_retire
from memoryd.errors import TrustTooLow
from memoryd.knowledge.comparison.comparison import compare, speaks_of_itself
from memoryd.knowledge.comparison.rules import Finding, Relation
from memoryd.knowledge.read_statement import Reader
from memoryd.model import limits
from memoryd.model.memory import Draft, Judgement, Memory, Outcome
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.model.validation import text_digest
from memoryd.turns import in_turns

__all__ = [
    "DEMOTED",
    "Known",
    "Neighbour",
    "Offer",
    "Verdict",
    "contested_by",
    "finding_of",
    "is_doubt",
    "is_repeated_in",
    "judge",
    "memory_of",
    "replaced",
    "retired",
    "unread",
]

DEMOTED = 0.3  # what is left of the confidence of an older statement where the policy is to demote


@dataclass(frozen=True, slots=True)
class Offer:
    """A statement that is offered, and the memory that it would become."""

    draft: Draft
    new: Memory
    digest: bytes
    corrects: Memory | None = None
    """The memory that it is to replace, by someone's order."""
    said_time: datetime | None = None
    """When it was said, of what is learnt from messages later; None: now."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A live statement next to which a new one is judged."""

    memory: Memory
    similarity: float
    """Cosine of the two; 0 where there is no vector."""
    same_subject: bool
    """Whether both are about someone in common, or both about no one."""
    same_people: bool
    """Whether both name someone in common, or neither names anybody."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is live of the key, of the text, and of the meaning of an offer."""

    of_key: Sequence[Memory] = ()
    same_text: Sequence[Memory] = ()
    neighbours: Sequence[Neighbour] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, and what to do: store `new`, or write `changed` over what is there."""

    outcome: Outcome
    new: Memory | None = None
    changed: tuple[Memory, ...] = ()
    superseded_ids: tuple[str, ...] = ()
    untaken: tuple[str, ...] = ()
    """The fields that came with a repetition and were not taken."""

    @property
    def memory(self) -> Memory:
        """The memory that says it now."""
        return self.new or self.changed[0]


async def judge(offer: Offer, known: Known, reader: Reader, *, now: datetime, rules: Rules) -> Verdict:
    """Return what becomes of an offer next to what is known: the first step that decides, decides."""
    return (
        _by_key(offer, known, now)
        or _by_text(offer, known, reader, now)
        or await _by_meaning(offer, known, reader, now, rules)
        or Verdict(Outcome.INSERTED, offer.new)
    )


def unread(offer: Offer, known: Known, *, now: datetime) -> Verdict:
    """Return what becomes of an offer whose words cannot be read: what its key or an order decides, else it is new."""
    if offer.corrects is not None:
        why = Judgement("corrected", "it was corrected by name", offer.new.id)
        return _with_corrected(Verdict(Outcome.INSERTED, offer.new), offer.corrects, why, now)
    return _by_key(offer, known, now) or Verdict(Outcome.INSERTED, offer.new)


# --- the key and the text ---


def _by_key(offer: Offer, known: Known, now: datetime) -> Verdict | None:
    """What the key decides: the same again strengthens, another statement replaces."""
    draft, new = offer.draft, offer.new
    if not known.of_key or offer.corrects is not None:
        return None
    for memory in known.of_key:
        if text_digest(memory.content) == offer.digest:
            return _said_again(memory, draft, new, now)
    if any(memory.trust.outranks(new.trust) for memory in known.of_key):
        raise TrustTooLow(
            f"key {draft.key!r} is held by a memory of higher trust, which is not replaced; take another key",
            field="key",
        )
    ids = tuple(memory.id for memory in known.of_key)
    heir = replace(new, supersedes=(*new.supersedes, *ids))
    why = Judgement("same_key", f"another statement was stored under the key {draft.key!r}", heir.id)
    return Verdict(Outcome.SUPERSEDED, heir, tuple(_retired(memory, heir, why, now) for memory in known.of_key), ids)


def _by_text(offer: Offer, known: Known, reader: Reader, now: datetime) -> Verdict | None:
    """What the exact text decides: it strengthens whatever says it already."""
    draft, new = offer.draft, offer.new
    if offer.corrects is not None or draft.key:
        return None  # a correction is a statement of its own, and so is what has a key
    # equals and betters first
    for known_memory in sorted(known.same_text, key=lambda memory: new.trust.outranks(memory.trust)):
        if is_repeated_in(known_memory, new, reader):
            return _said_again(known_memory, draft, new, now)
    return None


def is_repeated_in(known: Memory, new: Memory, reader: Reader) -> bool:
    """Whether a new statement of the same text as a known one says it again."""
    if speaks_of_itself(reader.read(new.content)) and not known.is_told_as(new):
        return False  # "I like tea", said by another
    return not (known.key or _ends_first(known, new))  # what has a key is stated again under that key alone


# --- the meaning ---


async def _by_meaning(offer: Offer, known: Known, reader: Reader, now: datetime, rules: Rules) -> Verdict | None:
    """What the words say of the statements next to it: some are retired, some contested, or one is strengthened."""
    new = offer.new
    retired: list[tuple[Memory, Judgement]] = []
    contested: list[tuple[Memory, Judgement]] = []
    async for neighbour in in_turns(sorted(known.neighbours, key=lambda neighbour: -neighbour.similarity)):
        memory = neighbour.memory
        finding = finding_of(new, memory, neighbour, reader, rules)
        if finding.relation is Relation.SAME:
            if _is_repetition(offer, neighbour):
                return _said_again(memory, offer.draft, new, now)
        elif finding.relation is Relation.CHANGED and neighbour.same_subject:
            why = Judgement(finding.rule, finding.reason, new.id)
            ends = not memory.key and may_retire(new, memory, offer.said_time, now, rules)
            (retired if ends else contested).append((memory, why))
        elif is_doubt(finding, neighbour):
            contested.append((memory, Judgement(finding.rule, finding.reason, new.id)))
    retired, too_many = _bounded(retired, new)
    contested += too_many
    if offer.corrects is not None:
        retired = [(m, why) for m, why in retired if m.id != offer.corrects.id]
        contested = [(m, why) for m, why in contested if m.id != offer.corrects.id]
        retired.insert(0, (offer.corrects, Judgement("corrected", "it was corrected by name", new.id)))
    if not retired and not contested:
        return None
    if offer.corrects is not None:  # it is replaced, whatever the policy is for what is merely contradicted
        retired, more = retired[:1], retired[1:]
        verdict = replaced(new, more, contested, now, rules)
        return _with_corrected(verdict, offer.corrects, retired[0][1], now)
    return replaced(new, retired, contested, now, rules)


_Judged = list[tuple[Memory, Judgement]]


def _bounded(retired: _Judged, new: Memory) -> tuple[_Judged, _Judged]:
    """Return what a statement ends, of other users' the nearest few alone, and the rest, which it may contest."""
    others = [memory.id for memory, _ in retired if memory.author != new.author] if new.trust.is_sandbox else []
    spared = {*others[limits.MAX_ENDED_OF_OTHERS :]}
    return [one for one in retired if one[0].id not in spared], [one for one in retired if one[0].id in spared]


def _is_repetition(offer: Offer, neighbour: Neighbour) -> bool:
    """Whether what says the same in other words is stated again: of one subject, and neither has a key."""
    memory, new = neighbour.memory, offer.new
    if not neighbour.same_subject or offer.corrects is not None:
        return False
    return not (new.key or memory.key or _ends_first(memory, new))


def finding_of(new: Memory, old: Memory, neighbour: Neighbour, reader: Reader, rules: Rules) -> Finding:
    """Return how one statement stands to an older one; with keys of their own both hold, as the caller tells apart."""
    if new.key and old.key:
        return Finding(Relation.APART)
    return compare(
        reader.read(new.content),
        reader.read(old.content),
        similarity=neighbour.similarity,
        same_subject=neighbour.same_subject,
        same_speaker=new.is_told_as(old),
        duplicate=(rules.dedup_cosine, rules.dedup_jaccard),
        attributes=old.claims,
    )


def is_doubt(finding: Finding, neighbour: Neighbour) -> bool:
    """Whether two may contradict each other, and speak of the same people."""
    doubtful = finding.relation is Relation.CHANGED or finding.relation is Relation.DOUBTFUL
    return doubtful and neighbour.same_people


async def contested_by(
    back: Memory, neighbours: Sequence[Neighbour], reader: Reader, rules: Rules
) -> list[tuple[Memory, Judgement]]:
    """Return what a memory that comes back contests of what is live next to it, the nearest, each with the reason."""
    found = []
    async for neighbour in in_turns(sorted(neighbours, key=lambda neighbour: -neighbour.similarity)):
        memory = neighbour.memory
        newer, older = (memory, back) if memory.create_time > back.create_time else (back, memory)
        finding = finding_of(newer, older, neighbour, reader, rules)
        if is_doubt(finding, neighbour):
            found.append((memory, Judgement(finding.rule, finding.reason, memory.id)))
    return with_room(found, back)


def _with_corrected(verdict: Verdict, old: Memory, why: Judgement, now: datetime) -> Verdict:
    """Return a verdict that replaces what was corrected, too; its protection goes on."""
    heir = verdict.memory
    kept = old.protected and not heir.trust.outranks(old.trust)
    heir = replace(heir, supersedes=(old.id, *heir.supersedes), protected=kept)
    changed = (_retired(old, heir, why, now), *verdict.changed)
    return Verdict(Outcome.SUPERSEDED, heir, changed, (old.id, *verdict.superseded_ids))


def replaced(
    new: Memory,
    retired: Sequence[tuple[Memory, Judgement]],
    contested: Sequence[tuple[Memory, Judgement]],
    now: datetime,
    rules: Rules,
) -> Verdict:
    """Return what is written where a new statement retires some and contests others."""
    demoted = retired if rules.demote else ()
    linked = {memory.id: why for memory, why in with_room([*contested, *demoted], new)}
    ends = () if rules.demote else tuple(memory.id for memory, _ in retired)
    if not linked and not ends and not demoted:
        return Verdict(Outcome.INSERTED, new)
    gone = [] if rules.demote else [_retired(memory, new, why, now) for memory, why in retired]
    marked = [marked_by(memory, new.id, why) for memory, why in contested if memory.id in linked]
    for held, why in demoted:
        mark = marked_by(held, new.id, why) if held.id in linked else held
        reason = why if held.id in linked else replace(why, evidence="")
        marked.append(replace(mark, confidence=min(DEMOTED, held.confidence), judgement=reason))
    contests = tuple(linked)
    heir = replace(
        new,
        supersedes=(*new.supersedes, *ends),
        contested_with=(*new.contested_with, *contests),
        judgement=replace(linked[contests[0]], evidence=contests[0]) if contests else new.judgement,
    )
    return Verdict(Outcome.SUPERSEDED if ends else Outcome.INSERTED, heir, (*gone, *marked), ends)


def _retired(memory: Memory, heir: Memory, why: Judgement, now: datetime) -> Memory:
    return retired(memory, heir.id, why, now, trust=heir.trust)


def retired(memory: Memory, by: str, why: Judgement, now: datetime, *, trust: Trust) -> Memory:
    """Return a memory that another of the id `by` has replaced, on the word of someone of this trust."""
    return replace(
        memory, supersede_time=now, superseded_by=by, supersede_trust=trust, judgement=why, contested_with=()
    )


# --- saying it again ---


def _ends_first(known: Memory, new: Memory) -> bool:
    """Whether what another grant says expires before what is said now, so that this does not live by that."""
    if known.expire_time is None or known.trust is not new.trust or known.grant_id == new.grant_id:
        return False
    return new.expire_time is None or new.expire_time > known.expire_time


def _said_again(known: Memory, draft: Draft, new: Memory, now: datetime) -> Verdict:
    """
    Return what a repetition does: it reinforces, unless it comes from higher up.

    What the host says is the host's from then on: it is stored anew and retires what a sandbox said, so that nothing
    of it goes with the sandbox's memories and nothing that a sandbox wrote gains trust.
    """
    if not new.trust.outranks(known.trust):
        stronger = reinforced(known, draft, new, now)
        return Verdict(Outcome.REINFORCED, changed=(stronger,), untaken=untaken(stronger, draft, new))
    heir = replace(new, supersedes=(known.id,))
    why = Judgement("higher_trust", f"the same was stated with trust {new.trust.value!r}", heir.id)
    return Verdict(Outcome.SUPERSEDED, heir, (_retired(known, heir, why, now),), (known.id,))


def memory_of(draft: Draft, owner: Owner, memory_id: str, now: datetime, **more: object) -> Memory:
    """Return the memory that a draft would become; `more` holds trust, grant_id, author, claims …"""
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
        create_time=now,
        event_time=draft.event_time or now,
        expire_time=draft.expiry(now),
        **more,  # type: ignore[arg-type]
    )
