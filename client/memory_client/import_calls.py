"""The RPCs of imports as values; see `calls`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory_client.calls import Call, build, memory_call
from memory_client.endpoint import Identity
from memoryd.errors import InvalidArgument
from memoryd.model.imported import ImportDraft, ImportedNote, ImportReport
from memoryd.model.message_draft import MessageDraft
from memoryd.v1 import conversation_service_pb2, note_service_pb2
from memoryd.v1 import memory_service_pb2 as pb
from memoryd.wire.conversation import draft_to_pb
from memoryd.wire.imported import import_draft_to_pb, import_report_from_pb, imported_note_to_pb

__all__ = ["import_memories", "import_messages", "import_notes"]


def import_memories(
    identity: Identity, items: Sequence[ImportDraft], import_id: str, *, dry_run: bool
) -> Call[ImportReport]:
    """ImportMemories."""

    def make() -> Any:
        if not all(isinstance(item, ImportDraft) for item in items):
            raise InvalidArgument("import_memories takes a list of ImportDraft", field="memories")
        return pb.ImportMemoriesRequest(import_id=import_id, memories=map(import_draft_to_pb, items), dry_run=dry_run)

    return memory_call("ImportMemories", build(make, identity), pb.ImportMemoriesResponse, import_report_from_pb)


def import_messages(
    identity: Identity, thread_id: str, messages: Sequence[MessageDraft], *, shared: bool, dry_run: bool
) -> Call[ImportReport]:
    """ImportMessages."""
    talk = conversation_service_pb2

    def make() -> Any:
        if not all(isinstance(message, MessageDraft) for message in messages):
            raise InvalidArgument("import_messages takes a list of MessageDraft", field="messages")
        return talk.ImportMessagesRequest(
            thread_id=thread_id, shared=shared, messages=map(draft_to_pb, messages), dry_run=dry_run
        )

    request = build(make, identity)
    return Call("ConversationService", "ImportMessages", request, talk.ImportMessagesResponse, import_report_from_pb)


def import_notes(
    identity: Identity, notes: Sequence[ImportedNote], *, shared: bool, dry_run: bool
) -> Call[ImportReport]:
    """ImportNotes."""

    def make() -> Any:
        if not all(isinstance(note, ImportedNote) for note in notes):
            raise InvalidArgument("import_notes takes a list of ImportedNote", field="notes")
        return note_service_pb2.ImportNotesRequest(
            notes=map(imported_note_to_pb, notes), shared=shared, dry_run=dry_run
        )

    request = build(make, identity)
    return Call("NoteService", "ImportNotes", request, note_service_pb2.ImportNotesResponse, import_report_from_pb)
