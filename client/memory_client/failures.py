"""From a failed call to the error that the daemon raised."""

from __future__ import annotations

from typing import Any

import grpc

from memoryd.errors import (
    Conflict,
    ConnectionLost,
    InternalError,
    InvalidArgument,
    LimitExceeded,
    MemorydError,
    NotFound,
    PermissionDenied,
    StoreDamaged,
    TimedOut,
    Unauthenticated,
    Unavailable,
    by_reason,
)

__all__ = ["CLOSED", "NO_ANSWER", "error_of"]

_BY_CODE: dict[grpc.StatusCode, type[MemorydError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgument,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.RESOURCE_EXHAUSTED: LimitExceeded,
    grpc.StatusCode.ABORTED: Conflict,
    grpc.StatusCode.DATA_LOSS: StoreDamaged,
}


CLOSED = (ValueError, grpc.aio.UsageError)
"""What gRPC raises of a channel that is closed."""
NO_ANSWER = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED})
"""What gRPC itself says where no one has answered."""
_CUT_SHORT = ("socket closed", "connection reset", "broken pipe", "certificate_required", "tlsv13_alert")
_NOT_SENT = ("failed to connect", "connection refused", "no such file", "connect failed", "permission denied")


def error_of(failure: Any, target: str, *, writes: bool = True, certified: bool = False) -> MemorydError:
    """
    Return what the status of a grpc.RpcError says of a call that writes or only reads.

    Unavailable promises that nothing was written, so it stands only for what the daemon says itself and for what was
    never sent; a connection that broke in mid-call is TimedOut. `certified`: the client has shown a certificate.
    """
    doubt = "; a write may have happened" if writes else ""
    code, message = failure.code(), failure.details() or ""
    for key, value in failure.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            error = _detailed(value, message)
            if error is not None:
                return error
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return TimedOut(f"{target} gave no answer in time{doubt}")
    if code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}:
        is_down = code is grpc.StatusCode.UNAVAILABLE
        return _unanswered(target, message, doubt, certified=certified, is_down=is_down)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in message:
        return LimitExceeded(f"one call or answer is too large ({message}); ask for less, or send it in several calls")
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return PermissionDenied(
            f"{target} does not have this call: hosts make it on the admin socket, or memoryd is older than the client"
        )
    return _BY_CODE.get(code, InternalError)(message or f"memoryd answered {code.name}")


def _unanswered(target: str, message: str, doubt: str, *, certified: bool, is_down: bool) -> MemorydError:
    """Return what a message of gRPC itself says of a call that no one has answered."""
    lower, over_tls = message.lower(), not target.startswith("unix:")
    not_sent = any(words in lower for words in _NOT_SENT)
    if "permission denied" in lower:
        way = "the host has to mount its directory for it" if _is_sandbox(target) else "run as the user of memoryd"
        return PermissionDenied(f"this user may not open {target}; {way}")
    if "CERTIFICATE_VERIFY_FAILED" in message:
        return Unavailable(f"the certificate of {target} is not trusted; name who signed it in MEMORY_TLS_CA_FILE")
    if "Hostname Verification" in message:
        return Unavailable(f"the certificate of {target} is for another host; use the name that it is for")
    if not certified and over_tls and any(words in lower for words in _CUT_SHORT):
        return ConnectionLost(
            f"{target} closed the connection{doubt}; if it asks its clients for a certificate, name yours in"
            " MEMORY_TLS_CERTIFICATE_FILE and MEMORY_TLS_KEY_FILE"
        )
    if _is_sandbox(target) and not_sent:
        return Unavailable(f"no one serves {target}: the sandbox was closed or has expired, or memoryd is stopped")
    if is_down and not_sent:
        why = message.rpartition("error: ")[2] or message  # gRPC tells the whole way there
        way = "start it (memoryd serve), or name another endpoint"
        if not certified and over_tls:
            way += "; where it asks its clients for a certificate, name yours in MEMORY_TLS_CERTIFICATE_FILE"
        return Unavailable(f"cannot reach memoryd at {target}: {why}; {way}")
    return ConnectionLost(f"the connection to {target} broke{doubt}")


def _is_sandbox(target: str) -> bool:
    return target.startswith("unix:") and target.endswith("/memory.sock")


def _detailed(serialised: bytes, message: str) -> MemorydError | None:
    from google.rpc import error_details_pb2, status_pb2  # on errors only: it costs 10 ms to import

    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    for detail in status_pb2.Status.FromString(serialised).details:
        if detail.Is(info.DESCRIPTOR):
            detail.Unpack(info)
        elif detail.Is(bad.DESCRIPTOR):
            detail.Unpack(bad)
    cls = by_reason(info.reason)
    if cls is None:
        return None
    field = bad.field_violations[0].field if bad.field_violations else ""
    return cls(message, field=field, limit=info.metadata.get("limit", ""))
