"""
Chains that only the holder of an identity of age can read.

Each chain has a key of its own. Its header holds that key as a file of age (age-encryption.org/v1), for the recipients
that were named; the parts of the chain are encrypted with it by AES-SIV (RFC 5297). That is deterministic: a block that
has not changed looks the same, so that changes are found without reading what is stored, and the digests in the
manifest are of what is stored, so that it is checked without a key. Who reads the folder sees sizes, times and which
blocks change.

The host keeps the key of the chain that it writes in a file next to the database, to go on with it after a restart
and to prove it: who can read that file can read the database itself.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memoryd.errors import StartupError
from memoryd.store.durable import write_file
from memoryd.store.lines import Line
from memoryd.store.refusal import StoreRefused

__all__ = ["OVERHEAD", "WRAPPED", "Cipher", "Encryption", "Identity", "NotForUs", "read_identity", "read_recipients"]

KEY_BYTES = 64
"""Of AES-256-SIV: one half for the authentication, one to encrypt (RFC 5297, section 2.2)."""
OVERHEAD = 16
"""Bytes by which an encrypted part is longer: the synthetic IV."""
WRAPPED, RECIPIENTS = "key", "recipients"
"""Fields of a chain's header."""


class NotForUs(StoreRefused):
    """What was encrypted cannot be read with what was given."""


class Cipher:
    """Encrypts the parts of one chain."""

    def __init__(self, key: bytes) -> None:
        """Take the key of a chain, of 64 bytes; ValueError where it has another length."""
        aead = _library("cryptography.hazmat.primitives.ciphers.aead")
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, and this one {len(key)}")
        self.key = key
        self._siv = aead.AESSIV(key)

    def sealed(self, data: bytes, place: str) -> bytes:
        """Return a part of the chain as it is stored; it can only be read back as of that place."""
        return bytes(self._siv.encrypt(data, [place.encode()]))

    def opened(self, data: bytes, place: str) -> bytes:
        """Return a part as it was; ValueError where it is not what was stored at that place."""
        from cryptography.exceptions import InvalidTag

        try:
            return bytes(self._siv.decrypt(data, [place.encode()]))
        except InvalidTag:
            raise ValueError(place) from None


@dataclass(frozen=True, slots=True)
class Encryption:
    """Who may open new chains, and where the key of the one that is written is kept."""

    recipients: Sequence[str]
    kept: Path
    random_bytes: Callable[[int], bytes] = field(repr=False)

    def begin(self) -> tuple[Cipher, Line]:
        """Make the key of a new chain, and keep it; return it, and what the header of the chain says of it. OSError."""
        cipher = Cipher(self.random_bytes(KEY_BYTES))
        wrapped = self.wrap(cipher.key)
        header = {WRAPPED: base64.b64encode(wrapped).decode(), RECIPIENTS: sorted(self.recipients)}
        write_file(self.kept, json.dumps({WRAPPED: header[WRAPPED], "plain": cipher.key.hex()}).encode())
        return cipher, header

    def known(self, header: Line) -> Cipher | None:
        """Return the key of a chain, if it is the one that is kept and it has these recipients; else None."""
        if header.get(RECIPIENTS) != sorted(self.recipients):
            return None
        try:
            kept = json.loads(self.kept.read_bytes())
            return Cipher(bytes.fromhex(kept["plain"])) if kept[WRAPPED] == header.get(WRAPPED) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # a new chain is begun, and with it this file

    def wrap(self, data: bytes) -> bytes:
        """Return some bytes as a file of age for the recipients."""
        return bytes(_library("pyrage").encrypt(data, [_recipient(one) for one in self.recipients]))


class Identity:
    """Reads what was encrypted for one of the recipients."""

    def __init__(self, identities: Sequence[Any], path: Path) -> None:
        self._identities, self._path = identities, path

    def unwrap(self, wrapped: bytes, name: Path) -> bytes:
        """Return what a file of age holds; NotForUs where none of the identities opens it."""
        try:
            return bytes(_library("pyrage").decrypt(wrapped, self._identities))
        except _library("pyrage").DecryptError:
            raise NotForUs(f"no identity in {self._path} opens {name}: it was encrypted for others") from None

    def cipher(self, header: Line, name: Path) -> Cipher:
        """Return the key of a chain; NotForUs."""
        try:
            return Cipher(self.unwrap(base64.b64decode(header[WRAPPED], validate=True), name))
        except (binascii.Error, ValueError, TypeError):
            raise NotForUs(f"{name} holds no key that this memoryd knows") from None


def read_recipients(path: Path) -> tuple[str, ...]:
    """Return the recipients in a file as of `age -R`: one a line, `age1…` or `ssh-…`; StartupError."""
    recipients = tuple(_lines(path))
    for number, one in enumerate(recipients, 1):
        _recipient(one, f"{path}, recipient {number}")
    if not recipients:
        raise StartupError(f"{path} names no recipient; age-keygen makes one: age1…")
    return recipients


def read_identity(path: Path) -> Identity:
    """Return the identities in a file as of `age -i`: of age-keygen, or a private key of SSH; StartupError."""
    library = _library("pyrage")
    lines = _lines(path)
    try:
        if any(line.startswith("-----BEGIN") for line in lines):
            return Identity([library.ssh.Identity.from_buffer(path.read_bytes())], path)
        identities = [library.x25519.Identity.from_str(line) for line in lines]
    except library.IdentityError:
        identities = []
    if not identities:
        raise StartupError(
            f"{path} holds no identity that memoryd reads: AGE-SECRET-KEY-1…, or a private key of SSH without a"
            " passphrase"
        )
    return Identity(identities, path)


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StartupError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise StartupError(f"{path} is no text; recipients and identities are, as age writes them") from None
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _recipient(text: str, name: str = "") -> Any:
    library = _library("pyrage")
    try:
        if text.startswith("ssh-"):
            return library.ssh.Recipient.from_str(text)
        return library.x25519.Recipient.from_str(text)
    except library.RecipientError:
        told = "a private key; name its public one" if text.startswith("AGE-SECRET-KEY") else "age1… or ssh-…"
        raise StartupError(f"{name} is not what memoryd encrypts to ({told})") from None


def _library(name: str) -> Any:
    """Import a package of the extra `encryption`; StartupError where it is not there."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise StartupError("encrypted backups need the extra encryption: pip install 'memoryd[encryption]'") from None
