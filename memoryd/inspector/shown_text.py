"""
Stored text as a page shows it: data, whatever it holds.

Characters that cannot be seen, or that turn the order of others, become visible marks. The text stands in an element of
its own that isolates its direction, so that nothing around it turns.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache

from markupsafe import Markup, escape

__all__ = ["MOST_PART", "MOST_SHOWN", "as_block", "as_line", "beginning", "in_words", "is_cut", "marked"]

MOST_SHOWN = 1_500  # characters of a text in a list; all of it is one link away
MOST_LINES = 12  # lines of it
MOST_PART = 65_536  # characters of a text that a page shows at once
MOST_IN_LINE = 160  # characters of a name, a label or an id
TAIL_IN_LINE = 40  # of these, those of its end, which tells paths apart
MOST_COMBINING = 8  # marks on one letter; more of them would cover other lines
MOST_IN_RUN = 3  # hidden characters in a row that have a mark each
MOST_MARKS = 60  # marks in one text; the characters after them stand as BOX
BOX = "▯"
ZWNJ, ZWJ = "\u200c\u200d"
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})
_LOOKS_EMPTY = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5\U00016fe4\U0001d159")
_STRIKES = frozenset("\u0335\u0336\u0337\u0338\u20d2\u20e0\u20e5\u20eb")
"""What is drawn over a letter: a text could look as one that was replaced."""
_SPACES = frozenset("\u0020\u00a0\u202f\u3000")
"""Spaces that people write; others look like one of them and are marked."""
_NAMES = {
    "\u0020": "space", "\u00ad": "soft hyphen", "\u200b": "zero width space", "\u200e": "left-to-right mark",
    "\u200f": "right-to-left mark", "\u202a": "left-to-right embedding", "\u202b": "right-to-left embedding",
    "\u202c": "pop directional formatting", "\u202d": "left-to-right override", "\u202e": "right-to-left override",
    "\u2066": "left-to-right isolate", "\u2067": "right-to-left isolate", "\u2068": "first strong isolate",
    "\u2069": "pop directional isolate", "\ufeff": "byte order mark",
}  # fmt: skip


@cache
def _mark(letter: str, count: int = 1) -> Markup:
    if letter == "\n" and count == 1:
        return Markup('<span class="mark" title="line break">↵</span>')
    code = f"U+{ord(letter):04X}"
    name = _NAMES.get(letter) or unicodedata.name(letter, "control character").lower()
    told = code if count == 1 else f"{count} hidden characters"
    title = f"{code} {name}" if count == 1 else f"the first is {code} {name}"
    return Markup('<span class="mark" title="{}">{}</span>').format(title, told)


def _is_plain(letter: str) -> bool:
    return letter.isascii() and letter.isprintable()


def _is_selector(letter: str) -> bool:
    """Whether it chooses how the character before it is drawn."""
    return "\ufe00" <= letter <= "\ufe0f" or "\u180b" <= letter <= "\u180f" or "\U000e0100" <= letter <= "\U000e01ef"


def _joins(before: str, letter: str, after: str) -> bool:
    """Whether an invisible character does what it is for: it joins letters or emoji, or chooses their form."""
    if not before:
        return False
    earlier = unicodedata.category(before)
    if _is_selector(letter):
        return earlier in {"So", "Sm", "Lo"} or before in "#*0123456789‼⁉©®"
    if letter == ZWJ and (earlier in {"So", "Sk"} or before == "\ufe0f"):
        return bool(after) and unicodedata.category(after) in {"So", "Sm"}
    written = {"Lo", "Mn", "Mc"}  # scripts without capitals, such as Persian and those of India
    return earlier in written and bool(after) and unicodedata.category(after) in written


def _is_hidden(text: str, n: int, combining: int) -> bool:
    letter = text[n]
    category = unicodedata.category(letter)
    if letter in {ZWNJ, ZWJ} or _is_selector(letter):
        return not _joins(text[n - 1 : n], letter, text[n + 1 : n + 2])
    return (
        category in _HIDDEN
        or letter in _LOOKS_EMPTY
        or letter in _STRIKES
        or combining > MOST_COMBINING
        or (category == "Zs" and letter not in _SPACES)
    )


def _pieces(text: str, keep: str) -> Iterator[tuple[str, bool]]:
    """Yield a text in pieces: stretches that are shown as they are, and runs of characters that cannot be seen."""
    start = combining = 0
    run = -1
    for n, letter in enumerate(text):
        plain = _is_plain(letter) or letter in keep
        combining = combining + 1 if not plain and unicodedata.category(letter) in {"Mn", "Me"} else 0
        if plain or not _is_hidden(text, n, combining):
            if run >= 0:
                yield text[run:n], True
                start, run = n, -1
        elif run < 0:
            yield text[start:n], False
            run = n
    yield (text[run:], True) if run >= 0 else (text[start:], False)


def marked(text: str, *, keep: str = "\n\t") -> Markup:
    """Return text escaped, with a visible mark for each character that cannot be seen, but for those to keep."""
    if text.isascii() and text.isprintable():
        return escape(text)
    parts: list[Markup] = []
    left = MOST_MARKS
    for piece, hidden in _pieces(text, keep):
        if not hidden:
            parts.append(escape(piece))
        elif left <= 0:
            parts.append(escape(BOX))
        elif len(piece) > MOST_IN_RUN:
            parts.append(_mark(piece[0], len(piece)))
            left -= 1
        else:
            parts += map(_mark, piece)
            left -= len(piece)
    return Markup("").join(parts)


def in_words(text: str, most: int) -> str:
    """Return a short text for where no element can stand: hidden characters by their codes, cut after so many."""
    pieces = _pieces(text[: 2 * most], "")
    shown = "".join("".join(f"[U+{ord(one):04X}]" for one in piece) if hidden else piece for piece, hidden in pieces)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def beginning(text: str) -> str:
    """Return as much of a text as a list shows."""
    return "\n".join(text[:MOST_SHOWN].split("\n", MOST_LINES)[:MOST_LINES])


def is_cut(text: str) -> bool:
    """Whether a list shows only the beginning of a text."""
    return len(beginning(text)) < len(text)


def as_block(text: str, whole: str | None = None) -> Markup:
    """Return a text of several lines as an element that keeps them; `whole` is what it is the beginning of."""
    cut = "" if whole is None or len(text) == len(whole) else "…"
    return Markup('<bdi class="text">{}{}</bdi>').format(marked(text), cut)


def as_line(text: str) -> Markup:
    """Return a name, a label or an id as an element on one line, a long one without its middle; outer spaces marked."""
    if len(text) > MOST_IN_LINE:
        head, tail = text[: MOST_IN_LINE - TAIL_IN_LINE], text[-TAIL_IN_LINE:]
        return Markup('<bdi class="name">{}…{}</bdi>').format(marked(head, keep=""), marked(tail, keep=""))
    stripped = text.strip(" ")
    before = len(text) - len(text.lstrip(" ")) if stripped else len(text)
    after = len(text) - before - len(stripped)
    spaces = [_mark(" ", count) if count else "" for count in (before, after)]
    return Markup('<bdi class="name">{}{}{}</bdi>').format(spaces[0], marked(stripped, keep=""), spaces[1])
