"""Erasing and moving notes: one, or all below a path."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.batching import READ_AT_ONCE, SLICE
from memoryd.domain.notes.keep import entry_now, may_erase, missing, refuse_token
from memoryd.domain.notes.reading import live, note_lock, note_pages, same_notes
from memoryd.domain.pipeline import Decision, answering, decide_and_commit
from memoryd.domain.ports import Ports
from memoryd.errors import Conflict, InvalidArgument, LimitExceeded, TrustTooLow
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import PURGE, ChangeSet
from memoryd.model.erasure import path_erased
from memoryd.model.note import DeletedNotes, MovedNotes, Note, check_path
from memoryd.model.note_change import NoteChange
from memoryd.model.scope import Owner

__all__ = ["delete_notes", "erase_notes", "move_notes"]


async def _named(
    owner: Owner, path: str, ports: Ports, now: datetime, *, recursive: bool, at_once: int = READ_AT_ONCE
) -> AsyncIterator[list[Note]]:
    """Yield the note of a path, and with recursive in parts all below it; those that have expired are left out."""
    store = ports.store.notes
    note = await live(owner, path, store, now) if path else None
    if note is not None:
        yield [note]
    if recursive:
        prefix = f"{path}/" if path else ""
        async for page in note_pages(owner, store, prefix=prefix, at_once=at_once, live_at=now):
            yield page


async def delete_notes(  # noqa: PLR0913  one argument for each field of the contract
    path: str,
    caller: Caller,
    ports: Ports,
    *,
    shared: bool,
    now: datetime,
    recursive: bool = False,
    missing_ok: bool = False,
    dry_run: bool = False,
) -> DeletedNotes:
    """Erase a note, or all below a path, for good; see DeleteNote in the contract."""
    owner = caller.writes_to(shared=shared)
    path = check_path(path) if path or not recursive else ""
    paths: list[str] = []
    count = 0
    async for notes in _named(owner, path, ports, now, recursive=recursive):
        _refuse_kept(notes, caller)
        paths += [note.path for note in notes[: limits.MAX_NAMED_IDS - len(paths)]]
        count += len(notes)
    if not count and not missing_ok:
        raise missing(path, shared=shared)

    def is_meant(note: Note) -> bool:
        _refuse_kept([note], caller)
        return True

    if count and not dry_run:
        paths, count = [], 0
        async for notes in _named(owner, path, ports, now, recursive=recursive):
            gone = await erase_notes(notes, ports, now=now, is_meant=is_meant, grant_id=caller.grant_id, by_path=True)
            paths += [note.path for note in gone[: limits.MAX_NAMED_IDS - len(paths)]]
            count += len(gone)
    return DeletedNotes(tuple(paths), count, ports.copies() if count else (), dry_run=dry_run)


async def erase_notes(
    notes: Sequence[Note],
    ports: Ports,
    *,
    now: datetime,
    is_meant: Callable[[Note], bool] = lambda _: True,
    grant_id: str = "",
    by_path: bool = False,
) -> list[Note]:
    """
    Erase notes of one owner in parts, where each is then, if it is what is meant; return those that went.

    With by_path someone has said so: no import brings a note of the path back.
    """
    gone: list[Note] = []
    for n in range(0, len(notes), SLICE):
        some = notes[n : n + SLICE]

        async def decide(some: Sequence[Note] = some) -> Decision[list[Note]]:
            there = [note for note in await same_notes(some, ports.store.notes) if is_meant(note)]
            changes = tuple(NoteChange(note, None) for note in there)
            erased = tuple(map(path_erased, there)) if by_path else ()
            change = ChangeSet(notes=changes, marks={PURGE: now}, erased=erased)
            return Decision(change if changes else None, answering(there))

        lock = note_lock(some[0].owner)
        went: list[Note] = await decide_and_commit([lock], decide, ports, now=now, grant_id=grant_id)
        gone += went
    return gone


def _refuse_kept(notes: Sequence[Note], caller: Caller) -> None:
    if not all(may_erase(note, caller) for note in notes):
        raise TrustTooLow("some notes are of higher trust, or of another user of the chat; they stay")


async def move_notes(
    path: str, new_path: str, caller: Caller, ports: Ports, *, shared: bool, now: datetime, recursive: bool = False
) -> MovedNotes:
    """Give a note, or all below a path, another path, in one transaction; see MoveNote in the contract."""
    owner = caller.writes_to(shared=shared)
    path, new_path = check_path(path), check_path(new_path, "new_path")
    refuse_token(new_path, "new_path", ports)
    if new_path == path or (recursive and new_path.startswith(f"{path}/")):
        raise InvalidArgument("new_path is path, or below it", field="new_path")

    async def decide() -> Decision[MovedNotes]:
        most = limits.MAX_MOVED_NOTES
        notes: list[Note] = []
        async for part in _named(owner, path, ports, now, recursive=recursive, at_once=most + 1):
            notes += part
            if len(notes) > most:
                raise LimitExceeded(
                    f"more than {most} notes would move; move parts of them", field="path", limit="notes"
                )
        if not notes:
            raise missing(path, shared=shared)
        _refuse_kept(notes, caller)
        changes = []
        for note in notes:
            moved = replace(note, path=check_path(new_path + note.path[len(path) :], "new_path"))
            taken = await ports.store.notes.get(owner, moved.path)
            if taken is not None and not taken.is_expired(now):
                raise Conflict(f"there is a note {moved.path!r} already; delete it first", field="new_path")
            if taken is not None:
                changes.append(NoteChange(taken, None))
            entry = await entry_now(moved, ports)
            moved = replace(moved, terms_length=0 if entry is None else len(entry.terms))
            changes.append(NoteChange(note, moved, entry=entry))
        paths = tuple(change.after.path for change in changes if change.after is not None)
        return Decision(ChangeSet(notes=tuple(changes)), answering(MovedNotes(paths, len(paths))))

    return await decide_and_commit([note_lock(owner)], decide, ports, now=now, grant_id=caller.grant_id)
