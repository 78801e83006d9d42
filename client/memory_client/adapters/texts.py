"""Texts and values of other libraries as memoryd stores them: it takes Unicode text in NFC, and changes what is not."""

from __future__ import annotations

import json
from typing import Any

from memoryd.errors import MemorydError
from memoryd.model.validation import check_text, stream_safe

__all__ = ["clean", "exact_json"]


def exact_json(value: Any) -> str:
    """Return JSON that no store changes: as it reads where that is NFC, else in ASCII; TypeError for no JSON."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        kept = check_text(text, "value", limit=len(text) * 4 + 1)
    except MemorydError:
        return json.dumps(value)
    return text if kept == text else json.dumps(value)


def clean(text: str, most: int) -> str:
    """Return the first characters of a text that can be stored: without NUL, lone surrogates and piles of marks."""
    return stream_safe(text[:most].replace("\0", " ").encode("utf-8", "replace").decode())
