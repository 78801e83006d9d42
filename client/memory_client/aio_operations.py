"""The client's methods for operators; `operations` is generated from it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from memory_client.endpoint import Identity
from memory_client.late import Late

if TYPE_CHECKING:
    from memory_client import admin_calls, consolidation_calls, grant_calls, import_calls, job_calls
    from memory_client.calls import Call
    from memory_client.grant_calls import GrantPage, InspectedToken, IssuedToken, TokenKeys, WhoAmI
    from memoryd.model.conversation import Session
    from memoryd.model.grant import Grant, GrantSpec, GrantStatus
    from memoryd.model.imported import ImportDraft, ImportedNote, ImportReport
    from memoryd.model.learnt import MemoryConflict, Proposal, Resolution, SaidFact, SessionMessages
    from memoryd.model.memory import ShownMemory
    from memoryd.model.message_draft import MessageDraft
    from memoryd.model.reports import (
        Compaction,
        Decayed,
        Enriched,
        ErasedUser,
        ExportPart,
        ForgottenGrant,
        GcReport,
        ImportedRecords,
        JobStatus,
        OwnerSizes,
        ParkedThread,
        Proof,
        Reembedding,
        ServerInfo,
    )
    from memoryd.model.results import AddResult, Page
    from memoryd.model.work import Run
else:  # what the host alone calls takes a third of the time of a command
    admin_calls, consolidation_calls, grant_calls, import_calls, job_calls = (
        Late(f"memory_client.{name}")
        for name in ("admin_calls", "consolidation_calls", "grant_calls", "import_calls", "job_calls")
    )

__all__ = ["AsyncOperations"]

T = TypeVar("T")


class AsyncOperations:
    """One method an RPC of AdminService, JobService, ConsolidationService, GrantService and IdentityService."""

    identity: Identity

    async def _send(self, call: Call[T]) -> T:
        raise NotImplementedError

    async def server_info(self) -> ServerInfo:
        """Return the state of the daemon (admin socket only)."""
        return await self._send(admin_calls.server_info())

    async def run_gc(self, *, dry_run: bool = False, clock_is_right: bool = False) -> GcReport:
        """Erase what is past its grace, or count it; `clock_is_right` ends a doubt (admin socket only)."""
        return await self._send(admin_calls.run_gc(dry_run=dry_run, clock_is_right=clock_is_right))

    async def list_owners(self, *, agent_id: str = "", limit: int = 0) -> OwnerSizes:
        """Return how much is stored of each user and chat, those with most text first (admin socket only)."""
        return await self._send(admin_calls.list_owners(agent_id, limit))

    async def erase_user(self, user_id: str, *, agent_id: str = "", dry_run: bool = False) -> list[ErasedUser]:
        """Erase all that a user has with an agent, or with every agent (admin socket only)."""
        return await self._send(admin_calls.erase_user(user_id, agent_id, dry_run=dry_run))

    async def deleted_memories(
        self, user_id: str = "", *, chat_id: str = "", agent_id: str = "", page_size: int = 0, page_token: str = ""
    ) -> Page:
        """Return one page of what a user, or a chat, has deleted and can be restored (admin socket only)."""
        return await self._send(
            admin_calls.deleted_memories(user_id, chat_id, agent_id, page_size=page_size, page_token=page_token)
        )

    async def run_decay(self, *, dry_run: bool = False) -> Decayed:
        """Forget what has faded, or tell what would go (admin socket only)."""
        return await self._send(admin_calls.run_decay(dry_run=dry_run))

    async def run_enrichment(self, *, dry_run: bool = False) -> Enriched:
        """Look again for entities with every finder (admin socket only)."""
        return await self._send(admin_calls.run_enrichment(dry_run=dry_run))

    async def run_reembedding(self, *, dry_run: bool = False) -> Reembedding:
        """Begin to give every memory a vector of the model in use, and return how far it is (admin socket only)."""
        return await self._send(admin_calls.run_reembedding(dry_run=dry_run))

    async def compact_store(self) -> Compaction:
        """Rewrite the database without the bytes of what was purged (admin socket only)."""
        return await self._send(admin_calls.compact_store())

    async def metrics(self) -> str:
        """Return figures of the daemon in the text format of Prometheus (admin socket only)."""
        return await self._send(admin_calls.metrics())

    async def export_records(self, cursor: str = "", *, of_user: str = "") -> ExportPart:
        """Return a part of all that is stored, after a cursor, as lines of JSON (admin socket only)."""
        return await self._send(admin_calls.export_records(cursor, of_user))

    async def import_records(
        self, records: Sequence[str], *, skip_conflicts: bool = False, dry_run: bool = False
    ) -> ImportedRecords:
        """Store lines of an export, in its order (admin socket only)."""
        return await self._send(admin_calls.import_records(records, skip_conflicts=skip_conflicts, dry_run=dry_run))

    async def import_memories(
        self,
        items: Sequence[ImportDraft],
        *,
        import_id: str,
        dry_run: bool = False,
    ) -> ImportReport:
        """
        Store up to 100 statements of another system for this client's user or chat (admin socket only).

        They keep their times, are of trust "imported", and come once however often they are sent: an item is known by
        import_id and its external_id. How they stand to each other is judged soon after.
        """
        return await self._send(import_calls.import_memories(self.identity, items, import_id, dry_run=dry_run))

    async def import_messages(
        self, thread_id: str, messages: Sequence[MessageDraft], *, shared: bool = False, dry_run: bool = False
    ) -> ImportReport:
        """
        Store up to 100 messages of another system at the end of a thread, each once (admin socket only).

        They keep their ids, which they must have, and their times; they are learnt from.
        """
        call = import_calls.import_messages(self.identity, thread_id, messages, shared=shared, dry_run=dry_run)
        return await self._send(call)

    async def import_notes(
        self, notes: Sequence[ImportedNote], *, shared: bool = False, dry_run: bool = False
    ) -> ImportReport:
        """Store up to 100 notes of another system, with their times, where the path is free (admin socket only)."""
        return await self._send(import_calls.import_notes(self.identity, notes, shared=shared, dry_run=dry_run))

    async def verify_forgotten(self, memory_id: str, *, text: str = "") -> Proof:
        """Look for what is left of a purged memory (admin socket only)."""
        return await self._send(admin_calls.verify_forgotten(memory_id, text))

    async def jobs(self) -> list[JobStatus]:
        """Return every job, with when it runs next and how its last run went (admin socket only)."""
        return await self._send(job_calls.jobs())

    async def job_runs(self, *, job: str = "", page_size: int = 0) -> list[Run]:
        """Return the last runs of a job, or of all (admin socket only)."""
        return await self._send(job_calls.job_runs(job, page_size))

    async def job_run(self, run_id: str) -> Run:
        """Return a run as it is now (admin socket only)."""
        return await self._send(job_calls.job_run(run_id))

    async def run_job(self, job: str, *, dry_run: bool = False) -> Run:
        """Begin a run, or return the one that is under way; with dry_run tell what it would do (admin socket only)."""
        return await self._send(job_calls.run_job(job, dry_run=dry_run))

    async def cancel_job_run(self, run_id: str) -> Run:
        """End a run; what it has done stays done (admin socket only)."""
        return await self._send(job_calls.cancel_job_run(run_id))

    async def parked_threads(self, *, page_size: int = 0) -> list[ParkedThread]:
        """Return the threads that could not be learnt from, the longest first (admin socket only)."""
        return await self._send(job_calls.parked_threads(page_size))

    async def retry_parked_threads(
        self, thread_id: str = "", *, agent_id: str = "", user_id: str = "", chat_id: str = ""
    ) -> int:
        """Let parked threads be tried again, all or one; return how many (admin socket only)."""
        return await self._send(job_calls.retry_parked_threads(thread_id, agent_id, user_id, chat_id))

    async def pending_sessions(
        self,
        *,
        agent_id: str = "",
        user_id: str = "",
        chat_id: str = "",
        exclude_session_ids: Sequence[str] = (),
        page_size: int = 0,
        worker: str = "",
        wait_s: float = 0.0,
    ) -> list[Session]:
        """Return the sessions that have ended and were not learnt from; wait for one (admin socket only)."""
        call = consolidation_calls.pending_sessions(
            agent_id=agent_id,
            user_id=user_id,
            chat_id=chat_id,
            exclude_session_ids=exclude_session_ids,
            page_size=page_size,
            worker=worker,
            wait_s=wait_s,
        )
        return await self._send(call)

    async def session_messages(
        self, session: Session, *, worker: str, page_size: int = 0, page_token: str = ""
    ) -> SessionMessages:
        """Return the messages of a session in order, and lease it to a worker (admin socket only)."""
        return await self._send(consolidation_calls.session_messages(session, worker, page_size, page_token))

    async def save_facts(
        self, session: Session, facts: Sequence[SaidFact], *, worker: str, request_id: str = ""
    ) -> list[AddResult]:
        """Save what messages of a session say (admin socket only)."""
        return await self._send(consolidation_calls.save_facts(session, worker, facts, request_id))

    async def detect_conflicts(self, memory: ShownMemory, *, limit: int = 0) -> list[MemoryConflict]:
        """Return the memories that may contradict one (admin socket only)."""
        return await self._send(consolidation_calls.detect_conflicts(memory, limit))

    async def resolve_conflict(
        self, memory: ShownMemory, other_id: str, resolution: Resolution, *, reason: str = ""
    ) -> tuple[ShownMemory, ShownMemory]:
        """Decide between two memories, and return both as they are then (admin socket only)."""
        return await self._send(consolidation_calls.resolve_conflict(memory, other_id, resolution, reason))

    async def complete_session(self, session: Session, *, worker: str) -> Session:
        """Note that a session was learnt from (admin socket only)."""
        return await self._send(consolidation_calls.complete_session(session, worker))

    async def proposals(
        self, *, agent_id: str = "", user_id: str = "", chat_id: str = "", page_size: int = 0
    ) -> list[Proposal]:
        """Return what was learnt and waits to be approved, the oldest first (admin socket only)."""
        return await self._send(consolidation_calls.proposals(agent_id, user_id, chat_id, page_size))

    async def approve_proposal(self, proposal_id: str, *, content: str = "") -> AddResult:
        """Make a memory of what waits, in other words if some are given (admin socket only)."""
        return await self._send(consolidation_calls.approve_proposal(proposal_id, content))

    async def reject_proposal(self, proposal_id: str) -> Proposal:
        """Drop what waits, so that the same is not proposed again, and return it (admin socket only)."""
        return await self._send(consolidation_calls.reject_proposal(proposal_id))

    async def whoami(self) -> WhoAmI:
        """Return the identity in effect, and what it may do."""
        return await self._send(grant_calls.whoami(self.identity))

    async def open_sandbox(self, spec: GrantSpec) -> GrantStatus:
        """Make a grant with a socket of its own (admin socket only)."""
        return await self._send(grant_calls.open_sandbox(spec))

    async def grants(
        self, *, page_size: int = 0, page_token: str = "", include_ended: bool = False, listeners_only: bool = False
    ) -> GrantPage:
        """Return one page of grants, newest first (admin socket only)."""
        call = grant_calls.grants(
            page_size=page_size, page_token=page_token, include_ended=include_ended, listeners_only=listeners_only
        )
        return await self._send(call)

    async def revoke_grant(self, grant_id: str) -> Grant:
        """Take a grant back: its socket closes, its tokens count no longer (admin socket only)."""
        return await self._send(grant_calls.revoke_grant(grant_id))

    async def issue_token(
        self, target: GrantSpec | str, *, expire_time: datetime | None = None, via: str = ""
    ) -> IssuedToken:
        """Make a token for a new grant, or for the one of that id (admin socket only)."""
        return await self._send(grant_calls.issue_token(target, expire_time=expire_time, via=via))

    async def inspect_token(self, token: str) -> InspectedToken:
        """Return what a token allows and whether it counts (admin socket only)."""
        return await self._send(grant_calls.inspect_token(token))

    async def rotate_token_keys(self, *, drop_older: bool = False) -> TokenKeys:
        """Sign tokens with a new key; with drop_older those issued so far count no longer (admin socket only)."""
        return await self._send(grant_calls.rotate_token_keys(drop_older=drop_older))

    async def grant_memories(
        self, grant_id: str, *, page_size: int = 0, page_token: str = "", include_deleted: bool = False
    ) -> Page:
        """Return one page of the memories that came through a grant (admin socket only)."""
        return await self._send(
            grant_calls.grant_memories(
                grant_id, page_size=page_size, page_token=page_token, include_deleted=include_deleted
            )
        )

    async def delete_grant_memories(
        self,
        grant_id: str,
        *,
        dry_run: bool = False,
        purge: bool = False,
    ) -> ForgottenGrant:
        """Delete all that came through a grant, or count it (admin socket only)."""
        return await self._send(grant_calls.delete_grant_memories(grant_id, dry_run=dry_run, purge=purge))
