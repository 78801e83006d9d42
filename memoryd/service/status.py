"""From errors to codes: the one place where an exception meets the wire."""

from __future__ import annotations

import grpc
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2

from memoryd.errors import MemorydError

__all__ = ["STATUS_KEY", "status_of"]

STATUS_KEY = "grpc-status-details-bin"
DOMAIN = "memoryd"


def status_of(error: MemorydError) -> tuple[grpc.StatusCode, str, bytes]:
    """Return the code, the message, and the serialised google.rpc.Status with reason and field."""
    code = grpc.StatusCode[error.code]
    info = error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN)
    if error.limit:
        info.metadata["limit"] = error.limit
    details = [info, *_bad_request(error)]
    status = status_pb2.Status(code=code_pb2.Code.Value(error.code), message=error.message)
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    return code, error.message, status.SerializeToString()


def _bad_request(error: MemorydError) -> list[error_details_pb2.BadRequest]:
    if not error.field:
        return []
    violation = error_details_pb2.BadRequest.FieldViolation(field=error.field, description=error.message)
    return [error_details_pb2.BadRequest(field_violations=[violation])]
