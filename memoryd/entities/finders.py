"""
What finds names in a text, by name.

`regex` is always there, `spacy` where it is installed; others join by an entry point of the group
`memoryd.entity_finders` that is called with the model's name and returns a Finder.

A strategy is a list of finders; where their finds overlap, the more confident one holds, then the longer.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, distribution, entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeGuard, runtime_checkable

from memoryd.entities.persons import (
    GREETINGS,
    MONTH_NAMES,
    Person,
    are_person,
    begins_foreign,
    is_date,
    is_subject,
    is_when,
    persons_in,
    seems_person,
)  # fmt: skip
from memoryd.entities.told_types import told_type
from memoryd.errors import StartupError
from memoryd.knowledge.grammar.names import TITLES, is_given_name
from memoryd.knowledge.grammar.pattern import lazily
from memoryd.knowledge.grammar.relations import RELATION_PATTERN, RELATIONS, relation_of
from memoryd.knowledge.grammar.words import DAYS, NO_NAMES, Name, plain, words_of
from memoryd.knowledge.lexicon.spelling import UPPER, word_set
from memoryd.model.entity import EntityType, Form

__all__ = ["FINDERS", "WRITTEN", "Find", "Finder", "FinderRefused", "RegexFinder", "find_entities", "load_finders"]

MOST_CHARACTERS = 2000  # of a text in which names are looked for
ENTRY_POINTS = "memoryd.entity_finders"


class FinderRefused(StartupError):
    """The configuration names a finder that is not there."""


@dataclass(frozen=True, slots=True)
class Find:
    """Some words that name something."""

    start: int
    end: int
    text: str
    """What they name it: of a relation the relation."""
    form: Form
    type: EntityType
    confidence: float
    about: bool = False
    group: int = 0
    """Finds of one number (from 1) name one and the same; 0: alone."""
    denied: bool = False
    """Whether it looked like a person's name, and a finder that judges says that it is none."""


@runtime_checkable
class Reviewer(Protocol):
    """A finder that also judges what all of them have found."""

    def review(self, text: str, finds: Sequence[Find]) -> Sequence[Find]:
        """Return what was found, some of it of another type."""
        ...


class Finder(Protocol):
    """Finds names in a text, which is on one line."""

    name: str
    accurate: bool
    """Whether it sees more than patterns do, so that looking again with it pays."""

    def find(self, text: str) -> Iterable[Find]:
        """Return what it finds, in any order."""
        ...


_WORD = rf"(?<![\w'’-])[{UPPER}](?:[\w-]|['’](?=[{UPPER}])){{0,40}}"  # O'Neil is one, Sarah's is Sarah
_NAME = rf"(?-i:{_WORD}(?: (?:{_WORD}|de|van|von|der|la|al|bin)){{0,3}})"
_NO_LONGER = r"(?!first|former|late|previous|old|future|last)"  # "my first wife" is not my wife
_RELATION = rf"(?:my|our|the user's|user's)\s+(?:{_NO_LONGER}\w+\s+)?(?P<relation>{RELATION_PATTERN})"
_ONE_PERSON: tuple[re.Pattern[str], ...] = tuple(
    lazily(partial(re.compile, pattern, re.IGNORECASE))
    for pattern in (
        rf"\b{_RELATION}(?:['’]s name is|,? (?:is |was )?(?:called|named)|['’]s called|,| is| was)? (?P<name>{_NAME})",
        rf"\b(?P<name>{_NAME})(?:,| is| was|['’]s) (?:{_RELATION})\b(?!['’])",
        (
            rf"\b(?P<name>{_NAME}),? (?:\(?(?:aka|a\.k\.a\.|also known as)|goes by|is called|is nicknamed|nicknamed"
            rf"|is known as) (?:the name )?(?P<alias>{_NAME})"
        ),
        rf"\b(?P<alias>{_NAME}) is (?:short|a nickname) for (?P<name>{_NAME})",
        rf"\b(?:call|calls) (?P<name>{_NAME}) (?P<alias>{_NAME})",
        rf"\b(?P<name>{_NAME}) \(?(?P<handle>@[A-Za-z]\w*)\)?",
        (
            rf"\b(?P<name>{_NAME})['’]s (?:handle|username|user name|nick|account|twitter|github"
            rf"|slack) is (?P<handle>@?[A-Za-z]\w+)"
        ),
        rf"(?P<handle>@[A-Za-z]\w*) is (?P<name>{_NAME})",
        rf"\b(?P<name>{_NAME})['’]s (?:\w+ )?e-?mail(?: address)? is (?P<email>[\w.+-]+@[\w-]+\.[\w.-]*\w)",
        rf"\b{_RELATION}['’]s (?:\w+ )?e-?mail(?: address)? is (?P<email>[\w.+-]+@[\w-]+\.[\w.-]*\w)",
        rf"\b{_RELATION}['’]s (?:handle|username) is (?P<handle>@?[A-Za-z]\w+)",
    )
)
_OWNER = re.compile(r"(?:my|our|the user's|user's)\s+(?:\w+\s+)?$", re.IGNORECASE)
_RELATION_ALONE = re.compile(rf"\b{_RELATION}\b", re.IGNORECASE)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_URL = re.compile(r"\b(?:https?://|www\.)[^\s<>\"')\]]+[^\s<>\"')\].,;:!?]", re.IGNORECASE)
_HANDLE = re.compile(r"(?<![\w@./])@[A-Za-z]\w*")
_HASHTAG = re.compile(r"(?<![\w#&])#[A-Za-z]\w*")
_ORGANIZATION = re.compile(
    r"\b(?:inc|corp|ltd|llc|gmbh|company|university|college|school|bank|hospital|institute|foundation|orchestra|society"
    r"|association|club|agency|museum|church|council|group|airlines|studios?|labs?|team|press)\b",
    re.IGNORECASE,
)
_PROJECT = re.compile(r"\b(?:project|initiative|campaign|expedition)\b", re.IGNORECASE)
_NO_ENTITIES = word_set("""
    italian french german spanish english chinese japanese korean indian thai mexican greek turkish russian
    polish dutch swedish norwegian danish finnish portuguese brazilian american british irish scottish european
    african asian arabic hebrew hindi vietnamese indonesian swiss austrian hungarian czech ukrainian canadian
    australian catholic christian muslim jewish buddhist hindu god internet wi-fi wifi tv ai api ok pm am usa eu
    uk christmas easter thanksgiving ramadan halloween hanukkah diwali i'm mr mrs ms dr bitcoin covid phd mba
    ceo cto cfo hr it ui ux sql pdf
""")
"""Capitalised words that are no names of anybody or anything that is talked about."""
_THINGS = word_set("""
    python java javascript typescript rust go perl php scala kotlin swift haskell docker kubernetes linux ubuntu debian
    windows android ios macos github gitlab slack zoom notion google amazon apple microsoft facebook meta netflix
    spotify youtube twitter instagram whatsapp telegram signal discord reddit linkedin postgres postgresql mysql sqlite
    redis mongodb kafka spark hadoop tensorflow pytorch react angular vue node django flask excel word powerpoint
    outlook teams chrome firefox safari vim emacs vscode bash zsh azure tesla toyota honda bmw audi volkswagen nike
    adidas ikea walmart costco starbucks siri cortana chatgpt gemini openai uber airbnb paypal visa mastercard duckdb
""")
"""Single names that are of no person, whatever is said of them."""
_DENIED = re.compile(rf"[{UPPER}][\w'’-]* (?:is|was|are|were)(?:n['’]t| not| no longer| never)(?: really)? $")
_BEFORE_LEADER = re.compile(r"^[\s,]*(?:(?:and|or|both|with|all|&|the|two|three|four)[\s,]+)*$", re.IGNORECASE)
CERTAIN, WRITTEN, GUESSED = 1.0, 0.9, 0.6


class RegexFinder:
    """Patterns: addresses, handles, hashtags, relations, and capitalised words."""

    name = "regex"
    accurate = False

    def find(self, text: str) -> Iterable[Find]:
        """Return what the patterns match."""
        if not _MAY_NAME.search(text):
            return []
        finds: list[Find] = []
        self._addresses(text, finds)
        if _is_shouted(text):
            text = text.lower()  # in capitals alone every word looks like a name
        self._persons(text, finds)
        for match in _RELATION_ALONE.finditer(text):
            if _DENIED.search(text, max(0, match.start() - 40), match.start()):
                continue  # "Jane is no longer my friend" makes no one a friend
            relation = relation_of(match["relation"])
            finds.append(Find(*match.span(), relation, Form.RELATION, EntityType.PERSON, WRITTEN))
        finds += _finds_of(persons_in(text), finds)
        taken = bytearray(len(text))
        for find in finds:
            if find.form is Form.NAME:
                taken[find.start : find.end] = b"\1" * (find.end - find.start)
        for name in words_of(text).names:
            if begins_foreign(text, name.start, name.end) or any(taken[name.start : name.end]):
                continue
            if name.end > name.start and name.text not in _NO_ENTITIES and len(name.text) > 1:
                written = text[name.start : name.end]
                if name.text in RELATIONS:  # "Mom called", not "Thanks Assistant"
                    if text[: name.start].strip(" ,").lower() in GREETINGS:
                        continue
                    relation = relation_of(written)
                    finds.append(Find(name.start, name.end, relation, Form.RELATION, EntityType.PERSON, GUESSED))
                    continue
                kind = _type(text, name)
                finds.append(Find(name.start, name.end, written, Form.NAME, kind, GUESSED))
        return [one for one in finds if one.form is not Form.NAME or not is_when(text, one.start, one.end)]

    @staticmethod
    def _addresses(text: str, finds: list[Find]) -> None:
        for pattern, form, kind in (
            (_EMAIL, Form.EMAIL, EntityType.EMAIL),
            (_URL, Form.URL, EntityType.URL),
            (_HANDLE, Form.HANDLE, EntityType.PERSON),
            (_HASHTAG, Form.HASHTAG, EntityType.OTHER),
        ):
            finds += [Find(*m.span(), m.group(), form, kind, CERTAIN) for m in pattern.finditer(text)]

    @staticmethod
    def _persons(text: str, finds: list[Find]) -> None:
        """Find what is said to be one person: a relation with its name, a name with its nickname or address."""
        for pattern in _ONE_PERSON:
            for match in pattern.finditer(text):
                groups = match.groupdict()
                names = [groups.get("name"), groups.get("alias")]
                if any(name is not None and _no_person(name) for name in names):
                    continue
                if is_date((names[0] or "").lower(), text, match.end("name") if names[0] else 0):
                    continue
                group = 1 + max((find.group for find in finds), default=0)
                for part, form in (
                    ("relation", Form.RELATION), ("name", Form.NAME), ("alias", Form.NAME), ("handle", Form.HANDLE),
                    ("email", Form.EMAIL),
                ):  # fmt: skip
                    said = groups.get(part)
                    if said:
                        start = match.start(part)
                        if part == "relation":
                            owner = _OWNER.search(text, 0, start)
                            start = start if owner is None else owner.start()
                        shown = {"relation": relation_of(said), "handle": "@" + said.lstrip("@")}.get(part, said)
                        finds.append(Find(start, match.end(part), shown, form, EntityType.PERSON, CERTAIN, group=group))


def _finds_of(persons: Iterable[Person], before: Sequence[Find]) -> Iterator[Find]:
    """Yield a find for each person, and one for the relation that is told with them, in a group of their own."""
    group = max((find.group for find in before), default=0)
    for person in persons:
        if person.name.lower() in _NO_ENTITIES:
            continue
        group += 1
        of = group if person.relation else 0
        yield Find(person.start, person.end, person.name, Form.NAME, EntityType.PERSON, WRITTEN, group=of)
        if person.relation:
            span = (person.relation_start, person.relation_end)
            yield Find(*span, person.relation, Form.RELATION, EntityType.PERSON, WRITTEN, group=of)


SHOUTED_WORDS, SHOUTED_LETTERS = 2, 3  # a text of capitals has so many words of so many letters


def _is_shouted(text: str) -> bool:
    """Whether a text is written in capitals alone, and is more than a name or two letters."""
    long = [word for word in text.split() if sum(map(str.isalpha, word)) >= SHOUTED_LETTERS]
    return text.upper() == text and len(long) >= SHOUTED_WORDS and len(text.lower()) == len(text)


_MAY_NAME = re.compile(rf"[{UPPER}@#]|www\.|://|\b(?:my|our|user's)\s+(?:\w+\s+)?(?:{RELATION_PATTERN})\b")


def _no_person(name: str) -> bool:
    first = name.lower().split()[0].strip("'’")
    is_grammar = first in NO_NAMES and (first in DAYS - MONTH_NAMES or not is_given_name(first))
    return first in _NO_ENTITIES | GREETINGS or is_grammar or bool(_ORGANIZATION.search(name))


def _type(text: str, name: Name) -> EntityType:
    written = text[name.start : name.end]
    if _ORGANIZATION.search(written):
        return EntityType.ORGANIZATION
    if _PROJECT.search(written):
        return EntityType.PROJECT
    words = written.split()
    if words[0].lower() in _THINGS:
        return EntityType.OTHER
    if are_person(text, name.start, name.end) and not (name.place and len(words) == 1):
        return EntityType.PERSON
    if name.place:
        return EntityType.LOCATION
    if seems_person(text, name.start, name.end) or (len(words) > 1 and words[0].lower() in TITLES):
        return EntityType.PERSON
    return EntityType.OTHER


class SpacyFinder:
    """A spaCy pipeline's named entities: people, organizations, places and products."""

    name = "spacy"
    accurate = True
    _TYPES: ClassVar = {
        "PERSON": EntityType.PERSON, "PER": EntityType.PERSON, "ORG": EntityType.ORGANIZATION,
        "GPE": EntityType.LOCATION, "LOC": EntityType.LOCATION, "FAC": EntityType.LOCATION,
        "PRODUCT": EntityType.PROJECT, "WORK_OF_ART": EntityType.OTHER, "EVENT": EntityType.OTHER,
    }  # fmt: skip

    def __init__(self, model: str) -> None:
        """Load a pipeline by its package's name or its directory; FinderRefused if it cannot be had."""
        if not _is_installed("spacy"):
            raise FinderRefused("the finder spacy needs the package: pip install 'memoryd[spacy]'")
        no_pipeline = FinderRefused(
            f"spaCy has no pipeline {model!r}; install it, or name its directory in entities.spacy_model"
        )
        if not (_is_installed(model) or Path(model).exists()):  # asked before the import, which takes 0.7 s of CPU
            raise no_pipeline
        try:
            import spacy  # type: ignore[import-not-found,unused-ignore]
        except Exception as error:  # noqa: BLE001  compiled packages that do not fit each other raise what they like
            raise FinderRefused(f"spaCy cannot be imported: {error}") from None
        try:
            self._pipeline: Any = spacy.load(model)
        except OSError:
            raise no_pipeline from None
        except Exception as error:  # noqa: BLE001  a package that is broken, or holds no pipeline
            raise FinderRefused(f"spaCy cannot load {model!r}: {error}") from None

    def find(self, text: str) -> Iterable[Find]:
        """Return the named entities of the types that are kept."""
        for span in self._pipeline(text).ents:
            kind = self._TYPES.get(span.label_)
            if kind is not None:
                yield Find(span.start_char, span.end_char, span.text, Form.NAME, kind, 0.8)


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    except (PackageNotFoundError, ValueError):  # the latter for a name that no package can have
        return False
    return True


FINDERS: dict[str, Callable[[str], Finder]] = {"regex": lambda _model: RegexFinder(), "spacy": SpacyFinder}


def load_finders(
    names: Sequence[str],
    *,
    model: str,
    optional: bool = False,
    more: Mapping[str, Callable[[str], Finder]] = MappingProxyType({}),
) -> list[Finder]:
    """
    Return the finders of these names; FinderRefused names an unknown one, with those that there are.

    With `optional`, one that is known but not installed is left out. `more` are those that someone else makes.
    """
    known: dict[str, Callable[[str], Finder]] = {**FINDERS, **more}
    if not known.keys() >= set(names):  # to look through all that is installed takes a fifth of a second
        known = {point.name: point.load() for point in entry_points(group=ENTRY_POINTS)} | known
    finders = []
    for name in names:
        if name not in known:
            raise FinderRefused(f"there is no entity finder {name!r}; there are {', '.join(sorted(known))}")
        try:
            finders.append(known[name](model))
        except FinderRefused:
            if not optional:
                raise
    return finders


def _is_reviewer(finder: Finder) -> TypeGuard[Reviewer]:
    return _are_reviewers(type(finder))


@cache
def _are_reviewers(kind: type) -> bool:
    """Whether finders of a class judge too: to ask a protocol takes longer than some of them take for a text."""
    return issubclass(kind, Reviewer)


def find_entities(text: str, finders: Sequence[Finder]) -> list[Find]:
    """Return what the finders find in a text, in order and without overlaps, and which of it the text is about."""
    text = plain(text[:MOST_CHARACTERS])
    finds = _without_overlaps(find for finder in finders for find in finder.find(text))
    for finder in finders:
        if _is_reviewer(finder):
            finds = list(finder.review(text, finds))
    finds = [replace(one, type=told_type(text, one.start, one.type)) if one.form is Form.NAME else one for one in finds]
    leading: list[Find] = []
    end, about = 0, True
    for find in finds:
        between = text[end : find.start]
        about = about and (bool(_BEFORE_LEADER.match(between)) or _joined(between, find, leading))
        acts = about or (find.type is EntityType.PERSON and is_subject(text, find.start, find.end))
        leading.append(replace(find, about=acts))
        end = find.end
    groups = {find.group for find in leading if find.about and find.group}
    return [replace(find, about=find.about or find.group in groups) for find in leading]


def _without_overlaps(finds: Iterable[Find]) -> list[Find]:
    """Return finds in order; of those that overlap the most confident one, then the one that says more."""
    chosen: list[Find] = []
    for find in sorted(finds, key=lambda find: (-find.confidence, not find.group, find.start - find.end, find.start)):
        at = bisect_left(chosen, find.start, key=lambda other: other.start)  # they stand in order, so two can overlap
        is_free = at == 0 or chosen[at - 1].end <= find.start
        if is_free and (at == len(chosen) or find.end <= chosen[at].start):
            chosen.insert(at, find)
    return chosen


def _joined(between: str, find: Find, before: Sequence[Find]) -> bool:
    """Whether a find belongs to the one before it: "my wife's name is Sarah"."""
    return bool(find.group) and bool(before) and before[-1].group == find.group and len(between) < 40  # noqa: PLR2004
