"""
The people reader: reads a sentence, and says of each word how sure it is that it names a person.

It is a finder of entities for the background: it finds names that no pattern knows, and takes back what a pattern took
for a person's.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from memoryd.embedding.readers.adapters import Tuned, tuned_encoder
from memoryd.embedding.readers.texts import word_ids
from memoryd.embedding.readers.thresholds import NAMED, UNNAMED
from memoryd.entities.finders import WRITTEN, Find
from memoryd.model.entity import EntityType, Form

__all__ = ["CASES", "NAME", "PeopleFinder", "Word"]

NAME = "people"
CASES = 3
"""Outputs of the head: for words in lower case, with a capital at the beginning of a sentence, and inside of one."""
CONFIDENCE = 0.8  # of a name that is read: patterns that say more of it, as whose sister she is, come first
_JOINT = re.compile(r"\w+[ \-’']|\w\. ?")
"""A word of a name with what joins the next one to it; a full stop only after one letter, else it ends a sentence."""


class Word(NamedTuple):
    """A word of a text, and how sure the reader is that it belongs to a person's name, 0–1."""

    start: int
    end: int
    named: float


class PeopleFinder:
    """Reads in the thread that asks; the model is loaded when it is first asked."""

    name = NAME
    accurate = True

    def __init__(self, directory: Path | None = None) -> None:
        """Take the packaged model, or the one in a directory; it is refused at first use if it cannot be loaded."""
        self._directory = directory
        self._tuned: Tuned | None = None
        self._loading = threading.Lock()
        self._found_in: tuple[str, Sequence[Word]] = ("", ())
        """The text that is reviewed next, as it was read; nothing of it is kept then."""

    def read(self, text: str) -> Sequence[Word]:
        """Return the words of a text, of a long one those at its beginning; ModelRefused if the model cannot be had."""
        with self._loading:
            if self._tuned is None:
                self._tuned = tuned_encoder(NAME, self._directory, outputs=CASES)
        tuned = self._tuned
        ((ids, words),) = word_ids(tuned.tokenizer, [text])
        if not words:
            return ()
        states = tuned.graph.states([ids])[0][[word.piece for word in words]]
        named = tuned.chances(states)[np.arange(len(words)), [word.case for word in words]]
        return [Word(word.start, word.end, float(one)) for word, one in zip(words, named, strict=True)]

    def find(self, text: str) -> Iterable[Find]:
        """Return the names of people."""
        words = self.read(text)
        self._found_in = text, words
        return [
            Find(start, end, text[start:end], Form.NAME, EntityType.PERSON, CONFIDENCE)
            for start, end in _names(text, words)
        ]

    def review(self, text: str, finds: Sequence[Find]) -> list[Find]:
        """Return what was found in a text; what is no person's name, though it looked like one, is of type OTHER."""
        (read, words), self._found_in = self._found_in, ("", ())
        if not any(_is_guess(find) for find in finds):
            return list(finds)
        if read != text:
            words = self.read(text)
        return [
            replace(find, type=EntityType.OTHER, denied=True) if _is_guess(find) and _is_none(find, words) else find
            for find in finds
        ]


def _names(text: str, words: Sequence[Word]) -> list[tuple[int, int]]:
    """Return where names begin and end: words in a row that are part of one."""
    found: list[tuple[int, int]] = []
    before: Word | None = None
    for word in words:
        if word.named < NAMED:
            continue
        if before is not None and _JOINT.fullmatch(text, before.start, word.start):
            found[-1] = found[-1][0], word.end
        else:
            found.append((word.start, word.end))
        before = word
    return found


def _is_guess(find: Find) -> bool:
    return find.type is EntityType.PERSON and find.form is Form.NAME and find.confidence <= WRITTEN and not find.group


def _is_none(find: Find, words: Sequence[Word]) -> bool:
    """Whether all of a name was read, and none of it belongs to a person's."""
    read = [word for word in words if find.start <= word.start and word.end <= find.end]
    return bool(read) and all(word.named < UNNAMED for word in read)
