"""Where a message stops being its sender's own words: a mail, a chat, a page, a file or a text to work on follows."""

from __future__ import annotations

import re

from memoryd.knowledge.grammar.pattern import compiled, expanded

__all__ = ["own_part"]

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
