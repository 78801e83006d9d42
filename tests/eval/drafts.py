"""What the loader of the data sets gives, as what memoryd is told."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

__all__ = ["cut", "happened", "words_of"]

_DATE = re.compile(r"^\[[^\]]*\] ")


def _time(text: str) -> datetime | None:
    for form in ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%B-%d-%Y", "%B %d, %Y"):
        try:
            return datetime.strptime(text[:19] if form.startswith("%Y") else text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def cut(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore") if len(text.encode()) > most else text


def happened(item: Any) -> datetime | None:
    """Return the date of a turn or fact."""
    return _time(str(item.meta.get("date") or ""))


def words_of(item: Any) -> str:
    """Return what was said, without the date and the speaker that the loader wrote in front of it."""
    text, speaker = item.text, str(item.meta.get("speaker") or "")
    if happened(item) is not None:
        text = _DATE.sub("", text, count=1)
    return str(text.removeprefix(f"{speaker}: ") if speaker else text)
