"""
The weekly digest of an owner: what is new, what has changed, what was recalled most, what comes, what is in doubt.

It is made by rules from memories of the last days, and cites them: whatever takes one of them away takes the digest
away too. Its trust is the lowest of what it is made from. The next one supersedes it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from memoryd.domain.decay import REFLECTION
from memoryd.domain.forgetting.derived import CITES, MOST_CITED
from memoryd.domain.pipeline import Decision, answering, decide_and_commit
from memoryd.domain.ports import Guards, Ports
from memoryd.domain.writing.session import WriteSession
from memoryd.errors import InvalidArgument, LimitExceeded, TrustTooLow, Unavailable
from memoryd.index.analysis import embedded_text
from memoryd.learning.grounding import sums_up
from memoryd.learning.language_model import LanguageModel
from memoryd.llm.replies import text_in_reply
from memoryd.model.caller import Caller
from memoryd.model.grant import GrantUsage
from memoryd.model.memory import NO_STATEMENTS, Draft, Kind, Memory, Outcome, Source, State
from memoryd.model.query import Filter
from memoryd.model.scope import Owner, Visibility
from memoryd.model.trust import Trust
from memoryd.store.base import Store

__all__ = ["KEY", "digest_of", "reflect"]

DAYS = 7  # that a digest is of
LEAST_APART = timedelta(days=6)
LEAST_NEW = 3  # memories of these days, or there is nothing to sum up
MOST_READ = 200  # memories that are looked at
EACH = 6  # memories that are told of in one part
AHEAD = timedelta(days=30)  # that what comes lies within
LINE = 200  # characters of a memory that are told
KEY = f"{REFLECTION}:weekly"
PROMPT = "reflection.v1"
MOST_OF_DIGEST = 2_000  # characters that a model may write
_SCHEMA = {
    "type": "object", "properties": {"digest": {"type": "string"}}, "required": ["digest"],
    "additionalProperties": False,
}  # fmt: skip
PARTS = ("New", "Changed", "Recalled most", "Coming up", "In doubt")


async def reflect(
    ports: Ports,
    owners: Sequence[Owner],
    *,
    now: datetime,
    dry_run: bool = False,
    model: LanguageModel | None = None,
) -> Counter[str]:
    """
    Write a digest for each owner with enough that is new; return how many owners there were, and digests.

    With a model that one writes them; where it gives none that can be used, the rules do.
    """
    counts: Counter[str] = Counter(owners=len(owners))
    for owner in owners:
        try:
            counts["reflections"] += await _reflect(owner, ports, now, model, dry_run=dry_run)
        except (InvalidArgument, LimitExceeded, TrustTooLow):  # of one owner; others get theirs
            counts["failed"] += 1
    return counts


async def _reflect(owner: Owner, ports: Ports, now: datetime, model: LanguageModel | None, *, dry_run: bool) -> bool:
    if not ports.policy.of(owner.agent_id).enabled or await _is_recent(owner, ports.store, now):
        return False
    since = now - timedelta(days=DAYS)
    used = await _sources(owner, ports.store, since, now)
    if sum(memory.create_time >= since and memory.supersede_time is None for memory in used) < LEAST_NEW:
        return False
    if dry_run:
        return True
    content, cites = digest_of(used, since=since, now=now)
    text = "" if model is None else await _by_model(content, model, ports.guards)
    digest = _Digest(
        text or content,
        {CITES: " ".join(cites), "written_by": model.model[:200] if model is not None and text else "rules"},
        min((memory.trust for memory in used), key=lambda trust: trust.weight),
    )
    try:
        return await _store(owner, digest, cites, ports, now)
    except InvalidArgument:  # the model wrote what cannot be stored
        by_rules = replace(digest, content=content, metadata={**digest.metadata, "written_by": "rules"})
        return await _store(owner, by_rules, cites, ports, now)


async def _is_recent(owner: Owner, store: Store, now: datetime) -> bool:
    """Whether the last digest is too new for another one."""
    memories = [memory for trust in Trust for memory in await store.memories.alike(owner, now, key=_key_of(trust))]
    digests = [memory for memory in memories if memory.source.channel == REFLECTION and CITES in memory.metadata]
    return any(now - memory.create_time < LEAST_APART for memory in digests)


async def _sources(owner: Owner, store: Store, since: datetime, now: datetime) -> list[Memory]:
    """Return what a digest may be made from."""
    visible = Visibility(owner.agent_id, owner.scope.user_id, owner.scope.chat_id)
    wanted = Filter(create_time_from=since, include_superseded=True)
    recent = await store.memories.page(visible, wanted, now=now, limit=MOST_READ)
    ahead = Filter(event_time_from=now, event_time_to=now + AHEAD)
    coming = await store.memories.page(visible, ahead, now=now, limit=MOST_READ)
    return _trusted([memory for memory in (*recent, *coming) if _counts(memory)])


@dataclass(frozen=True, slots=True)
class _Digest:
    content: str
    metadata: Mapping[str, str]
    trust: Trust


async def _by_model(content: str, model: LanguageModel, guards: Guards) -> str:
    """Return the model's digest of a digest by rules, under the same first line; empty where there is none to use."""
    first, *lines = content.splitlines()
    question = "\n".join(json.dumps(dict([line.split(": ", 1)]), ensure_ascii=False) for line in lines)
    try:
        reply = await model.ask(PROMPT, question, _SCHEMA)
    except Unavailable:
        return ""
    text = " ".join(text_in_reply(reply.text, "digest").split())
    if len(text) > MOST_OF_DIGEST or not sums_up(text, content) or guards.secrets([text]):
        return ""
    return f"{first}\n{text}"


def _key_of(trust: Trust) -> str:
    """Return the key of the digests of a trust: one of less trust takes no place of another one's."""
    return KEY if trust is Trust.HOST else f"{KEY}:{trust.value}"


def _counts(memory: Memory) -> bool:
    return memory.kind not in NO_STATEMENTS


def _trusted(memories: Sequence[Memory]) -> list[Memory]:
    """Return what the host states, if that is enough for a digest; else all of it."""
    unique = list({memory.id: memory for memory in memories}.values())
    hosts = [memory for memory in unique if memory.trust is Trust.HOST]
    return hosts if len(hosts) >= LEAST_NEW else unique


def digest_of(memories: Sequence[Memory], *, since: datetime, now: datetime) -> tuple[str, list[str]]:
    """Return the digest of memories, a line for each part, and the ids that it is made from; each is told of once."""
    memorieses: dict[str, list[Memory]] = {}
    cites: list[str] = []
    for name, some in _parts([memory for memory in memories if memory.supersede_time is None], since, now):
        left = [memory for memory in some if memory.id not in cites][: min(EACH, MOST_CITED - len(cites))]
        if left:
            memorieses[name] = left
            cites += [memory.id for memory in left]
    lines = [f"The week from {since:%Y-%m-%d} to {now:%Y-%m-%d}."]
    lines += [
        f"{name}: {'; '.join(_line(memory, name) for memory in memorieses[name])}."
        for name in PARTS
        if name in memorieses
    ]
    return "\n".join(lines), cites


def _parts(live: Sequence[Memory], since: datetime, now: datetime) -> Iterator[tuple[str, list[Memory]]]:
    """Yield the parts, those first that tell a memory that belongs to several."""
    new = [memory for memory in live if memory.create_time >= since]
    coming = [memory for memory in live if memory.kind is Kind.EVENT and now <= memory.event_time <= now + AHEAD]
    yield "Coming up", sorted(coming, key=lambda memory: memory.event_time)
    yield "Changed", [memory for memory in new if memory.supersedes]
    yield "In doubt", [memory for memory in live if memory.contested_with]
    yield (
        "Recalled most",
        sorted((memory for memory in live if memory.recall_count), key=lambda memory: -memory.recall_count)[:EACH],
    )
    yield "New", sorted(new, key=lambda memory: (-memory.confidence, memory.create_time))


def _line(memory: Memory, part: str) -> str:
    text = " ".join(memory.content.split()).rstrip(".;").translate(_INNER)
    text = text if len(text) <= LINE else f"{text[:LINE].rstrip()}…"
    speaker = f"{memory.narrator.translate(_INNER)}: " if memory.narrator else ""
    when = f"{memory.event_time:%Y-%m-%d}: " if part == "Coming up" else ""
    return f"{when}{speaker}“{text}”"


_INNER = str.maketrans(dict.fromkeys('“”„‟«»"＂', "'"))  # noqa: RUF001  look-alikes too
"""Quotation marks within an item: nothing that was said ends it, or begins another one."""


async def _store(owner: Owner, digest: _Digest, cites: Sequence[str], ports: Ports, now: datetime) -> bool:
    """Store a digest, unless one of the memories that it is made from is gone; return whether it was stored."""
    draft = Draft(
        content=digest.content,
        kind=Kind.REFLECTION,
        shared=owner.scope.chat_id is not None,
        tags=("weekly",),
        key=_key_of(digest.trust),
        metadata=digest.metadata,
        source=Source(channel=REFLECTION),
        decay_rate=0.0,
    )
    caller = Caller(owner.agent_id, owner.scope.user_id, owner.scope.chat_id, digest.trust)
    text = embedded_text("", digest.content)
    (vectors,) = await ports.embedder.documents([text], caller=REFLECTION, background=True)

    async def decide() -> Decision[bool]:
        there = await ports.store.memories.entries(owner, cites)
        if len(there) < len(cites) or any(entry.memory.state_at(now) is State.DELETED for entry in there):
            return Decision(None, answering(False))
        indexes = {owner: await ports.indexes.get(owner)}
        session = WriteSession(
            ports,
            indexes,
            now,
            heads=[await ports.store.commits.memories.head(owner)],
            used=GrantUsage(),
            count=1,
        )
        try:
            became = await session.consider(draft, owner, caller, vectors)
        finally:
            session.end()
        return Decision(await session.change(None), answering(became.outcome is not Outcome.REJECTED))

    return await decide_and_commit([owner], decide, ports, now=now, grant_id="")
