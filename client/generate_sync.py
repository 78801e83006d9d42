"""
Write the plain client from the one for asyncio, so that the two cannot differ.

    python client/generate_sync.py            writes client/memory_client/client.py
    python client/generate_sync.py --check    fails if that file is stale
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent / "memory_client"
SOURCE, TARGET = HERE / "aio.py", HERE / "client.py"
HEADER = "# Generated from aio.py by `make client`: change that file instead.\n"
REPLACED = (
    (r'"""The client for asyncio; `client` is generated from it."""', '"""The client for plain code."""'),
    (r"^import asyncio\n", ""),
    (r"\basync (def|with|for) ", r"\1 "),
    (r"\bawait ", ""),
    (r"\bAsyncMemoryClient\b", "MemoryClient"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\bgrpc\.aio\.", "grpc."),
)


def generated() -> str:
    """Return the text of the plain client."""
    text = SOURCE.read_text(encoding="utf-8")
    for pattern, replacement in REPLACED:
        text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        if not count:
            raise SystemExit(f"{SOURCE.name} no longer has {pattern!r}; mend {Path(__file__).name}")
    return HEADER + text


def main() -> int:
    """Write the file, or check it; return the exit code."""
    if "--check" in sys.argv[1:]:
        if TARGET.read_text(encoding="utf-8") == generated():
            return 0
        print(f"{TARGET} is stale: run make client", file=sys.stderr)
        return 1
    TARGET.write_text(generated(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
