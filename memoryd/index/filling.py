"""How a large scope gets its vectors: piece by piece, while it is searched by words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor

from memoryd.errors import Unavailable
from memoryd.index.scope import ScopeIndex
from memoryd.index.vectors import Packed, packed
from memoryd.model.batch import VectorBatch

__all__ = ["Filling"]


class Filling:
    """One index that gets its vectors, and who waits for them."""

    def __init__(
        self, index: ScopeIndex, pieces: Iterator[VectorBatch], reader: Executor, is_wanted: Callable[[], bool]
    ) -> None:
        """Begin. It goes on as long as the index is wanted, or someone waits; `reader` runs what reads the pieces."""
        self.index = index
        self.error: Exception | None = None
        """What kept the vectors away."""
        self._waiting = 0
        self.task = asyncio.create_task(self._fill(pieces, reader, is_wanted))

    async def end(self) -> None:
        """Wait for the end; raise what kept the vectors away, or Unavailable when the daemon stops."""
        self._waiting += 1
        try:
            await asyncio.wait([self.task])
        finally:
            self._waiting -= 1
        if self.task.cancelled():
            raise Unavailable("the daemon is shutting down")
        if self.error is not None:
            raise self.error

    async def _fill(self, pieces: Iterator[VectorBatch], reader: Executor, is_wanted: Callable[[], bool]) -> None:
        loop = asyncio.get_running_loop()
        coming: asyncio.Future[tuple[VectorBatch, Packed] | None] | None = None
        try:
            coming = loop.run_in_executor(reader, _next, pieces)
            while (piece := await coming) is not None:
                if not (is_wanted() or self._waiting):
                    return
                coming = loop.run_in_executor(reader, _next, pieces)
                self.index.fill(*piece)
            self.index.end_filling()
        except Exception as error:  # noqa: BLE001  told to who waits, and counted by who began it
            self.error = error.with_traceback(None)
        finally:
            coming = None  # or an error, its frames and the index would hold each other


def _next(pieces: Iterator[VectorBatch]) -> tuple[VectorBatch, Packed] | None:
    """Return the next vectors, and those packed; None after the last."""
    piece = next(pieces, None)
    return None if piece is None else (piece, packed(piece.vectors))
