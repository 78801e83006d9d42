"""Putting, reading and listing notes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from memoryd.domain.completion import is_abandoned
from memoryd.domain.pipeline import Decision, answering, decide_and_commit
from memoryd.domain.ports import Ports
from memoryd.domain.quotas import check_texts, quota_lock
from memoryd.domain.retrieval.page_token import bound_to, page_token_after, read_page_token
from memoryd.errors import Conflict, InvalidArgument, LimitExceeded, NoteNotFound, TrustTooLow, Unavailable
from memoryd.knowledge.secrets import Given
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet
from memoryd.model.note import Note, NoteChange, NoteDraft, NotePage, NoteVersion, check_path, check_prefix
from memoryd.model.scope import Owner
from memoryd.model.validation import check_count
from memoryd.store.memories import Cursor

__all__ = ["get_note", "list_notes", "live", "note_lock", "put_note"]

ON_LOOP = 1024  # characters that are looked through on the event loop; more goes to a thread
LEAST_MOVE = 10  # of a time to expire after access: a read that moves it by less than a tenth writes nothing


def note_lock(owner: Owner) -> tuple[str, Owner]:
    """Return what is held while a change of the notes of an owner is decided."""
    return ("notes", owner)


async def live(owner: Owner, path: str, ports: Ports, now: datetime) -> Note | None:
    """Return a note that has not expired; None if there is none."""
    note = await ports.store.notes.get(owner, path)
    return None if note is None or note.is_expired(now) else note


async def put_note(draft: NoteDraft, caller: Caller, ports: Ports, *, shared: bool, now: datetime) -> tuple[Note, bool]:
    """Put a note, and return it and whether it is new; see PutNote in the contract."""
    owner, author = caller.writes_to(shared=shared), caller.user_id or "" if shared else ""
    await _refuse_secrets(draft, caller, ports, now)

    async def decide() -> Decision[tuple[Note, bool]]:
        known = await ports.store.notes.get(owner, draft.path)
        there = None if known is None or known.is_expired(now) else known
        if there is not None and there.now.trust.outranks(caller.trust):
            raise TrustTooLow("the note is of higher trust; it stays as it is")
        revision = 0 if there is None else there.revision
        if draft.expected_revision not in {None, revision}:
            raise Conflict(
                f"the note has revision {revision}, not {draft.expected_revision}; read it again",
                field="expected_revision",
            )
        is_same = there is not None and await _says(there, draft, ports)
        if there is not None and is_same:
            note = there
        elif there is not None:
            new = _version(draft, revision + 1, author, caller, ports, now)
            note = replace(there, versions=(new, *there.versions)[: limits.MAX_NOTE_VERSIONS])
        else:
            await _check_room(owner, ports)
            note = Note(
                id=ports.new_id(),
                agent_id=owner.agent_id,
                scope=owner.scope,
                path=draft.path,
                create_time=now,
                versions=(_version(draft, 1, author, caller, ports, now),),
            )
        note = replace(note, expire_time=draft.expires(now), expire_after_access_s=draft.expire_after_access_s)
        answer = answering((note, there is None))
        if note == there:
            return Decision(None, answer)
        await check_texts(note.grant_texts, () if known is None else known.grant_texts, caller, ports.store, now)
        return Decision(
            ChangeSet(notes=(NoteChange(known, note, {} if is_same else {note.now.id: draft.text}),)), answer
        )

    locks = [note_lock(owner), *quota_lock(caller)]
    return await decide_and_commit(locks, decide, ports, now=now, grant_id=caller.grant_id)


def _version(draft: NoteDraft, revision: int, author: str, caller: Caller, ports: Ports, now: datetime) -> NoteVersion:
    size = len(draft.text.encode())
    return NoteVersion(revision, now, size, draft.is_json, caller.trust, caller.grant_id, author, ports.new_id())


async def _says(note: Note, draft: NoteDraft, ports: Ports) -> bool:
    """Whether a note says already what is put."""
    if note.now.is_json is not draft.is_json or note.now.text_bytes != len(draft.text.encode()):
        return False
    return (await ports.store.notes.texts(note.owner, [note.now])).get(note.now.id) == draft.text


async def _check_room(owner: Owner, ports: Ports) -> None:
    if await ports.store.notes.count(owner) >= limits.MAX_NOTES:
        raise LimitExceeded(f"there are {limits.MAX_NOTES} notes; delete some", limit="notes")


async def _refuse_secrets(draft: NoteDraft, caller: Caller, ports: Ports, now: datetime) -> None:
    """Raise InvalidArgument where a note holds a credential, or is named by one."""
    if any(map(ports.guards.is_token, draft.path.split("/"))):
        raise InvalidArgument("path holds a credential; name the note otherwise", field="path")
    is_gone = is_abandoned()

    def holds() -> bool:
        masker = ports.guards.masker(len(draft.text), is_gone)
        return (masker.mask_json if draft.is_json else masker.mask)(draft.text) != draft.text

    if len(draft.text) <= ON_LOOP:
        held = holds()
    else:
        whose = caller.grant_id or caller.visibility.owners[0]
        async with ports.shared.locks.hold([("preparing", whose)]):  # one of each caller, so that others have turns
            ports.guards.grants.check(caller.grant_id, now)
            try:
                held = await asyncio.get_running_loop().run_in_executor(ports.shared.preparing, holds)
            except Given:
                raise asyncio.CancelledError from None
    if held:
        name = "value" if draft.is_json else "text"
        raise InvalidArgument(f"{name} holds a credential; leave it out", field=name)


async def get_note(
    path: str, caller: Caller, ports: Ports, *, shared: bool, now: datetime, revision: int = 0
) -> tuple[Note, NoteVersion]:
    """Return a note with the text of one of its versions, and that version; see GetNote in the contract."""
    owner, path = caller.writes_to(shared=shared), check_path(path)
    if revision < 0:
        raise InvalidArgument(f"revision is {revision}; the first is 1", field="revision")
    note = await live(owner, path, ports, now)
    if note is None:
        raise missing(path, shared=shared)
    version = note.version(revision) if revision else note.now
    text = None
    if version is not None:
        text = (await ports.store.notes.texts(owner, [version])).get(version.id)
    if version is None or text is None:
        kept = note.versions[-1].revision
        raise NoteNotFound(f"revision {revision} is not kept; {kept} to {note.revision} are", field="revision")
    await _touch([note], ports, now)
    return replace(note, text=text), version


def missing(path: str, *, shared: bool) -> NoteNotFound:
    """Return what says that there is no note of a path."""
    return NoteNotFound(f"{'the chat' if shared else 'this user'} has no note {path!r}", field="path")


async def _touch(notes: Sequence[Note], ports: Ports, now: datetime) -> None:
    """
    Let notes that expire some time after they were read expire later.

    The more often one is read, the fewer reads write: its time moves by a tenth of it at the least. A read does not
    fail where nothing can be written now.
    """
    moved = [
        replace(note, expire_time=later)
        for note in notes
        if note.expire_after_access_s
        and note.expire_time is not None
        and (later := now + timedelta(seconds=note.expire_after_access_s)) - note.expire_time
        >= timedelta(seconds=note.expire_after_access_s / LEAST_MOVE)
    ]
    for owner in {note.owner for note in moved}:

        async def decide(owner: Owner = owner) -> Decision[None]:
            changes = []
            for note in moved:
                known = await ports.store.notes.get(owner, note.path) if note.owner == owner else None
                if known is not None and known.now == note.now:
                    changes.append(NoteChange(known, replace(known, expire_time=note.expire_time)))
            return Decision(ChangeSet(notes=tuple(changes)) if changes else None, answering(None))

        with contextlib.suppress(Unavailable):
            await decide_and_commit([note_lock(owner)], decide, ports, now=now, grant_id="")


async def list_notes(  # noqa: PLR0913  one argument for each field of the contract
    caller: Caller,
    ports: Ports,
    *,
    shared: bool,
    now: datetime,
    prefix: str = "",
    page_size: int = 0,
    page_token: str = "",
    with_content: bool = False,
) -> NotePage:
    """Return one page of the notes of a scope; see ListNotes in the contract."""
    owner, prefix = caller.writes_to(shared=shared), check_prefix(prefix)
    size = check_count(page_size, "page_size", default=limits.DEFAULT_PAGE_SIZE, limit=limits.MAX_PAGE_SIZE)
    bound = bound_to("notes", caller, owner, prefix, with_content)
    after = read_page_token(page_token, ports.page_secret, bound).id if page_token else ""
    found: list[Note] = []
    is_more = True
    while is_more and len(found) <= size:  # those that have expired are passed over
        page = await ports.store.notes.page(owner, prefix=prefix, after=after, limit=size + 1)
        found += [note for note in page if not note.is_expired(now)]
        is_more, after = len(page) > size, page[-1].path if page else ""
    shown = found[:size]
    if with_content:
        shown = shown[: max(1, limits.how_many_fit((note.now.text_bytes for note in shown), limits.MAX_PAGE_BYTES))]
        texts = await ports.store.notes.texts(owner, [note.now for note in shown])
        shown = [replace(note, text=texts.get(note.now.id, "")) for note in shown]
        await _touch(shown, ports, now)
    token = ""
    if len(found) > len(shown):
        last = shown[-1]
        token = page_token_after(Cursor(last.create_time, last.path), ports.page_secret, bound)
    return NotePage(tuple(shown), token)
