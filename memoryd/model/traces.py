"""Traces across programs: what a caller says of the trace that a call belongs to (W3C Trace Context)."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["TRACEPARENT", "TraceParent", "read_traceparent"]

TRACEPARENT = "traceparent"
"""The name in the metadata of a call, as W3C Trace Context says."""
_FORM = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
FIELDS = 4  # of version 00; a later one may have more
_SAMPLED = 1


@dataclass(frozen=True, slots=True)
class TraceParent:
    """The span of a caller; ids in lower-case hexadecimal digits, 32 and 16 of them."""

    trace_id: str
    span_id: str
    sampled: bool


def read_traceparent(text: str) -> TraceParent | None:
    """Return what a header of W3C Trace Context says; None where it says nothing that is valid."""
    found = _FORM.fullmatch(text)
    if found is None or (text.startswith("00") and text.count("-") != FIELDS - 1):
        return None
    trace_id, span_id, flags = found.groups()
    return TraceParent(trace_id, span_id, bool(int(flags, 16) & _SAMPLED))
