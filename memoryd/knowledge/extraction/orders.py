"""Orders to remember: "remember that …", "don't forget …", "save this: …"; what is ordered is kept however short."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from memoryd.knowledge.extraction.spans import days_of, span_of

__all__ = ["Order", "is_bare", "is_of_before", "names_secret", "ordered"]

_ORDER = re.compile(
    r"(?P<before>^|^.{0,120}?(?:[,:;.–—-]+ +|\b(?:and|so|please|pls|you|do|sure|but|just|always|you to|(?:until|till"
    r"|for|from|since|as of|starting) .{2,60}) +))"
    r"(?P<verb>rem[eb]{1,3}mber|(?:do not|don't|don’t|dont|never) (?:ever )?forget|save|store|memori[sz]e"
    r"|make a note|note|"
    r"keep in (?:mind|memory)|bear in mind|for (?:future|later) reference|note to (?:self|memory)|record|keep (?:a"
    r"|it|this|that) (?:note|in mind|on file)|jot down|write down|put (?:this|it)"
    r" in (?:your )?memory|add (?:this |that )?to (?:your )?memory|take note|log this|remind yourself|(?:jot"
    r"|write) (?:this|it) down)"
    r"(?P<what>(?: (?:this|it|down|the following|of this|of this one|for (?:me|later|next time|the future"
    r"|future reference|future))\b)*)(?P<mark> that\b|[^,:]{0,40},? ?: ?|[,:–—-]+ ?| +|$)(?P<content>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_BARE = re.compile(
    r"^(?:please |pls |ok |okay |and |also |so |now )*(?:remember|save|store|note|memori[sz]e|write|jot|keep|log|put"
    r"|take note of)"
    r" (?:this|it|these|the following)(?: one)?(?: (?:down|in mind|in memory|for (?:me|later|next time|the future"
    r"|future"
    r"(?: reference)?)|please|somewhere))*[.:!]*$",
    re.IGNORECASE,
)
_BACK = re.compile(
    r"^(?:please |pls |ok |okay |and |also |so |now |can you |could you )*(?:remember|(?:do not|don't|don’t) forget"
    r"|keep|note|save)"
    r" (?:all (?:of )?)?(?:that|this|it|these)(?:,? (?:please|in mind|for (?:me|later|next time|the future|future"
    r"(?: reference)?)|down|ok|okay|from now on|too|as well))*[.!?]*$",
    re.IGNORECASE,
)
_SOMEBODY = re.compile(
    r"(?<!you )\bto\W*$|\b(?:i|we|they|he|she|people|who|can't|can|cannot|don't|still|only|vaguely|will|must|never"
    r"|always|says?|said|reads?"
    r"|told \w+|wrote|writes|asked(?: me)?|ask(?:s|ing)|instructs?|instructed|states?|mail|email|message|i'd"
    r"|i’d)\W*$",
    re.IGNORECASE,
)
_QUOTING = re.compile(
    r"\b(?:says?|said|reads?|wrote|writes?|told|tells?|asks?|asked|states?|stated|instruct\w*|claims?|replied|quote"
    r"|goes"
    r"|output|result|tool|page|website|document|attachment|prompt|system)\b",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"\b(?:card (?:number|ends|expires)|cvc|cvv|pins?\b(?! board)|pin (?:code|number)|password|passwd|passcode"
    r"|pass phrase|passphrase"
    r"|(?:alarm|door|gate|security|access|entry|safe|lock|unlock|verification|recovery|backup|voicemail|2fa|otp)"
    r" (?:code|pin|combination)|combination (?:is|to)|ssn|social security|iban|account number|routing number"
    r"|api[- ]?key"
    r"|access key|secret key|private key|token|seed phrase|one-time code|otp)\b",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"^(?P<content>.{6,}?)[,;.:!–—-]+ *(?:so )?(?:and )?(?:please |pls )?(?:remember (?:that|this|it)(?: please"
    r"| for .+)?|(?:do not|don't"
    r"|don’t) forget(?: (?:that|this|it))?|keep (?:that|this|it) in mind|note that down|save (?:that|this|it)"
    r"|make a note"
    r"(?: of (?:that|this|it))?)[.!]*$",
    re.IGNORECASE,
)
_RECOLLECTION = re.compile(
    r"(?:when|the (?:time|day|first)|how|what|where|who|why|if|me\b|your|to|about|last|our (?:talk|chat"
    r"|conversation)|those"
    r"|correctly|right\b|it\b|him\b|her\b|them\b|us\b|anything|nothing|everything you|this\b$|that\b$)",
    re.IGNORECASE,
)
"""What follows where one recalls, or sets a task: "remember when we …", "remember to buy milk", "remember me?"."""
_ALWAYS = re.compile(r"^to (?:always|never|use|call|answer|reply|address|write)\b.*", re.IGNORECASE)
_THIS_FILE = re.compile(
    r"^(?:(?:this|the|my|your|it|a|all)?\s*(?:file|changes?|document|draft|image|picture|code|output|results?|data"
    r"|table"
    r"|work|progress|game|money|time|energy|space|answer|response|conversation|chat|as|to|in)\b)",
    re.IGNORECASE,
)
_FOR = re.compile(
    r"^(?:for (?:the )?(?:next )?(?P<count>\d+|an?|one|two|three|four|six|a couple of|a few)? ?(?P<unit>day|week"
    r"|month"
    r"|year)s?)[,:]? +(?:that +)?(?P<content>.+)$|^(?P<content2>.+?)[,]? (?:\(?(?:for|only for"
    r"|just for) (?:the )?(?:next )?"
    r"(?P<count2>\d+|an?|one|two|three|four|six|a couple of|a few)? ?(?P<unit2>day|week|month|year)s?\)?)[.!]*$",
    re.IGNORECASE,
)


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


_TASK = re.compile(
    r"(?:(?:and|but|so|then),? )+(?:please )?(?:tell|give|show|help|explain|find|make|write|send|suggest|let|list"
    r"|check)\b",
    re.IGNORECASE,
)
"""What follows "note it": a task for the assistant."""
_OF_SPEAKER = re.compile(r"(?:i|i'm|i’m|my|we|our)\b", re.IGNORECASE)
_ASKS = re.compile(r"(?:please |hey,? |ok,? )*(?:can|could|would|will) you\b", re.IGNORECASE)


def _content(match: re.Match[str], *, is_question: bool) -> str:
    """Return what is ordered; empty where nothing is, or somebody else is quoted."""
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


_POLITE = re.compile(
    r"^(?:(?:please|pls|hey|hi|ok|okay|also|and|so|oh|now|btw|by the way|one more thing|yes|great|thanks)[,:.! ]+)+$",
    re.IGNORECASE,
)
_OWN = re.compile(r"(?:my|our)\b", re.IGNORECASE)
_THING = re.compile(r"(?:time|day|one|song|movie|film|night|trip|guy|girl|place)\b", re.IGNORECASE)
_CODE = re.compile(r"//|/\*|#|<!--|[{}<>=\\]|\b(?:two truths|role)\b", re.IGNORECASE)
_OF_SOMETHING = re.compile(
    r"\b(?:i|i'm|im|i’m|my|me|mine|we|our|us|ours|the|his|her|their|he|she|it's|its|to (?:always|never))\b|\d"
    r"|.(?-i:\b[A-Z])"
    r"|^(?-i:[A-Z]\w+(?:'s)? (?:is|was|has|likes|loves|hates|lives|works|prefers|owes|wants|can))\b",
    re.IGNORECASE,
)
"""What tells a fact from a saying ("hard work pays off"): somebody, a number, a name."""
_OF_THE_TASK = re.compile(
    r"\b(?:for|while) loop\b|\bin (?:this|the) (?:file|text|code|loop|function|chat|game|story|exercise|puzzle"
    r"|trick)\b"
    r"|\bwas an? (?:\w+ )?(?:movie|film|show|book|song|game|series)\b",
    re.IGNORECASE,
)
"""What is so in the task at hand only, or is a title: "Remember the Titans was a great movie"."""
_TO_YOU = re.compile(r"\byou(?:'re|’re|r|rself)?\b", re.IGNORECASE)
_MUST = re.compile(
    r"\byou (?:should|must|can|may|need to|are to|have to|always|never|call|owe)\b|\b(?:call|tell|ask|remind|send"
    r"|give|show) me\b",
    re.IGNORECASE,
)
_ONLY = re.compile(r"(?:for )?this (?P<unit>week|month|year) only,? *$", re.IGNORECASE)
_SAYS = re.compile(
    r"\b(?:am|is|are|was|were|has|have|had|likes?|loves?|hates?|prefers?|lives?|works?|wants?|needs?|can(?:not|'t)?"
    r"|can’t|will"
    r"|won't|do(?:es)?(?:n't| not)|i'm|i’m|i've|i’ve|it's|he's|she's|we're|they're|comes?|starts?|ends?|meets?"
    r"|takes?|goes"
    r"|closes?|opens?|expires?|uses?|owns?|plays?|drinks?|eats?|speaks?|costs?|must|only|never|always|run|runs|moved"
    r"|left)\b"
    r"|'s \w",
    re.IGNORECASE,
)


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
