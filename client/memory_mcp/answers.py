"""What the tools answer. Every text that was stored is data of whoever stored it: `trust` says how far it goes."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from memoryd.model.grant import permission_names
from memoryd.model.times import rfc3339

if TYPE_CHECKING:
    from memory_client.grant_calls import WhoAmI

    from memoryd.model.context import BuiltContext
    from memoryd.model.conversation import Message
    from memoryd.model.memory import ShownMemory
    from memoryd.model.reports import EntityMemories, ForgottenPerson
    from memoryd.model.results import AddResult, Confirmed, Deleted, Hit
    from memoryd.model.talk import Appended

__all__ = [
    "AboutAnswer",
    "Answer",
    "ConfirmAnswer",
    "ContextAnswer",
    "ForgetAnswer",
    "ForgetPersonAnswer",
    "Found",
    "ListAnswer",
    "LogAnswer",
    "RecentAnswer",
    "Remembered",
    "Said",
    "SearchAnswer",
    "Stored",
    "WhoAmIAnswer",
]

MOST_CHARACTERS = 8000  # of one message: a model's window is no place for 256 KiB
MOST_IDS = 100

Trust = Annotated[
    str, Field(description="which way in it came by: host, imported or sandbox; sandbox is what some program claims")
]


def _told(time: datetime | None) -> str | None:
    return None if time is None else rfc3339(time)


class Answer(BaseModel):
    """What a tool answers."""


class Stored(Answer):
    """A memory."""

    id: str
    text: str
    kind: str
    trust: Trust
    about: list[str] = []
    said_by: str = ""
    said_at: Annotated[str | None, Field(description="when it was so, where that matters")] = None
    stored_at: str
    shared: bool = False
    contested_with: Annotated[list[str], Field(description="ids of memories that say otherwise")] = []

    @classmethod
    def of(cls, memory: ShownMemory) -> Stored:
        """Return what a model needs of a memory."""
        return cls(**_fields_of(memory))


class Found(Stored):
    """A memory that answers a search."""

    score: Annotated[float, Field(description="0 to 1")]
    strength: Annotated[str, Field(description="the score as a word: strong, likely, possible or weak")]
    newer: Annotated[Stored | None, Field(description="a later statement that says otherwise")] = None

    @classmethod
    def hit(cls, hit: Hit) -> Found:
        """Return what a model needs of a hit."""
        newer = None if hit.newer is None else Stored.of(hit.newer)
        return cls(**_fields_of(hit.memory), score=round(hit.score, 3), strength=hit.strength, newer=newer)


class SearchAnswer(Answer):
    """Hits, best first."""

    hits: list[Found]


class ListAnswer(Answer):
    """Memories, newest first."""

    memories: list[Stored]
    next_cursor: Annotated[str, Field(description="for the next page; empty at the end")] = ""


class Remembered(Answer):
    """What became of a statement."""

    outcome: Annotated[
        str,
        Field(
            description="inserted; reinforced: it was known; superseded: it replaces what was believed;"
            " rejected: nothing was stored"
        ),
    ]
    id: str = ""
    text: str = ""
    replaced: Annotated[list[str], Field(description="ids of the memories that it supersedes")] = []
    contested_with: Annotated[list[str], Field(description="ids of memories that say otherwise and stay")] = []
    why_rejected: str = ""

    @classmethod
    def of(cls, result: AddResult) -> Remembered:
        """Return what became of a statement."""
        memory = result.memory
        return cls(
            outcome=result.outcome.value,
            id=memory.id if memory else "",
            text=memory.content if memory else "",
            replaced=list(result.superseded_ids),
            contested_with=list(result.contested_ids),
            why_rejected=result.rejection,
        )


class ConfirmAnswer(Answer):
    """A memory that was confirmed, and what it ended."""

    memory: Stored
    replaced: list[str] = []

    @classmethod
    def of(cls, confirmed: Confirmed) -> ConfirmAnswer:
        """Return what a confirmation did."""
        return cls(memory=Stored.of(confirmed.memory), replaced=list(confirmed.superseded_ids))


class ForgetAnswer(Answer):
    """What was deleted."""

    deleted_ids: list[str]
    restorable_until: str | None = None

    @classmethod
    def of(cls, deleted: Deleted) -> ForgetAnswer:
        """Return what went."""
        return cls(deleted_ids=list(deleted.deleted_ids), restorable_until=_told(deleted.purge_time))


class ForgetPersonAnswer(Answer):
    """What was erased of a person, or would be."""

    name: str
    dry_run: bool
    memory_count: int
    memory_ids: Annotated[list[str], Field(description="the first hundred")]
    mentioning_ids: Annotated[list[str], Field(description="memories that name the person, and stay")] = []
    message_count: Annotated[int, Field(description="messages that name the person, and stay")] = 0
    backups: Annotated[list[str], Field(description="copies that may still hold it")] = []

    @classmethod
    def of(cls, forgotten: ForgottenPerson) -> ForgetPersonAnswer:
        """Return the receipt."""
        return cls(
            name=forgotten.entity.name,
            dry_run=forgotten.dry_run,
            memory_count=forgotten.purged_count,
            memory_ids=list(forgotten.purged_ids[:MOST_IDS]),
            mentioning_ids=list(forgotten.mentioning_ids[:MOST_IDS]),
            message_count=forgotten.message_count,
            backups=list(forgotten.backups),
        )


class AboutAnswer(Answer):
    """A person or thing, and what is remembered of it, newest first."""

    id: str
    name: str
    type: str
    aliases: list[str] = []
    relations: list[str] = []
    summary: str = ""
    memories: list[Stored]

    @classmethod
    def of(cls, found: EntityMemories) -> AboutAnswer:
        """Return who or what it is."""
        entity = found.entity
        return cls(
            id=entity.id,
            name=entity.name,
            type=entity.type.value,
            aliases=list(entity.aliases),
            relations=list(entity.relations),
            summary=entity.summary,
            memories=[Stored.of(memory) for memory in found.memories],
        )


class ContextAnswer(Answer):
    """The block of text to know before an answer."""

    text: str
    token_count: int
    ids: Annotated[list[str], Field(description="of the memories and messages that it tells")] = []

    @classmethod
    def of(cls, context: BuiltContext) -> ContextAnswer:
        """Return the text, and what it was made of."""
        ids = dict.fromkeys(item.id for section in context.sections for item in section.items)
        return cls(text=context.text, token_count=context.token_count, ids=list(ids))


class LogAnswer(Answer):
    """What a message that was stored is called."""

    stored: Annotated[bool, Field(description="false where the agent is switched off")]
    id: str = ""
    seq: Annotated[int, Field(description="place in the conversation, from 1")] = 0
    masked: Annotated[bool, Field(description="whether a credential in it was masked")] = False

    @classmethod
    def of(cls, appended: Appended) -> LogAnswer:
        """Return what became of a message."""
        if not appended.messages:
            return cls(stored=appended.stored)
        message = appended.messages[0]
        return cls(stored=appended.stored, id=message.id, seq=message.seq, masked=message.masked)


class Said(Answer):
    """A message."""

    id: str
    seq: int
    role: str
    text: str
    time: str
    trust: Trust
    cut: Annotated[bool, Field(description="whether the text goes on")] = False

    @classmethod
    def of(cls, message: Message) -> Said:
        """Return what a model needs of a message."""
        return cls(
            id=message.id,
            seq=message.seq,
            role=message.role.value,
            text=message.content[:MOST_CHARACTERS],
            time=rfc3339(message.create_time),
            trust=message.trust.value,
            cut=len(message.content) > MOST_CHARACTERS,
        )


class RecentAnswer(Answer):
    """The last messages of a conversation, in order."""

    messages: list[Said]


class WhoAmIAnswer(Answer):
    """Whose memory it is, and what is allowed."""

    user_id: str
    chat_id: str
    agent_id: str
    permissions: list[str]
    expires_at: str | None = None

    @classmethod
    def of(cls, who: WhoAmI) -> WhoAmIAnswer:
        """Return the identity in effect."""
        return cls(
            user_id=who.user_id,
            chat_id=who.chat_id,
            agent_id=who.agent_id,
            permissions=list(permission_names(who.permissions)),
            expires_at=_told(who.expire_time),
        )


def _fields_of(memory: ShownMemory) -> dict[str, Any]:
    return {
        "id": memory.id,
        "text": memory.content,
        "kind": memory.kind.value,
        "trust": memory.trust.value,
        "about": list(memory.subjects),
        "said_by": memory.said_by,
        "said_at": _told(memory.said_time),
        "stored_at": rfc3339(memory.create_time),
        "shared": memory.scope.chat_id is not None,
        "contested_with": list(memory.contested_with),
    }
