"""Where a message stops being its sender's own words: a mail, a chat, a page, a file or a text to work on follows."""

from __future__ import annotations

import re

from memoryd.knowledge.grammar.pattern import compiled

__all__ = ["own_part"]

_GREETING = (
    r"(?:hi|hello|hey|dear|good (?:morning|afternoon|evening)|hallo|liebe[rs]?|sehr geehrte\w*|guten (?:tag|morgen)"
    r"|cher|chère|bonjour|hola|estimad[oa]|querid[oa]|beste|geachte|ciao|gentile|car[oa]|ol[áa]|prezad[oa])"
)
_SIGN_OFF = (
    r"(?:(?:kind|best|warm|many)? ?(?:regards|wishes)|best|cheers|thanks(?: again)?|many thanks|thank you|sincerely"
    r"|yours(?: sincerely| truly| faithfully)?|love|xo+|take care|all the best|talk soon|see you(?: soon)?"
    r"|(?:viele|liebe|beste|schöne|herzliche) grüße|mit freundlichen grüßen|lg|vg|mfg|cordialement|bien à vous"
    r"|bisous|saludos|un saludo|un abrazo|groet(?:en|jes)?|met vriendelijke groet(?:en)?|cordiali saluti|saluti"
    r"|abraços?|cumprimentos)"
)
_FILE = r"[\w./-]+\.(?:md|txt|rst|py|js|ts|json|ya?ml|toml|ini|cfg|csv|log|html?|xml|sql|sh|eml|docx?|pdf)"
_NAME = r"(?:[\w.'-]{1,30}|(?-i:[A-Z][\w.'-]{0,20})(?: (?-i:[A-Z][\w.'-]{0,20})){1,2})"
_TIME = r"\d{1,2}(?::\d\d(?::\d\d)?(?: ?[ap]\.?m\.?)?|[.h]\d\d ?[ap]\.?m\.?)"

# each stands at the beginning of a line, and what follows it is another's
_BEGINS = re.compile(
    r"^[ \t]*(?:"
    r"(?:from|to|cc|bcc|subject|sent|date|reply-to|re|fwd?|von|betreff|gesendet|objet|envoyé|asunto|enviado|oggetto"
    r"|onderwerp)[ \t]*:"  # the head of a mail
    r"|-{2,}[^\n]{0,60}(?:message|nachricht|mensaje|messaggio|bericht)[^\n]{0,20}-{2,}"
    r"|(?:begin|start of|end of)?[ \t]*(?:forwarded|original|weitergeleitete|ursprüngliche)[ \t]+(?:message|mail"
    r"|nachricht)"
    r"|(?:on|am|le|el|op|il|em)\b[^\n]{4,80}(?:wrote|schrieb|a écrit|escribió|schreef|ha scritto|escreveu)[^\n]{0,60}:"
    r"|[^\n:]{1,60}\b(?:wrote|writes|posted|commented|replied|schrieb|schreibt|a écrit|escribió|schreef|ha scritto"
    r"|escreveu)[ \t]?:"
    rf"|\[?{_TIME}\]?[ \t][^\n:]{{1,40}}:"  # a line of a chat: a time and a name
    rf"|{_NAME}[ \t]*[(\[•·,–-][ \t]*(?:{_TIME}|\d+ ?[smhdw]|yesterday|today)\b[^\n]{{0,12}}\n"
    rf"|{_NAME}[ \t]{_TIME}[ \t]*\n"
    rf"|{_FILE}[ \t]*:?[ \t]*$"
    r"|(?:an? |the |my |this )?(?:new )?(?:e-?mail|mail|message|letter|note|text|post|tweet|voicemail|comment) from"
    r" [^\n]{1,60}$"
    r"|#{1,6}[ \t]"
    r"|/\*|<!--|<[a-z]|\[(?:quote|code|spoiler)\b"
    r"|(?!(?:[^\n:]*\b(?:me|my|mine|myself|i|us|our)\b))[^\n:.!?]{1,40}:[ \t]*$"  # a label, and a text below
    r")",
    re.IGNORECASE | re.MULTILINE,
)
_LETTER = re.compile(rf"^[ \t]*{_GREETING}\b[^.?\n]{{0,40}}[,!:]?[ \t]*$", re.IGNORECASE | re.MULTILINE)
_SIGNED = re.compile(
    rf"^[ \t]*{_SIGN_OFF}[ \t]*[,.!]?[ \t]*(?:$|\n[ \t]*[\w.' -]{{1,40}}[ \t]*$)", re.IGNORECASE | re.MULTILINE
)

_REWORKS = (
    r"(?:translate|proof-?read|rewrite|re-write|rephrase|paraphrase|reword|summari[sz]e|sum up|übersetze?|korrigiere?"
    r"|fasse?\b[^.!?:\n]{0,40}\bzusammen|traduis|corrige|résume|traduce|resume|vertaal|traduci)"
)
_TASKS = (
    rf"(?:{_REWORKS}|correct|fix|polish|edit|shorten|simplify|review|check|read|analy[sz]e|say|type|print|repeat|send"
    r"|post|forward|answer|reply to|respond to|tell|have a look at|take a look at|listen to|lies)"
)
_TEXT = (
    r"(?:this|these|it|the following|e-?mail|mail|message|text|letter|paragraph|essay|article|post|note|grammar"
    r"|english|spelling|draft|page|translation|sentence|code|log)"
)
_THIS = (
    r"(?:this|these|that one|the following|the (?:text|mail|e-?mail|message|letter|paragraph|post|page|article) below"
    r"|the below|it below|das|diesen? \w+|folgende\w*|ceci|ce texte|esto|este texto|dit|questo)"
)
_POLITE = r"(?:(?:please|pls|can you|could you|would you|hey|hi|ok(?:ay)?|now|bitte|kannst du|just)[, ]+)*"
_ANOTHER = (
    r"(?:sent|forwarded|showed|wrote|say|texted|e-?mailed|messaged|gave|posted|said|says|told|tells|states|prints?|printed"
    r"|returns?|returned|received|found)"
)
_TO_ME = (
    r"(?:[ \t,]+(?:to me|for me|please|pls|thanks|out loud|aloud|into \w+|to \w+|in \w+|yesterday|today|earlier|once))*"
)
_END = r"[ \t]*(?:[.!?:]+|\n|$)"
# sentences after which another's text comes, in the same line or below
_ANNOUNCES = compiled("{announces}")


def own_part(text: str) -> str:
    """
    Return a tidied message (`sentences.tidy`) up to where another's text begins; "" of a letter, whosever it is.

    A lost fact is told again; what a stranger wrote must never count as the user's.
    """
    letter = _LETTER.search(text)
    if letter and (text[: letter.start()].strip() or _SIGNED.search(text, letter.end())):
        text = text[: letter.start()]
    announced = _ANNOUNCES.search(text)
    if announced and text[announced.end() :].strip():
        text = text[: announced.end()]
    begun = _BEGINS.search(text)
    return text[: begun.start()] if begun else text
