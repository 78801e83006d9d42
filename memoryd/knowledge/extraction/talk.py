"""The sentences of a message that may be worth keeping, each with what was said before it."""

from __future__ import annotations

from dataclasses import dataclass

from memoryd.knowledge.extraction.clauses import before_question
from memoryd.knowledge.extraction.doubts import takes_back
from memoryd.knowledge.extraction.not_stated import not_stated
from memoryd.knowledge.extraction.orders import names_secret
from memoryd.knowledge.extraction.sentences import own_sentences
from memoryd.knowledge.grammar.fillers import is_filler
from memoryd.knowledge.grammar.pattern import compiled

__all__ = ["Sentence", "sentences_after"]

MOST_BEFORE = 400  # characters of what was said before a sentence
_TO_OBEY = compiled(r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b{to_obey}\b")
"""What a text says that wants to govern whoever reads it."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, what the same person said before it in the same message, and what somebody else said before that."""

    text: str
    own: str = ""
    asked: str = ""

    @property
    def before(self) -> str:
        """All that was said just before it."""
        return f"{self.asked} {self.own}".strip()[-MOST_BEFORE:]


def sentences_after(text: str, asked: str = "") -> list[Sentence]:
    """
    Return the sentences of a message that its sender says for themselves, each with what was said before it.

    `asked` is what somebody else said just before. Left out are fillers, questions, what names a secret, what is taken
    back in the next sentence, and a message that only supposes.
    """
    own, found = "", list[Sentence]()
    last: Sentence | None = None
    for sentence in [] if not_stated(text) else own_sentences(text):
        if takes_back(sentence) and last is not None:
            found.remove(last)
        last = None
        stated = before_question(sentence).strip()
        if stated and not is_filler(stated) and not names_secret(stated) and not _TO_OBEY.search(stated):
            last = Sentence(stated, own, asked[-MOST_BEFORE:])
            found.append(last)
        own = f"{own} {sentence}"[-MOST_BEFORE:].strip()
    return found
