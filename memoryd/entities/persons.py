"""
Which capitalised words are a person's name, by what they are and what stands around them.

A given name is one (`given_names`), unless an article, a greeting or a brand stands before it, or it is a place or a
word too and nothing personal is said of it. A title or a relation before a name makes it one, whatever it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memoryd.knowledge.grammar.function_words import is_function_word
from memoryd.knowledge.grammar.names import TITLES, is_doubtful_name, is_given_name
from memoryd.knowledge.grammar.pattern import expanded
from memoryd.knowledge.grammar.relations import FOREIGN_RELATIONS, RELATION_PATTERN, RELATIONS, relation_of
from memoryd.knowledge.grammar.words import DAYS, GRAMMAR, NO_NAMES
from memoryd.knowledge.lexicon.spelling import UPPER, word_set

__all__ = [
    "GREETINGS",
    "MONTH_NAMES",
    "Person",
    "are_person",
    "begins_foreign",
    "is_date",
    "is_named_here",
    "persons_in",
    "seems_person",
]

_WORD = rf"(?<![\w'’-])[{UPPER}](?:[\w-]|['’](?=[{UPPER}])){{0,40}}"  # O'Neil is one, Sarah's is Sarah
_PARTICLES = "de|van|von|der|den|ten|la|le|al|bin|di|da|dos|du|el"
_RUN = re.compile(rf"{_WORD}(?:(?: (?:{_PARTICLES}))* {_WORD})*")
MONTH_NAMES = word_set("may april june august")
"""Months that are given names too; said after a relation without more they are the month."""
GREETINGS = word_set("""
    hi hello hey heya hiya dear thanks thank cheers greetings morning ok okay please bonjour salut merci hallo hoi dag
    danke hola gracias ciao grazie olá oi obrigado obrigada cześć dzięki ugh wow yo
""")
_ARTICLES = word_set("""
    the a an this that these those our my his her their your its any every some no another der die das den dem des ein
    eine einen einem einer le la les un une l el los las una il lo gli i uno het een de o os as um uma
""")
_OWNING = word_set("my our your his her their")
_PLACES = word_set("""
    street road avenue lane square park hall airport hospital bridge beach island islands valley university college
    school station hotel tower towers center centre building room drive boulevard court gardens hill lake river bay
    straße platz
""")
_MAKES = word_set("""
    renault citroën citroen dacia kia volvo ford fiat opel peugeot seat skoda škoda nissan mazda hyundai suzuki subaru
    lexus alfa audi bmw volkswagen vw toyota honda tesla mercedes porsche jaguar mini yamaha vespa ducati samsung sony
    lg bosch miele philips dyson garmin fitbit canon nikon dell lenovo asus acer hp gaggia
""")
_STARTS = word_set("""
    today yesterday tonight somehow apparently also maybe perhaps sorry remember meet met saw sent told asked finished
    watched read called visited invite remind hope so then now here there when if while since after before because
    poor dear little big old lunch dinner movie ayer hoy anoche gestern heute morgen früher gisteren vandaag vorige
    volgende hier aujourd demain ieri oggi ontem hoje wczoraj dziś dzisiaj znowu pod früh
""")
_PAST = (
    r"met|saw|told|gave|got|sent|took|made|bought|paid|said|spoke|left|went|came|ran|had|did|wrote|ate|drank|drove|flew"
    r"|found|lost|won|sold|taught|thought|brought|caught|held|kept|felt|heard|knew|began|broke|chose|forgot|lent|rode"
    r"|rang|sang|sat|spent|stood|threw|woke|wore|quit|fell|grew|hurt|slept|stole|swam|bit|drew|fought|understood|[a-z]{3,}ed"
)
_DOES = re.compile(
    r"(?:['’]s (?:\w+ )?(?:birthday|wife|husband|mother|father|mum|mom|dad|son|daughter|sister|brother|house|place|exam"
    r"|number|phone|address|car|kids?|job)\b"
    rf"| (?:(?:never|always|just|finally|still|also|only|already|recently|really|kindly) )?(?:{_PAST})\b"
    r"| (?:is|was) (?:\d|from |allergic|married|single|vegan|vegetarian|born|afraid|pregnant|ill|sick|turning"
    rf"|(?:an? |the |my |our )(?:\w+ )?(?:{expanded('{profession}')}|{RELATION_PATTERN})\b)"
    r"| (?!(?:you|i|we|is|was|has|had|are|of|for|with|to|and|or) )[a-z]+ (?:her|his|their|up|out|me|us|him|my|our)\b"
    r"| (?:can't|cannot|can not|won't|will not|doesn't|does not|didn't|did not|isn't|is not) \w+"
    r"| (?:likes|loves|hates|lives|works|prefers|enjoys|wants|thinks|plays|speaks|studies|eats|drinks|knows|owns|owes"
    r"|snores|smokes|teaches|married|and I|and my)\b)"
)
_WITH = re.compile(
    r"\b(?:with|told|tell|ask|asked|owe|give|gave|met|texted|emailed|called|invited|invite|remind|thank"
    r"|thanks to|congratulate|hug|kissed|babysit|neither|nor|trust|between) (?:old |little |uncle |aunt )?$",
    re.IGNORECASE,
)
_OWNERS = (
    r"(?:my|our|the user's|user's|mijn|m'n|onze|ons|meine?[nmrs]?|unsere?[nmrs]?|mon|ma|notre|mi|nuestr[oa]|mio|mia"
    r"|nostr[oa]|meu|minha|noss[oa]|mój|moja|moje|nasz|nasza)"
)
_NO_NAMES = (DAYS - MONTH_NAMES) | word_set("i it he she they we you the this that and but is was")
_OWNER = re.compile(rf"\b{_OWNERS} $", re.IGNORECASE)
_ALL_RELATIONS = {**{word: relation_of(word) for word in RELATIONS}, **FOREIGN_RELATIONS}
_RELATION = "|".join(re.escape(word) for word in sorted(_ALL_RELATIONS, key=len, reverse=True))
_RELATED = re.compile(
    rf"(?:(?P<owner>\b{_OWNERS} )(?!(?:first|former|late|previous|old|future|last) )(?:[\w-]+ )?)?"
    rf"\b(?P<relation>{_RELATION})"
    r"(?:,? (?:is |was )?(?:called|named)|['’]s name is|,| is| was| heißt| heet| se llama| s['’]appelle| si chiama"
    r"| se chama| ma na imię| dr| mr| mrs| ms)? $",
    re.IGNORECASE,
)
_ADVERBIAL = re.compile(
    r"(?:(?:last|next|this|every|on|in|at|since|after|before|during|for|without) (?:[\w'-]+ ){0,3}"
    r"|(?:yesterday|today|tonight|tomorrow|apparently|sadly|also|but|so|and|then|now|recently|usually|sometimes|once"
    r"|lately|it was|turns out|remember|note|gestern|heute|ayer|hoy|hier|gisteren|vandaag|ieri|oggi),? )",
    re.IGNORECASE,
)
_ACTS = re.compile(
    rf" (?:(?:never|always|just|finally|still|also|only|really) )?(?:{_PAST}|is|was|has|can|could|will|would|does|wants"
    r"|[a-z]{2,}s)\b| (?:can't|cannot|can not|won't|who)\b"
)
MANY_WORDS = 4  # of a name
_BEFORE = 48  # characters before a name, in which its relation is looked for
_NEAR = 5  # words before a name, among which its relation is
_TOKENS = re.compile(r"[\w-]+")
_BREAK = re.compile(r"(?:^|[.!?:;\n] ?|[\"'“(]|- )$")
_INITIAL = re.compile(rf"(?<!\w)(?:[{UPPER}]\. ?)+$")
_AT = re.compile(
    r"\b(?:live|lives|lived|living|move|moved|moving|flew|fly|flying|went|go|going|trip|drove|drive|travel\w*|born|based"
    r"|arrived?|stay\w*|holidays?|vacation|weekend|stopped|landed|visit\w*|office|hotel|museum) (?:\w+ )?"
    r"(?:in|to|at|from|near|around|via|through|into) $",
    re.IGNORECASE,
)
_WHEN = re.compile(r"\b(?:in|on|since|until|till|during|last|next|this|every|each|early|late|mid)[ -]$", re.IGNORECASE)
_NO_MORE = re.compile(r"(?: \d|[.!?]|$)")
_FIRST_LETTERS = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Person:
    """A name in a text that is a person's, and the relation to the user that is told with it."""

    start: int
    end: int
    name: str
    relation: str = ""
    relation_start: int = 0
    relation_end: int = 0


def persons_in(text: str) -> Iterator[Person]:
    """Yield the persons that a text, on one line and with straight quotes, names by a given name, title or relation."""
    for match in _RUN.finditer(text):
        person = _person(text, match)
        if person is not None:
            yield person


def _person(text: str, match: re.Match[str]) -> Person | None:
    words = [(match.start() + word.start(), word.group()) for word in re.finditer(r"\S+", match.group())]
    starts = _BREAK.search(text, max(0, match.start() - 2), match.start()) is not None
    while starts and len(words) > 1 and _is_start(words[0][1], words[1][1]):
        words = words[1:]
    if len(words) > 1 and _kin_of(words[0][1].lower()):
        return _of_kin(text, words, match.end())
    return _named(text, words[0][0], match.end(), words[0][1].lower(), is_one=len(words) == 1)


def _of_kin(text: str, words: Sequence[tuple[int, str]], end: int) -> Person:
    """Return who is named after a relation with a capital: "Grandma Teodora", "Meine Frau Jutta"."""
    first, name = words[0]
    owner = _OWNER.search(text, max(0, first - 20), first)
    is_told = owner is not None or name.lower() not in FOREIGN_RELATIONS
    start = first if owner is None else owner.start()
    told = (_kin_of(name.lower()), start, first + len(name)) if is_told else ()
    return Person(words[1][0], end, text[words[1][0] : end], *told)


def _named(text: str, first: int, end: int, lower: str, *, is_one: bool) -> Person | None:
    """Return who is named by a title, after a relation, or by a given name."""
    related = _related_before(text, first)
    is_related = related is not None and _may_be_name(lower) and not is_date(lower, text, end)
    if is_related or (not is_one and lower in TITLES):
        return Person(first, end, text[first:end], *_told_relation(related, first))
    initial = _INITIAL.search(text, max(0, first - 9), first)
    is_place = is_one and _AT.search(text, max(0, first - _BEFORE), first) is not None
    if initial is None and (is_place or not are_person(text, first, end)):
        return None
    first = first if initial is None else initial.start()
    return Person(first, end, text[first:end])


def are_person(text: str, start: int, end: int) -> bool:
    """Whether some capitalised words are a person's, by their given name and what stands around them."""
    words = text[start:end].split()
    lower = words[0].lower()
    if not is_given_name(lower) or words[-1].lower() in _PLACES:
        return False
    if len(words) > 1 and lower in GREETINGS:
        return False  # "Merci Camille": who is greeted is the one who reads
    before = text[max(0, start - 24) : start]
    last = (_FIRST_LETTERS.findall(before) or [""])[-1].lower()
    if before.endswith(" ") and last in _ARTICLES | _MAKES:
        return False
    if before.endswith("& ") or (text.startswith((" & ", "'s "), end) and last in {"a", "an", "the"}):
        return False
    if is_doubtful_name(lower) or is_function_word(lower, in_latin=True):
        return bool(_DOES.match(text, end)) or bool(_WITH.search(before))
    return True


def is_date(lower: str, text: str, end: int) -> bool:
    """Whether a month that is a name too is the month: "I called my dad June 5th"."""
    return lower in MONTH_NAMES and _NO_MORE.match(text, end) is not None


def is_when(text: str, start: int, end: int) -> bool:
    """Whether a month or day that may be a name too says when: "I moved in April with my wife"."""
    return text[start:end].lower() in DAYS and _WHEN.search(text, max(0, start - 12), start) is not None


def is_named_here(text: str, start: int, end: int) -> bool:
    """Whether a word that is someone's name is one here too: "An lives in Ghent", not "An electrician came"."""
    lower = text[start:end].lower()
    before = text[max(0, start - 24) : start]
    last = (_FIRST_LETTERS.findall(before) or [""])[-1].lower()
    if before.endswith(" ") and last in _ARTICLES | _MAKES and last not in _OWNING:
        return False
    if not (is_doubtful_name(lower) or is_function_word(lower, in_latin=True) or lower in NO_NAMES):
        return True
    in_middle = _BREAK.search(text, max(0, start - 2), start) is None
    return bool(_DOES.match(text, end) or _WITH.search(before)) or (in_middle and lower not in DAYS)


def is_subject(text: str, start: int, end: int) -> bool:
    """Whether someone does what the sentence says, though other words begin it: "Last week Tom sprained his ankle"."""
    begin = max(text.rfind(mark, 0, start) for mark in ".!?;:") + 1
    before = text[begin:start].lstrip()
    apposed = re.fullmatch(rf"(?:{_OWNERS}) [\w ]+, ", before, re.IGNORECASE)
    if not (before.endswith(", ") or _ADVERBIAL.fullmatch(before)) and not apposed:
        return False
    return bool(_ACTS.match(text, end)) or (apposed is not None and text.startswith(", ", end))


def seems_person(text: str, start: int, end: int) -> bool:
    """Whether capitalised words without a given name are a person's, by what they do and who is with them."""
    words = text[start:end].split()
    if {word.lower() for word in words} & (_MAKES | _PLACES | GREETINGS) or any(map(str.isdigit, text[start:end])):
        return False
    if _BREAK.search(text, max(0, start - 2), start) and len(words) > 1:
        return bool(_DOES.match(text, end)) and not _is_start(words[0], words[1])
    before = text[max(0, start - 24) : start]
    last = (_FIRST_LETTERS.findall(before) or [""])[-1].lower()
    if before.endswith(" ") and last in _ARTICLES:
        return False
    return bool(_DOES.match(text, end)) or (1 < len(words) < MANY_WORDS and bool(_WITH.search(before)))


def begins_foreign(text: str, start: int, end: int) -> bool:
    """Whether capitalised words begin a sentence, and are grammar of another language: "Mijn fiets", "Les voisins"."""
    starts = _BREAK.search(text, max(0, start - 2), start) is not None
    words = text[start:end].split()
    return starts and is_function_word(words[0].lower(), in_latin=True) and (
        len(words) > 1 or text[end : end + 1] == " "
    )  # fmt: skip


def _is_start(word: str, following: str) -> bool:
    """Whether a word begins a sentence with a capital and belongs to no name."""
    lower = word.lower()
    if lower in _STARTS or is_function_word(lower, in_latin=True):
        return True
    return not (is_given_name(lower) or lower in TITLES or lower in _MAKES or _kin_of(lower)) and (
        lower.endswith(("ed", "ly", "ing")) and is_given_name(following)
    )


def _kin_of(word: str) -> str:
    """Return the relation that a word names, also with great- or half- before it; "" where it names none."""
    bare = re.sub(r"^(?:great-|half-|step-)+", "", word)
    if word == "coach":
        return "coach"
    return _ALL_RELATIONS.get(word) or _ALL_RELATIONS.get(bare, "")


def _may_be_name(lower: str) -> bool:
    """Whether a capitalised word after a relation can be a name: a given one, or none of grammar."""
    is_grammar = (lower in GRAMMAR or is_function_word(lower, in_latin=True)) and not is_given_name(lower)
    return len(lower) > 1 and not is_grammar and lower not in _NO_NAMES | _MAKES


def _related_before(text: str, start: int) -> re.Match[str] | None:
    before = text[max(0, start - _BEFORE) : start]
    if not any(word.lower() in _ALL_RELATIONS for word in _TOKENS.findall(before)[-_NEAR:]):
        return None  # most names have none, and the pattern takes long
    return _RELATED.search(before)


def _told_relation(match: re.Match[str] | None, start: int) -> tuple[str, int, int] | tuple[()]:
    """Return the user's relation that stands right before a name, and where; nothing where it is someone else's."""
    if match is None or match["owner"] is None:
        return ()
    offset = max(0, start - _BEFORE)
    return _ALL_RELATIONS[match["relation"].lower()], offset + match.start(), offset + match.end("relation")
