"""
Where a page ended, as a token: opaque, signed by the store, and bound to the query that it belongs to.

It grants nothing: every call with it is authenticated and authorised.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from memoryd.errors import PageTokenInvalid
from memoryd.model.caller import Caller
from memoryd.model.times import from_us, to_us
from memoryd.store.memories import Cursor

__all__ = ["bound_to", "number_after", "page_token_after", "read_number", "read_page_token"]

_MAC_BYTES = 16
_TIME_BYTES = 8


def bound_to(what: str, caller: Caller, *asked: object) -> bytes:
    """Return what a page token is bound to: who asks, and what for."""
    named = (what, caller.agent_id, caller.user_id, caller.chat_id, asked)
    return hashlib.blake2b(repr(named).encode(), digest_size=16).digest()


def _mac(body: bytes, secret: bytes, bound: bytes) -> bytes:
    return hmac.digest(secret, bound + body, "sha256")[:_MAC_BYTES]


def page_token_after(last: Cursor, secret: bytes, bound: bytes) -> str:
    """Return the token of the page after `last`, of the query whose digest is `bound`."""
    body = to_us(last.create_time).to_bytes(_TIME_BYTES, "big", signed=True) + last.id.encode()
    return base64.urlsafe_b64encode(body + _mac(body, secret, bound)).decode().rstrip("=")


def read_page_token(token: str, secret: bytes, bound: bytes) -> Cursor:
    """Return where the page before ended; PageTokenInvalid if the token is not one of this query."""
    try:
        raw = base64.b64decode(token.encode() + b"=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    body, mac = raw[:-_MAC_BYTES], raw[-_MAC_BYTES:]
    if len(body) <= _TIME_BYTES or not hmac.compare_digest(mac, _mac(body, secret, bound)):
        raise PageTokenInvalid(
            "page_token is not one of this query's; repeat the query's other fields, or list from the start",
            field="page_token",
        )
    time = int.from_bytes(body[:_TIME_BYTES], "big", signed=True)
    return Cursor(from_us(time), body[_TIME_BYTES:].decode())


def number_after(count: int, secret: bytes, bound: bytes) -> str:
    """Return the token of the page after so many, where what is paged has no time of its own."""
    return page_token_after(Cursor(from_us(count), _COUNT), secret, bound)


def read_number(token: str, secret: bytes, bound: bytes) -> int:
    """Return after how many the page before ended; PageTokenInvalid if the token is not one of this query."""
    return to_us(read_page_token(token, secret, bound).create_time)


_COUNT = "count"
