"""What notes are found by: words and vectors of their beginning, with the path in front."""

from __future__ import annotations

import asyncio
import contextlib

from memoryd.domain.completion import abandonable
from memoryd.domain.ports import Ports
from memoryd.errors import TextRefused, Unavailable
from memoryd.index.analysis import analyse, embedded_text, indexed_text
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import Entry
from memoryd.model.embedding import Embedded
from memoryd.model.note import Note

__all__ = ["embedded_note", "entry_of", "text_to_embed"]

ON_LOOP = 4096  # characters whose words are read on the event loop (3 ms); more goes to a thread


def text_to_embed(path: str, text: str) -> str:
    """Return what a model reads of a note."""
    return embedded_text(path.replace("/", " "), text[: limits.MAX_CONTENT_BYTES])


async def embedded_note(path: str, text: str, caller: Caller, ports: Ports) -> Embedded | None:
    """Return a note as the model sees it; None where it cannot now: the words find it, and vectors come later."""
    with contextlib.suppress(Unavailable, TextRefused):
        made = await abandonable(ports.embedder.documents([text_to_embed(path, text)], caller=caller.turn))
        return made[0]
    return None


async def entry_of(note: Note, text: str, made: Embedded | None, fingerprint: str) -> Entry:
    """Return what an index holds of a note; without a vector it keeps the one that it has."""
    seen = text[: limits.MAX_NOTE_SEARCHED]
    words = indexed_text(note.update_time, "", (), f"{note.path.replace('/', ' ')} {seen}")
    terms = " ".join(analyse(words) if len(words) <= ON_LOOP else await asyncio.to_thread(analyse, words))
    memory = note.as_memory(text[: limits.MAX_CONTENT_BYTES])
    if made is None:
        return Entry(memory, terms)
    return Entry(memory, terms, made.vector, fingerprint, made.tokens, made.windows)
