"""The extractor `rules` with the keeping reader: what no rule reads, the reader may find worth keeping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memoryd.embedding.base import ModelRefused
from memoryd.embedding.readers.keeping import NOTHING, KeepingReader, Worth
from memoryd.embedding.readers.texts import Pair
from memoryd.embedding.readers.thresholds import CLEAR, KEPT
from memoryd.knowledge.extraction.facts import MOST_A_MESSAGE, Fact
from memoryd.knowledge.extraction.talk import Sentence, sentences_after
from memoryd.knowledge.extraction.worth import RatedSentence, facts_of, is_answer, says_most_of
from memoryd.learning.extractor import Exchange, Learnt
from memoryd.learning.rules import RulesExtractor, Spoken, spoken_in
from memoryd.model.conversation import Message
from memoryd.model.recalled_text import without_recalled
from memoryd.turns import in_turns

__all__ = ["PlainTalkExtractor"]


@dataclass(frozen=True, slots=True)
class _Utterance:
    """A sentence with its message, and the message of someone else before that."""

    sentence: Sentence
    message: Message
    asked: Message | None


class PlainTalkExtractor:
    """Reads what users say by rules, and by a reader what no rule reads."""

    name = "rules"

    def __init__(self, rules: RulesExtractor, reader: KeepingReader, tell: Callable[[str], None]) -> None:
        """Take both, and who to tell once where the reader cannot be loaded: then the rules go on alone."""
        self._rules, self._reader, self._tell = rules, reader, tell
        self.fault = ""

    async def extract(self, exchange: Exchange) -> list[Learnt]:
        """Return what users say in new messages, in their order."""
        messages = await spoken_in(exchange)
        facts = await self._rules.learnt_of(messages)
        known: dict[str, list[str]] = {}
        answered = {learnt.message.id for learnt in facts if learnt.also}
        for learnt in facts:
            known.setdefault(learnt.message.id, []).append(learnt.content)
        spoken = [
            utterance
            for utterance in await self._sentences(messages)
            if (utterance.sentence.own or utterance.message.id not in answered)
            and not any(
                says_most_of(content, utterance.sentence.text) for content in known.get(utterance.message.id, ())
            )
        ]
        for spoken_here, fact in await self._facts(spoken):
            of_message = known.setdefault(spoken_here.message.id, [])
            if fact.content not in of_message and len(of_message) < MOST_A_MESSAGE:
                of_message.append(fact.content)
                facts.append(self._rules.learnt(fact, spoken_here.message, spoken_here.asked))
        return sorted(facts, key=lambda fact: fact.message.seq)

    async def _facts(self, spoken: Sequence[_Utterance]) -> list[tuple[_Utterance, Fact]]:
        """Return of what is worth keeping how it says it by itself, as far as it is understood so."""
        worth = await self._worth([(utterance.sentence.before, utterance.sentence.text) for utterance in spoken])
        ways = [
            facts_of(RatedSentence(utterance.sentence, of.label, of.kept), self._rules.day_of(utterance.message))
            if of.kept >= KEPT
            else []
            for utterance, of in zip(spoken, worth, strict=True)
        ]
        stated = [some for utterance, some in zip(spoken, ways, strict=True) if not is_answer(utterance.sentence)]
        alone = [fact.content for some in stated for fact in some]
        worth_alone = dict(zip(alone, await self._worth([("", content) for content in alone]), strict=True))
        chosen = [
            next(
                (fact for fact in some if is_answer(utterance.sentence) or worth_alone[fact.content].clear >= CLEAR),
                None,
            )
            for utterance, some in zip(spoken, ways, strict=True)
        ]
        return [(utterance, fact) for utterance, fact in zip(spoken, chosen, strict=True) if fact is not None]

    def close(self) -> None:
        """End the reader."""
        self._reader.close()

    async def _worth(self, said: Sequence[Pair]) -> Sequence[Worth]:
        if self.fault or not said:
            return [NOTHING] * len(said)
        try:
            return await self._reader.read(said)
        except ModelRefused as error:
            self.fault = str(error)
        except Exception as error:  # noqa: BLE001  whatever a model does, the rules go on
            self.fault = f"the keeping reader ended with {type(error).__name__}"
        self._tell(self.fault)
        return [NOTHING] * len(said)

    async def _sentences(self, messages: Sequence[Spoken]) -> list[_Utterance]:
        utterances: list[_Utterance] = []
        async for message, asked in in_turns(messages):
            before = "" if asked is None else without_recalled(asked.content)
            sentences = sentences_after(without_recalled(message.content), before)
            utterances += [_Utterance(sentence, message, asked) for sentence in sentences]
        return utterances
