"""What two statements decide of an attribute that both speak of: it has ended, it has changed, it may hold both."""

from __future__ import annotations

from memoryd.knowledge.claims.attributes import MEAT
from memoryd.knowledge.claims.claim import Cardinality, Claim
from memoryd.knowledge.claims.statement import Statement
from memoryd.knowledge.claims.things import without_heads
from memoryd.knowledge.compare.finding import AGREED, APART, SAID, Finding, Relation
from memoryd.knowledge.language.relations import RELATIONS, SEVERAL
from memoryd.knowledge.language.stems import stem, word_set

__all__ = ["ENDING", "by_claims"]

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


def _ends(new: Claim, old: Claim) -> bool:
    """Whether a claim ends one of another attribute: "switched from A", "stopped doing A"."""
    if old.ended or not old.affirmed:
        return False
    if new.attribute == "*":
        if not new.ended or not new.value:
            return False
        if old.attribute in _CANCELLED:
            return without_heads(new.value) <= old.value
        thing = {*old.attribute.split()} - {"when", "colour", "of"}
        if old.attribute.startswith(("amount of ", "number of ", "time of ")):
            return new.value <= thing
        return new.value == thing or (new.value <= old.value and old.head in {"", *new.value})
    if new.attribute == "partners":
        return old.attribute in _PARTNERS and bool(new.value & old.value)
    if new.attribute == "consumes" and old.attribute == "diet":
        return new.affirmed and not new.ended and new.value <= _MEAT and bool(old.value & _MEATLESS)
    left = bool(new.left) and (new.left <= old.value or bool(new.left & old.names))
    return left and (old.attribute in _LEFT or old.attribute.startswith("uses") or old.aspect == "which")


_CANCELLED = frozenset(["plans", "trip", "subscriptions"])
_LEFT = frozenset(["uses", "home", "vehicle", "plans", "prefers", "has"])
_PARTNERS = frozenset(["wife", "husband", "girlfriend", "boyfriend", "partner", "fiancé", "fiancée"])
_MEAT = frozenset(stem(word_set(MEAT)))
_MEATLESS = frozenset(stem(word_set("vegan vegetarian pescatarian pescetarian")))


_FORMS_OF_FIRMS = frozenset(stem(word_set("inc corp corporation ltd llc gmbh ag company co plc group")))


def _equal(new: Claim, old: Claim) -> bool:
    if new.measure is None or old.measure is None or new.measure[0] != old.measure[0]:
        return new.value == old.value
    if {*filter(str.isalpha, new.value)} == {*filter(str.isalpha, old.value)}:
        return new.value == old.value  # in one unit
    most = max(abs(new.measure[1]), abs(old.measure[1]))
    return abs(new.measure[1] - old.measure[1]) <= MEASURES_EQUAL * most


def _of_attribute(new: Claim, old: Claim, said: Statement) -> Finding:
    attribute = new.attribute
    if _aspects_differ(new, old):
        return APART
    equal = _equal(new, old)
    if old.ended != new.ended and old.ended:
        return APART  # what was once so may be followed by anything
    if old.ended or (not old.affirmed and not new.affirmed):
        return AGREED if equal and new.affirmed == old.affirmed else APART
    if new.ended or new.affirmed != old.affirmed:
        if not old.affirmed and new.affirmed and equal:
            return Finding(Relation.CHANGED, "negated", f"it was denied of {attribute!r}, and is so now")
        # "no tea" ends "green tea"; "no green tea" does not end "tea", nor "no car" a car seat
        covers = new.value <= old.value and old.head in {"", *new.value}
        if new.ended and old.value <= new.value and new.value - old.value <= _FORMS_OF_FIRMS:
            covers = True
        if old.affirmed and (equal or covers):
            return Finding(Relation.CHANGED, "negated", f"what it said of {attribute!r} is denied")
        return APART
    if new.left and new.left <= old.value and attribute != "prefers":
        return Finding(Relation.CHANGED, "replaced", f"{attribute!r} is said to have changed from this")
    if equal:
        return SAID
    if attribute == "prefers":
        return _preferred(new, old, said)
    if new.holds is Cardinality.MANY:
        return AGREED  # another one of many, unless the words are a paraphrase
    inside = bool(new.value) and (new.value <= old.value or old.value <= new.value)
    if inside or (new.aspect == "to" and not new.value & old.value):
        return APART
    if new.aspect == "amount" and _units_differ(new, old):
        return APART
    if new.measure and old.measure and new.measure[0] != old.measure[0]:
        return APART
    if attribute in _PLACES and bool(new.value & _LANDS) != bool(old.value & _LANDS) and not said.changing:
        return APART  # a town and a country: it may lie there
    if attribute in _DESCRIBED and not (new.named and old.named):
        return _of_descriptions(new, old, said)
    if said.adding:
        return APART  # "also", "another": beside it
    if new.since and new.since < old.since:
        return APART  # it was so before
    if new.since and not old.since:
        return Finding(Relation.DOUBTFUL, "dated", f"{attribute!r} was another in an earlier year, or is now")
    if attribute == "age" and _younger(new, old):
        return Finding(Relation.DOUBTFUL, "younger", "nobody gets younger: it corrects the age, or is of another")
    if new.holds is Cardinality.MAYBE_ONE or new.named != old.named:
        if said.changing:
            return Finding(Relation.CHANGED, "changed", f"{attribute!r} is said to have changed")
        return Finding(Relation.DOUBTFUL, "maybe_one", f"{attribute!r} has another value, and may have two")
    return Finding(Relation.CHANGED, "one_value", f"{attribute!r} holds one value at a time, and it is another now")


_PLACES = frozenset(["home", "birthplace", "origin"])
_DESCRIBED = frozenset(["home", "employer"])


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
