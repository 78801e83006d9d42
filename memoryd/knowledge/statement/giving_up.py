"""What a statement gives up, in whatever words: "instead of X", "closed my X account", "X is history"."""

from __future__ import annotations

import re

from memoryd.knowledge.grammar.values import value_of
from memoryd.knowledge.lexicon.stems import stem, word_set

__all__ = ["EMPTY", "FOR_NOW", "LED", "NOT_DONE", "gives_up"]

_THING = r"(?P<x>[^,.;!]{2,60}?)"
_STOP = (
    r"(?=$|[,.;!]| (?:to|for|and|so|but|any ?more|any longer|now|altogether|completely|last|this|because|since"
    r"|as my|as of"
    r"|in (?:my|favou?r|the)|until|over|these days|nowadays|account|again|a (?:week|month|year|while|few)|two"
    r"|three|on my)\b)"
)
_ENDED = (
    r"(?:left|quit|dropped|dumped|ditched|closed|sold|cancell?ed|abandoned|moved (?:on |out |off |away "
    r"|over )?(?:from|of)|moved off"
    r"|switched (?:over )?from|changed from|went from|gone from|transferred from|dropped out of|come off|came off"
    r"|went off"
    r"|(?:down|up) from|traded(?: in)?|swapped|exchanged|had it with|had enough of|bored (?:with|of)|tired of"
    r"|sick of|fed up with"
    r"|given up(?: on)?|gave up(?: on)?|stopped|uninstalled|deleted|got rid of|gotten rid of|out of|done with"
    r"|finished(?: with)?"
    r"|wrapped up|handed over(?: as)?|stepped down (?:as|from)|resigned (?:as|from)|retired (?:as|from)|let go of"
    r"|parted with"
    r"|replaced|shaved(?: off)?|broke up with|split (?:up )?(?:with|from)|lost|ended|let|passed|outgrew|outgrown"
    r"|kicked|cut out)"
)
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        (
            rf"\b(?:instead of|rather than|in place of|as opposed to) (?:my |the |an? |being |taking "
            rf"|having ){{0,4}}{_THING}{_STOP}"
        ),
        rf"\b(?:no longer|not any ?more)(?: \w+)?(?: (?:my|the|an?|in|at|on|with|for|as|to|of)){{0,4}} {_THING}{_STOP}",
        (
            rf"\b(?:do|does|am|is|are|can|have) not(?: (?:\w+))?(?: (?:my|the|an?|in|at|on|with|for|as|to"
            rf"|of)){{0,4}} {_THING} (?:any ?more|any longer)\b"
        ),
        rf"\b{_ENDED} (?:my |the |an? |our |being |working as |work as ){{0,4}}{_THING}{_STOP}",
        (
            rf"\b(?:that |my |the |our ){{0,4}}{_THING} (?:is|are|was|were|has been) (?:now )?(?:history|gone|over|done"
            rf"|finished|behind me|no more|in the past|not for me)\b"
        ),
        rf"\b(?:overtaken|replaced|dethroned|beaten) (?:my )?{_THING}(?: as | on | in |$|[,.;!])",
        (
            rf"\b(?:i |it |that |this )?(?:used to|was|were)(?: (?:be|have|like|love|dislike|hate|drink|eat|go|use"
            rf"|work as|live in|my|an?|the)){{0,4}} {_THING}(?:,| until recently| but| and)(?: \w+){{0,3}} (?:now|over"
            rf"|these days)\b"
        ),
        rf"^(?:my |our )?{_THING} (?:has |have )?(?:just |recently )?(?:died|passed away|been put (?:down|to sleep))\b",
        rf"\bwrong about {_THING}{_STOP}",
    )
)
_OF_THE_SPEAKER = 4  # of the forms, from the first on, tell of what the speaker does
NOT_DONE = re.compile(
    r"\b(?:not|never|nearly|almost|hardly|barely) (?:\w+ )?(?:given|gave|left|quit|stopped|sold|closed|dropped"
    r"|moved|cancell?ed|changed|switched|replaced|lost|grown|tired|bored|gone|fallen|finished|ended|done|resigned|retired"
    r"|sick|fed up|over it|through)\b"
    r"|\b(?:i thought i|failed to|can not say|can not stop)\b"
    r"|\b(?:thinking (?:of|about)|considering|plan(?:s|ning)? (?:to|on)|want(?:s|ed)? to|going to|about to"
    r"|tempted to|hop(?:e|ing) to|might|may"
    r"|could|would(?! (?:rather|sooner))|should|if|wish|dream\w*|imagine|people think|everyone thinks|they think"
    r"|is not true"
    r"|used to be afraid|(?:telling|tells?|told) (?:me|us) to)\b",
    re.IGNORECASE,
)
FOR_NOW = re.compile(
    r"\b(?:today|tonight|tomorrow|this (?:week|morning|afternoon|evening|weekend|time|once)|for (?:a|the next|one"
    r"|two|three|\d+) (?:few )?"
    r"(?:days?|weeks?|months?|hours?)|for (?:lent|january|the (?:weekend|holidays?|day|night|moment|time being))"
    r"|just once|while|until)\b",
    re.IGNORECASE,
)
EMPTY = frozenset(
    stem(
        word_set("""
    thing things one job account team work time day way habit phase stuff life place home house new old last main only
    real favorite favourite usual number best current much many lot lots bit kind sort year month week people friend
    that this these those it them something anything everything else other another long free drink eat drinking eating
    taking having being doing going working living playing using
""")
    )
)
LED = re.compile(
    r"^(?:(?:[\w ]{1,20}[,:]|actually|oh|well|so|hey|fyi|btw|by the way|quick note|and|for context"
    r"|just so you know),? +)+",
    re.IGNORECASE,
)
_OF_ANOTHER = re.compile(
    r"(?:my|our|his|her|their)\b|(?-i:[A-Z])[\w'-]+(?: and (?-i:[A-Z])[\w'-]+)? (?!is|are|was|were|has|have|used)\w+",
    re.IGNORECASE,
)
"""A sentence that begins so is not of what the speaker does."""
_GOOD = re.compile(
    r"\b(?:hat|dislik|distrust|avoid|disagree|detest|despis|mind|loath|fear|worr|afraid)\w*", re.IGNORECASE
)
"""To give this up is to come round."""


def gives_up(text: str) -> tuple[frozenset[str], ...]:
    """Return the things that a speaker gives up, each as the stems of its words; none where that is in doubt."""
    if NOT_DONE.search(text) or FOR_NOW.search(text):
        return ()
    found = []
    of_another = bool(_OF_ANOTHER.match(LED.sub("", text, count=1)))
    for form in _FORMS[of_another * _OF_THE_SPEAKER :]:
        for match in form.finditer(text):
            words = value_of(match["x"]) - EMPTY
            if words and not _GOOD.search(match[0]):
                found.append(words)
    return tuple(found)
