"""
A vector of the model in use for every memory: in the background, page after page, each durable by itself.

What is still to do is what the store says of its rows, so it goes on after a restart where it was. Until its turn has
come a memory is found by its words; its old vector is compared with nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from memoryd.domain.background import BackgroundWorker, message_of
from memoryd.domain.claims import claim_name, claimed
from memoryd.domain.notes.finding import entry_of, text_to_embed
from memoryd.domain.notes.reading import note_lock
from memoryd.domain.pipeline import Decision, decide_and_commit, no_answer
from memoryd.domain.ports import Ports
from memoryd.errors import TextRefused
from memoryd.index.analysis import embedded_text
from memoryd.model.change import ChangeSet, Embedding
from memoryd.model.embedding import Embedded
from memoryd.model.memory import Memory
from memoryd.model.note import Note
from memoryd.model.note_change import NoteChange
from memoryd.model.reports import Reembedding
from memoryd.model.scope import Owner
from memoryd.store.memories import MemorySelector, owner_place

__all__ = ["Reembedder"]

PAGE = 256  # memories of one transaction: 13 to 19 ms of the writer, measured in 20,000 and 100,000 memories
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0  # where nothing can be embedded or written now
PART = 32  # memories that are embedded together: where one of them is refused, or the model fails, the others are not
OWNERS = 16  # of one transaction, as the locks of all are held until it is written
LOOK_AGAIN_S = 2.0  # for pages that other daemons had in hand
LINE = "reembedding"  # the caller by whose name the texts wait


class Reembedder:
    """One pass at a time over all memories without a current vector."""

    def __init__(self, ports: Ports, clock: Callable[[], datetime], tell: Callable[[str, Reembedding], None]) -> None:
        """Do nothing yet; `tell` is told, for the log, when a pass begins, pauses and ends."""
        self._ports = ports
        self._clock = clock
        self._tell = tell
        self._wanted = asyncio.Event()
        self._resumed = asyncio.Event()
        self._pending = 0  # as it was last counted
        self._running = self._is_begun = False
        self._done = self._failed = self._writing = 0
        self._fault = self._after = self._after_note = ""
        self._holder = ports.new_id()
        self._is_shared_out = False
        """Whether others had a page of this pass in hand."""

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
        return self._told(await self.pending())

    def _told(self, pending: int = 0) -> Reembedding:
        return Reembedding(pending, self._done, self._failed, self.running, self._fault)

    def start(self) -> None:
        """Let `serve` begin a pass unless one is under way, or end its pause; nothing where there is no model."""
        if self._running:
            self._resumed.set()
        elif self._ports.embedder.fingerprint:
            self._wanted.set()

    async def serve(self) -> None:
        """Make the passes that are asked for, until it is cancelled; what goes wrong may be the store or the model."""
        worker = BackgroundWorker(
            step=self._step,
            pause_s=None,
            wake=self._wanted,
            resume=self._resumed,
            tell=self._pause,
            describe=message_of,
            fault_pause_s=FIRST_PAUSE_S,
            longest_fault_pause_s=LONGEST_PAUSE_S,
        )
        try:
            await worker.serve(begins_with_pause=True)
        finally:
            self._running = False

    async def _step(self) -> bool:
        """Begin a pass, or go on with it; return whether there is more to do."""
        if not self._running:
            self._running, self._is_begun = True, False
            self._wanted.clear()
            self._done = self._failed = 0
            self._fault = self._after = self._after_note = ""
            self._is_shared_out = False
        if not self._is_begun:
            self._pending = await self.pending()
            self._tell("reembedding", self._told(self._pending))
            self._is_begun = True
        goes_on = await self._page()
        self._fault = ""
        if not goes_on:
            self._tell("reembedded", self._told())
            self._running = False
        return goes_on

    def _pause(self, fault: str) -> None:
        self._fault = fault
        self._tell("reembedding_paused", self._told(max(0, self._pending - self._done - self._failed)))

    async def _page(self) -> bool:
        """
        Embed and write the next memories, then notes; False if there are none.

        What was made is written also where a part could not be made now; that is raised then, and asked for again. Of
        several daemons each takes pages of its own.
        """
        fingerprint = self._ports.embedder.fingerprint
        page = await self._ports.store.memories.scan(
            MemorySelector(not_fingerprint=fingerprint),
            limit=PAGE,
            after=self._after,
        )
        if not page:
            return await self._end_of_memories()
        place = owner_place(page[-1])
        name = claim_name(LINE, (fingerprint, place))
        async with claimed(name, self._holder, self._ports.store, self._clock) as is_mine:
            if not is_mine:  # another daemon has it in hand
                self._after, self._is_shared_out = place, True
                return True
            await self._embed_page(page)
        return True

    async def _end_of_memories(self) -> bool:
        """Go on with notes; False at the end. What others had in hand is looked for again, until it is done."""
        if self._is_shared_out and await self.pending() > self._failed:
            self._after, self._is_shared_out = "", False
            await asyncio.sleep(LOOK_AGAIN_S)
            return True
        name = claim_name(LINE, "notes")
        async with claimed(name, self._holder, self._ports.store, self._clock) as is_mine:
            return is_mine and await self._note_page()

    async def _embed_page(self, page: Sequence[Memory]) -> None:
        """Embed and write memories; what cannot be made now is raised when the rest is written."""
        purges = {owner: await self._purge_seq(owner) for owner in {memory.owner for memory in page}}
        parts = [page[n : n + PART] for n in range(0, len(page), PART)]
        answers = await asyncio.gather(*map(self._embedded, parts), return_exceptions=True)
        made: list[Embedding] = []
        fault: BaseException | None = None
        after, failed = self._after, 0
        for part, answer in zip(parts, answers, strict=True):
            if isinstance(answer, BaseException):
                fault = fault or answer
                continue
            made += answer
            if fault is None:
                after = owner_place(part[-1])
                failed += len(part) - len(answer)
        by_owner = sorted(made, key=lambda embedding: repr(embedding.owner))
        owners = list(dict.fromkeys(embedding.owner for embedding in by_owner))
        for n in range(0, len(owners), OWNERS):
            some = {*owners[n : n + OWNERS]}
            await self._write([embedding for embedding in by_owner if embedding.owner in some], purges)
        self._after = after
        self._failed += failed
        if fault is not None:
            raise fault

    async def _note_page(self) -> bool:
        """Embed and write the next notes, once all memories are done; False if there are none."""
        ports = self._ports
        fingerprint, after = ports.embedder.fingerprint, self._after_note
        notes = await ports.store.notes.unembedded(fingerprint, limit=PART, after=after)
        if not notes:
            return False
        for note in notes:
            text = (await ports.store.notes.texts(note.owner, [note.now])).get(note.now.id, "")
            made = await self._alone(text_to_embed(note.path, text))
            self._after_note = note.id
            if made is None:
                self._failed += 1
                continue

            async def decide(note: Note = note, text: str = text, made: Embedded = made) -> Decision[None]:
                known = await ports.store.notes.get(note.owner, note.path)
                if known is None or (known.id, known.now) != (note.id, note.now) or not known.is_searched:
                    return Decision(None, no_answer)
                entry = await entry_of(known, text, made, fingerprint)
                return Decision(ChangeSet(notes=(NoteChange(known, known, entry=entry),)), no_answer)

            await decide_and_commit([note_lock(note.owner)], decide, ports, now=self._clock(), grant_id="")
            self._done += 1
        return True

    async def _purge_seq(self, owner: Owner) -> int:
        return (await self._ports.store.commits.memories.head(owner)).purge_seq

    async def _embedded(self, part: Sequence[Memory]) -> list[Embedding]:
        """Return the new vectors of some memories, without those whose text the model refuses."""
        texts = [embedded_text(memory.source.speaker, memory.content) for memory in part]
        try:
            embedded = await self._ports.embedder.documents(texts, caller=LINE, background=True)
        except TextRefused:  # one text keeps all from being embedded
            embedded = [await self._alone(text) for text in texts]
        fingerprint = self._ports.embedder.fingerprint
        return [
            Embedding(memory.owner, memory.id, made.vector, fingerprint, made.tokens, made.windows)
            for memory, made in zip(part, embedded, strict=True)
            if made is not None
        ]

    async def _alone(self, text: str) -> Embedded | None:
        try:
            return (await self._ports.embedder.documents([text], caller=LINE, background=True))[0]
        except TextRefused:
            return None

    async def _write(self, made: Sequence[Embedding], purges: Mapping[Owner, int]) -> None:
        """Write vectors of memories that are still there, under the locks of their owners."""

        async def decide() -> Decision[None]:
            embeddings: list[Embedding] = []
            for owner in {embedding.owner for embedding in made}:
                mine = [embedding for embedding in made if embedding.owner == owner]
                if await self._purge_seq(owner) != purges[owner]:  # something was purged since they were read
                    known = await self._ports.store.memories.entries(owner, [embedding.memory_id for embedding in mine])
                    there = {entry.memory.id for entry in known}
                    mine = [embedding for embedding in mine if embedding.memory_id in there]
                embeddings += mine
            self._writing = len(embeddings)
            return Decision(ChangeSet(embeddings=tuple(embeddings)) if embeddings else None, no_answer)

        owners = {embedding.owner for embedding in made}
        await decide_and_commit(owners, decide, self._ports, now=self._clock(), grant_id="")
        self._done += self._writing
