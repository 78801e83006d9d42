"""The memories that one call adds and changes, in the form that they will have once it is committed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from memoryd.model.change import Entry
from memoryd.model.memory import Memory, State
from memoryd.model.scope import Owner
from memoryd.model.validation import text_digest

__all__ = ["Pending"]


class Pending:
    """The changes of one call, laid over the store: reads see the memories as the call leaves them."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._memories: dict[str, Memory] = {}
        self._new: dict[str, Entry] = {}
        self._new_of: dict[Owner, list[Entry]] = {}
        self._of_name: dict[tuple[Owner, str | bytes], list[str]] = {}
        """Ids by key, and by text digest."""

    def __contains__(self, memory_id: str) -> bool:
        return memory_id in self._memories

    def __iter__(self) -> Iterator[Memory]:
        return iter(self._memories.values())

    def get(self, memory_id: str) -> Memory | None:
        """Return a memory in its final form; None if the call leaves it alone."""
        return self._memories.get(memory_id)

    def new_entry(self, memory_id: str) -> Entry | None:
        """Return the entry of a memory that the call adds, its vector with it; None for any other."""
        return self._new.get(memory_id)

    def new_entries(self, owner: Owner) -> Sequence[Entry]:
        """Return the entries of the memories that the call adds for an owner, as they were added."""
        return self._new_of.get(owner, ())

    def add(self, entry: Entry, digest: bytes) -> None:
        """Take in a memory that the call adds."""
        self._new[entry.memory.id] = entry
        self._new_of.setdefault(entry.memory.owner, []).append(entry)
        self.put(entry.memory, digest)

    def put(self, memory: Memory, digest: bytes | None = None) -> None:
        """Take in the newer form of a memory."""
        known = memory.id in self._memories
        self._memories[memory.id] = memory
        if not known:
            digest = digest or text_digest(memory.content)
            self._of_name.setdefault((memory.owner, digest), []).append(memory.id)
        if memory.key and memory.id not in self._of_name.get((memory.owner, memory.key), ()):
            self._of_name.setdefault((memory.owner, memory.key), []).append(memory.id)

    def overlay(self, owner: Owner, stored: list[Memory], name: str | bytes) -> list[Memory]:
        """Return stored memories of a key or a text digest as the call leaves them, and those that it adds."""
        untouched = [memory for memory in stored if memory.id not in self._memories]
        pending = [self._memories[memory_id] for memory_id in self._of_name.get((owner, name), ())]
        return untouched + [memory for memory in pending if memory.state_at(self._now) is State.LIVE]

    def unsettled(self, owner: Owner) -> int:
        """Return by how many live memories the call makes an owner's more, without those that it evicts."""
        added = len(self.new_entries(owner))
        return added - sum(1 for m in self._memories.values() if m.owner == owner and m.supersede_time is not None)
