"""Every sort of file that can be imported, and what a file looks like."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from itertools import islice
from typing import IO, NamedTuple

from memoryd.cli.importers.conversations import FILES
from memoryd.cli.importers.items import Item
from memoryd.cli.importers.source import PACKED, Source
from memoryd.errors import InvalidArgument

__all__ = ["EXPORT", "FORMATS", "Format", "format_of", "reader_of"]

EXPORT = "memoryd"
"""What `memoryd export` has written."""
TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*+)"(?=\s*:)|"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
"""A key, another text, or what begins or ends a list or an object."""
MOST_LEVELS = 2  # of lists and objects in which a key tells what a file is
LOOKED_THROUGH = 100  # files of a folder
LOOKED_AT = 1 << 18  # bytes from which a file is guessed
Read = Callable[[Source], Iterator[Item]]


class Format(NamedTuple):
    """One sort of file."""

    module: str
    means: str
    """What it is, for people."""
    read: str = "read"


FORMATS: Mapping[str, Format] = {
    "chatgpt": Format("chatgpt", "ChatGPT's data export: the archive, or its conversations.json"),
    "claude": Format("claude", "Claude's data export: the archive, or its conversations.json"),
    "mem0": Format("mem0", "what mem0's get_all() returns, as JSON, or its history.db"),
    "mcp-memory": Format("mcp_memory", "the memory.jsonl of the Model Context Protocol's memory server"),
    "markdown": Format("markdown", "CLAUDE.md, AGENTS.md, or a folder of Markdown files, as notes"),
    "claude-code": Format("markdown", "the folder of Claude Code's memory, as notes", "read_claude_code"),
    "basic-memory": Format("markdown", "a note or folder of basic-memory", "read_basic_memory"),
    "openai-agents": Format("openai_agents", "the SQLite sessions of the OpenAI Agents SDK"),
    "langgraph": Format("langgraph", "items of a LangGraph store, as JSON"),
    "letta": Format("letta", "a Letta agent file (.af)"),
    "graphiti": Format("graphiti", "edges or episodes of Graphiti or Zep, as JSON"),
    "jsonl": Format("jsonl", "lines of JSON of your own: memories, messages and notes"),
}
"""By the name that `--as` takes."""
KEYS = {
    "mapping": "chatgpt",
    "chat_messages": "claude",
    "namespace": "langgraph",
    "memory": "mem0",
    "results": "mem0",
    "memories": "mem0",
    "fact": "graphiti",
    "edges": "graphiti",
    "episodes": "graphiti",
    "entity_edges": "graphiti",
    "agents": "letta",
}
"""What a key at the top, or of the first item, tells."""
TABLES = {"agent_messages": "openai-agents", "history": "mem0"}
TYPES = {"header": EXPORT, "entity": "mcp-memory", "relation": "mcp-memory"}
TYPES |= dict.fromkeys(("memory", "message", "note"), "jsonl")


def reader_of(name: str) -> Read:
    """Return what reads a format."""
    chosen = FORMATS[name]
    read: Read = getattr(import_module(f"memoryd.cli.importers.{chosen.module}"), chosen.read)
    return read


def format_of(source: Source) -> str:
    """Return the name of the format that a file has; InvalidArgument where that is not clear."""
    path = source.path
    if not path.exists():
        raise InvalidArgument(f"there is no file {path}", field="file")
    found = ""
    if source.is_folder:
        found = _of_folder(source)
    elif source.is_database:
        found = next((name for table, name in TABLES.items() if table in source.tables()), "")
    elif path.suffix.lower() in {".md", ".markdown"}:
        found = "basic-memory" if b"permalink:" in _beginning(source) else "markdown"
    else:
        with source.opened(*FILES) as files:
            found = _of_json(files[0][1])
    if not found:
        raise InvalidArgument(f"it is not clear what {path} is; say it with --as {'|'.join(FORMATS)}", field="as")
    return found


def _of_folder(source: Source) -> str:
    names = {path.name for path in source.path.iterdir()}
    if any(name.startswith("conversations") and name.endswith(".json") for name in names):
        with source.opened(*FILES) as files:
            return _of_json(files[0][1])
    if "MEMORY.md" in names:
        return "claude-code"
    pages = list(islice(source.path.rglob("*.md"), LOOKED_THROUGH))
    if any(b"permalink:" in _beginning(Source(path)) for path in pages if path.is_file() and not path.is_symlink()):
        return "basic-memory"
    return "markdown" if pages else ""


def _beginning(source: Source) -> bytes:
    with source.path.open("rb") as file:
        return file.read(LOOKED_AT)


def _of_json(file: IO[bytes]) -> str:
    """Return what the beginning of JSON, or of lines of JSON, tells; "" where it tells nothing."""
    try:
        data = file.read(LOOKED_AT).removeprefix(codecs.BOM_UTF8)
    except PACKED:
        return ""
    line = data.lstrip().split(b"\n", 1)[0].decode("utf-8", "replace")
    try:
        first, _ = json.JSONDecoder().raw_decode(line)
    except (ValueError, RecursionError):
        first = None
    if isinstance(first, Mapping) and isinstance(first.get("type"), str):
        return TYPES.get(first["type"], "")
    if isinstance(first, str) or (isinstance(first, Mapping) and isinstance(first.get("content"), str)):
        return "graphiti" if isinstance(first, Mapping) and "uuid" in first else "jsonl"
    return next((KEYS[key] for key in _keys(data) if key in KEYS), "")


def _keys(data: bytes) -> Iterator[str]:
    """Yield the keys at the top of a JSON object, or of the first objects of a list; data may be cut."""
    depth = 0
    for token in TOKEN.finditer(data):
        mark = token[0][:1]
        if mark in b"[{":
            depth += 1
        elif mark in b"]}":
            depth -= 1
        elif token[1] is not None and depth <= MOST_LEVELS:
            yield token[1].decode("utf-8", "replace")
