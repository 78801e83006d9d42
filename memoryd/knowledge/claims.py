"""
What a statement says of whom: subject, attribute, value, read by rules from simple sentences.

"My wife Sarah lives in Berlin" is (wife Sarah, home, Berlin). A rule that does not match says nothing: such statements
are compared as wholes (`compare`). Attributes that hold one value at a time are told from those that hold many; one
between them ("works as") changes where the words say that it changed, and is doubtful otherwise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from memoryd.knowledge.attributes import PREDICATES, SINGULAR, TIME, Holds
from memoryd.knowledge.relations import MOSTLY_ONE, ONE_AT_A_TIME, RELATION_PATTERN, RELATIONS, relation_of
from memoryd.knowledge.stems import stem, word_set
from memoryd.knowledge.words import DAYS, GRAMMAR, NUMBER_WORDS, plain

__all__ = ["MOST_CHARACTERS", "Claim", "Statement", "statement_of"]


@dataclass(frozen=True, slots=True)
class Claim:
    """One value of one attribute of one subject."""

    subject: str
    """"i", "we", a relation ("wife"), a name in lower case, or "" for things."""
    attribute: str
    value: frozenset[str]
    """Stems of its words; numbers as digits."""
    holds: Holds
    affirmed: bool = True
    ended: bool = False
    """It was so, and is no longer."""
    named: bool = False
    """Whether the value holds a name, so that it cannot be the same as a description."""
    measure: tuple[str, float] | None = None
    """Dimension and amount in its base unit."""
    left: frozenset[str] = frozenset()
    """The value that it says it was before: "moved from A to B"."""
    names: frozenset[str] = frozenset()
    """Stems of the capitalised words of the value."""
    relation: str = ""
    """Of a subject with a name: how it is related to the speaker, where that is said."""

    @property
    def key(self) -> str:
        """What statements of the same attribute share."""
        return self.attribute


@dataclass(frozen=True, slots=True)
class Statement:
    """A text with what it claims."""

    text: str
    claims: tuple[Claim, ...]
    changing: bool
    """Whether it says that something changed: now, switched, no longer, new …"""
    hedged: bool
    """Whether it is a question, a wish, a guess, or not meant so."""
    turning: bool
    """Whether it says so in words that leave no other reading: anymore, no longer, moved off, cancelled …"""
    happened: bool
    """Whether it tells of something that happened once, so that another such thing may have happened too."""


_HEDGED = re.compile(
    r"\?|^sure,|\b(?:if|maybe|perhaps|might|would|wish|imagine|suppose|pretend\w*|jok(?:e|ing)|kidding"
    r"|yeah,? right|oh,? sure"
    r"|oh,? great|as if|supposedly|allegedly|dream(?:s|ed|t)? (?:of|about|that)|what a|totally normal|/s)\b",
    re.IGNORECASE,
)
_CHANGING = re.compile(
    r"\b(?:now|anymore|no longer|no more|instead|rather than|after all|switched|changed?|moved|migrated|became|become"
    r"|turned into|new|these days|nowadays|lately|actually|correction|update[ds]?|since (?:last|this)|from now on"
    r"|going forward|promoted|replaced|recently|just (?:got|bought|started|joined|switched|became)|as of|starting"
    r"|quit|left|stopped|gave up|given up|cancell?ed|cancel|called off|is off|sold|traded|gave (?:it|the"
    r"|my) \w+ to|died"
    r"|passed away|broke up|split up|divorced?|resigned|retired|stepped down|took over|taken over|taking over|finished"
    r"|finally|back (?:home|to)|turns out|decided|dropped|pulled out|raised|lowered|increased|reduced|bumped|cut"
    r"|upgraded"
    r"|downgraded|renamed|extended|extension|delayed|rescheduled|postponed|pushed|moves|relocated|used to|anymore"
    r"|come (?:a)?round|got over|outgrew|lapsed?|expired|shut down|closed|negative|officially|down to|up to|already)\b",
    re.IGNORECASE,
)
_TURNING = re.compile(
    r"\b(?:now|anymore|no longer|no more|after all|switched|moved|migrated|these days|nowadays|lately|from now on"
    r"|replaced|quit|stopped|gave up|given up|cancell?ed|cancel|called off|is off|sold|traded|died|passed away|broke up"
    r"|split up|divorced?|resigned|retired|stepped down|took over|taken over|taking over|turns out|dropped|pulled out"
    r"|raised|lowered|bumped|upgraded|downgraded|renamed|extension|delayed|rescheduled|postponed|pushed|relocated"
    r"|come (?:a)?round|got over|outgrew|lapsed?|shut down|negative|officially|down to|changed|promoted|finally"
    r"|back home"
    r"|moves|left|only|got back|out of|has a new|have a new|got a new)\b",
    re.IGNORECASE,
)
_HAPPENED = re.compile(
    r"\b(?:was|were|went|visited|met|saw|bought|ate|watched|read|won|attended|finished|completed|traveled|travelled"
    r"|flew|ran|had|took|did|made|gave|got|came|told|said|wrote|published|received|released|cooked|called|spent|lost"
    r"|found|broke|fixed|hosted|gave|taught|learned|learnt|climbed|booked|ordered|sold|paid|signed|deployed|shipped"
    r"|collaborated|organized|organised|graduated|discovered|performed|played|presented|co-\w+ed)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"(?<=[a-z0-9)])[.!;](?:\s+|$)|,? but (?=\w)|,? (?:and|so|because) (?=(?:i|my|we|our|user|he|she) )"
    r"|, (?=(?:i|my|we|our|user|the user|it is|they) )",
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
MOST_CLAUSES = 4
MOST_CLAUSE_CHARACTERS = 240

_LEAD = re.compile(
    r"(?:(?:remember(?: that)?|note(?: that)?|please|actually|oh|hey|so|well|yes|no|fyi|btw|by the way|update"
    r"|correction"
    r"|today|now|currently|honestly|turns out|good news|bad news|finally|after all|from now on|going forward"
    r"|these days|nowadays|lately|recently|as of \w+|also|and|just so you know)[,:]? )+",
    re.IGNORECASE,
)
_NAME = r"[A-Z][\w-]+(?: [A-Z][\w-]+){0,2}"
_OWNER = r"(?:my|our|the user's|user's)"
_SUBJECTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?:i|the user|user)\b(?!')", re.IGNORECASE), "i"),
    (re.compile(r"we\b", re.IGNORECASE), "we"),
    (
        re.compile(
            rf"{_OWNER} (?P<relation>{RELATION_PATTERN})\b(?:,? (?P<name>(?-i:{_NAME})),?)?(?P<own>'s?)?", re.IGNORECASE
        ),
        "",
    ),
    (re.compile(rf"(?P<name>{_NAME}),? {_OWNER} (?P<relation>{RELATION_PATTERN})\b,?"), ""),
    (re.compile(rf"{_OWNER}(?= )", re.IGNORECASE), "my"),
    (re.compile(r"(?:the|this|that)(?= )", re.IGNORECASE), "the"),
    (re.compile(rf"(?P<name>{_NAME})(?P<own>'s?)?(?= )"), ""),
)


def _words(text: str) -> list[str]:
    found = re.findall(r"[\w.+-]+@[\w.-]+\w|\d+(?:[.:,]\d+)*|\w+(?:['-]\w+)*", text.lower())
    return [NUMBER_WORDS.get(word, word).removesuffix("'s") for word in found]


def _value(text: str) -> frozenset[str]:
    words = [word for word in _words(text) if word not in GRAMMAR and word not in _EMPTY]
    return frozenset(stem(words))


_EMPTY = word_set("""
    currently now anymore again please much lot really actually just recently still new always old
""")
_TRAILING = re.compile(
    r"(?: (?:now|anymore|again|these days|nowadays|currently|instead|right now|at the moment|as well|too|actually"
    r"|since (?:(?:last|this) )?\w+|(?:this|last) (?:week|month|year|spring|summer|autumn|fall|winter)|after all|so far"
    r"|for (?:years|months|now|the time being|a (?:while|long time))|with (?:my|our|his|her|their) .+|because .+"
    r"|,.*))+$",
    re.IGNORECASE,
)

_IS = re.compile(
    r"^(?P<np>[\w' -]{2,60}?) (?:(?:got |was |is |has been |have been |were )?(?:moved|moves|rescheduled|postponed"
    r"|pushed(?: back)?|changed|scheduled|shifted|raised|lowered|increased|decreased|reduced|bumped(?: up)?"
    r"|cut(?: down)?"
    r"|upgraded|delayed|switched|renamed|extended)|is now|is|are|=|was|were|will be|has been|remains|became|becomes"
    r"|starts?|begins?|takes place)"
    r"(?: (?P<from>from .+?))?(?: (?P<prep>on|at|to|for|until|in))? (?P<v>.+)$",
    re.IGNORECASE,
)
_COLOURS = word_set("""
    red blue green yellow black white grey gray silver orange purple pink brown gold beige navy teal
""")
_CLEARLY = (
    r"\d{1,2}[:.]\d\d|\d{1,2}(?:[:.]\d\d)? ?(?:am|pm|a\.m\.|p\.m\.|o'clock|h)|noon|midnight|half past"
    r"|quarter (?:to|past)"
)
_DAY = "|".join(sorted(DAYS, key=len, reverse=True))
_WHEN = re.compile(rf"\b(?:{_CLEARLY}|{_DAY}|(?:19|20)\d\d(?! ?[a-z€$])|\d+(?:st|nd|rd|th))\b", re.IGNORECASE)
_AT = re.compile(rf"^{TIME}(?: .*)?$", re.IGNORECASE)
_MOVED = re.compile(
    r"moved|moves|rescheduled|postponed|pushed|changed|shifted|raised|lowered|increased|decreased|reduced|bumped"
    r"|cut|upgraded"
    r"|delayed|switched|renamed|extended"
)
_HAPPENED_TO = re.compile(r"(?:\w{3,}ed|built|made|sold|found|born|founded|written|held)\b", re.IGNORECASE)
_DATE = re.compile(
    r"\d{4}|\d(?:st|nd|rd|th)|\b(?:january|february|march|april|may|june|july|august|september|october|november"
    r"|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b",
    re.IGNORECASE,
)
_DO_NOT = re.compile(
    r"\b(?:do|does|did|am|is|are|was|were|have|has|had|can|will)? ?(?:not|never|no longer)(?: (?:even|really))? ",
    re.IGNORECASE,
)
_PAST = re.compile(r"^(?:lived|worked|liked|loved|enjoyed|drove|was|were|had)\b", re.IGNORECASE)

_UNITS = {
    "kg": ("mass", 1.0), "kilo": ("mass", 1.0), "kilogram": ("mass", 1.0), "lb": ("mass", 0.45359),
    "pound": ("mass", 0.45359), "stone": ("mass", 6.35029), "g": ("mass", 0.001), "cm": ("length", 0.01),
    "centimeter": ("length", 0.01), "centimetre": ("length", 0.01), "m": ("length", 1.0), "meter": ("length", 1.0),
    "metre": ("length", 1.0), "km": ("length", 1000.0), "kilometer": ("length", 1000.0),
    "kilometre": ("length", 1000.0), "mile": ("length", 1609.344), "mi": ("length", 1609.344),
    "feet": ("length", 0.3048), "foot": ("length", 0.3048),
    "ft": ("length", 0.3048), "inch": ("length", 0.0254), "inches": ("length", 0.0254), "hour": ("time", 3600.0),
    "hr": ("time", 3600.0), "minute": ("time", 60.0), "min": ("time", 60.0), "year": ("time", 31557600.0),
    "month": ("time", 2629800.0), "week": ("time", 604800.0), "day": ("time", 86400.0),
}  # fmt: skip
"""Unit → its dimension and size in kilograms, metres or seconds (SI; the pound and the foot by the 1959 agreement)."""
_MEASURE = re.compile(r"(\d+(?:[.,]\d+)?)[ -]?([a-z]+)", re.IGNORECASE)
_CLOCK = re.compile(r"\b(\d{1,2})(?:[:.](\d\d))? ?(am|pm|a\.m\.|p\.m\.)?\b", re.IGNORECASE)


def _names(text: str) -> frozenset[str]:
    return _value(" ".join(word for word in text.split() if any(map(str.isupper, word)) and word.lower() not in DAYS))


def _measure(text: str) -> tuple[str, float] | None:
    """Return the dimension and the amount in its base unit, of all parts of it ("5 feet 11 inches")."""
    total, dimension = 0.0, ""
    for number, unit in _MEASURE.findall(text):
        known = _UNITS.get(unit.lower()) or _UNITS.get(unit.lower().rstrip("s"))
        if known is not None and dimension in {"", known[0]}:
            dimension = known[0]
            total += float(number.replace(",", ".")) * known[1]
    return (dimension, total) if dimension else None


def _clock(text: str) -> frozenset[str]:
    """Return a time of day as one token, so that "7pm" and "19:00" are one."""
    match = _CLOCK.search(text)
    if match is None:
        return frozenset()
    hour, minute, half = int(match[1]), int(match[2] or 0), (match[3] or "").lower()
    if half.startswith("p") and hour < 12:  # noqa: PLR2004  noon
        hour += 12
    return frozenset({f"{hour}:{minute:02}"})


@lru_cache(maxsize=4096)
def statement_of(text: str) -> Statement:
    """Return what a text claims; nothing where no rule reads it."""
    if len(text) > MOST_CHARACTERS:
        return Statement(text, (), changing=False, hedged=False, turning=False, happened=False)
    written = plain(text)
    found: list[Claim] = []
    for clause in _CLAUSE.split(written)[:MOST_CLAUSES]:
        if clause and len(clause) <= MOST_CLAUSE_CHARACTERS:
            found += _claims(clause.strip(" .!,"))
    return Statement(
        written,
        tuple(found),
        bool(_CHANGING.search(written)),
        bool(_HEDGED.search(written)),
        bool(_TURNING.search(written)),
        bool(_HAPPENED.search(written)),
    )


def _claims(clause: str) -> list[Claim]:
    lead = _LEAD.match(clause)
    if lead:
        clause = clause[lead.end() :]
    if _ELLIPSIS.match(clause):
        clause = f"i {clause}"
    for pattern, meant in _SUBJECTS:
        match = pattern.match(clause)
        if match is None:
            continue
        groups = match.groupdict()
        rest = clause[match.end() :].strip()
        relation, name = groups.get("relation"), groups.get("name")
        is_name = bool(name) and not relation
        subject = name.lower() if name else relation_of(relation) if relation else meant
        if meant in {"my", "the"} or groups.get("own"):
            holder = {"my": "i", "the": ""}.get(meant, subject)
            return _of_thing(holder, rest)
        claims = _of_subject(subject, rest)
        if claims:
            return [replace(claim, relation=relation_of(relation)) for claim in claims] if relation and name else claims
        if relation and name is None:  # "my wife is Sarah"
            return _of_thing("i", f"{relation} {rest}")
        if meant or relation or is_name:
            return []
    return _of_thing("", clause)


def _turned(text: str) -> tuple[str, bool, bool]:
    """Return a predicate without its negation or its "used to", and whether it is affirmed, and whether it ended."""
    ended = False
    match = re.search(r"\b(?:used to|(?:previously|formerly)) ", text, re.IGNORECASE)
    if match:
        return (text[: match.start()] + text[match.end() :]).strip(), True, True
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
    rest, affirmed, ended = _turned(rest.replace("can not stand", "hate").replace("can not bear", "hate"))
    past = bool(_PAST.match(rest)) and not re.match(r"was (?:born|promoted)|were born", rest)
    short = _TRAILING.sub("", rest)
    for pattern, attribute, holds in PREDICATES:
        match = pattern.match(short)
        if match is None:
            continue
        groups = match.groupdict()
        return _made(subject, attribute, groups, holds, affirmed=affirmed, ended=ended or past)
    return []


def _made(
    subject: str, attribute: str, groups: dict[str, str | None], holds: Holds, *, affirmed: bool, ended: bool
) -> list[Claim]:
    text = groups.get("v") or ""
    if attribute.startswith("-"):
        attribute, ended = attribute[1:], True
    if attribute.startswith("!"):
        attribute, affirmed = attribute[1:], not affirmed
    if "{of}" in attribute:
        attribute = attribute.format(of=" ".join(stem(_words(groups.get("of") or ""))))
    value = _value(text)
    if attribute.startswith("time of"):
        value = _clock(text) or value
    if attribute.startswith("amount of"):
        words = stem(_words(text))
        value = frozenset(word for word in words if word[0].isdigit())
        attribute = " ".join([attribute, *(word for word in words if not word[0].isdigit())])
    if attribute.startswith("number of"):
        value = frozenset(word for word in _words(text) if word.isdigit())
    measure = _measure(text)
    claim = Claim(
        subject,
        attribute,
        value,
        holds,
        affirmed=affirmed,
        ended=ended,
        named=bool(_names(text)),
        names=_names(text),
        measure=measure,
        left=_value(groups.get("left") or ""),
    )
    return [claim] if value or measure else []


def _of_thing(subject: str, text: str) -> list[Claim]:
    """Return what is said of "my car", "the standup", "Sarah's email"."""
    text, affirmed, ended = _turned(text)
    text = _TRAILING.sub("", text)
    match = _IS.match(text)
    if match is None:
        return []
    np, value = match["np"].strip(), match["v"]
    words = [word for word in _words(np) if word not in {"my", "our", "the", "s", "new", "current", "latest"}]
    if not words or len(words) > 6:  # noqa: PLR2004  a longer phrase is no name of a thing
        return []
    thing = " ".join(words)
    attribute = " ".join(stem(words))
    moved = _MOVED.search(text[len(np) : match.start("v")])
    if not moved and _HAPPENED_TO.match(value):
        return []  # "was built in 1932"
    before = _value(match["from"][5:]) if match["from"] else frozenset()
    if words[0] == "1":
        return []  # one of several
    if "favorite" in words or "favourite" in words:
        plural = words[-1].endswith("s") and not words[-1].endswith("ss")
        attribute = "favorite " + " ".join(stem([word for word in words if word not in {"favorite", "favourite"}]))
        holds = Holds.MAYBE_ONE if plural else Holds.ONE
        return [replace(_thing_claim(subject, attribute, value, holds, affirmed, ended), left=before)]
    if _WHEN.search(value) or ((match["prep"] or "").lower() in {"at", "to"} and _AT.match(value)):
        clock = frozenset() if _DATE.search(value) else _clock(value)
        claim = _thing_claim(subject, f"when {attribute}", value, Holds.ONE, affirmed, ended)
        days = frozenset(stem([word for word in _words(value) if word in DAYS]))
        return [replace(claim, value=(days | clock) if clock else claim.value, left=before, named=False)]
    single = bool(SINGULAR.match(thing)) or bool(moved)
    qualified = re.match(r"(?P<v>[$€£]?\d\S*) (?P<of>(?:for|in|of|at|on) .+)$", value)
    if qualified:
        attribute, value = f"{attribute} {' '.join(stem(_words(qualified['of'])))}", qualified["v"]
    if attribute == "name" or attribute.endswith(" name"):
        attribute, single = "name" if attribute == "name" else attribute, True
    article = re.match(r"(?:an?|the) ", value)
    named = bool(_names(value))
    first_value = (_words(value) or [""])[0]
    relation = RELATIONS.get(thing)
    if relation:
        holds = Holds.ONE if relation in ONE_AT_A_TIME else Holds.MAYBE_ONE if relation in MOSTLY_ONE else Holds.MANY
        return [replace(_thing_claim(subject, relation, value, holds, affirmed, ended), left=before)] if named else []
    if first_value in _COLOURS:
        attribute, single = f"colour of {attribute}", True
    elif not (named or article or first_value[:1].isdigit() or single):
        return []  # "my sister is tall": an adjective says nothing of another one
    elif not single and not named and not first_value[:1].isdigit():
        return [_thing_claim(subject, attribute, value, Holds.MAYBE_ONE, affirmed, ended)]
    elif single and not (named or article or first_value[:1].isdigit() or len(_words(value)) <= 3):  # noqa: PLR2004
        return []
    return [
        replace(
            _thing_claim(subject, attribute, value, Holds.ONE if single else Holds.MAYBE_ONE, affirmed, ended),
            left=before,
        )
    ]


def _thing_claim(subject: str, attribute: str, value: str, holds: Holds, affirmed: bool, ended: bool) -> Claim:
    return Claim(
        subject, attribute, _value(value), holds, affirmed=affirmed, ended=ended,
        named=bool(_names(value)), names=_names(value), measure=_measure(value),
    )  # fmt: skip
