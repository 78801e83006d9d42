"""
What a new statement means for an older one: the same, a change, a doubt, or nothing.

First what both claim of one attribute (`attribute_rules`), then their words as wholes (`word_rules`). Similarity alone
retires nothing: it only decides whether two texts without any difference that counts are one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from memoryd.knowledge.comparison.attribute_rules import by_claims
from memoryd.knowledge.comparison.ending import ENDING
from memoryd.knowledge.comparison.other_languages import by_other_language
from memoryd.knowledge.comparison.rules import AGREED, APART, SAID, Finding, Relation
from memoryd.knowledge.comparison.technical_values import by_technical_values
from memoryd.knowledge.comparison.word_rules import (
    NEAR,
    TOPIC_COVERED,
    by_words,
    gained,
    repeated,
    same_figures,
    same_shades,
)
from memoryd.knowledge.grammar.pattern import compiled
from memoryd.knowledge.grammar.words import Words
from memoryd.knowledge.read_statement import Reading
from memoryd.knowledge.statement.reader import MOST_CHARACTERS, Statement

__all__ = ["compare", "may_stand_before", "speaks_of_itself"]


def compare(
    new: Reading,
    old: Reading,
    *,
    similarity: float,
    same_subject: bool = False,
    same_speaker: bool = True,
    duplicate: tuple[float, float] = (0.85, 0.75),
    attributes: Collection[str] | None = None,
) -> Finding:
    """
    Return how a statement stands to an older one of the same scope.

    `similarity` is the cosine of their embeddings (0 where there are none); `same_subject` says that both are known to
    be about one person, whatever they call them, and `same_speaker` that one and the same says "I" in both.
    `duplicate`: above which cosine, or from which share of words (Jaccard), two statements without a difference that
    counts are one. `attributes`, where they are known, are those that the older one speaks of: most pairs share neither
    them nor words, and are told apart without reading it again.
    """
    if len(new.text) > MOST_CHARACTERS or len(old.text) > MOST_CHARACTERS:
        return APART
    if not same_speaker and (speaks_of_itself(new) or speaks_of_itself(old)):
        return APART
    statement, ours = new.statement, new.words
    if attributes is not None and similarity < NEAR and not _meet(statement, ours, old.stems, attributes):
        return APART
    return _decided(statement, old.statement, ours, old.words, similarity, duplicate, same_subject=same_subject)


def _decided(
    statement: Statement,
    known: Statement,
    ours: Words,
    theirs: Words,
    similarity: float,
    duplicate: tuple[float, float],
    *,
    same_subject: bool,
) -> Finding:
    """Return what the claims of two statements decide, else their words, else the words of another language."""
    if statement.hedged or known.hedged:
        repetition = repeated(ours, theirs, similarity, duplicate) if statement.hedged == known.hedged else APART
        if known.hedged:
            return repetition
    else:
        finding = by_claims(statement, known, same_subject=same_subject)
        if finding is SAID:
            return _said_again(ours, theirs, similarity, duplicate)
        if finding is None and (
            _are_of_two(statement.text, known.text) or (theirs.negations and _OVER.search(statement.text))
        ):
            return APART
        if finding is None:
            repetition = by_words(statement, known, ours, theirs, similarity, duplicate)
            if repetition.relation is Relation.APART and not statement.adding:
                repetition = by_technical_values(statement.text, known.text)
        else:
            repetition = repeated(ours, theirs, similarity, duplicate) if finding is AGREED else finding
    return by_other_language(statement, known) if repetition.relation is Relation.APART else repetition


def _said_again(ours: Words, theirs: Words, similarity: float, duplicate: tuple[float, float]) -> Finding:
    """Return whether two statements that claim one value of one attribute are one."""
    alike = similarity > duplicate[0] and same_figures(ours, theirs) and same_shades(ours, theirs)
    if alike and not gained(ours, theirs):
        return Finding(Relation.SAME, "repeated", "it says the same in other words")
    return repeated(ours, theirs, similarity, duplicate)


_UNSAID_I = compiled("{unsaid_i}")
"""How begins what someone says of themselves without a word for it: "No longer allergic to nuts", "User's sister"."""
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|me|my|mine|myself|we|our|ours)\b", re.IGNORECASE)


def speaks_of_itself(reading: Reading) -> bool:
    """Return whether what a text says depends on who says it."""
    foreign = reading.statement.foreign
    if (foreign is not None and foreign.is_of_speaker) or _UNSAID_I.match(reading.text):
        return True
    return bool(_FIRST_PERSON.search(reading.text)) or any(
        claim.subject in {"i", "we"} for claim in reading.statement.claims
    )


def _are_of_two(new: str, old: str) -> bool:
    """Whether one is said of the speaker, and the other of someone of theirs."""
    of_kin = [bool(_OF_KIN.match(text)) for text in (new, old)]
    return of_kin[0] != of_kin[1] and bool(_OF_ME.match(old if of_kin[0] else new))


_OF_KIN = compiled("{of_kin}")
_OF_ME = compiled(r"{led_in_talk}?(?:i|my|our|user|the user)\b")
_OVER = compiled(r"\b{comparison_over}\b")
"""What tells of an end: of what was denied already it says nothing new."""
_OF_THE_PAST = compiled("{of_the_past}")
_OF_NOW = compiled(r"\b{comparison_of_now}\b")


def may_stand_before(new: str, old: str) -> bool:
    """Return whether a newer statement may be what has become of an older one that it is like."""
    if len(new) > MOST_CHARACTERS or len(old) > MOST_CHARACTERS:
        return False
    past = _OF_THE_PAST.search(new)
    if past and not _OF_NOW.search(new) and past.group().casefold() not in old.casefold():
        return False
    return sorted(new.split()) != sorted(old.split())  # the same words turned round: another statement


def _meet(statement: Statement, new: Words, old: Sequence[str], attributes: Collection[str]) -> bool:
    """Whether a statement may decide anything of one that speaks of those attributes in words of those stems."""
    if any(claim.attribute in attributes or claim.attribute in ENDING or claim.left for claim in statement.claims):
        return True
    if statement.foreign is not None and statement.foreign.turns:
        return True
    shared = new.stems.intersection(old)
    if (shared or new.names) and new.numbers:
        return True
    return len(shared) >= TOPIC_COVERED * max(1, len(old))
