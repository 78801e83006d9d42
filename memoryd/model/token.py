"""
Tokens: a token stands for a grant, within its caveats.

A token is a macaroon [1] in the binary format 2 of libmacaroons [2], in URL-safe base64: an identifier, caveats, and a
chain of HMAC-SHA256 over them that begins with a key of the daemon. A holder can add a caveat without the daemon,
which only narrows the token; no one can take one away. A caveat is a JSON object with one key; the known keys
are those of `Caveats`, and an unknown one denies. Only the standard library is used, so that a sandbox can attenuate.

[1] Birgisson et al., Macaroons: Cookies with Contextual Caveats for Decentralized Authorization in the Cloud, NDSS 2014
[2] doc/format.txt of libmacaroons
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from memoryd.errors import InvalidArgument, Unauthenticated
from memoryd.model import limits
from memoryd.model.grant import Permission, check_permissions, permission_names
from memoryd.model.validation import check_id, check_time

__all__ = ["Caveats", "Token", "attenuate", "mint", "parse_token"]

_VERSION = 2
_END, _LOCATION, _IDENTIFIER, _SIGNATURE = 0, 1, 2, 6  # the types of fields of format 2
_SIGNATURE_BYTES = 32
_KEY_GENERATOR = b"macaroons-key-generator"  # what libmacaroons derives keys with
_LOCATION_HINT = b"memoryd"


def _mac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


@dataclass(frozen=True, slots=True)
class Token:
    """A token in its parts; `signature` is the secret one, and no part of what is printed."""

    key_id: str
    grant_id: str
    token_id: str
    caveats: tuple[str, ...]
    signature: bytes

    def __repr__(self) -> str:
        """Leave the secret out of every trace."""
        return f"Token({self.token_id})"

    @property
    def identifier(self) -> bytes:
        """What the chain begins with."""
        return f"1:{self.key_id}:{self.grant_id}:{self.token_id}".encode()

    def text(self) -> str:
        """Return it as it is handed over."""
        parts = [
            bytes([_VERSION]),
            _field(_LOCATION, _LOCATION_HINT),
            _field(_IDENTIFIER, self.identifier),
            bytes([_END]),
            *(_field(_IDENTIFIER, caveat.encode()) + bytes([_END]) for caveat in self.caveats),
            bytes([_END]),
            _field(_SIGNATURE, self.signature),
        ]
        return base64.urlsafe_b64encode(b"".join(parts)).decode().rstrip("=")

    def is_signed_with(self, key: bytes) -> bool:
        """Whether the chain begins with this key and nothing in it was changed."""
        return hmac.compare_digest(self.signature, _chain(key, self.identifier, self.caveats))


def _chain(key: bytes, identifier: bytes, caveats: Iterable[str]) -> bytes:
    signature = _mac(_mac(_KEY_GENERATOR, key), identifier)
    for caveat in caveats:
        signature = _mac(signature, caveat.encode())
    return signature


def mint(key_id: str, key: bytes, grant_id: str, token_id: str, caveats: Sequence[str] = ()) -> Token:
    """Return a new token of a grant."""
    bare = Token(key_id, grant_id, token_id, tuple(caveats), b"")
    return Token(key_id, grant_id, token_id, bare.caveats, _chain(key, bare.identifier, bare.caveats))


def attenuate(text: str, caveats: Caveats) -> str:
    """Return a token that allows less: what `caveats` says on top of what it said already; InvalidArgument if none."""
    try:
        token = parse_token(text)
    except Unauthenticated as error:
        raise InvalidArgument(error.message, field="token") from None
    added = caveats.texts()
    if not added:
        raise InvalidArgument("nothing is narrowed; name permissions, chats, an end, an audience or a door")
    if len(token.caveats) + len(added) > limits.MAX_TOKEN_CAVEATS:
        raise InvalidArgument(f"a token has at most {limits.MAX_TOKEN_CAVEATS} caveats", field="token")
    signature = token.signature
    for caveat in added:
        signature = _mac(signature, caveat.encode())
    narrowed = Token(token.key_id, token.grant_id, token.token_id, (*token.caveats, *added), signature).text()
    if len(narrowed) > limits.MAX_TOKEN_BYTES:
        raise InvalidArgument(
            f"the token would have {len(narrowed)} characters; the limit is {limits.MAX_TOKEN_BYTES}", field="token"
        )
    return narrowed


def _field(kind: int, data: bytes) -> bytes:
    return bytes([kind]) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004  seven bits a byte
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


class _Reader:
    """Reads the fields of a serialised macaroon."""

    def __init__(self, raw: bytes) -> None:
        self._raw, self._at = raw, 0

    def byte(self) -> int:
        if self._at >= len(self._raw):
            raise ValueError
        self._at += 1
        return self._raw[self._at - 1]

    def field(self) -> tuple[int, bytes]:
        """Return type and data of the next field; of the end no data."""
        kind = self.byte()
        if kind == _END:
            return kind, b""
        size = shift = 0
        while True:
            byte = self.byte()
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:  # noqa: PLR2004  the last byte of a number
                break
            if shift > 14:  # noqa: PLR2004  larger than any token
                raise ValueError
        data = self._raw[self._at : self._at + size]
        if len(data) < size:
            raise ValueError
        self._at += size
        return kind, data

    def section(self) -> dict[int, bytes]:
        """Return the fields up to the next end, which rise by type."""
        found: dict[int, bytes] = {}
        while True:
            kind, data = self.field()
            if kind == _END:
                return found
            if found and kind <= max(found):
                raise ValueError
            found[kind] = data

    def at_end(self) -> bool:
        return self._at == len(self._raw)


def parse_token(text: str) -> Token:
    """Return the parts of a token; Unauthenticated if it is none. Whether it is genuine only its key can tell."""
    try:
        return _parse(text)
    except (ValueError, KeyError, binascii.Error):
        raise Unauthenticated("this is no token of memoryd; get a new one") from None


def _parse(text: str) -> Token:
    """Return the parts of a token; ValueError or KeyError if it is none."""
    if not text.isascii() or len(text) > limits.MAX_TOKEN_BYTES:
        raise ValueError
    reader = _Reader(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    if reader.byte() != _VERSION:
        raise ValueError
    head = reader.section()
    caveats: list[str] = []
    while section := reader.section():
        if set(section) != {_IDENTIFIER} or len(caveats) == limits.MAX_TOKEN_CAVEATS:
            raise ValueError  # a caveat of a third party is none that we know
        caveats.append(section[_IDENTIFIER].decode())
    kind, signature = reader.field()
    if kind != _SIGNATURE or len(signature) != _SIGNATURE_BYTES or not reader.at_end():
        raise ValueError
    version, key_id, grant_id, token_id = head[_IDENTIFIER].decode().split(":")
    if version != "1" or set(head) - {_LOCATION, _IDENTIFIER}:
        raise ValueError
    return Token(key_id, grant_id, token_id, tuple(caveats), signature)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caveats:
    """How a token is narrowed; None and empty: not in this way."""

    permissions: frozenset[Permission] | None = None
    chat_ids: frozenset[str] | None = None
    """The chats that may still be named; an empty set: none."""
    expire_time: datetime | None = None
    audience: str = ""
    """The id of the only store that it counts for."""
    via: str = ""
    """The only door that it counts on: `shared`, `tcp`, or the grant of a sandbox's socket."""

    def texts(self) -> tuple[str, ...]:
        """Return the caveats to add, one a field that is set."""
        held: dict[str, object] = {}
        if self.permissions is not None:
            held["permissions"] = permission_names(self.permissions)
        if self.chat_ids is not None:
            held["chat_ids"] = sorted(check_id(chat_id, "chat_ids") for chat_id in self.chat_ids)
        if self.expire_time is not None:
            held["expire_time"] = self.expire_time.astimezone(UTC).isoformat()
        if self.audience:
            held["audience"] = self.audience
        if self.via:
            held["via"] = self.via
        return tuple(json.dumps({name: value}, ensure_ascii=False) for name, value in held.items())

    @classmethod
    def read(cls, texts: Iterable[str]) -> list[Caveats]:
        """Return one value a caveat (all must hold); Unauthenticated for one that is not known."""
        return [cls._of(text) for text in texts]

    @classmethod
    def _of(cls, text: str) -> Caveats:
        try:
            ((name, value),) = json.loads(text).items()
            if name == "permissions":
                return cls(permissions=check_permissions(_strings(value)) if value else frozenset())
            if name == "chat_ids":
                return cls(chat_ids=frozenset(_strings(value)))
            if name == "expire_time":
                return cls(expire_time=check_time(datetime.fromisoformat(value), name))
            if name in {"audience", "via"} and isinstance(value, str) and value:
                return cls(**{name: value})  # type: ignore[arg-type]  # one of the two texts
        except (ValueError, TypeError, AttributeError, InvalidArgument, RecursionError):
            pass  # said below, as of every caveat that is not known
        raise Unauthenticated("the token has a caveat that this memoryd does not know; get a new one")


def _strings(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError
    return value
