"""
A vector of the model in use for every memory: in the background, page after page, each durable by itself.

What is still to do is what the store says of its rows, so it goes on after a restart where it was. Until its turn has
come a memory is found by its words; its old vector is compared with nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.pipeline import Decision, decide_and_commit, no_answer
from memoryd.domain.ports import Ports
from memoryd.errors import MemorydError, Unavailable
from memoryd.index.analysis import embedded_text
from memoryd.model.change import ChangeSet, Embedding
from memoryd.model.memory import Memory
from memoryd.model.reports import Reembedding

__all__ = ["Reembedder"]

Vector = NDArray[np.float32]

PAGE = 256  # memories of one transaction: 13 to 19 ms of the writer, measured in 20,000 and 100,000 memories
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0  # where nothing can be embedded or written now
LINE = "reembedding"  # the caller by whose name the texts wait


class Reembedder:
    """One pass at a time over all memories without a current vector."""

    def __init__(self, ports: Ports, clock: Callable[[], datetime], tell: Callable[[str, Reembedding], None]) -> None:
        """Do nothing yet; `tell` is told, for the log, when a pass begins, pauses and ends."""
        self._ports = ports
        self._clock = clock
        self._tell = tell
        self._wanted = asyncio.Event()
        self._running = False
        self._done = self._failed = 0
        self._fault = ""

    @property
    def running(self) -> bool:
        """Whether a pass is under way."""
        return self._running or self._wanted.is_set()

    async def pending(self) -> int:
        """Return how many memories have no vector of the model in use; 0 where there is no model."""
        fingerprint = self._ports.embedder.fingerprint
        if not fingerprint:
            return 0
        info = await self._ports.store.info()
        return info.memory_count - info.fingerprints.get(fingerprint, 0)

    async def progress(self) -> Reembedding:
        """Return how far it is."""
        return Reembedding(await self.pending(), self._done, self._failed, self.running, self._fault)

    def start(self) -> None:
        """Let `serve` begin a pass, unless one is under way or there is no model."""
        if self._ports.embedder.fingerprint and not self._running:
            self._wanted.set()

    async def serve(self) -> None:
        """Make the passes that are asked for, until it is cancelled."""
        while True:
            await self._wanted.wait()
            self._running = True
            self._wanted.clear()
            self._done = self._failed = 0
            self._fault = ""
            try:
                self._tell("reembedding", await self.progress())
                await self._pass()
                self._tell("reembedded", await self.progress())
            except Exception as error:  # noqa: BLE001  the next pass that is asked for tries again
                self._fault = str(error) if isinstance(error, MemorydError) else type(error).__name__
                self._tell("reembedding_failed", Reembedding(0, self._done, self._failed, fault=self._fault))
            finally:
                self._running = False

    async def _pass(self) -> None:
        fingerprint = self._ports.embedder.fingerprint
        after = ""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                page = await self._ports.store.unembedded(fingerprint, limit=PAGE, after=after)
                if not page:
                    return
                made = await self._embedded(page)
                await self._write(made)
            except MemorydError as error:
                self._fault = str(error)
                self._tell("reembedding_paused", await self.progress())
                await asyncio.sleep(pause_s)
                pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
                continue
            self._fault, pause_s, after = "", FIRST_PAUSE_S, page[-1].id
            self._done += len(made)
            self._failed += len(page) - len(made)

    async def _embedded(self, page: Sequence[Memory]) -> list[Embedding]:
        """Return the new vectors of a page, without those that cannot be made; Unavailable if none can."""
        texts = [embedded_text(memory.source.speaker, memory.content) for memory in page]
        try:
            vectors = await self._ports.embedder.documents(texts, caller=LINE, background=True)
        except Unavailable as error:
            vectors = [await self._alone(text) for text in texts]  # one text may keep all from being embedded
            if not any(vector is not None for vector in vectors):
                raise error from None
        fingerprint = self._ports.embedder.fingerprint
        return [
            Embedding(memory.owner, memory.id, vector, fingerprint)
            for memory, vector in zip(page, vectors, strict=True)
            if vector is not None
        ]

    async def _alone(self, text: str) -> Vector | None:
        try:
            return (await self._ports.embedder.documents([text], caller=LINE, background=True))[0]
        except Unavailable:
            return None

    async def _write(self, made: Sequence[Embedding]) -> None:
        owners = {embedding.owner for embedding in made}

        async def decide() -> Decision[None]:
            return Decision(ChangeSet(embeddings=tuple(made)), no_answer)

        await decide_and_commit(owners, decide, self._ports, now=self._clock(), grant_id="")
