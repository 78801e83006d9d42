"""NoteService: one method an RPC."""

from __future__ import annotations

from memoryd.domain.notes.erase import delete_notes, move_notes
from memoryd.domain.notes.keep import get_note, list_notes, put_note
from memoryd.domain.ports import Ports
from memoryd.domain.transfer.import_notes import import_notes
from memoryd.errors import in_part
from memoryd.model.note import NoteDraft
from memoryd.service.gate import Call
from memoryd.turns import in_turns
from memoryd.v1 import note_service_pb2 as pb
from memoryd.wire.imported import import_result_to_pb, imported_note_from_pb
from memoryd.wire.note import content_from_pb, note_to_pb, version_to_pb

__all__ = ["NoteService"]


class NoteService:
    """The RPCs of note_service.proto; the gate has checked the caller."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def PutNote(self, request: pb.PutNoteRequest, call: Call) -> pb.PutNoteResponse:
        text, is_json = content_from_pb(request)
        draft = NoteDraft(
            path=request.path,
            text=text,
            is_json=is_json,
            expire_after_s=request.expire_after_s,
            expire_after_access_s=request.expire_after_access_s,
            is_searched=request.is_searched,
            expected_revision=request.expected_revision if request.HasField("expected_revision") else None,
        )
        note, is_new = await put_note(draft, call.caller, self._ports, shared=request.shared, now=call.now)
        call.touched([note.id])
        return pb.PutNoteResponse(note=note_to_pb(note, note.now, with_content=False), created=is_new)

    async def GetNote(self, request: pb.GetNoteRequest, call: Call) -> pb.GetNoteResponse:
        note, version = await get_note(
            request.path, call.caller, self._ports, shared=request.shared, now=call.now, revision=request.revision
        )
        call.touched([note.id])
        return pb.GetNoteResponse(
            note=note_to_pb(note, version, with_content=True), versions=map(version_to_pb, note.versions)
        )

    async def DeleteNote(self, request: pb.DeleteNoteRequest, call: Call) -> pb.DeleteNoteResponse:
        gone = await delete_notes(
            request.path,
            call.caller,
            self._ports,
            shared=request.shared,
            now=call.now,
            recursive=request.recursive,
            missing_ok=request.allow_missing,
            dry_run=request.dry_run,
        )
        return pb.DeleteNoteResponse(
            paths=gone.paths, deleted_count=gone.deleted_count, backups=gone.backups, dry_run=gone.dry_run
        )

    async def ListNotes(self, request: pb.ListNotesRequest, call: Call) -> pb.ListNotesResponse:
        page = await list_notes(
            call.caller,
            self._ports,
            shared=request.shared,
            now=call.now,
            prefix=request.prefix,
            page_size=request.page_size,
            page_token=request.page_token,
            with_content=request.with_content,
        )
        call.touched([note.id for note in page.notes])
        return pb.ListNotesResponse(
            notes=[
                note_to_pb(note, note.now, with_content=request.with_content) async for note in in_turns(page.notes)
            ],
            next_page_token=page.next_page_token,
        )

    async def MoveNote(self, request: pb.MoveNoteRequest, call: Call) -> pb.MoveNoteResponse:
        moved = await move_notes(
            request.path,
            request.new_path,
            call.caller,
            self._ports,
            shared=request.shared,
            now=call.now,
            recursive=request.recursive,
        )
        return pb.MoveNoteResponse(paths=moved.paths, moved_count=moved.moved_count)

    async def ImportNotes(self, request: pb.ImportNotesRequest, call: Call) -> pb.ImportNotesResponse:
        items = []
        async for n, message in in_turns(enumerate(request.notes)):
            with in_part(f"notes[{n}]"):
                items.append(imported_note_from_pb(message))
        done = await import_notes(
            items, call.caller, self._ports, shared=request.shared, now=call.now, dry_run=request.dry_run
        )
        call.touched([result.id for result in done.results if result.id])
        return pb.ImportNotesResponse(results=map(import_result_to_pb, done.results), dry_run=done.dry_run)
