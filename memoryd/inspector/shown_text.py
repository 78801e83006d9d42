"""
Stored text as a page shows it: data, whatever it holds.

Characters that cannot be seen, or that turn the order of others, become visible marks. The text stands in an element of
its own that isolates its direction, so that nothing around it turns.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from markupsafe import Markup, escape

__all__ = ["MOST_SHOWN", "as_block", "as_line", "in_words", "is_cut", "marked"]

MOST_SHOWN = 2_000  # characters of a text in a list; all of it is one link away
MOST_IN_LINE = 160  # characters of a name, a label or an id
MOST_COMBINING = 8  # marks on one letter; more of them would cover other lines
JOINERS = "\u200c\u200d"  # letters of Persian names and parts of emoji are joined or parted by them
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})
_LOOKS_EMPTY = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
_NAMES = {
    "\u00ad": "soft hyphen", "\u200b": "zero width space", "\u200e": "left-to-right mark",
    "\u200f": "right-to-left mark", "\u202a": "left-to-right embedding", "\u202b": "right-to-left embedding",
    "\u202c": "pop directional formatting", "\u202d": "left-to-right override", "\u202e": "right-to-left override",
    "\u2066": "left-to-right isolate", "\u2067": "right-to-left isolate", "\u2068": "first strong isolate",
    "\u2069": "pop directional isolate", "\ufeff": "byte order mark",
}  # fmt: skip


def _mark(letter: str) -> Markup:
    code = f"U+{ord(letter):04X}"
    name = _NAMES.get(letter) or unicodedata.name(letter, "control character").lower()
    return Markup('<span class="mark" title="{}">{}</span>').format(f"{code} {name}", code)


def _is_plain(letter: str) -> bool:
    return letter.isascii() and letter.isprintable()


def _pieces(text: str, keep: str) -> Iterator[tuple[str, bool]]:
    """Yield a text in pieces: stretches that are shown as they are, and single characters that cannot be seen."""
    start = combining = 0
    for n, letter in enumerate(text):
        if _is_plain(letter) or letter in keep:
            combining = 0
            continue
        category = unicodedata.category(letter)
        combining = combining + 1 if category in {"Mn", "Me"} else 0
        hidden = category in _HIDDEN and letter not in JOINERS
        if hidden or letter in _LOOKS_EMPTY or combining > MOST_COMBINING:
            yield text[start:n], False
            yield letter, True
            start = n + 1
    yield text[start:], False


def marked(text: str, *, keep: str = "\n\t") -> Markup:
    """Return text escaped, with a visible mark for each character that cannot be seen, but for those to keep."""
    if text.isascii() and text.isprintable():
        return escape(text)
    return Markup("").join(_mark(piece) if hidden else escape(piece) for piece, hidden in _pieces(text, keep))


def in_words(text: str, most: int) -> str:
    """Return a short text for where no element can stand: hidden characters by their codes, cut after so many."""
    shown = "".join(f"[U+{ord(piece):04X}]" if hidden else piece for piece, hidden in _pieces(text, ""))
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def is_cut(text: str, most: int = MOST_SHOWN) -> bool:
    """Whether a list shows only the beginning of a text."""
    return len(text) > most


def as_block(text: str, most: int | None = None) -> Markup:
    """Return a text of several lines as an element that keeps them; cut after so many characters, if that is said."""
    whole = most is None or not is_cut(text, most)
    shown = marked(text if whole else text[:most])
    return Markup('<bdi class="text">{}{}</bdi>').format(shown, "" if whole else "…")


def as_line(text: str, most: int = MOST_IN_LINE) -> Markup:
    """Return a name, a label or an id as an element on one line."""
    cut = "…" if len(text) > most else ""
    return Markup('<bdi class="name">{}{}</bdi>').format(marked(text[:most], keep=""), cut)
