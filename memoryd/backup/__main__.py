"""
Restore a state of a chain as a trial, in a process of its own: its memory goes back, and it makes way for calls.

`python -m memoryd.backup CHAIN TRANSACTION MEMORY_LIMIT_BYTES WHERE`, with the key of a chain that is encrypted on
standard input; what is wrong is said in one line on standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from memoryd.backup.chain import Chain
from memoryd.backup.encryption import Cipher
from memoryd.backup.folder import point_of, prove
from memoryd.store.refusal import StoreRefused

NICE = 19


def main(arguments: Sequence[str]) -> int:
    """Do it, and return the exit code: 0, or that of the refusal."""
    folder, transaction, limit, where = arguments
    os.nice(NICE)
    os.umask(0o077)
    try:
        chain = Chain.read(Path(folder))
        if chain.is_encrypted:
            chain.cipher = Cipher(sys.stdin.buffer.read())
        _, point = point_of([chain], transaction=int(transaction))
        prove(chain, point, memory_limit_bytes=int(limit), where=Path(where))
    except StoreRefused as refusal:
        sys.stderr.write(f"{refusal}\n")
        return refusal.exit_code
    except OSError as error:
        sys.stderr.write(f"{error.filename or where}: {error.strerror}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
