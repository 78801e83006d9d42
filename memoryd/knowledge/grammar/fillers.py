"""What is said without saying anything: thanks, greetings, assent, laughter, signs. By lists, never by length."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from memoryd.knowledge.grammar.pattern import expanded
from memoryd.knowledge.lexicon.load import words

__all__ = ["forget_fillers", "is_filler"]

_WORDS = frozenset(words("grammar.words"))
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SAID = re.compile(expanded(r"\b{filler_phrases}\b"))
MOST_WORDS = 6  # a longer row of such words says something after all: "no that is really not all right"
MOST_CHARACTERS = 60


@lru_cache(maxsize=4096)
def is_filler(text: str) -> bool:
    """Whether a text says nothing that could be remembered or asked: "ok, thanks!", "👍", "haha". "I'm vegan" does."""
    if len(text) > MOST_CHARACTERS:
        return False
    said = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    words = _WORD.findall(said)
    if len(words) > MOST_WORDS:
        return False
    rest = _SAID.sub(" ", " ".join(words)).split()
    return all(word in _WORDS or _is_drawn_out(word) for word in rest)


def _is_drawn_out(word: str) -> bool:
    """Whether a word is one of these with its letters drawn out: "yesss", "hahahaha"."""
    short = re.sub(r"(.)\1+", r"\1", word)
    return short in _WORDS or bool(re.fullmatch(r"(?:ha|he|hi|ja|wk|[ㅋㅎ\u110f\u1112]|哈){2,}h?", word))


def forget_fillers() -> None:
    """Drop the texts that were looked at lately."""
    is_filler.cache_clear()
