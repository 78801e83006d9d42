"""
The words of a statement, each with what it is for a comparison: content, name, number, negation or grammar.

English, as are the tables; what it does not know stays content, so that other languages are compared by their words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from memoryd.knowledge.grammar.names import is_first_name
from memoryd.knowledge.grammar.pattern import expanded
from memoryd.knowledge.lexicon.load import table, words
from memoryd.knowledge.lexicon.spelling import stem

__all__ = [
    "DAYS",
    "GRAMMAR",
    "NO_NAMES",
    "NUMBER_WORDS",
    "Name",
    "Words",
    "head_of",
    "is_plural",
    "names_of",
    "plain",
    "telling_words",
    "value_of",
    "words_in",
    "words_of",
]

_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"'})
_CONTRACTIONS = (
    (re.compile(r"\b(ca)n't\b", re.IGNORECASE), r"\1n not"),
    (re.compile(r"\bwon't\b", re.IGNORECASE), "will not"),
    (re.compile(r"\b(\w+)n't\b", re.IGNORECASE), r"\1 not"),
    (re.compile(r"\b(i)'m\b", re.IGNORECASE), r"\1 am"),
    (re.compile(r"\b(\w+)'re\b", re.IGNORECASE), r"\1 are"),
    (re.compile(r"\b(\w+)'ve\b", re.IGNORECASE), r"\1 have"),
    (re.compile(r"\b(\w+)'ll\b", re.IGNORECASE), r"\1 will"),
    (re.compile(r"\b(i|you|he|she|we|they)'d\b", re.IGNORECASE), r"\1 would"),
    (re.compile(r"\b(he|she|it|that|there|here|what|who|where)'s\b", re.IGNORECASE), r"\1 is"),
    (re.compile(r"\bcannot\b", re.IGNORECASE), "can not"),
    (re.compile(r"\bany ?more\b", re.IGNORECASE), "anymore"),
)
_SPACES = re.compile(r"\s+")
_TITLE = re.compile(r"\b(Dr|Mr|Mrs|Ms|Prof|St)\.(?= )")
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|\w+(?:['-]\w+)*", re.UNICODE)

GRAMMAR = frozenset(words("grammar.grammar"))
NEGATIONS = frozenset(words("grammar.negations"))
"""What turns a statement round."""
EXCLUSIONS = frozenset(words("grammar.exclusions"))
"""What leaves no room for another value next to this one."""
NUMBER_WORDS = {word: str(number) for word, number in {**table("numbers.counted"), **table("numbers.times")}.items()}
DAYS = frozenset(words("time.when"))


NO_NAMES = GRAMMAR | NEGATIONS | EXCLUSIONS | DAYS | NUMBER_WORDS.keys()
_NO_NAMES = {False: NO_NAMES, True: NO_NAMES | {"user"}}
"""By whether it begins a text: "User's favorite color is blue" names no one."""
_OPENERS = frozenset(words("grammar.openers"))
"""What begins a sentence with a capital and is no name."""
_VERBS = frozenset(words("grammar.verbs"))
"""What begins a note before a name: "Called Ben", "Met Anna", "Ask Tom"."""
_BREAK = re.compile(r"[.!?:;]")
_BEFORE_PLACES = frozenset(words("grammar.before_places"))
_NO_PERSONS = frozenset(words("grammar.no_persons"))
_BETWEEN_LEADERS = frozenset(["and", "or", "both", "all", "two", "three", "four"])


def plain(text: str) -> str:
    """Return text on one line with straight quotes and its contractions written out."""
    text = _TITLE.sub(r"\1", _SPACES.sub(" ", text.translate(_APOSTROPHES)).strip())
    if "'" in text or "any" in text or "cannot" in text:
        for pattern, written in _CONTRACTIONS:
            text = pattern.sub(written, text)
    return text


_ACTS = frozenset(words("grammar.acts"))


_PERSONS_DO = frozenset(words("grammar.persons_do"))
"""What follows a name that looks like a verb: "Ahmed lives in Oslo"."""


def _is_verb(word: str, following: str) -> bool:
    """Whether a word that begins a sentence says what was done, and is no one's name."""
    if is_first_name(word):
        return False
    by_form = word.endswith(("ed", "ing")) and len(word) > 4  # noqa: PLR2004  not "Ted"
    return word in _VERBS or (by_form and following.lower() not in _PERSONS_DO)


def _acts(following: str) -> bool:
    """Whether the first word of a sentence is a name, by the word after it: another one, or a third person's verb."""
    lower = following.lower()
    return (
        following[:1].isupper() or lower in _ACTS or (lower.isalpha() and lower.endswith(("s", "ed")) and lower != "us")
    )


@dataclass(frozen=True, slots=True)
class Name:
    """A run of capitalised words."""

    text: str
    """In lower case, without possessive."""
    leads: bool
    """Whether it stands at the beginning, as the one who does something or one of them."""
    place: bool
    """Whether a preposition before it, or its first word, says that it is no person."""
    start: int = 0
    """Where it begins in the text, if that is written plainly: one space between words, no contractions."""
    end: int = 0


@dataclass(frozen=True, slots=True)
class Words:
    """What a statement is made of."""

    content: tuple[str, ...]
    """Stems of the words that carry meaning, in order: no grammar, names, numbers, negation."""
    names: tuple[Name, ...]
    numbers: tuple[str, ...]
    days: tuple[str, ...]
    """Days, months and parts of the day."""
    negations: int
    exclusions: int
    count: int
    """How many words there are in all."""
    shades: frozenset[str] = frozenset()
    """What a small word or ending says and a stem does not: how often, that it is past, and identifiers as they are."""
    past: frozenset[str] = frozenset()
    """Stems of the words that end in -ed."""
    stems: frozenset[str] = field(init=False, repr=False)
    """Those of `content`."""
    named: frozenset[str] = field(init=False, repr=False)
    """The names as texts."""
    leading: frozenset[str] = field(init=False, repr=False)
    """Those of them that lead."""

    def __post_init__(self) -> None:
        """Make once what every comparison asks for."""
        put = object.__setattr__
        put(self, "stems", frozenset(self.content))
        put(self, "named", frozenset(name.text for name in self.names))
        put(self, "leading", frozenset(name.text for name in self.names if name.leads))

    @property
    def meaning(self) -> frozenset[str]:
        """All that carries meaning."""
        return self.stems | self.named | {*self.numbers, *self.days}


_HOW_OFTEN = {word: line.split()[0] for line in table("grammar.as_often") for word in line.split()}
_PAST = frozenset(("was", "were", "did", "had"))
_IDENTIFIER = re.compile(r"(?<!\S)[\"'`(]*((?:--?)?[A-Za-z]\S*[_/.:@#\\]\S*|--\w\S*|/\S+|[a-z]+[A-Z]\w*)")


def _shades(text: str, plain_text: str) -> frozenset[str]:
    found = {match[1].rstrip(".,;:!?\"'`)") for match in _IDENTIFIER.finditer(text)}
    tokens = plain_text.lower().split()
    often = {_HOW_OFTEN[token] for token in tokens if token in _HOW_OFTEN}
    past = {"past"} if any(token in _PAST for token in tokens) else set()
    return frozenset({one for one in found if not one.isalpha() or not one.islower()} | often | past)


def words_of(text: str) -> Words:
    """Return the words of a statement."""
    reader = _WordReader(plain(text))
    reader.read()
    stems = stem(reader.content)
    return Words(
        tuple(stems),
        tuple(reader.names),
        tuple(reader.numbers),
        tuple(reader.days),
        reader.negations,
        reader.exclusions,
        reader.count,
        _shades(text, reader.text),
        frozenset(stemmed for stemmed, word in zip(stems, reader.content, strict=True) if word.endswith("ed")),
    )


class _WordReader:
    """Goes through a text, token by token: a run of capitalised words is a name, the rest is sorted by its sort."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.content: list[str] = []
        self.names: list[Name] = []
        self.numbers: list[str] = []
        self.days: list[str] = []
        self.negations = self.exclusions = self.count = 0
        self._run: list[str] = []
        """The words of the name that is being read, its place, and whether it leads or follows a word for a place."""
        self._start = self._end_of_run = 0
        self._leads = self._place = False
        self._leading = True
        self._previous, self._end = "", 0

    def read(self) -> None:
        """Read all of it."""
        matches = list(_TOKEN.finditer(self.text))
        for n, match in enumerate(matches):
            following = matches[n + 1].group() if n + 1 < len(matches) else ""
            self._token(match, following, is_first=n == 0)
        self._end_name()

    def _token(self, match: re.Match[str], following: str, *, is_first: bool) -> None:
        token = match.group()
        owns = token.lower().endswith("'s")
        if owns:
            token = token[:-2]
        lower = token.lower()
        self.count += 1
        between = self.text[self._end : match.start()]
        initial = between == ". " and len(self._previous) == 1 and bool(self._run)  # "J. Smith"
        is_name = token[0].isupper() and lower not in _NO_NAMES[is_first]
        if is_name and not owns and not initial and (is_first or _BREAK.search(between)):
            is_name = lower not in _OPENERS and not _is_verb(lower, following) and _acts(following)
        if not (is_name and (between == " " or initial)):
            self._end_name()
        if is_name:
            if not self._run:
                self._start = match.start()
                self._leads, self._place = self._leading, self._previous in _BEFORE_PLACES or lower in _NO_PERSONS
            self._run.append(lower)
            self._end_of_run = match.start() + len(token)
        else:
            self._sort(lower)
            if lower not in _BETWEEN_LEADERS:
                self._leading = False
        if owns:
            self._end_name()
        self._previous, self._end = lower, match.end()

    def _end_name(self) -> None:
        if self._run:
            self.names.append(Name(" ".join(self._run), self._leads, self._place, self._start, self._end_of_run))
            self._run = []

    def _sort(self, lower: str) -> None:
        """Put a word that is no name where it belongs."""
        if lower in NEGATIONS:
            self.negations += 1
        elif lower in EXCLUSIONS:
            self.exclusions += 1
        elif lower in GRAMMAR:
            pass
        elif lower[0].isdigit():
            self.numbers.append(lower.replace(",", ""))
        elif lower in NUMBER_WORDS:
            self.numbers.append(NUMBER_WORDS[lower])
        elif lower in DAYS:
            self.days.append(lower.rstrip("s") if lower.endswith(("ys", "ds", "gs", "ns", "ts")) else lower)
        else:
            self.content.append(lower)


def telling_words(text: str) -> list[str]:
    """Return the words that tell instances of one shape apart: names, numbers, days, in lower case."""
    words = words_of(text)
    return [*(name.text for name in words.names), *words.numbers, *words.days]


_EMPTY = frozenset(words("grammar.values_empty"))


def words_in(text: str) -> list[str]:
    """Return the words of a text in lower case, numbers as digits, without possessives."""
    found = re.findall(r"[\w.+-]+@[\w.-]+\w|\d+(?:[.:,]\d+)*|\w+(?:['-]\w+)*", text.lower())
    return [NUMBER_WORDS.get(word, word).removesuffix("'s") for word in found]


def value_of(text: str) -> frozenset[str]:
    """Return the stems of the words that carry meaning."""
    return frozenset(stem([word for word in words_in(text) if word not in GRAMMAR and word not in _EMPTY]))


_AFTER_HEAD = re.compile(expanded("{after_head}"))


def head_of(text: str) -> str:
    """Return the stem of the word that a phrase is about: of "a car seat for the baby" the seat."""
    cut = _AFTER_HEAD.search(text)
    return (stem(words_in(text[: cut.start()] if cut else text)) or [""])[-1]


def names_of(text: str) -> frozenset[str]:
    """Return the stems of the capitalised words; days are no names."""
    return value_of(" ".join(word for word in text.split() if any(map(str.isupper, word)) and word.lower() not in DAYS))


def is_plural(text: str) -> bool:
    """Whether the last word of a text has the ending of a plural: "my cars", not "my boss"."""
    last = (words_in(text) or [""])[-1]
    return last.endswith("s") and not last.endswith("ss")
