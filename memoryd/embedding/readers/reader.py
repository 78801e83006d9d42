"""How every reader is asked: in a thread of its own, a few texts at a time, and with rests."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from memoryd.embedding.base import ModelRefused

__all__ = ["AT_ONCE", "Read", "Reader"]

AT_ONCE = 8  # texts, between two rests
FEW = 2  # texts of what is not urgent that are read before what is urgent has its turn
MOST_WAITING = 64  # texts that wait for it: then it is behind
NOW = -1  # rank of its end, before all that waits
Text = TypeVar("Text")
Found = TypeVar("Found")
Read = Callable[[Sequence[Text]], list[Found]]
"""What reads a few texts (or pairs of them), and returns what it found in each."""


class Reader(Generic[Text, Found]):
    """Reads in a thread of its own; the model is loaded when it is first asked."""

    def __init__(self, name: str, load: Callable[[], Read[Text, Found]], *, rests: bool = True) -> None:
        """Take what loads the model and returns what reads; one thread calls both. `rests`: see `read`."""
        self._name, self._load, self._rests = name, load, rests
        self._read: Read[Text, Found] | None = None
        self._asked: queue.PriorityQueue[_Job[Text, Found]] = queue.PriorityQueue()
        self._count = itertools.count()
        self._thread: threading.Thread | None = None
        self._is_closed, self._putting = False, threading.Lock()

    def is_behind(self, *, urgent: bool = False) -> bool:
        """Whether so much waits to be read before what is asked now that it may wait for long."""
        return (
            sum(
                len(asked[0])
                for rank, _, asked in list(self._asked.queue)
                if asked is not None and rank <= (not urgent) and not asked[1].done()
            )
            > MOST_WAITING
        )

    async def read(self, texts: Sequence[Text], *, urgent: bool = False) -> list[Found]:
        """
        Return what the model finds in each text; what is urgent is read before all that is not.

        In the background it rests as long as it works, so that calls have the processor. Without rests all of it waits
        at once, so that what is not urgent is never read in between. ModelRefused if it is closed or cannot be had.
        """
        if self._thread is None and not self._is_closed:  # one that ends with the process, whatever it reads then
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()
        if not self._rests:
            size = AT_ONCE if urgent else FEW
            answers = [self._put(not urgent, texts[n : n + size]) for n in range(0, len(texts), size)]
            return [one for some, _ in await asyncio.gather(*answers) for one in some]
        found = list[Found]()
        for first in range(0, len(texts), AT_ONCE):
            some, took_s = await self._put(not urgent, texts[first : first + AT_ONCE])
            found += some
            await asyncio.sleep(took_s)
        return found

    def close(self) -> None:
        """End the thread after what it reads now; nothing is read any more, and whoever waits is told."""
        with self._putting:
            self._is_closed = True
            self._asked.put((NOW, next(self._count), None))

    def _put(self, rank: int, texts: Sequence[Text]) -> _Answer[Found]:
        answer: _Answer[Found] = asyncio.get_running_loop().create_future()
        with self._putting:
            if self._is_closed:
                raise self._closed()
            self._asked.put((rank, next(self._count), (texts, answer)))
        return answer

    def _closed(self) -> ModelRefused:
        return ModelRefused(f"the {self._name} reader is closed")

    def _serve(self) -> None:
        self._read_all()
        while not self._asked.empty():  # nothing more comes once it is closed
            if (asked := self._asked.get()[-1]) is not None:
                self._answer(asked[1], self._closed())

    def _read_all(self) -> None:
        while (asked := self._asked.get()[-1]) is not None:
            texts, answer = asked
            if answer.done():  # whoever asked has gone
                continue
            try:
                if self._read is None:
                    self._read = self._load()
                began_s = time.monotonic()
                self._answer(answer, (self._read(texts), time.monotonic() - began_s))
            except Exception as error:  # noqa: BLE001  it is the caller's
                self._answer(answer, error)

    @staticmethod
    def _answer(answer: _Answer[Found], found: tuple[list[Found], float] | Exception) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and no one waits
            answer.get_loop().call_soon_threadsafe(functools.partial(_tell, answer, found))


_Answer = asyncio.Future[tuple[list[Found], float]]
_Job = tuple[int, int, tuple[Sequence[Text], _Answer[Found]] | None]
"""Its rank, the lower the sooner, its number, and what is asked; None: nothing more."""


def _tell(answer: _Answer[Found], found: tuple[list[Found], float] | Exception) -> None:
    if answer.done():
        return
    if isinstance(found, Exception):
        answer.set_exception(found)
    else:
        answer.set_result(found)
