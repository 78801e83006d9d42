"""What comes back counts only next to what was said since: it contests that, or stays where its place is taken."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.ports import Ports
from memoryd.domain.writing.judge import contested_by
from memoryd.domain.writing.known import KnownStatements
from memoryd.domain.writing.pending import Pending
from memoryd.errors import Conflict
from memoryd.model.change import Entry
from memoryd.model.memory import NO_STATEMENTS, Judgement, Memory, State
from memoryd.model.validation import text_digest

__all__ = ["come_back", "not_replaced"]

_RESTORED = Judgement("restored", "it was restored beside what had replaced it; confirm one of them")


def not_replaced(memory: Memory) -> Memory:
    """Return a memory without what says that another has replaced it, and why."""
    return replace(memory, supersede_time=None, superseded_by="", supersede_trust=None, judgement=None)


async def come_back(
    back: Memory, heirs: list[Entry], entry: Entry, ports: Ports, now: datetime, *, gone: Collection[str] = ()
) -> tuple[Memory, list[Entry]]:
    """
    Return a memory that is to count again, and the others that change with it; the ids of those who go do not count.

    Conflict if its key is taken, or the same was stored again.
    """
    if back.state_at(now) is not State.LIVE:
        return back, heirs
    known = KnownStatements(ports, {back.owner: await ports.indexes.get(back.owner)}, Pending(now), now)
    if back.key:
        await _check_key(back, known, gone)
    await _check_text(back, known, gone)
    return await _contested(back, entry, heirs, known, ports, now, gone)


async def _contested(
    back: Memory,
    entry: Entry,
    heirs: Sequence[Entry],
    known: KnownStatements,
    ports: Ports,
    now: datetime,
    gone: Collection[str],
) -> tuple[Memory, list[Entry]]:
    """Return a memory that is live again, and what contests it, marked with each other: its heir, and what was said."""
    reasons = {
        heir.memory.id: replace(_RESTORED, evidence=heir.memory.id)
        for heir in heirs
        if heir.memory.state_at(now) is State.LIVE
    }
    if back.kind not in NO_STATEMENTS:
        vector = entry.vector if entry.fingerprint == ports.embedder.fingerprint else None
        with ports.shared.faults.spared("judging"):
            neighbours = [
                neighbour for neighbour in await known.neighbours(back, vector) if neighbour.memory.id not in gone
            ]
            for memory, why in await contested_by(back, neighbours, known.reader(back.owner), ports.policy.rules):
                reasons.setdefault(memory.id, why)
    ids = {heir.memory.id for heir in heirs}
    others = await ports.store.memories.entries(back.owner, [reason for reason in reasons if reason not in ids])
    rivals = [
        replace(rival, memory=_marked(rival.memory, back, reasons)) if rival.memory.id in reasons else rival
        for rival in (*heirs, *others)
    ]
    contested = tuple(rival.memory.id for rival in rivals if rival.memory.id in reasons)
    return replace(back, contested_with=contested, judgement=reasons[contested[0]] if contested else None), rivals


def _marked(rival: Memory, back: Memory, reasons: Mapping[str, Judgement]) -> Memory:
    return replace(
        rival,
        contested_with=tuple(dict.fromkeys((*rival.contested_with, back.id))),
        judgement=rival.judgement or replace(reasons[rival.id], evidence=back.id),
    )


async def _check_key(memory: Memory, known: KnownStatements, gone: Collection[str]) -> None:
    holders = [holder for holder in await known.of_key(memory.owner, memory.key) if holder.id not in gone]
    if holders:
        raise Conflict(f"its key {memory.key!r} is taken by memory {holders[0].id}; delete that one first", field="id")


async def _check_text(memory: Memory, known: KnownStatements, gone: Collection[str]) -> None:
    twins = [
        holder
        for holder in await known.same_text(memory.owner, text_digest(memory.content))
        if holder.id not in gone
        and (holder.key, holder.subjects, holder.source.speaker) == (memory.key, memory.subjects, memory.source.speaker)
    ]
    if twins and memory.kind not in NO_STATEMENTS:
        raise Conflict(f"the same was stored again as memory {twins[0].id}, which is live", field="id")
