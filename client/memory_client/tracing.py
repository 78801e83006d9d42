"""The trace that a call belongs to, told to the daemon as W3C Trace Context says."""

from __future__ import annotations

import os
import sys

from memoryd.model.traces import TRACEPARENT, read_traceparent

__all__ = ["trace_metadata"]


def trace_metadata() -> tuple[tuple[str, str], ...]:
    """
    Return the `traceparent` to send along: of the span that OpenTelemetry has here now, else of $TRACEPARENT.

    OpenTelemetry is asked only where the program has imported it; nothing is sent where there is no trace.
    """
    api = sys.modules.get("opentelemetry.trace")
    if api is not None:
        span = api.get_current_span().get_span_context()
        if span.is_valid:
            return ((TRACEPARENT, f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"),)
    text = os.environ.get("TRACEPARENT", "")
    return ((TRACEPARENT, text),) if read_traceparent(text) else ()
