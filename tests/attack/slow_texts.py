"""
Texts that are made of the rules' own vocabulary, to find a reader whose cost grows faster than its text.

Every pattern of the daemon that reads language gives its words and signs; a text repeats one of them, a few of them, or
a run of them that is nearly what the pattern wants. Each reader is given it at two lengths, in seconds of its thread's
own CPU time, so that other processes do not count.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import random
import re
import time
from collections.abc import Callable, Iterator
from datetime import date
from functools import cached_property
from types import ModuleType

import memoryd.entities
import memoryd.knowledge
from memoryd.entities.finders import RegexFinder, find_entities
from memoryd.index.analysis import analyse, analyse_query
from memoryd.knowledge.comparison.comparison import compare
from memoryd.knowledge.comparison.technical_values import by_technical_values
from memoryd.knowledge.extraction.answers import answered
from memoryd.knowledge.extraction.facts import facts_in
from memoryd.knowledge.extraction.sentences import not_stated
from memoryd.knowledge.grammar.dates import days_named
from memoryd.knowledge.grammar.questions import asks_assistant, clauses, question_share, signs_of, wanted_of
from memoryd.knowledge.grammar.times import has_relative_time
from memoryd.knowledge.grammar.words import telling_words, words_of
from memoryd.knowledge.profile import standing_of
from memoryd.knowledge.read_statement import Reader
from memoryd.knowledge.secrets.detector import SecretDetector
from memoryd.knowledge.statement.reader import MOST_CHARACTERS, statement_of
from memoryd.knowledge.text_traits import from_text

__all__ = ["READERS", "grows_too_fast", "growth", "texts", "vocabulary"]

TODAY = date(2026, 11, 1)
LEAST_S, MOST_GROWTH = 0.05, 9.0  # four times the text may take four times as long, sixteen times where it is square
TRIES = 5
_WORDS = re.compile(r"[^\W\d_][\w'’]*|[!-/:-@\[-`{-~]")
_OF_PATTERNS = re.compile(r"\(\?P?[<=!:]\w*>?|\\[a-zA-Z]|\{\d*,?\d*\}|[\[\](){}|?*+^$\\]")


def _read_whole(text: str) -> list[object]:
    """Read all that a statement says of itself, which is read when it is asked for."""
    said = statement_of(text[:MOST_CHARACTERS])
    properties = [name for name, value in vars(type(said)).items() if isinstance(value, cached_property)]
    return [getattr(said, name) for name in properties]


def _compared(text: str) -> None:
    reader, text = Reader(), text[:MOST_CHARACTERS]
    for other in (text[: len(text) // 2], "My favorite color is red", "I like my piano", text[1:]):
        compare(reader.read(text), reader.read(other), similarity=0.9)
        compare(reader.read(other), reader.read(text), similarity=0.9)


def _readers() -> dict[str, Callable[[str], object]]:
    detector, finders = SecretDetector(), [RegexFinder()]
    return {
        "statement": _read_whole,
        "compare": _compared,
        "words_of": words_of,
        "telling_words": telling_words,
        "analyse": analyse,
        "analyse_query": analyse_query,
        "days_named": lambda text: days_named(text, TODAY, (2026,)),
        "has_relative_time": has_relative_time,
        "traits": lambda text: from_text(text, is_said=True, is_dated=True),
        "questions": lambda text: (asks_assistant(text), clauses(text), question_share(text), signs_of(text)),
        "standing_of": standing_of,
        "not_stated": not_stated,
        "technical": lambda text: by_technical_values(text, f"{text[:-1]}x"),
        "wanted_of": wanted_of,
        "answered": lambda text: (answered("Do you smoke?", text), answered(text, "Yes, I do")),
        "facts_in": lambda text: facts_in(text, today=TODAY),
        "find_entities": lambda text: find_entities(text, finders),
        "secrets": lambda text: detector([text]),
        "mask": detector.mask,
        "mask_json": lambda text: detector.mask_json(json.dumps({"note": text, text[:400]: [*map(len, text.split())]})),
    }


READERS = _readers()


def _modules() -> Iterator[ModuleType]:
    for package in (memoryd.knowledge, memoryd.entities):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            yield importlib.import_module(found.name)


def vocabulary() -> list[list[str]]:
    """Return the words and signs of each pattern, in its order."""
    found = {}
    for module in _modules():
        for value in vars(module).values():
            for one in value if isinstance(value, tuple | list | frozenset) else (value,):
                if isinstance(one, re.Pattern) and isinstance(one.pattern, str):
                    words = _WORDS.findall(_OF_PATTERNS.sub(" ", one.pattern))
                    if words:
                        found[one.pattern] = words
    return list(found.values())


def texts(rng: random.Random, count: int) -> Iterator[str]:
    """Yield seeds that a text repeats."""
    of_patterns = vocabulary()
    for _ in range(count):
        words = rng.choice(of_patterns)
        first = rng.randrange(len(words))
        some = words[first : first + rng.choice((1, 1, 1, 2, 2, 3, 5))]
        if rng.random() < 0.3:
            some = [*some, rng.choice(rng.choice(of_patterns))]
        join = rng.choice((" ", " ", " ", "", ", ", "\n", "-", "1 "))
        yield join.join(some) + rng.choice((" ", " ", join or " "))


def _seconds(read: Callable[[str], object], text: str) -> float:
    began = time.thread_time()
    read(text)
    return time.thread_time() - began


def growth(read: Callable[[str], object], seed: str, length: int) -> tuple[float, float]:
    """
    Return the seconds for a text of a quarter of the length, and for one of the length.

    What grows too fast is measured again, and the least of it counts: a busy core makes any text look slow once.
    """
    quarter = (seed * (length // len(seed) // 4 + 1))[: length // 4]
    whole = (seed * (length // len(seed) + 1))[:length]
    seconds = _seconds(read, quarter), _seconds(read, whole)
    for _ in range(TRIES):
        if not grows_too_fast(*seconds):
            break
        seconds = min(seconds[0], _seconds(read, quarter)), min(seconds[1], _seconds(read, whole))
    return seconds


def grows_too_fast(quarter: float, whole: float) -> bool:
    """Whether a text takes more than its length says, against a quarter of it."""
    return whole > max(LEAST_S, MOST_GROWTH * quarter)
