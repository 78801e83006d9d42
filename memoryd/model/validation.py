"""
What may be said: the checks that every value passes once, where it is made.

Each returns the value in the form that is kept, or raises InvalidArgument or LimitExceeded with the field's name.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from memoryd.errors import InvalidArgument, LimitExceeded
from memoryd.model import limits

__all__ = [
    "check_batch",
    "check_count",
    "check_id",
    "check_ids",
    "check_metadata",
    "check_share",
    "check_subjects",
    "check_tags",
    "check_text",
    "check_time",
    "check_written_out",
    "fold",
    "metadata_text",
    "stream_safe",
    "text_digest",
]

EARLIEST = datetime(1, 1, 2, tzinfo=UTC)  # a day inside what a timestamp can hold, so that zones cannot overflow
LATEST = datetime(9999, 12, 30, tzinfo=UTC)
MOST_NUMBER = 1 << 53  # what every reader of JSON takes as it is
MOST_MARKS = 30  # of the Stream-Safe Text Format, Unicode Standard Annex 15
FIRST_FAR = "\U00010000"  # the first character outside of the Basic Multilingual Plane
LAST_MARK = 0x1E94A  # the last character of Unicode 15 with a combining class
_VISIBLE = frozenset("LNPS")  # letters, numbers, punctuation, symbols: what is left is spaces, marks and controls


@cache
def _runs_of_marks() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """
    Return what finds more marks in a row than may be: a quick look, and an exact one at the runs that it finds.

    The quick one takes every character outside of the Basic Multilingual Plane for a mark: `re` compares a character
    with each of the 205 marks there in turn, which made 309 ns of a letter of Arabic instead of 8.
    """
    marks = [chr(code) for code in range(0x300, LAST_MARK + 1) if unicodedata.combining(chr(code))]
    near = "".join(mark for mark in marks if mark < FIRST_FAR)
    many = f"{{{MOST_MARKS + 1},}}"
    return re.compile(f"[{near}{FIRST_FAR}-{chr(LAST_MARK)}]{many}"), re.compile(f"[{''.join(marks)}]{many}")


def _has_too_many_marks(text: str) -> bool:
    if text.isascii():
        return False
    quick, exact = _runs_of_marks()
    return any(exact.search(run[0]) for run in quick.finditer(text))


def check_text(value: str, name: str, *, limit: int, required: bool = False) -> str:
    """Return value in NFC; InvalidArgument if it is no storable text, LimitExceeded above `limit` bytes of UTF-8."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} must be text, not {type(value).__name__}", field=name)
    if len(value) > 2 * limit:  # before any work: NFC never shrinks text below a third of its bytes
        raise LimitExceeded(
            f"{name} has {len(value)} characters, more than {limit} bytes, the limit", field=name, limit=name
        )
    if _has_too_many_marks(value):  # NFC sorts them in the square of their number
        raise InvalidArgument(f"{name} has more than {MOST_MARKS} combining marks in a row", field=name)
    text = value if value.isascii() else unicodedata.normalize("NFC", value)
    if "\0" in text:
        raise InvalidArgument(f"{name} contains a NUL character; remove it", field=name)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidArgument(
            f"{name} contains a lone surrogate, which is not Unicode text; decode it properly", field=name
        ) from None
    if size > limit:
        raise LimitExceeded(f"{name} is {size} bytes; the limit is {limit}", field=name, limit=name)
    if required and not any(unicodedata.category(letter)[0] in _VISIBLE for letter in text):
        raise InvalidArgument(f"{name} is empty; say something", field=name)
    return text


def check_written_out(text: str, name: str) -> None:
    """Raise InvalidArgument where JSON has, written as numbers of letters, more marks in a row than a text may have."""
    if "\\u" not in text:
        return
    try:
        plain = json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return  # no JSON: the numbers stand for nothing
    if _has_too_many_marks(plain):
        raise InvalidArgument(f"{name} has more than {MOST_MARKS} combining marks in a row", field=name)


def check_id(value: str, name: str) -> str:
    """Return an identifier of the caller's: at most 128 bytes, printable, without outer spaces; empty is fine."""
    text = check_text(value, name, limit=limits.MAX_ID_BYTES)
    if text and (not text.isprintable() or text != text.strip()):
        raise InvalidArgument(f"{name} must be printable and must not begin or end with a space", field=name)
    return text


def check_ids(ids: Sequence[str], name: str, *, limit: int = limits.MAX_EXCLUDED) -> tuple[str, ...]:
    """Return ids of the caller's, each once, without empty ones; LimitExceeded above limit."""
    if isinstance(ids, str):
        raise InvalidArgument(f"{name} must be a list of ids, not one text", field=name)
    if len(ids) > limit:
        raise LimitExceeded(f"{name} has {len(ids)} entries; the limit is {limit}", field=name, limit=name)
    return tuple(dict.fromkeys(one for n, one in enumerate(ids) if check_id(one, f"{name}[{n}]")))


def check_count(value: int, name: str, *, default: int, limit: int) -> int:
    """Return value, or default for zero; InvalidArgument below zero, LimitExceeded above limit."""
    if value < 0:
        least = f"1, or 0 for {default}" if default else "0"
        raise InvalidArgument(f"{name} is {value}; it must be at least {least}", field=name)
    if value > limit:
        raise LimitExceeded(f"{name} is {value}; the limit is {limit}", field=name, limit=name)
    return value or default


def check_batch(count: int, name: str, verb: str) -> None:
    """Check how many items a call has; InvalidArgument for none, which says to `verb` one, LimitExceeded above 100."""
    if not count:
        raise InvalidArgument(f"{name} is empty; {verb} at least one", field=name)
    if count > limits.MAX_BATCH:
        raise LimitExceeded(f"{name} has {count} items; the limit is {limits.MAX_BATCH}", field=name, limit=name)


def check_share(value: float, name: str) -> float:
    """Return value if it lies in 0–1; InvalidArgument otherwise, NaN included."""
    if not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise InvalidArgument(f"{name} is {value}; it must lie between 0 and 1", field=name)
    return value


def check_time(value: datetime | None, name: str) -> datetime | None:
    """Return value in UTC; InvalidArgument without a zone or outside of the years 1–9999."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise InvalidArgument(f"{name} must be a datetime, not {type(value).__name__}", field=name)
    if value.tzinfo is None:
        raise InvalidArgument(f"{name} has no time zone; give one, for example UTC", field=name)
    if not EARLIEST <= value <= LATEST:
        raise InvalidArgument(f"{name} is out of range", field=name)
    return value.astimezone(UTC)


def fold(text: str) -> str:
    """Return text as it is compared where case and spacing do not matter."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", stream_safe(text))
    return " ".join(plain.casefold().split())


def stream_safe(text: str) -> str:
    """Return a text with MOST_MARKS of each longer run of combining marks, so that it is normalised in linear time."""
    quick, exact = _runs_of_marks()
    return quick.sub(lambda run: exact.sub(lambda marks: marks[0][:MOST_MARKS], run[0]), text)


def text_digest(text: str) -> bytes:
    """Return 16 bytes that are equal for statements equal but for case, spacing, width and a final full stop."""
    import hashlib  # 2 to 8 ms, which a command that only searches need not wait for

    folded = fold(text)
    return hashlib.blake2b((folded.rstrip(" .!…。！") or folded).encode(), digest_size=16).digest()


def _check_labels(values: Iterable[str], name: str, *, most: int, limit: int) -> tuple[str, ...]:
    """Return the labels, stripped, each once, in order."""
    if isinstance(values, str | bytes):
        raise InvalidArgument(f"{name} must be a list of texts, not one text", field=name)
    values = tuple(values)
    if len(values) > most:
        raise LimitExceeded(f"{name} has {len(values)} entries; the limit is {most}", field=name, limit=name)
    labels = [check_text(value, f"{name}[{n}]", limit=limit, required=True).strip() for n, value in enumerate(values)]
    return tuple(dict.fromkeys(labels))


def check_subjects(values: Iterable[str], name: str = "subjects") -> tuple[str, ...]:
    """Return subjects, each once; LimitExceeded above 16 of 128 bytes."""
    return _check_labels(values, name, most=limits.MAX_SUBJECTS, limit=limits.MAX_SUBJECT_BYTES)


def check_tags(values: Iterable[str], name: str = "tags") -> tuple[str, ...]:
    """Return tags, each once; LimitExceeded above 32 of 64 bytes."""
    return _check_labels(values, name, most=limits.MAX_TAGS, limit=limits.MAX_TAG_BYTES)


def metadata_text(value: Any) -> str:
    """Return a value of metadata as a text: itself, or its JSON, of equal values the same."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) <= MOST_NUMBER:
        value = int(value)  # 3.0 is 3
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def _check_value(value: Any, name: str) -> Any:
    """Return a value of metadata with its texts in NFC: a text, or another value of JSON."""
    if isinstance(value, str):
        return check_text(value, name, limit=limits.MAX_METADATA_VALUE_BYTES)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) > MOST_NUMBER:
        raise InvalidArgument(f"{name} has a number that is not told apart from its neighbours in JSON", field=name)
    try:
        text = metadata_text(value)
        kept = json.loads(check_text(text, name, limit=limits.MAX_METADATA_VALUE_BYTES))
    except (TypeError, ValueError, RecursionError):
        raise InvalidArgument(f"{name} has a value that cannot be written as JSON", field=name) from None
    check_written_out(text, name)
    if "\\u0000" in text:
        raise InvalidArgument(f"{name} contains a NUL character; remove it", field=name)
    return kept


def check_metadata(values: Mapping[str, Any], name: str = "metadata") -> Mapping[str, Any]:
    """
    Return metadata in NFC, ordered by key: texts, or other values of JSON.

    LimitExceeded above 32 keys of 64 / 1,024 bytes or 8 KiB.
    """
    if not isinstance(values, Mapping):
        raise InvalidArgument(f"{name} must be a mapping of text to values of JSON", field=name)
    if len(values) > limits.MAX_METADATA_KEYS:
        raise LimitExceeded(
            f"{name} has {len(values)} keys; the limit is {limits.MAX_METADATA_KEYS}", field=name, limit=name
        )
    checked = {}
    for key, value in sorted(values.items()):
        known = check_text(key, name, limit=limits.MAX_METADATA_KEY_BYTES, required=True)
        if known in checked:
            raise InvalidArgument(f"{name} has two keys that are the same text in Unicode NFC", field=name)
        checked[known] = _check_value(value, name)
    size = sum(len(key.encode()) + len(metadata_text(value).encode()) for key, value in checked.items())
    if size > limits.MAX_METADATA_BYTES:
        raise LimitExceeded(
            f"{name} is {size} bytes in all; the limit is {limits.MAX_METADATA_BYTES}", field=name, limit=name
        )
    return checked
