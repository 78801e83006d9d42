"""The detector: tokens by their formats, credentials that are told, cards."""

from __future__ import annotations

import importlib
import pkgutil
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from memoryd.knowledge.secrets.masking import mask_json, mask_text
from memoryd.knowledge.secrets.placeholders import is_placeholder, is_sample, is_sample_jwt, is_template
from memoryd.knowledge.secrets.told import is_told

__all__ = ["SecretDetector", "passes_luhn"]

_SKIPPED = frozenset({
    "high_entropy_strings", "keyword",  # they guess, by entropy or by the word beside: too often wrong in sentences
    "artifactory", "cloudant", "softlayer", "ibm_cloud_iam", "ibm_cos_hmac",  # likewise
    "basic_auth", "jwt", "private_key",  # ours below leave samples out
})  # fmt: skip
_JWT = re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}")
_ADDRESS = re.compile(r"://(?P<user>[^\s/:@'\"<>]{0,100}):(?P<password>[^\s/@'\"<>]{3,200})@(?P<host>[\w.\[\]:-]+)")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?P<body>[\s\\nr\"'+]*[A-Za-z0-9+/=:, -]{24,})"
)
_BEARER = re.compile(r"\b(?:bearer|basic)\s+(?P<token>[A-Za-z0-9._~+/-]{20,400}=*)", re.IGNORECASE)
_FORMATS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\bsk-(?:proj-|svcacct-|admin-|ant-[a-z0-9]+-|or-v1-)?[A-Za-z0-9_-]{20,}\b",  # OpenAI and its like
        r"\bAIza[A-Za-z0-9_-]{35}(?![\w-])",  # Google
        r"\bya29\.[A-Za-z0-9_-]{20,}",  # Google OAuth
        r"\bgithub_pat_[A-Za-z0-9_]{22,}\b",
        r"\bgl(?:pat|dt|rt|oas|soat)-[A-Za-z0-9_-]{20,}\b",  # GitLab
        r"\bhf_[A-Za-z0-9]{30,}\b",  # Hugging Face
        r"\bpypi-[A-Za-z0-9_-]{50,}\b",
        r"\bdop_v1_[a-f0-9]{64}\b",  # DigitalOcean
        r"\bdapi[a-f0-9]{32}\b",  # Databricks
        r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b",  # Shopify
        r"(?<!\d)\d{8,10}:AA[A-Za-z0-9_-]{33}(?![\w-])",  # Telegram bots
        r"\b(?:r|s)k_(?:live|test)_[A-Za-z0-9]{16,}\b",  # Stripe
        r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}\b",  # Slack
        r"\bEAAC[A-Za-z0-9]{30,}\b",  # Meta
        r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}\b",
        r"\bAgE[A-Za-z0-9_-]{80,}",  # macaroons, memoryd's own tokens among them
    )
)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_RUNS = re.compile(r"(\s)\s+")
_CANDIDATE = re.compile(r"[^\s'\"`<>(){},;|]{16,}")
_TELLTALE = re.compile(
    r"A3T|A[BK]IA|ACCA|ASIA|gh[opsru]_|github_pat_|gl(?:pat|dt|rt|oas|soat)-|sk-|[rs]k_|xox"
    r"|hooks\.slack|AIza|ya29|hf_|npm_"
    r"|pypi-|SG\.|AC[a-z0-9]{32}|SK[a-z0-9]{32}|-us\d|sq0csp|dop_v1|dapi|shp|EAAC|AGE-SECRET|AgE|:AA|==|[MNO][\w-]{23,25}\."
)
"""One of these stands in every token whose format is known."""
WINDOW = 400  # characters of a run that are looked at together
OVERLAP = 150
_CARD = re.compile(
    r"(?<![^\W_])(?<![.,-])(?:\d{13,19}|(?:\d{4}[ .-]){3}\d{1,7}|\d{4}[ .-]\d{6}[ .-]\d{4,5})(?![^\W_]|[.,-]?\d)"
)
"""A number of 13 to 19 figures, together or in the groups that are printed on cards; not a part of a UUID or a name."""
_SOCIAL_SECURITY = re.compile(
    r"\b(?:ssn|social security)\b.{0,40}?\b(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}\b", re.IGNORECASE
)
"""A US social security number, by the Social Security Administration's rules of what is never issued."""
_ISSUERS = re.compile(
    r"4\d{12}(?:\d{3}(?:\d{3})?)?|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|62\d{14,17}"
)
_WORTH_A_LOOK = re.compile(
    r"[A-Za-z0-9_+/=.-]{16}|\d(?:[ .-]?\d){12}|ssn|social security|://|BEGIN"
    r"|pass|pwd|pw\b|\bpin\b|key|token|secret|cvv|cvc|code|otp|phrase|identified by"
    r"|kennwort|contraseña|senha|credential|auth|mnemonic|mot de|seed",
    re.IGNORECASE,
)


_GIVEN = r"""(?:'([^'\n]{4,80})'|"([^"\n]{4,80})"|([^\s'"]{4,80}))"""
_COMMANDS = [
    re.compile(pattern + _GIVEN, re.IGNORECASE)
    for pattern in (
        r"\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n;|]{0,80}?\s-p(?=\S)",
        r"\bsshpass\s+-p\s*",
        r"\bredis-cli\b[^\n;|]{0,80}?\s-a\s+",
        r"\bcurl\b[^\n;|]{0,80}?\s(?:-u\s*|--user[\s=]+)['\"]?[^\s:'\"]{1,40}:",
        r"\b(?:docker|podman)\s+login\b[^\n;|]{0,80}?\s-p\s+",
        r"\bsmbclient\b[^\n;|]{0,80}?\s-U\s+['\"]?[^\s%'\"]{1,40}%",
        (
            r"\b(?:logins?|credentials?)(?: (?:for|to|of|on|at|in) [^\n:]{1,40}?)?(?:\s+is|\s+are|:)\s+"
            r"(?:[\w.-]{1,40}@[\w.-]{1,40}|[\w-]{2,40})(?:\s+/\s+|[:/])(?!\S*/|\S*\.[a-z]{1,4}\b)"
        ),
    )
]
"""Where tools take a password without a word for it, and a login that is told as a pair."""
_TOOLS = re.compile(r"mysql|mariadb|sshpass|redis-cli|curl|login|smbclient|credential", re.IGNORECASE)


def _is_given(value: str) -> bool:
    """Whether a value in the place of a password may be one: figures and letters, and no variable or placeholder."""
    has_both = any(letter.isdigit() for letter in value) and any(letter.isalpha() for letter in value)
    return has_both and value[0] not in "$<{%[" and "://" not in value and not is_sample(value)


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
        self._patterns: list[re.Pattern[str]] = []
        import detect_secrets.plugins as package
        from detect_secrets.plugins.base import RegexBasedDetector

        for module in pkgutil.iter_modules(package.__path__):
            if module.name in _SKIPPED or module.name == "base":
                continue
            for kind in vars(importlib.import_module(f"{package.__name__}.{module.name}")).values():
                if isinstance(kind, type) and issubclass(kind, RegexBasedDetector) and kind is not RegexBasedDetector:
                    detector: Any = kind
                    self._patterns += detector.denylist

    def __call__(self, texts: Iterable[str]) -> bool:
        """Return whether one of the texts holds a credential."""
        return any(self.find(text) for text in texts if text)

    def mask(self, text: str) -> str:
        """Return a text with `[masked]` in place of each credential."""
        return mask_text(text, self.find)

    def mask_json(self, text: str) -> str:
        """Return JSON, or a text, likewise; what holds no credential stays as it stands."""
        return mask_json(text, self.find)

    def find(self, text: str) -> str:
        """Return what sort of credential a text holds; "" for none."""
        if not text.isascii():  # written in other forms of the letters, or with nothing between them
            text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
        text = _RUNS.sub(r"\1", text)
        if _TOOLS.search(text):
            found = (match for pattern in _COMMANDS for match in pattern.finditer(text))
            if any(_is_given(next(value for value in match.groups() if value)) for match in found):
                return "password"
        if not _WORTH_A_LOOK.search(text):
            return ""
        if self._has_token(text):
            return "token"
        if is_told(text):
            return "password"
        if _SOCIAL_SECURITY.search(text):
            return "social security number"
        for match in _CARD.finditer(text):
            digits = re.sub(r"\D", "", match.group())
            if _ISSUERS.fullmatch(digits) and passes_luhn(digits):
                return "card"
        return ""

    def _has_token(self, text: str) -> bool:
        if any(not is_sample(match["body"]) for match in _PRIVATE_KEY.finditer(text)):
            return True
        if any(not is_sample(match["token"]) for match in _BEARER.finditer(text)):
            return True
        return any(self._is_token(run) for run in _runs(text))

    def _is_token(self, run: str) -> bool:
        """Whether a run of characters without spaces holds a token or a password in an address."""
        if "eyJ" in run and any(not is_sample_jwt(match.group()) for match in _JWT.finditer(run)):
            return True
        if "://" in run and any(_is_address_secret(match) for match in _ADDRESS.finditer(run)):
            return True
        if not _TELLTALE.search(run):
            return False
        found = (match.group() for pattern in (*_FORMATS, *self._patterns) for match in pattern.finditer(run))
        return any(not is_sample(token) for token in found)


def _runs(text: str) -> Iterator[str]:
    """Yield the runs of characters that may hold a token, long ones in windows that overlap."""
    for match in _CANDIDATE.finditer(text):
        run = match.group()
        for at in range(0, max(1, len(run) - OVERLAP), WINDOW - OVERLAP):
            yield run[at : at + WINDOW]


def _is_address_secret(match: re.Match[str]) -> bool:
    """Whether an address holds a password and no placeholder for one."""
    password = unquote(match["password"])
    return not is_placeholder(password) and not is_template(password) and not is_sample(password + "abcdef")
