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
MOST_WAITING = 8  # times so many texts wait for it: then it is behind
LAST = 2  # rank of its end, after all that is asked
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
        self._is_closed = False

    @property
    def is_behind(self) -> bool:
        """Whether so much waits to be read that what comes last may wait for long."""
        return self._asked.qsize() > MOST_WAITING

    async def read(self, texts: Sequence[Text], *, urgent: bool = False) -> list[Found]:
        """
        Return what the model finds in each text; what is urgent is read before all that is not.

        In the background it rests as long as it works, so that calls have the processor. ModelRefused if it is closed
        or cannot be had.
        """
        if self._is_closed:
            raise ModelRefused(f"the {self._name} reader is closed")
        if self._thread is None:  # one that ends with the process, whatever it reads then
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()
        found = list[Found]()
        for first in range(0, len(texts), AT_ONCE):
            answer: _Answer[Found] = asyncio.get_running_loop().create_future()
            self._put(not urgent, (texts[first : first + AT_ONCE], answer))
            some, took_s = await answer
            found += some
            if self._rests:
                await asyncio.sleep(took_s)
        return found

    def close(self) -> None:
        """End the thread after what it reads now; nothing is read any more."""
        self._is_closed = True
        self._put(LAST, None)

    def _put(self, rank: int, asked: tuple[Sequence[Text], _Answer[Found]] | None) -> None:
        self._asked.put((rank, next(self._count), asked))

    def _serve(self) -> None:
        while (asked := self._asked.get()[-1]) is not None:
            texts, answer = asked
            if answer.done():  # whoever asked has gone
                continue
            try:
                if self._read is None:
                    self._read = self._load()
                began_s = time.monotonic()
                told = functools.partial(_tell, answer, (self._read(texts), time.monotonic() - began_s))
            except Exception as error:  # noqa: BLE001  it is the caller's
                told = functools.partial(_tell, answer, error)
            with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits
                answer.get_loop().call_soon_threadsafe(told)


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
