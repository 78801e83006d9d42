"""How what is stored is told from what was written."""

from __future__ import annotations

import hashlib

__all__ = ["digest_of"]


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of some bytes in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
