"""Orders to remember: "remember that …", "don't forget …", "save this: …"; what is ordered is kept however short."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from memoryd.knowledge.grammar.amounts import days_of, span_of
from memoryd.knowledge.grammar.pattern import compiled, expanded

__all__ = ["Order", "is_bare", "is_of_before", "names_secret", "ordered"]

_ORDER = re.compile(expanded("{order}"), re.IGNORECASE | re.DOTALL)
_BARE = compiled("{orders_bare}")
_BACK = compiled("{back}")
_SOMEBODY = compiled("{orders_somebody}")
_QUOTING = compiled(r"\b{quoting}\b")
_SECRET = compiled(r"\b{secret}\b")
_AFTER = compiled("^(?P<content>.{6,}?)[,;.:!–—-]+ *(?:so )?(?:and )?(?:please |pls )?{orders_after}[.!]*$")
_RECOLLECTION = compiled("{recollection}")
"""What follows where one recalls, or sets a task: "remember when we …", "remember to buy milk", "remember me?"."""
_ALWAYS = re.compile(r"^to (?:always|never|use|call|answer|reply|address|write)\b.*", re.IGNORECASE)
_THIS_FILE = compiled("^{this_file}")
_FOR = compiled("{orders_for}")


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be remembered, and for how long (None: for good)."""

    content: str
    lasts: timedelta | None = None


def is_bare(sentence: str) -> bool:
    """Whether a sentence orders the next one to be remembered: "Remember this:"."""
    return bool(_BARE.match(sentence.strip()))


def is_of_before(sentence: str) -> bool:
    """Whether a sentence orders what was said just before it to be remembered: "Please remember that."."""
    return bool(_BACK.match(sentence.strip()))


def names_secret(text: str) -> bool:
    """Whether a text is of a number or a word that opens something: it is never learnt, however it is ordered."""
    return bool(_SECRET.search(text))


def ordered(sentence: str) -> Order | None:
    """Return what a sentence orders to be remembered; None if it orders nothing."""
    text = sentence.strip()
    after = _AFTER.match(text)
    if after and not text.endswith("?") and not _BACK.match(text):
        return _timed(after["content"])
    match = _ORDER.match(text)
    content = "" if match is None or names_secret(text) else _content(match, is_question=text.endswith("?"))
    if match is None or not content or not _is_statement(content):
        return None
    order = _timed(content)
    limited = _ONLY.search(match["before"])
    if order is not None and limited and order.lasts is None:
        return Order(order.content, timedelta(days=days_of(limited["unit"])))
    return order


_TASK = compiled(r"(?:(?:and|but|so|then),? )+(?:please )?{orders_task}\b")
"""What follows "note it": a task for the assistant."""
_OF_SPEAKER = re.compile(r"(?:i|i'm|i’m|my|we|our)\b", re.IGNORECASE)
_ASKS = re.compile(r"(?:please |hey,? |ok,? )*(?:can|could|would|will) you\b", re.IGNORECASE)


def _content(match: re.Match[str], *, is_question: bool) -> str:
    """Return what is ordered; empty where nothing is, or someone else is quoted."""
    before, content = match["before"], match["content"].strip().rstrip("?")
    mark = match["mark"].strip().lower()
    explicit = mark == "that" or mark.endswith(":") or (bool(match["what"].strip()) and mark != "")
    asks = _ASKS.match(before)
    before = _POLITE.sub("", before[asks.end() :] if asks else before).strip()
    if _CODE.search(before) or (before and (not explicit or _SOMEBODY.search(before) or _QUOTING.search(before))):
        return ""
    if explicit:
        recalls = mark == "that" and _is_thing(content, is_question=is_question)
        return "" if recalls or _TASK.match(content) else content
    if is_question and not (asks and _OF_SPEAKER.match(content)):
        return ""
    return _meant(match["verb"].lower(), content)


def _is_thing(content: str, *, is_question: bool) -> bool:
    """Whether what follows "remember that" is a thing: "that film", "that goal in the final?"."""
    if _THING.match(content) or not re.search(r"\w \w", content):
        return True
    return is_question and not _SAYS.search(content)


def _meant(verb: str, content: str) -> str:
    """Return what is ordered without "that" or a colon; empty where one recalls, or sets a task."""
    asked = verb.endswith("forget") or verb.startswith("rem")
    if not asked and not (verb in {"save", "store", "record"} and _OWN.match(content)):
        return ""
    if _THIS_FILE.match(content) and not _SAYS.search(content):
        return ""
    if _RECOLLECTION.match(content) or not _SAYS.search(content):
        return content[3:] if _ALWAYS.match(content) else ""
    return content


def _is_statement(content: str) -> bool:
    """Whether what is ordered is a fact or a rule: not a saying, and not said of the assistant."""
    if re.match(r"(?:remember|forget)\b", content, re.IGNORECASE) or not _OF_SOMETHING.search(content):
        return False
    if _OF_THE_TASK.search(content):
        return False
    return not _TO_YOU.search(content) or bool(_MUST.search(content))


_POLITE = compiled("^{polite}+$")
_OWN = re.compile(r"(?:my|our)\b", re.IGNORECASE)
_THING = compiled(r"{thing}\b")
_CODE = re.compile(r"//|/\*|#|<!--|[{}<>=\\]|\b(?:two truths|role)\b", re.IGNORECASE)
_OF_SOMETHING = compiled("{of_something}")
"""What tells a fact from a saying ("hard work pays off"): someone, a number, a name."""
_OF_THE_TASK = compiled("{of_the_task}")
"""What is so in the task at hand only, or is a title: "Remember the Titans was a great movie"."""
_TO_YOU = re.compile(r"\byou(?:'re|’re|r|rself)?\b", re.IGNORECASE)
_MUST = compiled("{must}")
_ONLY = re.compile(r"(?:for )?this (?P<unit>week|month|year) only,? *$", re.IGNORECASE)
_SAYS = compiled("{says}")


def _timed(content: str) -> Order | None:
    content = re.sub(r"^(?:that|:|-)\s+", "", content.strip(), flags=re.IGNORECASE).strip(" .!,;:–—-")
    match = _FOR.match(content)
    lasts = None
    if match:
        count, unit = (match["count"] or match["count2"] or "one"), (match["unit"] or match["unit2"])
        kept = match["content"] or match["content2"]
        if re.search(r"\b(?:have|has|had) been\b", kept) is None:
            lasts = span_of(count, unit)
            content = kept if match["content"] else content
    if len(re.findall(r"\w", content)) < 2:  # noqa: PLR2004  a letter is no fact
        return None
    return Order(content[:1].upper() + content[1:], lasts)
