"""Small files as other systems write them, for the tests of imports. All people, places and facts are invented."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

MEM0 = [
    {
        "id": "m-1", "memory": "Is allergic to cashews", "metadata": {"category": "health", "linked": ["x", 3]},
        "created_at": "2026-03-02T08:15:30.123456+00:00", "updated_at": "2026-03-02T08:15:30.123456+00:00",
        "user_id": "mira", "run_id": "spring-menu",
    },
    {
        "id": "m-2", "memory": "Lives in Tromsø", "metadata": None, "created_at": "2025-06-01T09:00:00+00:00",
        "updated_at": "2025-11-19T23:10:00-08:00", "user_id": "mira", "categories": ["home", "city"],
    },
    {
        "id": "m-3", "memory": "Has a ticket for June", "created_at": "2026-05-01T10:00:00",
        "expiration_date": "2026-06-30",
    },
]  # fmt: skip
CLAUDE = [
    {
        "uuid": "talk-1", "name": "Kiln", "created_at": "2026-02-11T17:04:05.123456Z",
        "chat_messages": [
            {
                "uuid": "c-1", "sender": "human", "created_at": "2026-02-11T17:04:05Z", "text": "I fire on Sundays.",
                "content": [{"type": "text", "text": "I fire on Sundays.", "citations": []}],
            },
            {
                "uuid": "c-2", "sender": "assistant", "created_at": "2026-02-11T17:05:00Z", "text": "",
                "content": [
                    {"type": "thinking", "thinking": "cone 6?"},
                    {"type": "tool_use", "name": "web_search", "input": {"query": "cone 6"}},
                    {"type": "text", "text": "Start on Saturday."},
                ],
            },
            {
                "uuid": "c-3", "sender": "human", "created_at": "2026-02-11T17:09:00Z", "text": "", "content": [],
                "attachments": [{"file_name": "glaze.txt", "extracted_content": "40 feldspar"}],
                "files": [{"file_name": "pot.jpg"}],
            },
        ],
    },
    {"uuid": "talk-2", "name": "", "created_at": "2026-02-12T08:00:00Z", "chat_messages": []},
]  # fmt: skip
MCP = [
    {
        "type": "entity", "name": "Ilse_Marten", "entityType": "Person",
        "observations": ["Repairs accordions", "Lives in Ghent"],
    },
    {"type": "entity", "name": "Grüne Brücke 3", "entityType": "Place", "observations": []},
    {"type": "relation", "from": "Ilse_Marten", "to": "Grüne Brücke 3", "relationType": "works_at"},
]  # fmt: skip
LANGGRAPH = [
    {
        "namespace": ["users", "mira"], "key": "diet", "value": {"content": "no cashews", "n": 3},
        "created_at": "2026-03-02T08:15:30+00:00", "updated_at": "2026-03-04T10:00:00+00:00",
    },
    {"namespace": ["users", "a/b"], "key": "x" * 200, "value": {"strict": False}, "created_at": "2026-03-05T08:00:00Z"},
]  # fmt: skip
LETTA = {
    "agents": [
        {
            "id": "agent-0", "name": "clerk", "block_ids": ["block-0"],
            "messages": [
                {"id": "l-0", "role": "system", "content": [{"type": "text", "text": "You are a clerk."}]},
                {
                    "id": "l-1", "role": "user", "created_at": "2026-05-01T09:00:05Z",
                    "content": [{"type": "text", "text": '{"type": "user_message", "message": "I read crime."}'}],
                },
                {
                    "id": "l-2", "role": "user", "created_at": "2026-05-01T09:00:06Z",
                    "content": [{"type": "text", "text": json.dumps({"type": "heartbeat", "reason": "timer"})}],
                },
                {
                    "id": "l-3", "role": "assistant", "created_at": "2026-05-01T09:00:07Z",
                    "content": [{"type": "text", "text": "Noted."}], "tool_calls": [{"id": "call"}],
                },
            ],
            "passages": [{"id": "p-1", "text": "Borrowed five books in May", "created_at": "2026-05-02T09:00:00Z"}],
        }
    ],
    "blocks": [{"id": "block-0", "label": "human", "value": "Name: Wout\nReads crime novels"}],
}  # fmt: skip
EPISODES = [
    {
        "uuid": "e-1", "group_id": "mira", "source": "message", "valid_at": "2026-03-02T08:15:29Z",
        "content": "Mira: I can't eat cashews\nassistant: Noted.", "entity_edges": ["edge-1"],
    },
    {"uuid": "e-2", "group_id": "mira", "source": "json", "content": "{}", "valid_at": "2026-03-06T09:59:00Z"},
    {
        "uuid": "e-3", "group_id": "mira", "source": "text", "content": "The freezer is full.",
        "valid_at": "2026-03-07T10:00:00Z",
    },
]  # fmt: skip
EDGES = [
    {
        "uuid": "edge-1", "group_id": "mira", "name": "ALLERGIC_TO", "fact": "Mira is allergic to cashews",
        "created_at": "2026-03-02T08:15:40Z", "valid_at": "2026-03-02T08:15:29Z", "invalid_at": None,
    },
    {
        "uuid": "edge-2", "group_id": "mira", "name": "LIVES_IN", "fact": "Mira lives in Bodø",
        "created_at": "2025-06-01T09:00:00Z", "valid_at": "2025-06-01T00:00:00Z", "invalid_at": "2025-11-19T00:00:00Z",
    },
]  # fmt: skip
OPENAI = [
    {"role": "user", "content": "Is there a ferry on Sunday?"},
    {"type": "function_call", "call_id": "call_1", "name": "ferry", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "09:45"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes, at 9:45."}]},
]
BASIC = """---
title: Sourdough at Altitude
permalink: kitchen/sourdough
tags: [bread, baking]
---

# Sourdough

- [method] Shorten the bulk rise by a quarter #rise (tried twice)
- [ ] this is a task
- A plain line
- requires [[Starter Care]]
- [[Flour Notes]]
"""
LINES = [
    {"type": "memory", "id": "1", "content": "I keep bees", "tags": ["garden"], "create_time": "2026-01-02T03:04:05Z"},
    {"type": "message", "thread": "t", "id": "2", "role": "user", "content": "hello", "create_time": 1_767_323_045},
    {"type": "note", "path": "plans/summer", "text": "by train"},
    "I play the violin",
]


def node(
    name: str,
    parent: str | None,
    children: list[str],
    role: str = "",
    parts: Any = None,
    time: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return a node of a conversation of ChatGPT."""
    content = {"content_type": more.pop("content_type", "text"), **({"parts": parts} if parts is not None else {})}
    message = {"id": name, "author": {"role": role}, "create_time": time, "content": content, **more} if role else None
    return {"id": name, "message": message, "parent": parent, "children": children}


NODES = [
    node("root", None, ["sys"]),
    node("sys", "root", ["u1"], "system", [""], metadata={"is_visually_hidden_from_conversation": True}),
    node("u1", "sys", ["a1", "a2"], "user", ["My allotment is number 14."], 1767261600.25),
    node("a1", "u1", [], "assistant", ["An answer that was thrown away."], 1767261604.5),
    node("a2", "u1", ["u2"], "assistant", ["Leeks like deep soil. 🌱"], 1767261610.0),
    node(
        "u2", "a2", ["t1"], "user", [{"content_type": "image_asset_pointer"}, "What eats them?"], 1767261700.0,
        content_type="multimodal_text",
    ),
    node("t1", "u2", ["th"], "tool", None, 1767261706.0, content_type="execution_output"),
    node("th", "t1", ["a3"], "assistant", None, content_type="thoughts"),
    node("a3", "th", [], "assistant", ["Probably the moth."], 1767261711.0),
]  # fmt: skip
CHATGPT = [
    {"conversation_id": "talk", "title": "Leeks", "create_time": 1767261600.0, "mapping": {n["id"]: n for n in NODES},
     "current_node": "a3"},
    {"conversation_id": "empty", "title": None, "mapping": {"r": node("r", None, [])}, "current_node": None},
]  # fmt: skip


def make_samples(folder: Path) -> dict[str, Path]:
    """Write a file of every format, and return where each is, by the format and, after a colon, which one."""
    made = {
        "chatgpt": _json(folder / "conversations.json", CHATGPT),
        "claude": _json(folder / "claude.json", CLAUDE),
        "mem0": _json(folder / "mem0.json", {"results": MEM0, "relations": []}),
        "mem0:list": _json(folder / "mem0_list.json", MEM0),
        "langgraph": _json(folder / "store.json", LANGGRAPH),
        "letta": _json(folder / "agent.af", LETTA),
        "graphiti": _json(folder / "edges.json", EDGES),
        "graphiti:episodes": _json(folder / "episodes.json", EPISODES),
        "mcp-memory": _lines(folder / "memory.jsonl", MCP),
        "langgraph:lines": _lines(folder / "store.jsonl", LANGGRAPH),
        "jsonl": _lines(folder / "own.jsonl", LINES),
    }
    damaged = (
        '{"type":"entity","name":"A","observations":["Sings"]}{"type":"entity","name":"B","observations":["Runs"]}'
    )
    made["mcp-memory:damaged"] = folder / "damaged.jsonl"
    made["mcp-memory:damaged"].write_text(f'{damaged}\n\n{{"type":"entity","name":"Cut o')
    made["claude:zip"] = folder / "claude.zip"
    with zipfile.ZipFile(made["claude:zip"], "w") as archive:
        archive.write(made["claude"], "data/conversations.json")
        archive.writestr("users.json", "[]")
    made["basic-memory"] = folder / "sourdough.md"
    made["basic-memory"].write_text(BASIC)
    made["markdown"] = folder / "CLAUDE.md"
    made["markdown"].write_text("# Notes\n\n- Use pnpm, never npm\n")
    made["claude-code"] = folder / "memory"
    (folder / "memory" / "deep").mkdir(parents=True)
    (folder / "memory" / "MEMORY.md").write_text("- [User](deep/user.md)\n")
    (folder / "memory" / "deep" / "user.md").write_text("---\nname: user\n---\nNew to Rust.\n")
    made["openai-agents"] = _openai(folder / "sessions.db")
    made["mem0:history"] = _history(folder / "history.db")
    return made


def _json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1))
    return path


def _lines(path: Path, values: list[Any]) -> Path:
    path.write_text("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values))
    return path


def _openai(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as con, con:
        con.execute("CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id, message_data, created_at)")
        rows = [("trip", json.dumps(item), "2026-04-01 09:00:01") for item in OPENAI]
        rows.append(("trip", "no json {{{", "2026-04-01 09:00:02"))
        con.executemany("INSERT INTO agent_messages (session_id, message_data, created_at) VALUES (?, ?, ?)", rows)
    return path


def _history(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as con, con:
        con.execute(
            "CREATE TABLE history (id, memory_id, old_memory, new_memory, event, created_at, updated_at, is_deleted)"
        )
        con.execute("CREATE TABLE messages (id, session_scope, role, content, name, created_at)")
        con.executemany(
            "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                ("h1", "m-2", None, "Lives in Bodø", "ADD", "2025-06-01T09:00:00Z", "2025-06-01T09:00:00Z", 0),
                (
                    "h2", "m-2", "Lives in Bodø", "Lives in Tromsø", "UPDATE", "2025-06-01T09:00:00Z",
                    "2025-11-20T07:10:00Z", 0,
                ),
                ("h3", "m-9", "Likes opera", None, "DELETE", None, "2026-01-05T12:00:00Z", 1),
            ],
        )  # fmt: skip
        con.execute(
            "INSERT INTO messages VALUES ('x1', 'user_id=mira&run_id=r', 'user', 'No cashews', NULL, '2026-03-02')"
        )
    return path
