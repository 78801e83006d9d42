"""
The extractor `openai`: a language model reads what users state, besides the rules.

It gets the sentences that the rules would read, and nothing else; each message is a line of JSON, so that no text can
pose as another message or as the task. What it says is taken as far as a message of a user bears it.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memoryd.errors import Unavailable
from memoryd.knowledge.extraction.facts import CATEGORIES
from memoryd.knowledge.extraction.sentences import own_sentences
from memoryd.knowledge.extraction.talk import stated_sentences
from memoryd.learning.backoff import backoff_s
from memoryd.learning.budget import BudgetSpent
from memoryd.learning.extractor import Exchange, Learnt, NotNow
from memoryd.learning.grounding import adds_names_or_figures, borne, contradicts, turns
from memoryd.learning.language_model import PROBE, LanguageModel
from memoryd.learning.rules import spoken_in
from memoryd.llm.endpoint import ChatUnavailable
from memoryd.llm.replies import SaidInReply, facts_in_reply, is_json
from memoryd.model.conversation import Message, Role
from memoryd.model.recalled_text import without_recalled

__all__ = ["PROMPT", "LlmExtractor", "ReplyRefused"]

PROMPT = "extraction.v1"
MOST_CONFIDENCE = 0.9  # below that of an order, which is sure
UNSAID_CONFIDENCE = 0.75
LEAST_BORNE = 0.6  # share of a fact's words that its message must have
LEAST_WORDS = 3
MOST_PROSE = 5  # replies in a row that are neither JSON nor borne by a message
FIRST_PAUSE_S, LONGEST_PAUSE_S = 60.0, 3600.0  # after them
LETTERS_A_WORD = 2  # of a script without spaces
_FIRST_PERSON = re.compile(r"(?:i|i'm|i’m|my|we|our)\b", re.IGNORECASE)
MOST_OF_CONTEXT = 300  # characters of what the assistant said last before a message
MOST_CHARACTERS = 400  # of a fact
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "facts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "fact": {"type": "string"},
                    "message": {"type": "integer"},
                    "category": {"type": "string", "enum": list(CATEGORIES)},
                    "confidence": {"type": "number"},
                },
                "required": ["fact", "message", "category", "confidence"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["facts"],
    "additionalProperties": False,
}


class ReplyRefused(Unavailable):
    """A model's reply cannot be read; the same question may get the same reply again."""


class LlmExtractor:
    """Has a model read what users state in new messages."""

    name = "openai"

    def __init__(self, model: LanguageModel) -> None:
        """Take the model."""
        self._model = model
        self._prose = 0

    async def extract(self, exchange: Exchange) -> list[Learnt]:
        """Return what the model says of new messages, as far as they bear it. Raises what keeps the model from it."""
        facts: list[Learnt] = []
        for shown in _by_speaker(await _shown(exchange)):
            facts += await self._of_one(shown)
        unique = {(fact.content.casefold(), fact.message.id): fact for fact in facts}
        return sorted(unique.values(), key=lambda fact: fact.message.seq)

    async def _of_one(self, shown: Sequence[_ShownMessage]) -> list[Learnt]:
        """Return what the model says of the messages of one speaker, who came through one door."""
        try:
            reply = await self._model.ask(PROMPT, "\n".join(_lines(shown)), SCHEMA)
        except BudgetSpent as error:
            raise NotNow(error.message, for_s=error.for_s) from None
        except ChatUnavailable as error:
            raise NotNow(error.message, for_s=error.retry_after_s) from None
        facts = facts_in_reply(reply.text)
        if facts is None:
            raise ReplyRefused("the language model sent a reply that says nothing")
        learnt_facts = [learnt for fact in facts if (learnt := self._learnt(fact, shown)) is not None]
        await self._look_at_form(reply.text, is_empty=not facts, is_borne=bool(learnt_facts))
        return learnt_facts

    async def _look_at_form(self, text: str, *, is_empty: bool, is_borne: bool) -> None:
        """
        Count the replies in a row that are prose which no message bears; NotNow when they are too many.

        One of them may be a model's way of saying that there is nothing, or someone's text that talks it into prose.
        Where it answers a harmless question so too, it is an endpoint that says something else, such as a page for
        logging in: what it is asked then is not read.
        """
        if is_empty or is_borne or is_json(text):
            self._prose = 0
            return
        self._prose += 1
        if self._prose >= MOST_PROSE:
            with contextlib.suppress(Unavailable):
                probe = await self._model.ask(PROMPT, PROBE, SCHEMA)
                if is_json(probe.text):
                    self._prose = 0
                    return
            pause_s = backoff_s(self._prose - MOST_PROSE + 1, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S)
            raise NotNow("the language model answers with prose that no message bears", for_s=pause_s)

    def _learnt(self, statement: SaidInReply, shown: Sequence[_ShownMessage]) -> Learnt | None:
        """Return what a fact of the reply teaches; None where no message bears it."""
        if len(statement.fact) > MOST_CHARACTERS or not _is_statement(statement.fact):
            return None
        bearer = _bearer(statement, shown)
        if bearer is None or contradicts(statement.fact, bearer.sentences) or turns(statement.fact, bearer.said):
            return None
        if adds_names_or_figures(statement.fact, f"{bearer.message.name} {bearer.said} {bearer.asked}"):
            return None
        return Learnt(
            content=statement.fact,
            message=bearer.message,
            category=statement.category if statement.category in CATEGORIES else "other",
            confidence=min(
                MOST_CONFIDENCE, UNSAID_CONFIDENCE if statement.confidence is None else statement.confidence
            ),
            also=() if bearer.before is None or borne(statement.fact, bearer.said) >= LEAST_BORNE else (bearer.before,),
            metadata={"extractor": f"{self.name} {self._model.model}"[:200], "prompt": PROMPT},
        )


@dataclass(frozen=True, slots=True)
class _ShownMessage:
    """What the model is shown of a message."""

    message: Message
    sentences: Sequence[str]
    asked: str = ""
    """What the assistant said just before it."""
    before: Message | None = None
    """The message in which it did."""

    @property
    def said(self) -> str:
        """The sentences."""
        return " ".join(self.sentences)


async def _shown(exchange: Exchange) -> list[_ShownMessage]:
    """Return the new messages in which users state something."""
    shown = []
    for message, before in await spoken_in(exchange):
        sentences = stated_sentences(without_recalled(message.content))
        if sentences:
            asked = "" if before is None else _asked(before)
            shown.append(_ShownMessage(message, sentences, asked, before if asked else None))
    return shown


def _by_speaker(shown: Sequence[_ShownMessage]) -> Iterator[list[_ShownMessage]]:
    """Yield the messages of one speaker, door and trust at a time: none may tell the model what another has said."""
    parts: dict[object, list[_ShownMessage]] = {}
    for one in shown:
        message = one.message
        parts.setdefault((message.trust, message.grant_id, message.speaker, message.author), []).append(one)
    yield from parts.values()


def _asked(before: Message) -> str:
    """Return the end of what the assistant said; empty for what anybody else did."""
    if before.role is not Role.ASSISTANT:
        return ""
    return " ".join(own_sentences(without_recalled(before.content)))[-MOST_OF_CONTEXT:]


def _lines(shown: Sequence[_ShownMessage]) -> Iterator[str]:
    """Yield the lines of JSON that the model reads, those of users numbered from 1."""
    for n, message in enumerate(shown, 1):
        if message.asked:
            yield json.dumps({"n": None, "speaker": "assistant", "text": message.asked}, ensure_ascii=False)
        yield json.dumps({"n": n, "speaker": message.message.name or "user", "text": message.said}, ensure_ascii=False)


def _is_statement(fact: str) -> bool:
    """Whether a fact can be understood by itself: "No milk" cannot."""
    words = len(fact.split()) if fact.isascii() else max(len(fact.split()), len(fact) // LETTERS_A_WORD)
    return words >= LEAST_WORDS or bool(_FIRST_PERSON.match(fact))


def _bearer(statement: SaidInReply, shown: Sequence[_ShownMessage]) -> _ShownMessage | None:
    """Return which message bears a fact: the one that it names, else the one with most of its words."""

    def share(message: _ShownMessage) -> float:
        own = borne(statement.fact, message.said)
        return max(own, borne(statement.fact, f"{message.said} {message.asked}")) if own else 0.0

    if statement.message is None:
        best = max(shown, key=share)
    elif 1 <= statement.message <= len(shown):
        best = shown[statement.message - 1]
    else:
        return None
    return best if share(best) >= LEAST_BORNE else None
