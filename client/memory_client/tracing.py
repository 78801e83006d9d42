"""The trace that a call belongs to, told to the daemon as W3C Trace Context says."""

from __future__ import annotations

import os
import re
import sys

__all__ = ["trace_metadata"]

_FORM = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def trace_metadata() -> tuple[tuple[str, str], ...]:
    """
    Return the `traceparent` to send along: of the span that OpenTelemetry has here now, else of $TRACEPARENT.

    OpenTelemetry is asked only where the program has imported it; nothing is sent where there is no trace.
    """
    api = sys.modules.get("opentelemetry.trace")
    if api is not None:
        span = api.get_current_span().get_span_context()
        if span.is_valid:
            return (("traceparent", f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"),)
    text = os.environ.get("TRACEPARENT", "")
    return (("traceparent", text),) if _FORM.fullmatch(text) else ()
