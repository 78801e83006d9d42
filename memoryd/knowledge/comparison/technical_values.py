"""
Values of programmers: addresses, paths, hosts, versions, ports, and what a thing runs on; hours and codes too.

Two statements with the same words but for one value in the same place. Other rules read words; of `api.v1.acme.com` and
`/var/log/app` they see names or nothing. Another value is a doubt, as two services may have one each; the same value
written otherwise is a repetition.
"""

from __future__ import annotations

import re

from memoryd.knowledge.comparison.rules import APART, Finding, Relation
from memoryd.knowledge.grammar.pattern import expanded
from memoryd.knowledge.lexicon.load import words

__all__ = ["by_technical_values"]

MOST_WORDS = 24  # of a statement
MOST_OF_VALUE = 3  # words
LEAST_OF_FRAME = 2  # words that both share
_WRAPPED = "`'\"“”‘’()[]<>"
_TECHNICAL = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://\S+|~?\.{0,2}/[\w./~-]+|[\w.-]+(?:/[\w.@~-]+)+|[a-z]:\\\S+"  # addresses and paths
    r"|v?\d+(?:\.\d+)+(?:[-.+][\w.]+)?|v\d+|\d+(?:\.\d+)*-\w+|:?\d{2,5}"  # versions, ports
    r"|[\w-]+(?:\.[\w-]+)+(?::\d+)?|[\w.-]+/[\w.-]+(?::[\w.-]+)?|[\w-]+:[\w.-]+"  # hosts, files, images
    r"|[a-z0-9]+(?:[-_][a-z0-9]+)+|\d+(?:ms|s|m|h|mb|gb|kb|mib|gib|%)|[a-z]+\d+)",  # names, measures
    re.IGNORECASE,
)
_THINGS = frozenset(words("frames.part.things"))
_CHOSEN = frozenset(words("frames.part.chosen"))
"""What is one of several by name: the word after "is" names it, and says nothing of how it is."""
_SINGLE = re.compile(expanded(r"\b{single}(?: (?:port|version|the|a|an|branch|in|on|at|to))*$"))
"""How the words before a value end, where a thing has one such value."""
_VERSIONED = re.compile(expanded("{versioned}"))
"""Before a version or a place, which one has once: "we run Postgres 14", "we deploy to eu-west-1"."""
_HOUR = re.compile(r"(?:\d{1,2}(?:[:.]\d\d)?(?: ?[ap]\.?m)?(?: o'clock)?|noon|midnight)")
_AT_HOUR = re.compile(expanded(r"\b{at_hour}(?: every day| daily)? (?:at|from)$"))
_DIGITS = re.compile(r"\d[\d -]*")
_ENDS_IN = re.compile(r"\b(?:ends?|begins?|starts?) (?:in|with|on)(?: the digits)?$")
_MANY = re.compile(r"\b(?:also|another|second|other|backup|secondary|too|as well)\b")
_OTHER = Finding(Relation.DOUBTFUL, "technical_value", "it names another value in the same place")
_SAME = Finding(Relation.SAME, "technical_value", "it names the same value, written otherwise")


def by_technical_values(new: str, old: str) -> Finding:
    """Return a doubt where two statements differ in one value of a programmer's, SAME where that is the same one."""
    ours, theirs = _words(new), _words(old)
    if ("new" in ours) != ("new" in theirs):  # "my new number ends in 774" is of the same number
        ours, theirs = ([word for word in words if word != "new"] for words in (ours, theirs))
    if not ours or not theirs or max(len(ours), len(theirs)) > MOST_WORDS:
        return APART
    if ours == theirs:
        return _SAME if any(map(_TECHNICAL.fullmatch, ours)) else APART
    first = _shared(ours, theirs)
    last = min(_shared(ours[::-1], theirs[::-1]), len(ours) - first, len(theirs) - first)
    mine, other = ours[first : len(ours) - last], theirs[first : len(theirs) - last]
    sizes = sorted((len(mine), len(other)))
    if not sizes[0] or sizes[1] > MOST_OF_VALUE or first < LEAST_OF_FRAME or _MANY.search(" ".join((*ours, *theirs))):
        return APART
    return _decided(ours[:first], mine, other, ends=last == 0)


def _decided(before: list[str], mine: list[str], other: list[str], *, ends: bool) -> Finding:
    """Return what two values in one place decide; whether they end their statements."""
    are_technical = _is_technical(mine) and _is_technical(other)
    frame = " ".join(before)
    if ends and _is_another_figure(frame, " ".join(mine), " ".join(other)):
        return _OTHER
    if frame.endswith((" uses", " use")):  # of many things that are used another one says nothing
        are_technical = all(map(_TECHNICAL.fullmatch, (*mine, *other)))
    if are_technical and _plain(mine) == _plain(other):
        return _SAME
    of_thing = _SINGLE.search(frame) is not None and not _THINGS.isdisjoint(before)
    if are_technical:
        return _OTHER if of_thing or (ends and _VERSIONED.search(frame)) else APART
    is_one = of_thing and not frame.endswith((" uses", " use", " is", " are"))
    is_named = frame.endswith(" is") and before[-2] in _CHOSEN and len(mine) == len(other) == 1
    return _OTHER if ends and (is_one or is_named) else APART


def _is_another_figure(frame: str, mine: str, other: str) -> bool:
    """Whether two statements that begin alike end in other hours, or in other last digits of one number."""
    if _AT_HOUR.search(frame) and _HOUR.fullmatch(mine) and _HOUR.fullmatch(other):
        return _minutes(mine) != _minutes(other)
    return bool(_ENDS_IN.search(frame) and _DIGITS.fullmatch(mine) and _DIGITS.fullmatch(other))


def _minutes(hour: str) -> int:
    """Return the minutes after midnight of an hour as it is written."""
    if hour in {"noon", "midnight"}:
        return 720 * (hour == "noon")
    figures = [int(figure) for figure in re.findall(r"\d+", hour)]
    past = figures[0] % 12 + 12 * ("p" in hour) if re.search("[ap]", hour) else figures[0]
    return 60 * past + (figures[1] if len(figures) > 1 else 0)


def _words(text: str) -> list[str]:
    """Return the words of a text in small letters, without the marks around them."""
    text = re.sub(r"[’']s\b", "", text.strip()).replace(": ", " is ", 1)
    text = re.sub(r"(?<=\d) ([ap]\.?m)\b", r"\1", text, flags=re.IGNORECASE)
    words = (word.strip(_WRAPPED).rstrip(".,;!?").strip(_WRAPPED).lower() for word in text.split())
    return [word for word in words if word]


def _shared(one: list[str], other: list[str]) -> int:
    """Return how many words two texts begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _is_technical(value: list[str]) -> bool:
    return any(_TECHNICAL.fullmatch(word) for word in value)


def _plain(value: list[str]) -> list[str]:
    """Return a value without what may be left out: the scheme of an address, a last slash, the v of a version."""
    found = []
    for word in value:
        bare = re.sub(r"^(?:https?://|ssh://|git@)(?:www\.)?", "", word).rstrip("/").lstrip(":")
        found.append(re.sub(r"^v(?=\d)|\.git$", "", bare))
    schemes = {word.partition("://")[0] for word in value if "://" in word}
    return [*found, *sorted(schemes - {"https"})]
