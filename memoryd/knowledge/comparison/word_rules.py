"""What the words of two statements decide, taken as wholes: a repetition, a doubt, a denial, or nothing."""

from __future__ import annotations

from memoryd.knowledge.comparison.rules import APART, Finding, Relation, Rule, deciding
from memoryd.knowledge.grammar.words import Words
from memoryd.knowledge.lexicon.load import stems, table
from memoryd.knowledge.lexicon.spelling import stem
from memoryd.knowledge.statement.reader import Statement

__all__ = [
    "NAMED_RULES",
    "NEAR",
    "SPEAKER_RULES",
    "TOPIC_COVERED",
    "WordPair",
    "by_words",
    "gained",
    "repeated",
    "same_figures",
    "same_shades",
]

# Thresholds of the comparison of wholes, chosen on half of letta-evals' contradicting facts (docs/benchmarks.md).
ALIKE = 0.5
"""Share of the older statement's words that the newer repeats, for a change of it to be spoken of."""
COVERED_BY_DENIAL = 0.5
MOSTLY_COVERED = 0.7
NEAR = 0.80
"""Cosine from which two statements are compared though they share neither words nor attributes."""
VERY_NEAR = 0.84
"""Cosine from which two statements say almost the same; .85 before the encoder was tuned (decision 0032)."""

_PARAPHRASES = tuple(frozenset(stem(some.split())) for some in table("frames.paraphrases"))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def same_figures(new: Words, old: Words) -> bool:
    """Whether names are the same, and numbers and days in their order."""
    if new.numbers != old.numbers or new.days != old.days:
        return False
    return new.named == old.named


def same_shades(new: Words, old: Words) -> bool:
    """Whether both say the same of how often and whether it is past, and name the same identifiers."""
    present = [words.stems - words.past for words in (new, old)]
    return new.shades == old.shades and not (new.past & present[1] or old.past & present[0])


def _same_names(new: Words, old: Words) -> bool:
    """Whether the same names stand in the same places; of those that lead, the order does not matter."""
    others = [[name.text for name in words.names if not name.leads] for words in (new, old)]
    return new.leading == old.leading and others[0] == others[1]


def gained(new: Words, old: Words) -> frozenset[str]:
    """Return the stems that one text has more than another, but for paraphrases of what the other has."""
    more = new.stems - old.stems
    for group in _PARAPHRASES if more else ():
        if not (more.isdisjoint(group) or group.isdisjoint(old.stems)):
            more -= group
    return more


def repeated(new: Words, old: Words, similarity: float, duplicate: tuple[float, float]) -> Finding:
    """Return SAME if nothing that counts differs; wording may."""
    if bool(new.negations) != bool(old.negations) or not same_figures(new, old) or not same_shades(new, old):
        return APART
    if new.exclusions != old.exclusions or not _same_names(new, old):
        return APART
    if gained(new, old):
        return APART  # it says more, or something else
    lost = gained(old, new)
    overlap = _jaccard(new.meaning, old.meaning)
    long_enough = new.count >= LEAST_WORDS and old.count >= LEAST_WORDS
    if (not lost and similarity > duplicate[0]) or (overlap >= duplicate[1] and long_enough):
        return Finding(Relation.SAME, "repeated", "it says the same in other words")
    return APART


LEAST_WORDS = 5
"""Of both statements, for their shared words alone to make them one."""


class WordPair:
    """Two statements as wholes."""

    def __init__(self, statement: Statement, known: Statement, new: Words, old: Words, similarity: float) -> None:
        self.said, self.known, self.new, self.old, self.similarity = statement, known, new, old, similarity
        self.leads = new.leading | old.leading

    @property
    def shared(self) -> int:
        """How many words both have."""
        return len(self.new.stems & self.old.stems)

    @property
    def covered(self) -> float:
        """How much of the older one's words the newer repeats."""
        return self.shared / max(1, len(self.old.stems))

    @property
    def turned(self) -> bool:
        """Whether the newer one speaks of a change of what the older one says."""
        return self.said.turning and _turns(self.known, self.new, self.old, self.covered, self.similarity)

    @property
    def both_lead(self) -> bool:
        """Whether both begin with a name that they share."""
        return not self.new.leading.isdisjoint(self.old.leading)

    @property
    def shares_a_leader(self) -> bool:
        """Whether a name with which one begins is in both."""
        return bool(self.new.named & self.old.named & self.leads)

    @property
    def same_frame(self) -> bool:
        """Whether both have the same words and figures."""
        return self.new.stems == self.old.stems and bool(self.new.stems) and same_figures(self.new, self.old)

    @property
    def denies(self) -> bool:
        """Whether the newer one excludes more, or denies more without another name or number."""
        new, old = self.new, self.old
        return new.exclusions > old.exclusions or (new.negations > old.negations and not _figures_apart(new, old))


_TURNED = Finding(Relation.DOUBTFUL, "turned", "it speaks of a change of the same thing")
_NEGATED = Finding(Relation.CHANGED, "negated", "the same is denied")
_DENIED = Finding(Relation.DOUBTFUL, "denied", "much of it is denied or excluded")

NAMED_RULES: tuple[Rule[WordPair], ...] = (
    Rule(
        "turned_without_a_name",
        lambda p: not p.shares_a_leader and p.turned and not (p.new.leading and p.old.leading),
        _TURNED,
        (("I like opera", "Apparently I no longer like opera"),),
    ),
    Rule(
        "of_others",
        lambda p: not p.shares_a_leader,
        APART,
        (("Tom is 30", "Tommy's brother is 20"), ("Sarah likes sushi", "Tom hates sushi")),
    ),
    Rule(
        "negated",
        lambda p: (
            p.same_frame
            and p.new.leading == p.old.leading
            and p.new.negations - p.old.negations == 1
            and (len(p.new.content) > 1 or p.similarity >= VERY_NEAR)
        ),
        _NEGATED,
        (("Tom can swim", "Tom can't swim"), ("Anna smokes cigars", "Anna doesn't smoke cigars")),
    ),
    Rule(
        "denied",
        lambda p: (
            p.denies
            and p.shared > 1
            and p.covered >= COVERED_BY_DENIAL
            and (p.both_lead or p.covered >= MOSTLY_COVERED)
        ),
        _DENIED,
        (
            ("Ana Silva plays the violin in an orchestra", "Ana Silva has never played in an orchestra"),
            ("Ivy Stone exhibited work in galleries in Rome", "Ivy Stone exhibited work only in galleries in Tokyo"),
        ),
    ),
    Rule(
        "turned",
        lambda p: p.turned and p.both_lead and p.covered >= ALIKE,
        _TURNED,
        (("Tom coaches the school swimming team", "Tom stepped down from coaching the school swimming team"),),
    ),
    Rule(
        "another_event",
        lambda _: True,
        APART,
        (("Tom likes Anna", "Anna likes Tom"), ("Sarah likes sushi", "Sarah hates sushi")),
    ),
)
"""Of two statements, one of them beginning with a name: another name, number or day makes it another event."""

SPEAKER_RULES: tuple[Rule[WordPair], ...] = (
    Rule(
        "both_read",
        lambda p: bool(p.said.claims and p.known.claims) and not p.said.changing,
        APART,
        (("I'm 34", "I'm 35"), ("I'm married", "I'm 40")),
    ),
    Rule(
        "happened",
        lambda p: (p.said.happened and not p.said.changing) or p.known.happened,
        APART,
        (("I read Dune", "I read Emma"), ("My car is blue", "My car was red")),
    ),
    Rule(
        "negated",
        lambda p: p.same_frame and p.new.negations + p.old.negations == 1 and not (p.said.limited or p.said.goes_on),
        _NEGATED,
        (("I smoke", "I don't smoke"), ("I smoke", "I quit smoking")),
    ),
    Rule(
        "same_words",
        lambda p: p.same_frame,
        APART,
        (("I smoke", "I haven't quit smoking"), ("I have a car", "I stopped the car")),
    ),
    Rule(
        "turned",
        lambda p: p.turned,
        _TURNED,
        (("I own a car", "I sold my old car"), ("I smoke", "I hope to quit smoking")),
    ),
    Rule("another_thing", lambda _: True, APART, (("I am tired", "I am hungry"), ("I'm 34", "I'm 34 and a half"))),
)
"""Of two statements that begin with no name: what the speaker says of themselves, or of things."""


def by_words(
    statement: Statement, known: Statement, new: Words, old: Words, similarity: float, duplicate: tuple[float, float]
) -> Finding:
    """Return what two statements decide that share no attribute which is read."""
    again = repeated(new, old, similarity, duplicate)
    if again.relation is Relation.SAME:
        return again
    pair = WordPair(statement, known, new, old, similarity)
    return deciding(NAMED_RULES if pair.leads else SPEAKER_RULES, pair).decide(pair)


def _turns(known: Statement, new: Words, old: Words, covered: float, similarity: float) -> bool:
    """Whether a statement that speaks of a change speaks of what the older one says."""
    if known.turning or similarity < TOPIC or covered < TOPIC_COVERED:
        return False
    if _are_two(new, old) or _figures_apart(new, old):
        return False
    return bool((new.stems & old.stems) - _COMMON)


def _are_two(new: Words, old: Words) -> bool:
    """Whether an object tells two statements apart: mental health is not physical health, each has its own word."""
    return bool(gained(new, old) - _OF_CHANGE) and bool(gained(old, new) - _OF_CHANGE)


def _figures_apart(new: Words, old: Words) -> bool:
    """Whether a name or a number tells two statements apart: order 17 is not order 18."""
    numbers = [frozenset(words.numbers) for words in (new, old)]
    return any(bool(one - other) and bool(other - one) for one, other in ((new.named, old.named), numbers))


_OF_CHANGE = stems("frames.part.of_change")
"""Words that tell of a change, and verbs that say no more than that something was so."""


_COMMON = stems("frames.part.common")
TOPIC = 0.6
"""Cosine from which two statements are about one thing, if they share a word that carries meaning too."""
TOPIC_COVERED = 0.3
