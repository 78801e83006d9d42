"""The extractor `rules` with the keeping reader: what no rule reads, the reader may find worth keeping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memoryd.embedding.base import ModelRefused
from memoryd.embedding.readers.keeping import NOTHING, KeepingReader, Worth
from memoryd.embedding.readers.thresholds import KEPT
from memoryd.knowledge.learning.reading import MOST_A_MESSAGE
from memoryd.knowledge.learning.talk import Sentence, sentences_after
from memoryd.knowledge.learning.worth import Said, fact_of, says_most_of
from memoryd.learning.extractor import Exchange, Learnt
from memoryd.learning.rules import RulesExtractor, Spoken, spoken_in
from memoryd.model.conversation import Message
from memoryd.model.recalled_text import without_recalled
from memoryd.turns import in_turns

__all__ = ["PlainTalkExtractor"]


@dataclass(frozen=True, slots=True)
class _Told:
    """A sentence with its message, and the message of somebody else before that."""

    sentence: Sentence
    message: Message
    asked: Message | None


class PlainTalkExtractor:
    """Reads what users say by rules, and by a reader what no rule reads."""

    name = "rules"

    def __init__(self, rules: RulesExtractor, reader: KeepingReader, tell: Callable[[str], None]) -> None:
        """Take both, and whom to tell once where the reader cannot be loaded: then the rules go on alone."""
        self._rules, self._reader, self._tell = rules, reader, tell
        self.fault = ""

    async def extract(self, exchange: Exchange) -> list[Learnt]:
        """Return what users say in new messages, in their order."""
        messages = await spoken_in(exchange)
        found = await self._rules.learnt_of(messages)
        known: dict[str, list[str]] = {}
        answered = {learnt.message.id for learnt in found if learnt.also}
        for learnt in found:
            known.setdefault(learnt.message.id, []).append(learnt.content)
        spoken = [
            one
            for one in await self._sentences(messages)
            if (one.sentence.own or one.message.id not in answered)
            and not any(says_most_of(content, one.sentence.text) for content in known.get(one.message.id, ()))
        ]
        for one, worth in zip(spoken, await self._worth(spoken), strict=True):
            of_message = known.setdefault(one.message.id, [])
            if not worth.kept >= KEPT or len(of_message) >= MOST_A_MESSAGE:
                continue
            fact = fact_of(Said(one.sentence, worth.label, worth.kept), self._rules.day_of(one.message))
            if fact is not None and fact.content not in of_message:
                of_message.append(fact.content)
                found.append(self._rules.learnt(fact, one.message, one.asked))
        return sorted(found, key=lambda one: one.message.seq)

    def close(self) -> None:
        """End the reader."""
        self._reader.close()

    async def _worth(self, spoken: Sequence[_Told]) -> Sequence[Worth]:
        if self.fault or not spoken:
            return [NOTHING] * len(spoken)
        try:
            return await self._reader.read([(one.sentence.before, one.sentence.text) for one in spoken])
        except ModelRefused as error:
            self.fault = str(error)
        except Exception as error:  # noqa: BLE001  whatever a model does, the rules go on
            self.fault = f"the keeping reader ended with {type(error).__name__}"
        self._tell(self.fault)
        return [NOTHING] * len(spoken)

    async def _sentences(self, messages: Sequence[Spoken]) -> list[_Told]:
        found: list[_Told] = []
        async for message, asked in in_turns(messages):
            before = "" if asked is None else without_recalled(asked.content)
            said = sentences_after(without_recalled(message.content), before)
            found += [_Told(one, message, asked) for one in said]
        return found
