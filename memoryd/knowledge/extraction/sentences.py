"""
The sentences that somebody says in a message for themselves: without code, quotes, pasted text and tasks.

What a message is about ("translate this: I live in Berlin") is not what its sender says of themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoryd.knowledge.extraction.not_stated import PLAYED, QUOTED, TASK, not_stated
from memoryd.knowledge.extraction.pasted import own_part
from memoryd.knowledge.grammar.pattern import compiled
from memoryd.knowledge.grammar.sentence_ends import sentences_of

__all__ = ["MOST_CHARACTERS", "own_sentences", "tidy"]

MOST_CHARACTERS = 3000  # of a message that are read; what is longer was pasted
MOST_OF_SENTENCE = 600  # characters; nobody says so much without a full stop
MOST_SENTENCES = 60  # of a message
_SPACES = re.compile(r"[^\S\n]+")
_RUN = re.compile(r"([^\w\s])\1{3,}")
_FENCED = re.compile(r"```.*?(?:```|$)|~~~.*?(?:~~~|$)|`[^`\n]{1,200}`", re.DOTALL)
_QUOTED_LINE = compiled(r"^\s*{quoted_line}")
_QUOTE = re.compile(r"[\"“«„][^\"“”«»„]{1,400}[\"”»“]|(?<!\w)['‘](?:[^'‘’\n]|(?<=\w)['’](?=\w)){12,400}['’](?!\w)")
_LINES_OF_ANOTHER = compiled(r"\b{lines_of_another}\b[^.!?\n]*:(?!\d\d\b)\s*\S?")
"""After such words and a colon comes a text of somebody else, or one that is worked on."""
_FICTION = compiled("{fiction}")
_WRITES = compiled("{writes}")
"""A task for the assistant: what it says is wanted, and not true."""
_QUOTE_MARK = "\N{OBJECT REPLACEMENT CHARACTER}"


def own_sentences(text: str) -> list[str]:
    """Return the sentences of a message that its sender says for themselves, in order, as they are written."""
    if len(text) > MOST_CHARACTERS:
        return []
    kept = tidy(text)
    if _FICTION.search(kept) or not_stated(kept) in {PLAYED, TASK, QUOTED}:
        return []
    kept = own_part(_FENCED.sub(_code, kept))
    kept = _QUOTE.sub(_short_quote, kept)
    found: list[str] = []
    for line in kept.split("\n"):
        if _QUOTED_LINE.match(line):
            continue
        pasted = _LINES_OF_ANOTHER.search(line) if ":" in line else None
        found += _sentences(line[: pasted.start()] if pasted else line)
        if pasted:  # what follows is not theirs, to the end
            break
    return [one for one in found[:MOST_SENTENCES] if _QUOTE_MARK not in one and len(one) <= MOST_OF_SENTENCE]


def tidy(text: str) -> str:
    """
    Return a text with runs of spaces as one, and runs of one mark as three of it.

    The rules are regular expressions: over such runs some of them take a time that grows with the square or the cube.
    """
    return _RUN.sub(r"\1\1\1", _SPACES.sub(" ", text))


def _code(match: re.Match[str]) -> str:
    """Keep a name that is written as code; of more code keep a space, or within a line a mark."""
    if match[0].startswith(("```", "~~~")):
        return " "
    words = match[0].strip("`").split()
    return " ".join(words) if len(words) <= 2 else _QUOTE_MARK  # noqa: PLR2004  a name has two words


def _short_quote(match: re.Match[str]) -> str:
    """Keep a name in quotes; of a longer quote keep a mark, by which its sentence is known."""
    words = match[0][1:-1].split()
    return match[0][1:-1] if len(words) <= 2 else _QUOTE_MARK  # noqa: PLR2004  a name has two words


def _sentences(line: str) -> Iterator[str]:
    for sentence in sentences_of(line):
        piece = re.sub(r"^(?:[-*•–]|\d+[.)])\s+", "", sentence)
        if piece and not _WRITES.match(piece):
            yield piece
