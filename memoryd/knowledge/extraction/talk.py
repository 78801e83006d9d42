"""The sentences of a message that may be worth keeping: what states something, each with what was said before it."""

from __future__ import annotations

from dataclasses import dataclass

from memoryd.knowledge.extraction.clauses import (
    before_question,
    is_doubtful,
    is_of_now,
    is_question,
    takes_back,
    written_out,
)
from memoryd.knowledge.extraction.orders import names_secret, ordered
from memoryd.knowledge.extraction.sentences import not_stated, own_sentences
from memoryd.knowledge.grammar.pattern import compiled
from memoryd.knowledge.grammar.sentences import is_filler

__all__ = ["Sentence", "sentences_after", "stated_sentences"]


def stated_sentences(text: str) -> list[str]:
    """
    Return the sentences that someone states for themselves, in order.

    Left out is what the rules never learn from either: code, quotes, pasted text, tasks, role play, questions, wishes,
    guesses, jokes, what others are said to say, what is so for now only, and what holds a password.
    """
    return [line for sentence in own_sentences(text) if (line := _stated(sentence))]


def _stated(sentence: str) -> str:
    if names_secret(sentence):
        return ""
    if ordered(sentence) is not None:
        return sentence
    text = before_question(sentence).strip()
    if not text or is_filler(text) or is_question(text):
        return ""
    written = written_out(text)
    return "" if is_doubtful(written) or is_of_now(written) else text


MOST_BEFORE = 400  # characters of what was said before a sentence
_TO_OBEY = compiled(r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b{to_obey}\b")
"""What a text says that wants to govern whoever reads it."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, what the same person said before it in the same message, and what someone else said before that."""

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

    `asked` is what someone else said just before. Left out are fillers, questions, what names a secret, what is taken
    back in the next sentence, and a message that only supposes.
    """
    own, sentences = "", list[Sentence]()
    last: Sentence | None = None
    for sentence in [] if not_stated(text) else own_sentences(text):
        if takes_back(sentence) and last is not None:
            sentences.remove(last)
        last = None
        stated = before_question(sentence).strip()
        if stated and not is_filler(stated) and not names_secret(stated) and not _TO_OBEY.search(stated):
            last = Sentence(stated, own, asked[-MOST_BEFORE:])
            sentences.append(last)
        own = f"{own} {sentence}"[-MOST_BEFORE:].strip()
    return sentences
