"""
A sentence made to stand alone: without what only opens or ends it, and with a name for "she" where one is told before.

Where something is pointed to that neither the sentence nor what was said before names, there is none: "It's in column
F" says nothing in a year.
"""

from __future__ import annotations

import re

from memoryd.knowledge.language.given_names import is_given_name
from memoryd.knowledge.language.relations import RELATION_PATTERN
from memoryd.knowledge.language.words import NO_NAMES, UPPER

__all__ = ["answer_alone", "stands_alone"]

MOST_CHARACTERS = 300  # of what is kept
LEAST_WORDS = 2
_TAILS = (
    "by the way", "btw", "fyi", "just so you know", "tho", "though", "lol", "lmao", "haha", "hehe", ":)", ";)",
    "please", "pls", "thanks", "thx", "you know", "remember that", "note it", "note that", "write it down",
)  # fmt: skip
_SIGNS = re.compile(r"[\s.!…,;:–—\U0001F300-\U0001FAFF\u2600-\u27BF\uFE0F-]$")
_LAUGHS = re.compile(r",? \b(?:lol|lmao|haha+|hehe+|xd)\b,?", re.IGNORECASE)
_OPENS = re.compile(
    r"^(?:(?:and|but|so|also|oh|yes|yeah|yep|ok|okay|ha|haha|hm+|eh|ah|anyway|please|pls|n|because|cos|coz|cause)"
    r"\b[,:.!–—-]* +"
    r"|(?:by the way|btw|fyi|turns out|one more thing|for the record|just so you know|to be clear|i mean|you know)"
    r"[,:.!–—-]* +"
    r"|(?:well|no|nope|right|cool|great|nice|perfect|super|exactly|fine|true|sure|sorry|thanks|then|plus|hi|hello|hey)"
    r"(?:[,:.!–—-]+ +| - ))+",
    re.IGNORECASE,
)
_RELATION = rf"(?:(?:my|our) (?:\w+ )?)?\b(?:{RELATION_PATTERN})\b"
_NAMED = rf"(?-i:\b[{UPPER}][\w’'-]*\w)"
_PERSON = re.compile(rf"{_RELATION}|{_NAMED}", re.IGNORECASE)
_SOMEBODY = re.compile(
    rf"{_PERSON.pattern}|\b(?:my|our|the|a|an|this|that|his|her|their|no|every|another|one|who) \w+", re.IGNORECASE
)
_SHE = re.compile(r"(?P<who>\b(?:she|he)\b)|(?P<whose>\b(?:his|her|hers)\b)|(?P<whom>\b(?:him|her)\b)", re.IGNORECASE)
_NOUN = re.compile(
    r"\b(?:my|our|the|an?|his|her|their|your|no|some|any|every|each|all|both|two|three|four|five|\d+|new|old)\s+\w{3,}"
    rf"|(?<!^){_NAMED}|\b\w{{3,}}s\b|\b\w+(?:tion|ment|ness|ing|ity|ware|ship)\b",
    re.IGNORECASE,
)
_IT = re.compile(
    r"\b(?:they|them|their|theirs|these|those|both"
    r"|(?:the|that|this) (?:\w+ )?(?:ones?|others?|same(?! \w)|latter|former))\b"
    r"|\bit(?:s)?\b(?!(?:['’]s| is| was| will be| gets| rains?| rained| snows?)"
    r" (?:raining|snowing|important|hard|easier|easy|better|best|worse"
    r"|my|our|your|\w+['’]s|cold|hot|time|too|not worth|because|like that|only|just|always)\b)(?! (?:when|if|that)\b)"
    r"|^(?:that|this)(?:['’]s| is| was| are| will| goes| comes| means| one| has| makes)\b"
    r"|(?<=\w )(?:that|this)(?=[.,;:!)]|$)"
    r"|\bthis (?!week|month|year|summer|winter|spring|autumn|fall|season|time|morning|afternoon|evening|weekend|mon|tue"
    r"|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|term|semester|quarter|way\b)\w+"
    r"|(?<!\bover )\bthere(?=[.,;:!)]|$)",
    re.IGNORECASE,
)
_IMPERSONAL = re.compile(r"\b(?:it['’]?s|it is|it was|its) (?:\w+ ){1,6}(?:that|to|who|if|when)\b", re.IGNORECASE)
_BECAUSE = re.compile(r"^(?P<kept>.{12,}?),? (?:because|since|cos|coz|as) (?P<why>.+)$", re.IGNORECASE)


def stands_alone(sentence: str, before: str = "") -> str | None:
    """
    Return what a sentence says by itself, in its own words; None where it points to something that nothing names.

    `before` is what was said before it; the one person that its last sentences name stands for "she" or "he".
    """
    said = _bare(sentence)
    if len(said) > MOST_CHARACTERS or len(said.split()) < LEAST_WORDS:
        return None
    alone = _with_names(said, before)
    if alone is None or _points(alone):
        reason = _BECAUSE.match(said)  # "…, because it was cheaper" does without its reason
        alone = None if reason is None else _with_names(reason["kept"], before)
        if alone is None or _points(alone) or len(alone.split()) < LEAST_WORDS:
            return None
    return alone[:1].upper() + alone[1:]


def answer_alone(asked: str, answer: str) -> str | None:
    """Return a question with its short answer: "Any allergies? penicillin"; None where it does not stand alone."""
    question = re.split(r"(?<=[.!?\n])\s+", asked.strip())[-1]
    said = _bare(answer)
    if not question.endswith("?") or not said or len(question) + len(said) >= MOST_CHARACTERS:
        return None
    return None if _SHE.search(question) or _points(question) or _points(said) else f"{question} {said}"


def _bare(sentence: str) -> str:
    """Return a sentence without what only opens or ends it; in steps, as patterns for it take a time without end."""
    said = sentence.strip()
    opened = _OPENS.match(said)
    said = _LAUGHS.sub("", said[opened.end() :] if opened else said)
    while said:
        lower = said.lower()
        tail = next((one for one in _TAILS if lower.endswith((f" {one}", f",{one}"))), "")
        if tail:
            said = said[: -len(tail)]
        elif _SIGNS.search(said, max(0, len(said) - 1)):
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


def _with_names(said: str, before: str) -> str | None:
    """Return a sentence with a name for the first "she" that it does not name; None where none or several could be."""
    found = _SHE.search(said)
    if found is None or _SOMEBODY.search(said[: found.start()]):
        return said
    name = _one_person(before)
    if name is None:
        return None
    if found["whose"] and re.match(r" \w", said[found.end() :]):
        name = f"{name}'s"
    return f"{said[: found.start()]}{name}{said[found.end() :]}"


def _one_person(before: str) -> str | None:
    """Return the one person whom the last sentences name; None if there is none, or are several."""
    last = re.split(r"(?<=[.!?\n])\s+", before.strip())[-2:]
    named: dict[str, str] = {}
    for sentence in reversed(last):
        for found in _PERSON.finditer(sentence):
            word = found[0]
            if word.lower() in NO_NAMES or (found.start() == 0 and not _known(word)):
                continue
            named.setdefault(word.lower(), word)
        if named:
            break
    return next(iter(named.values())) if len(named) == 1 else None


def _known(word: str) -> bool:
    """Whether a word at the beginning of a sentence is somebody: a relation, or a given name."""
    return bool(re.fullmatch(_RELATION, word, re.IGNORECASE)) or is_given_name(word)
