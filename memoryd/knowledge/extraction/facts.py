"""
What may be learnt from a message: each fact in the words of who said it, with what sort of fact it is.

Precision first: what is not surely a lasting statement of the speaker's own is left alone. Nothing here knows who
speaks, when, or what is known already. What people say of themselves stands in `statements.txt`, a row a form: a
category, a kind, a confidence and a pattern, matched from the beginning of a clause whose contractions are written out;
`{said}` is what is said, which must mean something by itself: "I love that" says nothing. The first row that matches
decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from importlib import resources

from memoryd.knowledge.extraction.answers import answered
from memoryd.knowledge.extraction.clauses import (
    before_question,
    clauses_of,
    is_doubtful,
    is_ironic,
    is_of_now,
    is_question,
    takes_back,
    without_lead,
    written_out,
)
from memoryd.knowledge.extraction.orders import Order, is_bare, is_of_before, names_secret, ordered
from memoryd.knowledge.extraction.sentences import own_sentences
from memoryd.knowledge.grammar.dates import days_named
from memoryd.knowledge.grammar.pattern import compiled
from memoryd.knowledge.grammar.sentences import is_filler
from memoryd.knowledge.grammar.times import due_day, is_yearly, lasting
from memoryd.knowledge.lexicon.load import split, table, words
from memoryd.knowledge.statement.reader import statement_of
from memoryd.model.memory import Kind

__all__ = ["CATEGORIES", "MOST_A_MESSAGE", "Fact", "facts_in"]

CATEGORIES = ("personal", "preference", "relationship", "work", "habit", "goal", "decision", "date", "other")
LIKELY = 0.8
"""Confidence in what the reader of statements reads, where no row does; a row has its own."""

_BEGINS = re.compile(r"(?:\(\?:(?:(?:i|we|my|our)(?: am| are| will be)?\|?)+\)|(?:i|we|my|our)) ")


class Row:
    """What a clause of one form says."""

    __slots__ = ("category", "confidence", "first", "kind", "pattern")

    def __init__(self, category: str, kind: Kind, confidence: float, pattern: str) -> None:
        """Read the pattern with its vocabularies written out."""
        self.category, self.kind, self.confidence = category, kind, confidence
        self.pattern = compiled(pattern)
        begins = _BEGINS.match(pattern)
        self.first = frozenset(re.findall(r"\b(?:i|we|my|our)\b", begins[0])) if begins else frozenset()


def _rows() -> tuple[Row, ...]:
    text = resources.files(__package__).joinpath("statements.txt").read_text(encoding="utf-8")
    lines = (line.split(" ", 3) for line in text.splitlines() if line and not line.startswith("#"))
    return tuple(Row(category, Kind(kind), float(confidence), pattern) for category, kind, confidence, pattern in lines)


_ROWS = _rows()
_ROWS_OF = {
    word: tuple(row for row in _ROWS if not row.first or word in row.first) for word in ("", "i", "we", "my", "our")
}


def rows_of(word: str) -> tuple[Row, ...]:
    """Return the rows that a clause may match whose first word this is, in lower case, in their order."""
    return _ROWS_OF.get(word, _ROWS_OF[""])


CLAIMED: Mapping[str, str] = {
    attribute: category for category, some in table("categories").items() for attribute in split(some)
}
"""Attributes that the reader of statements reads where no row does, and their categories."""


MOST_A_MESSAGE = 8  # facts; who tells more at once pastes
MOST_CHARACTERS = 300  # of one fact
LEAST_LETTERS = 2
MOST_BEFORE = 3  # sentences that "remember all that" is said of


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that may be learnt."""

    content: str
    category: str
    kind: Kind
    confidence: float
    """0 to 1; of what was ordered to be remembered 1."""
    lasts: timedelta | None = None
    """For how long it is so, where that is said."""
    day: date | None = None
    """The day that it is about, where it tells of one."""
    is_certain_day: bool = False
    """Whether it names one day and no other."""
    needs_question: bool = False
    """Whether it is an answer, which is understood with its question alone."""


def facts_in(text: str, *, today: date, before: str = "") -> list[Fact]:
    """Return what a message says that may be learnt; `before` is what was said just before it, by someone else."""
    if is_filler(text):
        return _of_answer(before, text, today) if before else []  # "yes" to a question says something
    facts: list[Fact] = []
    awaited = False
    last: list[Fact] = []
    said: list[str] = []
    for sentence in own_sentences(text):
        if awaited or is_bare(sentence):
            if awaited:
                facts += _of_order(Order(_capital(sentence.rstrip(" .!"))), today)
            awaited = not awaited
            continue
        if is_of_before(sentence):
            facts = [
                fact
                for one in said[-MOST_BEFORE:]
                if not is_question(one)
                for fact in _of_order(Order(_capital(one.rstrip(" .!"))), today)
            ] or facts
            continue
        if takes_back(sentence):
            facts = [fact for fact in facts if fact not in last]
        said.append(sentence)
        last = _of_sentence(sentence, today)
        facts += last
    if not facts and before:
        facts = _of_answer(before, text, today)
    unique = {fact.content.casefold(): fact for fact in reversed(facts)}
    return list(reversed(unique.values()))[:MOST_A_MESSAGE]


def _of_answer(before: str, text: str, today: date) -> list[Fact]:
    answer = answered(before, text)
    return [] if answer is None else [replace(fact, needs_question=True) for fact in _of_clause(answer, today)]


def _of_sentence(sentence: str, today: date) -> list[Fact]:
    order = ordered(sentence)
    if order is not None:
        return _of_order(order, today)
    text = before_question(sentence)
    if not text or is_question(text) or is_ironic(text):
        return []
    facts: list[Fact] = []
    for clause in clauses_of(text):
        facts += _of_clause(clause, today)
    return facts


def _of_order(order: Order, today: date) -> list[Fact]:
    content = order.content
    if names_secret(content) or is_filler(content) or len(content) > MOST_CHARACTERS:
        return []
    known = _of_clause(content, today, is_ordered=True)
    category, kind = (known[0].category, known[0].kind) if known else ("other", Kind.FACT)
    day, certain = (known[0].day, known[0].is_certain_day) if known else (None, False)
    lasts = order.lasts or lasting(content, today)
    return [Fact(content, category, kind, 1.0, lasts=lasts, day=day, is_certain_day=certain)]


def _of_clause(clause: str, today: date, *, is_ordered: bool = False) -> list[Fact]:
    text = without_lead(clause).strip().rstrip(".!…,;:").strip()
    text = _TAIL.sub("", text)
    written = written_out(text)
    if not text or len(text) > MOST_CHARACTERS or sum(map(str.isalpha, text)) < LEAST_LETTERS:
        return []
    found = _row_of(written, today)
    if found is _VETO or (found is None and not _OF_SPEAKER.match(written)):
        return []
    if names_secret(written) or (not is_ordered and (is_doubtful(written) or is_question(text))):
        return []
    found = found or _claim_of(written)
    if found is None:
        return []
    category, kind, confidence = found
    if category == "date":
        return _of_day(text, written, kind, confidence, today)
    if not is_ordered and is_of_now(written) and not _EVENT.search(written):
        return []
    return [Fact(_capital(text), category, kind, confidence, lasts=lasting(text, today))]


def _of_day(text: str, written: str, kind: Kind, confidence: float, today: date) -> list[Fact]:
    """Return what is said of a day: an event, unless it comes every year; none if it is over."""
    if is_yearly(written):
        return [Fact(_capital(text), "date", Kind.FACT, confidence)]
    due = due_day(written, today)
    return [] if due is None else [Fact(_capital(text), "date", kind, confidence, day=due[0], is_certain_day=due[1])]


_EVENT = compiled(r"\b{reading_event}\b")
"""What is so for long, though it happened today."""
_TAIL = compiled("{tail}")
_VETO = ("", Kind.FACT, 0.0)
_Found = tuple[str, Kind, float]


_VAGUE = compiled("{vague}")
_PASSING = compiled(r"\b{reading_passing}\b")


_MEANS_NOTHING = compiled("{means_nothing}")
"""What needs the words before it, or is of a task."""


def _row_of(written: str, today: date) -> _Found | None:
    """Return what the first row that matches says; _VETO where it means nothing by itself."""
    if _PASSING.search(written) or _MEANS_NOTHING.search(written):
        return _VETO
    first = written.split(" ", 1)[0].lower()
    for row in rows_of(first):
        match = row.pattern.match(written)
        if match is None:
            continue
        if row.category == "date" and not is_yearly(written) and not days_named(written, today):
            continue
        value = match.groupdict().get("v")
        if value is not None and _is_vague(value.strip(), row.category):
            return _VETO
        return row.category, row.kind, row.confidence
    return None


def _is_vague(value: str, category: str) -> bool:
    """Whether what is said means nothing without what was said before."""
    if not re.search(r"\w", value) or value.lower() in _NO_VALUES:
        return True
    if category == "date":
        return bool(_IT.search(value))
    begin = " ".join(value.split()[:MOST_POINTED])
    return bool(_POINTS.search(begin)) or (category not in {"decision", "goal"} and bool(_VAGUE.match(value)))


_NO_VALUES = frozenset(words("extraction.no_values"))
MOST_POINTED = 8  # words of a value that are looked at for what points to something said before
_IT = compiled(r"\b{it}\b")
_POINTS = compiled("{reading_points}")


def _claim_of(written: str) -> _Found | None:
    """Return what the reader of statements finds: an attribute of the speaker, as it is now."""
    if _NOT_OF_NOW.match(written) or not _OF_SPEAKER.match(written) or _POINTS.search(written):
        return None
    statement = statement_of(written)
    if statement.hedged:
        return None
    found = (CLAIMED[claim.attribute] for claim in statement.claims if claim.attribute in CLAIMED)
    category = next(found, None)
    return None if category is None else (category, Kind.FACT, LIKELY)


_OF_SPEAKER = re.compile(r"(?:i|my|we|our)\b", re.IGNORECASE)
_NOT_OF_NOW = re.compile(r"(?:i|we) (?:\w+ )?(?:was|were|lived|worked|had|used to)\b", re.IGNORECASE)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
