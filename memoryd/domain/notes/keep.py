"""Putting, reading and listing notes."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from memoryd.domain.batching import SLICE
from memoryd.domain.completion import is_abandoned
from memoryd.domain.notes.finding import embedded_note, entry_of
from memoryd.domain.notes.reading import live, note_lock, with_texts
from memoryd.domain.pipeline import Decision, answering, decide_and_commit, no_answer
from memoryd.domain.ports import Ports
from memoryd.domain.preparing import ON_LOOP, preparing
from memoryd.domain.quotas import check_texts, quota_lock
from memoryd.domain.retrieval.page_token import bound_to, page_token_after, read_page_token
from memoryd.errors import Conflict, InvalidArgument, LimitExceeded, NoteNotFound, TrustTooLow, Unavailable
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.note import Note, NoteDraft, NotePage, NoteVersion, check_path, check_prefix
from memoryd.model.note_change import NoteChange
from memoryd.model.scope import Owner
from memoryd.model.validation import check_count
from memoryd.store.memories import Cursor

__all__ = [
    "check_room",
    "entry_now",
    "get_note",
    "holds_credential",
    "list_notes",
    "may_erase",
    "missing",
    "put_note",
    "refuse_token",
]

LEAST_MOVE = 10  # of a time to expire after access: a read that moves it by less than a tenth writes nothing


async def put_note(draft: NoteDraft, caller: Caller, ports: Ports, *, shared: bool, now: datetime) -> tuple[Note, bool]:
    """Put a note, and return it and whether it is new; see PutNote in the contract."""
    owner, author = caller.writes_to(shared=shared), caller.user_id or "" if shared else ""
    await _refuse_secrets(draft, caller, ports, now)
    made = await embedded_note(draft.path, draft.text, caller, ports) if draft.is_searched else None

    async def decide() -> Decision[tuple[Note, bool]]:
        known = await ports.store.notes.get(owner, draft.path)
        there = None if known is None or known.is_expired(now) else known
        is_own = there is None or may_erase(there, caller)
        if there is not None:
            _refuse_change(there, draft, caller)
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
            note = replace(there, versions=_kept((new, *there.versions), is_own=is_own))
        else:
            await check_room(1, owner, ports, now)
            note = Note(
                id=ports.new_id(),
                agent_id=owner.agent_id,
                scope=owner.scope,
                path=draft.path,
                create_time=now,
                versions=(_version(draft, 1, author, caller, ports, now),),
            )
        told = {**draft.expires(now), "is_searched": draft.is_searched}
        note = replace(note, **told) if is_own else note.read_at(now)
        entry = await entry_of(note, draft.text, made, ports.embedder.fingerprint) if note.is_searched else None
        note = replace(note, terms_length=0 if entry is None else len(entry.terms))
        answer = answering((note, there is None))
        if note == there:
            return Decision(None, answer)
        await check_texts(note.grant_texts, () if known is None else known.grant_texts, caller, ports.store, now)
        texts = {} if is_same else {note.now.id: draft.text}
        return Decision(ChangeSet(notes=(NoteChange(known, note, texts, entry, loses_vector=not is_same),)), answer)

    locks = [note_lock(owner), *quota_lock(caller)]
    return await decide_and_commit(locks, decide, ports, now=now, grant_id=caller.grant_id)


def _refuse_change(note: Note, draft: NoteDraft, caller: Caller) -> None:
    """Raise TrustTooLow where a note is of higher trust, or of others too whose versions would go with it."""
    if note.now.trust.outranks(caller.trust):
        raise TrustTooLow("the note is of higher trust; it stays as it is")
    if (draft.expire_after_s or draft.expire_after_access_s) and not may_erase(note, caller):
        raise TrustTooLow("the note is of another user of the chat too; its time stays as it is")


def _kept(versions: tuple[NoteVersion, ...], *, is_own: bool) -> tuple[NoteVersion, ...]:
    """
    Return the versions that are kept: the newest ten.

    Of a note of several users of a chat, former versions of who puts it go first, then those of the others but their
    newest: so that no one, by putting often, has the words of another go.
    """
    left = list(versions)
    while len(left) > limits.MAX_NOTE_VERSIONS:
        newest = {version.author: version for version in reversed(left)}
        former = [version for version in left if version is not newest[version.author]]
        own = [version for version in former if version.author == left[0].author]
        left.remove(left[-1] if is_own else (own or former or left)[-1])
    return tuple(left)


def may_erase(note: Note, caller: Caller) -> bool:
    """Whether a caller may erase a note: no version is of higher trust, or of another user of the chat."""
    is_among_others = caller.trust.is_sandbox and note.scope.user_id is None
    return not any(
        version.trust.outranks(caller.trust) or (is_among_others and not _is_by(version, caller))
        for version in note.versions
    )


def _is_by(version: NoteVersion, caller: Caller) -> bool:
    """Whether a caller wrote a version; who comes without a user is known by the grant."""
    return version.author == (caller.user_id or "") and bool(version.author or version.grant_id == caller.grant_id)


def _version(draft: NoteDraft, revision: int, author: str, caller: Caller, ports: Ports, now: datetime) -> NoteVersion:
    size = len(draft.text.encode())
    return NoteVersion(revision, now, size, draft.is_json, caller.trust, caller.grant_id, author, ports.new_id())


async def _says(note: Note, draft: NoteDraft, ports: Ports) -> bool:
    """Whether a note says already what is put."""
    if note.now.is_json is not draft.is_json or note.now.text_bytes != len(draft.text.encode()):
        return False
    return (await ports.store.notes.texts(note.owner, [note.now])).get(note.now.id) == draft.text


async def check_room(more: int, owner: Owner, ports: Ports, now: datetime) -> None:
    """Raise LimitExceeded where an owner may not have so many notes more."""
    if await ports.store.notes.count(owner, live_at=now) + more > limits.MAX_NOTES:
        raise LimitExceeded(f"there may be at most {limits.MAX_NOTES} notes; delete some", limit="notes")


async def _refuse_secrets(draft: NoteDraft, caller: Caller, ports: Ports, now: datetime) -> None:
    """Raise InvalidArgument where a note holds a credential, or is named by one."""
    refuse_token(draft.path, "path", ports)
    if await holds_credential(draft, caller, ports, now):
        name = "value" if draft.is_json else "text"
        raise InvalidArgument(f"{name} holds a credential; leave it out", field=name)


async def holds_credential(draft: NoteDraft, caller: Caller, ports: Ports, now: datetime) -> bool:
    """Whether a note holds a credential, or is named by one; a long one is searched in a thread."""
    is_gone = is_abandoned()
    if is_token_path(draft.path, ports):
        return True

    def holds() -> bool:
        if not draft.is_json and ports.guards.secrets([draft.text]):  # at the first, which is soon
            return True
        masker = ports.guards.masker(len(draft.text), is_gone)
        return (masker.mask_json if draft.is_json else masker.mask)(draft.text) != draft.text

    if len(draft.text) <= ON_LOOP:
        return holds()
    async with preparing(caller.visibility.owners[0], caller, ports, now) as run:
        held: bool = await run(holds)
    return held


def is_token_path(path: str, ports: Ports) -> bool:
    """Whether a path has a credential as a name."""
    return any(map(ports.guards.is_token, path.split("/")))


def refuse_token(path: str, name: str, ports: Ports) -> None:
    """Raise InvalidArgument where a path has a credential as a name."""
    if is_token_path(path, ports):
        raise InvalidArgument(f"{name} holds a credential; name the note otherwise", field=name)


async def get_note(
    path: str, caller: Caller, ports: Ports, *, shared: bool, now: datetime, revision: int = 0
) -> tuple[Note, NoteVersion]:
    """Return a note with the text of one of its versions, and that version; see GetNote in the contract."""
    owner, path = caller.writes_to(shared=shared), check_path(path)
    if revision < 0:
        raise InvalidArgument(f"revision is {revision}; the first is 1", field="revision")
    notes = ports.store.notes

    def wanted(note: Note) -> list[NoteVersion]:
        return [version for version in note.versions if version.revision == (revision or note.revision)]

    found = await with_texts(await live(owner, path, notes, now), wanted, notes)
    if found is None:
        raise missing(path, shared=shared)
    note, texts = found
    if not texts:
        kept = ", ".join(str(one.revision) for one in reversed(note.versions))
        raise NoteNotFound(f"revision {revision} is not kept; {kept} are", field="revision")
    await _touch([note], ports, now)
    ((version_id, text),) = texts.items()
    return replace(note.read_at(now), text=text), next(one for one in note.versions if one.id == version_id)


def missing(path: str, *, shared: bool) -> NoteNotFound:
    """Return what says that there is no note of a path."""
    return NoteNotFound(f"{'the chat' if shared else 'this user'} has no note {path!r}", field="path")


async def _touch(notes: Sequence[Note], ports: Ports, now: datetime) -> None:
    """
    Let notes that expire some time after they were read expire later.

    The more often one is read, the fewer reads write: its time moves by a tenth of it at the least. A read does not
    fail where nothing can be written now.
    """
    moved = [note for note in notes if _is_moved(note, now)]
    for n in range(0, len(moved), SLICE):
        some = moved[n : n + SLICE]

        async def decide(some: Sequence[Note] = some) -> Decision[None]:
            changes = []
            for note in some:
                known = await ports.store.notes.get(note.owner, note.path)
                if known is not None and known.now == note.now and _is_moved(known, now):
                    later = known.read_at(now)
                    changes.append(NoteChange(known, later, entry=await entry_now(later, ports)))
            return Decision(ChangeSet(notes=tuple(changes)) if changes else None, no_answer)

        with contextlib.suppress(Unavailable):
            await decide_and_commit([note_lock(some[0].owner)], decide, ports, now=now, grant_id="")


def _is_moved(note: Note, now: datetime) -> bool:
    """Whether a read moves the time when a note expires so far that it is worth a write."""
    later = note.read_at(now).expire_time
    if later is None or note.expire_time is None:
        return False
    return (later - note.expire_time).total_seconds() * LEAST_MOVE > note.expire_after_access_s


async def entry_now(note: Note, ports: Ports) -> Entry | None:
    """Return what an index is told of a note whose text is as it was; None where it is not searched."""
    if not note.is_searched:
        return None
    text = (await ports.store.notes.texts(note.owner, [note.now])).get(note.now.id, "")
    return await entry_of(note, text, None, "")


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
    found = await ports.store.notes.page(owner, prefix=prefix, after=after, limit=size + 1, live_at=now)
    shown = found[:size]
    if with_content:
        shown = shown[: max(1, limits.how_many_fit((note.now.text_bytes for note in shown), limits.MAX_PAGE_BYTES))]
    token = ""
    if len(found) > len(shown):
        last = shown[-1]
        token = page_token_after(Cursor(last.create_time, last.path), ports.page_secret, bound)
    if with_content:
        shown = await _with_texts(shown, ports, now)
        await _touch(shown, ports, now)
        shown = [note.read_at(now) for note in shown]
    return NotePage(tuple(shown), token)


async def _with_texts(notes: list[Note], ports: Ports, now: datetime) -> list[Note]:
    """Return notes with their texts; one that was put anew meanwhile as it is then, one that went not at all."""
    store = ports.store.notes
    texts = await store.texts(notes[0].owner, [note.now for note in notes]) if notes else {}
    found = []
    for note in notes:
        if note.now.id in texts:
            found.append(replace(note, text=texts[note.now.id]))
            continue
        again = await with_texts(note, lambda note: note.versions[:1], store)
        if again is not None and not again[0].is_expired(now):
            found.append(replace(again[0], text=again[1][again[0].now.id]))
    return found
