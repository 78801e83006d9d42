"""
The sentences that someone says in a message for themselves: without code, quotes, pasted text, play and tasks.

What a message is about ("translate this: I live in Berlin") is not what its sender says of themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoryd.knowledge.grammar.pattern import compiled, expanded
from memoryd.knowledge.grammar.sentences import sentences_of

__all__ = [
    "MOST_CHARACTERS",
    "PLAYED",
    "QUOTED",
    "TASK",
    "begins_play",
    "ends_play",
    "not_stated",
    "own_part",
    "own_sentences",
    "tidy",
]

_GREETING = expanded("{greeting}")
_SIGN_OFF = expanded("{sign_off}")

# each stands at the beginning of a line, and what follows it is another's
_BEGINS = re.compile(expanded(r"^[ \t]*{pasted_begins}"), re.IGNORECASE | re.MULTILINE)
_LETTER = re.compile(rf"^[ \t]*{_GREETING}\b[^.?\n]{{0,40}}[,!:]?[ \t]*$", re.IGNORECASE | re.MULTILINE)
_SIGNED = re.compile(
    rf"^[ \t]*{_SIGN_OFF}[ \t]*[,.!]?[ \t]*(?:$|\n[ \t]*[\w.' -]{{1,40}}[ \t]*$)", re.IGNORECASE | re.MULTILINE
)

# sentences after which another's text comes, in the same line or below
_ANNOUNCES = compiled("{announces}")


def own_part(text: str) -> str:
    """
    Return a tidied message (`sentences.tidy`) up to where another's text begins; "" of a letter, whosever it is.

    A lost fact is told again; what a stranger wrote must never count as the user's.
    """
    letter = _LETTER.search(text)
    if letter and (text[: letter.start()].strip() or _SIGNED.search(text, letter.end())):
        text = text[: letter.start()]
    announced = _ANNOUNCES.search(text)
    if announced and text[announced.end() :].strip():
        text = text[: announced.end()]
    begun = _BEGINS.search(text)
    return text[: begun.start()] if begun else text


MOST_OF_MESSAGE = 2000  # of a message that are looked at
PLAYED, SUPPOSED, TASK, QUOTED = "role play", "supposed", "a text to work on", "quoted"
_PLAYED = compiled("{played}")
_BEGUN = compiled("{begun}")
_ENDED = compiled(r"\b{not_stated_ended}\b")
_SUPPOSED = compiled("{supposed}")
_TASK = compiled("{task}")
_QUOTATION = re.compile(r"(?:>[^\n]*\n?)+|[\"“«„][^\"”»“]+[\"”»“]\s*(?:[-—–]\s*[^\n]{1,60})?")


def begins_play(text: str) -> bool:
    """Whether a message begins a role play that goes on in those after it: more than a game that is proposed."""
    return _BEGUN.search(text[:MOST_OF_MESSAGE]) is not None


def ends_play(text: str) -> bool:
    """Whether a message says that a role play is over; what it says then is meant."""
    return _ENDED.search(text[:MOST_OF_MESSAGE]) is not None


def not_stated(text: str) -> str:
    """Return in a word why what a message says is no statement of who says it; "" where it may be one."""
    line = text[:MOST_OF_MESSAGE].strip()
    if not line or ends_play(line):
        return ""
    if _PLAYED.search(line):
        return PLAYED
    if _TASK.match(line):
        return TASK
    if _QUOTATION.fullmatch(line):
        return QUOTED
    return SUPPOSED if any(_SUPPOSED.search(sentence) for sentence in sentences_of(line)) else ""


MOST_CHARACTERS = 3000  # of a message that are read; what is longer was pasted
MOST_OF_SENTENCE = 600  # characters; no one says so much without a full stop
MOST_SENTENCES = 60  # of a message
_SPACES = re.compile(r"[^\S\n]+")
_RUN = re.compile(r"([^\w\s])\1{3,}")
_FENCED = re.compile(r"```.*?(?:```|$)|~~~.*?(?:~~~|$)|`[^`\n]{1,200}`", re.DOTALL)
_QUOTED_LINE = compiled(r"^\s*{quoted_line}")
_QUOTE = re.compile(r"[\"“«„][^\"“”«»„]{1,400}[\"”»“]|(?<!\w)['‘](?:[^'‘’\n]|(?<=\w)['’](?=\w)){12,400}['’](?!\w)")
_LINES_OF_ANOTHER = compiled(r"\b{lines_of_another}\b[^.!?\n]*:(?!\d\d\b)\s*\S?")
"""After such words and a colon comes a text of someone else, or one that is worked on."""
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
