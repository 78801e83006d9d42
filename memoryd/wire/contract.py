"""What the contract says of a method besides its messages."""

from __future__ import annotations

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions

__all__ = ["writes_of"]


def writes_of(method: MethodDescriptor) -> bool:
    """Whether a method may change what is stored: all may that the contract does not call free of side effects."""
    return bool(method.GetOptions().idempotency_level != MethodOptions.NO_SIDE_EFFECTS)
