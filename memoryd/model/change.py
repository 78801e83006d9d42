"""
What is written together: the change sets of one commit are one transaction, whole or not at all.

A change set is of one owner, or of what belongs to the whole store (grants, keys, marks). The store makes it durable,
then the index learns of it; neither decides anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from memoryd.model.conversation import Message, Session, Thread, WorkingMemory
from memoryd.model.entity import Entity
from memoryd.model.erasure import ErasedThing
from memoryd.model.grant import Grant, TokenKey
from memoryd.model.learnt import Proposal
from memoryd.model.memory import Memory
from memoryd.model.note_change import NoteChange
from memoryd.model.receipt import Receipt
from memoryd.model.scope import Owner
from memoryd.model.work import CounterName, Lease, Run, Work

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


__all__ = [
    "PURGE",
    "ChangeSet",
    "ConversationChange",
    "Embedding",
    "Entry",
    "NewMessage",
    "RecordedRequest",
    "Tombstone",
]


PURGE = "purge"
"""The mark of the last purge: bytes of what went may be in the file until the next compaction."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A memory with what it is found by."""

    memory: Memory
    terms: str = ""
    """The analysed words, separated by spaces."""
    vector: NDArray[np.float32] | None = None
    """The embedding, shape (dimensions,), of length 1. None: it has none, or (in an update) it is unchanged."""
    fingerprint: str = ""
    """What made the vector; vectors of two fingerprints are never compared."""
    tokens: bytes = b""
    windows: bytes = b""
    """The vectors of its tokens and of its later windows, made with the vector: see `model.embedding`."""
    traits: str = ""
    """What ranking reads of its text, as text (`knowledge.text_traits`); empty: it is read at each load."""


@dataclass(frozen=True, slots=True, eq=False)
class Embedding:
    """A vector that a memory gets in place of the one that it has, if any."""

    owner: Owner
    memory_id: str
    vector: NDArray[np.float32]
    """Shape (dimensions,), of length 1."""
    fingerprint: str
    tokens: bytes = b""  # as in Entry
    windows: bytes = b""  # as in Entry
    message_id: str = ""  # of a message: another one that has its place meanwhile takes nothing

    def given_to(self, entry: Entry) -> Entry:
        """Return an entry with these vectors in place of its own."""
        entry = replace(entry, vector=self.vector, fingerprint=self.fingerprint)
        return replace(entry, tokens=self.tokens, windows=self.windows)


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request that was carried out, and what its answer is rendered from when it comes again."""

    owner: Owner
    method: str
    request_id: str
    payload_hash: str
    receipt: Receipt
    create_time: datetime


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A salted digest of what was deleted in one scope; it says nothing of it to anybody without the store's secret."""

    owner: Owner
    digest: bytes


class NewMessage(NamedTuple):
    """A new message, with its analysed words, separated by spaces, and what ranking reads of it, as in Entry."""

    message: Message
    terms: str = ""
    traits: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ConversationChange:
    """What changes of the conversations of one owner."""

    owner: Owner
    messages: tuple[NewMessage, ...] = ()
    threads: tuple[Thread, ...] = ()
    """New ones, and the new state of known ones: its revision is one more than that on which it was decided."""
    threads_before: tuple[Thread, ...] = ()
    """The former state of those whose summary or working memory changes: what of it no longer counts to a quota."""
    sessions: tuple[Session, ...] = ()
    """New ones, and the new state of known ones, of these threads."""
    working_memory: WorkingMemory | None = None
    """That of the owner; an empty one is removed."""
    embeddings: tuple[Embedding, ...] = ()
    """Vectors of messages, by their keys (thread and seq); of one that is gone it changes nothing."""
    embedded_after: int = 0
    """The number past which all messages of the embeddings lie."""
    purge_messages: tuple[Message, ...] = ()
    purge_threads: tuple[Thread, ...] = ()
    """With all their messages and sessions, and with their summaries."""
    purge_all: bool = False
    """All that the owner has; see ChangeSet.purge_owner."""
    purged_ids: tuple[str, ...] = ()
    """The first ids of what goes, for the audit log."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The messages that it adds, and the threads that it changes or erases."""
        threads = dict.fromkeys(thread.id for thread in (*self.threads, *self.purge_threads))
        return (*(new_message.message.id for new_message in self.messages), *threads)

    @property
    def is_found_anew(self) -> bool:
        """Whether it changes what a search of messages finds."""
        return bool(self.messages or self.embeddings or self.purge_messages or self.purge_threads or self.purge_all)

    @property
    def episodes(self) -> ChangeSet:
        """What it changes for an index of messages, which holds them as memories of kind EPISODE."""
        return ChangeSet(
            inserts=tuple(Entry(new_message.message.as_memory(), new_message.terms) for new_message in self.messages),
            purges=(
                *(message.as_memory() for message in self.purge_messages),
                *(place.as_memory() for thread in self.purge_threads if not thread.is_long for place in thread.places),
            ),
            embeddings=self.embeddings,
            rebuild=self.owner if self.purge_all or any(thread.is_long for thread in self.purge_threads) else None,
        )


def _if_same(other: Owner | None, owner: Owner) -> Owner | None:
    return other if other == owner else None


class _Owned(Protocol):
    @property
    def owner(self) -> Owner: ...


_T = TypeVar("_T", bound=_Owned)


def _of(owner: Owner, rows: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(row for row in rows if row.owner == owner)


def _entries_of(owner: Owner, entries: Iterable[Entry]) -> tuple[Entry, ...]:
    return tuple(entry for entry in entries if entry.memory.owner == owner)


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """What changes: memories, the request that asked for it, decisions about people; or what is of the whole store."""

    inserts: tuple[Entry, ...] = ()
    updates: tuple[Entry, ...] = ()
    purges: tuple[Memory, ...] = ()
    request: RecordedRequest | None = None
    forget_requests_before: datetime | None = None
    grants: tuple[Grant, ...] = ()
    """New ones, and the new state of known ones."""
    forget_grants: tuple[str, ...] = ()
    """Ended grants to remove for good, by id."""
    token_keys: tuple[TokenKey, ...] = ()
    """New ones."""
    drop_keys: tuple[str, ...] = ()
    """Keys that count no longer, by id."""
    grants_seen: int | None = None
    """The head of grants and keys on which it was decided; None: it holds whatever was granted or revoked since."""
    entities: tuple[Entity, ...] = ()
    """What was decided of entities by hand: new, and the new state of known ones."""
    forget_entities: tuple[Entity, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()
    """What must not be learnt again."""
    lift: tuple[Tombstone, ...] = ()
    """What may be learnt again."""
    embeddings: tuple[Embedding, ...] = ()
    """New vectors of known memories; of one that is gone it changes nothing. No content: `ids` leaves them out."""
    marks: Mapping[str, datetime] = field(default_factory=dict)
    """When something was done last, or until when, by name: jobs above all."""
    marks_before: Mapping[str, datetime | None] = field(default_factory=dict)
    """What was marked, None: nothing, when it was decided; otherwise it is not committed."""
    leases: tuple[Lease, ...] = ()
    """Taken where `leases_before` names them; else renewed, which only the holder can, or it is not committed."""
    leases_before: Mapping[str, Lease | None] = field(default_factory=dict)
    """What is taken, as it was when it was decided, None: free; otherwise it is not committed."""
    freed_leases: tuple[Lease, ...] = ()
    """Given back; one that someone else holds by now stays theirs."""
    conversation: ConversationChange | None = None
    """What changes of the conversations of one owner; it decides nothing about memories."""
    purge_owner: Owner | None = None
    """The owner whose things all go: memories in every state, people, conversations, what notes of requests name."""
    rebuild: Owner | None = None
    """The owner that so much is erased of that an index is read anew."""
    counters: Mapping[CounterName, int] = field(default_factory=dict)
    """How far work in the background has come, and what a day has used."""
    counters_before: Mapping[CounterName, int | None] = field(default_factory=dict)
    """What was counted, None: nothing yet, when this was decided; otherwise it is not committed."""
    forget_counters: tuple[CounterName, ...] = ()
    message_vectors_of: str = ""
    """The fingerprint whose vectors of messages stay: those of all others go, of all owners. Empty: all stay."""
    work: tuple[Work, ...] = ()
    """How far work has come in threads: never back, whoever writes last. It decides nothing about memories."""
    proposals: tuple[Proposal, ...] = ()
    """What was learnt and waits to be approved. It decides nothing about memories."""
    decided: tuple[Proposal, ...] = ()
    """Proposals that wait no longer."""
    notes: tuple[NoteChange, ...] = ()
    """What changes of notes. It decides nothing about memories."""
    erased: tuple[ErasedThing, ...] = ()
    """What goes for good by what other fields change, of their owners; see `model.erasure.erased_by`."""
    runs: tuple[Run, ...] = ()
    """Runs of jobs: new ones, and the new state of known ones."""
    stop_runs: tuple[str, ...] = ()
    """Runs that are asked to stop, by id; one that has ended stays as it is."""
    based_on: int | None = None
    """The number of the owner's commit on which it was decided; None: it holds whatever was committed since."""

    @property
    def owner(self) -> Owner | None:
        """Whose rows it writes, of one that is of one owner alone; None: those of the whole store."""
        return next(self._owned(), None)

    @property
    def decided_of(self) -> Owner | None:
        """Whose state it changes; None: it only notes a request, or is of the whole store."""
        return next((owner for owner in self._owned(noted=False)), None)

    @property
    def owners(self) -> frozenset[Owner]:
        """Whose rows it writes; none of a change of what belongs to the whole store."""
        return frozenset(self._owned())

    def _owned(self, *, noted: bool = True) -> Iterator[Owner]:
        """Yield the owner of each row; of those of the request and of conversations if `noted`."""
        for entry in (*self.inserts, *self.updates):
            yield entry.memory.owner
        for memory in self.purges:
            yield memory.owner
        for embedding in self.embeddings:
            yield embedding.owner
        for entity in (*self.entities, *self.forget_entities):
            yield entity.owner
        for tombstone in (*self.tombstones, *self.lift):
            yield tombstone.owner
        for owner in (self.rebuild, self.purge_owner):
            if owner is not None:
                yield owner
        if noted:
            yield from self._owned_besides()

    def _owned_besides(self) -> Iterator[Owner]:
        """Yield the owner of each row that decides nothing about memories."""
        one = (self.request, self.conversation)
        for item in (*one, *self.work, *self.proposals, *self.decided):
            if item is not None:
                yield item.owner
        for note in self.notes:
            yield note.owner

    @property
    def of_store(self) -> ChangeSet:
        """What it changes that belongs to no owner."""
        return ChangeSet(
            forget_requests_before=self.forget_requests_before,
            grants=self.grants,
            forget_grants=self.forget_grants,
            token_keys=self.token_keys,
            drop_keys=self.drop_keys,
            marks=self.marks,
            marks_before=self.marks_before,
            leases=self.leases,
            leases_before=self.leases_before,
            freed_leases=self.freed_leases,
            counters=self.counters,
            counters_before=self.counters_before,
            forget_counters=self.forget_counters,
            message_vectors_of=self.message_vectors_of,
            runs=self.runs,
            stop_runs=self.stop_runs,
        )

    @property
    def changes_grants(self) -> bool:
        """Whether it changes who may do what: grants, or the keys of tokens."""
        return bool(self.grants or self.forget_grants or self.token_keys or self.drop_keys)

    @property
    def is_of_one(self) -> bool:
        """Whether it is of one owner alone, or of the whole store alone."""
        owners = self.owners
        return len(owners) + (self.of_store != ChangeSet()) <= 1

    def by_owner(self, based_on: Mapping[Owner, int] = MappingProxyType({})) -> tuple[ChangeSet, ...]:
        """Return it as change sets of one owner each, decided on these commits, and one of the whole store."""
        if self.is_of_one:
            owner = self.owner
            return (self if owner is None else replace(self, based_on=based_on.get(owner)),)
        split = [
            replace(self._of_owner(owner), based_on=based_on.get(owner)) for owner in sorted(self.owners, key=repr)
        ]
        rest = self.of_store
        return tuple(split) if rest == ChangeSet() else (*split, rest)

    def _conversation_of(self, owner: Owner) -> ConversationChange | None:
        talk = self.conversation
        return talk if talk is not None and talk.owner == owner else None

    def _of_owner(self, owner: Owner) -> ChangeSet:
        request = self.request
        return ChangeSet(
            inserts=_entries_of(owner, self.inserts),
            updates=_entries_of(owner, self.updates),
            purges=_of(owner, self.purges),
            embeddings=_of(owner, self.embeddings),
            request=request if request is not None and request.owner == owner else None,
            entities=_of(owner, self.entities),
            forget_entities=_of(owner, self.forget_entities),
            tombstones=_of(owner, self.tombstones),
            lift=_of(owner, self.lift),
            purge_owner=_if_same(self.purge_owner, owner),
            rebuild=_if_same(self.rebuild, owner),
            conversation=self._conversation_of(owner),
            work=_of(owner, self.work),
            proposals=_of(owner, self.proposals),
            decided=_of(owner, self.decided),
            notes=_of(owner, self.notes),
            erased=_of(owner, self.erased),
        )

    @property
    def ids(self) -> tuple[str, ...]:
        """Every memory, grant, entity, message and note that it touches."""
        entries = (*self.inserts, *self.updates)
        memories = (*(entry.memory for entry in entries), *self.purges)
        return (
            *(memory.id for memory in memories),
            *(grant.id for grant in self.grants),
            *self.forget_grants,
            *(entity.id for entity in (*self.entities, *self.forget_entities)),
            *(() if self.conversation is None else self.conversation.ids),
            *(note.after.id for note in self.notes if note.after is not None),
        )

    @property
    def erases(self) -> bool:
        """Whether something is gone for good, so that nothing may be kept that names it."""
        return bool(self.purges or self.forget_entities or self.rebuild or self.purge_owner)

    @property
    def vector_sizes(self) -> frozenset[int]:
        """The dimensions of every vector that it writes."""
        new = (entry.vector for entry in self.inserts if entry.vector is not None)
        more = () if self.conversation is None else self.conversation.embeddings
        return frozenset(map(len, (*new, *(embedding.vector for embedding in (*self.embeddings, *more)))))

    @property
    def purged_ids(self) -> tuple[str, ...]:
        """Every memory, message and note that it erases."""
        more = () if self.conversation is None else self.conversation.purged_ids
        notes = (note.before.id for note in self.notes if note.before is not None and note.after is None)
        return (*(memory.id for memory in self.purges), *more, *notes)
