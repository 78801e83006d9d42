"""Looking at the people and things that memories name."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.answers import within_bytes
from memoryd.domain.retrieval.page_token import page_token_after, read_page_token
from memoryd.domain.retrieval.presentation import present
from memoryd.domain.scopes import Scopes
from memoryd.domain.subjects import EVERY_KIND, find_entity, known_people, person_place
from memoryd.entities.directory import Directory
from memoryd.entities.lookup import meant_by
from memoryd.index.columns import Facts
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.entity import Profile
from memoryd.model.memory import Memory
from memoryd.model.query import Filter
from memoryd.model.reports import EntityMemories, PeoplePage
from memoryd.model.scope import Owner
from memoryd.model.times import from_us, to_us
from memoryd.model.validation import check_count
from memoryd.store.memories import Cursor
from memoryd.turns import in_turns, let_others

__all__ = ["best_of", "get_entity", "list_people", "profile_now", "profile_of"]

SUMMED_UP = 3  # statements of a summary
SUMMARY_CHARACTERS = 300


async def list_people(caller: Caller, ports: Ports, *, page_size: int, page_token: str, now: datetime) -> PeoplePage:
    """Return the people that memories name, those named most often first; see ListPeople in the contract."""
    size = check_count(page_size, "page_size", default=limits.DEFAULT_PAGE_SIZE, limit=limits.MAX_PAGE_SIZE)
    bound = repr(("people", caller.agent_id, caller.user_id, caller.chat_id)).encode()
    ordered = await known_people(caller, Scopes(ports))
    if page_token:  # past the last one of the page before, and not past so many: others may have gone or come
        last = _read_place(read_page_token(page_token, ports.page_secret, bound))
        ordered = ordered[bisect_right(ordered, last, key=lambda person: person_place(*person[1:])) :]
    page = ordered[:size]
    profiles = [await profile_now(owner, root, people, ports, now) async for owner, root, people in in_turns(page)]
    token = (
        page_token_after(_cursor(person_place(*page[-1][1:])), ports.page_secret, bound) if len(ordered) > size else ""
    )
    return PeoplePage(tuple(profiles), token)


def _cursor(place: tuple[int, str, str]) -> Cursor:
    """Return where a page of people ended as the cursor of a token."""
    count, name, root = place
    return Cursor(from_us(-count), f"{root} {name}")


def _read_place(cursor: Cursor) -> tuple[int, str, str]:
    root, _, name = cursor.id.partition(" ")
    return -to_us(cursor.create_time), name, root


async def get_entity(name: str, caller: Caller, ports: Ports, *, limit: int, now: datetime) -> EntityMemories:
    """Return an entity and the memories that name it, newest first; see GetEntity in the contract."""
    count = check_count(limit, "limit", default=limits.DEFAULT_PAGE_SIZE, limit=limits.MAX_PAGE_SIZE)
    owner, root, people = await find_entity(name, caller, ports, meant_by)
    await let_others()
    newest, best = await _newest_and_best(owner, root, people, ports, now, count=count)
    await let_others()
    memories = await present(within_bytes(newest), caller, ports, now)
    return EntityMemories(profile_of(owner, root, people, best), tuple(memories))


async def profile_now(owner: Owner, root: str, people: Directory, ports: Ports, now: datetime) -> Profile:
    """Return what is known of an entity now."""
    _, best = await _newest_and_best(owner, root, people, ports, now, count=0)
    return profile_of(owner, root, people, best)


def best_of(memories: Iterable[Memory]) -> list[Memory]:
    """Return the statements that sum an entity up: of most trust, and of those the surest, the most recalled, …"""
    known = list(memories)
    most = max((memory.trust.weight for memory in known), default=0)  # no lower trust stands there unmarked
    best = sorted(
        (memory for memory in known if memory.trust.weight == most),
        key=lambda memory: (-memory.confidence, -memory.recall_count, memory.create_time),
    )
    return best[:SUMMED_UP]


def _best(facts: Facts) -> NDArray[np.int64]:
    """Return the documents of `best_of`, in no order."""
    trusted = np.flatnonzero(facts.trusts == facts.trusts.max(initial=0))
    keys = (facts.created[trusted], -facts.recalls[trusted], -facts.confidences[trusted])
    return facts.documents[trusted[np.lexsort(keys)[:SUMMED_UP]]]


def profile_of(owner: Owner, root: str, people: Directory, best: Sequence[Memory]) -> Profile:
    """Return what is known of an entity; its summary is made of the best statements."""
    seen = people.live(root)
    name = people.name(root)
    summary = " · ".join(memory.content.strip() for memory in best)
    merged = sorted(row.id for row in people.rows if row.merged_into and people.root(row.id) == root)
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
        merged_ids=tuple(merged),
        merged_names=tuple(map(people.own_name, merged)),
    )


async def _newest_and_best(
    owner: Owner, root: str, people: Directory, ports: Ports, now: datetime, *, count: int
) -> tuple[list[Memory], list[Memory]]:
    """Return the `count` newest live memories that name an entity, newest first, and the best ones."""
    index = await ports.indexes.get(owner, partial=True)
    if index is None:
        every = Filter(kinds=EVERY_KIND)
        named = await ports.naming(owner, people.members(root))
        live = [memory for memory in named if every.admits(memory, now)]
        return live[:count], best_of(live)
    facts = index.facts(people.live(root), now)
    latest = facts.documents[np.argsort(-facts.created)[:count]]
    newest = sorted(index.memories(latest.tolist()), key=lambda memory: (memory.create_time, memory.id), reverse=True)
    return newest, best_of(index.memories(_best(facts).tolist()))
