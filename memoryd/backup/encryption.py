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

from memoryd.backup.refusal import BackupDamaged, NotForUs
from memoryd.errors import StartupError
from memoryd.store.durable import write_file
from memoryd.store.lines import Line

__all__ = [
    "OF_CHAIN",
    "OVERHEAD",
    "WRAPPED",
    "Cipher",
    "Encryption",
    "Identity",
    "ledger_key",
    "read_identities",
    "read_recipients",
]

KEY_BYTES = 64
"""Of AES-256-SIV: one half for the authentication, one to encrypt (RFC 5297, section 2.2)."""
OVERHEAD = 16
"""Bytes by which an encrypted part is longer: the synthetic IV."""
WRAPPED, RECIPIENTS, LEDGER_KEY = "key", "recipients", "ledger_key"
OF_CHAIN = (WRAPPED, RECIPIENTS, LEDGER_KEY)
"""Fields of a header that are of its own chain."""
LEDGER_PLACE = "the key of the ledger"
NO_KEY_FITS = "No matching keys found"
"""How pyrage says that a file is for others; all else that it says is of damage."""


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

    def begin(self, key_of_ledger: bytes) -> tuple[Cipher, Line]:
        """
        Make the key of a new chain, and keep it; return it, and what the header of the chain says of it. OSError.

        The header holds the file of the ledger's key too: who opens the chain can tell what was purged since.
        """
        cipher = Cipher(self.random_bytes(KEY_BYTES))
        header = {
            WRAPPED: base64.b64encode(self._wrapped(cipher.key)).decode(),
            RECIPIENTS: sorted(self.recipients),
            LEDGER_KEY: base64.b64encode(cipher.sealed(key_of_ledger, LEDGER_PLACE)).decode(),
        }
        write_file(self.kept, json.dumps({WRAPPED: header[WRAPPED], "plain": cipher.key.hex()}).encode())
        return cipher, header

    def known(self, header: Line) -> Cipher | None:
        """Return the key of a chain, if it is the one that is kept and it has these recipients; else None."""
        if header.get(RECIPIENTS) != sorted(self.recipients):
            return None
        try:
            self.kept.chmod(0o600)
            kept = json.loads(self.kept.read_bytes())
            return Cipher(bytes.fromhex(kept["plain"])) if kept[WRAPPED] == header.get(WRAPPED) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # a new chain is begun, and with it this file

    def _wrapped(self, data: bytes) -> bytes:
        return bytes(_library("pyrage").encrypt(data, [_recipient(one) for one in self.recipients]))


class Identity:
    """Reads what was encrypted for one of the recipients."""

    def __init__(self, identities: Sequence[Any], name: str) -> None:
        """Take identities of pyrage, and what to call them."""
        self._identities, self._name = identities, name

    def cipher(self, header: Line, name: Path) -> Cipher:
        """Return the key of a chain; NotForUs where none of the identities opens it, BackupDamaged."""
        library = _library("pyrage")
        try:
            return Cipher(library.decrypt(base64.b64decode(header[WRAPPED], validate=True), self._identities))
        except library.DecryptError as error:
            if NO_KEY_FITS in str(error):
                raise NotForUs(f"no identity in {self._name} opens {name}: it was encrypted for others") from None
        except (binascii.Error, ValueError):
            pass  # told below, as a key that cannot be read
        raise BackupDamaged(f"{name} is damaged: its key is not what was written")


def ledger_key(header: Line, cipher: Cipher, name: Path) -> bytes:
    """Return the file of the ledger's key that a header holds; BackupDamaged."""
    try:
        return cipher.opened(base64.b64decode(header[LEDGER_KEY], validate=True), LEDGER_PLACE)
    except (binascii.Error, KeyError, ValueError):
        raise BackupDamaged(f"{name} is damaged: its key of the ledger is not what was written") from None


def read_recipients(path: Path) -> tuple[str, ...]:
    """Return the recipients in a file as of `age -R`: one a line, `age1…` or `ssh-…`; StartupError."""
    recipients = tuple(_lines(path))
    for number, one in enumerate(recipients, 1):
        _recipient(one, f"{path}, recipient {number}")
    if not recipients:
        raise StartupError(f"{path} names no recipient; age-keygen makes one: age1…")
    return recipients


def read_identities(paths: Sequence[Path]) -> Identity:
    """Return the identities in files as of `age -i`: of age-keygen, or private keys of SSH; StartupError."""
    identities = [identity for path in paths for identity in _identities(path)]
    return Identity(identities, ", ".join(map(str, paths)))


def _identities(path: Path) -> list[Any]:
    library = _library("pyrage")
    lines = _lines(path)
    try:
        if any(line.startswith("-----BEGIN") for line in lines):
            return [library.ssh.Identity.from_buffer("".join(f"{line}\n" for line in lines).encode())]
        identities = [library.x25519.Identity.from_str(line) for line in lines]
    except library.IdentityError:
        identities = []
    if not identities:
        raise StartupError(
            f"{path} holds no identity that memoryd reads: AGE-SECRET-KEY-1…, or a private key of SSH without a"
            " passphrase"
        )
    return identities


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
