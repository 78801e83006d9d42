"""
Answers that need their question: "Where do you live?", "Porto, since May" says "I live in Porto, since May".

Each row is a question's form and what a short answer to it says. An answer that is a sentence of its own is read by
itself, and one that is a doubt or a refusal says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources

from memoryd.knowledge.extraction.sentences import tidy
from memoryd.knowledge.grammar.pattern import compiled, expanded
from memoryd.knowledge.grammar.sentences import is_filler

__all__ = ["answered"]

MOST_WORDS = 14  # of an answer; a longer one is read by itself
MOST_QUESTION = 400  # characters at the end of what was said before
MOST_ANSWER = 300  # characters at the beginning of an answer
_BEGIN = expanded("{begin}")
_CLOSE = expanded(r"\s*{answers_close}?\s*\?")


def _forms() -> Iterator[tuple[str, re.Pattern[str]]]:
    text = resources.files(__package__).joinpath("answers.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            said, _, form = line.partition(" = ")
            yield said, compiled(f"{_BEGIN}(?:{form}){_CLOSE}")


_FORMS = tuple(_forms())
_QUESTIONS = tuple((form, text) for text, form in _FORMS if " | " not in text)
_CLOSED: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (form, text.partition(" | ")[0], text.partition(" | ")[2]) for text, form in _FORMS if " | " in text
)
_REFUSED = compiled("{refused}")
_OF_HEALTH = re.compile(r"\b(?:allerg|intoleran)\w*", re.IGNORECASE)
_LAUGHS = re.compile(r",? *\b(?:lol|lmao|(?:ha){2,})\b", re.IGNORECASE)
_SENTENCE = compiled(r"^(?:(?:well|oh|um+|hm+|so|yes|yeah|no|actually|ok|okay),? )*{sentence}\b")
_IT_IS = re.compile(
    r"^(?:(?:well|oh|um+|so|actually),? )*(?:it's|it is|that's|that would be|they're|it’s)\s+", re.IGNORECASE
)
_YES = compiled(r"^{yes}\b[,.!:; –—-]*(?P<more>.*)$")
_NO = compiled(r"^{no}\b[,.!:; –—-]*(?P<more>.*)$")
_PLURAL_IS = re.compile(r"^(My [\w' -]+?s) is (?=.*(?:,| and ))")


def answered(before: str, text: str) -> str | None:
    """Return what an answer says, as a sentence of its speaker; None if it is none, or says nothing by itself."""
    question, answer = _short(before[-MOST_QUESTION:]), _short(text[:MOST_ANSWER]).split("\n")[0]
    answer = re.split(r"(?<=[.!])\s+(?=\w)", answer, maxsplit=1)[0].strip(" .!,;")
    if _OF_HEALTH.search(question):  # no one who laughs at it is allergic to less
        answer = _LAUGHS.sub("", answer).strip()
    if "?" not in question or not answer or len(answer.split()) > MOST_WORDS:
        return None
    tail = question[max(0, question[: question.rfind("?")].rfind("?") + 1) :].strip()
    asks_one = question.count("?") == 1 or len(tail) < len(question)
    if not asks_one or _REFUSED.search(answer):
        return None
    for pattern, yes, no in _CLOSED:
        match = pattern.search(tail)
        if match:
            return _closed(answer, yes.format(of=match["of"].strip()), no.format(of=match["of"].strip()))
    short = _IT_IS.sub("", answer)
    if _SENTENCE.match(short) or is_filler(short):
        return None
    for pattern, line in _QUESTIONS:
        match = pattern.search(tail)
        if match:
            of = (match.groupdict().get("of") or "").strip()
            return _said(line, of, short)
    return None


def _short(text: str) -> str:
    return tidy(text).strip().replace("\u2019", "'")


def _closed(answer: str, yes: str, no: str) -> str | None:
    if _NO.match(answer):
        return re.sub(r"\bhave (?=kids|children|pets|siblings)", "have any ", no.replace("any any", "any"))
    agreed = _YES.match(answer)
    if agreed is None:
        return None
    more = agreed["more"].strip()
    text = re.sub(r"\bany (?=kids|children|pets|siblings)", "", yes)
    if more and re.match(r"(?:two|three|four|five|six|one|\d+|a|an) \w+", more, re.IGNORECASE) and " have " in text:
        return f"I have {more}"
    return f"{text}, {more}" if more and not _SENTENCE.match(more) else text


def _said(form: str, of: str, answer: str) -> str | None:
    answer = (
        re.sub(
            r"^(?:(?:well|oh|um+|so|just|mostly|mainly|probably|in|at|as|on|currently|to),? )+",
            "",
            answer,
            flags=re.IGNORECASE,
        )
        if not form.startswith("My")
        else answer
    )
    if not answer:
        return None
    if form.startswith("I work as"):
        named = re.match(r"(?:an?|the|self-employed|freelance|retired|unemployed)\b", answer, re.IGNORECASE)
        form = "I'm {}" if named else ("I'm a {}" if answer[:1].lower() not in "aeiou" else "I'm an {}")
        if re.match(r"\w+ing\b", answer):
            form = "I work in {}"
    if form == "I'm {}" and re.match(r"no(?:ne|pe)?\b", answer, re.IGNORECASE):
        return None
    if form.startswith("I'm allergic") and re.match(r"(?:no(?:ne|pe|t)?|yes)\b", answer, re.IGNORECASE):
        answer = re.sub(r"^(?:yes|yeah)[, ]*", "", answer, flags=re.IGNORECASE)
        if re.match(r"no", answer, re.IGNORECASE) or not answer:
            return None
    made = form.format(answer, of=of).replace(" on on ", " on ").replace(" at at ", " at ")
    return _PLURAL_IS.sub(r"\1 are ", made)
