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

from memoryd.knowledge.grammar.amounts import clock_of, measure_of
from memoryd.knowledge.grammar.pattern import any_of, compiled, expanded
from memoryd.knowledge.grammar.relations import RELATION_PATTERN, relation_of
from memoryd.knowledge.grammar.words import head_of, is_plural, names_of, plain, value_of, words_in
from memoryd.knowledge.lexicon.load import particles_of, verb_of
from memoryd.knowledge.lexicon.spelling import UPPER, stem
from memoryd.knowledge.statement.claim import PLACES, PREDICATES, Cardinality, Claim
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
from memoryd.knowledge.statement.other_languages import Foreign, foreign_of
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
        return bool(TURNING.search(self.text)) and not self.goes_on

    @cached_property
    def goes_on(self) -> bool:
        """Whether it says that something has not ended: not stopped, never sold, still."""
        return bool(NOT_ENDED.search(self.text))

    @cached_property
    def limited(self) -> bool:
        """Whether it is limited to a time, to someone, or to a part: in the evening, for my mother, not always."""
        return bool(_NARROW.search(self.text))

    @cached_property
    def adding(self) -> bool:
        """Whether it speaks of something besides what was said: also, another, too."""
        return bool(ADDING.search(self.text))

    @cached_property
    def foreign(self) -> Foreign | None:
        """As it is read in its language; None for English, and for those that nothing is known of."""
        return foreign_of(self.text)

    @cached_property
    def happened(self) -> bool:
        """Whether it tells of something that happened once, so that another such thing may have happened too."""
        return bool(HAPPENED.search(self.text)) and not HABITUAL.search(self.text)


_CLAUSE = compiled("{clause}")
_ELLIPSIS = compiled(r"(?:just |recently |finally )?{ellipsis}\b")
"""A clause that begins so is said by the speaker, who left out "I"."""
MOST_CHARACTERS = 1000  # of a statement; what is longer is a text, which says more than one thing
_ASIDE = compiled("(?<=[.!?]) {aside}[.!]?(?= |$)")
"""Words next to a statement that say nothing of it."""
_SENTENCE = re.compile(r"(?<=[a-z0-9)])[.!](?:\s+|$)")
MOST_CLAUSES = 4
MOST_OF_LIMIT = 6  # words of a clause that limits the next one
MOST_CLAUSE_CHARACTERS = 240

_LEAD = compiled("^{lead}+")
_WE, _I = re.compile(r"we\b", re.IGNORECASE), re.compile(r"^i (?!am\b)")
_NOT_ANOTHER = compiled("{not_another}")
"""What is said not to be meant: "my sport is volleyball now, not padel"."""
_NAME = rf"[{UPPER}][\w-]+(?: [{UPPER}][\w-]+){{0,2}}"
_OWNER = r"(?:my|our|the user's|user's)"
_SORT = expanded("{sort}")
_OTHERS_OF = compiled(r"(?:my|our|the user's|user's) (?:[\w-]+ ){0,2}{others_of}\b")
"""People that no claim is read of: who they are is not known."""
_BARE = compiled(r"{bare}\b")
_PRONOUN = compiled(r"{pronoun}\b")
_NOW_RELATED = re.compile(
    rf"(?P<name>{_NAME}) (?:is|became) (?i:{_OWNER}) (?:new |current )?(?P<relation>{RELATION_PATTERN})$"
)
_SHIFTED = compiled("{shifted}")
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


_TRAILING = compiled("{trailing}+$")

_DO_NOT = compiled(r"\b{do_not}? ?(?:not|never|no longer)(?: (?:even|really))? ")
_LIMITED = compiled(r"\b{reader_limited}\b")
"""What a denial is limited by: it says nothing of other times, or of others."""
_BY_DEGREES = expanded("{by_degrees}")
"""What is denied in part: "I don't always like it"."""
_NARROW = compiled(rf"{_LIMITED.pattern}|{_BY_DEGREES}|{{narrow}}")
_NARROW_END = compiled("{narrow_end}|{narrow}")
_FOR_A_WHILE = compiled("{for_a_while}")
"""What was so, or has ended, for a while alone; long ago; at an hour."""
_LIMIT = compiled(r"(?={limit_begins}\b).*(?:{for_a_while}|{narrow_end})")
_AGO = compiled(r" (?:(?:last|this) (?:week|month|year|{season}|\w+day)|a while ago)(?=$|,)")
_ENDS = compiled(r"(?:have |has )?(?:{end}|cancel\w*)\b")
_PAST = compiled(r"^{past}\b")


def statement_of(text: str) -> Statement:
    """Return what a text claims; nothing where no rule reads it."""
    if len(text) > MOST_CHARACTERS:
        return Statement("", ())
    line = _ASIDE.sub("", plain(text))
    plainly = [put_plainly(one) for one in _SENTENCE.split(line)]
    written = ". ".join(one for one, _ in plainly)
    read_claims: list[Claim] = []
    limited = False
    for clause in _CLAUSE.split(written)[:MOST_CLAUSES]:
        if clause and len(clause) <= MOST_CLAUSE_CHARACTERS:
            claims = _claims(clause.strip(" .!,"))
            read_claims += [
                claim for claim in claims if not (limited and (claim.ended or claim.left or claim.attribute == "home"))
            ]
            limited = not claims and _is_limit(clause)  # "for January, I gave up coffee"
    return Statement(line, tuple(read_claims), written if written != line else "", all(sure for _, sure in plainly))


def put_plainly(sentence: str) -> tuple[str, bool]:
    """
    Return a sentence without what leads it in, as `rewrites` puts it, and whether that is sure.

    It is as it was where they have nothing to say.
    """
    bare = _LEAD.sub("", sentence, count=1)
    changed, is_sure = rewritten(bare)
    if changed == bare:
        return sentence, True
    if _WE.match(bare):
        changed = _I.sub("we ", changed, count=1)
    return changed, is_sure and not _FOR_A_WHILE.search(_AGO.sub("", sentence))


def _is_limit(clause: str) -> bool:
    """Whether a clause only tells of a while, or of long ago."""
    return len(clause.split()) <= MOST_OF_LIMIT and _LIMIT.match(clause) is not None


def _claims(clause: str) -> list[Claim]:
    lead = _LEAD.match(clause)
    if lead:
        clause = clause[lead.end() :]
    clause = together(_NOT_ANOTHER.sub("", clause))
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
    if _BARE.match(clause):
        return _of_subject("", clause)  # "lives in Oslo": the caller names the subject
    for pattern, meant in _SUBJECTS:
        match = pattern.match(clause)
        claims = None if match is None else _after_subject(match, meant, clause[match.end() :].strip())
        if claims is not None:
            return claims
    return _of_thing("", clause)


_APART = compiled(
    "|".join(
        rf"(?P<v{n}>{any_of(forms)}) (?P<x{n}>{{their}} {{thing_between}}) "
        rf"(?P<p{n}>{any_of(particles)}){{behind_particle}}"
        for n, (forms, particles) in enumerate(particles_of("end"))
    )
)


def together(clause: str) -> str:
    """Return a clause with its verbs of an end together: "gave my piano away" as "gave away my piano"."""
    match = _APART.search(clause)
    if match is None:
        return clause
    verb, thing, particle = (part for part in match.groups() if part is not None)
    return f"{clause[: match.start()]}{verb} {particle} {thing}{clause[match.end() :]}"


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
    text = rest.replace("can not stand", "hate").replace("can not bear", "hate")
    rest, affirmed, ended = _turned(text)
    past = bool(_PAST.match(rest)) and not re.match(r"was (?:born|promoted)|were born", rest)
    if (past and not affirmed) or _is_limited(rest, text, denied=ended or not affirmed):
        return []  # what was not so once, or is not so at times
    short = _TRAILING.sub("", rest)
    for pattern, attribute, holds in PREDICATES:
        match = pattern.match(short)
        if match is None:
            continue
        groups = match.groupdict()
        if (attribute == "home" or groups.get("left")) and _FOR_A_WHILE.search(text):
            return []
        return _made(subject, attribute, groups, holds, affirmed=affirmed, ended=ended or past)
    return []


def _is_limited(rest: str, text: str, *, denied: bool) -> bool:
    """Whether what is denied, or has ended, is so for a while or in part alone."""
    if denied and _NARROW.search(_AGO.sub("", text)):
        return True
    return bool(_ENDS.match(rest)) and bool(_NARROW_END.search(_AGO.sub("", text)))


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
    if attribute == "home" and (_SEASONAL.search(text) or _NO_HOME.search(text.partition(" for ")[0])):
        return []
    if attribute in PLACES:
        text = text.replace("-", " ")  # Berlin-Mitte lies in Berlin
    attribute, value = _valued(attribute, text)
    measure, names = measure_of(text), names_of(text)
    claim = Claim(
        subject, attribute, value, holds, affirmed=affirmed, ended=ended, names=names, measure=measure,
        named=bool(names) and not _DESCRIBED.match(text), left=_left(attribute, groups.get("left") or "", text),
        aspect=(groups.get("prep") or "").lower(), since=since, head=head_of(text), sense=_sense_of(groups.get("end")),
        is_plural=is_plural(text),
    )  # fmt: skip
    return _claimed(claim) if value or measure else []


def _left(attribute: str, left: str, value: str) -> frozenset[str]:
    """Return what is left for something else: nothing of "Notion's dark theme", as Notion stays."""
    if _DETAIL.search(left):
        return frozenset()
    return value_of(left) - (frozenset() if attribute == "prefers" else value_of(value.partition(",")[0]))


def _claimed(claim: Claim) -> list[Claim]:
    """Return a claim; of "I left Anna" what it ends, too, as who that was may not be the employer."""
    return [claim, replace(claim, attribute="*")] if claim.sense and claim.attribute != "*" else [claim]


def _sense_of(form: str | None) -> str:
    verb = verb_of(form.lower()) if form else None
    return verb.sense if verb else ""


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
_DETAIL = re.compile(rf"\b[{UPPER}][\w-]*['’]s? \w")
_SEASONAL = compiled(r"\b{seasonal}\b")
_NO_HOME = compiled("{no_home}")
"""What one moves to, too."""
_DATED = frozenset(["home", "employer"])


def _of_thing(subject: str, text: str) -> list[Claim]:
    text, affirmed, ended = _turned(text)
    return claims_of_thing(subject, _TRAILING.sub("", text), affirmed=affirmed, ended=ended)
