"""
A sentence made to stand alone: without what only opens or ends it, and with a name for "she" where one is told before.

Whether it is understood then is for the keeping reader to say: "It's in column F" says nothing in a year.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from memoryd.knowledge.grammar.names import is_doubtful_name, is_given_name
from memoryd.knowledge.grammar.pattern import compiled, expanded
from memoryd.knowledge.grammar.relations import RELATION_PATTERN
from memoryd.knowledge.grammar.words import NO_NAMES
from memoryd.knowledge.lexicon.load import table
from memoryd.knowledge.lexicon.spelling import UPPER

__all__ = ["Alone", "alone", "answer_alone"]

MOST_CHARACTERS = 300  # of what is kept
LEAST_WORDS = 2
_TAILS: Sequence[str] = table("spoken.tails")
_SIGNS = re.compile(r"[\s.!…,;:–—\U0001F300-\U0001FAFF\u2600-\u27BF\uFE0F]$")
_LAUGHS = re.compile(r",? \b(?:lol|lmao|haha+|hehe+|xd)\b,?", re.IGNORECASE)
_OPENS = compiled("^{alone_opens}+")
_NAMED = rf"(?-i:\b[{UPPER}][\w-]*\w)"
_RELATION = (
    rf"(?:(?:my|our) (?:\w+ )?\b(?:{RELATION_PATTERN})(?: {_NAMED})?|(?:mum|mom|mam|dad|grandma|grandpa|granny|nana))\b"
)
_PERSON = re.compile(rf"{_RELATION}|{_NAMED}", re.IGNORECASE)
_SOMEBODY = compiled("{somebody}")
_SHE = re.compile(r"\b(?:she|he|him)\b|\b(?P<whose>his|her|hers)\b", re.IGNORECASE)
_FEMALE = compiled(r"\b{female}\b")
_MALE = compiled(r"\b{male}\b")
_BECAUSE = re.compile(r"^(?P<kept>.{12,}?),? (?:because|cos|coz)(?! of\b) .+$", re.IGNORECASE)
_DENIED = compiled("{alone_denied}")
_POINTS = compiled(r"\b{points}\b")
_OF_PLACE = re.compile(r"\b(?:in|van|von|de|la|saint|st\.?|lake|mount|port) $", re.IGNORECASE)
_SIGNED, _ENDS = re.compile(r"[,–—-]\s*$"), re.compile(r"\s*(?:$|[.!\"”])")
_WITHIN = re.compile(r"[\w,;:'’-] *$")
_DOES = re.compile(expanded("{does}"))
"""What stands before a word within a sentence, and after the name of someone at its beginning."""


class Alone(NamedTuple):
    """What a sentence says by itself."""

    content: str
    needs_asked: bool = False
    """Whether a name of it stands in what someone else said before."""


def alone(sentence: str, own: str = "", asked: str = "") -> list[Alone]:
    """
    Return how a sentence may say by itself what it says, in its own words, the fullest first.

    `own` is what the same person said before it, `asked` what someone else said before that. The one person that their
    last sentences name stands for "she" or "he"; of what another said only a name: their sister is not one's own.
    """
    text = _bare(sentence)
    if len(text) > MOST_CHARACTERS:
        return []
    ways, reason = [text], _BECAUSE.match(text)
    if reason is not None and not _DENIED.search(reason["kept"]):  # "…, because they paid more" does without its reason
        ways.append(reason["kept"])
    return [_begun(_named(way, own, asked)) for way in ways if len(way.split()) >= LEAST_WORDS]


def answer_alone(asked: str, answer: str) -> str | None:
    """Return a question with its short answer: "Any allergies? penicillin"; None where it does not stand alone."""
    question = re.split(r"(?<=[.!?\n])\s+", asked.strip())[-1]
    text = _without_end(_LAUGHS.sub("", answer.strip()))
    if not question.endswith("?") or not text or len(question) + len(text) >= MOST_CHARACTERS:
        return None
    return None if _SHE.search(question) or _POINTS.search(f"{question} {text}") else f"{question} {text}"


def _bare(sentence: str) -> str:
    """Return a sentence without what only opens or ends it."""
    text = sentence.strip()
    opened = _OPENS.match(text)
    return _without_end(_LAUGHS.sub("", text[opened.end() :] if opened else text))


def _without_end(text: str) -> str:
    """Return a sentence without what only ends it; in steps, as patterns for it take a time without end."""
    while text:
        lower = text.lower()
        tail = next((one for one in _TAILS if lower.endswith(one)), "")
        if tail:
            text = text[: -len(tail)]
        elif _SIGNS.search(text, len(text) - 1):
            text = text[:-1]
        else:
            break
    return text


def _begun(sentence: Alone) -> Alone:
    return sentence._replace(content=sentence.content[:1].upper() + sentence.content[1:])


def _named(text: str, own: str, asked: str) -> Alone:
    """Return a sentence with a name for the first "she" that it does not name, where one person may be meant."""
    match = _SHE.search(text)
    if match is None or _SOMEBODY.search(text[: match.start()]) or _people(text[: match.start()]):
        return Alone(text)
    name, needs_asked = _one_person(own, match[0], asked)
    if name is None or (match["whose"] and match.start()):  # "I pay her 50 euros": to her, or hers?
        return Alone(text)
    whose = "'s" if match["whose"] else ""
    return Alone(f"{text[: match.start()]}{name}{whose}{text[match.end() :]}", needs_asked)


def _one_person(own: str, pronoun: str, asked: str) -> tuple[str | None, bool]:
    """Return the one person who was named last, and whether someone else named them; None if none was, or several."""
    text, is_asked = _last(own), False
    people = _people(text)
    if not people:
        text, is_asked = _last(asked), True
        people = [name for name in _people(text) if " " not in name and is_given_name(name)]
    if len({name.lower() for name in people}) != 1 or _is_of_nobody(people[0], text):
        return None, False
    name = people[0]
    other = _MALE if pronoun.lower() in {"she", "her", "hers"} else _FEMALE
    return (None, False) if other.search(name) else (name, is_asked)


def _last(text: str) -> str:
    """Return the last two sentences of what was said."""
    return " ".join(re.split(r"(?<=[.!?\n])\s+", text.strip())[-2:])


def _people(text: str) -> list[str]:
    """Return who is named by a text: relations with their "my", and given names that are nothing else."""
    return [
        match[0]
        for match in _PERSON.finditer(text)
        if re.fullmatch(_RELATION, match[0], re.IGNORECASE) or _is_name(match, text)
    ]


def _is_name(match: re.Match[str], text: str) -> bool:
    """Whether a word is a given name; at the beginning of a sentence one that does something: not "Add a line"."""
    word = match[0]
    if is_doubtful_name(word) or word.lower() in NO_NAMES or not is_given_name(word):
        return False
    return bool(_WITHIN.search(text[: match.start()]) or _DOES.match(text[match.end() :]))


def _is_of_nobody(name: str, text: str) -> bool:
    """Whether a name is a part of a place's ("Hoek van Holland"), or signs a text ("Kind regards, Branka")."""
    before, _, after = text.rpartition(name)
    return bool(_OF_PLACE.search(before) or (_SIGNED.search(before) and _ENDS.match(after)))
