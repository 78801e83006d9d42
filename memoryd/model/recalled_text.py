"""
What marks a context as recalled text, so that it is known again where it comes back in a message or a prompt.

No stored text can write the marks into a context: it is rendered without `<`.
"""

from __future__ import annotations

__all__ = ["CLOSE", "OPEN", "without_recalled"]

OPEN = "<!-- memoryd:context -->"
CLOSE = "<!-- /memoryd:context -->"


def without_recalled(text: str) -> str:
    """
    Return a text without the contexts in it; a mark that stands alone is text like any other.

    Each letter is looked at once, however many marks there are.
    """
    kept: list[str] = []
    at = 0
    while (begin := text.find(OPEN, at)) >= 0:
        end = text.find(CLOSE, begin)
        if end < 0:
            break
        kept.append(text[at:begin].removesuffix("\n"))
        at = end + len(CLOSE)
        at += text.startswith("\n", at)
    return "\n".join((*kept, text[at:])).strip() if kept else text
