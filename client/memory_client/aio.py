"""The client for asyncio; `client` is generated from it."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import grpc

from memory_client import calls
from memory_client.aio_conversations import AsyncConversations
from memory_client.aio_notes import AsyncNotes
from memory_client.aio_operations import AsyncOperations
from memory_client.calls import ATTEMPTS, Call, backoff_s
from memory_client.credentials import Credentials, TokenSource, channel_credentials
from memory_client.endpoint import CHANNEL_OPTIONS, Identity, check_timeout, resolve_endpoint
from memory_client.failures import CLOSED, NO_ANSWER, error_of
from memory_client.late import Late
from memory_client.tracing import trace_metadata
from memoryd.errors import ConnectionLost, InvalidArgument, Unavailable
from memoryd.model.memory import Draft, Kind, ShownMemory, Source
from memoryd.model.query import Filter
from memoryd.model.results import (
    AddResult,
    Confirmed,
    Deleted,
    DeletedMany,
    History,
    Page,
    ProfileItem,
    SearchResult,
    Stats,
)

if TYPE_CHECKING:
    from memory_client import admin_calls, grant_calls, knowledge_calls
    from memoryd.model.entity import EntityType, Profile
    from memoryd.model.reports import (
        EntityMemories,
        ErasedUser,
        ForgottenPerson,
        Merged,
        PeoplePage,
    )
else:  # what the host alone calls takes a third of the time of a command
    admin_calls, grant_calls, knowledge_calls = (
        Late(f"memory_client.{name}") for name in ("admin_calls", "grant_calls", "knowledge_calls")
    )

__all__ = ["AsyncMemoryClient"]

T = TypeVar("T")
DEFAULT_TIMEOUT_S = 10.0
_ANY = Filter()


class AsyncMemoryClient(AsyncConversations, AsyncNotes, AsyncOperations):
    """
    One channel to the daemon, and one method an RPC.

    What is not given comes from the environment: MEMORY_ENDPOINT (`unix:///path` or `host:port`; unset: the default
    socket), MEMORY_USER_ID, MEMORY_CHAT_ID, MEMORY_AGENT_ID, and what `Credentials.from_env` reads. TCP is always TLS.
    Every method raises the errors drawn in
    `memoryd.errors`. UNAVAILABLE is retried, as every write carries a request_id.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        user_id: str | None = None,
        chat_id: str | None = None,
        agent_id: str | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        wait_for_ready: bool | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        """
        Open a channel; nothing is sent yet. timeout_s bounds each call with its retries.

        Where no one listens a call fails at once, unless an earlier one was answered: then it waits for the daemon to
        come back, as long as timeout_s. wait_for_ready says to wait always, or never.
        """
        self.target = resolve_endpoint(endpoint, os.environ)
        check_timeout(timeout_s)
        self.identity = Identity.from_env(os.environ, agent_id, user_id, chat_id)
        self._timeout_s = timeout_s
        self._wait_for_ready = wait_for_ready
        self._answered = threading.Event()  # shared by all clients of the channel
        shown = Credentials.from_env(os.environ) if credentials is None else credentials
        tls = channel_credentials(self.target, shown)
        self._token = TokenSource(shown)
        self._certified = bool(shown.certificate_file)
        if tls is None:
            self._channel = grpc.aio.insecure_channel(self.target, options=CHANNEL_OPTIONS)
        else:
            self._channel = grpc.aio.secure_channel(self.target, tls, options=CHANNEL_OPTIONS)
        self._methods: dict[str, Any] = {}

    def acting_for(
        self, *, user_id: str | None = None, chat_id: str | None = None, agent_id: str | None = None
    ) -> AsyncMemoryClient:
        """Return a client of the same channel for someone else; what is not given is no one, not this client's."""
        other = object.__new__(AsyncMemoryClient)
        other.__dict__.update(self.__dict__)
        other.identity = Identity(agent_id or "", user_id or "", chat_id or "")
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (*self._token.metadata(), *trace_metadata())

    async def close(self) -> None:
        """Close the channel, also under clients that share it."""
        await self._channel.close()

    async def _send(self, call: Call[T]) -> T:
        method = self._methods.get(call.path)
        if method is None:
            method = self._methods[call.path] = self._channel.unary_unary(
                call.path,
                request_serializer=type(call.request).SerializeToString,
                response_deserializer=call.response.FromString,
            )
        deadline = time.monotonic() + self._timeout_s
        doubtful: ConnectionLost | None = None
        for attempt in range(ATTEMPTS):
            wait = self._answered.is_set() if self._wait_for_ready is None else self._wait_for_ready
            left = max(0.001, deadline - time.monotonic())
            try:
                answer = await method(call.request, timeout=left, wait_for_ready=wait, metadata=self._metadata())
            except CLOSED as failure:
                raise InvalidArgument(f"the client is closed ({failure})") from None
            except grpc.RpcError as failure:
                error = error_of(failure, self.target, writes=call.writes, certified=self._certified)
                if failure.code() not in NO_ANSWER:
                    self._answered.set()  # a refusal is an answer too
                if isinstance(error, ConnectionLost) and call.writes:
                    doubtful = error
                elif isinstance(error, Unavailable) and doubtful is not None:
                    error = doubtful  # an earlier attempt may have been carried out
                pause = backoff_s(attempt)
                last = attempt == ATTEMPTS - 1 or time.monotonic() + pause >= deadline
                if not isinstance(error, Unavailable | ConnectionLost) or not call.retryable or last:
                    raise error from None
            else:
                self._answered.set()
                return call.parse(answer)
            await asyncio.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def add(  # noqa: PLR0913  one argument for each field of the contract
        self,
        content: str,
        *,
        kind: Kind = Kind.FACT,
        shared: bool = False,
        subjects: Sequence[str] = (),
        tags: Sequence[str] = (),
        category: str = "",
        metadata: Mapping[str, Any] | None = None,
        key: str = "",
        source: Source | None = None,
        event_time: datetime | None = None,
        confidence: float = 1.0,
        decay_rate: float | None = None,
        expires_days: float | None = None,
        expire_time: datetime | timedelta | None = None,
        request_id: str = "",
    ) -> AddResult:
        """Store a statement; a request_id is made where none is given, so that a retry stores it once."""
        draft = Draft(
            content=content,
            kind=kind,
            shared=shared,
            subjects=subjects,  # type: ignore[arg-type]  # Draft makes tuples of what it checks
            tags=tags,  # type: ignore[arg-type]  # as above
            category=category,
            metadata=metadata or {},
            key=key,
            source=source or Source(),
            event_time=event_time,
            confidence=confidence,
            decay_rate=decay_rate,
            expires_days=expires_days,
            expire_time=expire_time,  # type: ignore[arg-type]  # as above: how long becomes expires_days
        )
        return await self._send(calls.add(self.identity, draft, request_id))

    async def add_batch(self, drafts: Sequence[Draft], *, request_id: str = "") -> list[AddResult]:
        """Store up to 100 statements in order and in one transaction."""
        return await self._send(calls.add_batch(self.identity, drafts, request_id))

    async def search(  # noqa: PLR0913  one argument for each field of the contract
        self,
        query: str,
        *,
        limit: int = 0,
        filter: Filter = _ANY,
        min_score: float | None = None,
        explain: bool = False,
        as_of: datetime | None = None,
        why_not: str = "",
        without_recall: bool = False,
    ) -> SearchResult:
        """
        Return the memories that answer a query, best first; limit 0 means 10.

        min_score None leaves out what is no answer, 0 nothing. `as_of` answers as of a time; `why_not` also tells why a
        memory is not found. `without_recall` counts no hit as recalled.
        """
        call = calls.search(
            self.identity,
            query,
            limit=limit,
            wanted=filter,
            min_score=min_score,
            explain=explain,
            as_of=as_of,
            why_not=why_not,
            without_recall=without_recall,
        )
        return await self._send(call)

    async def page(self, *, page_size: int = 0, page_token: str = "", filter: Filter = _ANY) -> Page:
        """Return one page of what is visible, newest first; page_size 0 means 20."""
        return await self._send(calls.page(self.identity, page_size=page_size, page_token=page_token, wanted=filter))

    async def pages(self, *, page_size: int = 0, filter: Filter = _ANY) -> AsyncIterator[ShownMemory]:
        """Yield all that is visible, newest first, fetching page after page."""
        token = ""
        while True:
            page = await self.page(page_size=page_size, page_token=token, filter=filter)
            for memory in page.memories:
                yield memory
            token = page.next_page_token
            if not token:
                return

    async def get(self, memory_id: str) -> ShownMemory:
        """Return one memory by its id or a unique prefix of at least 8 characters."""
        return await self._send(calls.get(self.identity, memory_id))

    async def delete(
        self, memory_id: str, *, allow_missing: bool = False, purge: bool = False, request_id: str = ""
    ) -> Deleted:
        """Hide a memory until it is restored or purged; with purge erase it at once."""
        call = calls.delete(self.identity, memory_id, allow_missing=allow_missing, purge=purge, request_id=request_id)
        return await self._send(call)

    async def restore(self, memory_id: str, *, request_id: str = "") -> ShownMemory:
        """Undo a delete, or a supersession."""
        return await self._send(calls.restore(self.identity, memory_id, request_id))

    async def profile(self) -> list[ProfileItem]:
        """Return what is always true of the user, the most important first; every context begins with it."""
        return await self._send(calls.profile(self.identity))

    async def stats(self) -> Stats:
        """Count what is visible."""
        return await self._send(calls.stats(self.identity))

    async def delete_matching(  # noqa: PLR0913  one argument for each field of the contract
        self,
        *,
        filter: Filter = _ANY,
        text: str = "",
        source: Source | None = None,
        grant_id: str = "",
        shared: bool | None = None,
        dry_run: bool = False,
        purge: bool = False,
        request_id: str = "",
    ) -> DeletedMany:
        """Hide all that a filter describes, or erase it with purge; with dry_run only tell what would go."""
        call = knowledge_calls.delete_matching(
            self.identity,
            wanted=filter,
            text=text,
            source=source,
            grant_id=grant_id,
            shared=shared,
            dry_run=dry_run,
            purge=purge,
            request_id=request_id,
        )
        return await self._send(call)

    async def history(self, memory_id: str) -> History:
        """Return a memory with what it replaced and what replaced it, and why."""
        return await self._send(knowledge_calls.history(self.identity, memory_id))

    async def correct(self, memory_id: str, content: str, *, request_id: str = "") -> AddResult:
        """Replace what a memory says."""
        return await self._send(knowledge_calls.correct(self.identity, memory_id, content, request_id))

    async def confirm(self, memory_id: str, *, protect: bool = True) -> Confirmed:
        """Say that a memory is true; unless protect is False, nothing automatic ends it any more."""
        return await self._send(knowledge_calls.confirm(self.identity, memory_id, protect=protect))

    async def update(
        self,
        memory_id: str,
        *,
        tags: Sequence[str] | None = None,
        category: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expire_time: datetime | timedelta | Literal["never"] | None = None,
    ) -> ShownMemory:
        """Set labels of a memory, or when it expires; None leaves a field as it is, metadata is replaced whole."""
        given = {"tags": tags, "category": category, "metadata": metadata, "expire_time": expire_time}
        return await self._send(knowledge_calls.update(self.identity, memory_id, given))

    async def people(self, *, page_size: int = 0, page_token: str = "") -> PeoplePage:
        """Return one page of the people that memories name, those named most often first; page_size 0 means 20."""
        return await self._send(knowledge_calls.people(self.identity, page_size=page_size, page_token=page_token))

    async def entity(self, name: str, *, limit: int = 0) -> EntityMemories:
        """Return who or what is known by a name, nickname, relation or id, and the memories about it."""
        return await self._send(knowledge_calls.entity(self.identity, name, limit=limit))

    async def rename_entity(self, name: str, new_name: str) -> Profile:
        """Give an entity another name."""
        return await self._send(knowledge_calls.rename_entity(self.identity, name, new_name))

    async def set_entity_type(self, name: str, type: EntityType) -> Profile:  # noqa: A002  as in the contract
        """Say that an entity is a person, or that it is none, whatever memories say."""
        return await self._send(knowledge_calls.set_entity_type(self.identity, name, type))

    async def merge_entities(self, name: str, into: str) -> Merged:
        """Say that two entities are one."""
        return await self._send(knowledge_calls.merge_entities(self.identity, name, into))

    async def unmerge_entity(self, entity_id: str) -> Profile:
        """Take an entity, by its id or as an alias, out of the one that it is part of."""
        return await self._send(knowledge_calls.unmerge_entity(self.identity, entity_id))

    async def forget_person(self, name: str, *, with_messages: bool = False, dry_run: bool = False) -> ForgottenPerson:
        """Erase all memories about a person, and what was said of them if asked for; it cannot be undone."""
        call = knowledge_calls.forget_person(self.identity, name, with_messages=with_messages, dry_run=dry_run)
        return await self._send(call)

    async def forget_user(self, *, dry_run: bool = False) -> ErasedUser:
        """Erase all that the user has with this agent, memories and conversations; it cannot be undone."""
        return await self._send(knowledge_calls.forget_user(self.identity, dry_run=dry_run))
