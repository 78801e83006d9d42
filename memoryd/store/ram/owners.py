"""What the reference store answers about owners, their people and grants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import UTC, date, datetime

from memoryd.model.entity import Entity
from memoryd.model.grant import Grant, GrantUsage, TokenKey
from memoryd.model.reports import OwnerContents, OwnerSize, OwnerSizes
from memoryd.model.scope import Owner
from memoryd.store.ram.state import RamState
from memoryd.store.recent import Heads

__all__ = ["RamGrants", "RamOwners", "RamPeople"]


class RamPeople:
    """What was decided of entities, in a dictionary."""

    def __init__(self, state: RamState) -> None:
        self._state = state

    async def entities(self, owner: Owner) -> list[Entity]:
        return sorted((e for e in self._state.named.values() if e.owner == owner), key=lambda entity: entity.id)

    async def is_named(self, owner: Owner, entity_ids: Collection[str], *, but: Collection[str]) -> bool:
        return any(
            {mention.entity_id, mention.same_as} & {*entity_ids}
            for entry in self._state.entries.values()
            if entry.memory.owner == owner and entry.memory.id not in but
            for mention in entry.memory.mentions
        )


class RamGrants:
    """Grants and keys in dictionaries."""

    def __init__(self, state: RamState, heads: Heads) -> None:
        self._state, self._heads = state, heads

    async def head(self) -> int:
        return self._heads.grants

    async def all(self) -> list[Grant]:
        return sorted(self._state.grants.values(), key=lambda grant: (grant.create_time, grant.id))

    async def token_keys(self) -> list[TokenKey]:
        return sorted(self._state.token_keys.values(), key=lambda key: (key.create_time, key.id))

    async def usage(self, grant_id: str, day: date) -> GrantUsage:
        memories = [entry.memory for entry in self._state.entries.values() if entry.memory.grant_id == grant_id]
        said = sum(message.text_bytes for message in self._state.said.values() if message.grant_id == grant_id)
        return GrantUsage(
            sum(memory.create_time.date() == day for memory in memories) + self._state.said_on[grant_id, day],
            len(memories),
            sum(memory.text_bytes for memory in memories) + said + self._text_bytes_of(grant_id),
        )

    def _text_bytes_of(self, grant_id: str) -> int:
        """Return the bytes of summaries, working memories and notes that were set through a grant."""
        texts = [text for thread in self._state.threads.values() for text in thread.texts]
        texts += [text for working_memory in self._state.working.values() for text in working_memory.texts]
        texts += [text for note in self._state.notes.notes.values() for text in note.grant_texts]
        return sum(text.size for text in texts if text.grant_id == grant_id)


class RamOwners:
    """Whose rows there are."""

    def __init__(self, state: RamState) -> None:
        self._state = state

    async def contents(self, owner: Owner, *, limit: int) -> OwnerContents:
        memories = [entry.memory for entry in self._state.entries.values() if entry.memory.owner == owner]
        memories.sort(key=lambda memory: (memory.create_time, memory.id), reverse=True)
        messages = [message for _, message in sorted(self._state.said.items()) if message.owner == owner]
        threads = [thread for key, thread in self._state.threads.items() if key[0] == owner]
        rows = [entity for entity in self._state.named.values() if entity.owner == owner]
        trusts = {memory.trust for memory in memories} | {message.trust for message in messages}
        trusts |= {thread.highest_trust for thread in threads} | {row.trust for row in rows}
        if owner in self._state.working:
            trusts.add(self._state.working[owner].trust)
        notes = self._state.notes.of(owner)
        trusts |= {version.trust for note in notes for version in note.versions}
        return OwnerContents(
            len(memories),
            len(messages),
            len(threads),
            tuple(memory.id for memory in memories[:limit]),
            tuple(message.id for message in messages[:limit]),
            frozenset(trusts),
            len(notes),
        )

    async def of_user(self, user_id: str, agent_id: str = "") -> list[Owner]:
        owners = {entry.memory.owner for entry in self._state.entries.values()}
        owners |= {entity.owner for entity in self._state.named.values()}
        owners |= {*self._state.working, *(owner for owner, _ in (*self._state.threads, *self._state.notes.notes))}
        holders = (o for o in owners if o.scope.user_id == user_id and agent_id in {"", o.agent_id})
        return sorted(holders, key=lambda owner: owner.agent_id)

    async def sizes(self, agent_id: str = "", *, limit: int, new_since: datetime | None = None) -> OwnerSizes:
        since = new_since or datetime.max.replace(tzinfo=UTC)
        stored: dict[Owner, list[int]] = {}
        for memory in (entry.memory for entry in self._state.entries.values()):
            counts = stored.setdefault(memory.owner, [0] * 5)
            counts[0] += 1
            counts[2] += len(memory.content.encode())
            counts[3] += memory.create_time >= since
        for message in self._state.said.values():
            counts = stored.setdefault(message.owner, [0] * 5)
            counts[1] += 1
            counts[2] += len(message.content.encode())
            counts[4] += message.create_time >= since
        for owner in {
            *self._state.working,
            *(owner for owner, _ in (*self._state.threads, *self._state.notes.notes)),
            *(entity.owner for entity in self._state.named.values()),
        }:
            stored.setdefault(owner, [0] * 5)
        for (owner, _), note in self._state.notes.notes.items():
            stored[owner][2] += note.now.text_bytes
        sizes = [
            OwnerSize(owner.agent_id, owner.scope.user_id or "", owner.scope.chat_id or "", *counts)
            for owner, counts in stored.items()
            if agent_id in {"", owner.agent_id}
        ]
        sizes.sort(key=lambda size: (-size.content_bytes, size.agent_id, size.user_id, size.chat_id))
        return OwnerSizes(tuple(sizes[:limit]), len(sizes))

    async def active_since(self, time: datetime, *, least: int) -> list[Owner]:
        memories = (entry.memory for entry in self._state.entries.values())
        counts = Counter(
            memory.owner for memory in memories if memory.delete_time is None and memory.create_time >= time
        )
        return sorted((owner for owner, count in counts.items() if count >= least), key=repr)
