"""Traces across programs: what a caller says of the trace that a call belongs to, and where spans of calls go."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from memoryd.model.call_context import CallContext

__all__ = ["NO_TRACES", "TRACEPARENT", "NoTraces", "TraceParent", "Traces", "read_traceparent"]

TRACEPARENT = "traceparent"
"""The name in the metadata of a call, as W3C Trace Context says."""
_FORM = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
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
    if found is None or (text.startswith("00") and len(text) != len("00-") + 32 + 1 + 16 + 1 + 2):
        return None
    trace_id, span_id, flags = found.groups()
    return TraceParent(trace_id, span_id, bool(int(flags, 16) & _SAMPLED))


class Traces(Protocol):
    """Where spans go."""

    def record(self, call_context: CallContext, outcome: str, took_s: float) -> None:
        """Note that a call has ended, just now."""

    def close(self) -> None:
        """Hand over what is left."""


class NoTraces:
    """Nothing is noted."""

    def record(self, call_context: CallContext, outcome: str, took_s: float) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


NO_TRACES = NoTraces()
