"""How what is stored is told from what was written."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["digest_of", "with_digests"]

AHEAD = 8  # parts, of 256 KiB each: what a disk gives while one is hashed


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of some bytes in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def with_digests(parts: Iterable[bytes]) -> Iterator[tuple[bytes, str]]:
    """Yield each part with its SHA-256; those of the next parts are made in a thread, while this one is used."""
    waiting: deque[tuple[bytes, Future[str]]] = deque()
    with ThreadPoolExecutor(1) as thread:
        for part in parts:
            waiting.append((part, thread.submit(digest_of, part)))
            if len(waiting) > AHEAD:
                first, digest = waiting.popleft()
                yield first, digest.result()
        for part, digest in waiting:
            yield part, digest.result()
