"""What is erased for good, named so that an older copy of a store can be cleaned of it, and says of it nothing else."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from memoryd.model.scope import Owner

if TYPE_CHECKING:
    from memoryd.model.change import ChangeSet, ConversationChange
    from memoryd.model.note import Note, NoteVersion

__all__ = ["ErasedKind", "ErasedThing", "Erasures", "Purged", "erased_by", "path_erased", "version_erased"]

DIGEST_BYTES = 16  # of 32: two things of one digest are not to be expected before 2**64 of them


class ErasedKind(StrEnum):
    """Of what kind something is that was erased."""

    MEMORY = "memory"
    MESSAGE = "message"
    THREAD = "thread"
    TEXTS = "texts"
    """Summary and working memory of a thread; of the thread "": the working memory of the owner."""
    ENTITY = "entity"
    """A person or thing: what was decided of it, and that memories mention it."""
    PROPOSAL = "proposal"
    NOTE = "note"
    """
    A note with all its versions, by its own id; with that id as thread, one of its former versions; with the thread
    "/", the path of one that someone has deleted.
    """
    NAME = "name"
    """
    The name of a person who was forgotten (`name_key`): summaries and working memories that have it go. With it stand
    the first piece of it, and the owner alone, so that most texts are passed over at once.
    """
    OWNER = "owner"
    """All that a user or chat has with an agent."""


class ErasedThing(NamedTuple):
    """Something that was erased."""

    kind: ErasedKind
    owner: Owner
    thread_id: str = ""
    id: str = ""

    def digest(self, key: bytes) -> str:
        """Return what stands for it in hexadecimal digits: without the key it says nothing of it to anyone."""
        scope = self.owner.scope
        named = [self.kind.value, self.owner.agent_id, scope.user_id, scope.chat_id, self.thread_id, self.id]
        return hmac.new(key, json.dumps(named).encode(), hashlib.sha256).hexdigest()[: 2 * DIGEST_BYTES]


@dataclass(frozen=True, slots=True)
class Erasures:
    """What a ledger says was erased, and an older copy of the store may still hold."""

    key: bytes = field(repr=False)
    digests: frozenset[str] = frozenset()
    tombstones: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Digests of what must not be learnt again, in hexadecimal digits, by the digest of their owner."""

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.digests or self.tombstones)

    def has(self, kind: ErasedKind, owner: Owner, thread_id: str = "", name: str = "") -> bool:
        """Whether something was erased."""
        return ErasedThing(kind, owner, thread_id, name).digest(self.key) in self.digests

    def tombstones_of(self, owner: Owner) -> frozenset[str]:
        """Return the digests of what must not be learnt again of an owner."""
        return self.tombstones.get(ErasedThing(ErasedKind.OWNER, owner).digest(self.key), frozenset())


@dataclass(frozen=True, slots=True)
class Purged:
    """All that a ledger knows was erased, and when."""

    key: bytes = field(repr=False)
    times: Mapping[str, datetime] = field(default_factory=dict)
    """By digest: when it was erased last."""

    def has(self, thing: ErasedThing, made: datetime) -> bool:
        """Whether something that was made at a time was erased since."""
        time = self.times.get(thing.digest(self.key))
        return time is not None and made <= time


def path_erased(note: Note) -> ErasedThing:
    """Return the path of a note as what was erased: a note of that path is not brought back by an import."""
    return ErasedThing(ErasedKind.NOTE, note.owner, "/", note.path)


def version_erased(note: Note, version: NoteVersion) -> ErasedThing:
    """Return a former version of a note, as what was erased while the note stays."""
    return ErasedThing(ErasedKind.NOTE, note.owner, note.id, str(version.revision))


def erased_by(change: ChangeSet) -> Iterator[ErasedThing]:
    """Yield what a change erases for good; nothing of one that only hides."""
    for memory in change.purges:
        yield ErasedThing(ErasedKind.MEMORY, memory.owner, id=memory.id)
    for entity in change.forget_entities:
        yield ErasedThing(ErasedKind.ENTITY, entity.owner, id=entity.id)
    if change.purge_owner is not None:
        yield ErasedThing(ErasedKind.OWNER, change.purge_owner)
    for note in change.notes:
        if note.before is not None and note.after is None:
            yield ErasedThing(ErasedKind.NOTE, note.before.owner, id=note.before.id)
    yield from change.erased
    if change.conversation is not None:
        yield from _of_talk(change.conversation)


def _of_talk(talk: ConversationChange) -> Iterator[ErasedThing]:
    for message in talk.purge_messages:
        yield ErasedThing(ErasedKind.MESSAGE, message.owner, message.thread_id, message.id)
    for thread in talk.purge_threads:
        yield ErasedThing(ErasedKind.THREAD, thread.owner, thread.id)
