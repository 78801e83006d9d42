"""Between the profile of the model and that of the wire."""

from __future__ import annotations

from collections.abc import Iterable

from memoryd.model.results import ProfileItem
from memoryd.v1 import memory_service_pb2 as pb
from memoryd.wire.memory import memory_from_pb, memory_to_pb

__all__ = ["profile_from_pb", "profile_to_pb"]


def profile_to_pb(items: Iterable[ProfileItem]) -> pb.GetUserProfileResponse:
    """Return the statements of a profile as message."""
    return pb.GetUserProfileResponse(
        items=[pb.ProfileItem(topic=item.topic, memory=memory_to_pb(item.memory)) for item in items]
    )


def profile_from_pb(message: pb.GetUserProfileResponse) -> list[ProfileItem]:
    """Return a message as the statements of a profile."""
    return [ProfileItem(item.topic, memory_from_pb(item.memory)) for item in message.items]
