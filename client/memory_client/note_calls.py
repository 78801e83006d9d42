"""The RPCs of notes as values; see `calls`."""

from __future__ import annotations

from typing import Any

from memory_client.calls import Call, build, count
from memory_client.endpoint import Identity
from memoryd.errors import InvalidArgument
from memoryd.model.note import DeletedNotes, MovedNotes, Note, NoteDraft, NotePage
from memoryd.v1 import note_service_pb2 as pb
from memoryd.wire.note import note_from_pb

__all__ = ["delete_notes", "get_note", "list_notes", "move_note", "put_note"]


def _call(method: str, request: Any, response: Any, parse: Any, *, retryable: bool = True) -> Call[Any]:
    return Call("NoteService", method, request, response, parse, retryable)


def put_note(identity: Identity, draft: NoteDraft, *, shared: bool) -> Call[Note]:
    """PutNote; what is put only over some revision is not sent twice."""

    def make() -> Any:
        request = pb.PutNoteRequest(
            path=draft.path,
            shared=shared,
            expire_after_s=draft.expire_after_s,
            expire_after_access_s=draft.expire_after_access_s,
            is_searched=draft.is_searched,
        )
        setattr(request, "value" if draft.is_json else "text", draft.text)
        if draft.expected_revision is not None:
            request.expected_revision = draft.expected_revision
        return request

    return _call(
        "PutNote",
        build(make, identity),
        pb.PutNoteResponse,
        lambda answer: note_from_pb(answer.note),
        retryable=draft.expected_revision is None,
    )


def get_note(identity: Identity, path: str, *, shared: bool, revision: int) -> Call[Note]:
    """GetNote."""
    request = build(lambda: pb.GetNoteRequest(path=path, shared=shared, revision=count(revision, "revision")), identity)
    return _call("GetNote", request, pb.GetNoteResponse, lambda answer: note_from_pb(answer.note, answer.versions))


def list_notes(
    identity: Identity, prefix: str, *, shared: bool, page_size: int, page_token: str, with_content: bool
) -> Call[NotePage]:
    """ListNotes."""

    def make() -> Any:
        return pb.ListNotesRequest(
            prefix=prefix,
            shared=shared,
            page_size=count(page_size, "page_size"),
            page_token=page_token,
            with_content=with_content,
        )

    def parse(answer: Any) -> NotePage:
        return NotePage(tuple(map(note_from_pb, answer.notes)), answer.next_page_token)

    return _call("ListNotes", build(make, identity), pb.ListNotesResponse, parse)


def delete_notes(
    identity: Identity, path: str, *, shared: bool, recursive: bool, missing_ok: bool, dry_run: bool
) -> Call[DeletedNotes]:
    """DeleteNote."""

    def make() -> Any:
        if not isinstance(path, str) or not (path or recursive):
            raise InvalidArgument("path is empty; name a note, or say recursive for all", field="path")
        return pb.DeleteNoteRequest(
            path=path, shared=shared, recursive=recursive, allow_missing=missing_ok, dry_run=dry_run
        )

    def parse(answer: Any) -> DeletedNotes:
        return DeletedNotes(tuple(answer.paths), answer.deleted_count, tuple(answer.backups), answer.dry_run)

    request = build(make, identity)
    return _call("DeleteNote", request, pb.DeleteNoteResponse, parse, retryable=dry_run or missing_ok)


def move_note(identity: Identity, path: str, new_path: str, *, shared: bool, recursive: bool) -> Call[MovedNotes]:
    """MoveNote."""

    def make() -> Any:
        return pb.MoveNoteRequest(path=path, new_path=new_path, shared=shared, recursive=recursive)

    def parse(answer: Any) -> MovedNotes:
        return MovedNotes(tuple(answer.paths), answer.moved_count)

    return _call("MoveNote", build(make, identity), pb.MoveNoteResponse, parse, retryable=False)
