"""Looking at the people and things that memories name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memoryd.domain.ports import Ports
from memoryd.domain.reading.answers import within_bytes
from memoryd.domain.reading.page_token import number_after, read_number
from memoryd.domain.reading.presentation import present
from memoryd.domain.scopes import Scopes
from memoryd.domain.subjects import EVERY_KIND, find_entity, known_people
from memoryd.entities.directory import Directory
from memoryd.entities.resolve import meant_by
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.entity import Profile
from memoryd.model.memory import Memory
from memoryd.model.query import Filter
from memoryd.model.results import EntityMemories, PeoplePage
from memoryd.model.scope import Owner
from memoryd.model.times import from_us
from memoryd.model.validation import check_count

__all__ = ["get_entity", "list_people", "live_memories", "profile_of"]

SUMMED_UP = 3  # statements of a summary
SUMMARY_CHARACTERS = 300


async def list_people(caller: Caller, ports: Ports, *, page_size: int, page_token: str, now: datetime) -> PeoplePage:
    """Return the people that memories name, those named most often first; see ListPeople in the contract."""
    size = check_count(page_size, "page_size", default=limits.DEFAULT_PAGE_SIZE, limit=limits.MAX_PAGE_SIZE)
    bound = repr(("people", caller.agent_id, caller.user_id, caller.chat_id)).encode()
    start = read_number(page_token, ports.secret, bound) if page_token else 0
    ordered = await known_people(caller, Scopes(ports))
    profiles = [
        profile_of(owner, root, people, await live_memories(owner, root, people, ports, now))
        for owner, root, people in ordered[start : start + size]
    ]
    more = start + size < len(ordered)
    return PeoplePage(tuple(profiles), number_after(start + size, ports.secret, bound) if more else "")


async def get_entity(name: str, caller: Caller, ports: Ports, *, limit: int, now: datetime) -> EntityMemories:
    """Return an entity and the memories that name it, newest first; see GetEntity in the contract."""
    count = check_count(limit, "limit", default=limits.DEFAULT_PAGE_SIZE, limit=limits.MAX_PAGE_SIZE)
    owner, root, people = await find_entity(name, caller, ports, meant_by)
    memories = await live_memories(owner, root, people, ports, now)
    told = await present(within_bytes(memories[:count]), caller, ports, now)
    return EntityMemories(profile_of(owner, root, people, memories), tuple(told))


def profile_of(owner: Owner, root: str, people: Directory, memories: Sequence[Memory] = ()) -> Profile:
    """Return what is known of an entity; its summary is made of the memories that are given."""
    seen = people.live(root)
    name = people.name(root)
    most = max((memory.trust.weight for memory in memories), default=0)  # no lower trust stands there unmarked
    best = sorted(
        (memory for memory in memories if memory.trust.weight == most),
        key=lambda memory: (-memory.confidence, -memory.recall_count, memory.create_time),
    )
    summary = " · ".join(memory.content.strip() for memory in best[:SUMMED_UP])
    merged = [row.id for row in people.rows if row.merged_into and people.root(row.id) == root]
    return Profile(
        id=root,
        owner=owner,
        type=people.type(root),
        name=name,
        aliases=tuple(people.aliases(root)),
        relations=tuple(people.relations(root)),
        summary=summary if len(summary) <= SUMMARY_CHARACTERS else summary[: SUMMARY_CHARACTERS - 1] + "…",
        mention_count=len(seen),
        first_seen_time=from_us(min(seen.values())) if seen else None,
        last_seen_time=from_us(max(seen.values())) if seen else None,
        merged_ids=tuple(sorted(merged)),
    )


async def live_memories(owner: Owner, root: str, people: Directory, ports: Ports, now: datetime) -> list[Memory]:
    """Return the live memories that name an entity, newest first."""
    index = await ports.indexes.get(owner)
    if index is None:
        found = await ports.store.naming(owner, people.members(root))
    else:
        known = (index.memory(memory_id) for memory_id in people.live(root))
        found = sorted((m for m in known if m is not None), key=lambda m: (m.create_time, m.id), reverse=True)
    every = Filter(kinds=EVERY_KIND)
    return [memory for memory in found if every.admits(memory, now)]
