"""Reading the audit log: its files in order, its records, and what it knows of one id."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

__all__ = ["MOST_TAIL", "REFUSED", "Sighting", "audit_files", "last_records", "read_audit", "sighting_of"]

REFUSED = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "UNIMPLEMENTED"})
"""The outcomes of calls that were not let through."""
BLOCK = 1 << 16  # bytes that are read from the end of a file at once
MOST_TAIL = 8 << 20  # bytes that are looked through for the last records: some 30,000


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a log knows of an id: when it begins, when it first names the id, when it was erased. None: not known."""

    log_start_time: datetime | None = None
    seen_time: datetime | None = None
    purge_time: datetime | None = None


def sighting_of(path: Path, item_id: str) -> Sighting:
    """Return what the files of a log say of an id, by the calls that touched it and went well."""
    seen = purged = None
    named = item_id.encode()
    begun = next((time for record in read_audit(path) if (time := _time_of(record)) is not None), None)
    for old in audit_files(path):
        with contextlib.suppress(FileNotFoundError), old.open("rb") as file:  # it may go while others are read
            for record in _records(file, lambda line: named in line):
                erased, time = item_id in _ids_of(record, "purged_ids"), _time_of(record)
                if time and record.get("outcome") == "OK" and (erased or item_id in _ids_of(record, "ids")):
                    seen = seen or time
                    purged = time if erased else purged
    return Sighting(begun, seen, purged)


def _time_of(record: dict[str, Any]) -> datetime | None:
    try:
        return datetime.fromisoformat(record["time"])
    except (KeyError, TypeError, ValueError):
        return None  # no line that memoryd wrote


def _ids_of(record: dict[str, Any], name: str) -> list[str]:
    ids = record.get(name)
    return ids if isinstance(ids, list) else []


def audit_files(path: Path) -> list[Path]:
    """Return the files of a log, oldest first; the last is the one that is appended to."""
    old = sorted(path.parent.glob(f"{path.stem}-*Z{path.suffix}"))
    return [*old, *([path] if path.exists() else [])]


def read_audit(path: Path, *, follow: bool = False, pause_s: float = 0.2) -> Iterator[dict[str, Any]]:
    """Yield the records of a log, oldest first; with `follow` go on as it grows and rotates, without an end."""
    current, handle = None, _opened(path)  # first, so that what is put aside meanwhile is among the old ones
    try:
        current = os.fstat(handle.fileno()).st_ino if handle is not None else None
        for old in audit_files(path):
            with contextlib.suppress(FileNotFoundError), old.open("rb") as file:  # it may go while others are read
                if os.fstat(file.fileno()).st_ino != current:
                    yield from _records(file)
        while True:
            if handle is None:
                handle = _opened(path)
            if handle is not None:
                yield from _records(handle)
                if not follow:
                    return
                if _is_replaced(path, handle.fileno()):
                    yield from _records(handle)  # what was written before it was put aside
                    handle.close()
                    handle = None
                    continue
            elif not follow:
                return
            time.sleep(pause_s)
    finally:
        if handle is not None:
            handle.close()


def _opened(path: Path) -> Any:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None


def _is_replaced(path: Path, handle: int) -> bool:
    try:
        return path.stat().st_ino != os.fstat(handle).st_ino
    except FileNotFoundError:
        return False


def _records(file: Any, wanted: Callable[[bytes], bool] = lambda _: True) -> Iterator[dict[str, Any]]:
    while True:
        at = file.tell()
        line = file.readline()
        if not line.endswith(b"\n"):
            file.seek(at)  # it is still being written
            return
        if not wanted(line):
            continue
        record = _record(line)
        if record is not None:
            yield record


def last_records(
    path: Path, limit: int, matches: Callable[[dict[str, Any]], bool], *, most_bytes: int = MOST_TAIL
) -> list[dict[str, Any]]:
    """
    Return the last records of a log that a condition lets through, newest first.

    The files are read from the end, and no more than so many bytes of them. OSError where one cannot be read.
    """
    found: list[dict[str, Any]] = []
    left = most_bytes
    for file_path in reversed(audit_files(path)):
        with contextlib.suppress(FileNotFoundError), file_path.open("rb") as file:  # it may go meanwhile
            size = file.seek(0, os.SEEK_END)
            at, rest = size, b""
            while at > 0 and left > 0 and len(found) < limit:
                length = min(BLOCK, at, left)
                at, left = at - length, left - length
                file.seek(at)
                *whole, last = reversed((file.read(length) + rest).split(b"\n"))
                rest = last  # it may begin in the block before
                found += _read_back(whole if at else [*whole, last], matches, limit - len(found))
        if len(found) >= limit or left <= 0:
            break
    return found


def _read_back(lines: Iterable[bytes], matches: Callable[[dict[str, Any]], bool], most: int) -> list[dict[str, Any]]:
    records = (record for line in lines if (record := _record(line)) is not None)
    return list(islice((record for record in records if matches(record)), most))


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None  # cut off by a full disk or a crash; the next line is whole again
    return record if isinstance(record, dict) else None
