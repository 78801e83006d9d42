"""How a claim ends one of another attribute: what was cancelled, stopped, given up, left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memoryd.knowledge.grammar.relations import MOSTLY_ONE
from memoryd.knowledge.lexicon.stems import stem, word_set
from memoryd.knowledge.statement.attributes import MEAT
from memoryd.knowledge.statement.claim import Claim
from memoryd.knowledge.statement.things import without_heads

__all__ = ["ENDING", "ends", "ends_perhaps"]

_CANCELLED = frozenset(["plans", "trip", "subscriptions"])
_LEFT = MOSTLY_ONE | frozenset(
    [
        "uses",
        "home",
        "vehicle",
        "plans",
        "prefers",
        "has",
        "employer",
        "occupation",
        "studies",
        "regime",
        "diet",
        "consumes",
        "major",
        "likes",
        "dentist",
        "therapist",
        "accountant",
        "boss",
        "bank",
    ]
)
_WORK = frozenset(["employer", "boss"])
_NO_WORK = frozenset(stem(["unemployed", "retired"]))
_STUDIES = frozenset(["major", "studies"])
_STUDENT = frozenset(stem(["student"]))
_ALONE = frozenset(stem(["single"]))
_MARRIED, _BETROTHED = frozenset(stem(["married"])), frozenset(["fiancé", "fiancée"])
_PARTED = frozenset(stem(["divorced", "widowed", "separated"]))
_PARTNERS = frozenset(["wife", "husband", "girlfriend", "boyfriend", "partner", "fiancé", "fiancée"])
ENDING = frozenset(["*", "partners", "consumes", "diet", "occupation", "marital status", *_PARTNERS])
"""Attributes of claims that may end one of another attribute."""
_MEAT = frozenset(stem(word_set(MEAT)))
_OF_ANIMALS = _MEAT | frozenset(stem(word_set("egg eggs cheese milk butter dairy yoghurt fish honey")))
_VEGAN = frozenset(stem(["vegan"]))
_MEATLESS = frozenset(stem(word_set("vegan vegetarian pescatarian pescetarian")))


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a claim ends one of another attribute; both are affirmed or ended as `ends` asks."""

    name: str
    applies: Callable[[Claim, Claim], bool]
    ends: Callable[[Claim, Claim], bool]


_ENDINGS = (
    # "I cancelled my trip to Japan": a plan, a trip or a subscription with all of its words
    _Ending(
        "cancelled",
        lambda new, old: new.attribute == "*" and old.attribute in _CANCELLED,
        lambda new, old: _is_over(new) and without_heads(new.value) <= old.value,
    ),
    # "I stopped smoking": an amount, a number or a time of it
    _Ending(
        "stopped",
        lambda new, old: new.attribute == "*" and old.attribute.startswith(("amount of ", "number of ", "time of ")),
        lambda new, old: _is_over(new) and new.value <= _thing_of(old),
    ),
    # "I sold my car": the thing itself, or a value that ends in its word
    _Ending(
        "given_up",
        lambda new, _: new.attribute == "*",
        lambda new, old: (
            _is_over(new) and (new.value == _thing_of(old) or (new.value <= old.value and old.head in {"", *new.value}))
        ),
    ),
    # "I'm unemployed now": whoever the employer was
    _Ending(
        "without_work",
        lambda new, old: new.attribute == "occupation" and old.attribute in _WORK,
        lambda new, old: new.affirmed and not new.ended and bool(new.value & _NO_WORK) and old.subject == new.subject,
    ),
    # "I'm no longer a student": whatever the subject was
    _Ending(
        "graduated",
        lambda new, old: new.attribute == "occupation" and old.attribute in _STUDIES,
        lambda new, old: not new.affirmed and bool(new.value & _STUDENT) and old.subject == new.subject,
    ),
    # "I'm single": whoever the partner was
    _Ending(
        "alone",
        lambda new, old: new.attribute == "marital status" and old.attribute in _PARTNERS,
        lambda new, old: new.affirmed and not new.ended and bool(new.value & _ALONE) and old.subject == new.subject,
    ),
    # "I broke up with Anna": whatever Anna was
    _Ending(
        "parted",
        lambda new, _: new.attribute == "partners",
        lambda new, old: old.attribute in _PARTNERS and bool(new.value & old.value),
    ),
    # "I started eating meat": a diet without it
    _Ending(
        "eats_meat",
        lambda new, old: new.attribute == "consumes" and old.attribute == "diet",
        lambda new, old: (
            new.affirmed
            and not new.ended
            and new.value <= (_OF_ANIMALS if old.value & _VEGAN else _MEAT)
            and bool(old.value & _MEATLESS)
        ),
    ),
    # "I'm dating Dana": single
    _Ending(
        "together",
        lambda new, old: new.attribute in _PARTNERS and old.attribute == "marital status",
        lambda new, old: new.affirmed and not new.ended and bool(old.value & _ALONE) and old.subject == new.subject,
    ),
    # "I switched from vim to emacs": what it was before
    _Ending(
        "left",
        lambda new, old: bool(new.left) and (new.left <= old.value or bool(new.left & old.names)),
        lambda _, old: (
            old.attribute in _LEFT or old.attribute.startswith(("uses", "favorite")) or old.aspect in {"which", "word"}
        ),
    ),
)

_PERHAPS = (
    # "I'm divorced now": the husband, or one before
    _Ending(
        "parted_perhaps",
        lambda new, old: new.attribute == "marital status" and old.attribute in _PARTNERS,
        lambda new, old: new.affirmed and not new.ended and bool(new.value & _PARTED) and old.subject == new.subject,
    ),
    # "Theo and I got married": a fiancé
    _Ending(
        "married",
        lambda new, old: new.attribute == "marital status" and old.attribute in _BETROTHED,
        lambda new, old: new.affirmed and not new.ended and bool(new.value & _MARRIED) and old.subject == new.subject,
    ),
    # "I turned vegetarian": meat
    _Ending(
        "eats_no_meat",
        lambda new, old: new.attribute == "diet" and old.attribute == "consumes",
        lambda new, old: (
            new.affirmed and not new.ended and bool(new.value & _MEATLESS) and bool(old.value & _MEAT - {"fish"})
        ),
    ),
)


def _is_over(claim: Claim) -> bool:
    return claim.ended and bool(claim.value)


def _thing_of(claim: Claim) -> set[str]:
    return {*claim.attribute.split()} - {"when", "colour", "of"}


def ends(new: Claim, old: Claim) -> bool:
    """Whether a claim ends one of another attribute: the first way that applies decides."""
    if old.ended or not old.affirmed:
        return False
    return _first(_ENDINGS, new, old)


def ends_perhaps(new: Claim, old: Claim) -> bool:
    """Whether a claim may end one of another attribute, and may not."""
    return not old.ended and old.affirmed and _first(_PERHAPS, new, old)


def _first(endings: Sequence[_Ending], new: Claim, old: Claim) -> bool:
    ending = next((one for one in endings if one.applies(new, old)), None)
    return ending is not None and ending.ends(new, old)
