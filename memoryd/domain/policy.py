"""What the operator decides, and where it differs for an agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import tzinfo

from memoryd.domain.rules import Rules
from memoryd.model import limits

__all__ = ["ContextPolicy", "ConversationPolicy", "Policy"]


@dataclass(frozen=True, slots=True)
class ContextPolicy:
    """How much goes into a context; keys as in the configuration."""

    max_memories: int = limits.DEFAULT_CONTEXT_MEMORIES
    max_tokens: int = limits.DEFAULT_CONTEXT_TOKENS
    working_memory_chars: int = limits.DEFAULT_WORKING_MEMORY_CHARACTERS
    profile: bool = True


@dataclass(frozen=True, slots=True)
class ConversationPolicy:
    """How conversations are kept and recalled; keys as in the configuration."""

    recent_messages: int = limits.DEFAULT_RECENT_MESSAGES
    max_history: int = 100
    retain_recent: int = 20
    emergency_retain: int = 4
    recall_top_k: int = limits.DEFAULT_FOUND_MESSAGES
    recall_before: int = 2
    recall_after: int = 1
    session_idle_minutes: float = 30.0
    slow_after: int = 20_000


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator decides."""

    delete_grace_days: float = 30.0
    supersede_grace_days: float = 180.0
    """0: superseded memories are kept for ever."""
    expired_grace_days: float = 30.0
    date_after_days: float = 30.0
    """Statements older than this are shown with their date."""
    zone: tzinfo | None = None
    """Of the dates in contexts; None: the system's."""
    floor: bool = True
    """Whether what is no answer is left out of searches and contexts that name no min_score."""
    enabled: bool = True
    """Whether statements and messages are stored."""
    extraction_enabled: bool = True
    """Whether anything is learnt from messages."""
    extraction_review: bool = False
    """Whether what is learnt waits until someone approves it."""
    extraction_threshold: float = 0.7
    """What is learnt with less confidence is dropped."""
    max_entries: int = 0
    """Live memories that one owner may have; 0: no cap."""
    rules: Rules = field(default_factory=Rules)
    context: ContextPolicy = ContextPolicy()
    conversation: ConversationPolicy = ConversationPolicy()
    agents: Mapping[str, Policy] = field(default_factory=dict)
    """Those of agents for which something else holds."""

    def of(self, agent_id: str) -> Policy:
        """Return what holds for an agent."""
        return self.agents.get(agent_id, self)
