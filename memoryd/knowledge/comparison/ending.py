"""
How a claim ends one of another attribute: what was sold, stopped, cancelled, left.

What a verb of ending does depends on its sense (`lexicon/verbs.toml`) and on what the older statement tells of: who has
sold the piano has none any more, and may play as before. What it does not end for sure is in doubt.
`tests/knowledge/endings.md` shows every verb next to statements of every kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from memoryd.knowledge.comparison.rules import APART, Finding, Relation
from memoryd.knowledge.grammar.relations import RELATIONS
from memoryd.knowledge.grammar.words import GRAMMAR
from memoryd.knowledge.lexicon.load import stems, verb_of, verbs, words
from memoryd.knowledge.lexicon.spelling import stem
from memoryd.knowledge.statement.claim import PLACES, VALUED, Claim
from memoryd.knowledge.statement.things import without_heads

__all__ = ["ENDING", "RETIRES", "Of", "by_ending", "kind_of"]


class Of(Enum):
    """What an attribute tells of."""

    THING = auto()
    """What someone has, or how that is."""
    USE = auto()
    PAID = auto()
    """A subscription."""
    PLAN = auto()
    WORK = auto()
    STUDY = auto()
    HABIT = auto()
    """What is eaten, drunk, played, how often."""
    TASTE = auto()
    PARTNER = auto()
    PERSON = auto()
    HOME = auto()
    SELF = auto()
    """What someone is: no verb ends an allergy, a name or a birthday."""


_EVERYTHING = frozenset(Of) - {Of.HOME, Of.PERSON, Of.SELF}
RETIRES: Mapping[str, frozenset[Of]] = {
    "end.part_with": frozenset((Of.THING, Of.USE, Of.PAID)),
    "end.abandon": _EVERYTHING,
    "end.drop": frozenset((Of.USE, Of.PAID, Of.PLAN, Of.STUDY, Of.HABIT)),
    "end.stop": frozenset((Of.USE, Of.PAID, Of.WORK, Of.STUDY, Of.HABIT, Of.TASTE)),
    "end.cancel": frozenset((Of.THING, Of.USE, Of.PAID, Of.PLAN, Of.STUDY, Of.HABIT)),
    "end.withdraw": frozenset((Of.PLAN, Of.PAID)),
    "end.remove": frozenset((Of.USE, Of.PAID)),
    "end.switch_off": frozenset(),
    "end.close": frozenset(),
    "end.leave": frozenset((Of.WORK, Of.STUDY)),
    "end.tire": frozenset((Of.TASTE,)),
    "end.part": frozenset((Of.PARTNER,)),
    "end.give_back": frozenset(),
    "end.finish": frozenset(),
    "end.lose": frozenset(),
    "end.replace": frozenset(),
}
"""By sense what is over for sure; of anything else that it covers it is in doubt."""
_NOTHING: Mapping[str, frozenset[Of]] = {"end.finish": frozenset((Of.TASTE, Of.HABIT, Of.USE))}
"""By sense what goes on: who has finished a coffee drinks another."""
if {verb.sense for verb in verbs("end")} != RETIRES.keys() or verb_of(""):  # which looks for verbs of two senses
    raise ValueError("lexicon/verbs.toml: the tables of [end] are those of RETIRES in comparison/ending.py")
_PARTNERS = frozenset(words("nouns.partner"))
_KINDS: Mapping[str, Of] = {
    attribute: kind
    for kind, attributes in (
        (Of.USE, ("uses",)),
        (Of.PAID, ("subscriptions",)),
        (Of.PLAN, ("plans", "trip")),
        (Of.WORK, ("employer", "team")),
        (Of.STUDY, ("studies", "major")),
        (Of.HABIT, ("plays", "consumes", "regime", "diet", "commute")),
        (Of.TASTE, ("likes", "prefers", "fears")),
        (Of.PARTNER, _PARTNERS),
        (Of.HOME, ("home", "birthplace", "origin")),
        (Of.SELF, (*words("nouns.what_one_is"), "languages")),
    )
    for attribute in attributes
}
_BEGINNINGS: Mapping[str, Of] = {
    "uses for ": Of.USE, "amount of ": Of.HABIT, "time of ": Of.HABIT, "favorite ": Of.TASTE, "when ": Of.PLAN,
}  # fmt: skip


def kind_of(attribute: str) -> Of:
    """Return what an attribute tells of; what is not listed is said of a thing."""
    if attribute in _KINDS:
        return _KINDS[attribute]
    if attribute in RELATIONS:
        return Of.PERSON
    if attribute == "when birthday" or VALUED.match(attribute):
        return Of.SELF
    return next((kind for beginning, kind in _BEGINNINGS.items() if attribute.startswith(beginning)), Of.THING)


ENDING = frozenset(["*", "life", "partners", "likes", "consumes", "diet", "occupation", "marital status", *_PARTNERS])
"""Attributes of claims that may end one of another attribute."""
_LEFT = frozenset(words("nouns.left_for_another"))
_MEAT = stems("nouns.meat")
_OF_ANIMALS = _MEAT | stems("nouns.of_animals")
_MEATLESS = stems("nouns.meatless")
_VEGAN, _STUDENT, _ALONE, _MARRIED = (frozenset(stem([word])) for word in ("vegan", "student", "single", "married"))
_NO_WORK, _PARTED = stems("nouns.without_work"), stems("nouns.parted")
_OF_ATTRIBUTES = frozenset(stem(GRAMMAR)) | {"when", "colour", "name"}
"""What of an attribute is no word for the thing that it is of."""
_BOUGHT_BY_NAME = frozenset((Of.THING, Of.USE, Of.PAID))
_OF_THE_DEAD = PLACES - {"home"}
_SURE = Relation.CHANGED
_PERHAPS = Relation.DOUBTFUL


@dataclass(frozen=True, slots=True)
class _Consequence:
    """How what is so now ends something else that was."""

    name: str
    new: str | frozenset[str]
    """The attribute of the newer claim, or any of some."""
    old: frozenset[str]
    applies: Callable[[Claim, Claim], bool]
    decides: Relation = _SURE
    of_one_subject: bool = True


_CONSEQUENCES = (
    # "I'm unemployed now": whoever the employer was
    _Consequence("without_work", "occupation", frozenset(["employer", "boss"]), lambda new, _: _says(new, _NO_WORK)),
    # "I'm no longer a student": whatever the subject was
    _Consequence(
        "graduated",
        "occupation",
        frozenset(["major", "studies"]),
        lambda new, _: not new.affirmed and bool(new.value & _STUDENT),
    ),
    # "I'm single": whoever the partner was; divorced: the husband, or one before
    _Consequence("alone", "marital status", _PARTNERS, lambda new, _: _says(new, _ALONE)),
    _Consequence("parted", "marital status", _PARTNERS, lambda new, _: _says(new, _PARTED), _PERHAPS),
    # "Theo and I got married": a fiancé
    _Consequence(
        "married", "marital status", frozenset(words("nouns.betrothed")), lambda new, _: _says(new, _MARRIED), _PERHAPS
    ),
    # "I'm dating Dana": single
    _Consequence(
        "together",
        _PARTNERS,
        frozenset(["marital status"]),
        lambda new, old: new.affirmed and not new.ended and bool(old.value & _ALONE),
    ),
    # "I started eating meat": a diet without it
    _Consequence(
        "eats_meat",
        "consumes",
        frozenset(["diet"]),
        lambda new, old: (
            _says(new, new.value)
            and new.value <= (_OF_ANIMALS if old.value & _VEGAN else _MEAT)
            and bool(old.value & _MEATLESS)
        ),
        of_one_subject=False,
    ),
    # "I no longer like coffee": to drink it
    _Consequence(
        "gone_off",
        "likes",
        frozenset(["consumes", "plays", "uses"]),
        lambda new, old: new.ended and not new.affirmed and _covers(new, old, Of.HABIT),
        _PERHAPS,
    ),
    # "I turned vegetarian": meat
    _Consequence(
        "eats_no_meat",
        "diet",
        frozenset(["consumes"]),
        lambda new, old: _says(new, _MEATLESS) and bool(old.value & _MEAT),
        _PERHAPS,
        of_one_subject=False,
    ),
)


def _says(claim: Claim, some: frozenset[str]) -> bool:
    """Whether a claim says of now that it is one of some."""
    return claim.affirmed and not claim.ended and bool(claim.value & some)


def by_ending(new: Claim, old: Claim) -> Finding:
    """Return what a claim of one attribute decides of one of another, which was so."""
    if old.ended or not old.affirmed:
        return APART
    relation = _decided(new, old)
    if relation is _SURE:
        return Finding(relation, "ended", f"what it said of {old.attribute!r} has ended")
    if relation is _PERHAPS:
        return Finding(relation, "perhaps_ended", f"what it said of {old.attribute!r} may have ended")
    return APART


def _decided(new: Claim, old: Claim) -> Relation | None:
    if new.attribute == "*":
        return _of_verb(new, old)
    if new.attribute == "life":  # "my father died": what he did, and not who he was
        return None if kind_of(old.attribute) is Of.SELF or old.attribute in _OF_THE_DEAD else _PERHAPS
    if new.attribute == "partners":  # "I broke up with Anna": whatever Anna was
        return _SURE if old.attribute in _PARTNERS and new.value & old.value else None
    for row in _CONSEQUENCES:
        of_new = new.attribute == row.new if isinstance(row.new, str) else new.attribute in row.new
        if of_new and old.attribute in row.old and row.applies(new, old):
            return row.decides if new.subject == old.subject or not row.of_one_subject else None
    return _of_switch(new, old)


def _of_switch(new: Claim, old: Claim) -> Relation | None:
    """Return what "I switched from vim to emacs" decides: it was vim; Google may be an employer, too."""
    if not new.left or not (new.left <= old.value or new.left & old.names):
        return None
    is_left = old.attribute in _LEFT or old.attribute.startswith(("uses", "favorite"))
    kind = kind_of(old.attribute)
    is_person = kind is Of.PERSON and not new.left <= old.value
    if new.attribute.startswith("uses") and (kind in {Of.WORK, Of.PARTNER} or is_person):
        return _PERHAPS if is_left else None
    return _SURE if is_left or old.aspect in {"which", "word"} else None


def _of_verb(new: Claim, old: Claim) -> Relation | None:
    """Return what "I sold my piano" decides."""
    kind = kind_of(old.attribute)
    if not new.ended or not new.value or kind in _NOTHING.get(new.sense, ()):
        return None
    if not _covers(new, old, kind):  # "the Volvo" may be the Volvo V50
        is_named = kind in _BOUGHT_BY_NAME and new.value == new.names and new.value < old.names
        return _PERHAPS if is_named else None
    if not new.sense:  # "the flight is off"; a phone that is off is not gone
        return _SURE if kind in {Of.PLAN, Of.PAID} else _PERHAPS
    return _SURE if kind in RETIRES[new.sense] and not _is_one_of(new, old) else _PERHAPS


def _is_one_of(new: Claim, old: Claim) -> bool:
    """Whether one thing goes where there are several: "I sold my car" of three cars."""
    return old.attribute.startswith("number of ") and not old.value & {"0", "1"} and not new.is_plural


def _covers(new: Claim, old: Claim, kind: Of) -> bool:
    """Whether what a claim ends is what the other one is about; apples are not Apple."""
    if old.named and new.is_plural and not new.names:
        return False
    if kind in {Of.PLAN, Of.PAID} and without_heads(new.value) <= old.value:
        return True  # "my trip to Japan"
    thing = {*old.attribute.split()} - _OF_ATTRIBUTES
    if old.attribute.startswith(("amount of ", "number of ", "time of ")) and new.value <= thing:
        return True
    if thing and new.value in (thing, thing | old.value):  # "my piano", "my Yamaha piano"
        return True
    return new.covers(old)
