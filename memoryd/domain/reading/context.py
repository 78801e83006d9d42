"""
What an agent should know before it answers, as one block of Markdown.

Stored text is data: it is rendered on one line, so that it can open no heading, list or fence of its own, and so that
no tag in it can close the block that the host puts around it.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from datetime import datetime, tzinfo

from memoryd.domain.ports import Ports
from memoryd.domain.reading.recall import recall
from memoryd.domain.scopes import Scopes
from memoryd.domain.subjects import known_people
from memoryd.domain.tokens import BYTES_A_TOKEN, token_count
from memoryd.entities.finders import find_entities
from memoryd.entities.resolve import meant_by
from memoryd.knowledge.language.names import MOST_NAME_CHARACTERS, MOST_NAME_WORDS
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.memory import VOUCHED, Kind, Memory
from memoryd.model.query import Filter, Query
from memoryd.model.results import BuiltContext, ContextItem, ContextSection
from memoryd.model.trust import Trust
from memoryd.model.validation import check_count, check_text
from memoryd.turns import in_turns, let_others

__all__ = ["build_context", "render_line", "render_person"]

PEOPLE_HEADING = "## Known people"
RELEVANT_HEADING = "## Relevant memory"
MOST_PEOPLE = 20
SHARE_OF_PEOPLE = 4  # people may take a quarter of the text, so that memories have their room
SHARE_OF_TRUST = 2  # half of the memories' places and of their room are for higher trust than a sandbox's
INLINE_CHARACTERS = 16_000  # of memories that are rendered on the loop (≤ 1 ms); more goes to a thread
_HIDDEN_LETTERS = frozenset(
    "\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f"
)  # letters and marks that show nothing
_SPACES = re.compile(r"\s+")
_FENCE = re.compile(r"[`~]{3,}")
_MARK = re.compile(r"^(?:\d{1,9}(?=[.)](?:\s|$))|(?=[-+*](?:\s|$)|#{1,6}(?:\s|$)|(?:[-*_] *){3}|[\[|]))")
"""Where a line begins: what opens a list, a heading, a rule, a label of ours or a table."""
_NO_NAME = re.compile(r"[^\w '’@&+#-]|_{2,}")


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
    """
    Return text on one line in which nothing can end the block or hide: no controls, no fences, no tags, no links.

    What begins like a heading, a list, a rule or one of our own labels gets a backslash, as Markdown has it.
    """
    flat = _SPACES.sub(" ", _SPACES.sub(" ", text).translate(_rendering)).strip()
    flat = _FENCE.sub(lambda run: run.group()[:2], flat)
    flat = _MARK.sub(lambda mark: mark.group() + "\\", flat)
    return flat.replace("](", "] (")  # no image that a renderer would fetch


def _plain_name(text: str) -> str:
    """Return a name without what could make it more than one: no punctuation, no brackets, a name's length."""
    words = _NO_NAME.sub(" ", _inert(text)).split()[:MOST_NAME_WORDS]
    return " ".join(words)[:MOST_NAME_CHARACTERS].strip()


def _plain_speaker(said_by: str) -> str:
    """Return who said a memory, as a plain name; who vouches for that is never cut off."""
    speaker, vouched, voucher = said_by.rpartition(VOUCHED)
    return f"{_plain_name(speaker)}{VOUCHED}{_plain_name(voucher)}" if vouched else _plain_name(said_by)


def _label(memory: Memory, zone: tzinfo | None) -> str:
    """Return who said a memory and when, as far as that is to be told: "[Bob, 2026-05-03] "."""
    date = "" if memory.said_time is None else f"{memory.said_time.astimezone(zone):%Y-%m-%d}"
    told = ", ".join(part for part in (_plain_speaker(memory.said_by), date) if part)
    return f"[{told}] " if told else ""


def render_line(memory: Memory, zone: tzinfo | None = None) -> str:
    """Return a memory as a line of the block: who said it and when, whom it is about, marks of doubt and low trust."""
    line = f"- {_label(memory, zone)}{_inert(memory.content)}"
    if memory.subjects:
        line += f" (about {', '.join(map(_plain_name, memory.subjects))})"
    if memory.contested_with:
        line += " [contested]"
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
) -> BuiltContext:
    """Return what is relevant to a prompt within the limits; see BuildContext in the contract."""
    policy = ports.policy
    prompt = check_text(prompt, "prompt", limit=limits.MAX_PROMPT_BYTES)
    tokens = check_count(max_tokens, "max_tokens", default=policy.max_tokens, limit=limits.MAX_CONTEXT_TOKENS)
    count = check_count(max_memories, "max_memories", default=policy.max_memories, limit=limits.MAX_CONTEXT_MEMORIES)
    if not prompt.strip():
        return BuiltContext("", (), 0, 0)
    wanted = Filter(kinds=frozenset(Kind) - {Kind.EPISODE, Kind.REFLECTION})
    query = Query(text=searched_by(prompt), limit=count, filter=wanted, min_score=min_score)
    kept = -(-count // SHARE_OF_TRUST)
    scopes = Scopes(ports)
    found = await recall(query, caller, ports, now=now, counted=False, kept=kept, scopes=scopes)
    memories = [hit.memory for hit in found.hits]
    await let_others()
    sections = await _people(query.text, caller, ports, scopes, tokens * BYTES_A_TOKEN // SHARE_OF_PEOPLE)
    await let_others()
    room = tokens * BYTES_A_TOKEN - sum(len(section.text.encode()) + 1 for section in sections)
    if sum(len(memory.content) for memory in memories) <= INLINE_CHARACTERS:
        lines, shown = _fitting(memories, room, policy.zone)
    else:
        lines, shown = await asyncio.to_thread(_fitting, memories, room, policy.zone)
    items = [ContextItem(memory.id, memory.kind, memory.trust) for memory in shown]
    skipped = len(memories) - len(shown)
    ports.recalls.note(shown, now, trusted=caller.trust is Trust.HOST)
    if items:
        sections.append(_section("relevant_memory", RELEVANT_HEADING, lines, items))
    text = "\n".join(section.text for section in sections)
    return BuiltContext(text, tuple(sections), token_count(text), skipped, found.unavailable_legs, found.embedding_s)


def _section(name: str, heading: str, lines: list[str], items: list[ContextItem]) -> ContextSection:
    return ContextSection(name, "\n".join([heading, "", *lines]) + "\n", tuple(items))


async def _people(prompt: str, caller: Caller, ports: Ports, scopes: Scopes, room: int) -> list[ContextSection]:
    """Return who is known, those named in the prompt first, within so many bytes; nothing if nobody is or fits."""
    known = await known_people(caller, scopes)
    if not known:
        return []
    named = set()
    with ports.faults.spared("reading names"):
        for find in find_entities(prompt, ports.finders):
            for people in {id(people): people for _, _, people in known}.values():
                named |= {(id(people), root) for root in meant_by(find.text, people)}
    # stable: of as much trust those named most often come first
    known.sort(key=lambda one: ((id(one[2]), one[1]) not in named, -one[2].trust_weight(one[1])))
    lines, items = [], []
    left = room - len(f"{PEOPLE_HEADING}\n\n".encode())
    async for _, root, people in in_turns(known[:MOST_PEOPLE]):
        trust = _TRUSTS[people.trust_weight(root)]
        line = render_person(people.name(root), people.relations(root), people.aliases(root), trust)
        size = len(line.encode()) + 1
        if size <= left:
            left -= size
            lines.append(line)
            items.append(ContextItem(root, Kind.FACT, trust))
    return [_section("known_people", PEOPLE_HEADING, lines, items)] if items else []


_TRUSTS = {trust.weight: trust for trust in Trust}


def render_person(name: str, relations: list[str], aliases: list[str], trust: Trust) -> str:
    """Return somebody as one line of the block: name, relations, what else they are called."""
    details = [*relations, *([f"also {', '.join(aliases)}"] if aliases else [])]
    line = f"- {_inert(name)}" + (f" ({_inert('; '.join(details))})" if details else "")
    return line if trust is Trust.HOST else f"{line} [unverified: {trust.value}]"


def _fitting(memories: list[Memory], room: int, zone: tzinfo | None) -> tuple[list[str], list[Memory]]:
    """
    Return the lines that fit into so many bytes, and whose; what is too long is skipped, as the next may fit.

    A sandbox's memories leave half of the room to the others, as far as those need it.
    """
    room -= len(f"{RELEVANT_HEADING}\n\n".encode())
    rendered = [(memory, render_line(memory, zone)) for memory in memories]
    sizes = [len(line.encode()) + 1 for _, line in rendered]
    others = sum(size for (memory, _), size in zip(rendered, sizes, strict=True) if memory.trust is not Trust.SANDBOX)
    for_sandboxes = room - min(others, room // SHARE_OF_TRUST)
    lines, shown = [], []
    for (memory, line), size in zip(rendered, sizes, strict=True):
        sandboxed = memory.trust is Trust.SANDBOX
        if size > room or (sandboxed and size > for_sandboxes):
            continue
        room -= size
        for_sandboxes -= size if sandboxed else 0
        lines.append(line)
        shown.append(memory)
    return lines, shown
