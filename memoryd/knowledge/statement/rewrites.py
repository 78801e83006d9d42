"""
The words in which people tell that something has changed, put as plain statements, which `predicates.toml` reads.

"I used to hate jazz, but now I like it" is "i now like jazz"; "my salary went from A to B" is "my income moved to B".
The rows stand in `rewrites.txt`; each has an example, which is tested (`tests/knowledge/test_rewrites.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

from memoryd.knowledge.grammar.pattern import compiled

__all__ = ["REWRITES", "Rewrite", "rewritten"]

_REST_OF_CLAUSE = "[^,.;!?]*"
_GROUP = re.compile(r"\\g<(\w+)>")


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One way of putting it, and the plain one."""

    pattern: re.Pattern[str]
    plain: str
    example: tuple[str, str]
    """A sentence and what it becomes."""
    is_sure: bool = True
    """Whether what it reads may retire an older statement; else it only contests."""


def _read(text: str) -> Iterator[Rewrite]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    for n in range(0, len(lines), 3):
        pattern, plain, example = (*lines[n : n + 3], "", "")[:3]
        written = pattern
        said, _, becomes = example.removeprefix("> ").partition(" > ")
        sure, kept = plain.startswith("= "), plain[2:]
        if plain[:2] not in {"= ", "~ "} or not becomes:
            raise ValueError(f"statement/rewrites.txt: {pattern!r}: then a line with = or ~, and an example > outcome")
        if kept.endswith("."):  # the rest of the clause tells of when, where and why, and goes
            written = f"(?:{pattern}){_REST_OF_CLAUSE}"
        row = Rewrite(
            compiled(written, f"statement/rewrites.txt: {example}"), kept.removesuffix("."), (said, becomes), sure
        )
        unknown = {*_GROUP.findall(row.plain)} - row.pattern.groupindex.keys()
        if unknown:
            raise ValueError(f"statement/rewrites.txt: {pattern!r}: no group is called {unknown.pop()!r}")
        try:
            row.pattern.sub(row.plain, said)
        except (re.error, IndexError) as error:
            raise ValueError(f"statement/rewrites.txt: {pattern!r}: {plain!r}: {error}") from error
        yield row


REWRITES = tuple(_read(resources.files(__package__).joinpath("rewrites.txt").read_text(encoding="utf-8")))


def rewritten(sentence: str) -> tuple[str, bool]:
    """
    Return a sentence put plainly, and whether that is sure; its contractions are written out already.

    It is the same where no row has anything to say.
    """
    done: set[str] = set()
    is_sure = True
    for row in REWRITES:
        match = row.pattern.search(sentence) if row.plain not in done else None
        if match is not None:  # what one row has written is not written again by another
            sentence = f"{sentence[: match.start()]}{match.expand(row.plain)}{sentence[match.end() :]}"
            done.add(row.plain)
            is_sure = is_sure and row.is_sure
    return sentence, is_sure
