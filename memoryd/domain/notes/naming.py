"""Notes whose texts are meant: those that name someone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from memoryd.domain.batching import SLICE, in_parts
from memoryd.domain.notes.reading import note_lock, note_pages, same_notes
from memoryd.domain.pipeline import Decision, decide_and_commit, no_answer
from memoryd.domain.ports import Ports
from memoryd.model import limits
from memoryd.model.change import PURGE, ChangeSet
from memoryd.model.erasure import path_erased, version_erased
from memoryd.model.note import Note
from memoryd.model.note_change import NoteChange
from memoryd.model.scope import Owner

__all__ = ["erase_meant", "meant_notes"]

Meant = Callable[[str], bool]


async def meant_notes(owner: Owner, is_meant: Meant, ports: Ports) -> list[tuple[Note, frozenset[str]]]:
    """Return the notes of an owner with a version whose text is meant, and the ids of those versions."""
    found = []
    async for page in note_pages(owner, ports.store.notes, at_once=SLICE):
        for part in in_parts(page, _all_bytes, limits.MAX_FOUND_BYTES):
            versions = [version for note in part for version in note.versions]
            texts = await ports.store.notes.texts(owner, versions)
            found += await asyncio.to_thread(_meant, part, texts, is_meant)  # they may be long
    return found


def _all_bytes(note: Note) -> int:
    return sum(version.text_bytes for version in note.versions)


def _meant(notes: list[Note], texts: Mapping[str, str], is_meant: Meant) -> list[tuple[Note, frozenset[str]]]:
    found = []
    for note in notes:
        ids = frozenset(version.id for version in note.versions if is_meant(texts.get(version.id, "")))
        if ids or is_meant(note.path):
            found.append((note, ids))
    return found


async def erase_meant(
    owner: Owner,
    is_meant: Meant,
    ports: Ports,
    *,
    now: datetime,
    check: Callable[[Note], None] = lambda _: None,
    grant_id: str = "",
) -> None:
    """
    Erase the notes of an owner whose text or path is meant; of others the former versions that are.

    Raises what `check` raises of a note as it is then; what was erased before stays so.
    """
    for seen, ids in await meant_notes(owner, is_meant, ports):

        async def decide(seen: Note = seen, ids: frozenset[str] = ids) -> Decision[None]:
            there = await same_notes([seen], ports.store.notes)
            if not there:
                return Decision(None, no_answer)
            known = there[0]
            check(known)
            left = tuple(version for version in known.versions if version.id not in ids)
            goes = not left or left[0] != known.now or is_meant(known.path)
            change = NoteChange(known, None if goes else replace(known, versions=left))
            erased = (
                (path_erased(known),)
                if goes
                else tuple(version_erased(known, version) for version in change.gone_versions)
            )
            return Decision(ChangeSet(notes=(change,), erased=erased, marks={PURGE: now}), no_answer)

        await decide_and_commit([note_lock(owner)], decide, ports, now=now, grant_id=grant_id)
