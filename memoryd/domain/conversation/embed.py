"""
A vector for every message, in the background.

How far it has come is a number in the store, written with the vectors themselves: a restart goes on where it was, and
nothing waits in memory. Of several daemons before one store each takes pages of its own of what waits. After a change
of model it begins again; until its turn has come a message is found by its words. Where no message waits for its
vector, long ones get those of their later windows, as far as another number says.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import accumulate

import numpy as np

from memoryd.domain.background import BackgroundWorker, message_of
from memoryd.domain.pages import caught_up, done, free, taken
from memoryd.domain.ports import Ports
from memoryd.embedding.windows import codes_of, later_windows
from memoryd.errors import Contended, TextRefused, Unavailable
from memoryd.index.analysis import embedded_text
from memoryd.model import limits
from memoryd.model.change import ChangeSet, ConversationChange, Embedding
from memoryd.model.conversation import Message, message_key
from memoryd.model.embedding import Embedded
from memoryd.model.scope import Owner
from memoryd.model.work import CounterName, Lease

__all__ = ["MessageEmbedder"]

PAGE = 128  # messages of one transaction
ATTEMPTS = 32  # to note a page as done, while other daemons note theirs
PART = 32  # messages that are embedded together
IDLE_S = 30.0  # so late is something noticed that another daemon appended
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0  # where nothing can be embedded or written now
# Of messages of 1 to 2 KB the beginning says what they are about: with windows they stand before what is asked for
# (Cranfield, of abstracts of that length: R@10 .463 without, .451 with)
LONG_MESSAGE_BYTES = 2000
LONG_PAGE, LONG_CHARACTERS = 8, 32_768  # long messages of one transaction, or one that is longer
MOST_CHARACTERS = 4096  # of a message: beyond the window of any model here, and tokenising more takes long
MOST_READ = limits.MAX_MESSAGE_CONTENT_BYTES  # characters of a message and its tool calls that get windows
WINDOWS_A_PART = 64  # of a long message, between which others get their vectors: 0.1 s
MESSAGES, WINDOWS = "messages:", "windows:"  # what the counters of a model begin with: up to which message it is done
LINE = "messages"  # the caller by whose name the texts wait


class MessageEmbedder:
    """Follows the messages of a store."""

    def __init__(self, ports: Ports, clock: Callable[[], datetime], tell: Callable[[str], None]) -> None:
        """Do nothing yet; `tell` is told, for the log, what went wrong."""
        self._ports = ports
        self._clock = clock
        self._tell = tell
        self.fault = self._long_fault = ""
        self._long_again_s, self._long_pause_s = 0.0, FIRST_PAUSE_S
        self._looked_at = 0
        """Up to which number no message is long that has no later windows."""
        self._holder = ports.new_id()
        """By which it leases its pages."""

    @property
    def _name(self) -> CounterName:
        return CounterName(f"{MESSAGES}{self._ports.embedder.fingerprint}")

    @property
    def _windows_name(self) -> CounterName:
        return CounterName(f"{WINDOWS}{self._ports.embedder.fingerprint}")

    async def pending(self) -> int:
        """Return how many messages wait for a vector; 0 where there is no model."""
        if not self._ports.embedder.fingerprint:
            return 0
        done = (await self._ports.store.work.counters()).get(self._name, 0)
        return (await self._ports.store.conversations.totals(done))[1]

    async def serve(self) -> None:
        """Embed what is appended, until it is cancelled; nothing where there is no model."""
        lag = self._ports.shared.lag
        if not self._ports.embedder.fingerprint:
            lag.is_held = True
            return
        await BackgroundWorker(
            step=self._next,
            pause_s=IDLE_S,
            tell=self._note_fault,
            describe=message_of,
            fault_pause_s=FIRST_PAUSE_S,
            longest_fault_pause_s=LONGEST_PAUSE_S,
            wake=lag.appended,
        ).serve()

    async def _next(self) -> bool:
        went_on = await self.step()
        self.fault, self._ports.shared.lag.is_held = self._long_fault, False
        return went_on or await self._long_if_due()

    def _note_fault(self, fault: str) -> None:
        self.fault, self._ports.shared.lag.is_held = fault, True
        self._tell(fault)

    async def _long_if_due(self) -> bool:
        """Take a step of long messages; a fault of it keeps no other message waiting."""
        if time.monotonic() < self._long_again_s:
            return False
        try:
            went_on = await self.step_of_long()
        except Exception as error:  # noqa: BLE001  as above
            self.fault = self._long_fault = message_of(error)
            self._tell(self.fault)
            self._long_again_s = time.monotonic() + self._long_pause_s
            self._long_pause_s = min(LONGEST_PAUSE_S, 2 * self._long_pause_s)
            return False
        self.fault, self._long_fault, self._long_pause_s = "", "", FIRST_PAUSE_S
        return went_on

    async def step(self) -> bool:
        """Embed and write the next messages; False if there are none."""
        ports, now = self._ports, self._clock()
        ports.shared.lag.appended.clear()
        counters, leases = await ports.store.work.counters(), await self._leases()
        known = counters.get(self._name)
        counter = known or 0
        moved = caught_up(self._name, counter, leases)
        if moved is not None:  # another daemon noted its page at the same time as what came before was
            with contextlib.suppress(Contended):
                await ports.store.commits.write(moved)
            return True
        after, until = free(self._name, counter, leases, now)
        page = await ports.store.conversations.numbered(after, limit=PAGE, until=until)
        ports.shared.lag.waiting = (await ports.store.conversations.totals(counter))[1] if page else 0
        if not page:
            return False
        place, mine = (after, page[-1][0]), None
        try:
            if known is None:  # vectors of another model go before the first of this one
                await ports.store.commits.write(self._begun(counters, leases))
            if ports.store.is_shared and len(page) > PART:  # fewer were appended here, and no one else is after them
                mine, taking = taken(self._name, counter, place, self._holder, leases, now)
                await ports.store.commits.write(taking)
        except Contended:  # another daemon has taken the page, or moved the counter
            return True
        began = time.perf_counter()
        messages = [message for _, message in page]
        parts = [messages[n : n + PART] for n in range(0, len(messages), PART)]
        embedded = [one for made in await asyncio.gather(*map(self._vectors, parts)) for one in made]
        if not await self._write(self._changes(messages, embedded, after), place, mine, counter):
            return True
        ports.shared.lag.done((message.owner for message in messages), max(0, ports.shared.lag.waiting - len(page)))
        ports.shared.lag.rate = 0.5 * ports.shared.lag.rate + 0.5 * len(page) / max(1e-3, time.perf_counter() - began)
        return True

    async def _leases(self) -> Mapping[str, Lease]:
        """Return what daemons have in hand; a daemon that holds the store alone leases nothing."""
        store = self._ports.store
        return await store.work.leases() if store.is_shared else {}

    async def _write(
        self, changes: Sequence[ChangeSet], place: tuple[int, int], mine: Lease | None, counter: int
    ) -> bool:
        """
        Write the vectors of a page, and note it as done; False where another daemon has done it meanwhile.

        `counter` is up to where all was done when the page was read.
        """
        store, commits = self._ports.store, self._ports.store.commits
        for attempt in range(ATTEMPTS):
            if store.is_shared or attempt:
                counter = (await store.work.counters()).get(self._name, 0)
            noted = done(self._name, counter, place, mine, await self._leases(), self._clock())
            if noted is None:
                return False
            try:
                await commits.write(*changes, noted)
            except Contended:  # another page was done at the same time, or a vector went with its message
                if attempt + 1 == ATTEMPTS:
                    raise
            else:
                return True
        raise AssertionError("unreachable: the last attempt raises")

    def _begun(self, counters: Collection[CounterName], leases: Mapping[str, Lease]) -> ChangeSet:
        """Return the change with which a model begins: what another one has made goes, and how far it had come."""
        own = {self._name, self._windows_name}
        others = tuple(name for name in counters if name.name.startswith((MESSAGES, WINDOWS)) and name not in own)
        return ChangeSet(
            counters={self._name: 0},
            counters_before={self._name: None},
            forget_counters=others,
            freed_leases=tuple(lease for name, lease in leases.items() if name.startswith((MESSAGES, WINDOWS))),
            message_vectors_of=self._ports.embedder.fingerprint,
        )

    def _changes(self, messages: Sequence[Message], embedded: Sequence[Embedded | None], after: int) -> list[ChangeSet]:
        """Return what gives messages past a number their vectors, by owner."""
        made: dict[Owner, list[Embedding]] = {}
        fingerprint = self._ports.embedder.fingerprint
        for message, vectors in zip(messages, embedded, strict=True):
            if vectors is not None:
                key = message_key(message.thread_id, message.seq)
                embedding = Embedding(
                    message.owner, key, vectors.vector, fingerprint, vectors.tokens, vectors.windows, message.id
                )
                made.setdefault(message.owner, []).append(embedding)
        return [
            ChangeSet(conversation=ConversationChange(owner, embeddings=tuple(some), embedded_after=after))
            for owner, some in made.items()
        ]

    async def step_of_long(self) -> bool:
        """Give the next long messages the vectors of their later windows; False if there are none."""
        store = self._ports.store
        counters = await store.work.counters()
        known, until = counters.get(self._windows_name), counters.get(self._name, 0)
        after = max(known or 0, self._looked_at)
        page = await store.conversations.numbered(after, limit=LONG_PAGE, until=until, above_bytes=LONG_MESSAGE_BYTES)
        if not page:
            self._looked_at = max(after, until)
            return False
        sizes = accumulate(len(message.words) for _, message in page)
        page = page[: max(1, sum(size <= LONG_CHARACTERS for size in sizes))]
        messages = [message for _, message in page]
        embedded = [await self._windows(message) for message in messages]
        moved = ChangeSet(counters={self._windows_name: page[-1][0]}, counters_before={self._windows_name: known})
        with contextlib.suppress(Contended):  # another daemon has made these vectors meanwhile
            await store.commits.write(*self._changes(messages, embedded, after), moved)
        return True

    async def _windows(self, message: Message) -> Embedded | None:
        """
        Return the vectors of a message with those of its later windows, if it has any.

        Messages that are appended meanwhile get their vectors between two parts of it.
        """
        text = embedded_text(message.voice, message.words)
        if len(text.encode()) <= LONG_MESSAGE_BYTES:  # what else is stored with it is long
            return None
        texts = [text[:MOST_CHARACTERS], *await asyncio.to_thread(later_windows, text[:MOST_READ])]
        made: list[Embedded] = []
        for n in range(0, len(texts), WINDOWS_A_PART):
            while self._ports.shared.lag.appended.is_set() and await self.step():
                pass
            part = await self._or_none(texts[n : n + WINDOWS_A_PART], message.owner)
            if part is None:
                return None
            made += part
        return (
            replace(made[0], windows=codes_of(np.stack([embedded.vector for embedded in made[1:]])))
            if made[1:]
            else None
        )

    async def _or_none(self, texts: Sequence[str], owner: Owner) -> list[Embedded] | None:
        """Return texts of one message as the model sees them; None where it is they that it does not take."""
        try:
            made = await self._ports.embedder.documents(texts, caller=owner, background=True, whole=False)
        except TextRefused:
            return None
        except Unavailable:
            await self._ports.embedder.documents(["ping"], caller=LINE, background=True, whole=False)
            return None  # others are taken
        return [embedded for embedded in made if embedded is not None]

    async def _vectors(self, part: Sequence[Message]) -> list[Embedded | None]:
        """Return the vectors of some messages; None for a text that the model refuses."""
        texts = [embedded_text(message.voice, message.words[:MOST_CHARACTERS]) for message in part]
        try:
            return await self._ports.embedder.documents(texts, caller=LINE, background=True, whole=False)
        except TextRefused:  # one text keeps all from being embedded
            return [await self._alone(text) for text in texts]

    async def _alone(self, text: str) -> Embedded | None:
        try:
            return (await self._ports.embedder.documents([text], caller=LINE, background=True, whole=False))[0]
        except TextRefused:
            return None
