"""Mutations of bytes from a seed, for where atheris is not installed; it finds less, as it sees no coverage."""

from __future__ import annotations

import random
from collections.abc import Sequence

__all__ = ["mutated"]

ODD = (
    *(b"\x00", b"\xff", b"\x80", b"\xff" * 9, b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x80\xae", b"\xcc\x88" * 40),
    *(b"-1", b"0", b"9" * 40, b"1e999", b"NaN", b"null", b"true", b'""', b"[]", b"{}", b"[" * 200, b'{"a":' * 50),
    *(b"\r\n", b"\n\n", b" " * 300, b"\\ud800", b"2026-02-30", b"0001-01-01T00:00:00Z", b"'" * 9, b"[agents.x]\n"),
)


def mutated(seeds: Sequence[bytes], rng: random.Random) -> bytes:
    """Return one of the seeds after one to six changes: bits, cuts, repetitions, odd pieces, pieces of another seed."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(data) + 1)
        to = min(len(data), at + rng.choice([1, 1, 2, 4, 16, 64]))
        match rng.randrange(6):
            case 0 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                del data[at:to]
            case 2:
                data[at:at] = data[at:to] * rng.choice([1, 2, 30])
            case 3:
                data[at:to] = rng.choice(ODD)
            case 4:
                other = rng.choice(seeds)
                begin = rng.randrange(len(other) + 1)
                data[at:to] = other[begin : begin + rng.randint(1, 40)]
            case _:
                data[at:at] = rng.randbytes(rng.randint(1, 8))
    return bytes(data[:60_000])
