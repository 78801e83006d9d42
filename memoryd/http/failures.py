"""What went wrong, as the Connect protocol says it (connectrpc.com/docs/protocol, "Error codes")."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable
from typing import Any

import grpc
from google.protobuf import json_format
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status
from memory_client.failures import error_of

from memoryd.errors import TimedOut

__all__ = ["Failure", "of_call"]

STATUS = {
    "canceled": 499, "unknown": 500, "invalid_argument": 400, "deadline_exceeded": 504, "not_found": 404,
    "already_exists": 409, "permission_denied": 403, "resource_exhausted": 429, "failed_precondition": 400,
    "aborted": 409, "out_of_range": 400, "unimplemented": 501, "internal": 500, "unavailable": 503, "data_loss": 500,
    "unauthenticated": 401,
}  # fmt: skip
DOMAIN = "memoryd"
DETAILS = "grpc-status-details-bin"
RATE = "calls_per_second"  # the limit that time alone lifts


class Failure(Exception):
    """A call that failed: a code, a message, details; and the status and headers of the answer."""

    def __init__(
        self, code: str, message: str, *details: Packed, status: int = 0, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details
        self.status = status or STATUS[code]
        self.headers = headers or {}

    @classmethod
    def at_the_door(
        cls, code: str, reason: str, message: str, *, field: str = "", limit: str = "", **more: Any
    ) -> Failure:
        """Return one that the daemon was not asked for, with the details that it would have."""
        details = [ErrorInfo(reason=reason, domain=DOMAIN, metadata={"limit": limit} if limit else None)]
        if field:
            violation = BadRequest.FieldViolation(field=field, description=message)
            details.append(BadRequest(field_violations=[violation]))
        return cls(code, message, *map(_packed, details), **more)

    @property
    def is_the_daemons(self) -> bool:
        """Whether a daemon has said so, and not what lies between."""
        info = ErrorInfo()
        return any(detail.Unpack(info) and info.domain == DOMAIN for detail in self.details)

    def body(self) -> bytes:
        """Return the answer's body."""
        told: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.details:
            told["details"] = [_detail(detail) for detail in self.details]
        return json.dumps(told, ensure_ascii=False).encode(errors="replace")


def _packed(detail: Message) -> Packed:
    packed = Packed()
    packed.Pack(detail)
    return packed


def _detail(packed: Packed) -> dict[str, Any]:
    """Return a detail: its bytes for clients, and `debug` for people."""
    told: dict[str, Any] = {
        "type": packed.type_url.rpartition("/")[2],
        "value": b64encode(packed.value).decode().rstrip("="),
    }
    for known in (ErrorInfo(), BadRequest()):
        if packed.Unpack(known):
            told["debug"] = json_format.MessageToDict(known)
    return told


def of_call(error: grpc.aio.AioRpcError, target: str) -> Failure:
    """Return what a call of the daemon failed with."""
    code = "canceled" if error.code() is grpc.StatusCode.CANCELLED else error.code().name.lower()
    raw = dict(error.trailing_metadata() or ()).get(DETAILS)
    if not isinstance(raw, bytes):
        return _unanswered(error, target, code)
    try:
        details = Status.FromString(raw).details
    except DecodeError:
        details = ()
    return Failure(code, error.details() or "", *details, headers=_way_out(code, details))


def _way_out(code: str, details: Iterable[Packed]) -> dict[str, str]:
    """Return the headers that tell a client what to do: get a token, or wait."""
    if code == "unauthenticated":
        return {"www-authenticate": "Bearer"}
    info = ErrorInfo()
    is_rate = any(detail.Unpack(info) and info.metadata.get("limit") == RATE for detail in details)
    return {"retry-after": "1"} if is_rate or code == "unavailable" else {}


def _unanswered(error: grpc.aio.AioRpcError, target: str, code: str) -> Failure:
    """Return what gRPC itself says, in words of our own: its words name our socket."""
    known = error_of(error, target)
    if isinstance(known, TimedOut) and code == "unavailable":  # no reason is given: it might have been carried out
        return Failure(
            code, "the connection to memoryd broke; a write may have happened: ask again, with its request_id"
        )
    if code == "unavailable":
        message = "memoryd does not answer, and nothing was written; ask again later"
        return Failure.at_the_door(code, "UNAVAILABLE", message, headers=_way_out(code, ()))
    return Failure(code, error.details() or "")
