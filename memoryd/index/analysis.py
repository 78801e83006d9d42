"""
From text to the words that the keyword leg compares.

Words are runs of letters and digits (single characters too), in lower case, without stop and question words, reduced
to their stem by Snowball's English algorithm. Chinese, Japanese and Korean runs become single characters and
overlapping pairs, as no spaces tell their words apart.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime

from memoryd.knowledge.grammar.function_words import CLUSTERED, content_of, is_clustered, is_function_word
from memoryd.knowledge.lexicon.spelling import APOSTROPHES, stem_by_script, unaccented
from memoryd.model.memory import Memory

__all__ = ["analyse", "analyse_query", "embedded_text", "indexed_memory", "indexed_text", "length_of", "token_terms"]

_STOP_TEXT = """
    a am an and are as at be been being but by can could did do does for from had has have he her hers him his
    how i if in into is it its me my no nor not of on or our ours s shall she should so such t than that the
    their theirs them then there these they this those to too us was we were what when where which who whom
    whose why will with would you your yours
"""
STOP_WORDS = frozenset(_STOP_TEXT.split())
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip

_MARKS = "".join(chr(code) for code in range(0x300, 0xAC00) if unicodedata.category(chr(code)) in {"Mn", "Mc"})
"""Vowels and tones of Indic and other scripts, which belong to their letter: `\\w` has none of them."""
_WORD = re.compile(rf"\w[\w{_MARKS}]*")
_CJK = rf"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff{CLUSTERED}]"
_CJK_RUN = re.compile(f"({_CJK}+)")
_OF_A_RUN = re.compile(rf"(?<!\S){_CJK}")
A_WORD_OF_A_RUN = 4  # terms that a word of such a run gives: most have two characters, each of them one and a pair
_CONTRACTED = re.compile(
    r"(?<![a-z])(?:do|does|did|is|are|was|were|has|have|had|ca|could|wo|would|should|must|need|ai|might|sha)n't\b"
    r"|(?<=[a-z])'(?:m|re|ve|ll|d)\b",
    re.IGNORECASE,
)
"""Of English: "didn't", "we've"."""
_ELIDED = re.compile(
    r"\b(?:[bcdjlmnst]|qu|(?:jus|lors|puis|quoi|quel|pres)qu|(?:de|ne|a|da|su|que|co)ll|un|quest|cos|dov|com|quand|anch)"
    r"'(?=\w)",
    re.IGNORECASE,
)
"""Of French and Italian: "l'infiltration", "dell'anno", "cos'è"."""
_WRITTEN_OUT = re.compile("[\u3300-\u3357\u337f\ufdf2-\ufdfc]")
"""Single signs for words of Japanese and Arabic (㌖, U+FDFA): NFKC writes them out, up to eleven times their bytes."""
MOST_WRITTEN_OUT = 64  # of a text: more are no words, as a text of nothing else would be eleven times as long
LONE = 3  # characters of a run that is all of a query, and so no grammar: a name such as はな
_CLUSTER = re.compile(f"[^{_MARKS}][{_MARKS}]*")


def _bounded(text: str) -> str:
    """Return a text with so many of the signs that are written out as may be."""
    signs = itertools.count()
    return _WRITTEN_OUT.sub(lambda sign: sign[0] if next(signs) < MOST_WRITTEN_OUT else " ", text)


def _words(text: str) -> tuple[list[str], list[str]]:
    """Return the words to stem, and the runs of CJK characters."""
    lowered = text.lower() if text.isascii() else unicodedata.normalize("NFKC", _bounded(text)).lower()
    found = _WORD.findall(lowered)
    if lowered.isascii() or not _CJK_RUN.search(lowered):
        return [word for word in found if word not in STOP_WORDS], []
    plain: list[str] = []
    runs: list[str] = []
    for word in found:
        for n, part in enumerate(_CJK_RUN.split(word)):
            if n % 2:
                runs.append(part)
            elif part and part not in STOP_WORDS:
                plain.append(part)
    return plain, runs


def _letters(run: str) -> list[str]:
    """Return the characters of a run, each with its marks."""
    return _CLUSTER.findall(run) if is_clustered(run) else list(run)


def _pairs(letters: Sequence[str]) -> list[str]:
    return [letters[n] + letters[n + 1] for n in range(len(letters) - 1)]


def analyse(text: str) -> list[str]:
    """Return the words of a text to be found, in order, repeated as they occur."""
    words, runs = _words(text)
    terms = stem_by_script(words if text.isascii() else [*words, *_bare(words)])
    for run in runs:
        letters = _letters(run)
        terms.extend(letters)
        terms.extend(_pairs(letters))
    return terms


def length_of(text: str, count: int) -> int:
    """Return how many words a text has, from its so many space-separated terms; of a run without spaces about."""
    if text.isascii():
        return count
    of_runs = len(_OF_A_RUN.findall(text))
    return count - of_runs + -(-of_runs // A_WORD_OF_A_RUN)


def _bare(words: Iterable[str]) -> list[str]:
    """Return what words with accents are without them, so that "lodz" finds "Łódź"."""
    return [bare for word in words if not word.isascii() and (bare := unaccented(word)) != word]


def analyse_query(text: str, *, is_english: bool = True) -> list[str]:
    """
    Return the distinct words of a query; of a run without spaces the pairs of what it asks for, or one character.

    Of a query that is not English what other languages in Latin letters have for grammar is left out too.
    """
    text = text.translate(APOSTROPHES)
    asked = (_CONTRACTED if is_english else _ELIDED).sub(" ", text)
    return _terms_asked(asked, is_english=is_english) or _terms_asked(text, is_english=is_english)


def _terms_asked(text: str, *, is_english: bool) -> list[str]:
    words, runs = _words(text)
    if not text.isascii() or not is_english:
        words = [word for word in words if not is_function_word(word, in_latin=not is_english)]
    terms = stem_by_script(words)
    parts = [part for run in runs for part in content_of(run)]
    if not terms and not parts and len(runs) == 1 and len(runs[0]) <= LONE:
        parts = runs
    for part in parts:
        letters = _letters(part)
        terms.extend(_pairs(letters) or letters)
    return list(dict.fromkeys(terms))


def indexed_text(day: datetime, speaker: str, subjects: Iterable[str], content: str) -> str:
    """Return what the keyword leg reads: date, speaker, subjects and content (measured: each of them helps)."""
    date = f"{day.day} {MONTHS[day.month - 1]} {day.year}"
    return f"{date} {speaker} {' '.join(subjects)} {content}"


def indexed_memory(memory: Memory) -> str:
    """Return what the keyword leg reads of a memory."""
    return indexed_text(memory.event_time, memory.source.speaker, memory.subjects, memory.content)


def embedded_text(speaker: str, content: str) -> str:
    """Return what the vector leg reads: speaker and content, without the date (measured: as good without)."""
    return f"{speaker}: {content}" if speaker else content


def token_terms(text: str, places: Sequence[tuple[int, int]], terms: Sequence[str]) -> list[int]:
    """Return of each token, by its place among the characters, which of some terms its word is; −1: none of them."""
    numbers = {term: n for n, term in enumerate(terms)}
    found: list[int] = []
    words = [(match.start(), match.end(), match[0]) for match in _WORD.finditer(text)]
    known: dict[str, int] = {}
    at = 0
    for start, _ in places:
        while at < len(words) and words[at][1] <= start:
            at += 1
        if at == len(words) or words[at][0] > start:
            found.append(-1)  # a mark between words
            continue
        word = words[at][2]
        if word not in known:
            analysed = analyse_query(word)
            known[word] = numbers.get(analysed[0], -1) if len(analysed) == 1 else -1
        found.append(known[word])
    return found
