"""
The claims of a statement: subject, attribute, value, read by rules from simple sentences.

"My wife Sarah lives in Berlin" is (wife Sarah, home, Berlin). Where no rule matches there is no claim, and
statements are compared as wholes (`compare`). An attribute has one value at a time, many, or maybe one ("works as"):
that one changes where the words say so, and is doubtful otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from memoryd.knowledge.grammar.relations import RELATION_PATTERN, relation_of
from memoryd.knowledge.grammar.values import clock_of, head_of, measure_of, names_of, value_of, words_in
from memoryd.knowledge.grammar.words import UPPER, plain
from memoryd.knowledge.lexicon.stems import stem
from memoryd.knowledge.statement.attributes import PLACES, PREDICATES
from memoryd.knowledge.statement.claim import Cardinality, Claim
from memoryd.knowledge.statement.giving_up import gives_up
from memoryd.knowledge.statement.idioms import Idiom, idioms_in
from memoryd.knowledge.statement.moods import (
    ADDING,
    CHANGING,
    HABITUAL,
    HAPPENED,
    HEDGED,
    NOT_ENDED,
    TAIL_CLAUSE,
    TURNING,
)
from memoryd.knowledge.statement.rewrites import rewritten
from memoryd.knowledge.statement.things import claims_of_thing

__all__ = ["MOST_CHARACTERS", "Statement", "statement_of"]


@dataclass(frozen=True)
class Statement:
    """A text with what it claims. How it says so is read when it is asked for: most statements are never compared."""

    text: str
    claims: tuple[Claim, ...]
    meant: str = ""
    """The text as it is put plainly, see `rewrites`; empty: as it is."""
    is_sure: bool = True
    """Whether its claims may retire an older statement; else they only contest."""

    @cached_property
    def changing(self) -> bool:
        """Whether it says that something changed: now, switched, no longer, new …"""
        return bool(CHANGING.search(self.text) or CHANGING.search(self.meant))

    @cached_property
    def hedged(self) -> bool:
        """Whether it is a question, a wish, a guess, or not meant so."""
        return bool(HEDGED.search(TAIL_CLAUSE.sub("", self.meant or self.text)))

    @cached_property
    def turning(self) -> bool:
        """Whether it says so in words that leave no other reading: anymore, no longer, moved off, cancelled …"""
        return bool(TURNING.search(self.text)) and not NOT_ENDED.search(self.text)

    @cached_property
    def limited(self) -> bool:
        """Whether it is limited to a time, to somebody, or to a part: in the evening, for my mother, not always."""
        return bool(_NARROW.search(self.text))

    @cached_property
    def adding(self) -> bool:
        """Whether it speaks of something beside what was said: also, another, too."""
        return bool(ADDING.search(self.text))

    @cached_property
    def gives_up(self) -> tuple[frozenset[str], ...]:
        """The things that it gives up, each as the stems of its words."""
        return gives_up(self.text)

    @cached_property
    def idioms(self) -> tuple[Idiom, ...]:
        """The idioms by which it tells that something is over, or that a taste has turned."""
        return idioms_in(self.text)

    @cached_property
    def happened(self) -> bool:
        """Whether it tells of something that happened once, so that another such thing may have happened too."""
        return bool(HAPPENED.search(self.text)) and not HABITUAL.search(self.text)


_CLAUSE = re.compile(
    r"(?<=[a-z0-9)])[.!;](?:\s+|$)|,? but (?=\w)|,? (?:and|so|because) (?=(?:i|my|we|our|user|he|she) )"
    r"|, (?=(?:i|my|we|our|user|the user|it is|they) )|, (?:and )?(?=(?:got|bought|now) )",
    re.IGNORECASE,
)
_ELLIPSIS = re.compile(
    r"(?:just |recently |finally )?(?:got|sold|bought|switched|changed|moved|started|quit|left|joined|stopped"
    r"|cancelled|canceled"
    r"|dropped|upgraded|gave up|accepted|have|had|live|work|prefer|like|love|hate|use|drive|can|cannot)\b",
    re.IGNORECASE,
)
"""A clause that begins so is said by the speaker, who left out "I"."""
MOST_CHARACTERS = 1000  # of a statement; what is longer is a text, which says more than one thing
_ASIDE = re.compile(
    r"(?<=[.!?]) (?:(?:just )?(?:thought|figured) i would (?:mention|say|tell|let you know)[\w ]*|just (?:saying"
    r"|for context|so you know|fyi)"
    r"|keep that in mind|funny how that goes|anyway|thought (?:i would mention|you should know)[\w ]*|fyi"
    r"|please note|for what it is worth)[.!]?(?= |$)",
    re.IGNORECASE,
)
"""Words beside a statement that say nothing of it."""
_SENTENCE = re.compile(r"(?<=[a-z0-9)])[.!](?:\s+|$)")
MOST_CLAUSES = 4
MOST_CLAUSE_CHARACTERS = 240

_LEAD = re.compile(
    r"^(?:(?:(?:one|quick|small|little|another|side|short|last) (?:note|update|thing|one|question)(?=:)"
    r"|things have changed(?=:)|just for context|quick note"
    r"|quick update|small update|heads up|for the record|you know|look|listen"
    r"|guess what|remember(?: that)?|note(?: that)?|please|actually|oh|hey|so|well|yes|no(?! (?:more|longer)\b)|fyi"
    r"|btw|by the way|update|okay|ok|just fyi"
    r"|correction|after (?:the|my|our) \w+"
    r"|today|now|currently|honestly|turns out|good news|bad news|finally|after all|from now on|going forward"
    r"|these days|nowadays|lately|recently|as of \w+|also|and|just so you know)[,:]? +)+",
    re.IGNORECASE,
)
_NOT_ANOTHER = re.compile(r", (?:and )?not (?!that|sure|yet|only|just|even|because|so)\S[^,]*$", re.IGNORECASE)
"""What is said not to be meant: "my sport is volleyball now, not padel"."""
_NAME = rf"[{UPPER}][\w-]+(?: [{UPPER}][\w-]+){{0,2}}"
_OWNER = r"(?:my|our|the user's|user's)"
_SORT = (
    r"(?:older|younger|elder|eldest|youngest|little|big|twin|close|dear|good|new|current|college|work|gym|school"
    r"|childhood)"
)
_OTHERS_OF = re.compile(
    rf"{_OWNER} (?:[\w-]+ ){{0,2}}(?:classmates?|mates?|(?:old|former|ex|previous|college"
    rf"|late)[ -](?:{RELATION_PATTERN})s?|ex"
    r"|in-laws?|acquaintance|buddy|guest|tenant)\b",
    re.IGNORECASE,
)
"""People of whom no claim is read: who they are is not known."""
_BARE = re.compile(
    r"(?:lives|works|likes|loves|hates|prefers|drives|uses|speaks|owns|has|moved|is|was|does not|no longer)\b",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"(?:he|she|they|it|his|her|their|its|someone|somebody|everyone|everybody|nobody)\b", re.IGNORECASE
)
_NOW_RELATED = re.compile(
    rf"(?P<name>{_NAME}) (?:is|became) (?i:{_OWNER}) (?:new |current )?(?P<relation>{RELATION_PATTERN})$"
)
_SHIFTED = re.compile(
    r"(?:i|we|they|user|the user|(?:my|our|the) \w+|[A-Z]\w+) (?:have |has |had )?(?:just |agreed to |decided to |to )*"
    r"(?:pushed?|moved?|postponed?|rescheduled?|shifted?|raised?|lowered?|increased?|reduced?|delayed?|brought|bumped"
    r"|upped|cut) (?P<whose>the|my|our) (?P<thing>[\w' -]+?)(?: (?:back|forward|up|down))?(?: from (?P<left>.+?))?"
    r" (?:to|until|till) (?P<v>.+)$",
    re.IGNORECASE,
)
_SUBJECTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?:i|the user|user)\b(?!')", re.IGNORECASE), "i"),
    (re.compile(r"we\b", re.IGNORECASE), "we"),
    (
        re.compile(
            rf"{_OWNER} (?:{_SORT} )?(?P<relation>{RELATION_PATTERN})\b(?:,? (?P<name>(?-i:{_NAME})),?)?(?P<own>'s?)?",
            re.IGNORECASE,
        ),
        "",
    ),
    (re.compile(rf"(?P<name>{_NAME}),? {_OWNER} (?P<relation>{RELATION_PATTERN})\b,?"), ""),
    (re.compile(rf"{_OWNER}(?= )", re.IGNORECASE), "my"),
    (re.compile(r"(?:the|this|that)(?= )", re.IGNORECASE), "the"),
    (re.compile(rf"(?P<name>{_NAME})(?P<own>'s?)?(?= )"), ""),
)


_TRAILING = re.compile(
    r"(?: (?:now|anymore|again|these days|nowadays|currently|instead|right now|at the moment|as well|too|actually"
    r"|lately|recently|as of (?:last |this )?\w+|after \w+ing .+|since the \w+|since (?:(?:last|this) )?\w+|(?:this"
    r"|last) (?:week|month|year|spring|summer"
    r"|autumn|fall|winter)|after all|so far"
    r"|for (?:years|months|now|the time being|a (?:while|long time))|with (?:my|our|his|her|their) .+|because .+"
    r"|,.*|for good|a while ago|a (?:few |couple of )?\w+ ago|over the (?:summer|winter|weekend|holidays)"
    r"|in the (?:spring|summer|autumn"
    r"|fall|winter|new year)|back in \w+|regularly|at all|all the time|just recently|(?:nearly "
    r"|almost )?every (?:day|week|morning|evening|night)"
    r"|most days|quite often|quite a lot|last (?:january|february|march|april|may|june|july|august|september|october"
    r"|november"
    r"|december))|,? (?:ugh|sadly|finally|thankfully|yay|luckily|unfortunately|to be honest|funny enough)"
    r"|, (?:because|the|which|so|as|since|funny|along|doctor|it|there|then|they|not sure|no idea|thanks to|feels?"
    r"|felt|don.t|do not) .*)+$",
    re.IGNORECASE,
)

_DO_NOT = re.compile(
    r"\b(?:do|does|did|am|is|are|was|were|have|has|had|can|will)? ?(?:not|never|no longer)(?: (?:even|really))? ",
    re.IGNORECASE,
)
_LIMITED = re.compile(
    r"\b(?:when(?!ever)|while|if|unless|until|before|during|today|tonight|tomorrow|yesterday|at night|except"
    r"|at the moment|right now|for now|this (?:\w+day|week|month|morning|evening|afternoon|weekend|time)"
    r"|in the (?:morning|evening|afternoon)s?"
    r"|on (?:weekdays|weekends|\w+days?)|after (?:\d|lunch|dinner|work|dark|midnight|noon)"
    rf"|(?:for|of) (?:my|our|his|her) (?:{RELATION_PATTERN}))\b",
    re.IGNORECASE,
)
"""What a denial is limited by: it says nothing of other times, or of others."""
_BY_DEGREES = (
    r"\b(?:not|never|no longer)\b.*\b(?:really|always|necessarily|exactly|entirely|completely|fully|every|everything"
    r"|(?<!at )all|(?:that|as|so|very|too) \w+)\b"
    r"|\b(?:hardly|barely|rarely|seldom|less)\b"
)
"""What is denied in part: "I don't always like it"."""
_NARROW = re.compile(
    rf"{_LIMITED.pattern}|{_BY_DEGREES}|\b(?:old|new|other|previous|former|second|spare|first|last)\b"
    r"|\b(?:sold|quit|dropped|cancell?ed|left) an? |\bstopped (?:the|an?|my|our|at|by|in|for|off|over) ",
    re.IGNORECASE,
)
_AGO = re.compile(r" (?:last|this) (?:week|month|year|spring|summer|autumn|fall|winter|\w+day)$", re.IGNORECASE)
_ENDS = re.compile(r"(?:have |has )?(?:cancel\w*|stopped|quit|gave up|given up|dropped|sold|left)\b", re.IGNORECASE)
_PAST = re.compile(r"^(?:lived|worked|liked|loved|enjoyed|drove|was|were|had)\b", re.IGNORECASE)


def statement_of(text: str) -> Statement:
    """Return what a text claims; nothing where no rule reads it."""
    if len(text) > MOST_CHARACTERS:
        return Statement("", ())
    said = _ASIDE.sub("", plain(text))
    plainly = [put_plainly(one) for one in _SENTENCE.split(said)]
    written = ". ".join(one for one, _ in plainly)
    found: list[Claim] = []
    for clause in _CLAUSE.split(written)[:MOST_CLAUSES]:
        if clause and len(clause) <= MOST_CLAUSE_CHARACTERS:
            found += _claims(clause.strip(" .!,"))
    return Statement(said, tuple(found), written if written != said else "", all(sure for _, sure in plainly))


def put_plainly(sentence: str) -> tuple[str, bool]:
    """
    Return a sentence without what leads it in, as `rewrites` puts it, and whether that is sure.

    It is as it was where they have nothing to say.
    """
    bare = _LEAD.sub("", sentence, count=1)
    changed, is_sure = rewritten(bare)
    return (sentence, True) if changed == bare else (changed, is_sure)


def _claims(clause: str) -> list[Claim]:
    lead = _LEAD.match(clause)
    if lead:
        clause = clause[lead.end() :]
    clause = _NOT_ANOTHER.sub("", clause)
    if _ELLIPSIS.match(clause):
        clause = f"i {clause}"
    if _PRONOUN.match(clause) or _OTHERS_OF.match(clause):
        return []  # the words name no subject
    turned = _NOW_RELATED.match(clause)
    if turned:  # "Bob is my new boss"
        return _of_thing("i", f"{turned['relation']} is {turned['name']}")
    shifted = _SHIFTED.match(clause)
    if shifted:  # "we pushed the wedding back to June"
        before = f" from {shifted['left']}" if shifted["left"] else ""
        holder = "" if shifted["whose"].lower() == "the" else "i"
        return _of_thing(holder, f"{shifted['thing']} moved{before} to {shifted['v']}")
    for pattern, meant in _SUBJECTS:
        match = pattern.match(clause)
        claims = None if match is None else _after_subject(match, meant, clause[match.end() :].strip())
        if claims is not None:
            return claims
    if _BARE.match(clause):
        return _of_subject("", clause)  # "lives in Oslo": the caller names the subject
    return _of_thing("", clause)


def _after_subject(match: re.Match[str], meant: str, rest: str) -> list[Claim] | None:
    """Return what is said after a subject; None where another reading of the clause is to be tried."""
    groups = match.groupdict()
    relation, name = groups.get("relation"), groups.get("name")
    subject = name.lower() if name else relation_of(relation) if relation else meant
    if meant in {"my", "the"} or groups.get("own"):
        return _of_thing({"my": "i", "the": ""}.get(meant, subject), rest)
    claims = _of_subject(subject, rest)
    if claims:
        return [replace(claim, relation=relation_of(relation)) for claim in claims] if relation and name else claims
    if relation and name is None:  # "my wife is Sarah"
        return _of_thing("i", f"{relation} {rest}")
    return [] if meant or relation or name else None


def _turned(text: str) -> tuple[str, bool, bool]:
    """Return a predicate without its negation or its "used to", and whether it is affirmed, and whether it ended."""
    ended = False
    match = re.search(r"\b(?:used to|(?:previously|formerly)) ", text, re.IGNORECASE)
    if match:
        text = (text[: match.start()] + text[match.end() :]).strip()
        return text, not _DO_NOT.search(text), True
    match = _DO_NOT.search(text)
    affirmed = True
    if match:
        verb = match.group().strip().split(" ")[0].lower()
        kept = f"{verb} " if verb in {"am", "is", "are", "was", "were", "have", "has"} else ""
        ended = "no longer" in match.group().lower() or bool(re.search(r"\banymore\b", text, re.IGNORECASE))
        text = (text[: match.start()] + kept + text[match.end() :]).strip()
        affirmed = False
    return text, affirmed, ended


def _of_subject(subject: str, rest: str) -> list[Claim]:
    said = rest.replace("can not stand", "hate").replace("can not bear", "hate")
    rest, affirmed, ended = _turned(said)
    past = bool(_PAST.match(rest)) and not re.match(r"was (?:born|promoted)|were born", rest)
    if (past and not affirmed) or ((ended or not affirmed or _ENDS.match(rest)) and _NARROW.search(_AGO.sub("", said))):
        return []  # what was not so once, or is not so at times
    short = _TRAILING.sub("", rest)
    for pattern, attribute, holds in PREDICATES:
        match = pattern.match(short)
        if match is None:
            continue
        groups = match.groupdict()
        return _made(subject, attribute, groups, holds, affirmed=affirmed, ended=ended or past)
    return []


def _made(
    subject: str,
    attribute: str,
    groups: Mapping[str, str | None],
    holds: Cardinality,
    *,
    affirmed: bool,
    ended: bool,
) -> list[Claim]:
    """Return the claim of a predicate; `attribute` may begin with a mark: "-" it has ended, "!" it is denied."""
    mark, attribute = (attribute[0], attribute[1:]) if attribute[0] in "-!" else ("", attribute)
    if mark and not affirmed:
        return []  # a double negative: who does not dislike it may like it, and may not; who has not quit goes on
    if mark == "!" and ended:
        return []  # who used to hate it may like it, and may not
    affirmed, ended = affirmed and mark != "!", ended or mark == "-"
    if "{of}" in attribute:
        attribute = attribute.format(of=" ".join(stem(words_in(groups.get("of") or ""))))
    text, since = _dated(attribute, groups.get("v") or "")
    if attribute == "home" and (_SEASONAL.search(text) or _NO_HOME.search(text)):
        return []
    if attribute in PLACES:
        text = text.replace("-", " ")  # Berlin-Mitte lies in Berlin
    attribute, value = _valued(attribute, text)
    measure, names = measure_of(text), names_of(text)
    claim = Claim(
        subject, attribute, value, holds, affirmed=affirmed, ended=ended, names=names, measure=measure,
        named=bool(names) and not _DESCRIBED.match(text), left=value_of(groups.get("left") or ""),
        aspect=(groups.get("prep") or "").lower(), since=since, head=head_of(text),
    )  # fmt: skip
    return [claim] if value or measure else []


def _dated(attribute: str, text: str) -> tuple[str, int]:
    """Return the text of a value without the year since which it is so, and that year; 0 where none is said."""
    dated = _SINCE.search(text) if attribute in _DATED else None
    return (text[: dated.start()], int(dated["year"])) if dated else (text, 0)


def _valued(attribute: str, text: str) -> tuple[str, frozenset[str]]:
    """Return an attribute and its value: a time of day, an amount of some unit, a number, or words."""
    if attribute.startswith("time of"):
        return attribute, clock_of(text) or value_of(text)
    if attribute.startswith("amount of"):
        words = stem(words_in(text))
        unit = [word for word in words if not word[0].isdigit()]
        return " ".join([attribute, *unit]), frozenset(word for word in words if word[0].isdigit())
    if attribute.startswith("number of"):
        return attribute, frozenset(word for word in words_in(text) if word.isdigit())
    return attribute, value_of(text)


_SINCE = re.compile(r" (?:back )?(?:in|since) (?:\w+ )?(?P<year>(?:19|20)\d\d)$", re.IGNORECASE)
_DESCRIBED = re.compile(r"(?:an?|the|my|our) .*\b[a-z]+$")
"""A value that holds a name and is none: "the Zurich office"."""
_SEASONAL = re.compile(
    r"\b(?:during|every|each|at times|sometimes|part of|half of|in (?:the )?(?:winter|summer|spring|autumn|fall)s?"
    r"|on (?:weekdays|weekends|\w+days?))\b",
    re.IGNORECASE,
)
_NO_HOME = re.compile(
    r"\b(?:team|project|department|role|position|job|shift|floor|linux|windows|mac|macos|android|ios|python|java|rust"
    r"|golang|typescript|aws|azure|gcp|cloud|kubernetes|postgres|slack|notion|vim|emacs|chrome|firefox)\b|\d+\.\d",
    re.IGNORECASE,
)
"""What one moves to, too."""
_DATED = frozenset(["home", "employer"])


def _of_thing(subject: str, text: str) -> list[Claim]:
    text, affirmed, ended = _turned(text)
    return claims_of_thing(subject, _TRAILING.sub("", text), affirmed=affirmed, ended=ended)
