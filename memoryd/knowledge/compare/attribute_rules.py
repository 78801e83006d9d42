"""What two statements decide of an attribute that both speak of: it has ended, it has changed, it may hold both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from memoryd.knowledge.claims.attributes import MEAT, PLACES
from memoryd.knowledge.claims.claim import Cardinality, Claim
from memoryd.knowledge.claims.statement import Statement
from memoryd.knowledge.claims.things import without_heads
from memoryd.knowledge.compare.finding import AGREED, APART, SAID, Finding, Relation
from memoryd.knowledge.compare.rules import Rule, deciding
from memoryd.knowledge.language.relations import RELATIONS, SEVERAL
from memoryd.knowledge.language.stems import stem, word_set

__all__ = ["ATTRIBUTE_RULES", "ENDING", "ClaimPair", "by_claims"]

MEASURES_EQUAL = 0.02
"""Amounts that differ by less are one amount in two units."""
_LANDS = frozenset(
    stem(
        word_set("""
    afghanistan albania algeria argentina armenia australia austria azerbaijan bangladesh belarus belgium bolivia bosnia
    brazil bulgaria cambodia cameroon canada chile china colombia croatia cuba cyprus czechia denmark ecuador egypt
    england estonia ethiopia finland france georgia germany ghana greece guatemala hungary iceland india indonesia iran
    iraq ireland israel italy jamaica japan jordan kazakhstan kenya korea kuwait laos latvia lebanon lithuania
    luxembourg malaysia malta mexico moldova mongolia morocco mozambique myanmar nepal netherlands nigeria norway oman
    pakistan panama paraguay peru philippines poland portugal qatar romania russia scotland senegal serbia singapore
    slovakia slovenia spain sudan sweden switzerland syria taiwan tanzania thailand tunisia turkey uganda ukraine
    uruguay usa uk uzbekistan venezuela vietnam wales yemen zambia zimbabwe america europe asia africa
    zealand states kingdom rica lanka arabia emirates rico
    california texas florida ohio michigan oregon nevada utah colorado arizona georgia illinois massachusetts bavaria
    scandinavia tuscany catalonia brittany queensland ontario quebec
""")
    )
)
"""Countries and other lands, in which a town may lie."""
ENDING = frozenset(["*", "partners", "consumes"])
"""Attributes of claims that may end one of another attribute."""
_SPEAKERS = frozenset({"i", "we", ""})
_DESCRIBED = frozenset(["home", "employer"])
"""Attributes whose value is a name or a description."""
_CANCELLED = frozenset(["plans", "trip", "subscriptions"])
_LEFT = frozenset(["uses", "home", "vehicle", "plans", "prefers", "has"])
_PARTNERS = frozenset(["wife", "husband", "girlfriend", "boyfriend", "partner", "fiancé", "fiancée"])
_MEAT = frozenset(stem(word_set(MEAT)))
_MEATLESS = frozenset(stem(word_set("vegan vegetarian pescatarian pescetarian")))
_FORMS_OF_FIRMS = frozenset(stem(word_set("inc corp corporation ltd llc gmbh ag company co plc group")))


def _same_holder(new: Claim, old: Claim, *, same_subject: bool) -> bool:
    if new.relation and old.relation and new.relation != old.relation:
        return False
    if new.subject == old.subject:
        return True
    if new.subject in _SPEAKERS and old.subject in _SPEAKERS:
        return True
    return same_subject and new.subject not in _SPEAKERS and old.subject not in _SPEAKERS


def by_claims(said: Statement, known: Statement, *, same_subject: bool) -> Finding | None:
    """Return what the claims decide; None where they share no attribute."""
    best: Finding | None = None
    for new in said.claims:
        for old in known.claims:
            if not _same_holder(new, old, same_subject=same_subject):
                continue
            if new.attribute == old.attribute:
                finding = _of_attribute(new, old, said)
            elif _ends(new, old):
                finding = Finding(Relation.CHANGED, "ended", f"what it said of {old.attribute!r} has ended")
            else:
                continue
            if finding.relation is Relation.CHANGED and _perhaps_another(new, old, said):
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


def _perhaps_another(new: Claim, old: Claim, said: Statement) -> bool:
    """Whether they may be said of two: of Sam and Samuel, Sarah and Sarah Connor, me and us, one friend and another."""
    if {new.subject, old.subject} & SEVERAL and not said.changing:
        return True
    if new.subject in _SPEAKERS or old.subject in _SPEAKERS:
        return {new.subject, old.subject} == {"i", "we"}
    return new.subject != old.subject and not {new.subject, old.subject} & RELATIONS.keys()


_STRENGTH = {Relation.APART: 0, Relation.SAME: 1, Relation.DOUBTFUL: 2, Relation.CHANGED: 3}


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a claim ends one of another attribute; both are affirmed or ended as `_ends` asks."""

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
        lambda new, old: new.affirmed and not new.ended and new.value <= _MEAT and bool(old.value & _MEATLESS),
    ),
    # "I switched from vim to emacs": what it was before
    _Ending(
        "left",
        lambda new, old: bool(new.left) and (new.left <= old.value or bool(new.left & old.names)),
        lambda _, old: old.attribute in _LEFT or old.attribute.startswith("uses") or old.aspect == "which",
    ),
)


def _is_over(claim: Claim) -> bool:
    return claim.ended and bool(claim.value)


def _thing_of(claim: Claim) -> set[str]:
    return {*claim.attribute.split()} - {"when", "colour", "of"}


def _ends(new: Claim, old: Claim) -> bool:
    """Whether a claim ends one of another attribute: the first way that applies decides."""
    if old.ended or not old.affirmed:
        return False
    ending = next((one for one in _ENDINGS if one.applies(new, old)), None)
    return ending is not None and ending.ends(new, old)


def _equal(new: Claim, old: Claim) -> bool:
    if new.measure is None or old.measure is None or new.measure[0] != old.measure[0]:
        return new.value == old.value
    if {*filter(str.isalpha, new.value)} == {*filter(str.isalpha, old.value)}:
        return new.value == old.value  # in one unit
    most = max(abs(new.measure[1]), abs(old.measure[1]))
    return abs(new.measure[1] - old.measure[1]) <= MEASURES_EQUAL * most


class ClaimPair:
    """Two claims of one attribute, and the newer statement."""

    def __init__(self, new: Claim, old: Claim, said: Statement) -> None:
        self.new, self.old, self.said = new, old, said
        self.attribute = new.attribute

    @cached_property
    def equal(self) -> bool:
        """Whether both have one value, or one amount in two units."""
        return _equal(self.new, self.old)

    @property
    def denies(self) -> bool:
        """Whether the newer one denies, or affirms what was denied."""
        return self.new.ended or self.new.affirmed != self.old.affirmed

    @property
    def is_denied(self) -> bool:
        """Whether the older one, which was so, is so no longer: "no tea" ends "green tea", and not the other way."""
        new, old = self.new, self.old
        covers = new.value <= old.value and old.head in {"", *new.value}
        if new.ended and old.value <= new.value and new.value - old.value <= _FORMS_OF_FIRMS:
            covers = True
        return old.affirmed and (self.equal or covers)

    @property
    def is_inside(self) -> bool:
        """Whether one value says less of the same than the other."""
        return bool(self.new.value) and (self.new.value <= self.old.value or self.old.value <= self.new.value)

    @property
    def is_place_in_land(self) -> bool:
        """Whether one is a land and the other is none: a town may lie there."""
        lands = bool(self.new.value & _LANDS), bool(self.old.value & _LANDS)
        return self.attribute in PLACES and lands[0] != lands[1] and not self.said.changing

    @property
    def may_hold_both(self) -> bool:
        """Whether the attribute has mostly one value, or a name stands beside a description."""
        return self.new.holds is Cardinality.MAYBE_ONE or self.new.named != self.old.named

    def changed(self, rule: str, reason: str) -> Finding:
        """Return that both cannot be true; `{}` in the reason is the attribute."""
        return Finding(Relation.CHANGED, rule, reason.format(repr(self.attribute)))

    def doubtful(self, rule: str, reason: str) -> Finding:
        """Return that both may not be true; `{}` in the reason is the attribute."""
        return Finding(Relation.DOUBTFUL, rule, reason.format(repr(self.attribute)))


ATTRIBUTE_RULES: tuple[Rule[ClaimPair], ...] = (
    Rule(
        "another_aspect",
        lambda p: _aspects_differ(p.new, p.old),
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
        lambda p: p.denies and not p.old.affirmed and p.new.affirmed and p.equal,
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
        lambda p: p.new.aspect == "amount" and _units_differ(p.new, p.old),
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
        lambda p: p.attribute == "age" and _younger(p.new, p.old),
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


def _of_attribute(new: Claim, old: Claim, said: Statement) -> Finding:
    """Return what two claims of one attribute decide."""
    pair = ClaimPair(new, old, said)
    return deciding(ATTRIBUTE_RULES, pair).decide(pair)


def _of_descriptions(new: Claim, old: Claim, said: Statement) -> Finding:
    """Compare "a small flat" with "Berlin", or with "a house"."""
    if new.named != old.named and not (said.changing and new.named):
        return APART  # a name and a description may be of one
    return Finding(Relation.DOUBTFUL, "maybe_one", f"{new.attribute!r} is described, and may be the same")


def _aspects_differ(new: Claim, old: Claim) -> bool:
    """Whether they answer two questions of one thing: where it is and how large, or on which day and at what time."""
    if new.attribute == old.attribute == "birthday":
        years = [{word.isdigit() and len(word) == 4 for word in claim.value} for claim in (new, old)]  # noqa: PLR2004
        return years in ([{True}, {False}], [{False}, {True}])
    if new.aspect == old.aspect == "when":
        clocks = [{":" in word for word in claim.value} for claim in (new, old)]
        return clocks in ([{True}, {False}], [{False}, {True}])
    return bool(new.aspect and old.aspect) and new.aspect != old.aspect


_CURRENCIES = frozenset(stem(word_set("dollar dollars euro euros pound pounds usd eur gbp bucks quid")))


def _units_differ(new: Claim, old: Claim) -> bool:
    """Whether two amounts count different things: years and dollars, a price and a share of it."""
    if new.named or old.named or (new.measure and old.measure):
        return False
    words = [{word for word in claim.value if word[0].isalpha()} for claim in (new, old)]
    one, other = ((some - _CURRENCIES) | ({"money"} if some & _CURRENCIES else set()) for some in words)
    return one != other and (bool(one and other) or "percent" in one | other)


def _younger(new: Claim, old: Claim) -> bool:
    ages = [next((int(word) for word in claim.value if word.isdecimal()), 0) for claim in (new, old)]
    return ages[0] < ages[1]


def _preferred(new: Claim, old: Claim, said: Statement) -> Finding:
    if new.value == old.left and new.left in {frozenset(), old.value}:
        return Finding(Relation.CHANGED, "replaced", "the preference was turned round")
    left = new.left and new.left <= old.value
    if left and said.changing:
        return Finding(Relation.CHANGED, "changed", "the preference is said to have changed")
    shared = new.value & old.value
    if (left and not old.left) or (new.head == old.head and shared and new.value != old.value):
        return Finding(Relation.DOUBTFUL, "preference", "another is preferred, perhaps of the same things")
    return APART
