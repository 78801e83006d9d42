"""The extractor `rules` with the keeping reader: what no rule reads, the reader may find worth keeping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memoryd.embedding.base import ModelRefused
from memoryd.embedding.readers.keeping import NOTHING, KeepingReader, Worth
from memoryd.embedding.readers.thresholds import KEPT
from memoryd.knowledge.learning.reading import MOST_A_MESSAGE
from memoryd.knowledge.learning.talk import sentences_after
from memoryd.knowledge.learning.worth import Said, fact_of, says_most_of
from memoryd.learning.extractor import Exchange, Learnt
from memoryd.learning.rules import RulesExtractor, before_of, is_spoken, played_of
from memoryd.model.conversation import Message
from memoryd.model.recalled_text import without_recalled
from memoryd.turns import in_turns

__all__ = ["PlainTalkExtractor"]


@dataclass(frozen=True, slots=True)
class _Sentence:
    message: Message
    asked: Message | None
    before: str
    text: str


class PlainTalkExtractor:
    """Reads what users say by rules, and by a reader what no rule reads."""

    name = "rules"

    def __init__(self, rules: RulesExtractor, reader: KeepingReader, tell: Callable[[str], None]) -> None:
        """Take both, and whom to tell once where the reader cannot be loaded: then the rules go on alone."""
        self._rules, self._reader, self._tell = rules, reader, tell
        self.fault = ""

    async def extract(self, exchange: Exchange) -> list[Learnt]:
        """Return what users say in new messages, in their order."""
        found = await self._rules.extract(exchange)
        known: dict[str, list[str]] = {}
        for one in found:
            known.setdefault(one.message.id, []).append(one.content)
        sentences = [
            one
            for one in await self._sentences(exchange)
            if not any(says_most_of(content, one.text) for content in known.get(one.message.id, ()))
        ]
        for sentence, worth in zip(sentences, await self._worth(sentences), strict=True):
            of_message = known.setdefault(sentence.message.id, [])
            if worth.kept < KEPT or len(of_message) >= MOST_A_MESSAGE:
                continue
            said = Said(sentence.text, worth.label, worth.kept)
            asked = "" if sentence.asked is None else without_recalled(sentence.asked.content)
            fact = fact_of(said, sentence.before, asked, self._rules.day_of(sentence.message))
            if fact is not None and fact.content not in of_message:
                of_message.append(fact.content)
                found.append(self._rules.learnt(fact, sentence.message, sentence.asked))
        return sorted(found, key=lambda one: one.message.seq)

    def close(self) -> None:
        """End the reader."""
        self._reader.close()

    async def _worth(self, sentences: Sequence[_Sentence]) -> Sequence[Worth]:
        if self.fault or not sentences:
            return [NOTHING] * len(sentences)
        try:
            return await self._reader.read([(one.before, one.text) for one in sentences])
        except ModelRefused as error:
            self.fault = str(error)
            self._tell(self.fault)
            return [NOTHING] * len(sentences)

    async def _sentences(self, exchange: Exchange) -> list[_Sentence]:
        found: list[_Sentence] = []
        played = await played_of(exchange.messages)
        async for n in in_turns(range(exchange.first, len(exchange.messages))):
            message = exchange.messages[n]
            if is_spoken(message) and n not in played:
                asked = before_of(exchange.messages, n)
                before = "" if asked is None else without_recalled(asked.content)
                said = sentences_after(without_recalled(message.content), before)
                found += [_Sentence(message, asked, *one) for one in said]
        return found
