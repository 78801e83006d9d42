"""Markdown that a forge and the site read alike: texts that stay texts, tables, links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["anchor", "cell", "made_by", "table", "text"]


def text(plain: str) -> str:
    """Return a text so that none of its characters mean anything in Markdown."""
    return re.sub(r"([\\`*<|]|(?<=\])[(\[])", r"\\\1", plain)


def cell(plain: str) -> str:
    """Return a text for a table, where a line has to stay one."""
    return text(" ".join(plain.split()))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table; its cells are Markdown already."""
    return [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *(f"| {' | '.join(row)} |" for row in rows), ""]


def anchor(heading: str) -> str:
    """Return where a heading is found, as a forge and the site both write it."""
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


def made_by(target: str) -> str:
    """Return the line that tells a writer where to change a page."""
    return f"<!-- made by `make {target}`: change its source, not this page -->"
