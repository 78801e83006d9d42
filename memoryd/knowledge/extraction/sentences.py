"""
The sentences that somebody says in a message for themselves: without code, quotes, pasted text and tasks.

What a message is about ("translate this: I live in Berlin") is not what its sender says of themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoryd.knowledge.extraction.not_stated import PLAYED, QUOTED, TASK, not_stated
from memoryd.knowledge.extraction.pasted import own_part
from memoryd.knowledge.grammar.sentence_ends import sentences_of

__all__ = ["MOST_CHARACTERS", "own_sentences", "tidy"]

MOST_CHARACTERS = 3000  # of a message that are read; what is longer was pasted
MOST_OF_SENTENCE = 600  # characters; nobody says so much without a full stop
MOST_SENTENCES = 60  # of a message
_SPACES = re.compile(r"[^\S\n]+")
_RUN = re.compile(r"([^\w\s])\1{3,}")
_FENCED = re.compile(r"```.*?(?:```|$)|~~~.*?(?:~~~|$)|`[^`\n]{1,200}`", re.DOTALL)
_QUOTED_LINE = re.compile(
    r"^\s*(?:>|\||[-=*_]{3,}|(?:author|source|user|assistant|role"
    r"|patient|complaint|scene|setting|player|system|tool"
    r"|human|ai|bot|customer|agent|output|result|stdout|stderr|log|error|warn(?:ing)?|info|debug|traceback|title"
    r"|body|name|char(?:acter)?|(?:my|our|the) [a-z][\w' -]{2,30})\s*:(?!\d)|\[\w[^\]]{0,40}\]"
    r"|\d{4}-\d\d-\d\d[ t]\d\d:\d\d|[{}<$\\]|at \w+\.|import |def "
    r"|class |select |sudo |\w+\s*=\s*\S)",
    re.IGNORECASE,
)
_QUOTE = re.compile(r"[\"“«„][^\"“”«»„]{1,400}[\"”»“]|(?<!\w)['‘](?:[^'‘’\n]|(?<=\w)['’](?=\w)){12,400}['’](?!\w)")
_LINES_OF_ANOTHER = re.compile(
    r"\b(?:translate|summari[sz]e|tl;?dr|proof-?read|rewrite|re-?write|rephrase|paraphrase|reword|edit|correct|fix"
    r"|check|flash-?cards?|minutes|dictation|vocab(?:ulary)?"
    r"|worksheet|quiz|subtitles?|captions|riddle|charades|guess who|label|rank|rate|categori[sz]e|annotate"
    r"|sentences|phrases|statements"
    r"|polish|shorten|expand|analy[sz]e|classify|critique|grade|review|simplify|convert|parse|explain|format"
    r"|transcribe|improve|make (?:this|it|the following)|respond to|reply to|answer|read|extract|spell-?check"
    r"|what (?:do|does|did) (?:this|the following)|is this|(?:here|below) is|here's|here are|the following|as follows"
    r"|(?:i|we) (?:just )?(?:got|received) (?:this|an?|the) (?:e-?mail|message|letter|text|mail|note|review|dm)"
    r"|sent me|wrote me|says?|said|reads|goes|lyrics?|poem|quote|post(?:ed)?|paragraph|essay|article|e-?mail|letter"
    r"|message|bio|caption|script|dialogue|story|scene|sentence|text|cv|resume|résumé|cover letter|testimonial|tweet"
    r"|profile|transcript|conversation|example|sample|template|draft|prompt|test)\b[^.!?\n]*:(?!\d\d\b)\s*\S?",
    re.IGNORECASE,
)
"""After such words and a colon comes a text of somebody else, or one that is worked on."""
_FICTION = re.compile(
    r"\b(?:role[- ]?play|pretend|(?:let's|let us) (?:play|imagine|say)|imagine|act as|you are (?:an?|the) \w+"
    r"|in character"
    r"|fictional|my (?:character|novel's|protagonist|persona)|(?:as|in) (?:the|a|my|this) (?:story|game|novel"
    r"|campaign"
    r"|role|voice of)|from the (?:perspective|point of view|pov)|hypothetical(?:ly)?|for the sake of argument"
    r"|suppose|dear diary|two truths and a lie|never have i ever|i am your \w+,|you are (?-i:[A-Z])\w+ (?-i:[A-Z])"
    r"|captain|for my (?:\w+ )?(?:novel|story|script|screenplay|play|campaign|character|comic|fanfic\w*|book|film)"
    r"|in (?:this|that|my|our|the|a) (?:[\w&'-]+ ){0,2}(?:campaign|scenario|simulation|case study|exercise|sims"
    r"|universe|timeline|vignette|playthrough|save file|dreams?)"
    r"|(?:i|he|she|we) (?:\w+ )?(?:dreamt|dreamed)|had (?:an? )?(?:\w+ )?(?:dream|nightmare)(?= (?:about|that|where"
    r"|last|in which)\b|[.,:!?])|twenty questions"
    r"|i(?:'m| am) an? (?:robot|potato|unicorn|wizard|vampire|toaster|time travell?er)"
    r"|in (?:this|my|the|a|our) (?:unit |integration |mock )?test(?: case)?,? (?:i|user)\b"
    r"|in (?:minecraft|skyrim|fallout|stardew|zelda|roblox|fortnite|animal crossing|dungeons|d&d|dnd|the sims)"
    r"|user stor(?:y|ies)|customer complaint|(?:asking|ask|question) for a (?:friend|colleague|client|patient"
    r"|customer)"
    r"|(?:just|only|totally|i am|i'm) (?:kidding|joking)|jk|j/k|\((?:kidding|joking|sarcasm)|said no one|sentiment)\b"
    r"|^(?:as|being) an? (?:user|customer|admin\w*|visitor|buyer|shopper|guest|tester|player|tenant admin)\b[, ]",
    re.IGNORECASE,
)
_WRITES = re.compile(
    r"^(?:(?:please|pls|can you|could you|would you|i need you to|help me(?: to)?|ok|okay|hey|hi|now|also|then"
    r"|next)[, ]+)*"
    r"(?:write|draft|compose|generate|create|make up|invent|continue|finish|complete|sing|tell (?:me )?a|give me a"
    r"|rap|translate|summari[sz]e|proof-?read|rewrite|rephrase|paraphrase|reword|say|type(?! \d)|print|repeat|send"
    r"|reply"
    r"|respond|answer|tweet|post|caption|describe)\b",
    re.IGNORECASE,
)
"""A task for the assistant: what it says is wanted, and not true."""
_QUOTE_MARK = "\N{OBJECT REPLACEMENT CHARACTER}"


def own_sentences(text: str) -> list[str]:
    """Return the sentences of a message that its sender says for themselves, in order, as they are written."""
    if len(text) > MOST_CHARACTERS:
        return []
    kept = tidy(text)
    if _FICTION.search(kept) or not_stated(kept) in {PLAYED, TASK, QUOTED}:
        return []
    kept = own_part(_FENCED.sub(_code, kept))
    kept = _QUOTE.sub(_short_quote, kept)
    found: list[str] = []
    for line in kept.split("\n"):
        if _QUOTED_LINE.match(line):
            continue
        pasted = _LINES_OF_ANOTHER.search(line) if ":" in line else None
        found += _sentences(line[: pasted.start()] if pasted else line)
        if pasted:  # what follows is not theirs, to the end
            break
    return [one for one in found[:MOST_SENTENCES] if _QUOTE_MARK not in one and len(one) <= MOST_OF_SENTENCE]


def tidy(text: str) -> str:
    """
    Return a text with runs of spaces as one, and runs of one mark as three of it.

    The rules are regular expressions: over such runs some of them take a time that grows with the square or the cube.
    """
    return _RUN.sub(r"\1\1\1", _SPACES.sub(" ", text))


def _code(match: re.Match[str]) -> str:
    """Keep a name that is written as code; of more code keep a space, or within a line a mark."""
    if match[0].startswith(("```", "~~~")):
        return " "
    words = match[0].strip("`").split()
    return " ".join(words) if len(words) <= 2 else _QUOTE_MARK  # noqa: PLR2004  a name has two words


def _short_quote(match: re.Match[str]) -> str:
    """Keep a name in quotes; of a longer quote keep a mark, by which its sentence is known."""
    words = match[0][1:-1].split()
    return match[0][1:-1] if len(words) <= 2 else _QUOTE_MARK  # noqa: PLR2004  a name has two words


def _sentences(line: str) -> Iterator[str]:
    for sentence in sentences_of(line):
        piece = re.sub(r"^(?:[-*•–]|\d+[.)])\s+", "", sentence)
        if piece and not _WRITES.match(piece):
            yield piece
