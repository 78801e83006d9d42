"""What the words before a name say of what it is: "my dog Bello" is no person, "I work at Acme" names no place."""

from __future__ import annotations

import re

from memoryd.knowledge.grammar.pattern import compiled
from memoryd.model.entity import EntityType

__all__ = ["told_type"]

BEFORE = 60  # characters before a name that are looked at
_PET = compiled(
    r"(?i:\b(?:my|our|his|her|their|your|user's|(?-i:[A-Z])[\w-]+['’]s)\s+(?:[\w-]+\s+)?{pet}"
    r"(?:['’]s name is|['’]s called|,? (?:is |was )?(?:called|named))?\s+)$"
)
_EMPLOYED = re.compile(
    r"\b(?:(?:work(?:s|ed|ing)?|started|job|position|intern(?:s|ed|ing|ship)?|career)"
    r" (?:(?:now|again|today|remotely|part[- ]time|full[- ]time) )?(?:at|for)|(?:employed|hired) (?:at|by))\s+$",
    re.IGNORECASE,
)


def told_type(text: str, start: int, found: EntityType) -> EntityType:
    """Return what a name is that begins at `start` and seems to be `found`."""
    before = text[max(0, start - BEFORE) : start]
    if found is EntityType.PERSON and _PET.search(before):
        return EntityType.OTHER
    if found in {EntityType.LOCATION, EntityType.OTHER} and _EMPLOYED.search(before):
        return EntityType.ORGANIZATION
    return found
