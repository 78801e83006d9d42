"""The end of the audit log, filtered, and followed as it grows."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response

from memoryd.audit.reading import MOST_TAIL, REFUSED
from memoryd.inspector.view import View

SHOWN = 100
FOLLOW_S = 2  # between two looks
MEMORY_CALLS = frozenset({
    "AddMemory", "BatchAddMemories", "GetMemory", "GetMemoryHistory", "ListMemories", "UpdateMemory",
    "CorrectMemory", "ConfirmMemory", "DeleteMemory", "DeleteMemories", "RestoreMemory", "ResolveConflict",
})  # fmt: skip
"""What touches memories of the user or chat that it names, and nothing else: a search may find notes and messages."""
NAMES = ("rpc", "user_id", "grant_id", "id", "outcome")


def _matches(record: dict[str, Any], asked: dict[str, str]) -> bool:
    outcome, wanted = str(record.get("outcome", "")), asked["outcome"]
    ids = record.get("ids", ())
    return (
        "time" in record
        and (not asked["rpc"] or asked["rpc"].lower() in str(record.get("rpc", "")).lower())
        and (not asked["user_id"] or asked["user_id"] == record.get("user_id"))
        and (not asked["grant_id"] or str(record.get("grant_id", "")).startswith(asked["grant_id"]))
        and (not asked["id"] or any(str(one).startswith(asked["id"]) for one in ids))
        and (not wanted or outcome == wanted or (wanted == "refused" and outcome in REFUSED))
    )


async def _show(view: View) -> Response:
    asked = {name: view.typed(name) for name in NAMES}
    fault = ""
    records: list[dict[str, Any]] = []
    try:
        found = await asyncio.to_thread(view.sources.audit, SHOWN, lambda record: _matches(record, asked))
        records = sorted(found, key=lambda record: str(record["time"]), reverse=True)  # lines of what repeats come late
    except OSError as error:
        fault = f"{error.filename}: {error.strerror}"
    is_cut = len(records) == SHOWN
    follows = bool(view.asked("follow"))
    return view.page(
        "audit.html", memory_calls=MEMORY_CALLS, records=records, is_cut=is_cut, asked=asked, fault=fault,
        most_bytes=MOST_TAIL, follow_s=FOLLOW_S if follows else 0,
    )  # fmt: skip


ROUTES = (("GET", "audit", _show),)
