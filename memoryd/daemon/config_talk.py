"""Sections of the configuration: contexts and conversations."""

from __future__ import annotations

from dataclasses import dataclass

from memoryd.daemon.config_key import key_of
from memoryd.model import limits

__all__ = ["ContextConfig", "ConversationConfig"]

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ContextConfig:
    """How much goes into a prompt unless the request says."""

    max_memories: int = key_of(
        limits.DEFAULT_CONTEXT_MEMORIES,
        "memories",
        "relevant memories in a context",
        least=1,
        most=limits.MAX_CONTEXT_MEMORIES,
        per_agent=True,
    )
    max_tokens: int = key_of(
        limits.DEFAULT_CONTEXT_TOKENS,
        "tokens",
        "length of a context",
        least=1,
        most=limits.MAX_CONTEXT_TOKENS,
        per_agent=True,
    )
    working_memory_chars: int = key_of(
        limits.DEFAULT_WORKING_MEMORY_CHARACTERS, "characters", "of working memory in a context", per_agent=True
    )
    profile: bool = key_of(
        True,
        "",
        "whether contexts begin with what is always true of the user; sections that a request names decide alone",
        per_agent=True,
    )
    tokenizers: str = key_of(
        "{data_dir}/tokenizers", "path", "tokenizers that requests may name: NAME.json or NAME/tokenizer.json"
    )
    date_after_days: float = key_of(
        30.0, "days", "what is older is shown with its date, in searches and lists too", most=36_525
    )


@dataclass(frozen=True, slots=True)
class ConversationConfig:
    """How conversations are kept, and what of them goes into a prompt unless the request says."""

    recent_messages: int = key_of(
        limits.DEFAULT_RECENT_MESSAGES,
        "messages",
        "of a thread, in a prompt",
        least=1,
        most=limits.MAX_RECENT_MESSAGES,
        per_agent=True,
    )
    max_history: int = key_of(
        100, "messages", "since the last summary; past it older ones leave the prompts; 0: never", per_agent=True
    )
    retain_recent: int = key_of(
        20,
        "messages",
        "stay in the prompts after a compaction",
        least=1,
        most=limits.MAX_RECENT_MESSAGES,
        per_agent=True,
    )
    emergency_retain: int = key_of(
        4, "messages", "stay after one in an emergency", least=1, most=limits.MAX_RECENT_MESSAGES, per_agent=True
    )
    recall_top_k: int = key_of(
        limits.DEFAULT_FOUND_MESSAGES,
        "messages",
        "earlier ones that are recalled",
        least=1,
        most=limits.MAX_SEARCH_LIMIT,
        per_agent=True,
    )
    recall_before: int = key_of(
        2, "messages", "shown before one that was found", most=limits.MAX_NEIGHBOURS, per_agent=True
    )
    recall_after: int = key_of(1, "messages", "shown after it", most=limits.MAX_NEIGHBOURS, per_agent=True)
    session_idle_minutes: float = key_of(30.0, "minutes", "of silence that end a session; 0: none do", most=525_600)
    index_bytes: int = key_of(512 * MIB, "bytes", "what the indexes of messages may take; the least used go first")
    slow_after: int = key_of(20_000, "messages", "wait for their vectors, and appending becomes as slow as embedding")
