"""A text that is asked with: its sentences, each as the model sees it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Self

from memoryd.domain.ports import Ports
from memoryd.embedding.base import Embedder
from memoryd.errors import Unavailable
from memoryd.knowledge.grammar.sentences import asked_sentences
from memoryd.model.caller import Caller
from memoryd.model.embedding import Embedded

__all__ = ["Prompt"]

EMBEDDING_PATIENCE_S = 2.0  # a search goes on by words when its vector takes longer


class Prompt:
    """A text that searches share, its sentences embedded once from now on."""

    def __init__(self, text: str, caller: Caller, ports: Ports) -> None:
        self.text = text
        sentences: tuple[str, ...] = (text,)
        with ports.shared.faults.spared("reading the query"):
            sentences = asked_sentences(text)
        self.asks = bool(sentences)
        """Whether any of it is more than courtesy."""
        self.sentences = sentences or (text,)
        """What is asked, each by itself: a question between four other sentences is found as if it stood alone."""
        self._task = asyncio.ensure_future(_embedded(self.sentences, caller, ports.embedder))

    async def embedded(self) -> tuple[list[Embedded | None], float]:
        """Return its sentences as the model sees them, None where there is nothing in time, and the seconds for it."""
        return await self._task

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._task.cancel()


async def _embedded(
    sentences: Sequence[str], caller: Caller, embedder: Embedder
) -> tuple[list[Embedded | None], float]:
    """Return sentences as the model sees them, None where there is nothing in time, and the seconds that it took."""
    began = time.perf_counter()
    try:
        async with asyncio.timeout(EMBEDDING_PATIENCE_S):
            embedded = await embedder.queries(sentences, owner=caller, caller=caller.turn)
    except (Unavailable, TimeoutError):
        embedded = [None] * len(sentences)
    return embedded, time.perf_counter() - began
