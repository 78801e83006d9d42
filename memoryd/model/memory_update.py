"""What is set of a memory besides what it says: its labels, and when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from memoryd.errors import InvalidArgument
from memoryd.model import limits
from memoryd.model.memory import Memory
from memoryd.model.validation import check_metadata, check_tags, check_text, check_time, metadata_text

__all__ = ["UPDATABLE", "MemoryUpdate"]

UPDATABLE = ("tags", "category", "metadata", "expire_time")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUpdate:
    """The fields that are set are those of the mask; the others stay as they are."""

    mask: frozenset[str]
    tags: tuple[str, ...] = ()
    category: str = ""
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """All of it from now on."""
    expire_time: datetime | None = None
    """None: never."""

    def __post_init__(self) -> None:
        """Check every field; InvalidArgument or LimitExceeded names the first that is wrong."""
        put = object.__setattr__
        known = ", ".join(UPDATABLE)
        unknown = sorted(self.mask.difference(UPDATABLE))
        if unknown:
            raise InvalidArgument(f"update_mask names {unknown[0]!r}; it may name {known}", field="update_mask")
        if not self.mask:
            raise InvalidArgument(f"update_mask is empty; name what is set: {known}", field="update_mask")
        put(self, "tags", check_tags(self.tags))
        put(self, "category", check_text(self.category, "category", limit=limits.MAX_CATEGORY_BYTES).strip())
        put(self, "metadata", check_metadata(self.metadata))
        put(self, "expire_time", check_time(self.expire_time, "expire_time"))

    @property
    def ends(self) -> bool:
        """Whether it says when the memory expires, or that it never does."""
        return "expire_time" in self.mask

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text that would be stored."""
        return (*self.tags, self.category, *(f"{key}: {metadata_text(value)}" for key, value in self.metadata.items()))

    def of(self, memory: Memory) -> Memory:
        """Return a memory with what is set."""
        return replace(memory, **{name: getattr(self, name) for name in self.mask})
