"""
How people are related to the speaker: the words, and how many of them a person has at a time.

Each relation is in one table: of how many there are, and whether they are kin, which never changes.
"""

from __future__ import annotations

import re

__all__ = [
    "FOREIGN_RELATIONS",
    "KIN",
    "MOSTLY_ONE",
    "ONE_AT_A_TIME",
    "RELATIONS",
    "RELATION_PATTERN",
    "SEVERAL",
    "introduced",
    "relation_of",
]

_ONE = {
    "wife": (), "husband": ("hubby",), "spouse": (), "partner": (), "fiancé": ("fiance",), "fiancée": ("fiancee",),
    "girlfriend": ("gf",), "boyfriend": ("bf",), "boss": ("manager", "supervisor"), "landlord": ("landlady",),
    "ex": ("ex-wife", "ex-husband", "ex-girlfriend", "ex-boyfriend"), "best friend": ("bestie",), "dentist": (),
    "therapist": ("psychologist", "counselor", "counsellor"), "accountant": (), "assistant": (),
}  # fmt: skip
_MOSTLY_ONE = {
    "doctor": ("physician", "gp", "family doctor"), "lawyer": (), "coach": ("trainer",), "mentor": (), "vet": (),
    "babysitter": ("nanny",), "teacher": ("tutor",),
}  # fmt: skip
_MANY = {
    "friend": ("buddy", "pal"), "colleague": ("coworker", "co-worker", "teammate", "workmate"),
    "roommate": ("flatmate", "housemate"), "neighbor": ("neighbour",), "student": (), "client": ("customer",),
    "nurse": (), "twin": (),
}  # fmt: skip
_ONE_OF_KIN = {
    "mother": ("mom", "mum", "mommy", "mama", "mam"), "father": ("dad", "daddy", "papa"), "mother-in-law": (),
    "father-in-law": (), "stepmother": ("stepmom", "stepmum"), "stepfather": ("stepdad",),
}  # fmt: skip
_MANY_OF_KIN = {
    "son": (), "daughter": (), "child": ("kid",), "brother": (), "sister": ("sis",), "sibling": (),
    "grandmother": ("grandma", "granny", "nana"), "grandfather": ("grandpa", "grandad", "granddad"),
    "grandson": (), "granddaughter": (), "grandchild": (), "uncle": (), "aunt": ("auntie",), "cousin": (), "nephew": (),
    "niece": (), "brother-in-law": (), "sister-in-law": (), "son-in-law": (), "daughter-in-law": (), "stepson": (),
    "stepdaughter": (), "godmother": (), "godfather": (), "godson": (), "goddaughter": (),
}  # fmt: skip
_TABLES: tuple[dict[str, tuple[str, ...]], ...] = (_ONE, _MOSTLY_ONE, _MANY, _ONE_OF_KIN, _MANY_OF_KIN)
RELATIONS: dict[str, str] = {
    word: relation for table in _TABLES for relation, others in table.items() for word in (relation, *others)
}
"""A word → the relation that it names."""
ONE_AT_A_TIME = frozenset({*_ONE, *_ONE_OF_KIN})
"""Relations of which a person has one: the last one stated counts."""
MOSTLY_ONE = frozenset(_MOSTLY_ONE)
"""Relations of which a person mostly has one."""
SEVERAL = frozenset({*_MOSTLY_ONE, *_MANY, *_MANY_OF_KIN})
"""Relations of which a person may have several at a time."""
KIN = frozenset({*_ONE_OF_KIN, *_MANY_OF_KIN})
"""Relations that never change: a sister is no wife."""
_FOREIGN = {
    "wife": "vrouw frau femme épouse esposa mujer moglie esposa mulher żona",
    "husband": "mann ehemann mari époux marido esposo marito mąż",
    "girlfriend": "vriendin freundin copine novia fidanzata namorada dziewczyna",
    "boyfriend": "copain novio fidanzato namorado chłopak",
    "boss": "baas chefin patron jefe jefa capo szef szefowa",
    "doctor": "huisarts hausarzt hausärztin arzt médecin médico dottore",
    "friend": "vriend freund ami amie amigo amiga amico amica przyjaciel",
    "colleague": "collega kollege kollegin collègue colega kolega koleżanka",
    "neighbor": "buurman buurvrouw nachbar nachbarin voisin voisine vecino vecina vicino vicina vizinho vizinha sąsiad",
    "mother": "moeder mutter mama mère maman madre mamá mamma mãe matka",
    "father": "vader vater papa père padre papá papà babbo pai ojciec tata",
    "mother-in-law": "schoonmoeder schwiegermutter belle-mère suegra suocera sogra teściowa",
    "father-in-law": "schoonvader schwiegervater beau-père suegro suocero sogro teść",
    "son": "zoon sohn fils hijo figlio filho syn",
    "daughter": "dochter tochter fille hija figlia filha córka",
    "brother": "broer bruder frère hermano fratello irmão",
    "sister": "zus schwester sœur soeur hermana sorella irmã siostra",
    "grandmother": "oma großmutter grand-mère mamie abuela nonna avó babcia",
    "grandfather": "opa großvater grand-père papi abuelo nonno avô dziadek",
    "uncle": "oom onkel oncle tío zio tio wujek", "aunt": "tante tía zia tia ciocia",
    "cousin": "neef vetter cousine primo prima cugino cugina kuzyn kuzynka",
    "nephew": "neffe neveu sobrino", "niece": "nichte nièce sobrina",
    "brother-in-law": "schoonbroer zwager schwager beau-frère cuñado cognato cunhado szwagier",
    "sister-in-law": "schoonzus schwägerin belle-sœur cuñada cognata cunhada szwagierka",
}  # fmt: skip
FOREIGN_RELATIONS = {word: relation for relation, words in _FOREIGN.items() for word in words.split()}
"""A word of Dutch, German, French, Spanish, Italian, Portuguese or Polish → the relation that it names."""
RELATION_PATTERN = "|".join(re.escape(word) for word in sorted(RELATIONS, key=len, reverse=True))
_EVERY = "|".join(re.escape(word) for word in sorted({*RELATIONS, *FOREIGN_RELATIONS}, key=len, reverse=True))
_IS = r"is|was|are|were|ist|war|est|es|è|é|jest|heißt|heet|se llama|s['’]appelle|si chiama|se chama|ma na imię"
_INTRODUCTION = re.compile(
    rf"(?i:\b(?P<first>{_EVERY})(?:['’]s name)?(?: now)? (?:{_IS})) (?:(?i:now|called|named|dr\.?) )*[^\W\d_a-zà-öø-ÿ]"
    rf"|(?i:\b(?:{_IS}|isn['’]t|wasn['’]t) (?:not |no longer |now |still )*(?:my|our|mijn|meine?|mon|ma|mi|mio|mia|meu"
    rf"|minha|mój|moja) (?:[\w-]+ ){{0,2}}(?P<last>{_EVERY})\b)"
)
MOST_CHARACTERS = 400  # of a text that says who somebody is


def introduced(text: str) -> frozenset[str]:
    """Return the relations of whom a text says who they are: "My boss is Jane", not "My boss Jane lives in Oslo"."""
    if len(text) > MOST_CHARACTERS:
        return frozenset()
    words = ((match["first"] or match["last"]).lower() for match in _INTRODUCTION.finditer(text))
    return frozenset(FOREIGN_RELATIONS.get(word, relation_of(word)) for word in words)


def relation_of(word: str) -> str:
    """Return the relation that a word names, in lower case; the word itself if it is none."""
    return RELATIONS.get(word.lower(), word.lower())
