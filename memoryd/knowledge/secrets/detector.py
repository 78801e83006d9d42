"""The detector: tokens by their formats, credentials that are told, cards."""

from __future__ import annotations

import importlib
import pkgutil
import re
import unicodedata
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from memoryd.knowledge.secrets.json_masking import mask_json
from memoryd.knowledge.secrets.labelled import is_labelled, names_credential
from memoryd.knowledge.secrets.masking import Looks, mask_text
from memoryd.knowledge.secrets.placeholders import (
    is_placeholder,
    is_sample,
    is_sample_jwt,
    is_sample_key,
    is_template,
)

__all__ = ["Masker", "SecretDetector", "passes_luhn"]

_SKIPPED = frozenset({
    "high_entropy_strings", "keyword",  # they guess, by entropy or by the word next to it: too often wrong in sentences
    "artifactory", "cloudant", "softlayer", "ibm_cloud_iam", "ibm_cos_hmac",  # likewise
    "basic_auth", "jwt", "private_key",  # ours below leave samples out
})  # fmt: skip
_JWT = re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}")
_ADDRESS = re.compile(r"://(?P<user>[^\s/:@'\"<>]{0,100}):(?P<password>[^\s/@'\"<>]{3,200})@(?P<host>[\w.\[\]:-]+)")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?P<body>[\s\\nr\"'+]*[A-Za-z0-9+/=:, -]{24,})"
)
_KEY_IN_BASE64 = re.compile(r"\bLS0tLS1CRUdJTi[A-Za-z0-9+/]{80,}")
_BASIC = re.compile(r"\bbasic\s+(?P<token>[A-Za-z0-9+/]{7,400}={0,2})", re.IGNORECASE)
KEY_BEGIN = 64  # characters of base64 in which a PEM file says what it is
PIECE, PIECE_OVERLAP = 16_384, 1024  # characters
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
        r"\bwhsec_[A-Za-z0-9+/=]{24,}",  # Stripe's and others' webhooks
        r"\bgsk_[A-Za-z0-9]{40,}\b",  # Groq
        r"\bpplx-[A-Za-z0-9]{40,}\b",  # Perplexity
        r"\bxai-[A-Za-z0-9]{60,}\b",
        r"\br8_[A-Za-z0-9]{37,}\b",  # Replicate
        r"\bNRAK-[A-Z0-9]{27}\b",  # New Relic
        r"\blin_api_[A-Za-z0-9]{40}\b",  # Linear
        r"\bntn_[A-Za-z0-9]{40,}\b",  # Notion
        r"\bfigd_[A-Za-z0-9_-]{40,}",  # Figma
        r"\btskey-[a-z]+-[A-Za-z0-9-]{20,}\b",  # Tailscale
        r"\bhv[sb]\.[A-Za-z0-9_-]{24,}",  # HashiCorp Vault
        r"\bsbp_[a-f0-9]{40}\b",  # Supabase
        r"\bATATT3[A-Za-z0-9_=-]{50,}",  # Atlassian
        r"\bpul-[a-f0-9]{40}\b",  # Pulumi
        r"\bglsa_[A-Za-z0-9]{32}_[a-f0-9]{8}\b",  # Grafana
        r"\bGOCSPX-[A-Za-z0-9_-]{28}(?![\w-])",  # Google OAuth clients
        r"[?&]sig=[A-Za-z0-9%+/]{40,}(?:=|%3D)",  # Azure's shared access signatures
        r"\botpauth://[^\s]*?[?&]secret=[A-Z2-7]{16,}",
    )
)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_SPACE = re.compile(r"\s")
_RUNS = re.compile(r"(\s)\s+")
_CANDIDATE = re.compile(r"[^\s'\"`<>(){},;|]{16,}")
_TELLTALE = re.compile(
    r"A3T|A[BK]IA|ACCA|ASIA|gh[opsru]_|github_pat_|gl(?:pat|dt|rt|oas|soat)-|sk-|[rs]k_|xox"
    r"|hooks\.slack|AIza|ya29|hf_|npm_"
    r"|whsec_|gsk_|pplx-|xai-|r8_|NRAK-|lin_api_|ntn_|figd_|tskey-|hv[sb]\.|sbp_|ATATT3|pul-|glsa_|GOCSPX|sig=|otpauth"
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
    r"[a-z0-9_+/=.-]{16}|\d(?:[ .-]?\d){12}|ssn|social security|://|begin"
    r"|pass|pwd|pw\b|\bpin\b|key|token|secret|cvv|cvc|code|otp|phrase|identified by"
    r"|kennwort|contraseña|senha|credential|auth|mnemonic|mot de|seed|basic"
    r"|парол|密[码碼]|パスワード|비밀번호|암호|كلمة|סיסמ|κωδικ|has[lł]o|[şs]ifre|parola|wachtwoord|l[öo]senord|heslo|jelsz",
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
_TOOLS = re.compile(r"mysql|mariadb|sshpass|redis-cli|curl|login|smbclient|credential")


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


def _names_credential(name: str) -> bool:
    """Whether a name may make a credential of what stands next to it; a few more than do."""
    return names_credential(unicodedata.normalize("NFKC", _INVISIBLE.sub("", name)))


@dataclass(frozen=True, slots=True)
class Masker:
    """Takes credentials out of the texts of one call."""

    looks: Looks

    def mask(self, text: str) -> str:
        """Return a text with `[masked]` in place of each credential."""
        return mask_text(text, self.looks)

    def mask_json(self, text: str) -> str:
        """Return JSON, or a text, likewise; what holds no credential stays as it stands."""
        return mask_json(text, self.looks)


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

    def is_token(self, name: str) -> bool:
        """Return whether a name or an id is a token of a known format; a number in it may be anybody's."""
        return bool(_TELLTALE.search(name) or "eyJ" in name) and self._has_token(name)

    def mask(self, text: str) -> str:
        """Return a text with `[masked]` in place of each credential."""
        return self.masker(len(text)).mask(text)

    def mask_json(self, text: str) -> str:
        """Return JSON, or a text, likewise; what holds no credential stays as it stands."""
        return self.masker(len(text)).mask_json(text)

    def masker(self, characters: int, is_gone: Callable[[], bool] = lambda: False) -> Masker:
        """Return what masks the texts of a call, which have so many characters; see `Looks`."""
        return Masker(Looks(self.find, characters, _names_credential, is_gone))

    def find(self, text: str) -> str:
        """Return what sort of credential a text holds; "" for none."""
        return next((found for piece in _pieces(text) if (found := self._find(piece))), "")

    def _find(self, text: str) -> str:
        if not text.isascii():  # written in other forms of the letters, or with nothing between them
            text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
        text = _RUNS.sub(r"\1", text)
        lower = text.lower()  # a quarter of the time of patterns that ignore case (measured)
        if _TOOLS.search(lower):
            matches = (match for pattern in _COMMANDS for match in pattern.finditer(text))
            if any(_is_given(next(value for value in match.groups() if value)) for match in matches):
                return "password"
        if not _WORTH_A_LOOK.search(lower):
            return ""
        if self._has_token(text):
            return "token"
        if is_labelled(text):
            return "password"
        if _SOCIAL_SECURITY.search(text):
            return "social security number"
        for match in _CARD.finditer(text):
            digits = re.sub(r"\D", "", match.group())
            if _ISSUERS.fullmatch(digits) and passes_luhn(digits):
                return "card"
        return ""

    def _has_token(self, text: str) -> bool:
        if any(not is_sample_key(match["body"]) for match in _PRIVATE_KEY.finditer(text)):
            return True
        if any(_is_key_in_base64(match.group()) for match in _KEY_IN_BASE64.finditer(text)):
            return True
        if any(not is_sample(match["token"]) for match in _BEARER.finditer(text)):
            return True
        if any(_is_login_in_base64(match["token"]) for match in _BASIC.finditer(text)):
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


def _pieces(text: str) -> Iterator[str]:
    """Yield a text, of a long one pieces that overlap: each regular expression holds the interpreter while it runs."""
    at = 0
    while len(text) - at > PIECE:
        end = _space(text, at + PIECE - PIECE_OVERLAP // 2, at + PIECE)
        yield text[at:end]
        at = _space(text, end - PIECE_OVERLAP, end - PIECE_OVERLAP // 2)
    yield text[at:]


def _space(text: str, begin: int, end: int) -> int:
    """Return the last place in a part of a text where a word ends, so that none is cut; else the end of that part."""
    spaces = [match.start() for match in _SPACE.finditer(text, begin, end)]
    return spaces[-1] if spaces else end


def _is_key_in_base64(text: str) -> bool:
    """Whether base64 that begins like a PEM file is a private key, as in the configuration of Kubernetes."""
    begin = b64decode(text[:KEY_BEGIN]).decode("latin-1")
    return "PRIVATE KEY" in begin


def _is_login_in_base64(text: str) -> bool:
    """Whether what follows "Basic" is a user and a password (RFC 7617)."""
    try:
        user, colon, password = b64decode(text + "=" * (-len(text) % 4)).decode().partition(":")
    except (ValueError, UnicodeDecodeError):
        return False
    return (
        bool(user and colon) and password.isprintable() and not is_placeholder(password) and not is_template(password)
    )


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
