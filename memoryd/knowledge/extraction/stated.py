"""The sentences of a message that state something: all that a language model gets to read of it."""

from __future__ import annotations

from memoryd.knowledge.extraction.clauses import before_question
from memoryd.knowledge.extraction.doubts import is_doubtful, is_of_now, is_question
from memoryd.knowledge.extraction.orders import names_secret, ordered
from memoryd.knowledge.extraction.sentences import own_sentences
from memoryd.knowledge.extraction.spoken import written_out
from memoryd.knowledge.grammar.fillers import is_filler

__all__ = ["stated_sentences"]


def stated_sentences(text: str) -> list[str]:
    """
    Return the sentences that somebody states for themselves, in order.

    Left out is what the rules never learn from either: code, quotes, pasted text, tasks, role play, questions, wishes,
    guesses, jokes, what others are said to say, what is so for now only, and what holds a password.
    """
    return [said for sentence in own_sentences(text) if (said := _stated(sentence))]


def _stated(sentence: str) -> str:
    if names_secret(sentence):
        return ""
    if ordered(sentence) is not None:
        return sentence
    said = before_question(sentence).strip()
    if not said or is_filler(said) or is_question(said):
        return ""
    written = written_out(said)
    return "" if is_doubtful(written) or is_of_now(written) else said
