"""
Where a sentence ends, which ones say nothing, and what a message asks.

Thanks, greetings, assent, laughter and signs say nothing: by lists, never by length.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from memoryd.knowledge.grammar.pattern import compiled, expanded
from memoryd.knowledge.lexicon.load import words

__all__ = ["asked_sentences", "forget_fillers", "is_courtesy", "is_filler", "sentences_of", "states_nothing"]

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
    line = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    words = _WORD.findall(line)
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


MOST_ASKED = 8  # sentences of a message that are asked apart; of a longer one several go together
LEAST_WORDS = 2  # of a sentence that is asked apart
MOST_OF_COURTESY = 100  # characters
MOST_OF_ASKING = 300  # characters of a text that may state nothing
_OWN = re.compile(r"\b(?:i|i['’]\w+|my|me|mine|we|we['’]\w+|our|us)\b|\d", re.IGNORECASE)
SHORTENED = 12  # characters before a full stop in which a shortened word is looked for
_END = re.compile(
    r"(?<=[.!?…])[\"”')]*\s+(?=\S)|(?<=[。！？؟])[\"”')」』]*\s*(?=\S)|\n+"  # noqa: RUF001  full-width marks
)
_NO_END = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|e\.g|i\.e|etc|vs|approx|no|a\.m|p\.m|u\.s|inc|ltd|jr|sr|co)\.|\b(?-i:[A-Z])\.)$",
    re.IGNORECASE,
)
_MARKS = "?？؟"  # noqa: RUF001  of a question, in any script
_COURTESY = compiled("{courtesy}")


def sentences_of(text: str) -> Iterator[str]:
    """Yield the sentences of a text in order, without the spaces around them."""
    begin = 0
    for end in [*_END.finditer(text), None]:
        stop = len(text) if end is None else end.start()
        piece = text[begin:stop].strip()
        if end is not None and "\n" not in end[0] and _NO_END.search(piece[-SHORTENED:]):
            continue
        begin = len(text) if end is None else end.end()
        if piece:
            yield piece


def is_courtesy(sentence: str) -> bool:
    """Whether a sentence only greets, thanks, apologises, takes leave or says that a question follows."""
    if is_filler(sentence):
        return True
    return len(sentence) <= MOST_OF_COURTESY and _COURTESY.fullmatch(sentence.strip()) is not None


def states_nothing(text: str) -> bool:
    """
    Whether each sentence of a text is a courtesy, or asks another and tells nothing: "What hobbies have you found?".

    A question that is long, or in which someone speaks of themselves, tells something too.
    """
    return len(text) <= MOST_OF_ASKING and all(
        is_courtesy(sentence) or _only_asks(sentence) for sentence in sentences_of(text)
    )


def _only_asks(sentence: str) -> bool:
    return sentence.rstrip("\"”')")[-1:] in _MARKS and len(sentence) <= MOST_OF_COURTESY and not _OWN.search(sentence)


def asked_sentences(text: str) -> tuple[str, ...]:
    """
    Return what a message asks, each by itself; nothing where all of it is courtesy.

    A text of one sentence is returned as it is. Of more than MOST_ASKED those that follow one another go together, so
    that all of the text is asked; questions stay alone as long as there is room.
    """
    found = [one for one in sentences_of(text) if not is_courtesy(one)]
    if len(found) <= 1:
        return tuple(found)
    joined: list[str] = []
    for one in found:
        if joined and len(joined[-1].split()) < LEAST_WORDS and " " in text:
            joined[-1] = f"{joined[-1]} {one}"
        else:
            joined.append(one)
    return tuple(_together(joined))


def _together(sentences: list[str]) -> list[str]:
    """Return at most MOST_ASKED parts, in order: the last questions alone, what lies between them in runs."""
    if len(sentences) <= MOST_ASKED:
        return sentences
    asking = [n for n, sentence in enumerate(sentences) if any(mark in sentence[-3:] for mark in _MARKS)]
    alone = set(asking[-MOST_ASKED // 2 :])
    runs: list[list[str]] = [[]]
    for n, one in enumerate(sentences):
        if n in alone:
            runs += [[one], []]
        else:
            runs[-1].append(one)
    runs = [run for run in runs if run]
    while len(runs) < MOST_ASKED:  # the longest is halved
        longest = max(range(len(runs)), key=lambda n: len(runs[n]))
        if len(runs[longest]) == 1:
            break
        half = len(runs[longest]) // 2
        runs[longest : longest + 1] = [runs[longest][:half], runs[longest][half:]]
    while len(runs) > MOST_ASKED:  # many questions between short remarks: the first ones go together
        runs[:2] = [runs[0] + runs[1]]
    return [" ".join(run) for run in runs]
