"""Structured logs on standard error: JSON for machines, columns on a terminal; never content, never a token."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import structlog
from structlog.typing import EventDict, WrappedLogger

from memoryd import paths

__all__ = ["set_up_logs"]


def _in_words(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Return an event for people: of a mapping what it counts, and nothing that is empty."""
    shown: EventDict = {}
    for name, value in event.items():
        if isinstance(value, Mapping):
            shown[name] = ", ".join(f"{key} {count}" for key, count in value.items() if count) or "nothing"
        elif value != "":
            shown[name] = value
    return shown


def _person_line(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Say on a terminal in one line that the daemon serves, and what to do now."""
    if event.get("event") == "serving":
        socket = Path(event.pop("socket"))
        known = paths.socket_candidates(os.environ)
        place = "" if socket in known else f"MEMORY_ENDPOINT={shlex.quote(f'unix://{socket}')} "
        event["event"] = (
            f"serving on {socket} after {event.pop('ready_s')} s;"
            f' in another terminal: {place}memory add "I like tea"; Ctrl-C ends it'
        )
        for name in ("daemon", "elsewhere", "sandboxes", "embedding"):
            event.pop(name, None)
    return event


def set_up_logs(log_format: str, log_level: str) -> None:
    """Configure structlog; format is auto, json or console."""
    console = log_format == "console" or (log_format == "auto" and sys.stderr.isatty())
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if console
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([_person_line, _in_words] if console else [structlog.processors.format_exc_info]),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[log_level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
