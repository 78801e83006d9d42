"""Names of people who are known: they count wherever they stand, whatever is done before or after them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memoryd.entities.directory import Directory
from memoryd.entities.finders import Find
from memoryd.entities.persons import is_named_here
from memoryd.knowledge.lexicon.spelling import UPPER
from memoryd.model.entity import EntityType, Form

__all__ = ["KnownNames"]

KNOWN = 0.95  # surer than a guess by shape, less sure than what a sentence says outright
MOST_WORDS = 3  # of a name that is looked up
_CAPITAL = re.compile(rf"(?<![\w'’-])[{UPPER}][\w-]*(?:['’](?=[{UPPER}])[\w-]+)*")


_LONGER = re.compile(rf" (?:(?:de|van|von|der|den|la|le|al|bin|di|da) )*[{UPPER}]")


class KnownNames:
    """A finder of the people of some directories, by their names as they are."""

    name = "known"
    accurate = False

    def __init__(self, people: Sequence[Directory], *, weight: int = 0) -> None:
        """Look in these directories, for those that trust of at least this weight has named."""
        self._people = [directory for directory in people if len(directory)]
        self._weight = weight

    def find(self, text: str) -> Iterable[Find]:
        """Return the names in a text, of several words before their first alone."""
        words = [(match.start(), match.end()) for match in _CAPITAL.finditer(text)] if self._people else []
        after = -1
        for n, (start, _) in enumerate(words):
            if start < after:
                continue
            for last in range(min(len(words), n + MOST_WORDS) - 1, n - 1, -1):
                end = words[last][1]
                if _LONGER.match(text, end):
                    continue  # "Bob Clark" is not the Bob who is known
                if self._is_person(text[start:end]) and (last > n or is_named_here(text, start, end)):
                    yield Find(start, end, text[start:end], Form.NAME, EntityType.PERSON, KNOWN)
                    after = end
                    break

    def _is_person(self, name: str) -> bool:
        return any(
            directory.type(root) is EntityType.PERSON and directory.weight(root) >= self._weight
            for directory in self._people
            for root in directory.called(name)
        )
