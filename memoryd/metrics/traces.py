"""Spans of calls for OpenTelemetry, sent by OTLP over gRPC; needs the extra `traces`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

if TYPE_CHECKING:
    from memoryd.model.call_context import CallContext

__all__ = ["SpanTraces"]

PAUSE_NS = 60 * 10**9
SEND_S = 3  # so long may handing over take, at the end too
FAULTS_OF_THE_SERVER = frozenset(
    {"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}
)
"""Codes for which OpenTelemetry has a server's span be an error."""


class _Faults(logging.Handler):
    """Hands on what OpenTelemetry says of spans that it could not send, once in a while."""

    def __init__(self, tell: Callable[[str], None], now_ns: Callable[[], int]) -> None:
        super().__init__(logging.WARNING)
        self._tell, self._now_ns, self._told_at = tell, now_ns, 0

    def emit(self, record: logging.LogRecord) -> None:
        """Tell it, unless something was told within the last minute."""
        if self._now_ns() - self._told_at >= PAUSE_NS:
            self._told_at = self._now_ns()
            self._tell(record.getMessage())


class SpanTraces:
    """
    One span for each call that is sampled: where the caller's was, or by chance where it says nothing.

    A span has the method, the door, the code and the call's id, as in the log; never who called, an id, or a text.
    """

    def __init__(
        self, endpoint: str, ratio: float, version: str, now_ns: Callable[[], int], on_fault: Callable[[str], None]
    ) -> None:
        """Send to a collector; `ratio` of the calls without a trace of their own begin one."""
        self._now_ns = now_ns
        logger = logging.getLogger("opentelemetry")
        logger.handlers, logger.propagate = [_Faults(on_fault, now_ns)], False
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(ratio)),
            resource=Resource({"service.name": "memoryd", "service.version": version}),
            shutdown_on_exit=False,
        )
        exporter = OTLPSpanExporter(endpoint=endpoint, insecure=not endpoint.startswith("https:"), timeout=SEND_S)
        self._provider.add_span_processor(BatchSpanProcessor(exporter, export_timeout_millis=SEND_S * 1000))
        self._tracer = self._provider.get_tracer("memoryd", version)

    def record(self, call_context: CallContext, outcome: str, took_s: float) -> None:
        """Note that a call has ended, just now."""
        end = self._now_ns()
        parent, context = call_context.trace, None
        if parent is not None:
            flags = TraceFlags(TraceFlags.SAMPLED if parent.sampled else TraceFlags.DEFAULT)
            remote = SpanContext(int(parent.trace_id, 16), int(parent.span_id, 16), is_remote=True, trace_flags=flags)
            context = set_span_in_context(NonRecordingSpan(remote))
        span = self._tracer.start_span(
            call_context.rpc,
            context=context,
            kind=SpanKind.SERVER,
            start_time=end - int(took_s * 1e9),
            attributes={
                "rpc.system.name": "grpc",
                "rpc.method": call_context.rpc,
                "rpc.response.status_code": outcome,
                "memoryd.door": call_context.door,
                "memoryd.call": call_context.call,
            },
        )
        if outcome in FAULTS_OF_THE_SERVER:
            span.set_status(StatusCode.ERROR)
        span.end(end)

    def close(self) -> None:
        """Hand over what is left."""
        self._provider.shutdown()
