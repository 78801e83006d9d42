"""
What a clause says of a thing: "my car is red", "the standup moved to 10", "Sarah's email is …".

A thing has aspects: where it is, when, how much, which one. Values of two aspects are both true ("my meeting is on
Monday", "my meeting is in room 4"); of one aspect, things that one has one of hold one value at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from memoryd.knowledge.grammar.amounts import clock_of, measure_of
from memoryd.knowledge.grammar.names import is_first_name
from memoryd.knowledge.grammar.pattern import any_of, compiled, expanded
from memoryd.knowledge.grammar.relations import MOSTLY_ONE, ONE_AT_A_TIME, RELATIONS
from memoryd.knowledge.grammar.words import DAYS, is_plural, names_of, value_of, words_in
from memoryd.knowledge.lexicon.load import stems, words
from memoryd.knowledge.lexicon.spelling import stem
from memoryd.knowledge.statement.claim import EVENTS, SINGULAR, VALUED, Cardinality, Claim

__all__ = ["MOST_WORDS", "claims_of_thing", "without_heads"]

_IS = compiled("{is}")
_MOVED = re.compile(expanded("{changed_of_things}"))
_OFF = compiled(r"^(?P<np>[\w' -]{2,60}?) {off} (?:been )?(?:cancell?ed|called off|off)$")
_COLOURS = frozenset(words("frames.part.colours"))
_CLEARLY = (
    r"\d{1,2}[:.]\d\d|\d{1,2}(?:[:.]\d\d)? ?(?:am|pm|a\.m\.|p\.m\.|o'clock|h)|noon|midnight|half past"
    r"|quarter (?:to|past)"
)
_WHEN = re.compile(rf"\b(?:{_CLEARLY}|{any_of(DAYS)}|(?:19|20)\d\d(?! ?[a-z€$])|\d+(?:st|nd|rd|th))\b", re.IGNORECASE)
_AT = compiled("^{clock}(?: .*)?$")
_HAPPENED_TO = re.compile(r"(?:\w{3,}ed|built|made|sold|found|born|founded|written|held)\b", re.IGNORECASE)
_DATE = compiled("{date}")
_DAY_STEMS = frozenset(stem(DAYS))
_HEADS = stems("frames.part.heads")
"""What is cancelled next to the thing that it is of: "my trip to Japan"."""
_NO_PERSON = compiled("{no_person}")
"""What someone is and is not called: "Italian"."""
_TITLED = re.compile(r"(?:dr|mr|mrs|ms|prof)\b", re.IGNORECASE)
MOST_WORDS = 6  # of the name of a thing
_FEW = 3  # words of a bare value


def without_heads(value: frozenset[str]) -> frozenset[str]:
    """Return what is cancelled, without the word for the sort of plan that it is, and when that is."""
    return value - _HEADS - _DAY_STEMS or value


def claims_of_thing(subject: str, text: str, *, affirmed: bool, ended: bool) -> list[Claim]:
    """Return what is said of a thing of someone's; none where no rule reads it."""
    off = _OFF.match(text)
    if off and affirmed:
        return [Claim(subject, "*", value_of(off["np"]), Cardinality.MANY, ended=True)]
    match = _IS.match(text)
    if match is None:
        return []
    np, value, prep = match["np"].strip(), match["v"], (match["prep"] or "").lower()
    words = [
        word for word in words_in(np) if word not in {"my", "our", "the", "s", "new", "current", "latest", "preferred"}
    ]
    if not words or len(words) > MOST_WORDS or words[0] == "1":  # a longer phrase is no name; or one of several
        return []
    moved = bool(_MOVED.search(text[len(np) : match.start("v")]))
    verb = text[len(np) : match.start("v")].split(maxsplit=1)[0].lower()
    if not moved and (_HAPPENED_TO.match(value) or (verb in {"was", "were"} and not ended)):
        return []  # "was built in 1932", and what was so, and may be
    attribute, holds, aspect = _attribute(words, value, prep, moved=moved)
    if holds is None:
        return []
    holds = _of_now(holds, np)
    qualified = re.match(r"(?P<v>[$€£]?\d\S*) (?P<of>(?:for|in|of|at|on|an?|per|each|every) .+)$", value)
    if qualified:
        attribute, value = f"{attribute} {' '.join(stem(words_in(qualified['of'])))}", qualified["v"]
    before = value_of(match["from"][5:]) if match["from"] else frozenset()
    claim = Claim(
        subject, attribute, value_of(value), holds, affirmed=affirmed, ended=ended, left=before,
        named=bool(names_of(value)), names=names_of(value), measure=measure_of(value),
        aspect="" if moved and aspect != "when" else aspect,
    )  # fmt: skip
    return [_timed(claim, value)] if aspect == "when" else [claim]


def _of_now(holds: Cardinality, thing: str) -> Cardinality:
    """Return how many values a thing has: of "my current project" one, as there is no other."""
    return Cardinality.ONE if holds is Cardinality.MAYBE_ONE and "current" in words_in(thing) else holds


def _timed(claim: Claim, value: str) -> Claim:
    """Return a claim of a time, its value as days and as a time of day."""
    clock = frozenset() if _DATE.search(value) else clock_of(value)
    days = frozenset(stem([word for word in words_in(value) if word in DAYS]))
    return replace(claim, value=(days | clock) if clock else claim.value, named=False, measure=None)


class _Clause:
    """A thing and what is said of it."""

    def __init__(self, words: Sequence[str], value: str, prep: str, *, moved: bool) -> None:
        self.words, self.value, self.prep, self.moved = words, value, prep, moved
        self.thing, self.attribute = " ".join(words), " ".join(stem(words))
        if self.words[-2:] == ["email", "address"]:
            self.thing, self.attribute = (text.removesuffix(" address") for text in (self.thing, self.attribute))
        self.first = (words_in(value) or [""])[0]
        self.amount = self.first[:1].isdigit()
        self.named = bool(names_of(value))
        self.bare = not (self.named or re.match(r"(?:an?|the) ", value) or self.amount)  # an adjective or an infinitive
        self.aspect = prep or ("amount" if self.amount else "which")
        self.single = bool(SINGULAR.match(self.thing)) or moved
        self.is_event = bool(EVENTS.match(self.thing))
        self.is_valued = bool(VALUED.match(self.thing))


_Said = tuple[str, Cardinality | None, str]
"""The attribute, how many values it holds (None: the clause says nothing of it), and the aspect."""


def _favorite(clause: _Clause) -> _Said:
    kept = stem([word for word in clause.words if word not in _FAVORITE])
    return f"favorite {' '.join(kept)}", Cardinality.MAYBE_ONE if is_plural(clause.thing) else Cardinality.ONE, ""


def _when(clause: _Clause) -> _Said:
    several = Cardinality.MAYBE_ONE if clause.moved else Cardinality.MANY  # another time is another meeting
    return f"when {clause.attribute}", several if clause.is_event else Cardinality.ONE, "when"


def _name(clause: _Clause) -> _Said:
    own = clause.attribute == "name" or clause.words[0] in _OWN_NAMES or clause.is_event
    return clause.attribute, Cardinality.ONE if own else Cardinality.MAYBE_ONE, ""  # one may have several cats


def _relation(clause: _Clause) -> _Said:
    relation = RELATIONS[clause.thing]
    holds = Cardinality.MAYBE_ONE if relation in MOSTLY_ONE else Cardinality.MANY
    holds = Cardinality.ONE if relation in ONE_AT_A_TIME else holds
    said = clause.named and not clause.prep and (is_first_name(clause.first) or not _NO_PERSON.match(clause.value))
    return relation, holds if said else None, "titled" if _TITLED.match(clause.value) else "which"


def _bare(clause: _Clause) -> _Said:
    aspect = clause.prep or ("word" if clause.is_valued else clause.aspect)
    holds = _of_bare(clause.thing, clause.value, single=clause.single, moved=clause.moved, prep=clause.prep)
    return clause.attribute, holds, aspect


_FAVORITE = frozenset({"favorite", "favourite"})
_OWN_NAMES = frozenset({"last", "first", "sur", "full", "family"})
_SAID_OF_THINGS: tuple[tuple[str, Callable[[_Clause], bool], Callable[[_Clause], _Said]], ...] = (
    ("favorite", lambda clause: not _FAVORITE.isdisjoint(clause.words), _favorite),
    (
        "when",
        lambda clause: bool(_WHEN.search(clause.value) or (clause.prep in {"at", "to"} and _AT.match(clause.value))),
        _when,
    ),
    ("name", lambda clause: clause.attribute == "name" or clause.attribute.endswith(" name"), _name),
    ("relation", lambda clause: clause.thing in RELATIONS, _relation),
    (
        "colour",
        lambda clause: clause.first in _COLOURS,
        lambda clause: (f"colour of {clause.attribute}", Cardinality.ONE, ""),
    ),
    ("bare", lambda clause: clause.bare, _bare),
    (
        "valued",
        lambda clause: clause.is_valued,
        lambda clause: (clause.attribute, Cardinality.ONE, clause.prep or ("amount" if clause.amount else "word")),
    ),
    (
        "single",
        lambda clause: clause.single and not (clause.is_event and not clause.moved),
        lambda clause: (clause.attribute, Cardinality.ONE, clause.aspect),
    ),
    ("other", lambda _: True, lambda clause: (clause.attribute, Cardinality.MAYBE_ONE, clause.aspect)),
)
"""What is said of a thing, in order: the first row that applies decides."""


def _attribute(words: list[str], value: str, prep: str, *, moved: bool) -> _Said:
    """Return what is said of a thing."""
    clause = _Clause(words, value, prep, moved=moved)
    return next(said(clause) for _, applies, said in _SAID_OF_THINGS if applies(clause))


def _of_bare(thing: str, value: str, *, single: bool, moved: bool, prep: str) -> Cardinality | None:
    """How many values a bare word is of; None for "my laptop is slow", which says nothing of its other qualities."""
    short = len(words_in(value)) <= _FEW
    if prep == "to" and single and not moved:
        return Cardinality.MAYBE_ONE  # "my goal is to run a marathon"
    if moved or (short and not prep and VALUED.match(thing)):
        return Cardinality.ONE if single and short else None
    return None
