"""
What a new statement means for an older one: the same, a change, a doubt, or nothing.

First what both claim of one attribute (`claims`), then their words as wholes. Similarity alone retires nothing: it
only decides whether two texts without any difference that counts are one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from memoryd.knowledge.claim import Claim, Holds
from memoryd.knowledge.claims import MOST_CHARACTERS, Statement, statement_of
from memoryd.knowledge.stems import stem, word_set
from memoryd.knowledge.things import without_heads
from memoryd.knowledge.words import Words, words_of

__all__ = ["Finding", "Relation", "compare"]


class Relation(Enum):
    """How a new statement stands to an older one."""

    SAME = "same"
    """It says nothing that the older one does not say."""
    CHANGED = "changed"
    """Both cannot be true; the newer one holds."""
    DOUBTFUL = "doubtful"
    """Both may not be true; nobody can tell from the words."""
    APART = "apart"
    """Both may be true."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A relation, the rule that found it, and the reason in words (without quoting the statements)."""

    relation: Relation
    rule: str = ""
    reason: str = ""


APART = Finding(Relation.APART)
AGREED = Finding(Relation.APART, "agreed")
"""They speak of one attribute and do not differ in it: a repetition, if their words say nothing more."""
SAID = Finding(Relation.APART, "said")
"""They claim the same value of one attribute: a repetition, if they are near and no figure differs."""

# Thresholds of the comparison of wholes, chosen on half of letta-evals' contradicting facts (docs/benchmarks.md).
COVERED = 0.75
"""Share of the older statement's words that the newer repeats, for a difference to be a replacement."""
ALIKE = 0.5
"""Shared words over all words of both (Jaccard)."""
COVERED_BY_DENIAL = 0.5
NEAR = 0.80
"""Cosine from which two statements of one subject and one verb are of one thing."""
VERY_NEAR = 0.85
MEASURES_EQUAL = 0.02
"""Amounts that differ by less are one amount in two units."""

_PARAPHRASES = tuple(
    frozenset(stem(words.split()))
    for words in (
        "like love enjoy adore fond keen fan likes loves enjoys liking",
        "hate dislike detest despise",
        "live reside based dwell home",
        "work employed job employee working works",
        "big large huge",
        "buy purchase get bought",
        "begin start",
        "kid child son daughter",
        "movie film",
        "fast quick",
        "usually typically normally often always generally",
        "called named name",
        "need require must",
        "want wish",
        "car vehicle automobile",
        "trip travel journey",
        "meal dish food",
        "favorite favourite",
        "prefer preferred preference",
        "birthday born birth",
        "every each day daily",
        "really very truly absolutely definitely much lot",
        "phone cellphone mobile",
    )
)
_MANY_VERBS = frozenset(
    stem(
        word_set("""
    like love enjoy adore hate dislike want speak own have know visit read watch eat buy play need avoid collect
    cook drink follow support bought visited met volunteer learn study see saw listen recommend remind remember
    add call tell ask send help think feel hope attend try use work go take bring make write order plan
""")
    )
)
"""Verbs that take many objects at a time: another object says nothing of the first."""


def compare(
    new: str,
    old: str,
    *,
    similarity: float,
    same_subject: bool = False,
    duplicate: tuple[float, float] = (0.85, 0.75),
    attributes: Collection[str] | None = None,
) -> Finding:
    """
    Return how a statement stands to an older one of the same scope.

    `similarity` is the cosine of their embeddings (0 where there are none); `same_subject` says that both are known to
    be about one person, whatever they call them. `duplicate`: above which cosine, or from which share of words
    (Jaccard), two statements without a difference that counts are one. `attributes`, where they are known, are those
    that the older one speaks of: most pairs share neither them nor words, and are told apart without reading it again.
    """
    if len(new) > MOST_CHARACTERS or len(old) > MOST_CHARACTERS:
        return APART
    said, ours, theirs = statement_of(new), words_of(new), words_of(old)
    if attributes is not None and similarity < NEAR and not _meet(said, ours, theirs, attributes):
        return APART
    known = statement_of(old)
    if said.hedged or known.hedged:
        return _repeated(ours, theirs, similarity, duplicate) if said.hedged == known.hedged else APART
    finding = _by_claims(said, known, same_subject=same_subject)
    if finding is AGREED:
        return _repeated(ours, theirs, similarity, duplicate)
    if finding is SAID:
        if similarity > duplicate[0] and _same_figures(ours, theirs):
            return Finding(Relation.SAME, "repeated", "it says the same in other words")
        return _repeated(ours, theirs, similarity, duplicate)
    if finding is not None:
        return finding
    return _by_words(said, known, ours, theirs, similarity, duplicate)


def _meet(said: Statement, new: Words, old: Words, attributes: Collection[str]) -> bool:
    """Whether a statement may decide anything of one that speaks of those attributes in those words."""
    if any(claim.attribute in attributes or claim.attribute in _ENDING or claim.left for claim in said.claims):
        return True
    shared = {*old.content} & {*new.content}
    return len(shared) >= TOPIC_COVERED * max(1, len({*old.content}))


# --- claims ---

_ENDING = frozenset(["*", "partners", "consumes"])
"""Attributes of claims that may end one of another attribute."""
_SPEAKERS = frozenset({"i", "we", ""})


def _same_holder(new: Claim, old: Claim, *, same_subject: bool) -> bool:
    if new.relation and old.relation and new.relation != old.relation:
        return False
    if new.subject == old.subject:
        return True
    if new.subject in _SPEAKERS and old.subject in _SPEAKERS:
        return {new.subject, old.subject} != {"i", "we"}
    return same_subject and new.subject not in _SPEAKERS and old.subject not in _SPEAKERS


def _by_claims(said: Statement, known: Statement, *, same_subject: bool) -> Finding | None:
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
            if finding.relation is Relation.CHANGED and _perhaps_another(new, old):
                finding = Finding(Relation.DOUBTFUL, "fuller_name", "a fuller name may be another person's")
            if (
                best is None
                or best.relation is Relation.APART
                or _STRENGTH[finding.relation] > _STRENGTH[best.relation]
            ):
                best = finding
    return best


def _perhaps_another(new: Claim, old: Claim) -> bool:
    """Whether one subject is a fuller name than the other: Sarah and Sarah Connor."""
    if new.subject in _SPEAKERS or old.subject in _SPEAKERS:
        return False
    one, other = {*new.subject.split()}, {*old.subject.split()}
    return one < other or other < one


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
        return new.value <= old.value or new.value <= {*old.attribute.split()}
    if new.attribute == "partners":
        return old.attribute in _PARTNERS and bool(new.value & old.value)
    if new.attribute == "consumes" and old.attribute == "diet":
        return new.affirmed and not new.ended and bool(new.value & _MEAT and old.value & _MEATLESS)
    left = bool(new.left) and (new.left <= old.value or bool(new.left & old.names))
    return left and (old.attribute in _LEFT or old.attribute.startswith("uses"))


_CANCELLED = frozenset(["plans", "trip", "subscriptions"])
_LEFT = frozenset(["uses", "home", "vehicle", "plans", "prefers", "has"])
_PARTNERS = frozenset(["wife", "husband", "girlfriend", "boyfriend", "partner", "fiancé", "fiancée"])
_MEAT = frozenset(stem(word_set("meat beef pork chicken steak bacon")))
_MEATLESS = frozenset(stem(word_set("vegan vegetarian pescatarian pescetarian")))


def _equal(new: Claim, old: Claim) -> bool:
    if new.measure is None or old.measure is None or new.measure[0] != old.measure[0]:
        return new.value == old.value
    if {*filter(str.isalpha, new.value)} == {*filter(str.isalpha, old.value)}:
        return new.value == old.value  # in one unit
    most = max(abs(new.measure[1]), abs(old.measure[1]))
    return abs(new.measure[1] - old.measure[1]) <= MEASURES_EQUAL * most


def _of_attribute(new: Claim, old: Claim, said: Statement) -> Finding:
    attribute = new.attribute
    if _facets_differ(new, old):
        return APART
    equal = _equal(new, old)
    inside = bool(new.value) and (new.value <= old.value or old.value <= new.value)
    if old.ended != new.ended and old.ended:
        return APART  # what was once so may be followed by anything
    if old.ended or (not old.affirmed and not new.affirmed):
        return AGREED if equal and new.affirmed == old.affirmed else APART
    if new.ended or new.affirmed != old.affirmed:
        if not old.affirmed and new.affirmed and equal:
            return Finding(Relation.CHANGED, "negated", f"it was denied of {attribute!r}, and is so now")
        covers = new.value <= old.value  # "no tea" ends "green tea", and "no green tea" does not end "tea"
        if new.ended and (inside or new.names & old.names):
            covers = True
        if old.affirmed and (equal or covers):
            return Finding(Relation.CHANGED, "negated", f"what it said of {attribute!r} is denied")
        return APART
    if new.left and new.left <= old.value:
        return Finding(Relation.CHANGED, "replaced", f"{attribute!r} is said to have changed from this")
    if equal:
        return SAID
    if attribute == "prefers":
        return _preferred(new, old, said)
    if new.holds is Holds.MANY:
        return AGREED  # another one of many, unless the words are a paraphrase
    if inside or (new.facet == "to" and not new.value & old.value):
        return APART
    if new.facet == "amount" and _units_differ(new, old):
        return APART
    if new.measure and old.measure and new.measure[0] != old.measure[0]:
        return APART
    if attribute in _PLACES and bool(new.value & LANDS) != bool(old.value & LANDS) and not said.changing:
        return APART  # a town and a country: it may lie there
    if attribute in _DESCRIBED and not (new.named and old.named):
        return _of_descriptions(new, old, said)
    if new.since and new.since < old.since:
        return APART  # it was so before
    if new.since and not old.since:
        return Finding(Relation.DOUBTFUL, "dated", f"{attribute!r} was another in an earlier year, or is now")
    if attribute == "age" and _younger(new, old):
        return Finding(Relation.DOUBTFUL, "younger", "nobody gets younger: it corrects the age, or is of another")
    if new.holds is Holds.MAYBE_ONE or new.named != old.named:
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


def _facets_differ(new: Claim, old: Claim) -> bool:
    """Whether they answer two questions of one thing: where it is and how large, or on which day and at what time."""
    if new.facet == old.facet == "when":
        clocks = [{":" in word for word in claim.value} for claim in (new, old)]
        return clocks in ([{True}, {False}], [{False}, {True}])
    return bool(new.facet and old.facet) and new.facet != old.facet


_CURRENCIES = frozenset(stem(word_set("dollar dollars euro euros pound pounds usd eur gbp bucks")))


def _units_differ(new: Claim, old: Claim) -> bool:
    """Whether two amounts count different things: years and dollars, a price and a share of it."""
    if new.named or old.named or (new.measure and old.measure):
        return False
    one, other = ({word for word in claim.value if word[0].isalpha()} - _CURRENCIES for claim in (new, old))
    return one != other and (bool(one and other) or "percent" in one | other)


def _younger(new: Claim, old: Claim) -> bool:
    ages = [next((int(word) for word in claim.value if word.isdigit()), 0) for claim in (new, old)]
    return ages[0] < ages[1]


def _preferred(new: Claim, old: Claim, said: Statement) -> Finding:
    shared = new.value & old.value
    if new.value == old.left and not new.left:
        return Finding(Relation.CHANGED, "replaced", "the preference was turned round")
    if new.head == old.head and shared and new.value - old.value and old.value - new.value:
        return Finding(Relation.CHANGED, "one_value", "of the same things another is preferred")
    if said.changing and new.left and new.left <= old.value:
        return Finding(Relation.CHANGED, "changed", "the preference is said to have changed")
    return APART


# --- words ---


LANDS = frozenset(
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
    california texas florida ohio michigan oregon nevada utah colorado arizona georgia illinois massachusetts bavaria
    scandinavia tuscany catalonia brittany queensland ontario quebec
""")
    )
)
"""Countries and other lands, in which a town may lie."""


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def _same_figures(new: Words, old: Words) -> bool:
    """Whether names are the same, and numbers and days in their order."""
    names = [{name.text for name in words.names} for words in (new, old)]
    return names[0] == names[1] and new.numbers == old.numbers and new.days == old.days


def _same_names(new: Words, old: Words) -> bool:
    """Whether the same names stand in the same places; of those that lead, the order does not matter."""
    leads = [{name.text for name in words.names if name.leads} for words in (new, old)]
    others = [[name.text for name in words.names if not name.leads] for words in (new, old)]
    return leads[0] == leads[1] and (others[0] == others[1])


def _repeated(new: Words, old: Words, similarity: float, duplicate: tuple[float, float]) -> Finding:
    """Return SAME if nothing that counts differs; wording may."""
    if bool(new.negations) != bool(old.negations) or not _same_figures(new, old):
        return APART
    if new.exclusions != old.exclusions or not _same_names(new, old):
        return APART
    gained, lost = {*new.content} - {*old.content}, {*old.content} - {*new.content}
    if gained:
        for group in _PARAPHRASES:
            if gained & group and group & ({*old.content}):
                gained -= group
                lost -= group
        if gained:
            return APART  # it says more, or something else
    overlap = _jaccard(new.meaning, old.meaning)
    long_enough = new.count >= LEAST_WORDS and old.count >= LEAST_WORDS
    if (not lost and similarity > duplicate[0]) or (overlap >= duplicate[1] and long_enough):
        return Finding(Relation.SAME, "repeated", "it says the same in other words")
    return APART


LEAST_WORDS = 5
"""Of both statements, for their shared words alone to make them one."""


def _by_words(
    said: Statement, known: Statement, new: Words, old: Words, similarity: float, duplicate: tuple[float, float]
) -> Finding:
    repeated = _repeated(new, old, similarity, duplicate)
    if repeated.relation is Relation.SAME:
        return repeated
    new_names, old_names = {name.text for name in new.names}, {name.text for name in old.names}
    new_leads = {name.text for name in new.names if name.leads}
    old_leads = {name.text for name in old.names if name.leads}
    old_content, new_content = {*old.content}, {*new.content}
    shared = old_content & new_content
    covered = len(shared) / max(1, len(old_content))
    alike = len(shared) / max(1, len(old_content | new_content))
    denies = new.negations > old.negations or new.exclusions > old.exclusions
    if not old_leads and not new_leads:
        return _of_speaker(said, known, new, old, covered, alike, similarity)
    if not new_names & old_names & (new_leads | old_leads):
        if (not old_leads or not new_leads) and _turns(said, known, new, old, covered, similarity):
            return Finding(Relation.DOUBTFUL, "turned", "it speaks of a change of the same thing")
        persons = {name.text for name in (*new.names, *old.names) if " " in name.text}
        persons -= {name.text for name in (*new.names, *old.names) if name.place}
        if persons & new_names & old_names and covered >= 0.9 and alike >= 0.8 and len(shared) >= 3:  # noqa: PLR2004
            return Finding(Relation.DOUBTFUL, "another_name", "the same is said with another name in it")
        return APART
    swapped = old_names == new_names and new_leads != old_leads
    if swapped and len(shared) < 3:  # noqa: PLR2004  "Tom likes Anna" and "Anna likes Tom" are both true
        return APART
    if (said.happened or known.happened) and alike == 1.0 and old_names == new_names and {*new.days} != {*old.days}:
        return APART  # it happened twice
    if covered >= COVERED and alike >= ALIKE and (len(shared) > 1 or similarity >= VERY_NEAR):
        if old_names == new_names and new_leads == old_leads and new.negations - old.negations == 1 and alike == 1:
            return Finding(Relation.CHANGED, "negated", "the same is denied")
        return Finding(Relation.DOUBTFUL, "another_value", "the same is said with another value in it")
    if denies and len(shared) > 1 and covered >= COVERED_BY_DENIAL and (new_leads & old_leads or covered >= 0.7):  # noqa: PLR2004
        return Finding(Relation.DOUBTFUL, "denied", "much of it is denied or excluded")
    same_actors = bool(old_leads) and old_leads <= new_names and old_leads <= new_leads
    same_verb = bool(old.content and new.content) and old.content[0] == new.content[0]
    if (
        same_actors
        and same_verb
        and ((len(old_leads) > 1 and similarity >= NEAR) or (covered >= ALIKE and similarity >= NEAR))
    ):
        return Finding(Relation.DOUBTFUL, "another_object", "the same subject and verb have another object")
    if _turns(said, known, new, old, covered, similarity) and (new_leads & old_leads) and covered >= ALIKE:
        return Finding(Relation.DOUBTFUL, "turned", "it speaks of a change of the same thing")
    return APART


def _turns(said: Statement, known: Statement, new: Words, old: Words, covered: float, similarity: float) -> bool:
    """Whether a statement that speaks of a change speaks of what the older one says."""
    if not said.turning or known.turning or similarity < TOPIC or covered < TOPIC_COVERED:
        return False
    return bool(({*new.content} & {*old.content}) - _COMMON)


_COMMON = frozenset(
    stem(
        word_set("""
    go get have make take use work live like love want new time day thing people lot bit
""")
    )
)
TOPIC = 0.6
"""Cosine from which two statements are about one thing, if they share a word that carries meaning too."""
TOPIC_COVERED = 0.3


def _of_speaker(
    said: Statement, known: Statement, new: Words, old: Words, covered: float, alike: float, similarity: float
) -> Finding:
    """Compare two statements that begin with no name: what the speaker says of themselves, or of things."""
    names_differ = {name.text for name in new.names} != {name.text for name in old.names}
    numbers_differ = {*new.numbers} != {*old.numbers}
    days_differ = {*new.days} != {*old.days}
    if said.claims and known.claims and not said.changing:
        return APART  # both were read, and speak of different things
    if (said.happened and not said.changing) or known.happened:
        return APART  # it happened, and so may the other have
    if covered == 1.0 and alike == 1.0 and not (names_differ or numbers_differ or days_differ):
        if bool(new.negations) != bool(old.negations):
            return Finding(Relation.CHANGED, "negated", "the same is denied")
        return APART
    if said.changing and covered == 1.0 and bool(new.negations) != bool(old.negations) and similarity >= TOPIC:
        return Finding(Relation.CHANGED, "negated", "the same is said to be otherwise now")
    if _turns(said, known, new, old, covered, similarity):
        return Finding(Relation.DOUBTFUL, "turned", "it speaks of a change of the same thing")
    if bool(new.negations) != bool(old.negations) or names_differ:
        return APART
    both = covered >= COVERED and alike >= COVERED and old.content[:1] == new.content[:1]
    if (
        both
        and numbers_differ
        and new.numbers
        and old.numbers
        and not days_differ
        and new.numbers[:-1] == old.numbers[:-1]
    ):
        if covered == 1.0 and alike == 1.0 and len(old.content) > 1:
            return Finding(Relation.DOUBTFUL, "another_number", "the same is said with another number in it")
        return APART
    if both and days_differ and not numbers_differ and new.days and old.days and covered == 1.0 and alike == 1.0:
        return Finding(Relation.DOUBTFUL, "another_time", "the same is said with another day or time in it")
    if said.changing and both and similarity >= NEAR and old.content[0] not in _MANY_VERBS:
        return Finding(Relation.DOUBTFUL, "another_value", "the same is said with another value in it")
    return APART
