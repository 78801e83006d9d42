"""Between the values of `entity` and the messages of the contract; shared by the service and the client."""

from __future__ import annotations

from typing import Any

from memoryd.model.entity import EntityType, Profile
from memoryd.model.scope import Owner, Scope
from memoryd.v1 import entity_pb2, memory_pb2
from memoryd.wire.memory import EnumCodes, set_time, time_from_pb

__all__ = ["profile_from_pb", "profile_to_pb", "type_from_pb", "type_to_pb"]

TYPE = EnumCodes(EntityType, entity_pb2, "ENTITY_TYPE")


def type_to_pb(given: EntityType) -> Any:
    """Return a type as its code."""
    return TYPE.to_pb(given)


def type_from_pb(code: int) -> EntityType:
    """Return the type of a code; of one that is none, or a later version's, a stranger."""
    return TYPE.from_pb(code)


def profile_to_pb(profile: Profile) -> entity_pb2.Entity:
    """Return an entity as message."""
    scope = profile.owner.scope
    message = entity_pb2.Entity(
        id=profile.id,
        agent_id=profile.owner.agent_id,
        scope=memory_pb2.Scope(user_id=scope.user_id or "", chat_id=scope.chat_id or ""),
        type=TYPE.to_pb(profile.type),
        name=profile.name,
        aliases=profile.aliases,
        relations=profile.relations,
        summary=profile.summary,
        mention_count=profile.mention_count,
        merged_ids=profile.merged_ids,
        merged_names=profile.merged_names,
    )
    set_time(message, "first_seen_time", profile.first_seen_time)
    set_time(message, "last_seen_time", profile.last_seen_time)
    return message


def profile_from_pb(message: entity_pb2.Entity) -> Profile:
    """Return a message as entity."""
    return Profile(
        id=message.id,
        owner=Owner(message.agent_id, Scope(message.scope.user_id or None, message.scope.chat_id or None)),
        type=TYPE.from_pb(message.type),
        name=message.name,
        aliases=tuple(message.aliases),
        relations=tuple(message.relations),
        summary=message.summary,
        mention_count=message.mention_count,
        first_seen_time=time_from_pb(message, "first_seen_time"),
        last_seen_time=time_from_pb(message, "last_seen_time"),
        merged_ids=tuple(message.merged_ids),
        merged_names=tuple(message.merged_names),
    )
