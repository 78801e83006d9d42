"""The figures of one run, and where a scraper reads them; without the extra `metrics` there are none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import structlog

from memoryd.daemon.config import Config
from memoryd.daemon.config_key import ConfigError
from memoryd.model.grant import Door
from memoryd.model.measures import Event, Quantity

if TYPE_CHECKING:
    from memoryd.metrics.endpoint import Endpoint
    from memoryd.metrics.sample import Sample

__all__ = ["Metrics", "check_metrics", "is_measured"]

PATIENCE_S = 10.0  # for the event loop
ALARMING = ("INTERNAL", "STORE_DAMAGED", "UNAVAILABLE")
"""Reasons that alerts ask for: counted from 0 on, as one that begins with its first error shows no increase."""
log = structlog.get_logger("memoryd.daemon")


def is_measured(config: Config) -> bool:
    """Whether figures are kept."""
    return config.metrics.enabled or bool(config.metrics.listen)


def check_metrics(config: Config) -> str | tuple[str, int] | None:
    """Return where the figures are read; ConfigError without the extra, StartupError where nothing can listen so."""
    if not is_measured(config):
        return None
    try:
        import prometheus_client  # noqa: F401  whether it is there
    except ImportError:
        raise ConfigError("metrics need the extra: pip install 'memoryd[server,metrics]'") from None
    from memoryd.metrics.endpoint import address_of

    metrics = config.metrics
    return address_of(metrics.listen, allow_remote=metrics.allow_remote) if metrics.listen else None


class Metrics:
    """What is measured, from the start on; what is read when it is asked for, once the daemon serves."""

    def __init__(self, config: Config, loop: asyncio.AbstractEventLoop) -> None:
        """Take nothing yet but the figures; ConfigError, StartupError as of `check_metrics`."""
        self._address = check_metrics(config)
        from memoryd.metrics.figures import Figures

        self._loop = loop
        self._look: Callable[[], Awaitable[Sequence[Sample]]] | None = None
        self._endpoint: Endpoint | None = None
        self.figures = Figures(self._now)
        for reason in ALARMING:
            self.figures.count(Event.REFUSED, reason, number=0)
        for door in Door:
            for method in ("SearchMemories", "AddMemory", "BuildContext"):  # an alert asks for the first, plots for all
                self.figures.expect(Quantity.RPC, method, "OK", door.value)

    def open(self, look: Callable[[], Awaitable[Sequence[Sample]]]) -> None:
        """Let scrapers ask; `look` runs on the event loop. StartupError where nothing can listen there."""
        from memoryd.metrics.endpoint import Endpoint

        self._look = look
        if self._address is not None:
            self._endpoint = Endpoint(self._address, self.text, lambda fault: log.warning("not_scraped", error=fault))

    def text(self) -> bytes:
        """Return all figures as text; never on the event loop, which is asked for some of them."""
        return self.figures.text()

    def close(self) -> None:
        """Listen no longer."""
        self._look = None
        if self._endpoint is not None:
            self._endpoint.close()

    def _now(self) -> Sequence[Sample]:
        look = self._look
        if look is None:
            return ()

        async def run() -> Sequence[Sample]:
            return await look()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(PATIENCE_S)
