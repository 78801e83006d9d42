"""The extractor `rules`: no model, no network; what it learns stands in the words that were said."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, tzinfo

from memoryd.knowledge.extraction.facts import Fact, facts_in
from memoryd.knowledge.extraction.sentences import begins_play, ends_play
from memoryd.knowledge.grammar.times import has_relative_time
from memoryd.learning.extractor import Exchange, Learnt
from memoryd.model.conversation import Message, Role
from memoryd.model.memory import Kind
from memoryd.model.recalled_text import without_recalled
from memoryd.turns import in_turns

__all__ = ["PLAY_MESSAGES", "RulesExtractor", "Spoken", "spoken_in"]

MOST_LOOKED_AT = 4000  # characters of a message, by which a role play is told
PLAY_MESSAGES = 20  # for so many a role play goes on that no one ends

NOT_SPOKEN = frozenset(
    [
        "tool",
        "system",
        "web",
        "file",
        "document",
        "email",
        "mail",
        "webhook",
        "cron",
        "heartbeat",
        "wakeup",
        "rss",
        "log",
    ]
)
"""Sources of messages that no user typed or spoke."""


class RulesExtractor:
    """Reads what users say of themselves, by rules."""

    name = "rules"

    def __init__(self, zone: tzinfo | None = None) -> None:
        """Take the time zone of days (None: the system's)."""
        self._zone = zone

    async def extract(self, exchange: Exchange) -> list[Learnt]:
        """
        Return what users say of themselves in new messages.

        It is read on the event loop, in turns: a thread would take Python from the calls for 5 ms at a time.
        """
        return await self.learnt_of(await spoken_in(exchange))

    async def learnt_of(self, spoken: Sequence[Spoken]) -> list[Learnt]:
        """Return what is said in messages that users spoke, each with the one that it may answer."""
        facts: list[Learnt] = []
        async for message, before in in_turns(spoken):
            facts += self._of_message(message, before)
        return facts

    def _of_message(self, message: Message, before: Message | None) -> list[Learnt]:
        asked = "" if before is None else without_recalled(before.content)
        facts = facts_in(without_recalled(message.content), today=self.day_of(message), before=asked)
        return [self.learnt(fact, message, before) for fact in facts]

    def day_of(self, message: Message) -> date:
        """Return the day on which a message was said, where its speaker is."""
        return message.create_time.astimezone(self._zone).date()

    def learnt(self, fact: Fact, message: Message, before: Message | None) -> Learnt:
        """Return a fact of a message, which may answer the one before it, as what is learnt."""
        content, event_time = fact.content, None
        if fact.day is not None and fact.kind is Kind.EVENT:
            event_time = datetime.combine(fact.day, time(), tzinfo=self._zone).astimezone(UTC)
            if fact.is_certain_day and has_relative_time(content):
                content = f"{content} ({_written(fact.day)})"
        return Learnt(
            content=content,
            message=message,
            kind=fact.kind,
            category=fact.category,
            confidence=fact.confidence,
            event_time=event_time,
            lasts=fact.lasts,
            also=(before,) if fact.needs_question and before is not None else (),
        )


def _written(day: date) -> str:
    return f"{day:%Y-%m-%d}"


Spoken = tuple[Message, Message | None]
"""A message that a user spoke, and what someone else said just before, which it may answer."""


async def spoken_in(exchange: Exchange) -> list[Spoken]:
    """Return the new messages of an exchange that users spoke, and in no role play of theirs."""
    messages = exchange.messages
    played = await _played_of(messages)
    new = range(exchange.first, len(messages))
    return [(messages[n], _before_of(messages, n)) for n in new if _is_spoken(messages[n]) and n not in played]


async def _played_of(messages: Sequence[Message]) -> set[int]:
    """
    Return the places of messages in which someone goes on with a role play that they began: nothing there is so.

    It ends when they say so, with the session, or after PLAY_MESSAGES; no one's play is another's.
    """
    played: set[int] = set()
    begun: dict[object, tuple[int, str]] = {}
    async for n in in_turns(range(len(messages))):
        message = messages[n]
        who = (message.name, message.author, message.grant_id)
        if message.role is not Role.USER:
            continue
        since, session = begun.get(who, (0, ""))
        text = without_recalled(message.content[:MOST_LOOKED_AT])
        goes_on = who in begun and n - since <= PLAY_MESSAGES and session == message.session_id
        if not goes_on or ends_play(text):
            begun.pop(who, None)
        else:
            played.add(n)
        if begins_play(text):
            begun[who] = n, message.session_id
    return played


def _is_spoken(message: Message) -> bool:
    """Whether a user said a message: nothing of a tool, a file or the assistant is anybody's statement."""
    return message.role is Role.USER and message.input_source.lower() not in NOT_SPOKEN


def _before_of(messages: Sequence[Message], n: int) -> Message | None:
    """
    Return what someone else said just before a message, if the host says so, or the same user.

    Else whoever is in a chat would choose what another's answer says: "Do you smoke?", "Yes".
    """
    if not n:
        return None
    before, message = messages[n - 1], messages[n]
    spoken = before.role in {Role.USER, Role.ASSISTANT} and not before.tool_calls
    may_ask = not message.trust.outranks(before.trust) and (not before.trust.is_sandbox or _is_of_one(before, message))
    return before if spoken and may_ask and (before.role, before.name) != (message.role, message.name) else None


def _is_of_one(message: Message, other: Message) -> bool:
    """Whether two messages came through one grant, or grants of one user."""
    return message.grant_id == other.grant_id or bool(message.author and message.author == other.author)
