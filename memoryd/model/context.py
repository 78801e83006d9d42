"""What BuildContext is asked and answers, shared by the daemon and the client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memoryd.errors import InvalidArgument
from memoryd.model import limits
from memoryd.model.memory import Kind
from memoryd.model.results import Leg
from memoryd.model.short_repr import ShortRepr
from memoryd.model.trust import Trust
from memoryd.model.validation import check_count, check_id, check_ids, check_share, check_text

__all__ = [
    "ALWAYS_TRUE",
    "KNOWN_PEOPLE",
    "OTHER_THREADS",
    "RECALLED_MESSAGES",
    "RECENT_MESSAGES",
    "RELEVANT_MEMORY",
    "SECTIONS",
    "THREAD_SUMMARY",
    "WEEKLY_INSIGHT",
    "WORKING_MEMORY",
    "BuiltContext",
    "ContextItem",
    "ContextRequest",
    "ContextSection",
]

_OWN = {"internal": True}  # a field that the daemon keeps for itself
ALWAYS_TRUE = "profile"
KNOWN_PEOPLE = "known_people"
RELEVANT_MEMORY = "relevant_memory"
WEEKLY_INSIGHT = "weekly_insight"
WORKING_MEMORY = "working_memory"
THREAD_SUMMARY = "thread_summary"
RECALLED_MESSAGES = "recalled_messages"
OTHER_THREADS = "other_threads"
RECENT_MESSAGES = "recent_messages"
SECTIONS = (
    ALWAYS_TRUE,
    KNOWN_PEOPLE,
    RELEVANT_MEMORY,
    WEEKLY_INSIGHT,
    WORKING_MEMORY,
    THREAD_SUMMARY,
    RECALLED_MESSAGES,
    OTHER_THREADS,
    RECENT_MESSAGES,
)
"""In the order in which they are written unless the request says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """For which prompt, and how much; fields as in `context_service.proto`, 0 and None are the daemon's defaults."""

    prompt: str = ""
    max_tokens: int = 0
    max_memories: int = 0
    min_score: float | None = None
    thread_id: str = ""
    shared: bool = False
    max_recent_messages: int = 0
    max_recalled_messages: int = 0
    exclude_thread_ids: tuple[str, ...] = ()
    exclude_session_ids: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    tokenizer: str = ""

    def __post_init__(self) -> None:
        """Check every field; InvalidArgument or LimitExceeded names the first that is wrong."""
        put = object.__setattr__
        put(self, "prompt", check_text(self.prompt, "prompt", limit=limits.MAX_PROMPT_BYTES))
        for name, most in _MOST.items():
            put(self, name, check_count(getattr(self, name), name, default=0, limit=most))
        if self.min_score is not None:
            check_share(self.min_score, "min_score")
        for name in ("thread_id", "tokenizer"):
            put(self, name, check_id(getattr(self, name), name))
        for name in ("exclude_thread_ids", "exclude_session_ids"):
            put(self, name, check_ids(getattr(self, name), name))
        put(self, "sections", _checked_sections(self.sections))


_MOST = {
    "max_tokens": limits.MAX_CONTEXT_TOKENS,
    "max_memories": limits.MAX_CONTEXT_MEMORIES,
    "max_recent_messages": limits.MAX_RECENT_MESSAGES,
    "max_recalled_messages": limits.MAX_SEARCH_LIMIT,
}


def _checked_sections(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise InvalidArgument("sections must be a list of names, not one text", field="sections")
    for n, name in enumerate(names):
        if name not in SECTIONS:
            raise InvalidArgument(
                f"sections[{n}] is {name!r}; it must be one of {', '.join(SECTIONS)}", field=f"sections[{n}]"
            )
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True, repr=False)
class ContextItem(ShortRepr):
    """Where a line of a context is from."""

    id: str
    """Of the memory, the message or the entity; of a summary or a working memory the thread, user or chat."""
    kind: Kind
    trust: Trust
    thread_id: str = ""
    seq: int = 0
    """Of a message: its place in the thread."""
    speaker: str = ""
    """Who said it; empty: the asking user, or no one."""
    time: datetime | None = None
    """When it was said, or when it was so."""


@dataclass(frozen=True, slots=True)
class ContextSection:
    """One part of a context with its heading."""

    name: str
    text: str
    items: tuple[ContextItem, ...]


@dataclass(frozen=True, slots=True, repr=False)
class BuiltContext(ShortRepr):
    """The text for a prompt, its parts, its length in tokens, and what did not fit."""

    text: str
    sections: tuple[ContextSection, ...]
    token_count: int
    skipped_count: int
    unavailable_legs: tuple[Leg, ...] = ()
    embedding_s: float = field(default=0.0, compare=False, metadata=_OWN)
    """Seconds that the prompt waited for its embedding."""
    left_out_ids: tuple[str, ...] = ()
    """What was found and is left out, as the answer reader finds that none of its author's answers."""
