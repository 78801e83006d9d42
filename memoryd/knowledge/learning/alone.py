"""
A sentence made to stand alone: without what only opens or ends it, and with a name for "she" where one is told before.

Where something is pointed to that neither the sentence nor what was said before names, there is none: "It's in column
F" says nothing in a year.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memoryd.knowledge.language.given_names import is_doubtful_name, is_given_name
from memoryd.knowledge.language.relations import RELATION_PATTERN
from memoryd.knowledge.language.words import NO_NAMES, UPPER

__all__ = ["Alone", "answer_alone", "stands_alone"]

MOST_CHARACTERS = 300  # of what is kept
LEAST_WORDS = 2
_TAILS = (
    " by the way", " btw", " fyi", " just so you know", " tho", " though", " lol", " lmao", " haha", " hehe", ":)",
    ";)", ", please", ", pls", ", thanks", ", thx", ", you know", ", remember that", ", note it", ", note that",
    ", write it down",
)  # fmt: skip
_SIGNS = re.compile(r"[\s.!…,;:–—\U0001F300-\U0001FAFF\u2600-\u27BF\uFE0F]$")
_LAUGHS = re.compile(r",? \b(?:lol|lmao|haha+|hehe+|xd)\b,?", re.IGNORECASE)
_OPENS = re.compile(
    r"^(?:(?:and|but(?! for\b)|so(?! (?:far|much|many|that|long|as)\b)|also|oh|yes|yeah|yep|ok|okay|ha|haha|hm+|eh|ah"
    r"|anyway|please|pls|because(?! of\b))\b[,:.!–—]* +"
    r"|(?:by the way|btw|fyi|turns out|one more thing|for the record|just so you know|to be clear|i mean|you know)"
    r"[,:.!–—]* +"
    r"|(?:well|no|nope|right|cool|great|nice|perfect|super|exactly|fine|true|sure|sorry|thanks|then|plus|hi|hello|hey)"
    r"(?:[,:.!–—]+ +| - ))+",
    re.IGNORECASE,
)
_NAMED = rf"(?-i:\b[{UPPER}][\w-]*\w)"
_RELATION = (
    rf"(?:(?:my|our) (?:\w+ )?\b(?:{RELATION_PATTERN})(?: {_NAMED})?|(?:mum|mom|mam|dad|grandma|grandpa|granny|nana))\b"
)
_PERSON = re.compile(rf"{_RELATION}|{_NAMED}", re.IGNORECASE)
_SOMEBODY = re.compile(
    r"\b(?:my|our|the|an?|this|that|his|her|their|every|another) (?:\w+ )?(?:man|woman|guy|girl|boy|lady|kid|baby"
    r"|person|nurse|vet|dog|cat|horse|puppy|kitten|midwife|chief|priest|guest|client|student|patient|boss"
    r"|\w{2,}(?:er|or|ist|ian|man|woman))\b|\bwho\b",
    re.IGNORECASE,
)
_SHE = re.compile(r"\b(?:she|he|him)\b|\b(?P<whose>his|her|hers)\b", re.IGNORECASE)
_FEMALE = re.compile(
    r"\b(?:wife|girlfriend|gf|fiancée|mother|mom|mum|mommy|mama|mam|step(?:mother|mom|mum)|daughter|sister|sis|aunt|auntie"
    r"|grand(?:mother|ma|daughter)|granny|nana|niece|god(?:mother|daughter)|landlady|\w+-?in-law)\b", re.IGNORECASE
)  # fmt: skip
_MALE = re.compile(
    r"\b(?:husband|hubby|boyfriend|bf|father|dad|daddy|papa|step(?:father|dad)|son|brother|uncle|grand(?:father|pa|ad|son)"
    r"|granddad|nephew|god(?:father|son)|landlord)\b", re.IGNORECASE
)  # fmt: skip
_NOUN = re.compile(
    r"\b(?:my|our|the|an?|his|her|their|your|no|some|any|every|each|all|both|two|three|four|five|\d+|new|old)\s+\w{3,}"
    rf"|(?<!^){_NAMED}"
    r"|\b(?!(?:always|does|was|has|this|yes|its|sometimes|perhaps|thus|plus|unless|besides|others|is|us|goes|says|needs"
    r"|wants|likes|gets|makes|takes|comes|knows|thinks)\b)\w{3,}s\b|\b\w+(?:tion|ment|ness|ity|ware|ship)\b",
    re.IGNORECASE,
)
_IT = re.compile(
    r"\b(?:they|them|their|theirs|these|those|both"
    r"|(?:the|that|this) (?:\w+ )?(?:ones?|others?|same(?! \w)|latter|former))\b"
    r"|\bit(?:s)?\b(?!(?:['’]s| is| was| will be| gets| rains?| rained| snows?)"
    r" (?:raining|snowing|important|hard|easier|easy|better|best|worse"
    r"|my|our|your|her|his|their|\w+['’]s|cold|hot|time|too|not worth|because|like that|only|just|always)\b)"
    r"(?! (?:when|if|that)\b)"
    r"|^(?:that|this)(?:['’]s| is| was| are| will| goes| comes| means| one| has| makes)\b"
    r"|(?<=\w )(?:that|this)(?=[.,;:!)]|$)"
    r"|\bthis (?!week|month|year|summer|winter|spring|autumn|fall|season|time|morning|afternoon|evening|weekend|mon|tue"
    r"|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|term|semester|quarter|way\b)\w+"
    r"|(?<!\bover )\bthere(?=[.,;:!)]|$)|\bthat (?:day|night|week|time|way)\b|\binstead(?! of)\b"
    r"|\bthe (?:night|day|week) before\b(?! \w)",
    re.IGNORECASE,
)
_IMPERSONAL = re.compile(r"\b(?:it['’]?s|it is|it was|its) (?:\w+ ){1,6}(?:that|to|who|if|when)\b", re.IGNORECASE)
_BECAUSE = re.compile(r"^(?P<kept>.{12,}?),? (?:because|cos|coz)(?! of\b) .+$", re.IGNORECASE)
_DENIED = re.compile(r"n['’]t\b|\b(?:not|no|never|nobody|nothing|only|dont|cant|didnt|wont)\b", re.IGNORECASE)


_BEGUN = re.compile(
    r"^(?:\d|yes\b|no[,.]|from \d|says?\b|then\b|that\b|instead\b|so\b(?! far\b)|and\b|or\b|because\b(?! of\b)|which\b"
    r"|(?:with|for|to|from|of) (?:it|them|him|her|that)\b)",
    re.IGNORECASE,
)
_BROKEN = re.compile(r"\b(?:and|or|but|the|an?|of|to|with|for|rev|dra?|mrs?|st|sra?)$", re.IGNORECASE)
"""How a sentence begins or ends that is a part of one."""


_WITHIN = re.compile(r"[\w,;:'’-] *$")
_DOES = re.compile(
    r"['’]s\b| (?:is|was|has|had|will|can|fell|came|went|said|told|got|left|rang|wrote|lost|won|\w{2,}(?:s|ed))\b"
)
"""What stands before a word within a sentence, and after the name of somebody at its beginning."""


class Alone(NamedTuple):
    """What a sentence says by itself."""

    content: str
    needs_asked: bool = False
    """Whether a name of it stands in what somebody else said before."""


def stands_alone(sentence: str, own: str = "", asked: str = "") -> Alone | None:
    """
    Return what a sentence says by itself, in its own words; None where it points to something that nothing names.

    `own` is what the same person said before it, `asked` what somebody else said before that. The one person whom their
    last sentences name stands for "she" or "he"; of what another said only a name: their sister is not one's own.
    """
    said = _bare(sentence)
    if len(said) > MOST_CHARACTERS or len(said.split()) < LEAST_WORDS or _BEGUN.match(said) or _BROKEN.search(said):
        return None
    alone = _whole(said, own, asked)
    reason = _BECAUSE.match(said)
    if alone is None and reason is not None and not _DENIED.search(reason["kept"]):
        alone = _whole(reason["kept"], own, asked)  # "…, because they paid more" does without its reason
    if alone is None or len(alone.content.split()) < LEAST_WORDS:
        return None
    return alone._replace(content=alone.content[:1].upper() + alone.content[1:])


def answer_alone(asked: str, answer: str) -> str | None:
    """Return a question with its short answer: "Any allergies? penicillin"; None where it does not stand alone."""
    question = re.split(r"(?<=[.!?\n])\s+", asked.strip())[-1]
    said = _without_end(_LAUGHS.sub("", answer.strip()))
    if not question.endswith("?") or not said or len(question) + len(said) >= MOST_CHARACTERS:
        return None
    return None if _SHE.search(question) or _points(question) or _points(said) else f"{question} {said}"


def _bare(sentence: str) -> str:
    """Return a sentence without what only opens or ends it."""
    said = sentence.strip()
    opened = _OPENS.match(said)
    return _without_end(_LAUGHS.sub("", said[opened.end() :] if opened else said))


def _without_end(said: str) -> str:
    """Return a sentence without what only ends it; in steps, as patterns for it take a time without end."""
    while said:
        lower = said.lower()
        tail = next((one for one in _TAILS if lower.endswith(one)), "")
        if tail:
            said = said[: -len(tail)]
        elif _SIGNS.search(said, len(said) - 1):
            said = said[:-1]
        else:
            break
    return said


def _points(said: str) -> bool:
    """Whether a sentence points to a thing that it has not named before."""
    for found in _IT.finditer(said):
        before = said[: found.start()]
        if _NOUN.search(before) or _IMPERSONAL.match(said, found.start()):
            continue
        return True
    return False


def _whole(said: str, own: str, asked: str) -> Alone | None:
    """Return a sentence with a name for the first "she" that it does not name; None where it points to nothing."""
    found = _SHE.search(said)
    if found is None or _SOMEBODY.search(said[: found.start()]) or _people(said[: found.start()]):
        return None if _points(said) else Alone(said)
    name, needs_asked = _one_person(own, found[0], asked)
    if name is None or (found["whose"] and found.start()):  # "I pay her 50 euros": whom, or whose?
        return None
    whose = "'s" if found["whose"] else ""
    put = f"{said[: found.start()]}{name}{whose}{said[found.end() :]}"
    return None if _points(put) else Alone(put, needs_asked)


def _one_person(own: str, pronoun: str, asked: str) -> tuple[str | None, bool]:
    """Return the one person who was named last, and whether somebody else named them; None if none was, or several."""
    people, is_asked = _people(_last(own)), False
    if not people:
        people, is_asked = [name for name in _people(_last(asked)) if " " not in name and is_given_name(name)], True
    if len({name.lower() for name in people}) != 1:
        return None, False
    name = people[0]
    other = _MALE if pronoun.lower() in {"she", "her", "hers"} else _FEMALE
    return (None, False) if other.search(name) else (name, is_asked)


def _last(said: str) -> str:
    """Return the last two sentences of what was said."""
    return " ".join(re.split(r"(?<=[.!?\n])\s+", said.strip())[-2:])


def _people(said: str) -> list[str]:
    """Return whom a text names: relations with their "my", and given names that are nothing else."""
    return [
        found[0]
        for found in _PERSON.finditer(said)
        if re.fullmatch(_RELATION, found[0], re.IGNORECASE) or _is_name(found, said)
    ]


def _is_name(found: re.Match[str], said: str) -> bool:
    """Whether a word is a given name; at the beginning of a sentence one that does something: not "Add a line"."""
    word = found[0]
    if is_doubtful_name(word) or word.lower() in NO_NAMES or not is_given_name(word):
        return False
    return bool(_WITHIN.search(said[: found.start()]) or _DOES.match(said[found.end() :]))
