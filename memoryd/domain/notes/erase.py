"""Erasing and moving notes: one, or all below a path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.batching import READ_AT_ONCE, SLICE
from memoryd.domain.notes.keep import live, missing, note_lock
from memoryd.domain.pipeline import Decision, answering, decide_and_commit, no_answer
from memoryd.domain.ports import Ports
from memoryd.errors import Conflict, InvalidArgument, LimitExceeded, TrustTooLow
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import PURGE, ChangeSet
from memoryd.model.note import DeletedNotes, MovedNotes, Note, NoteChange, check_path
from memoryd.model.scope import Owner

__all__ = ["delete_notes", "erase_notes", "may_erase", "move_notes", "notes_of"]


async def notes_of(owner: Owner, ports: Ports, *, prefix: str = "") -> list[Note]:
    """Return all notes of an owner whose path begins so, also those that have expired, by path."""
    notes: list[Note] = []
    while page := await ports.store.notes.page(
        owner, prefix=prefix, after=notes[-1].path if notes else "", limit=READ_AT_ONCE
    ):
        notes += page
    return notes


async def _named(owner: Owner, path: str, ports: Ports, now: datetime, *, recursive: bool) -> list[Note]:
    """Return the note of a path, and with recursive all below it; those that have expired are left out."""
    note = await live(owner, path, ports, now) if path else None
    below = await notes_of(owner, ports, prefix=f"{path}/" if path else "") if recursive else []
    return [*([note] if note is not None else []), *(one for one in below if not one.is_expired(now))]


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
    notes = await _named(owner, path, ports, now, recursive=recursive)
    if not notes and not missing_ok:
        raise missing(path, shared=shared)
    _refuse_kept(notes, caller)
    paths = tuple(note.path for note in notes[: limits.MAX_NAMED_IDS])
    told = DeletedNotes(paths, len(notes), ports.copies() if notes else (), dry_run=dry_run)

    def is_meant(note: Note) -> bool:
        _refuse_kept([note], caller)
        return True

    if not dry_run:
        await erase_notes(notes, ports, now=now, is_meant=is_meant, grant_id=caller.grant_id)
    return told


async def erase_notes(
    notes: Sequence[Note],
    ports: Ports,
    *,
    now: datetime,
    is_meant: Callable[[Note], bool] = lambda _: True,
    grant_id: str = "",
) -> None:
    """Erase notes of one owner in parts, each if it is there still and, as it is then, what is meant."""
    for n in range(0, len(notes), SLICE):
        some = notes[n : n + SLICE]

        async def decide(some: Sequence[Note] = some) -> Decision[None]:
            known = [await ports.store.notes.get(note.owner, note.path) for note in some]
            changes = tuple(
                NoteChange(one, None)
                for one, seen in zip(known, some, strict=True)
                if one is not None and one.id == seen.id and is_meant(one)
            )
            return Decision(ChangeSet(notes=changes, marks={PURGE: now}) if changes else None, no_answer)

        await decide_and_commit([note_lock(some[0].owner)], decide, ports, now=now, grant_id=grant_id)


def may_erase(note: Note, caller: Caller) -> bool:
    """Whether a caller may erase a note: no version is of higher trust, or of another user of the chat."""
    is_among_others = caller.trust.is_sandbox and note.scope.user_id is None
    return not any(
        version.trust.outranks(caller.trust) or (is_among_others and version.author != (caller.user_id or ""))
        for version in note.versions
    )


def _refuse_kept(notes: Sequence[Note], caller: Caller) -> None:
    if not all(may_erase(note, caller) for note in notes):
        raise TrustTooLow("some notes are of higher trust, or of another user of the chat; they stay")


async def move_notes(
    path: str, new_path: str, caller: Caller, ports: Ports, *, shared: bool, now: datetime, recursive: bool = False
) -> MovedNotes:
    """Give a note, or all below a path, another path, in one transaction; see MoveNote in the contract."""
    owner = caller.writes_to(shared=shared)
    path, new_path = check_path(path), check_path(new_path, "new_path")
    if new_path == path or (recursive and new_path.startswith(f"{path}/")):
        raise InvalidArgument("new_path is path, or below it", field="new_path")

    async def decide() -> Decision[MovedNotes]:
        notes = await _named(owner, path, ports, now, recursive=recursive)
        if not notes:
            raise missing(path, shared=shared)
        if len(notes) > limits.MAX_NAMED_IDS:
            raise LimitExceeded(
                f"{len(notes)} notes would move; the limit is {limits.MAX_NAMED_IDS}", field="path", limit="notes"
            )
        if any(note.now.trust.outranks(caller.trust) for note in notes):
            raise TrustTooLow("some notes are of higher trust; they stay where they are")
        changes = []
        for note in notes:
            moved = replace(note, path=check_path(new_path + note.path[len(path) :], "new_path"))
            taken = await ports.store.notes.get(owner, moved.path)
            if taken is not None and not taken.is_expired(now):
                raise Conflict(f"there is a note {moved.path!r} already; delete it first", field="new_path")
            if taken is not None:
                changes.append(NoteChange(taken, None))
            changes.append(NoteChange(note, moved))
        paths = tuple(change.after.path for change in changes if change.after is not None)
        return Decision(ChangeSet(notes=tuple(changes)), answering(MovedNotes(paths, len(paths))))

    return await decide_and_commit([note_lock(owner)], decide, ports, now=now, grant_id=caller.grant_id)
