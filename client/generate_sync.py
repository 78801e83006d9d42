"""
Write the plain client from the one for asyncio, so that the two cannot differ.

    python client/generate_sync.py            writes client.py and its parts in client/memory_client
    python client/generate_sync.py --check    fails if one of them is stale
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent / "memory_client"
FILES = {
    "aio.py": "client.py",
    "aio_conversations.py": "conversations.py",
    "aio_operations.py": "operations.py",
    "aio_notes.py": "notes.py",
}
HEADER = "# Generated from {} by `make client`: change that file instead.\n"
REPLACED = (
    (r'"""The client for asyncio; `client` is generated from it."""', '"""The client for plain code."""'),
    (
        r'"""The client\'s methods for conversations; `conversations` is generated from it."""',
        '"""The plain client\'s methods for conversations."""',
    ),
    (
        r'"""The client\'s methods for operators; `operations` is generated from it."""',
        '"""The plain client\'s methods for operators."""',
    ),
    (
        r'"""The client\'s methods for notes; `notes` is generated from it."""',
        '"""The plain client\'s methods for notes."""',
    ),
    (r"^import asyncio\n", ""),
    (r"\basync (def|with|for) ", r"\1 "),
    (r"\bawait ", ""),
    (r"\bAsyncMemoryClient\b", "MemoryClient"),
    (r"\bAsyncConversations\b", "Conversations"),
    (r"\bAsyncConversation\b", "Conversation"),
    (r"\bAsyncOperations\b", "Operations"),
    (r"\bAsyncNotes\b", "Notes"),
    (r"\baio_notes\b", "notes"),
    (r"\baio_operations\b", "operations"),
    (r"\baio_conversations\b", "conversations"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\bgrpc\.aio\.", "grpc."),
)


def generated() -> dict[Path, str]:
    """Return the texts of the plain client's files."""
    texts = {source: (HERE / source).read_text(encoding="utf-8") for source in FILES}
    for pattern, replacement in REPLACED:
        found = 0
        for source, text in texts.items():
            texts[source], count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
            found += count
        if not found:
            raise SystemExit(f"no file has {pattern!r} any longer; mend {Path(__file__).name}")
    return {HERE / FILES[source]: HEADER.format(source) + text for source, text in texts.items()}


def main() -> int:
    """Write the files, or check them; return the exit code."""
    for target, text in generated().items():
        if "--check" not in sys.argv[1:]:
            target.write_text(text, encoding="utf-8")
        elif not target.exists() or target.read_text(encoding="utf-8") != text:
            print(f"{target} is stale: run make client", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
