"""
Credentials, which are refused on every way in.

The formats of tokens are those of `detect-secrets` (the fork that its users keep up, Apache-2.0), whose detectors look
at words alone and never ask a network; beside them the common formats that it lacks, passwords that are told in a
sentence, and the numbers of payment cards, by their issuers' ranges (ISO/IEC 7812) and their check digit (Luhn).
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from memoryd.knowledge.stems import word_set

__all__ = ["SecretDetector", "passes_luhn"]

_SKIPPED = frozenset({"high_entropy_strings", "keyword", "artifactory", "cloudant", "softlayer"})
"""Detectors that guess by entropy or by the word beside: in ordinary sentences they are wrong too often."""

_FORMATS = tuple(
    re.compile(pattern)
    for pattern in (
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----",
        r"\bsk-(?:proj-|svcacct-|admin-|ant-[a-z0-9]+-|or-v1-)?[A-Za-z0-9_-]{20,}\b",  # OpenAI and its like
        r"\bAIza[A-Za-z0-9_-]{35}\b",  # Google
        r"\bya29\.[A-Za-z0-9_-]{20,}",  # Google OAuth
        r"\bgithub_pat_[A-Za-z0-9_]{22,}\b",
        r"\bgl(?:pat|dt|rt|oas|soat)-[A-Za-z0-9_-]{20,}\b",  # GitLab
        r"\bhf_[A-Za-z0-9]{30,}\b",  # Hugging Face
        r"\bnpm_[A-Za-z0-9]{36}\b",
        r"\bpypi-[A-Za-z0-9_-]{50,}\b",
        r"\bdop_v1_[a-f0-9]{64}\b",  # DigitalOcean
        r"\bdapi[a-f0-9]{32}\b",  # Databricks
        r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b",  # Shopify
        r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}\b",  # Telegram bots
        r"\b(?:r|s)k_(?:live|test)_[A-Za-z0-9]{16,}\b",  # Stripe
        r"\bxox[abeoprs]-(?!your|my|example|token)[A-Za-z0-9-]{10,}\b",  # Slack
        r"\bEAAC[A-Za-z0-9]{30,}\b",  # Meta
        r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}\b",
        r"\b(?:eyJ[A-Za-z0-9_-]{10,}\.){2}[A-Za-z0-9_-]{10,}",  # JWT
        r"(?i)\b(?:authorization:\s*)?bearer\s+[A-Za-z0-9._~+/-]{20,}=*",
        r"\bAgE[A-Za-z0-9_-]{80,}",  # macaroons, memoryd's own tokens among them
        # a password inside an address
        r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,30}://[^\s/:@]{1,200}:[^\s/@]{3,200}@[\w.-]+",
    )
)
_FOREIGN = ("passwort", "kennwort", "mot de passe", "contraseña", "senha")
_TOLD = re.compile(
    rf"(?<![A-Za-z])(?P<what>(?:pass ?(?:word|code|phrase)|passwd|pwd|pw|(?:pass|token)(?=\s*[:=])|{'|'.join(_FOREIGN)}"
    r"|pin(?: code| number)?|(?:api|access|secret|private"
    r"|encryption|license)"
    r"[ _-]?key|(?:access|auth|api|refresh|bearer|secret)[ _-]?token|client[ _-]?secret|secret|cvv|cvc|recovery code"
    r"|security code|otp|seed phrase|wep key|wpa key)s?)"
    r"(?P<of>(?: (?:for|to|of|on|at) (?:[^.;:=\n]|\.(?=\w)){1,40}?| \([^)\n]{1,30}\))?)"
    r"\s*(?P<says>(?:was |is |has been )?(?:changed|set|reset) to|(?:is now|is|was|are|ist|lautet|est|es)\b|['’]s\b"
    r"|=|:|->|→)"
    r"\s*(?P<value>['\"“‘`]?[^\s'\"”’`]{3,}['\"”’`]?)(?P<rest>[^\n]{0,40})",
    re.IGNORECASE,
)
_BESIDE = re.compile(r"\b(?:password|passcode|passwd|pwd)s?\s+(?P<value>[^\s'\"]{6,})", re.IGNORECASE)
"""A password straight after its word, without a verb between."""
_NO_WORD = re.compile(r"[-/]|@[\w-]+\.\w")  # names of methods, addresses
_METHODS = word_set("sha256 sha-256 sha512 sha-512 oauth2 base64 argon2 argon2id pbkdf2 1password web3")
_RUNS = re.compile(r"(\s)\s+")
_CODE = re.compile(
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*[(\[](?:['\"A-Za-z_)\]].*)?|\$\{\w+\}.*|\$[A-Z_]+|\{\{?[\w.]+\}?\}?.*|%s|%\(\w+\)s|%[A-Z_]+%"
    r"|<[\w /-]*>?|(?:self|this|os|args|config|settings|user|request|env|process|options|data|form)(?:\.[a-z_]+)+[,;)]*"
)
"""An expression or a place to be filled in, where source code sets a password."""
_PLACEHOLDER = re.compile(
    r"(?:my|your|the|new|old)(?:[ _-]?(?:secret|api|access|auth|super|new))*"
    r"[ _-]?(?:password|key|token|secret)(?:[ _-]here)?",
    re.IGNORECASE,
)
"""What examples write where a credential goes."""
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_PLAIN_VALUES = word_set("""
    a an the not no in on at by for to of with very too so my our his her their its your this that these stored
    saved kept written secret strong weak long short safe unsafe unknown expired expiring wrong required changed
    correct hidden none empty same reset different needed missing easy hard simple complex annoying important
    private public available used invalid valid outdated old new lost forgotten leaked compromised due called
    under always never still being only something what where who how why when which shared rotated managed
    handled generated protected encrypted hashed fine okay good bad broken working longer shorter now there here
    known all about
""")
_CARD = re.compile(r"(?<![\d.,-])\d(?:[ .-]?\d){12,18}(?![\d.,-]?\d)")
_SOCIAL_SECURITY = re.compile(
    r"\b(?:ssn|social security)\b.{0,40}?\b(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}\b", re.IGNORECASE
)
"""A US social security number, by the Social Security Administration's rules of what is never issued."""
_ISSUERS = re.compile(
    r"4\d{12}(?:\d{3}(?:\d{3})?)?|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|62\d{14,17}"
)


def passes_luhn(digits: str) -> bool:
    """Return whether the last digit is the check digit of the others (Luhn's algorithm, US patent 2,950,048)."""
    total = 0
    for n, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + n % 2)
        total += value - 9 if value > 9 else value  # noqa: PLR2004  the sum of its digits
    return total % 10 == 0


class SecretDetector:
    """Tells whether a text holds a credential."""

    def __init__(self) -> None:
        """Load the detectors; none of them reaches for a network."""
        self._detectors: list[Any] = []
        import detect_secrets.plugins as package
        from detect_secrets.plugins.base import RegexBasedDetector

        for module in pkgutil.iter_modules(package.__path__):
            if module.name in _SKIPPED or module.name == "base":
                continue
            for kind in vars(importlib.import_module(f"{package.__name__}.{module.name}")).values():
                if isinstance(kind, type) and issubclass(kind, RegexBasedDetector) and kind is not RegexBasedDetector:
                    self._detectors.append(kind())

    def __call__(self, texts: Iterable[str]) -> bool:
        """Return whether one of the texts holds a credential."""
        return any(self.find(text) for text in texts if text)

    def find(self, text: str) -> str:
        """Return what sort of credential a text holds; "" for none."""
        if not text.isascii():  # written in other forms of the letters, or with nothing between them
            text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
        text = _RUNS.sub(r"\1", text)  # some detectors take the third power of a run's length
        if not _WORTH_A_LOOK.search(text):
            return ""
        if any(pattern.search(text) for pattern in _FORMATS):
            return "token"
        for detector in self._detectors:
            if next(iter(detector.analyze_string(text)), None):
                return str(detector.secret_type)
        if any(_is_value(match) for match in _TOLD.finditer(text)):
            return "password"
        if any(_looks_made_up(match["value"]) for match in _BESIDE.finditer(text)):
            return "password"
        if _SOCIAL_SECURITY.search(text):
            return "social security number"
        for match in _CARD.finditer(text):
            digits = re.sub(r"\D", "", match.group())
            if _ISSUERS.fullmatch(digits) and passes_luhn(digits):
                return "card"
        return ""


_WORTH_A_LOOK = re.compile(
    r"[A-Za-z0-9_+/=.-]{16}|\d(?:[ .-]?\d){12}|ssn|social security|://|BEGIN|(?:pass|pwd|pw\b|\bpin\b|key|token|secret|cvv|cvc|code"
    r"|otp|phrase|kennwort|contraseña|senha)",
    re.IGNORECASE,
)


def _is_value(match: re.Match[str]) -> bool:
    """Whether what is said of a password is one, and no remark on it."""
    quoted = match["value"][0] in "'\"“‘`"
    value = match["value"].strip("'\"“”‘’`.,;!?)")
    what = match["what"].lower()
    if match["says"] in {"=", ":"} and not quoted and _CODE.fullmatch(match["value"]):
        return False
    if _PLACEHOLDER.fullmatch(value):
        return False
    if what.startswith(_FOREIGN):
        return quoted or _looks_made_up(value)
    if what.startswith(("pin", "cvv", "cvc", "otp", "security", "recovery")):
        return bool(re.fullmatch(r"\d{3,8}", value))
    if (value.lower() in _PLAIN_VALUES and not quoted) or len(value) < 4:  # noqa: PLR2004  shorter is no credential
        return False
    mixed = bool(re.search(r"\d", value)) and bool(re.search(r"[A-Za-z\W_]", value))
    symbols = bool(re.search(r"[^\w\s'’.-]", value))
    if quoted or mixed or symbols:
        return not re.fullmatch(r"\d+(?:st|nd|rd|th|am|pm|d|days?|chars?)", value, re.IGNORECASE)
    alone = not match["rest"].strip(" .,;!?)'\"”’`")
    return alone and what.startswith(("pass", "pwd", "pw")) and value.isalnum()


def _looks_made_up(word: str) -> bool:
    """Whether a word is none of a language: letters and figures, or signs, in one."""
    word = word.strip("'\"“”‘’`.,;:!?()*_#|/")
    if word.lower() in _METHODS or _NO_WORD.search(word) or _CODE.fullmatch(word):
        return False
    return bool(re.search(r"[A-Za-z]", word) and re.search(r"[\d!$%^&*#@+=~?]", word))
