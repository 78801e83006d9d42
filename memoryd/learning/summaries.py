"""Keeps the summaries of threads: whatever leaves their prompts is summed up soon after, in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from memoryd.domain.ports import Ports
from memoryd.learning.language_model import LanguageModel
from memoryd.learning.summary import sum_up, wants_summary
from memoryd.model.change import Applied
from memoryd.model.conversation import Thread
from memoryd.model.scope import Owner

__all__ = ["Summaries"]

LOOK_S = 2.0
MOST_WAITING = 10_000  # threads that are noted; the rest are found at the next start


class Summaries:
    """Sums threads up, one at a time."""

    def __init__(
        self,
        ports: Ports,
        model: LanguageModel | None,
        clock: Callable[[], datetime],
        tell: Callable[[str], None],
    ) -> None:
        """Follow the commits of the store from here on; without a model it is by rules."""
        self._ports, self._model, self._clock, self._tell = ports, model, clock, tell
        self._waiting: dict[tuple[Owner, str], None] = {}
        ports.store.on_commit(self._follow)

    def _follow(self, applied: Applied) -> None:
        talk = applied.change.conversation
        for thread in () if talk is None else talk.threads:
            self._note(thread)

    async def serve(self) -> None:
        """Sum up what waits until it is cancelled, that first which an earlier daemon left."""
        try:
            await self.find()
        except Exception as error:  # noqa: BLE001  the store may be busy now; a thread is noted when it next grows
            self._tell(type(error).__name__)
        while True:
            await self.step()
            await asyncio.sleep(LOOK_S)

    async def find(self) -> None:
        """Note the threads that an earlier daemon left."""
        for thread in await self._ports.store.unsummarised_threads(limit=MOST_WAITING):
            self._note(thread)

    async def step(self) -> int:
        """Sum up what waits now; return how many summaries there are of it."""
        made = 0
        while self._waiting:
            owner, thread_id = next(iter(self._waiting))
            del self._waiting[owner, thread_id]
            try:
                thread = await self._ports.store.thread(owner, thread_id)
                if thread is not None:
                    made += await sum_up(thread, self._model, self._ports, now=self._clock())
            except Exception as error:  # noqa: BLE001  one thread keeps no other from it
                self._tell(type(error).__name__)
            await asyncio.sleep(0)
        return made

    def _note(self, thread: Thread) -> None:
        if wants_summary(thread) and len(self._waiting) < MOST_WAITING:
            self._waiting[thread.owner, thread.id] = None
