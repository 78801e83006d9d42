"""The sentences of a message that may be worth keeping, each with what was said before it."""

from __future__ import annotations

from memoryd.knowledge.language.fillers import is_filler
from memoryd.knowledge.learning.clauses import before_question
from memoryd.knowledge.learning.orders import names_secret
from memoryd.knowledge.learning.sentences import own_sentences

__all__ = ["sentences_after"]

MOST_BEFORE = 400  # characters of what was said before a sentence


def sentences_after(text: str, before: str = "") -> list[tuple[str, str]]:
    """
    Return what was said before each sentence of a message that its sender says for themselves, and the sentence.

    `before` is what somebody else said just before. Left out are fillers, questions, and what names a secret.
    """
    said, found = before[-MOST_BEFORE:], list[tuple[str, str]]()
    for sentence in own_sentences(text):
        stated = before_question(sentence).strip()
        if stated and not is_filler(stated) and not names_secret(stated):
            found.append((said, stated))
        said = f"{said} {sentence}"[-MOST_BEFORE:].strip()
    return found
