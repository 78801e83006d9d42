"""What the words before a name say of what it is: "my dog Bello" is no person, "I work at Acme" names no place."""

from __future__ import annotations

import re

from memoryd.knowledge.grammar.pattern import compiled
from memoryd.knowledge.grammar.relations import RELATION_PATTERN
from memoryd.model.entity import EntityType

__all__ = ["told_type"]

BEFORE = 60  # characters before a name that are looked at
_PET = compiled(
    r"(?i:\b(?:my|our|his|her|their|your|user's|(?-i:[A-Z])[\w-]+['’]s)\s+(?:[\w-]+\s+)?{pet}"
    r"(?:['’]s name is|['’]s called|,? (?:is |was )?(?:called|named))?\s+)$"
)
_WHO = (  # people work somewhere; "the tour started at Lisbon" names a place, "it works for Rex" no employer
    rf"(?:\b(?:i|we|you|he|she|they|who)\b|\b(?:my|our|his|her|their)\s(?:[\w-]+\s)?(?:{RELATION_PATTERN})\b"
    r"|\b(?!(?:The|This|That|These|Those|It|There|A|An|What|Which)\b)(?-i:[A-Z])[\w-]+)"
)
_EMPLOYED = re.compile(
    rf"(?:{_WHO}(?:['’]\w+)?(?:\s(?:now|once|still|also|just|both|have|has|had|am|is|are|was|were|been|used to)){{0,3}}"
    r"\s(?:work(?:s|ed|ing)?|started|intern(?:s|ed|ing)?)"
    r"(?:\s(?:now|again|today|remotely|part[- ]time|full[- ]time))?\s(?:at|for)"
    r"|\b(?:job|position|internship|career)\sat|\b(?:employed|hired)\s(?:at|by))\s+$",
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
