"""Between what an import brings and its messages; shared by the service and the client."""

from __future__ import annotations

from typing import Any

from memoryd.model.imported import ImportDraft, ImportedNote, ImportOutcome, ImportReport, ImportResult
from memoryd.model.note import NoteDraft
from memoryd.v1 import memory_pb2, memory_service_pb2, note_service_pb2
from memoryd.wire.memory import EnumCodes, draft_from_pb, draft_to_pb, set_time, time_from_pb
from memoryd.wire.note import content_from_pb

__all__ = [
    "import_draft_from_pb",
    "import_draft_to_pb",
    "import_report_from_pb",
    "import_result_to_pb",
    "imported_note_from_pb",
    "imported_note_to_pb",
]

OUTCOME = EnumCodes(ImportOutcome, memory_pb2, "IMPORT_OUTCOME")


def import_draft_to_pb(item: ImportDraft) -> memory_service_pb2.ImportedMemory:
    """Return an item as message."""
    message = memory_service_pb2.ImportedMemory(
        memory=draft_to_pb(item.draft), external_id=item.external_id, superseded_by=item.superseded_by
    )
    set_time(message, "create_time", item.create_time)
    set_time(message, "supersede_time", item.supersede_time)
    return message


def import_draft_from_pb(message: memory_service_pb2.ImportedMemory) -> ImportDraft:
    """Return a message as item, checked."""
    return ImportDraft(
        draft=draft_from_pb(message.memory),
        external_id=message.external_id,
        create_time=time_from_pb(message, "create_time"),
        supersede_time=time_from_pb(message, "supersede_time"),
        superseded_by=message.superseded_by,
    )


def imported_note_to_pb(note: ImportedNote) -> note_service_pb2.ImportedNote:
    """Return a note as message."""
    draft = note.draft
    message = note_service_pb2.ImportedNote(path=draft.path, is_searched=draft.is_searched)
    setattr(message, "value" if draft.is_json else "text", draft.text)
    set_time(message, "create_time", note.create_time)
    set_time(message, "update_time", note.update_time)
    return message


def imported_note_from_pb(message: note_service_pb2.ImportedNote) -> ImportedNote:
    """Return a message as note, checked."""
    text, is_json = content_from_pb(message)
    return ImportedNote(
        draft=NoteDraft(path=message.path, text=text, is_json=is_json, is_searched=message.is_searched),
        create_time=time_from_pb(message, "create_time"),
        update_time=time_from_pb(message, "update_time"),
    )


def import_result_to_pb(result: ImportResult) -> memory_pb2.ImportResult:
    """Return what became of an item as message."""
    return memory_pb2.ImportResult(
        outcome=OUTCOME.to_pb(result.outcome),
        id=result.id,
        rejection=result.rejection,
        untaken_fields=result.untaken_fields,
        masked=result.masked,
    )


def import_report_from_pb(answer: Any) -> ImportReport:
    """Return the answer of a call that imports as value."""
    results = (
        ImportResult(OUTCOME.from_pb(one.outcome), one.id, one.rejection, tuple(one.untaken_fields), one.masked)
        for one in answer.results
    )
    return ImportReport(tuple(results), answer.dry_run)
