"""Where the spans of calls go; without an endpoint nowhere."""

from __future__ import annotations

import time
from importlib.metadata import version

import structlog

from memoryd.daemon.config import Config
from memoryd.daemon.config_key import ConfigError
from memoryd.model.call_context import NO_TRACES, Traces

__all__ = ["check_traces", "make_traces"]

log = structlog.get_logger("memoryd.daemon")


def check_traces(config: Config) -> None:
    """Raise ConfigError where spans cannot be sent as it is asked for."""
    endpoint = config.traces.endpoint
    if not endpoint:
        return
    if not endpoint.startswith(("http://", "https://", "unix:")):
        raise ConfigError(
            f"traces.endpoint is {endpoint!r}; write http://127.0.0.1:4317 or unix:///run/otel/otlp.sock, where a"
            " collector takes OTLP over gRPC"
        )
    try:
        import opentelemetry.exporter.otlp.proto.grpc  # noqa: F401  whether it is there
    except ImportError:
        raise ConfigError("traces need the extra: pip install 'memoryd[server,traces]'") from None


def make_traces(config: Config) -> Traces:
    """Return where the spans of calls go; ConfigError as of `check_traces`."""
    check_traces(config)
    if not config.traces.endpoint:
        return NO_TRACES
    from memoryd.metrics.traces import SpanTraces

    traces = config.traces
    return SpanTraces(
        traces.endpoint,
        traces.ratio,
        version("memoryd"),
        time.time_ns,
        lambda fault: log.warning("spans_not_sent", error=fault),
    )
