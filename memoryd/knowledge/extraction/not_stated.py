"""What a message says that nobody states: role play, what is supposed, a text to be worked on, a quotation."""

from __future__ import annotations

import re

from memoryd.knowledge.grammar.sentence_ends import sentences_of

__all__ = ["PLAYED", "QUOTED", "TASK", "begins_play", "ends_play", "not_stated"]

MOST_CHARACTERS = 2000  # of a message that are looked at
PLAYED, SUPPOSED, TASK, QUOTED = "role play", "supposed", "a text to work on", "quoted"
_PLAYED = re.compile(
    r"\b(?:role[- ]?play(?:ing)?|let['’]?s (?:play|pretend)|pretend (?:that |to be |you|i)|act as"
    r"|(?:stay )?in character"
    r"|you are (?:now )?(?:an? |the )?(?:pirate|wizard|knight|king|queen|vampire|detective|interviewer|dungeon master)"
    r"|you(?:['’]ll| will) (?:be|play) (?:the|an?)|i(?:['’]ll| will) (?:be|play) the"
    r"|(?:write|tell)(?: me)? (?:an? )?(?:\w+ )?(?:story|poem|scene|dialogue|song|fanfic\w*)"
    r"|for my (?:novel|story|script|screenplay|play)"
    r"|spielen wir ein rollenspiel|tu so,? als|faisons semblant|jeu de rôle|juguemos a|finge que|doe alsof)\b"
    r"|角色扮演|扮演",
    re.IGNORECASE,
)
_BEGUN = re.compile(
    r"\b(?:(?:let['’]?s|let us|i want to|can we|we) (?:do (?:a |some )?)?(?:role[- ]?play|pretend)"
    r"|(?:start|begin|continue) (?:a |the |our )?role[- ]?play|role[- ]?play(?:ing)? (?:time|game|with|as|that|:)"
    r"|pretend (?:that )?(?:you|i|we)(?:['’]re| are|['’]m| am)|pretend to be|stay in character"
    r"|i(?:['’]ll| will) (?:be|play) (?:the|an?) \w+,? (?:and )?you(?:['’]ll| will)? (?:be|play)"
    r"|spielen wir ein rollenspiel|rollenspiel:|jeu de rôle|faisons semblant|juguemos a que|finge que)\b|角色扮演",
    re.IGNORECASE,
)
_ENDED = re.compile(
    r"\b(?:(?:stop|stopped|end|ended|enough|quit|leave|finish|drop) (?:of |with )?(?:the |this |our )?"
    r"(?:role[- ]?play\w*|game|scene|story|playing|pretending)(?: here| now)?"
    r"|end of (?:the )?(?:role[- ]?play|game|scene)"
    r"|(?:role[- ]?play|game|scene) (?:is )?over|no more (?:role[- ]?play\w*|pretending)|back to reality"
    r"|out of character|ooc|(?:ende|schluss) (?:mit dem|des) rollenspiel\w*)\b",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"^(?:so,? |ok(?:ay)?,? |and |but )?(?:suppose|supposing|imagine|hypothetically|what if|let['’]?s (?:say|assume)"
    r"|assume|if i (?:were|had been|was|had (?:an?|one|\d+|the) \w+ (?:for|every))|for the sake of argument"
    r"|angenommen|stell dir vor|imagine que|supposons|supón|imagina|stel dat)\b"
    r"|\bhypothetical(?:ly)?\b|^(?:假设|如果我是|もし)",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"^(?:(?:please|pls|can you|could you|would you|hey|hi|ok(?:ay)?|now|bitte|por favor|s['’]il te plaît)[, ]+)*"
    r"(?:translate|proof-?read|rewrite|rephrase|paraphrase|reword|summari[sz]e|correct|fix|polish|shorten|simplify"
    r"|übersetze?|korrigiere?|traduis|corrige|traduce|traducir|resume|vertaal|traduci)\b[^\n]{0,120}[:\n\"“«„]"
    r"|^(?:how do (?:you|i) say|what does|was (?:heißt|bedeutet)|comment dit-on|cómo se dice)\b[^\n]{0,200}[\"“«„'‘]"
    r"|^(?:翻译|翻譯)",
    re.IGNORECASE,
)
_QUOTATION = re.compile(r"(?:>[^\n]*\n?)+|[\"“«„][^\"”»“]+[\"”»“]\s*(?:[-—–]\s*[^\n]{1,60})?")


def begins_play(text: str) -> bool:
    """Whether a message begins a role play that goes on in those after it: more than a game that is proposed."""
    return _BEGUN.search(text[:MOST_CHARACTERS]) is not None


def ends_play(text: str) -> bool:
    """Whether a message says that a role play is over; what it says then is meant."""
    return _ENDED.search(text[:MOST_CHARACTERS]) is not None


def not_stated(text: str) -> str:
    """Return in a word why what a message says is no statement of who says it; "" where it may be one."""
    said = text[:MOST_CHARACTERS].strip()
    if not said or ends_play(said):
        return ""
    if _PLAYED.search(said):
        return PLAYED
    if _TASK.match(said):
        return TASK
    if _QUOTATION.fullmatch(said):
        return QUOTED
    return SUPPOSED if any(_SUPPOSED.search(sentence) for sentence in sentences_of(said)) else ""
