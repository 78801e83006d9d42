"""
What marks a context as recalled text, so that it is known again where it comes back in a message or a prompt.

No stored text can write the marks into a context: it is rendered without `<`.
"""

from __future__ import annotations

import re

__all__ = ["CLOSE", "OPEN", "without_recalled"]

OPEN = "<!-- memoryd:context -->"
CLOSE = "<!-- /memoryd:context -->"
_RECALLED = re.compile(rf"\n?{re.escape(OPEN)}.*?{re.escape(CLOSE)}\n?", re.DOTALL)


def without_recalled(text: str) -> str:
    """Return a text without the contexts in it; a mark that stands alone is text like any other."""
    return _RECALLED.sub("\n", text).strip() if CLOSE in text else text
