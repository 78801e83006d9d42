"""How people are related to the one who speaks: the words, and how many there can be of each."""

from __future__ import annotations

import re

from memoryd.knowledge.language.stems import word_set

__all__ = ["KIN", "MOSTLY_ONE", "ONE_AT_A_TIME", "RELATIONS", "RELATION_PATTERN", "SEVERAL", "relation_of"]

_ONE = {
    "wife": (), "husband": ("hubby",), "spouse": (), "partner": (), "fiancé": ("fiance",), "fiancée": ("fiancee",),
    "girlfriend": ("gf",), "boyfriend": ("bf",), "mother": ("mom", "mum", "mommy", "mama", "mam"),
    "father": ("dad", "daddy", "papa"), "boss": ("manager", "supervisor"), "landlord": ("landlady",),
    "mother-in-law": (), "father-in-law": (), "ex": ("ex-wife", "ex-husband", "ex-girlfriend", "ex-boyfriend"),
    "best friend": ("bestie",), "dentist": (), "therapist": ("psychologist", "counselor", "counsellor"),
    "stepmother": ("stepmom", "stepmum"), "stepfather": ("stepdad",), "accountant": (), "assistant": (),
}  # fmt: skip
_MANY = {
    "son": (), "daughter": (), "child": ("kid",), "brother": (), "sister": ("sis",), "sibling": (),
    "grandmother": ("grandma", "granny", "nana"), "grandfather": ("grandpa", "grandad", "granddad"),
    "grandson": (), "granddaughter": (), "grandchild": (), "uncle": (), "aunt": ("auntie",), "cousin": (), "nephew": (),
    "niece": (), "brother-in-law": (), "sister-in-law": (), "son-in-law": (), "daughter-in-law": (), "stepson": (),
    "stepdaughter": (), "friend": ("buddy", "pal"), "colleague": ("coworker", "co-worker", "teammate", "workmate"),
    "roommate": ("flatmate", "housemate"), "neighbor": ("neighbour",), "doctor": ("physician", "gp"), "lawyer": (),
    "teacher": ("tutor",), "coach": ("trainer",), "mentor": (), "student": (), "client": ("customer",), "godmother": (),
    "godfather": (), "godson": (), "goddaughter": (), "babysitter": ("nanny",), "vet": (), "nurse": (), "twin": (),
}  # fmt: skip
RELATIONS: dict[str, str] = {
    word: relation for table in (_ONE, _MANY) for relation, others in table.items() for word in (relation, *others)
}
"""A word → the relation that it names."""
ONE_AT_A_TIME = frozenset(_ONE)
"""Relations of which a person has one: who is said to be it now is it."""
SEVERAL = frozenset(_MANY)
"""Relations of which a person may have several at a time."""
MOSTLY_ONE = frozenset({"doctor", "lawyer", "coach", "mentor", "vet", "babysitter", "teacher"})
"""Relations of which a person mostly has one."""
KIN = word_set("""
    mother father son daughter child brother sister sibling grandmother grandfather grandson granddaughter
    grandchild uncle aunt cousin nephew niece mother-in-law father-in-law brother-in-law sister-in-law
    son-in-law daughter-in-law stepson stepdaughter stepmother stepfather godmother godfather godson goddaughter
""")
"""Relations that nobody changes: who is a sister is no wife."""
RELATION_PATTERN = "|".join(re.escape(word) for word in sorted(RELATIONS, key=len, reverse=True))


def relation_of(word: str) -> str:
    """Return the relation that a word names, in lower case; the word itself if it is none."""
    return RELATIONS.get(word.lower(), word.lower())
