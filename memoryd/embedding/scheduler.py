"""
Who is embedded when: queries first, documents in small pieces, every caller in turn.

While no one searches every worker takes documents, so that a batch uses all cores. One worker, the guard, takes only
short ones, so that a search never waits behind more; none for a while after a query; and none at all where the encoder
is elsewhere. The others take documents every fourth time however many queries wait. Queries and documents wait in one
line a caller each, and the lines are served round robin: queries one by one, documents in pieces of at most 32 texts
and 1,024 tokens, sorted by length, as texts of one length go together. What is done in the background has lines of its
own, which are served while the others are empty.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, count
from typing import Any

import numpy as np
from cachetools import LRUCache

from memoryd.embedding.base import Encoder, TokenEncoder
from memoryd.embedding.windows import LONG_BYTES, codes_of, later_windows
from memoryd.errors import MemorydError, TextRefused, Unavailable
from memoryd.model.embedding import Embedded
from memoryd.model.measures import NO_MEASURES, Measures, Quantity

__all__ = ["ScheduledEmbedder"]

PIECE_TEXTS = 32  # texts of one length are run together, so a piece of many is faster: 0.9 of the time of 8
PIECE_TOKENS = 1024
BACKGROUND_TURNS = 16  # every so often it has a piece even where all others wait
BACKGROUND_TOKENS = 256  # of a piece behind which other documents may wait
SHORT_TOKENS = 64  # of a piece behind which a query may wait: about 3 queries' time
PAUSE_S = 0.1  # after a query the guard waits so long for the next one before it takes documents
REST = 1.0  # times its own time what is done in the background rests after each piece while someone searches
QUERIES_A_PIECE = 4  # so many queries a worker takes before documents get their turn, however many queries wait
REMEMBERED_BYTES = 16 << 20  # of queries and what the model made of them: about 4,000 short ones
WINDOWS_AT_ONCE = 128  # later windows of one call that wait
LONGEST_CHARACTER = 4  # bytes
MAX_WAITING = 100_000  # texts; beyond it the daemon says that it is busy


@dataclass(eq=False, slots=True)
class _Text:
    """One text that waits, and where its vector goes."""

    text: str
    cost: int
    job: _Job
    place: int


@dataclass(eq=False, slots=True)
class _Job:
    """The texts of one call."""

    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[list[Embedded | None]]
    embedded: list[Embedded | None] = field(default_factory=list)
    missing: int = 0


Lines = OrderedDict[Hashable, deque[_Text]]
"""What waits, by caller, in the order of their turns."""


def _bytes_of(embedded: Embedded) -> int:
    """Return about how many bytes it takes, with the text and its place."""
    return 700 + embedded.vector.nbytes + len(embedded.tokens) + 120 * len(embedded.places)


class ScheduledEmbedder:
    """Runs an encoder in worker threads."""

    def __init__(self, encoder: Encoder, *, workers: int | None = None, measures: Measures = NO_MEASURES) -> None:
        """Start the workers; by default one a core, at most two."""
        self._encoder, self._measures = encoder, measures
        self._ready = threading.Condition()
        self._queries: Lines = OrderedDict()
        self._lines: Lines = OrderedDict()
        self._background: Lines = OrderedDict()
        """Documents whose turn comes where there are no others."""
        self._waiting = 0
        self._last_query_s = -PAUSE_S
        """When the last query came, by the monotonic clock."""
        self._rest_until_s = 0.0
        """Until when what is done in the background leaves the cores to others, by the same clock."""
        self._closed = False
        self._remembered: LRUCache[tuple[Hashable, str], Embedded] = LRUCache(REMEMBERED_BYTES, getsizeof=_bytes_of)
        number = workers or min(2, os.cpu_count() or 1)
        self._threads = [
            threading.Thread(target=self._work, args=(n == 0 and number > 1,), name=f"embed-{n}", daemon=True)
            for n in range(number)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def provider(self) -> str:
        """The encoder's name in the configuration."""
        return self._encoder.provider

    @property
    def fingerprint(self) -> str:
        """The encoder's."""
        return self._encoder.fingerprint

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return self._encoder.dimensions

    def waiting(self) -> tuple[int, int]:
        """Return how many queries and documents wait, in texts."""
        with self._ready:
            queries = sum(map(len, self._queries.values()))
            return queries, self._waiting - queries

    async def query(self, text: str, *, owner: Hashable, caller: Hashable = None) -> Embedded | None:
        """Return one query as the model sees it; see Embedder.queries."""
        return (await self.queries([text], owner=owner, caller=caller))[0]

    async def queries(self, texts: Sequence[str], *, owner: Hashable, caller: Hashable = None) -> list[Embedded | None]:
        """Return queries of one call as the model sees them; see Embedder.queries."""
        embedded = {text: self._remembered.get((owner, text)) for text in texts}
        new = [text for text, known in embedded.items() if known is None]
        if new:
            for text, made in zip(new, await self._submit(new, self._queries, caller or owner), strict=True):
                embedded[text] = made
                if made is not None:
                    with contextlib.suppress(ValueError):  # larger than all that is kept
                        self._remembered[owner, text] = made
        return [embedded[text] for text in texts]

    def forget_queries(self) -> None:
        """Drop the queries whose vectors are kept."""
        self._remembered.clear()

    async def documents(
        self, texts: Sequence[str], *, caller: Hashable, background: bool = False, whole: bool = True
    ) -> list[Embedded | None]:
        """Return one a text, in order; see Embedder.documents."""
        if not texts:
            return []
        lines = self._background if background else self._lines
        made = await self._submit(texts, lines, caller)
        if not whole or max(map(len, texts)) * LONGEST_CHARACTER <= LONG_BYTES:
            return made
        later = await asyncio.to_thread(lambda: [later_windows(text) for text in texts])
        every, parts = [*chain.from_iterable(later)], []
        for n in range(0, len(every), WINDOWS_AT_ONCE):  # so many wait at a time, and only their codes are kept
            part = await self._submit(every[n : n + WINDOWS_AT_ONCE], lines, caller)
            parts.append(codes_of(np.stack([embedded.vector for embedded in part if embedded is not None])))
        codes, sizes = b"".join(parts), [len(some) * self.dimensions for some in later]
        starts = accumulate(sizes, initial=0)
        return [
            embedded if embedded is None or not size else replace(embedded, windows=codes[start : start + size])
            for embedded, start, size in zip(made, starts, sizes, strict=False)
        ]

    async def ping(self) -> None:
        """Return when a worker has embedded something; of an endpoint elsewhere, when the workers live."""
        if self._encoder.local:
            await self._submit(["ping"], self._queries, None)
        elif not all(thread.is_alive() for thread in self._threads):
            raise Unavailable("an embedding worker has ended")

    async def _submit(self, texts: Sequence[str], lines: Lines, line: Hashable) -> list[Embedded | None]:
        loop = asyncio.get_running_loop()
        job = _Job(loop, loop.create_future(), [None] * len(texts), len(texts))
        items = [_Text(text, self._encoder.cost(text), job, n) for n, text in enumerate(texts)]
        with self._ready:
            if self._closed or self._waiting + len(items) > MAX_WAITING:
                raise Unavailable("too many texts wait to be embedded; nothing was written; retry later")
            self._waiting += len(items)
            if lines is self._queries:
                self._last_query_s = time.monotonic()
            # longest first within the call, so that texts of a piece are of like length
            lines.setdefault(line, deque()).extend(sorted(items, key=lambda item: -item.cost))
            self._ready.notify_all()
        return await job.future

    def close(self) -> None:
        """Drop what waits and stop the workers."""
        with self._ready:
            self._closed = True
            dropped = []
            for lines in (self._queries, self._lines, self._background):
                dropped += [item for line in lines.values() for item in line]
                lines.clear()
            self._ready.notify_all()
        for item in dropped:
            self._fail(item.job, Unavailable("the daemon is shutting down; nothing was written"))
        for thread in self._threads:
            thread.join()

    # --- the workers ---

    def _take(self, turn: int, *, guard: bool) -> tuple[list[_Text], bool] | None:
        """Wait for work; return a piece and whether it is a query, or None at the end."""
        with self._ready:
            while True:
                if self._closed:
                    return None
                piece = [] if guard else self._due(turn)
                if piece:
                    return piece, False
                while self._queries:
                    piece = self._next_piece(self._queries, most=1)
                    if piece:
                        return piece, True
                lines = self._lines or self._background
                pause_s = 0.0
                if lines:
                    pause_s = self._pause_s() if guard else self._rest_s() if lines is self._background else 0.0
                piece = [] if pause_s else self._documents(lines, guard=guard)
                if piece:
                    return piece, False
                if guard or not lines or pause_s:
                    self._ready.wait(pause_s or None)

    def _due(self, turn: int) -> list[_Text]:
        """Return a piece of the documents whose turn has come before the queries'."""
        if turn % QUERIES_A_PIECE == 0 and self._lines:
            return self._next_piece(self._lines, most=PIECE_TEXTS)
        if turn % BACKGROUND_TURNS == BACKGROUND_TURNS - 1 and self._background:
            return self._next_piece(self._background, most=PIECE_TEXTS, tokens=BACKGROUND_TOKENS)
        return []

    def _documents(self, lines: Lines, *, guard: bool) -> list[_Text]:
        """Return a piece of the documents that are next, as long as this worker may take."""
        if guard:  # of an encoder elsewhere nothing: its answer takes as long as a query's
            return self._short_piece(lines) if self._encoder.local else []
        tokens = PIECE_TOKENS if lines is self._lines else BACKGROUND_TOKENS
        return self._next_piece(lines, most=PIECE_TEXTS, tokens=tokens) if lines else []

    def _rest_s(self) -> float:
        """Return for how long what is done in the background still rests, in seconds; never while no one searches."""
        now = time.monotonic()
        return max(0.0, self._rest_until_s - now) if now < self._last_query_s + PAUSE_S else 0.0

    def _pause_s(self) -> float:
        """Return for how long the guard still waits for another query, in seconds."""
        return max(0.0, self._last_query_s + PAUSE_S - time.monotonic())

    def _short_piece(self, lines: Lines) -> list[_Text]:
        """Return the last texts of the first line that ends with short ones; no line loses its turn by it."""
        for line, waiting in list(lines.items()):  # within a call the longest come first
            piece: list[_Text] = []
            longest = 0
            while waiting and max(longest, waiting[-1].cost) * (len(piece) + 1) <= SHORT_TOKENS:
                item = waiting.pop()
                self._waiting -= 1
                if not item.job.future.done():
                    piece.append(item)
                    longest = max(longest, item.cost)
            if not waiting:
                del lines[line]
            if piece:
                return piece
        return []

    def _next_piece(self, lines: Lines, *, most: int, tokens: int = PIECE_TOKENS) -> list[_Text]:
        """Return what the first line brings, which goes to the end; nothing if its callers have gone."""
        line, waiting = lines.popitem(last=False)
        piece: list[_Text] = []
        longest = 0
        while waiting and len(piece) < most:
            item = waiting[0]
            if piece and max(longest, item.cost) * (len(piece) + 1) > tokens:
                break
            waiting.popleft()
            self._waiting -= 1
            if not item.job.future.done():
                piece.append(item)
                longest = max(longest, item.cost)
        if waiting:
            lines[line] = waiting  # to the end: every caller in turn
        return piece

    def _read(self, texts: Sequence[str], *, query: bool) -> list[Embedded]:
        if isinstance(self._encoder, TokenEncoder):
            return self._encoder.read(texts, query=query)
        return [Embedded(vector) for vector in self._encoder.encode(texts, query=query)]

    def _work(self, guard: bool) -> None:
        for turn in count():
            taken = self._take(turn, guard=guard)
            if taken is None:
                return
            piece, query = taken
            began_s = time.monotonic()
            try:
                embedded = self._read([item.text for item in piece], query=query)
            except MemorydError as error:
                for job in {id(item.job): item.job for item in piece}.values():
                    self._fail(job, error)
                continue
            except Exception as error:  # noqa: BLE001  a worker outlives every text
                for job in {id(item.job): item.job for item in piece}.values():
                    self._fail(job, TextRefused(f"the text could not be embedded ({type(error).__name__})"))
                continue
            ended_s = time.monotonic()
            self._measures.measure(Quantity.MODEL, ended_s - began_s, "embeddings")
            if not query:
                self._rest_until_s = ended_s + REST * (ended_s - began_s)
            for item, vectors in zip(piece, embedded, strict=True):
                item.job.embedded[item.place] = vectors
            for job in {id(item.job): item.job for item in piece}.values():
                self._settle(job, sum(item.job is job for item in piece))

    def _settle(self, job: _Job, count: int) -> None:
        with self._ready:
            job.missing -= count
            done = job.missing == 0
        if done:
            _post(job, lambda future: future.set_result(job.embedded))

    @staticmethod
    def _fail(job: _Job, error: Exception) -> None:
        _post(job, lambda future: future.set_exception(error))


def _post(job: _Job, settle: Callable[[asyncio.Future[Any]], None]) -> None:
    def finish() -> None:
        if not job.future.done():
            settle(job.future)

    try:
        job.loop.call_soon_threadsafe(finish)
    except RuntimeError:
        return  # the loop has ended, and with it everyone who waited
