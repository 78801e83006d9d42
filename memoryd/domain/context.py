"""
What an agent should know before it answers, as one block of Markdown.

Stored text is data: it is rendered on one line, so that it can open no heading, list or fence of its own, and so that
no tag in it can close the block that the host puts around it.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime

from memoryd import limits
from memoryd.checks import check_count, check_text
from memoryd.domain.ports import Ports
from memoryd.domain.recall import recall
from memoryd.model import Caller, ContextItem, ContextSection, Filter, Kind, Leg, Memory, Query, Trust

__all__ = ["Context", "build_context", "render_line", "token_count"]

RELEVANT_HEADING = "## Relevant memory"
INLINE_CHARACTERS = 16_000  # of memories that are rendered on the loop (≤ 1 ms); more goes to a thread
BYTES_A_TOKEN = 4  # of UTF-8; English is near it, other scripts stay below the true count's double
_HIDDEN_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f")  # letters and marks that show nothing
_SPACES = re.compile(r"\s+")
_FENCE = re.compile(r"[`~]{3,}")


@dataclass(frozen=True, slots=True)
class Context:
    """The text, its parts, its length, and what was left out."""

    text: str
    sections: tuple[ContextSection, ...]
    token_count: int
    skipped_count: int
    unavailable: tuple[Leg, ...]
    embedding_s: float = 0.0


def token_count(text: str) -> int:
    """Return the estimated length in tokens: a quarter of the bytes, rounded up."""
    return -(-len(text.encode()) // BYTES_A_TOKEN)


def _is_hidden(letter: str) -> bool:
    """Whether a model would read what a person cannot see: formats, tags, variation selectors, controls."""
    if letter.isascii():
        return letter < " " or letter == "\x7f"
    if letter in _HIDDEN_LETTERS or "\ufe00" <= letter <= "\ufe0f" or "\U000e0000" <= letter <= "\U000e0fff":
        return True
    return unicodedata.category(letter) in {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}


class _Rendering(dict[int, str | None]):
    """What becomes of each letter, for str.translate; worked out when it is first met."""

    def __missing__(self, code: int) -> str | None:
        letter = chr(code)
        shown = None if _is_hidden(letter) else _ESCAPED.get(letter, letter)
        if len(self) < MOST_LETTERS:
            self[code] = shown
        return shown


MOST_LETTERS = 1 << 16
_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_rendering = _Rendering()


def _inert(text: str) -> str:
    """Return text on one line in which nothing can end the block or hide: no controls, no fences, no tags, no links."""
    flat = _SPACES.sub(" ", _SPACES.sub(" ", text).translate(_rendering)).strip()
    flat = _FENCE.sub(lambda run: run.group()[:2], flat)
    return flat.replace("](", "] (")  # no image that a renderer would fetch


def render_line(memory: Memory) -> str:
    """Return a memory as one line of the block, with whom it is about and a mark where its trust is lower."""
    line = f"- {_inert(memory.content)}"
    if memory.subjects:
        line += f" (about {', '.join(map(_inert, memory.subjects))})"
    if memory.trust is not Trust.HOST:
        line += f" [unverified: {memory.trust.value}]"
    return line


def searched_by(prompt: str) -> str:
    """Return what of a prompt is searched by: all of it, or the beginning and the end of a long one, 2 KiB each."""
    raw = prompt.encode()
    if len(raw) <= limits.MAX_QUERY_BYTES:
        return prompt
    half = limits.MAX_QUERY_BYTES // 2 - 1
    return f"{raw[:half].decode(errors='ignore')} {raw[-half:].decode(errors='ignore')}"


async def build_context(
    prompt: str,
    caller: Caller,
    ports: Ports,
    *,
    now: datetime,
    max_tokens: int = 0,
    max_memories: int = 0,
    min_score: float = 0.0,
) -> Context:
    """Return what is relevant to a prompt within the limits; see BuildContext in the contract."""
    policy = ports.policy
    prompt = check_text(prompt, "prompt", limit=limits.MAX_PROMPT_BYTES)
    tokens = check_count(max_tokens, "max_tokens", default=policy.max_tokens, limit=limits.MAX_CONTEXT_TOKENS)
    count = check_count(max_memories, "max_memories", default=policy.max_memories, limit=limits.MAX_CONTEXT_MEMORIES)
    if not prompt.strip():
        return Context("", (), 0, 0, ())
    wanted = Filter(kinds=frozenset(Kind) - {Kind.EPISODE, Kind.REFLECTION})
    query = Query(text=searched_by(prompt), limit=count, filter=wanted, min_score=min_score)
    found = await recall(query, caller, ports, now=now, counted=False)
    memories = [hit.memory for hit in found.hits]
    if sum(len(memory.content) for memory in memories) <= INLINE_CHARACTERS:
        lines, shown = _fitting(memories, tokens)
    else:
        lines, shown = await asyncio.to_thread(_fitting, memories, tokens)
    items = [ContextItem(memory.id, memory.kind, memory.trust) for memory in shown]
    skipped = len(memories) - len(shown)
    if not items:
        return Context("", (), 0, skipped, found.unavailable, found.embedding_s)
    ports.recalls.note((item.id for item in items), now, trusted=caller.trust is Trust.HOST)
    text = "\n".join([RELEVANT_HEADING, "", *lines]) + "\n"
    section = ContextSection("relevant_memory", text, tuple(items))
    return Context(text, (section,), token_count(text), skipped, found.unavailable, found.embedding_s)


def _fitting(memories: list[Memory], tokens: int) -> tuple[list[str], list[Memory]]:
    """Return the lines that fit, and whose they are; what is too long is skipped, as the next may be shorter."""
    lines, shown = [], []
    left = tokens * BYTES_A_TOKEN - len(f"{RELEVANT_HEADING}\n\n".encode())
    for memory in memories:
        line = render_line(memory)
        size = len(line.encode()) + 1
        if size <= left:
            left -= size
            lines.append(line)
            shown.append(memory)
    return lines, shown
