"""AdminService, as values; see calls.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from memory_client.calls import Call, build, count
from memoryd.model.reports import (
    Compaction,
    Decayed,
    Enriched,
    ErasedUser,
    ExportPart,
    Faded,
    GcReport,
    ImportedRecords,
    OwnerSize,
    OwnerSizes,
    Proof,
    Reembedding,
    ServerInfo,
    Trace,
)
from memoryd.model.results import Page
from memoryd.v1 import admin_service_pb2
from memoryd.wire.erased import erased_from_pb
from memoryd.wire.memory import memory_from_pb, time_from_pb


def server_info() -> Call[ServerInfo]:
    """GetServerInfo."""
    pb = admin_service_pb2

    def parse(answer: Any) -> ServerInfo:
        made = {"uptime", "max_loop_lag", "warnings", "backup_shipped_time", "backup_proved_time"}
        names = [name for name in ServerInfo.__dataclass_fields__ if name not in made]
        return ServerInfo(
            uptime=answer.uptime.ToTimedelta(),
            max_loop_lag=answer.max_loop_lag.ToTimedelta(),
            warnings=tuple(answer.warnings),
            **{name: getattr(answer, name) for name in names},
            backup_shipped_time=time_from_pb(answer, "backup_shipped_time"),
            backup_proved_time=time_from_pb(answer, "backup_proved_time"),
        )

    return Call("AdminService", "GetServerInfo", pb.GetServerInfoRequest(), pb.GetServerInfoResponse, parse)


def run_gc(*, dry_run: bool, clock_is_right: bool) -> Call[GcReport]:
    """RunGc."""
    pb = admin_service_pb2

    def parse(answer: Any) -> GcReport:
        return GcReport(
            answer.expired_count,
            answer.superseded_count,
            answer.deleted_count,
            answer.request_count,
            answer.dry_run,
            answer.grant_count,
            answer.held,
            answer.note_count,
        )

    request = pb.RunGcRequest(dry_run=dry_run, clock_is_right=clock_is_right)
    return Call("AdminService", "RunGc", request, pb.RunGcResponse, parse)


def run_decay(*, dry_run: bool) -> Call[Decayed]:
    """RunDecay."""
    pb = admin_service_pb2

    def parse(answer: Any) -> Decayed:
        faded = tuple(Faded(item.id, item.owner, item.confidence) for item in answer.faded)
        return Decayed(answer.examined_count, answer.decayed_count, faded, answer.dry_run, answer.held)

    return Call("AdminService", "RunDecay", pb.RunDecayRequest(dry_run=dry_run), pb.RunDecayResponse, parse)


def run_enrichment(*, dry_run: bool) -> Call[Enriched]:
    """RunEnrichment."""
    pb = admin_service_pb2

    def parse(answer: Any) -> Enriched:
        return Enriched(
            answer.examined_count,
            answer.linked_count,
            answer.skipped,
            answer.dry_run,
            answer.denied_count,
            answer.remaining_count,
        )

    return Call(
        "AdminService", "RunEnrichment", pb.RunEnrichmentRequest(dry_run=dry_run), pb.RunEnrichmentResponse, parse
    )


def run_reembedding(*, dry_run: bool) -> Call[Reembedding]:
    """RunReembedding."""
    pb = admin_service_pb2

    def parse(answer: Any) -> Reembedding:
        return Reembedding(
            answer.pending_count, answer.embedded_count, answer.failed_count, answer.running, answer.fault
        )

    return Call(
        "AdminService", "RunReembedding", pb.RunReembeddingRequest(dry_run=dry_run), pb.RunReembeddingResponse, parse
    )


def compact_store() -> Call[Compaction]:
    """CompactStore."""
    pb = admin_service_pb2

    def parse(answer: Any) -> Compaction:
        return Compaction(
            answer.before_bytes,
            answer.after_bytes,
            answer.pause.ToTimedelta(),
            tuple(answer.backups),
            answer.purged_meanwhile,
        )

    return Call("AdminService", "CompactStore", pb.CompactStoreRequest(), pb.CompactStoreResponse, parse)


def metrics() -> Call[str]:
    """GetMetrics."""
    pb = admin_service_pb2
    return Call("AdminService", "GetMetrics", pb.GetMetricsRequest(), pb.GetMetricsResponse, lambda answer: answer.text)


def export_records(cursor: str, of_user: str) -> Call[ExportPart]:
    """ExportRecords."""
    pb = admin_service_pb2
    request = build(lambda: pb.ExportRecordsRequest(cursor=cursor, of_user=of_user))
    return Call(
        "AdminService",
        "ExportRecords",
        request,
        pb.ExportRecordsResponse,
        lambda answer: ExportPart(tuple(answer.records), answer.next_cursor),
    )


def import_records(records: Sequence[str], *, skip_conflicts: bool, dry_run: bool) -> Call[ImportedRecords]:
    """ImportRecords."""
    pb = admin_service_pb2

    def parse(answer: Any) -> ImportedRecords:
        return ImportedRecords(
            dict(answer.new_counts),
            dict(answer.known_counts),
            dict(answer.kept_counts),
            answer.dry_run,
            dict(answer.erased_counts),
        )

    request = build(lambda: pb.ImportRecordsRequest(records=records, skip_conflicts=skip_conflicts, dry_run=dry_run))
    return Call("AdminService", "ImportRecords", request, pb.ImportRecordsResponse, parse)


def verify_forgotten(memory_id: str, text: str) -> Call[Proof]:
    """VerifyForgotten."""
    pb = admin_service_pb2

    def parse(answer: Any) -> Proof:
        traces = tuple(Trace(trace.place, trace.detail) for trace in answer.traces)
        began, seen, purged = (time_from_pb(answer, name) for name in ("log_start_time", "seen_time", "purge_time"))
        return Proof(traces, answer.file_count, answer.byte_count, began, seen, purged, tuple(answer.backups))

    request = build(lambda: pb.VerifyForgottenRequest(id=memory_id, text=text))
    return Call("AdminService", "VerifyForgotten", request, pb.VerifyForgottenResponse, parse)


def erase_user(user_id: str, agent_id: str, *, dry_run: bool) -> Call[list[ErasedUser]]:
    """EraseUser."""
    pb = admin_service_pb2
    request = pb.EraseUserRequest(user_id=user_id, agent_id=agent_id, dry_run=dry_run)
    return Call(
        "AdminService",
        "EraseUser",
        request,
        pb.EraseUserResponse,
        lambda answer: list(map(erased_from_pb, answer.erased)),
    )


def deleted_memories(user_id: str, chat_id: str, agent_id: str, *, page_size: int, page_token: str) -> Call[Page]:
    """ListDeletedMemories."""
    pb = admin_service_pb2
    request = build(
        lambda: pb.ListDeletedMemoriesRequest(
            agent_id=agent_id,
            user_id=user_id,
            chat_id=chat_id,
            page_size=count(page_size, "page_size"),
            page_token=page_token,
        )
    )
    return Call(
        "AdminService",
        "ListDeletedMemories",
        request,
        pb.ListDeletedMemoriesResponse,
        lambda answer: Page(tuple(map(memory_from_pb, answer.memories)), answer.next_page_token),
    )


def list_owners(agent_id: str, limit: int) -> Call[OwnerSizes]:
    """ListOwners."""
    pb = admin_service_pb2
    names = [item.name for item in fields(OwnerSize)]

    def parse(answer: Any) -> OwnerSizes:
        owners = tuple(OwnerSize(*(getattr(owner, name) for name in names)) for owner in answer.owners)
        return OwnerSizes(owners, answer.owner_count)

    request = build(lambda: pb.ListOwnersRequest(agent_id=agent_id, limit=limit))
    return Call("AdminService", "ListOwners", request, pb.ListOwnersResponse, parse)
