"""What keeps a sentence from being learnt: questions, wishes, guesses, jokes, reports, and what is so for now only."""

from __future__ import annotations

import re

__all__ = ["is_doubtful", "is_ironic", "is_of_now", "is_question", "takes_back"]

_QUESTION = re.compile(
    r"[?？]\s*[)\"'”]*$"  # noqa: RUF001  the full-width mark
    r"|^(?:what|who|whom|whose|where|when|why|how|which|is|are|am|was|were|do|does|did|can|could|will|would|should"
    r"|shall"
    r"|have you|has|had|may|might|isn't|aren't|don't you|doesn't|didn't|can't you|won't|any (?:idea|tips|advice"
    r"|chance)"
    r"|anyone|anybody|got any|ever|wondering|wonder)\b(?!,)",
    re.IGNORECASE,
)
_DOUBTFUL = re.compile(
    r"\b(?:if|unless|whether|maybe|perhaps|might|would|could|probably|possibly|presumably|apparently|supposedly"
    r"|allegedly|hypothetically|i (?:do not |did not )?(?:guess|suspect|doubt|wonder)|i (?:do not )?think"
    r"|not sure|unsure|no idea|i wish|wish i|i hope(?! to\b)|as if|as though|suppose|say i|let us say|assume|assuming"
    r"|imagine|pretend\w*|kidding|joking|jk|lol|lmao|haha\w*|rofl|sarcasm|/s|yeah,? right|oh,? sure|sure,? because"
    r"|thinking (?:of|about)|considering|tempted|almost|nearly|was (?:going|about|supposed|planning|thinking) to"
    r"|wanted to|should(?: not)?|ought to|in theory|in a (?:dream|movie|film|book|past life)"
    r"|dream(?:ed|t)? (?:of|about|that|i)|what a|for example|for instance|e\.g|such as when|not to mention"
    r"|(?:a million|a thousand) \w+|to death|literally|basically a|practically|feels? like|seems?|sounds like"
    r"|like a (?:real|total|complete)|apparently|rumou?r|heard that|told that|i read (?:that|somewhere)|imaginary"
    r"|(?:well|or rather)?,? (?:i )?(?:was|did|used to|had been|were) until|well,? (?:almost|sort of|kind of"
    r"|not really)"
    r"|(?:twice|half|times) as \w+ as|(?:to|on|from) (?:mars|the moon|pluto|the internet|outer space|narnia|hogwarts)"
    r"|drink and drive|speed of light|(?:ask|tell|asked|told) myself|born yesterday)\b",
    re.IGNORECASE,
)
_IRONIC = re.compile(
    r"^(?:oh,? (?:sure|great|yes|yeah|right|joy)|yeah,? right|yeah,? sure|sure,? sure)\b|(?<!\w)(?::D|xD|;-?P|:-?P)",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?:(?:he|she|they|it|people|someone|somebody|everyone|everybody|\w+ one) (?:\w+ )?(?:said|says|say|told"
    r"|claims?"
    r"|claimed|thinks?|thought|wrote|writes|asked|asks|believes?|insists?|argues?)"
    r"|(?:said|says|told me|claims?|claimed|wrote|writes|insists?|argues?|asked me|texted(?: me)?|e-?mailed|posted"
    r"|replied|according to|quote|quoted|reads|goes like|lyrics?|song (?:goes|says)|saying|stating|states that)\b)",
    re.IGNORECASE,
)
_OF_THE_TALK = re.compile(
    r"\byou(?:r|rs|rself|'re|'ve|'ll)?\b(?! (?:know|guys)\b)|\b(?:this|that|the|these|those) (?:code|function|error"
    r"|bug"
    r"|script|loop|warning|footer|header"
    r"|answer|question|response|result|output|draft|version|document|essay|paragraph|sentence|table|list|example|chat"
    r"|conversation|suggestion|idea|approach|plan you|one|ones|first|second|third|last|latter|former)\b"
    r"|\b(?:this|that|these|those) (?:file|text|thread|repo|project|module|branch|ticket|page|section|chapter|slide)\b"
    r"|\bthe \w+ ones?\b|\b(?:option|version|variant|plan|draft|approach) (?:\d|[a-z]\b)"
    r"|\b(?:at the (?:end|top|start|beginning|bottom)|in) here$|\buse the (?:new|old|other|same|updated) \w+"
    r"|\b(?:a|in|the) (?:for|while) loop\b",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"\b(?:today|tonight|this (?:morning|afternoon|evening|instant|second|minute)|right now|at the moment|just now"
    r"|for now|for the moment|in a (?:minute|sec|second|bit|hurry|meeting)|a (?:minute|moment|second|bit) ago"
    r"|yesterday|last night|(?:an?|two|three|\d+) (?:minutes?|hours?) ago|on my way|about to|brb|be right back"
    r"|gotta go|got to go|one sec|hang on|hold on|till (?:\d{1,2}|noon|lunch)(?:$|[ :](?!jan|feb|mar|apr|may|jun"
    r"|jul|aug"
    r"|sep|oct|nov|dec)\w+)|(?:is|are) (?:screaming|crying|calling|asleep|sleeping|yelling|shouting|knocking|barking"
    r"|ringing|waiting|texting|fighting|watching|dead|dying|charging|frozen|here)"
    r"|so far today|at this point|these (?:few )?days off|so (?:tired|hungry|bored|excited|stressed|busy|sleepy|cold"
    r"|hot|done|annoyed|angry|mad|happy|glad|sad))\b",
    re.IGNORECASE,
)


def is_question(sentence: str) -> bool:
    """Whether a sentence asks for something."""
    return bool(_QUESTION.search(sentence))


def is_doubtful(written: str) -> bool:
    """Whether a sentence, with its contractions written out, is a wish, a guess, a joke or a report, or is of talk."""
    return any(pattern.search(written) for pattern in (_DOUBTFUL, _REPORTED, _OF_THE_TALK))


def is_ironic(clause: str) -> bool:
    """Whether a clause, with how it begins and ends, is not meant: "oh sure, I love waiting"."""
    return bool(_IRONIC.search(clause))


def is_of_now(written: str) -> bool:
    """Whether a sentence tells of what is so for now only."""
    return bool(_NOW.search(written))


_TAKEN_BACK = re.compile(
    r"(?:(?:no,? )?wait\b|well,? (?:was|almost|not (?:really|quite|any ?more)|kind of|sort of|used to|i (?:was|did"
    r"|used to)"
    r"|until)|(?:scratch|strike|ignore) that|(?:sorry|oops|no),? i mean|or (?:rather|at least)|not (?:really"
    r"|any ?more)\b"
    r"|nah\b|lies|that's a lie|never ?mind|my bad|(?:but )?not (?:really|yet))",
    re.IGNORECASE,
)


def takes_back(sentence: str) -> bool:
    """Whether a sentence takes back what was said just before it: "scratch that"."""
    return bool(_TAKEN_BACK.match(sentence))
