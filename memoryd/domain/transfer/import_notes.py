"""Importing notes of another system: with their times, where there is none of that path."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.notes.finding import embedded_note, entry_of
from memoryd.domain.notes.keep import check_room, holds_credential
from memoryd.domain.notes.reading import note_lock
from memoryd.domain.pipeline import Decision, answering, decide_and_commit
from memoryd.domain.ports import Ports
from memoryd.domain.transfer.erased import ever_erased
from memoryd.errors import InvalidArgument, in_part
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet
from memoryd.model.embedding import Embedded
from memoryd.model.erasure import ErasedKind, ErasedThing
from memoryd.model.imported import ImportedNote, ImportOutcome, ImportReport, ImportResult, imported_id
from memoryd.model.note import Note, NoteVersion
from memoryd.model.note_change import NoteChange
from memoryd.model.receipt import Rejection
from memoryd.model.scope import Owner
from memoryd.model.times import EPOCH
from memoryd.model.trust import Trust
from memoryd.model.validation import check_batch

__all__ = ["import_notes"]

BY_PATH = "\0note"  # no name of an import
"""The import by which ids of notes are made: a path is one note's, whatever brings it."""


async def import_notes(
    items: Sequence[ImportedNote], caller: Caller, ports: Ports, *, shared: bool, now: datetime, dry_run: bool = False
) -> ImportReport:
    """Store notes whose path is free, or tell what would become of them; see ImportNotes in the contract."""
    caller = replace(caller, trust=Trust.IMPORTED)
    owner = caller.writes_to(shared=shared)
    _check(items, now)
    if not ports.policy.of(caller.agent_id).enabled:
        why = ImportResult(ImportOutcome.REJECTED, rejection=Rejection.DISABLED.value)
        return ImportReport((why,) * len(items), dry_run)
    ids = [imported_id(owner, BY_PATH, item.draft.path) for item in items]
    settled = await _settled(items, ids, owner, caller, ports, now)
    searched = [n for n, item in enumerate(items) if item.draft.is_searched and n not in settled and not dry_run]
    drafts = (items[n].draft for n in searched)
    embedding = (embedded_note(draft.path, draft.text, caller, ports) for draft in drafts)
    made = dict(zip(searched, await asyncio.gather(*embedding), strict=True))

    async def decide() -> Decision[list[ImportResult]]:
        known = await _known(items, ids, owner, ports)
        results, changes = [], []
        for n, item in enumerate(items):
            there = known[n]
            if n not in settled and there is not None and not there.is_expired(now):
                settled[n] = await _kept(there, item, ports)
            if n in settled:
                results.append(settled[n])
                continue
            results.append(ImportResult(ImportOutcome.STORED, ids[n]))
            changes.append(await _change(item, ids[n], there, owner, made.get(n), ports, now))
        if changes:
            await check_room(len(changes), owner, ports, now)
        return Decision(ChangeSet(notes=tuple(changes)) if changes and not dry_run else None, answering(results))

    results = await decide_and_commit([note_lock(owner)], decide, ports, now=now, grant_id="")
    return ImportReport(tuple(results), dry_run)


async def _known(items: Sequence[ImportedNote], ids: Sequence[str], owner: Owner, ports: Ports) -> list[Note | None]:
    """Return for each item the note of its path, or the one that it became and that was moved; expired ones too."""
    moved = {note.id: note for note in await ports.store.notes.with_ids(owner, ids)}
    there = [await ports.store.notes.get(owner, item.draft.path) for item in items]
    return [note or moved.get(note_id) for note, note_id in zip(there, ids, strict=True)]


async def _settled(
    items: Sequence[ImportedNote],
    ids: Sequence[str],
    owner: Owner,
    caller: Caller,
    ports: Ports,
    now: datetime,
) -> dict[int, ImportResult]:
    """Return what becomes of the items that are not stored, by their places, as far as it is known before."""
    settled: dict[int, ImportResult] = {}
    is_erased = None
    for n, (item, there) in enumerate(zip(items, await _known(items, ids, owner, ports), strict=True)):
        if there is not None and not there.is_expired(now):
            settled[n] = await _kept(there, item, ports)
            continue
        is_erased = is_erased or await ever_erased(ports)
        gone = (
            (ErasedThing(ErasedKind.OWNER, owner), item.create_time or now),
            (ErasedThing(ErasedKind.NOTE, owner, id=ids[n]), EPOCH),
            (ErasedThing(ErasedKind.NOTE, owner, "/", item.draft.path), EPOCH),
        )
        if there is None and is_erased(gone):
            settled[n] = ImportResult(ImportOutcome.ERASED)
        elif await holds_credential(item.draft, caller, ports, now):
            settled[n] = ImportResult(ImportOutcome.REJECTED, rejection=Rejection.SECRET.value)
    return settled


async def _kept(there: Note, item: ImportedNote, ports: Ports) -> ImportResult:
    """Return what becomes of an item whose note is there: the same, or another, which stays."""
    text = (await ports.store.notes.texts(there.owner, [there.now])).get(there.now.id)
    is_same = text == item.draft.text and there.now.is_json is item.draft.is_json
    return ImportResult(ImportOutcome.KNOWN if is_same else ImportOutcome.KEPT, there.id)


async def _change(
    item: ImportedNote,
    note_id: str,
    before: Note | None,
    owner: Owner,
    made: Embedded | None,
    ports: Ports,
    now: datetime,
) -> NoteChange:
    """Return the note of an item, in place of an expired one if there is one."""
    draft = item.draft
    created = item.create_time or item.update_time or now
    version = NoteVersion(
        1, item.update_time or created, len(draft.text.encode()), draft.is_json, Trust.IMPORTED, id=ports.new_id()
    )
    note = Note(
        id=note_id,
        agent_id=owner.agent_id,
        scope=owner.scope,
        path=draft.path,
        create_time=created,
        versions=(version,),
        is_searched=draft.is_searched,
    )
    if not draft.is_searched:
        return NoteChange(before, note, {version.id: draft.text}, loses_vector=before is not None)
    entry = await entry_of(note, draft.text, made, ports.embedder.fingerprint)
    note = replace(note, terms_length=len(entry.terms))
    return NoteChange(before, note, {version.id: draft.text}, entry, loses_vector=before is not None)


def _check(items: Sequence[ImportedNote], now: datetime) -> None:
    """Check a call as a whole; InvalidArgument or LimitExceeded names what is wrong."""
    check_batch(len(items), "notes", "import")
    seen: set[str] = set()
    for n, item in enumerate(items):
        with in_part(f"notes[{n}]"):
            if item.draft.path in seen:
                raise InvalidArgument("path comes twice", field="path")
            for name, time in (("create_time", item.create_time), ("update_time", item.update_time)):
                if time is not None and time > now:
                    raise InvalidArgument(f"{name} is in the future", field=name)
        seen.add(item.draft.path)
