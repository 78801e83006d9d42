"""
What is noted of a request that was carried out, so that its repetition gets the same answer.

One class for each sort of answer. The ids that it names are listed by `names`, as a store keeps them apart: what is
purged leaves the receipts that name it, and one that names nothing any more goes too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from memoryd.model.memory import Memory, Outcome, ShownMemory
from memoryd.model.open_enum import OpenEnum
from memoryd.model.results import AddResult
from memoryd.model.scope import Owner
from memoryd.model.talk import AppendedMessage

__all__ = [
    "AddReceipt",
    "AppendReceipt",
    "MemoriesReceipt",
    "MemoryRef",
    "Name",
    "Receipt",
    "Rejection",
    "StatementOutcome",
    "without_gone",
]


class Rejection(OpenEnum):
    """Why a statement was not taken."""

    DISABLED = "disabled"
    """Memory is switched off for the agent."""
    SECRET = "secret"  # noqa: S105  no credential, but the name of one
    """It holds a credential."""
    FORGOTTEN = "forgotten"
    """It was deleted, and is not learnt again."""
    QUOTA = "quota"
    """The grant may store no more."""
    FULL = "full"
    """The scope is full, and all of it is protected."""
    CONFIDENCE = "confidence"
    """Who learnt it is not sure enough."""


class MemoryRef(NamedTuple):
    """Which memory, and whose."""

    owner: Owner
    id: str


class Name(NamedTuple):
    """One id that a receipt names: of a memory, or of a message of a thread."""

    place: int
    """Of the item that it belongs to."""
    rank: int
    """0: what the item is about; else a memory that it replaced."""
    owner: Owner
    thread_id: str
    """The thread of a message; empty of a memory."""
    id: str


@dataclass(frozen=True, slots=True)
class StatementOutcome:
    """What became of one statement."""

    outcome: Outcome
    owner: Owner | None = None
    """Whose memories the ids are of."""
    memory_id: str = ""
    """What says it now; empty: it was rejected, or purged since."""
    superseded_ids: tuple[str, ...] = ()
    """What it replaced."""
    untaken_fields: tuple[str, ...] = ()
    """Of a repetition: the fields that were not taken."""
    rejection: Rejection | None = None

    @classmethod
    def rejected(cls, why: Rejection) -> StatementOutcome:
        """Return what became of a statement that was not taken."""
        return cls(Outcome.REJECTED, rejection=why)

    def result(self, memory: ShownMemory | None = None, contested_ids: tuple[str, ...] = ()) -> AddResult:
        """Return it as an answer, with its memory as a caller sees it."""
        return AddResult(
            outcome=self.outcome,
            memory=memory,
            superseded_ids=self.superseded_ids,
            contested_ids=contested_ids,
            rejection="" if self.rejection is None else self.rejection.value,
            untaken_fields=self.untaken_fields,
        )


IsGone = Callable[[Name], bool]


@dataclass(frozen=True, slots=True)
class AddReceipt:
    """Of AddMemory, BatchAddMemories, CorrectMemory and SaveFacts: what became of each statement."""

    statements: tuple[StatementOutcome, ...] = ()

    @property
    def names(self) -> Iterator[Name]:
        """Every id in it."""
        for place, outcome in enumerate(self.statements):
            if outcome.owner is not None:
                for rank, memory_id in enumerate((outcome.memory_id, *outcome.superseded_ids)):
                    if memory_id:
                        yield Name(place, rank, outcome.owner, "", memory_id)

    def without(self, is_gone: IsGone) -> AddReceipt:
        """Return it without some names."""
        gone = {(name.place, name.id) for name in self.names if is_gone(name)}
        return AddReceipt(
            tuple(
                replace(
                    outcome,
                    memory_id="" if (place, outcome.memory_id) in gone else outcome.memory_id,
                    superseded_ids=tuple(known for known in outcome.superseded_ids if (place, known) not in gone),
                )
                for place, outcome in enumerate(self.statements)
            )
        )


@dataclass(frozen=True, slots=True)
class MemoriesReceipt:
    """Of DeleteMemory, DeleteMemories and RestoreMemory: which memories were hidden, or came back."""

    memories: tuple[MemoryRef, ...]

    @classmethod
    def of(cls, memories: Iterable[Memory]) -> MemoriesReceipt:
        """Return the receipt of some memories."""
        return cls(tuple(MemoryRef(memory.owner, memory.id) for memory in memories))

    @property
    def names(self) -> Iterator[Name]:
        """Every id in it."""
        return (Name(place, 0, ref.owner, "", ref.id) for place, ref in enumerate(self.memories))

    def without(self, is_gone: IsGone) -> MemoriesReceipt:
        """Return it without some names."""
        return MemoriesReceipt(tuple(MemoryRef(name.owner, name.id) for name in self.names if not is_gone(name)))


@dataclass(frozen=True, slots=True)
class AppendReceipt:
    """Of AppendMessages: what the messages are called, in the order in which they came; "" where one was erased."""

    owner: Owner
    thread_id: str
    session_id: str
    messages: tuple[AppendedMessage, ...]

    @property
    def names(self) -> Iterator[Name]:
        """Every id in it."""
        for place, message in enumerate(self.messages):
            if message.id:
                yield Name(place, 0, self.owner, self.thread_id, message.id)

    def without(self, is_gone: IsGone) -> AppendReceipt:
        """Return it without some names."""
        gone = {name.place for name in self.names if is_gone(name)}
        left = (replace(message, id="") if n in gone else message for n, message in enumerate(self.messages))
        return replace(self, messages=tuple(left))


def without_gone(receipt: Receipt, is_gone: IsGone) -> Receipt | None:
    """Return a receipt without the names that are gone; None where nothing is left of what it is about."""
    about = [name for name in receipt.names if name.rank == 0]
    if about and all(map(is_gone, about)):
        return None
    return receipt.without(is_gone)


Receipt = AddReceipt | MemoriesReceipt | AppendReceipt
