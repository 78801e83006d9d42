"""AdminService: for operators, on the admin socket only."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from memoryd.audit.reading import Sighting
from memoryd.domain.forgetting.decay import forget_faded
from memoryd.domain.forgetting.everything import erase_user
from memoryd.domain.forgetting.verify import compact, verify_forgotten
from memoryd.domain.people.enrich import enrich
from memoryd.domain.ports import Ports
from memoryd.domain.retrieval.browse import page_of_deleted
from memoryd.domain.transfer.bring_in import bring_in
from memoryd.domain.transfer.export import export
from memoryd.domain.writing.reembed import Reembedder
from memoryd.errors import InvalidArgument, Unavailable
from memoryd.identity.garbage import run_gc
from memoryd.identity.issuer import GrantIssuer
from memoryd.model import limits
from memoryd.model.caller import DEFAULT_AGENT
from memoryd.model.scope import Owner, Scope
from memoryd.model.validation import check_id
from memoryd.service.gate import Call
from memoryd.turns import in_turns
from memoryd.v1 import admin_service_pb2 as pb
from memoryd.wire.erased import erased_to_pb
from memoryd.wire.memory import memory_to_pb, set_time

__all__ = ["AdminService"]

PART_BYTES = 2 << 20  # of an export that are sent at once
OWNERS = 100  # that are listed where no limit is named
NEW = timedelta(days=7)  # what was stored so lately is counted as new


class AdminService:
    """The RPCs of admin_service.proto."""

    def __init__(
        self,
        ports: Ports,
        issuer: GrantIssuer,
        reembedder: Reembedder,
        ended_grace_days: float,
        describe: Callable[[], Awaitable[dict[str, Any]]],
        look_up: Callable[[str], Sighting] = lambda _: Sighting(),
        figures: Callable[[], bytes] | None = None,
    ) -> None:
        """
        Take what tells about the process, what the audit log knows of an id, and what makes the text of the figures.

        The keys of the former are the fields of GetServerInfoResponse.
        """
        self._look_up, self._figures = look_up, figures
        self._ports = ports
        self._issuer = issuer
        self._reembedder = reembedder
        self._ended_grace_days = ended_grace_days
        self._describe = describe

    async def GetServerInfo(self, request: pb.GetServerInfoRequest, call: Call) -> pb.GetServerInfoResponse:  # noqa: ARG002  it asks for nothing
        return pb.GetServerInfoResponse(**await self._describe())

    async def GetMetrics(self, request: pb.GetMetricsRequest, call: Call) -> pb.GetMetricsResponse:  # noqa: ARG002  it asks for nothing
        if self._figures is None:
            raise Unavailable("no figures are kept; set metrics.enabled = true, and restart memoryd")
        return pb.GetMetricsResponse(text=(await asyncio.to_thread(self._figures)).decode())

    async def ExportRecords(self, request: pb.ExportRecordsRequest, call: Call) -> pb.ExportRecordsResponse:  # noqa: ARG002  it is of the whole store
        user_id = check_id(request.of_user, "of_user")
        part = await export(self._ports, user_id=user_id, cursor=request.cursor, most_bytes=PART_BYTES)
        return pb.ExportRecordsResponse(records=part.lines, next_cursor=part.next_cursor)

    async def ImportRecords(self, request: pb.ImportRecordsRequest, call: Call) -> pb.ImportRecordsResponse:
        if len(request.records) > limits.MAX_RECORDS:
            raise InvalidArgument(
                f"records has {len(request.records)} entries; at most {limits.MAX_RECORDS} come in one call",
                field="records",
            )
        done = await bring_in(
            request.records,
            self._ports,
            now=call.now,
            skips_conflicts=request.skip_conflicts,
            dry_run=request.dry_run,
        )
        if not request.dry_run and await self._reembedder.pending():
            self._reembedder.start()
        return pb.ImportRecordsResponse(
            new_counts=done.new,
            known_counts=done.known,
            kept_counts=done.kept,
            dry_run=request.dry_run,
            erased_counts=done.erased,
        )

    async def RunGc(self, request: pb.RunGcRequest, call: Call) -> pb.RunGcResponse:
        report = await run_gc(
            self._ports,
            self._issuer,
            now=call.now,
            ended_grace_days=self._ended_grace_days,
            dry_run=request.dry_run,
            clock_is_right=request.clock_is_right,
        )
        return pb.RunGcResponse(
            expired_count=report.expired_count,
            superseded_count=report.superseded_count,
            deleted_count=report.deleted_count,
            request_count=report.request_count,
            dry_run=report.dry_run,
            grant_count=report.grant_count,
            held=report.held,
            note_count=report.note_count,
        )

    async def RunDecay(self, request: pb.RunDecayRequest, call: Call) -> pb.RunDecayResponse:
        done = await forget_faded(self._ports, now=call.now, dry_run=request.dry_run)
        call.touched([faded.id for faded in done.faded])
        return pb.RunDecayResponse(
            examined_count=done.examined_count,
            decayed_count=done.decayed_count,
            faded=[
                pb.Faded(id=faded.id, owner=faded.owner, confidence=faded.confidence)
                for faded in done.faded[: limits.MAX_NAMED_IDS]
            ],
            dry_run=request.dry_run,
            held=done.held,
        )

    async def RunEnrichment(self, request: pb.RunEnrichmentRequest, call: Call) -> pb.RunEnrichmentResponse:
        done = await enrich(self._ports, now=call.now, dry_run=request.dry_run)
        return pb.RunEnrichmentResponse(
            examined_count=done.examined_count,
            linked_count=done.linked_count,
            skipped=done.skipped,
            dry_run=request.dry_run,
            denied_count=done.denied_count,
            remaining_count=done.remaining_count,
        )

    async def RunReembedding(self, request: pb.RunReembeddingRequest, call: Call) -> pb.RunReembeddingResponse:  # noqa: ARG002  it is asked of the host
        if not request.dry_run and await self._reembedder.pending():
            self._reembedder.start()
        known = await self._reembedder.progress()
        return pb.RunReembeddingResponse(
            pending_count=known.pending_count,
            embedded_count=known.embedded_count,
            failed_count=known.failed_count,
            running=known.running,
            fault=known.fault,
            dry_run=request.dry_run,
        )

    async def CompactStore(self, request: pb.CompactStoreRequest, call: Call) -> pb.CompactStoreResponse:  # noqa: ARG002  it asks for nothing
        done = await compact(self._ports, now=call.now)
        response = pb.CompactStoreResponse(
            before_bytes=done.before_bytes,
            after_bytes=done.after_bytes,
            backups=done.backups,
            purged_meanwhile=done.purged_meanwhile,
        )
        response.pause.FromTimedelta(done.pause)
        return response

    async def VerifyForgotten(self, request: pb.VerifyForgottenRequest, call: Call) -> pb.VerifyForgottenResponse:  # noqa: ARG002  it is asked of the host
        proof = await verify_forgotten(request.id, request.text, self._ports, self._look_up)
        response = pb.VerifyForgottenResponse(
            traces=[pb.Trace(place=trace.place, detail=trace.detail) for trace in proof.traces],
            file_count=proof.file_count,
            byte_count=proof.byte_count,
            backups=proof.backups,
        )
        for name in ("log_start_time", "seen_time", "purge_time"):
            set_time(response, name, getattr(proof, name))
        return response

    async def ListOwners(self, request: pb.ListOwnersRequest, call: Call) -> pb.ListOwnersResponse:
        if not 0 <= request.limit <= limits.MAX_PAGE_SIZE:
            raise InvalidArgument(
                f"limit is {request.limit}; it must lie between 0 and {limits.MAX_PAGE_SIZE}", field="limit"
            )
        agent_id = check_id(request.agent_id, "agent_id")
        sizes = await self._ports.store.owners.sizes(agent_id, limit=request.limit or OWNERS, new_since=call.now - NEW)
        return pb.ListOwnersResponse(
            owners=(pb.OwnerSize(**asdict(size)) for size in sizes.owners), owner_count=sizes.owner_count
        )

    async def ListDeletedMemories(
        self, request: pb.ListDeletedMemoriesRequest, call: Call
    ) -> pb.ListDeletedMemoriesResponse:
        scope = Scope(check_id(request.user_id, "user_id") or None, check_id(request.chat_id, "chat_id") or None)
        owner = Owner(check_id(request.agent_id, "agent_id") or DEFAULT_AGENT, scope)
        page = await page_of_deleted(
            owner, self._ports, page_size=request.page_size, page_token=request.page_token, now=call.now
        )
        call.touched([memory.id for memory in page.memories])
        return pb.ListDeletedMemoriesResponse(
            memories=[memory_to_pb(memory) async for memory in in_turns(page.memories)],
            next_page_token=page.next_page_token,
        )

    async def EraseUser(self, request: pb.EraseUserRequest, call: Call) -> pb.EraseUserResponse:
        erased = await erase_user(request.user_id, request.agent_id, self._ports, now=call.now, dry_run=request.dry_run)
        call.touched([one for each in erased for one in (*each.memory_ids, *each.message_ids)])
        return pb.EraseUserResponse(erased=map(erased_to_pb, erased))
