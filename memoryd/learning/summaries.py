"""Keeps the summaries of threads: whatever leaves their prompts is summed up soon after, in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from memoryd.domain.background import BackgroundWorker, class_of
from memoryd.domain.ports import Ports
from memoryd.learning.language_model import LanguageModel
from memoryd.learning.summary import sum_up, wants_summary
from memoryd.model.commits import Applied
from memoryd.model.conversation import Thread
from memoryd.model.scope import Owner
from memoryd.model.trust import Trust
from memoryd.store.conversations import ThreadSelector

__all__ = ["Summaries"]

LOOK_S = 2.0
MOST_WAITING = 10_000  # threads that are noted; the rest are found in the store once these are done


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
        self._behind: str | None = ""
        """The key of the thread up to which the store was looked through; None: to the end."""
        self._too_many = False
        """Whether there was no room for one while the store was looked through: it may lie before that place."""
        self._in_vain: dict[tuple[Owner, str], _Seen] = {}
        """What was there of threads that could not be summed up: as long as it is the same, they are left alone."""
        ports.store.commits.memories.follow(self._follow)

    def _follow(self, applied: Applied) -> None:
        talk = applied.change.conversation
        for thread in () if talk is None else talk.threads:
            self._note(thread)

    async def serve(self) -> None:
        """Sum up what waits until it is cancelled, that first which an earlier daemon left."""
        await BackgroundWorker(step=self._look, pause_s=LOOK_S, tell=self._tell).serve()

    async def _look(self) -> None:
        try:
            await self.find()
        except Exception as error:  # noqa: BLE001  the store may be busy now: it is looked through later
            self._tell(class_of(error))
        await self.step()

    async def find(self) -> None:
        """Note the next threads that an earlier daemon left, or that were too many to note."""
        if self._behind is None:
            return
        room = MOST_WAITING - len(self._waiting)
        if room <= 0:
            return
        found = await self._ports.store.conversations.scan_threads(
            ThreadSelector(is_unsummarised=True),
            limit=room,
            after=self._behind,
        )
        if len(found) == room:
            self._behind = found[-1][0]
        else:
            self._behind = "" if self._too_many else None
            self._too_many = False
        for _, thread in found:
            self._note(thread)

    async def step(self) -> int:
        """Sum up what waits now; return how many summaries there are of it."""
        made = 0
        while self._waiting:
            owner, thread_id = next(iter(self._waiting))
            del self._waiting[owner, thread_id]
            try:
                thread = await self._ports.store.conversations.thread(owner, thread_id)
                if thread is not None:
                    made += await self._sum_up(thread)
            except Exception as error:  # noqa: BLE001  one thread keeps no other from it
                self._tell(class_of(error))
            await asyncio.sleep(0)
        return made

    async def _sum_up(self, thread: Thread) -> bool:
        key = thread.owner, thread.id
        is_made = await sum_up(thread, self._model, self._ports, now=self._clock())
        self._in_vain.pop(key, None)
        if not is_made and len(self._in_vain) < MOST_WAITING:
            self._in_vain[key] = _seen(thread)
        return is_made

    def _note(self, thread: Thread) -> None:
        key = thread.owner, thread.id
        if not wants_summary(thread) or self._in_vain.get(key) == _seen(thread):
            return
        if len(self._waiting) < MOST_WAITING:
            self._waiting[key] = None
        elif self._behind is None:
            self._behind = ""
        else:
            self._too_many = True


_Seen = tuple[int, int, Trust]
"""How far a thread has left its prompts, how far its summary goes, and the trust of that."""


def _seen(thread: Thread) -> _Seen:
    return thread.view_seq, thread.summary_seq, thread.summary_trust
