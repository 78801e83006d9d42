"""What two statements decide of an attribute that both speak of: it has ended, it has changed, it may hold both."""

from __future__ import annotations

import re

from memoryd.knowledge.comparison.ending import by_ending
from memoryd.knowledge.comparison.rules import AGREED, APART, SAID, Finding, Relation, Rule, deciding
from memoryd.knowledge.grammar.pattern import expanded
from memoryd.knowledge.grammar.places import LANDS, is_district_of
from memoryd.knowledge.grammar.relations import KIN, RELATIONS, SEVERAL
from memoryd.knowledge.lexicon.load import stems
from memoryd.knowledge.lexicon.spelling import stem
from memoryd.knowledge.statement.claim import PLACES, Cardinality, Claim
from memoryd.knowledge.statement.reader import Statement

__all__ = ["ATTRIBUTE_RULES", "ClaimPair", "by_claims"]

MEASURES_EQUAL = 0.02
"""Amounts that differ by less are one amount in two units."""
_CURRENCIES = stems("frames.part.currencies")
_REGIONS = stems("frames.part.regions")
"""Words of places that are larger than a town."""
_FORMS_OF_FIRMS = stems("frames.part.forms_of_firms")


class ClaimPair:
    """Two claims of one attribute, and the newer statement."""

    def __init__(self, new: Claim, old: Claim, statement: Statement) -> None:
        self.new, self.old, self.said = new, old, statement
        self.attribute = new.attribute
        self.equal = _one_value(new, old)
        """Whether both have one value, or one amount in two units."""

    @property
    def denies(self) -> bool:
        """Whether the newer one denies, or affirms what was denied."""
        return self.new.ended or self.new.affirmed != self.old.affirmed

    @property
    def is_denied(self) -> bool:
        """Whether the older one, which was so, is so no longer: "no tea" ends "green tea", and not the other way."""
        new, old = self.new, self.old
        covers = new.covers(old)
        if new.ended and old.value <= new.value and new.value - old.value <= _FORMS_OF_FIRMS:
            covers = True
        return old.affirmed and (self.equal or covers)

    @property
    def is_inside(self) -> bool:
        """Whether one value says less of the same than the other; of two positions both are said in full."""
        if self.attribute == "occupation" and self.new.value < self.old.value and "promoted" in self.said.text:
            return False
        return bool(self.new.value) and (self.new.value <= self.old.value or self.old.value <= self.new.value)

    @property
    def is_place_in_land(self) -> bool:
        """Whether one is a land and the other is none: a town may lie there."""
        lands = bool(self.new.value & LANDS), bool(self.old.value & LANDS)
        return self.attribute in PLACES and lands[0] != lands[1] and not self.said.changing

    @property
    def is_district(self) -> bool:
        """Whether one is a part of the other: Kreuzberg lies in Berlin."""
        new, old = self.new.value, self.old.value
        return self.attribute in PLACES and (is_district_of(new, old) or is_district_of(old, new))

    @property
    def is_region(self) -> bool:
        """Whether one is a region, in which the other may lie: the Bay Area, Yorkshire."""
        regions = [
            bool(value & _REGIONS) or any(word.endswith("shir") for word in value)
            for value in (self.new.value, self.old.value)
        ]
        return self.attribute in PLACES and regions[0] != regions[1]

    @property
    def is_of_another_aspect(self) -> bool:
        """Whether they answer two questions of one thing: where and how large, on which day and at what time."""
        return _aspects_differ(self.new, self.old)

    @property
    def is_of_another_unit(self) -> bool:
        """Whether two amounts count different things: years and dollars, a price and a share of it."""
        return _units_differ(self.new, self.old)

    @property
    def is_younger(self) -> bool:
        """Whether the newer age is lower."""
        ages = [next((int(word) for word in claim.value if word.isdecimal()), 0) for claim in (self.new, self.old)]
        return ages[0] < ages[1]

    @property
    def may_hold_both(self) -> bool:
        """Whether the attribute has mostly one value, or a name stands next to a description."""
        return self.new.holds is Cardinality.MAYBE_ONE or self.new.named != self.old.named

    def changed(self, rule: str, reason: str) -> Finding:
        """Return that both cannot be true; `{}` in the reason is the attribute."""
        return Finding(Relation.CHANGED, rule, reason.format(repr(self.attribute)))

    def doubtful(self, rule: str, reason: str) -> Finding:
        """Return that both may not be true; `{}` in the reason is the attribute."""
        return Finding(Relation.DOUBTFUL, rule, reason.format(repr(self.attribute)))


def _one_value(new: Claim, old: Claim) -> bool:
    if new.measure is None or old.measure is None or new.measure[0] != old.measure[0]:
        return new.value == old.value
    if {*filter(str.isalpha, new.value)} == {*filter(str.isalpha, old.value)}:
        return new.value == old.value  # in one unit
    most = max(abs(new.measure[1]), abs(old.measure[1]))
    return abs(new.measure[1] - old.measure[1]) <= MEASURES_EQUAL * most


def _aspects_differ(new: Claim, old: Claim) -> bool:
    if new.attribute == old.attribute == "birthday":
        years = [{word.isdigit() and len(word) == 4 for word in claim.value} for claim in (new, old)]  # noqa: PLR2004
        return years in ([{True}, {False}], [{False}, {True}])
    if new.aspect == old.aspect == "when":
        clocks = [{":" in word for word in claim.value} for claim in (new, old)]
        return clocks in ([{True}, {False}], [{False}, {True}])
    return bool(new.aspect and old.aspect) and new.aspect != old.aspect


def _units_differ(new: Claim, old: Claim) -> bool:
    if new.named or old.named or (new.measure and old.measure):
        return False
    words = [{word for word in claim.value if word[0].isalpha()} for claim in (new, old)]
    one, other = ((some - _CURRENCIES) | ({"money"} if some & _CURRENCIES else set()) for some in words)
    return one != other and (bool(one and other) or "percent" in one | other)


_SPEAKERS = frozenset({"i", "we", ""})
_DESCRIBED = frozenset(["home", "employer"])
"""Attributes whose value is a name or a description."""


_TO_TOWN = re.compile(expanded("{to_town}"))
"""Where someone moved, if it is no description: "moved to leeds"."""


def _same_holder(new: Claim, old: Claim, *, same_subject: bool) -> bool:
    if new.relation and old.relation and new.relation != old.relation:
        return False
    if new.attribute == "life" and new.subject in _SPEAKERS:
        return False  # who says so lives
    if new.subject == old.subject or (
        new.attribute == "life" and not old.aspect and {*stem([new.subject])} <= old.names
    ):
        return True  # or it tells of the death of someone that the older one names
    if new.subject in KIN and old.subject in KIN:
        return False  # no mother is a father
    if new.subject in _SPEAKERS and old.subject in _SPEAKERS:
        return True
    return same_subject and new.subject not in _SPEAKERS and old.subject not in _SPEAKERS


def by_claims(statement: Statement, known: Statement, *, same_subject: bool) -> Finding | None:
    """Return what the claims decide; None where they share no attribute."""
    best: Finding | None = None
    for new in statement.claims:
        for old in known.claims:
            if not _same_holder(new, old, same_subject=same_subject):
                continue
            if new.attribute == old.attribute:
                finding = _of_attribute(new, old, statement)
            else:
                finding = by_ending(new, old)
                if finding is APART:
                    continue
            if finding.relation is Relation.CHANGED and not (statement.is_sure and known.is_sure):
                finding = Finding(Relation.DOUBTFUL, "perhaps", f"{finding.reason}, as it may be put")
            if finding.relation is Relation.CHANGED and _perhaps_another(new, old, statement):
                finding = Finding(
                    Relation.DOUBTFUL, "perhaps_another", "it may be said of another, or of more than one"
                )
            if (
                best is None
                or best.relation is Relation.APART
                or _STRENGTH[finding.relation] > _STRENGTH[best.relation]
            ):
                best = finding
    return best


def _perhaps_another(new: Claim, old: Claim, statement: Statement) -> bool:
    """Whether they may be said of two: of Sam and Samuel, Sarah and Sarah Connor, me and us, one friend and another."""
    if {new.subject, old.subject} & SEVERAL and not statement.changing:
        return True
    if new.subject in _SPEAKERS or old.subject in _SPEAKERS:
        return {new.subject, old.subject} == {"i", "we"}
    return new.subject != old.subject and not {new.subject, old.subject} & RELATIONS.keys()


_STRENGTH = {Relation.APART: 0, Relation.SAME: 1, Relation.DOUBTFUL: 2, Relation.CHANGED: 3}


ATTRIBUTE_RULES: tuple[Rule[ClaimPair], ...] = (
    Rule(
        "another_aspect",
        lambda p: p.is_of_another_aspect,
        APART,
        (("My dog is 3", "My dog is a beagle"), ("I was born in 1990", "I was born in May")),
    ),
    Rule(
        "after_the_past",
        lambda p: p.old.ended and not p.new.ended,
        APART,
        (("I was a teacher", "I am a nurse"), ("I left Google in 2019", "I work at Apple")),
    ),
    Rule(
        "denied_again",
        lambda p: (
            (p.old.ended or not (p.old.affirmed or p.new.affirmed)) and p.equal and p.new.affirmed == p.old.affirmed
        ),
        AGREED,
        (
            ("I don't eat meat", "I do not eat meat"),
            ("I dislike loud music in restaurants", "I hate loud music in restaurants"),
        ),
    ),
    Rule(
        "denied_another",
        lambda p: p.old.ended or not (p.old.affirmed or p.new.affirmed),
        APART,
        (("I don't like tea", "I don't like coffee"),),
    ),
    Rule(
        "affirmed",
        lambda p: p.denies and not p.old.affirmed and p.new.affirmed and not p.new.ended and p.equal,
        lambda p: p.changed("negated", "it was denied of {}, and is so now"),
        (("I hate cilantro", "I like cilantro"), ("I don't have a car", "I have a car")),
    ),
    Rule(
        "denied",
        lambda p: p.denies and p.is_denied,
        lambda p: p.changed("negated", "what it said of {} is denied"),
        (("I love jazz", "I hate jazz"), ("I work at Google", "I left Google")),
    ),
    Rule(
        "denies_something_else",
        lambda p: p.denies,
        APART,
        (("I don't eat pork", "I eat beef"), ("I don't like tea", "I like coffee")),
    ),
    Rule(
        "replaced",
        lambda p: bool(p.new.left) and p.new.left <= p.old.value and p.attribute != "prefers",
        lambda p: p.changed("replaced", "{} is said to have changed from this"),
        (("I use vim", "I use emacs instead of vim"), ("I use vim", "I use emacs now instead of vim")),
    ),
    Rule("same_value", lambda p: p.equal, SAID, (("I like tea", "I like tea."), ("I weigh 80 kg", "I weigh 176 lbs"))),
    Rule(
        "preference",
        lambda p: p.attribute == "prefers",
        lambda p: _preferred(p.new, p.old, p.said),
        (("I prefer tea", "I prefer aisle seats"), ("I prefer tea", "I prefer window seats")),
    ),
    Rule(
        "one_of_many",
        lambda p: p.new.holds is Cardinality.MANY,
        AGREED,
        (("I use Slack", "I use Zoom"), ("I love cats", "I love dogs")),
    ),
    Rule(
        "says_less_or_more",
        lambda p: p.is_inside,
        APART,
        (("I live in Berlin", "I live in Berlin Mitte"), ("I live in Berlin", "I live in Berlin-Kreuzberg")),
    ),
    Rule(
        "another_aim",
        lambda p: p.new.aspect == "to" and not p.new.value & p.old.value,
        APART,
        (
            ("My plan is to visit Rome", "My plan is to learn guitar"),
            ("My goal is to run a marathon", "My goal is to learn Spanish"),
        ),
    ),
    Rule(
        "another_unit",
        lambda p: p.new.aspect == "amount" and p.is_of_another_unit,
        APART,
        (("My gym is 30 euros", "My gym is 5 km away"), ("My phone is 900 dollars", "My phone is 6 inches")),
    ),
    Rule(
        "another_dimension",
        lambda p: bool(p.new.measure and p.old.measure and p.new.measure[0] != p.old.measure[0]),
        APART,
        (("My bag is 5 kg", "My bag is 40 cm"),),
    ),
    Rule(
        "town_and_land",
        lambda p: p.is_place_in_land,
        APART,
        (("I'm from Spain", "I'm from Seville"), ("I live in Germany", "I live in Berlin")),
    ),
    Rule(
        "district",
        lambda p: p.is_district,
        lambda p: p.doubtful("district", "{} may be the same, told as the city and as a part of it"),
        (
            ("I live in Berlin", "I live in Kreuzberg"),
            ("I live in London", "I live in Camden Town"),
            ("I live in Brooklyn", "I live in New York"),
        ),
    ),
    Rule(
        "region",
        lambda p: p.is_region,
        lambda p: p.doubtful("region", "{} may be the same, told as the town and as where it lies"),
        (("I live in San Francisco", "I live in the Bay Area"), ("I live in Leeds", "I live in Yorkshire")),
    ),
    Rule(
        "described",
        lambda p: p.attribute in _DESCRIBED and not (p.new.named and p.old.named),
        lambda p: _of_descriptions(p.new, p.old, p.said),
        (("I work for Google", "I work for fun"), ("I work at Google", "I work at night")),
    ),
    Rule("added", lambda p: p.said.adding, APART, (("My favorite food is pizza", "My favorite food is also soup"),)),
    Rule(
        "of_an_earlier_year",
        lambda p: bool(p.new.since) and p.new.since < p.old.since,
        APART,
        (("I moved to Berlin in 2019", "I moved to Rome in 2015"),),
    ),
    Rule(
        "dated",
        lambda p: bool(p.new.since and not p.old.since),
        lambda p: p.doubtful("dated", "{} was another in an earlier year, or is now"),
        (("I live in Berlin", "I moved to Rome in 2015"),),
    ),
    Rule(
        "younger",
        lambda p: p.attribute == "age" and p.is_younger,
        lambda p: p.doubtful("younger", "nobody gets younger: it corrects the age, or is of another"),
        (("My neighbor is 50", "My neighbor is 30 years old"),),
    ),
    Rule(
        "said_to_change",
        lambda p: p.may_hold_both and p.said.changing,
        lambda p: p.changed("changed", "{} is said to have changed"),
        (("I drive a Honda", "I now drive a Tesla"), ("I work as a nurse", "I now work as a teacher")),
    ),
    Rule(
        "maybe_two",
        lambda p: p.may_hold_both,
        lambda p: p.doubtful("maybe_one", "{} has another value, and may have two"),
        (("I am a nurse", "I am a writer"), ("I am a student", "I am a barista")),
    ),
    Rule(
        "one_value",
        lambda _: True,
        lambda p: p.changed("one_value", "{} holds one value at a time, and it is another now"),
        (("I'm 34", "I'm 35"), ("I am single", "I am engaged")),
    ),
)


def _of_attribute(new: Claim, old: Claim, statement: Statement) -> Finding:
    """Return what two claims of one attribute decide."""
    pair = ClaimPair(new, old, statement)
    return deciding(ATTRIBUTE_RULES, pair).decide(pair)


def _of_descriptions(new: Claim, old: Claim, statement: Statement) -> Finding:
    """Compare "a small flat" with "Berlin", or with "a house"."""
    if old.named and _TO_TOWN.search(statement.text):
        return Finding(Relation.DOUBTFUL, "maybe_town", "a town may be named, without a capital letter")
    if new.named != old.named and not (statement.changing and new.named):
        return APART  # a name and a description may be of one
    return Finding(Relation.DOUBTFUL, "maybe_one", f"{new.attribute!r} is described, and may be the same")


def _preferred(new: Claim, old: Claim, statement: Statement) -> Finding:
    if new.value == old.left and new.left in {frozenset(), old.value}:
        return Finding(Relation.CHANGED, "replaced", "the preference was turned round")
    left = new.left and new.left <= old.value
    if left and statement.changing:
        return Finding(Relation.CHANGED, "changed", "the preference is said to have changed")
    shared = new.value & old.value
    if (left and not old.left) or (new.head == old.head and shared and new.value != old.value):
        return Finding(Relation.DOUBTFUL, "preference", "another is preferred, perhaps of the same things")
    return APART
