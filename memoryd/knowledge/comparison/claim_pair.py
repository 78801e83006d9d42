"""Two claims of one attribute, and what can be asked of them."""

from __future__ import annotations

from memoryd.knowledge.comparison.finding import Finding, Relation
from memoryd.knowledge.grammar.districts import is_district_of
from memoryd.knowledge.grammar.lands import LANDS
from memoryd.knowledge.lexicon.load import stems
from memoryd.knowledge.statement.attributes import PLACES
from memoryd.knowledge.statement.claim import Cardinality, Claim
from memoryd.knowledge.statement.reader import Statement

__all__ = ["ClaimPair"]

MEASURES_EQUAL = 0.02
"""Amounts that differ by less are one amount in two units."""
_CURRENCIES = stems("frames.part.currencies")
_REGIONS = stems("frames.part.regions")
"""Words of places that are larger than a town."""
_FORMS_OF_FIRMS = stems("frames.part.forms_of_firms")


class ClaimPair:
    """Two claims of one attribute, and the newer statement."""

    def __init__(self, new: Claim, old: Claim, said: Statement) -> None:
        self.new, self.old, self.said = new, old, said
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
        covers = new.value <= old.value and old.head in {"", *new.value}
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
        """Whether the attribute has mostly one value, or a name stands beside a description."""
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
