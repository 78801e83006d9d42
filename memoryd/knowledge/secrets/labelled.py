"""
Credentials that are told: a word for one, then its value, in a sentence, a setting, JSON, code or on a command line.

The word is found first; what follows it is read from there, in a window, so that no text takes long.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memoryd.knowledge.lexicon.spelling import word_set
from memoryd.knowledge.secrets.placeholders import is_placeholder, is_template

__all__ = ["is_labelled", "names_credential"]

WINDOW = 200  # characters after the word in which its value begins and ends
BEFORE = 60  # characters before the word that are looked at
LEAST = 4  # characters of a credential
LEAST_WORD = 5  # letters of a password that is a word
LEAST_DIGITS = 6  # figures of a password that is a number
LEAST_TOKEN = 8  # characters of a token or key, which are longer than passwords
RANDOM_RUN = 2.4  # characters in a row of one sort (figures, capitals, a word) in what is random: mostly one or two
LONG, LONG_RUN = 20, 3.0  # the same for long values, whose mean says more

_WORD = re.compile(
    r"(?:(?<![a-z])|(?<=[a-z])(?-i:(?=[A-Z])))(?:"
    r"(?P<password>pass ?(?:word|code|phrase)|passwd|pwd|pw|passwort|kennwort|mot de passe|contraseña|senha"
    r"|парол[ья]|密[码碼]|パスワード|비밀번호|암호|كلمة (?:السر|المرور)|סיסמ[הא]|κωδικ[όο]ς?"
    r"|has[łl]o|[şs]ifre|parola|wachtwoord|l[öo]senord|heslo|jelsz[óo])"
    r"|(?P<number>pin(?: code| number)?|cvv|cvc|otp|security code|recovery code)"
    r"|(?P<token>(?:api|access|secret|private|encryption|license|signing|account)[ _-]?(?:access[ _-]?)?key"
    r"|(?:access|auth|api|refresh|bearer|secret|bot|id)[ _-]?token|client[ _-]?secret|seed phrase|w(?:ep|pa) key)"
    r"|(?P<login>pass|credentials?|auth)|(?P<name>token|secret)"  # a credential only where something is assigned
    r")s?(?![a-z0-9_])",
    re.IGNORECASE,
)
_FOR = r"(?:for|to|of|on|at|für|fürs|zum|zur|vom|von|im|am|del|de|du|des|da|do|della|per|para|pour|pro|en)"
_IS = r"(?:is now|is|was|are|ist|lautet|est|es|é|è|это|είναι|هي|היא)"
_QUOTED = r"(?P<quote>['\"“‘`])(?P<quoted>[^'\"”’`\n]{1,120})['\"”’`]"
_VALUE = rf"(?:[a-z]?{_QUOTED}|(?P<plain>[^\s'\"”’`]{{2,120}}))"
_SAYS = re.compile(
    rf"(?: {_FOR} (?:[^.;:=\n]|\.(?=\w)){{1,40}}?| \([^)\n]{{1,30}}\))?"
    r"(?:\s+(?:was |is |has been )?(?:changed|set|reset) to"
    rf"|(?<=[\s)]){_IS}(?=[\s:])|\s+{_IS}(?=[\s:])|['’]s(?=\s))\s*:?\s*" + _VALUE,
    re.IGNORECASE,
)
_SET = re.compile(
    rf"['\"`]?\]?(?: \([^)\n]{{1,30}}\)| {_FOR} [^.;:=\n]{{1,40}}?)?\*{{0,2}}\s*"
    r"(?:(?::\s*[\w.\[\]| ]{1,40}?| string| str)\s*=(?!=)|=>|:=|->|→|:(?!:)|=(?!=))\*{0,2}\s*" + _VALUE,
    re.IGNORECASE,
)
_CALL = re.compile(r"\(\s*" + _QUOTED)
_ELEMENT = re.compile(r">(?P<plain>[^<\s]{2,120})</")
_BESIDE = re.compile(
    r"(?:\s+|\s*(?:是|为|為|は|은|는)\s*|\s*\|\s*|\?\s+(?:(?:it['’]?s|a:|it is)\s+)?)" + _VALUE, re.IGNORECASE
)
_PUT_TO = re.compile(rf"(?: {_FOR} [^.;:=\n]{{1,40}}?)? (?:back )?to\s+" + _VALUE, re.IGNORECASE)
_PUTS = re.compile(r"\b(?:set|sets|reset|change|changed|rotated|updated?|switched)\b[^.;:=\n]{0,30}$", re.IGNORECASE)
_IN_PROSE = re.compile(r"(?: [\w'’ ,.!?-]*)?")
"""What follows a value on its line where a sentence goes on, and no code."""
_IN_CODE = re.compile(r"[{}()\[\]=;\"'<>]")
"""What stands before the word where code does."""
_SQL = re.compile(r"\bIDENTIFIED (?:WITH \S+ )?BY '([^'\n]{1,120})'", re.IGNORECASE)
_FOREIGN = re.compile(rf"(?: {_FOR} [^:\n]{{1,40}}?)?\s+(?:ist|lautet|est|es|é|è)\s")
"""A verb after which a plain word may be any adjective: those of English alone are known."""
_FIRST = re.compile(
    r"(?<!\S)['\"“`]?(?P<plain>[^\s'\"“”`]{6,120})['\"”`]?\s+(?:as|is|was|ist|est|es)\s+"
    r"(?:(?:the|my|our|your|his|her|a|new|das|mein|la|le|mon|mi)\s+){0,3}(?:[\w-]{1,20}\s+){0,2}(?:password|passcode|passphrase|passwd|passwort"
    r"|kennwort|contraseña|senha|mot de passe)"
    r"(?=\s*(?:$|[.,;:!?)\n]|(?:for|of|to|on|at|in|from|and|now|für|de|del)\s))",
    re.IGNORECASE,
)
"""The value before the word: "use hunter2-Falcon as the admin password"."""
_SEED = re.compile(
    r"\b(?:(?:seed|recovery|backup|wallet|secret)(?: recovery)? (?:phrase|words)|mnemonic)\b[^:=\n]{0,40}?"
    r"(?:[:=]|\bis\b|\bare\b)\s*['\"“]?(?P<words>(?:[a-z]{3,8},? +){11,23}[a-z]{3,8})\b",
    re.IGNORECASE,
)
_OTHER_NAMES = re.compile(r"seed|recovery|backup|wallet|secret|mnemonic|identified|ssn|social security", re.IGNORECASE)
"""Words for what is a credential by more than the word: a phrase of many words, a number in its groups."""
_NO_SEED = frozenset({"the", "and", "for", "was", "are", "not", "has", "had", "his", "her", "its", "our", "from"})
"""Words of sentences that are none of BIP-39's 2,048 (phrases of 12 to 24 words are made of those)."""
_SETTING = re.compile(r"^[A-Z_ ]+$|--?$|[\w ]=[^;=]*;\s*$")
"""What stands before the word in a setting: an upper-case name, the sign of an option, settings between semicolons."""

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ENDS = ".,;:!?)}]"
_CODE = re.compile(
    r"!?(?:await\s*)?[A-Za-z_$][\w$]*(?:(?:\?\.|\.|::|->)[A-Za-z_$][\w$]*)*(?:[(\[](?:['\"`A-Za-z_$)\]:*-].*)?)?[,;)\]}]*"
    r"|[A-Za-z_.]*\.[A-Za-z_]+\(.*|[\[\]:\w]+\[[\w:-]*\][,;)]*"
)
"""An expression: a name, names with dots, a call, a part of a list."""
_DOTTED = re.compile(r"[A-Za-z_][\w-]*(?:[.:/][A-Za-z_][\w-]*)+")
_PATH = re.compile(
    r"(?:~|\.{0,2})/[\w./-]+|[a-z][a-z0-9+.-]*://\S+|[\w.-]+(?:/[\w.-]+)*\.(?:pem|key|txt|json|env|ya?ml|crt)"
)
_TECHNICAL = re.compile(
    r"(?:sha|md|aes|rs|hs|es|ps|base|argon|oauth|utf|x|p|pkcs|v|s|min|max|ec|ipv|http|web|wpa|iso|i|h|r|c|id|rfc|tls|ssl|des|rc|ed"
    r"|int|uint|float|str|mp|b|u|k)-?\d{1,5}(?:[-_.][a-z0-9]{1,8}|[a-z]{1,3}\d?)?"
    r"|\d+(?:[.,]\d+)?(?:-[a-z]{1,12})+|\d+(?:[.,]\d+)?(?:chars?|bytes?|bits?|[kmg]b|ms|s|h|m"
    r"|min|hours?|days?|st|nd|rd|th|k|px)"
    r"|\d?[a-z]{2,}-based|[a-z]+(?:-[a-z]+)+|1password|(?-i:[a-z]{2,8}2[a-z]{2,8})|\w+@[\w-]+\.\w+\S*|\d+(?:[.:/-]\d+)+"
    r"|two-?factor|2fa|[@$#&][a-z_]+|[a-z]+[(\[]\d+(?:,\d+)?[)\]]?|0x[0-9a-f]+",
    re.IGNORECASE,
)
"""What has letters and figures and is a word of the trade: sha256, 8-character, v1.2, key2value, an address, a date."""
_MEASURE = re.compile("[°–—…€£¥²³]")
_HEXADECIMAL = re.compile(r"(?=[a-f-]*\d)(?=[\d-]*[a-f])[0-9a-f-]{24,}")
_TOKEN_SIGNS = re.compile(r"[\w+/=.:~!@#%^&*$-]+")
_OPERATORS = re.compile(r"[=<>+|&]{2}|!=|[({\[;]$|^[=+|&<>({\[/]")
_SPOKEN = word_set("""
    a about again all also always an and any anything are as at available back bad be because been before being best
    between both broken but by can cannot case change changed characters complex compromised confirm correct created
    current different disabled do does due each easy either empty enabled encrypted enough entered enter even every
    expired falsa falsch faux few fine first for forgotten from generated given good had handled hard has hashed
    have he her here hidden his how however i if important in incorrect instead into invalid is it its just kept
    kind known later leaked least less like long longer lost made managed match matched may me mismatch missing more
    most much must my needed never new no none not nothing now of off okay old on once one only or other our out
    outdated over owned part plain please private protected provided public quite required reset right rotated safe
    same saved secret secure sent set shared she short should shorter simple since so some something stale still
    stolen stored strong such super sure than that the their then there these they this those to too two unchanged
    under unique unknown unless unsafe until up updated use used useful user using valid very via visible was weak
    we what when where whether which while who why will with within without working worse would written wrong yes
    yet you your
""")
_DESCRIBED = re.compile(r"(?:ed|ing|able|ible|ful|less|ous|ive|ect|ent|ant|ary|ally|ly|al|ic|ure)$")
_SPEECH = word_set("""
    a an at be been can cannot do does enter for has have in is it least long match matches must not of or please
    required should than that the this to too valid when will with you your
""")


@dataclass(frozen=True)
class _Credential:
    """A value that follows the word for a credential."""

    kind: str  # the group of _WORD
    value: str
    quoted: bool
    alone: bool  # nothing else stands on its line
    setting: bool  # it is set outside of code, where no expression can stand
    spoken: bool  # in a sentence
    prose: bool = False  # a sentence goes on after it


def names_credential(name: str) -> bool:
    """Return whether a name may make a credential of what stands next to it; a few more than do."""
    return bool(_WORD.search(name) or _OTHER_NAMES.search(name))


def is_labelled(text: str) -> bool:
    """Return whether a text tells a credential."""
    credentials = {
        _Credential("password", match[1], quoted=True, alone=True, setting=True, spoken=False)
        for match in _SQL.finditer(text)
    }
    if any(not _NO_SEED.intersection(match["words"].lower().split()) for match in _SEED.finditer(text)):
        return True
    credentials.update(_first(match) for match in _FIRST.finditer(text))
    credentials.update(value for word in _WORD.finditer(text) for value in _after(text, word))
    return any(map(_is_secret, credentials))


def _first(match: re.Match[str]) -> _Credential:
    return _Credential("password", match["plain"], quoted=False, alone=False, setting=False, spoken=True)


def _after(text: str, word: re.Match[str]) -> list[_Credential]:
    """Return the value that follows a word for a credential, if one does."""
    kind = word.lastgroup or ""
    after = text[word.end() : word.end() + WINDOW]
    before = text[max(0, word.start() - BEFORE) : word.start()].rpartition("\n")[2]
    assigned, value = _value_after(before, after, kind)
    element = _ELEMENT.match(after) if before.endswith("<") else None
    match = element or assigned or value
    if match is None or before.lower().endswith(("public", "publickey")):
        return []
    if kind in {"login", "name"} and ("\n" in match.group() or after.startswith((" to ", " on "))):
        return []
    groups = match.groupdict()
    rest = after[match.end() :].partition("\n")[0]
    return [
        _Credential(
            kind=kind,
            value=groups.get("quoted") or groups.get("plain") or "",
            quoted=bool(groups.get("quoted")),
            alone=match is element
            or not (_FOREIGN.match(match.group()) or rest.strip(" \t\r.,;!?)'\"”’`*") or before.endswith(", ")),
            prose=match is assigned and bool(_IN_PROSE.fullmatch(rest)) and not _IN_CODE.search(before),
            setting=word.group().isupper() or bool(_SETTING.search(before)),
            spoken=match is value,
        )
    ]


def _value_after(before: str, after: str, kind: str) -> tuple[re.Match[str] | None, re.Match[str] | None]:
    """Return the value that is assigned after a word, and the one that is said after it; at most one of them."""
    assigned = _SET.match(after)
    if assigned is not None or kind in {"login", "name"}:
        return assigned, None
    match = _SAYS.match(after)
    if match is not None:
        return None, match
    assigned = _CALL.match(after)
    return assigned, _beside(before, after) if kind == "password" and assigned is None else None


def _beside(before: str, after: str) -> re.Match[str] | None:
    """
    Return what stands right next to the word, where it cannot be a word of the sentence.

    "wifi password hunter22", "I set the password to hunter22".
    """
    match = (_PUT_TO.match(after) if _PUTS.search(before) else None) or _BESIDE.match(after)
    value = (match["quoted"] or match["plain"]) if match is not None else ""
    return match if _looks_made_up(value) and not is_template(value) else None


def _is_secret(credential: _Credential) -> bool:
    """Whether a value is a credential, and no remark, expression, type, message or placeholder."""
    if credential.kind == "number":
        return re.fullmatch(r"\d{3,8}", credential.value.rstrip(_ENDS)) is not None
    value = credential.value.strip() if credential.quoted else credential.value.rstrip(_ENDS)
    if len(value) < LEAST or is_template(value):
        return False
    if _is_random(value):
        return not is_placeholder(value)
    if value.isdecimal():
        return credential.kind == "password" and len(value) >= LEAST_DIGITS and not is_placeholder(value)
    return _is_spoken_secret(credential, value) if credential.spoken else _is_assigned_secret(credential, value)


def _is_spoken_secret(credential: _Credential, value: str) -> bool:
    """Whether what a sentence says of a credential is its value."""
    if credential.quoted:
        return not _is_speech(value) and (not is_placeholder(value) or bool(re.search(r"\d", value)))
    if _looks_made_up(value):
        return True
    return credential.alone and credential.kind == "password" and _is_plain_word(value, quoted=False)


def _is_assigned_secret(credential: _Credential, value: str) -> bool:
    """Whether what is assigned to a credential's name is its value."""
    if (
        is_placeholder(value)
        or _PATH.fullmatch(value)
        or _DOTTED.fullmatch(credential.value.rstrip(".,;:)]}"))
        or _TECHNICAL.fullmatch(value)
    ):
        return False
    if credential.quoted and (_is_speech(value) or credential.value[-1] in ": "):
        return False
    if not credential.quoted and _CODE.fullmatch(credential.value) and not _is_value_and_no_name(credential, value):
        return False
    if credential.kind in {"token", "name"}:
        return (
            len(value) >= LEAST_TOKEN and bool(_TOKEN_SIGNS.fullmatch(value) and re.search(r"\d", value))
        ) or _is_phrase(credential)
    if value.isalpha():
        return (credential.quoted or credential.alone) and _is_plain_word(value, quoted=credential.quoted)
    if " " in value:
        return _is_phrase(credential)
    return _looks_made_up(value) or credential.quoted


def _is_value_and_no_name(credential: _Credential, value: str) -> bool:
    """Whether a value that looks like a name in code is one all the same: alone in its line, or of a setting."""
    if credential.setting and re.fullmatch(r"\w+", value):
        return True
    if credential.prose and credential.kind == "password" and re.fullmatch(r"[A-Za-z]{3,}\d+", value):
        return True
    return (
        credential.alone
        and credential.kind not in {"token", "name"}
        and bool(re.fullmatch(r"[A-Za-z]+\d[\w$]*|[a-z]+|[A-Za-z_]+\d+", value))
    )


def _is_phrase(credential: _Credential) -> bool:
    """Whether a value is a phrase of words in quotes, as passphrases and seeds are."""
    return credential.quoted and len(credential.value.split()) > 2 and credential.kind in {"password", "token"}  # noqa: PLR2004


def _is_plain_word(value: str, *, quoted: bool) -> bool:
    """Whether a value is a word that says nothing of a password, and so is one: swordfish."""
    word = value.lower()
    described = word in _SPOKEN or bool(_DESCRIBED.search(word) and not quoted)
    return value.isalpha() and len(word) >= LEAST_WORD and not described


def _is_random(value: str) -> bool:
    """Whether letters and figures change so often that no one thought of them: kX3vB9q."""
    parts = _PARTS.findall(value)
    signs = sum(map(len, parts))
    if signs < LEAST_TOKEN or re.search(r"[\s(){}\[\]<>]", value) or _TECHNICAL.fullmatch(value):
        return False
    if _HEXADECIMAL.fullmatch(value):
        return True
    long = len(value) >= LONG
    mixed = re.search(r"\d", value) or (long and re.search(r"[a-z]", value))
    return bool(mixed and re.search(r"[a-zA-Z]", value)) and signs / len(parts) <= (LONG_RUN if long else RANDOM_RUN)


def _is_speech(value: str) -> bool:
    """Whether a value in quotes is a message: "Password is required"."""
    words = [word.strip(".,!?:;()").lower() for word in value.split()]
    return len(words) > 1 and any(word in _SPEECH or word.endswith(("ed", "ing", "n't")) for word in words)


def _looks_made_up(value: str) -> bool:
    """Whether a word is none of a language or of the trade: letters and figures, or signs, in one."""
    value = value.strip("'\"“”‘’`.,;:!?()*_|/")
    if len(value) < LEAST or _TECHNICAL.fullmatch(value) or _PATH.fullmatch(value) or _MEASURE.search(value):
        return False
    if _CODE.fullmatch(value) and "(" in value:
        return False
    letters, figures = bool(re.search(r"[^\W\d_]", value)), bool(re.search(r"\d", value))
    signs = re.search(r"[!$%^&*#@+=~?]", value) and not _OPERATORS.search(value)
    return letters and (figures or (bool(signs) and len(value) >= LEAST_DIGITS))
