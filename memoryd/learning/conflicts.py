"""Which memories may contradict one, and what someone decides between two."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from memoryd.domain.links import released, without_contested
from memoryd.domain.pipeline import Decision, decide_and_commit
from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.browse import find
from memoryd.domain.retrieval.presentation import present
from memoryd.domain.writing.add import check_changeable
from memoryd.domain.writing.judge import retired
from memoryd.domain.writing.known import KnownStatements
from memoryd.domain.writing.pending import Pending
from memoryd.errors import InvalidArgument
from memoryd.knowledge.comparison.comparison import compare
from memoryd.knowledge.comparison.rules import Relation
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.learnt import MemoryConflict, Resolution, Stands
from memoryd.model.memory import KEPT, Judgement, Memory, ShownMemory
from memoryd.model.validation import check_count, check_text

__all__ = ["detect_conflicts", "resolve_conflict"]

LEAST_NEAR = 0.5  # cosine from which two memories are near, where the words decide nothing
DEFAULT_LIMIT = 10
MAX_REASON_BYTES = 256


_ORDER = {Stands.CHANGED: 0, Stands.CONTESTED: 1, Stands.DOUBTFUL: 2, Stands.NEAR: 3}


async def detect_conflicts(
    memory_id: str, caller: Caller, ports: Ports, *, now: datetime, limit: int = 0
) -> list[MemoryConflict]:
    """Return the live memories of the same scope that may contradict one, what a rule says something of first."""
    size = check_count(limit, "limit", default=DEFAULT_LIMIT, limit=limits.MAX_SEARCH_LIMIT)
    memory = await find(memory_id, caller, ports.store)
    owner = memory.owner
    known = KnownStatements(ports, {owner: await ports.indexes.get(owner)}, Pending(now), now)
    entry = await ports.entry_of(memory)
    vector = None if entry is None else entry.vector
    reader = known.reader(owner)
    found: list[tuple[Memory, Stands, float, str, str]] = []
    for neighbour in await known.neighbours(memory, vector):
        other = neighbour.memory
        if other.id == memory.id:
            continue
        newer, older = (memory, other) if memory.create_time >= other.create_time else (other, memory)
        finding = compare(
            reader.read(newer.content),
            reader.read(older.content),
            similarity=neighbour.similarity,
            same_subject=neighbour.same_subject,
            same_speaker=newer.narrator == older.narrator,
            attributes=older.claims,
        )
        stands = _stands(memory, other, finding.relation, neighbour.similarity)
        if stands is not None:
            found.append((other, stands, neighbour.similarity, finding.rule, finding.reason))
    found.sort(key=lambda one: (_ORDER[one[1]], -one[2]))
    shown = await present([one[0] for one in found[:size]], caller, ports, now)
    return [MemoryConflict(memory, *one[1:]) for memory, one in zip(shown, found, strict=False)]


def _stands(memory: Memory, other: Memory, relation: Relation, similarity: float) -> Stands | None:
    if other.id in memory.contested_with:
        return Stands.CONTESTED
    if relation is Relation.CHANGED:
        return Stands.CHANGED
    if relation is Relation.DOUBTFUL:
        return Stands.DOUBTFUL
    return Stands.NEAR if similarity >= LEAST_NEAR else None


async def resolve_conflict(
    memory_id: str,
    other_id: str,
    resolution: Resolution,
    caller: Caller,
    ports: Ports,
    *,
    now: datetime,
    reason: str = "",
) -> tuple[ShownMemory, ShownMemory]:
    """Decide between two memories of one scope, and return them as they are then; see ResolveConflict."""
    text = check_text(reason, "reason", limit=MAX_REASON_BYTES).strip()
    if text and ports.guards.secrets([text]):
        raise InvalidArgument("reason holds a credential", field="reason")
    first, second = await find(memory_id, caller, ports.store), await find(other_id, caller, ports.store)
    if first.id == second.id or first.owner != second.owner:
        raise InvalidArgument("id and other_id must be two memories of one scope", field="other_id")

    async def decide() -> Decision[tuple[ShownMemory, ShownMemory]]:
        newer, other = await find(first.id, caller, ports.store), await find(second.id, caller, ports.store)
        if resolution is Resolution.SUPERSEDE and other.superseded_by == newer.id:
            return Decision(None, lambda: _shown(newer, other, caller, ports, now))
        check_changeable(newer, caller, now)
        check_changeable(other, caller, now)
        if resolution is Resolution.SUPERSEDE and other.key:
            raise InvalidArgument(
                f"the other memory has the key {other.key!r}; store what holds now under that key, or correct or delete"
                " it",
                field="other_id",
            )
        entries = {
            entry.memory.id: entry for entry in await ports.store.memories.entries(newer.owner, [newer.id, other.id])
        }
        changed = {newer.id: without_contested(newer, other.id), other.id: without_contested(other, newer.id)}
        freed: list[Entry] = []
        if resolution is Resolution.KEEP_BOTH:
            why = Judgement(KEPT, text or "it was decided that both hold")
            changed = {
                newer.id: replace(changed[newer.id], judgement=replace(why, evidence=other.id)),
                other.id: replace(changed[other.id], judgement=replace(why, evidence=newer.id)),
            }
        else:
            why = Judgement("resolved", text or "it was decided between the two", newer.id)
            changed[other.id] = retired(other, newer.id, why, now, trust=caller.trust)
            supersedes = tuple(dict.fromkeys((*newer.supersedes, other.id)))
            changed[newer.id] = replace(changed[newer.id], supersedes=supersedes)
            freed = [entry for entry in await released([other], ports.store) if entry.memory.id != newer.id]
        updates = [replace(entries[one], memory=memory) for one, memory in changed.items()]
        answer = changed[newer.id], changed[other.id]
        return Decision(ChangeSet(updates=(*updates, *freed)), lambda: _shown(*answer, caller, ports, now))

    return await decide_and_commit([first.owner], decide, ports, now=now, grant_id=caller.grant_id)


async def _shown(
    kept: Memory, other: Memory, caller: Caller, ports: Ports, now: datetime
) -> tuple[ShownMemory, ShownMemory]:
    first, second = await present([kept, other], caller, ports, now)
    return first, second
