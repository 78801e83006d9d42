"""What stands where a credential goes and is none: placeholders, samples of documentation, templates, types."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode

from memoryd.knowledge.lexicon.spelling import word_set

__all__ = ["is_placeholder", "is_sample", "is_sample_jwt", "is_sample_key", "is_template"]

_WORDS = word_set("""
    a abc access accesskey account actual add admin administrator aes an and anonymous any api apikey app
    application auth authentication authtoken aws azure bar base basic batman baz bearer bot cat change changed
    changeme changethis client cloud code com config correct credential credentials csrf current custom dash data
    database db default demo dev development do doc docs documentation domain dont dotenv dragonfly111 dummy email
    empty encrypted encryption enter env environment example existing fake field fill first foo foobar for from
    generate generated get github go google guest hash hashed hello here hidden host hostname id in insert
    integration is it jwt key keyboard keys letmein live local localhost login long me minio minioadmin missing mock
    mongo monkey123 more my mykey mypassword mysecret mysql mytoken name new no not nothing of old on one openai or
    org original our own owner pass passcode passphrase passwd password passwords paste path personal pin
    placeholder please postgres postgresql prefix private prod production project provide provider public put pw pwd
    qux qwerty qwertyuiop random raw read real redacted redis refresh region registry removed repeat replace
    replaced repo reset root salt same sample secret secretkey secrets secure security server service session set
    setting settings sha shared shhh shhhh should signing site slack some somepassword something staging stored
    string stripe strong suffix super supersecret system target temp temporary test tester testing text thing this
    to todo token tokens top topsecret two type unknown unset update use user userid username users valid value
    values var variable very weak webhook webmaster welcome with word world write wrong www xxx yes your
    yourpassword yoursecret
""")
"""Words that placeholders are made of: "your_jwt_secret", "my-secret-key", "changeme123"."""
_NAMED = word_set("key keys passphrase password passwd secret token")
_TYPES = word_set("""
    any array auto blob bool boolean bytes bytea byte char charfield column date datetime decimal dict double encrypted
    enum false float hash hex hidden int integer json list long map mixed nil none null nullable number nvarchar object
    optional required schema secretstr serializer str string symbol text textfield true tuple type uint undefined
    unicode unknown uuid varchar void
""")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")
_SEQUENCES = ("01234567890123456789", "98765432109876543210", "abcdefghijklmnopqrstuvwxyz", "qwertyuiop", "asdfghjkl")
_TEMPLATE = re.compile(
    r"\$\{|\{\{|\}\}|<[^<>\n]{1,60}>|\[[A-Za-z][^\]\n]{0,60}\]|\{[A-Za-z_][\w. ()'\"\[\]-]{0,60}\}|%s\b|%\(\w+\)s"
    r"|%[A-Z_]+%|\.\.\.|…|\*{3}|x{3}|X{3}|•|●|_{4}|-{5}|#\{|\$[A-Z_]{2,}\b|\$\(|\$[a-z_]+(?:->|$)|process\.env|os\.environ|getenv|ENV\["
    r"|env\(|secrets\.\w|vault:|ref\+|!Ref|!Sub|REDACTED|TODO|INSERT|REPLACE|PLACEHOLDER|EXAMPLE|CHANGE_?ME"
)
_HASHES = re.compile(r"\$2[abxy]\$|\$argon2|\$[156]\$|\$pbkdf2|pbkdf2[:_]|scrypt:|bcrypt|sha\d+[$:]|\{S?SHA")
_SAMPLES = re.compile(
    r"(?i)example|sample|placeholder|dummy|fake[_-]|your[_-]|insert|redacted|change[_-]?me|not[_-]?a?[_-]?real|test[_-]?key"
    r"|12345678|abcdefgh|87654321|0{8}|1{8}|a{6}|f{8}|x{5}|deadbeef|4eC39HqLyjWDarjtT1zdp7dc|wJalrXUtnFEMI/K7MDENG"
)
"""Marks of samples inside of tokens; among them the well-known ones of Stripe's and AWS's documentation."""
_MASKED = re.compile(r"\$\{|\{\{|<[A-Za-z_ -]+>|\*{3}|\.\.\.|…|•")
_NO_KEY = re.compile(r"(?i)example|placeholder|redacted|your[ _-]|goes[ _-]?here|x{8}")
LEAST_WORD = 2  # letters of a word inside of another
MOST_LETTERS = 60  # of words that are written as one
LEAST_LETTERS = 6  # different ones, of a random token; a line of x's has one


def is_template(value: str) -> bool:
    """Return whether a text is filled in elsewhere, a variable, a template, stars; or is a password's hash."""
    return bool(_TEMPLATE.search(value) or _HASHES.match(value))


def _in_sequence(part: str) -> bool:
    """Whether a part counts or spells the alphabet: 123, abc; or repeats one sign: xxx."""
    low = part.lower()
    if len(low) == 1:
        return low.isdigit()
    return len(set(low)) == 1 or any(low in row for row in _SEQUENCES)


def _is_made_of_words(part: str) -> bool:
    """Whether a part is made of nothing but the words of placeholders: mysecretpassword."""
    if part in _WORDS:
        return True
    ends = {0}
    for end in range(LEAST_WORD, min(len(part), MOST_LETTERS) + 1):
        if any(end - at >= LEAST_WORD and part[at:end] in _WORDS for at in ends):
            ends.add(end)
    return len(part) in ends


def is_placeholder(value: str) -> bool:
    """Return whether a text is made of nothing but words that placeholders are made of, and counting figures."""
    if value.lower() in _TYPES:
        return True
    parts = _PARTS.findall(value)
    if not parts:
        return True
    if len(parts) > 1 and parts[-1].lower() in _NAMED and value.replace("_", "").replace("-", "").isalpha():
        return True  # the name of a credential: challengePassword
    return all(_is_made_of_words(part.lower()) or part.lower() in _TYPES or _in_sequence(part) for part in parts)


def is_sample(token: str) -> bool:
    """Return whether a token is one of documentation: it says so, counts, or repeats itself."""
    return bool(_SAMPLES.search(token) or _MASKED.search(token)) or len({*token}) < LEAST_LETTERS


def is_sample_key(body: str) -> bool:
    """Return whether the body of a PEM file is none. Words tell: base64 repeats a letter and counts by chance."""
    return bool(_NO_KEY.search(body)) or len({*body}) < LEAST_LETTERS


def is_sample_jwt(token: str) -> bool:
    """Return whether a JSON web token is a sample: its payload is of John Doe, 1234567890, or cannot be read."""
    payload = token.split(".")[1]
    try:
        claims = urlsafe_b64decode(payload + "=" * (-len(payload) % 4)).decode()
    except (ValueError, UnicodeDecodeError):
        return True
    return not claims.startswith("{") or bool(
        re.search(r"1234567890|John Doe|Jane Doe|example|payload|foo|hello", claims)
    )
