"""Notes whose texts are meant: those that name someone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from datetime import datetime

from memoryd.domain.notes.erase import notes_of
from memoryd.domain.notes.keep import note_lock
from memoryd.domain.pipeline import Decision, decide_and_commit, no_answer
from memoryd.domain.ports import Ports
from memoryd.model import limits
from memoryd.model.change import PURGE, ChangeSet
from memoryd.model.note import Note, NoteChange
from memoryd.model.scope import Owner

__all__ = ["erase_meant", "meant_notes"]

Meant = Callable[[str], bool]


async def meant_notes(owner: Owner, is_meant: Meant, ports: Ports) -> list[tuple[Note, frozenset[str]]]:
    """Return the notes of an owner with a version whose text is meant, and the ids of those versions."""
    found = []
    async for part in _parts(await notes_of(owner, ports)):
        versions = [version for note in part for version in note.versions]
        texts = await ports.store.notes.texts(owner, versions)
        meant = await asyncio.to_thread(_meant, texts, is_meant)  # they may be long
        for note in part:
            ids = meant.intersection(version.id for version in note.versions)
            if ids or is_meant(note.path):
                found.append((note, frozenset(ids)))
    return found


def _meant(texts: Mapping[str, str], is_meant: Meant) -> frozenset[str]:
    return frozenset(one for one, text in texts.items() if is_meant(text))


async def _parts(notes: list[Note]) -> AsyncIterator[list[Note]]:
    """Yield notes in parts whose texts are read at once."""
    part: list[Note] = []
    size = 0
    for note in notes:
        of_note = sum(version.text_bytes for version in note.versions)
        if part and size + of_note > limits.MAX_FOUND_BYTES:
            yield part
            part, size = [], 0
        part.append(note)
        size += of_note
    if part:
        yield part


async def erase_meant(owner: Owner, is_meant: Meant, ports: Ports, *, now: datetime, grant_id: str = "") -> None:
    """Erase the notes of an owner whose text or path is meant; of others the former versions that are."""
    for seen, ids in await meant_notes(owner, is_meant, ports):

        async def decide(seen: Note = seen, ids: frozenset[str] = ids) -> Decision[None]:
            known = await ports.store.notes.get(owner, seen.path)
            if known is None or known.id != seen.id:
                return Decision(None, no_answer)
            left = tuple(version for version in known.versions if version.id not in ids)
            goes = not left or left[0] != known.now or is_meant(known.path)
            change = NoteChange(known, None if goes else replace(known, versions=left))
            return Decision(ChangeSet(notes=(change,), marks={PURGE: now}), no_answer)

        await decide_and_commit([note_lock(owner)], decide, ports, now=now, grant_id=grant_id)
