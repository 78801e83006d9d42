"""
Who and what memories name.

What an entity is called and how it is related is never stored with it: each memory notes which entity it names by which
words (`Mention`), and the directory of a scope is read off the memories that are there. So whatever is deleted takes
its names along, and a judgement that is undone is undone here too. Only what someone decided by hand is a row
(`Entity`): a name or a type that was given, a merge, a separation.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING

from memoryd.model.open_enum import OpenEnum

if TYPE_CHECKING:
    from memoryd.model.scope import Owner
    from memoryd.model.trust import Trust

__all__ = ["ADDRESSES", "GIVEN_TYPES", "Entity", "EntityRef", "EntityType", "Form", "Mention", "Profile"]


class EntityType(OpenEnum):
    """What sort of thing an entity is."""

    PERSON = "person"
    ORGANIZATION = "organization"
    PROJECT = "project"
    LOCATION = "location"
    EMAIL = "email"
    URL = "url"
    OTHER = "other"


GIVEN_TYPES = (
    EntityType.PERSON,
    EntityType.ORGANIZATION,
    EntityType.PROJECT,
    EntityType.LOCATION,
    EntityType.OTHER,
)
"""What someone may say that an entity is."""
ADDRESSES = frozenset({EntityType.EMAIL, EntityType.URL})
"""What an entity is by its form; no one says otherwise."""


class Form(Enum):
    """By what sort of words an entity is named."""

    NAME = "name"
    RELATION = "relation"
    HANDLE = "handle"
    EMAIL = "email"
    URL = "url"
    HASHTAG = "hashtag"


@dataclass(frozen=True, slots=True)
class Mention:
    """That a memory names an entity, and how."""

    entity_id: str
    text: str
    """As it is written; of a relation the relation ("wife")."""
    form: Form
    type: EntityType
    about: bool
    """Whether the memory is about it; else it only mentions it."""
    same_as: str = ""
    """Another entity that this memory shows to be the same; empty: none."""


@dataclass(frozen=True, slots=True)
class Entity:
    """What someone decided of an entity by hand."""

    id: str
    owner: Owner
    create_time: datetime
    trust: Trust
    """The trust of the last decision; lower trust cannot change it."""
    name: str = ""
    """The name that it was given; empty: as memories call it."""
    merged_into: str = ""
    apart: tuple[str, ...] = ()
    """Entities that it is not, whatever memories say."""
    type: EntityType | None = None
    """What it is, whatever memories say; None: as they say."""


@dataclass(frozen=True, slots=True)
class EntityRef:
    """An entity as an answer names it."""

    id: str
    name: str
    about: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """An entity with all that is known of it; fields as in `entity.proto`."""

    id: str
    owner: Owner
    type: EntityType
    name: str
    aliases: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    summary: str = ""
    mention_count: int = 0
    first_seen_time: datetime | None = None
    last_seen_time: datetime | None = None
    merged_ids: tuple[str, ...] = ()
    merged_names: tuple[str, ...] = ()
