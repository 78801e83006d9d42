"""A request id gets its first answer: the effect and the note of it are one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TypeVar

from memoryd.domain.payload import is_payload, payload_hash
from memoryd.domain.ports import Ports
from memoryd.errors import RequestIdReused
from memoryd.model.caller import Caller
from memoryd.model.change import RecordedRequest
from memoryd.model.memory import Memory
from memoryd.model.receipt import AddReceipt, MemoriesReceipt, Receipt, StatementOutcome
from memoryd.model.scope import Owner, Visibility
from memoryd.model.validation import check_id
from memoryd.store.base import Store

__all__ = ["IdempotentRequest", "deleted_ids", "idempotent", "memory_now", "receipt_of", "statements_of"]


class IdempotentRequest:
    """One request with its id; without an id every call is a first one."""

    def __init__(
        self, ports: Ports, owner: Owner, method: str, request_id: str, payload: object, first_form: object
    ) -> None:
        self._ports = ports
        self._owner = owner
        self._method = method
        self._request_id = request_id
        self._payload, self._first_form = payload, first_form
        self.was_seen = bool(request_id) and ports.shared.seen_requests.note((owner, method, request_id))
        """Whether a call of late had this id, carried out or not."""

    async def earlier(self) -> RecordedRequest | None:
        """Return what the first call did; RequestIdReused if that was another request."""
        if not self._request_id:
            return None
        known = await self._ports.store.commits.recorded(self._owner, self._method, self._request_id)
        if known is not None and not is_payload(self._payload, known.payload_hash, self._first_form):
            raise RequestIdReused(
                f"request_id {self._request_id} came with another request before; make a new one", field="request_id"
            )
        return known

    def record(self, receipt: Receipt, now: datetime) -> RecordedRequest | None:
        """Return the note to write with the effect; None without an id."""
        if not self._request_id:
            return None
        hashed = payload_hash(self._payload)
        return RecordedRequest(self._owner, self._method, self._request_id, hashed, receipt, now)


R = TypeVar("R", bound=Receipt)


def receipt_of(earlier: RecordedRequest, kind: type[R]) -> R:
    """Return the receipt of a request; its method has one kind alone."""
    if not isinstance(earlier.receipt, kind):
        raise TypeError(f"{earlier.method} has a receipt of another method")
    return earlier.receipt


def statements_of(earlier: RecordedRequest) -> tuple[StatementOutcome, ...]:
    """Return what became of the statements of an earlier request."""
    return receipt_of(earlier, AddReceipt).statements


def deleted_ids(earlier: RecordedRequest) -> tuple[str, ...]:
    """Return what an earlier request has hidden, without what was purged since."""
    if earlier.receipt == AddReceipt():  # of before receipts had kinds: nothing was hidden
        return ()
    return tuple(ref.id for ref in receipt_of(earlier, MemoriesReceipt).memories)


@asynccontextmanager
async def idempotent(
    ports: Ports, caller: Caller, method: str, request_id: str, payload: object, first_form: object = None
) -> AsyncIterator[IdempotentRequest]:
    """Enter a request; another call with the same id waits until this one has left. `first_form`: see `payload`."""
    request_id = check_id(request_id, "request_id")
    method = f"{method} {caller.grant_id}".strip()  # one grant's ids say nothing of another's, nor of the host's
    owner = caller.visibility.owners[0]
    caller_ids = (caller.agent_id, caller.user_id, caller.chat_id)
    first = (*caller_ids, payload if first_form is None else first_form)
    request = IdempotentRequest(ports, owner, method, request_id, (*caller_ids, payload), first)
    if not request_id:
        yield request
        return
    async with ports.shared.request_locks.hold([(owner, method, request_id)]):
        yield request


async def memory_now(store: Store, visible: Visibility, memory_id: str) -> Memory | None:
    """Return the memory of an earlier answer as it is stored now; None if it was purged."""
    memories = await store.memories.find(visible, memory_id, deleted=True) if memory_id else []
    return memories[0] if memories else None
