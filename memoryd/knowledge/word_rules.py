"""What the words of two statements decide, taken as wholes: a repetition, a doubt, a denial, or nothing."""

from __future__ import annotations

import re

from memoryd.knowledge.claims import Statement
from memoryd.knowledge.finding import APART, Finding, Relation
from memoryd.knowledge.stems import stem, word_set
from memoryd.knowledge.words import Words

__all__ = ["NEAR", "TOPIC_COVERED", "by_words", "gained", "repeated", "same_figures"]

# Thresholds of the comparison of wholes, chosen on half of letta-evals' contradicting facts (docs/benchmarks.md).
COVERED = 0.75
"""Share of the older statement's words that the newer repeats, for a difference to be a replacement."""
ALIKE = 0.5
"""Shared words over all words of both (Jaccard)."""
COVERED_BY_DENIAL = 0.5
NEAR = 0.80
"""Cosine from which two statements of one subject and one verb are of one thing."""
VERY_NEAR = 0.85

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


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def same_figures(new: Words, old: Words) -> bool:
    """Whether names are the same, and numbers and days in their order."""
    names = [{name.text for name in words.names} for words in (new, old)]
    return names[0] == names[1] and new.numbers == old.numbers and new.days == old.days


def _same_names(new: Words, old: Words) -> bool:
    """Whether the same names stand in the same places; of those that lead, the order does not matter."""
    leads = [{name.text for name in words.names if name.leads} for words in (new, old)]
    others = [[name.text for name in words.names if not name.leads] for words in (new, old)]
    return leads[0] == leads[1] and (others[0] == others[1])


def gained(new: Words, old: Words) -> frozenset[str]:
    """Return the stems that one text has more than another, but for paraphrases of what the other has."""
    more = frozenset(new.content) - frozenset(old.content)
    for group in _PARAPHRASES:
        if more & group and group & frozenset(old.content):
            more -= group
    return more


def repeated(new: Words, old: Words, similarity: float, duplicate: tuple[float, float]) -> Finding:
    """Return SAME if nothing that counts differs; wording may."""
    if bool(new.negations) != bool(old.negations) or not same_figures(new, old):
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


def by_words(
    said: Statement, known: Statement, new: Words, old: Words, similarity: float, duplicate: tuple[float, float]
) -> Finding:
    """Return what two statements decide that share no attribute which is read."""
    again = repeated(new, old, similarity, duplicate)
    if again.relation is Relation.SAME:
        return again
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


_ENDING = re.compile(
    r"\b(?:resigned|retired|left|gave up|given up|dropped|cancell?ed|sold|ended|over|finished)\b", re.IGNORECASE
)
"""What ends something without a word that denies: "I resigned" is "I quit" again."""


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
        if bool(new.negations) != bool(old.negations) and not said.limited:
            return Finding(Relation.CHANGED, "negated", "the same is denied")
        return APART
    denied = new.negations > old.negations or (old.negations > new.negations and not _ENDING.search(said.text))
    if said.changing and covered == 1.0 and denied and not said.limited and similarity >= TOPIC:
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
