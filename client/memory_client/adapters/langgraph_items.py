"""An item of a LangGraph store as a note: its path, and what the note holds. It takes no library."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from memory_client.adapters.texts import clean, exact_json
from memoryd.model import limits

__all__ = ["HASHED", "ROOT", "item_content", "item_path", "part_name"]

ROOT = "langgraph"
"""Where items stand among a user's notes."""
NAME_BYTES = 64  # of a part of a path; a longer one is named by its hash
HASHED = "~"


def item_path(root: str, namespace: tuple[str, ...], key: str) -> str:
    """Return the path of an item; ValueError where its namespace has too many parts."""
    path = "/".join((root, *map(part_name, namespace), part_name(key)))
    if len(path.encode()) > limits.MAX_PATH_BYTES:
        raise ValueError(f"the namespace has too many parts: its path has more than {limits.MAX_PATH_BYTES} bytes")
    return path


def part_name(part: str) -> str:
    """Return a part of a path for any text: percent-encoded, or its hash where that is long."""
    encoded = quote(part, safe=" ", errors="surrogatepass").replace("~", "%7E")
    if not encoded.strip(". ") or len(encoded) > NAME_BYTES:
        digest = hashlib.blake2b(part.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        return HASHED + "-".join(digest[at : at + 4] for at in range(0, len(digest), 4))  # no token's shape
    return encoded.replace(" ", "%20")


def item_content(namespace: tuple[str, ...], key: str, value: Mapping[str, Any], searched: str) -> dict[str, Any]:
    """Return the JSON of a note: what a search looks at, and the item as a text, so that no letter of it is changed."""
    item = exact_json({"namespace": namespace, "key": key, "value": value})
    return {"text": clean(searched, limits.MAX_NOTE_SEARCHED), "item": item}
