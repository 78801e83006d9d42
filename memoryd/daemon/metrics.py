"""The figures of one run, and where a scraper reads them; without the extra `metrics` there are none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import structlog

from memoryd.daemon.config import Config
from memoryd.daemon.config_key import ConfigError

if TYPE_CHECKING:
    from memoryd.metrics.endpoint import Endpoint
    from memoryd.metrics.sample import Sample

__all__ = ["Metrics", "is_measured"]

PATIENCE_S = 10.0  # for the event loop
log = structlog.get_logger("memoryd.daemon")


def is_measured(config: Config) -> bool:
    """Whether figures are kept."""
    return config.metrics.enabled or bool(config.metrics.listen)


class Metrics:
    """What is measured, from the start on; what is read when it is asked for, once the daemon serves."""

    def __init__(self, config: Config, loop: asyncio.AbstractEventLoop) -> None:
        """Take nothing yet but the figures; ConfigError without the extra, or where nothing could listen so."""
        try:
            from memoryd.metrics.endpoint import address_of
            from memoryd.metrics.figures import Figures
        except ImportError:
            raise ConfigError("metrics need the extra: pip install 'memoryd[server,metrics]'") from None
        metrics = config.metrics
        self._address = address_of(metrics.listen, allow_remote=metrics.allow_remote) if metrics.listen else None
        self._loop = loop
        self._look: Callable[[], Awaitable[Sequence[Sample]]] | None = None
        self._endpoint: Endpoint | None = None
        self.figures = Figures(self._now)

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
