"""Files of other systems are read as documented, and whatever is wrong with one is told."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest
from memory_client.adapters.langgraph_items import item_path

from memoryd.cli.importers.formats import FORMATS, format_of
from memoryd.cli.importers.items import Said, Skipped, Statement
from memoryd.cli.importers.source import Source
from memoryd.cli.imports import OTHERS
from tests.import_helpers import read, reasons, shown
from tests.import_samples import make_samples

NAMES = [
    "chatgpt", "claude", "claude:zip", "mem0", "mem0:list", "mem0:history", "mcp-memory", "mcp-memory:damaged",
    "markdown", "claude-code", "basic-memory", "openai-agents", "langgraph", "langgraph:lines", "letta", "graphiti",
    "graphiti:episodes", "jsonl",
]  # fmt: skip
MUTATIONS = 12  # of each sample


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    return make_samples(tmp_path_factory.mktemp("samples"))


def test_the_command_knows_every_format():
    assert tuple(FORMATS) == OTHERS
    assert {name.partition(":")[0] for name in NAMES} == set(OTHERS)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_file_is_is_guessed(samples, name):
    assert name.partition(":")[0] == format_of(Source(samples[name]))


def test_chatgpt(samples):
    items = read(samples["chatgpt"])
    assert [
        ("chatgpt:talk", "user", "My allotment is number 14."),
        ("chatgpt:talk", "assistant", "Leeks like deep soil. 🌱"),
        ("chatgpt:talk", "user", "[image]\nWhat eats them?"),
        ("chatgpt:talk", "assistant", "Probably the moth."),
    ] == shown(items)
    assert [
        "it has no message", "it is a tool's, or for one", "it is hidden, or the system's",
        "it is of another branch of the conversation", "it is reasoning",
    ] == reasons(items)  # fmt: skip
    said = [item.draft for item in items if isinstance(item, Said)]
    assert datetime(2026, 1, 1, 10, 0, 0, 250_000, UTC) == said[0].create_time
    assert ({"title": "Leeks"}, "") == (json.loads(said[0].metadata), said[1].metadata)


@pytest.mark.parametrize("name", ["claude", "claude:zip"])
def test_claude(samples, name):
    items = read(samples[name])
    assert [
        ("claude:talk-1", "user", "I fire on Sundays."),
        ("claude:talk-1", "assistant", "Start on Saturday."),
        ("claude:talk-1", "user", "[file: glaze.txt]\n[file: pot.jpg]"),
    ] == shown(items)
    assert ["it has no message"] == reasons(items)


@pytest.mark.parametrize("name", ["mem0", "mem0:list"])
def test_mem0(samples, name):
    one, two, three = items = read(samples[name])
    assert [("m-1", "Is allergic to cashews"), ("m-2", "Lives in Tromsø"), ("m-3", "Has a ticket for June")] == shown(
        items
    )
    assert ({"user_id": "mira"}, {}) == (one.whose, three.whose)
    draft = one.draft.draft
    assert ("health", {"linked": ["x", 3], "run_id": "spring-menu"}) == (draft.category, dict(draft.metadata))
    assert (datetime(2025, 6, 1, 9, tzinfo=UTC), datetime(2025, 11, 20, 7, 10, tzinfo=UTC), ("home", "city")) == (
        two.draft.create_time, two.draft.draft.event_time, two.draft.draft.tags,
    )  # fmt: skip
    assert datetime(2026, 7, 1, tzinfo=UTC) == three.draft.draft.expire_time


def test_the_history_of_mem0(samples):
    items = read(samples["mem0:history"])
    assert [
        ("m-2", "Lives in Tromsø"), ("m-2#0", "Lives in Bodø"), ("mem0:user_id=mira&run_id=r", "user", "No cashews"),
    ] == shown(items)  # fmt: skip
    new, old, message, _ = sorted(items, key=lambda item: isinstance(item, Skipped))
    assert (new.draft.draft.event_time, "m-2") == (old.draft.supersede_time, old.draft.superseded_by)
    assert (None, {"user_id": "mira"}) == (new.draft.supersede_time, message.whose)
    assert ["it was deleted there"] == reasons(items)


def test_the_memory_of_the_model_context_protocol(samples):
    items = read(samples["mcp-memory"])
    assert ["Repairs accordions", "Lives in Ghent", "Ilse Marten works at Grüne Brücke 3"] == [
        text for _, text in shown(items)
    ]
    statements = [item.draft for item in items if isinstance(item, Statement)]
    assert [("Ilse Marten",), ("Ilse Marten",), ("Ilse Marten", "Grüne Brücke 3")] == [
        one.draft.subjects for one in statements
    ]
    assert statements == sorted(statements, key=lambda one: one.create_time)
    assert ["the entity has no observation"] == reasons(items)
    damaged = read(samples["mcp-memory:damaged"])
    assert (["Sings", "Runs"], ["it is damaged"]) == ([text for _, text in shown(damaged)], reasons(damaged))


def test_markdown(samples, tmp_path):
    (note,) = read(samples["markdown"])
    assert ("CLAUDE.md", True) == (note.note.draft.path, note.note.draft.is_searched)
    assert [("memories/MEMORY.md",), ("memories/deep/user.md",)] == shown(read(samples["claude-code"]))
    (tmp_path / "big.md").write_text("x" * 300_000)
    (tmp_path / "binary.md").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "link.md").symlink_to("/etc/passwd")
    (tmp_path / "script.sh").write_text("no note")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "hidden.md").write_text("hidden")
    items = read(tmp_path, "markdown")
    assert ([], 3) == (shown(items), len(items))
    assert ["it is a link", "it is no text in UTF-8", "its text is larger than memoryd takes"] == reasons(items)


def test_basic_memory(samples):
    note, method, requires, other = read(samples["basic-memory"])
    assert "kitchen/sourdough.md" == note.note.draft.path
    draft = method.draft.draft
    assert ("Shorten the bulk rise by a quarter", "method", ("rise",), {"context": "tried twice"}) == (
        draft.content, draft.category, draft.tags, dict(draft.metadata),
    )  # fmt: skip
    assert ["Sourdough at Altitude requires Starter Care", "Sourdough at Altitude relates to Flour Notes"] == [
        one.draft.draft.content for one in (requires, other)
    ]


def test_sessions_of_the_agents_sdk(samples):
    items = read(samples["openai-agents"])
    assert ["user", "assistant", "tool", "assistant"] == [role for _, role, _ in shown(items)]
    assert {"trip"} == {thread for thread, *_ in shown(items)}
    assert ["it is damaged, or no item of a session"] == reasons(items)


@pytest.mark.parametrize("name", ["langgraph", "langgraph:lines"])
def test_items_of_langgraph_are_where_its_adapter_looks(samples, name):
    one, other = read(samples[name])
    assert item_path("langgraph", ("users", "mira"), "diet") == one.note.draft.path
    assert item_path("langgraph", ("users", "a/b"), "x" * 200) == other.note.draft.path
    item = json.loads(json.loads(one.note.draft.text)["item"])
    assert {"namespace": ["users", "mira"], "key": "diet", "value": {"content": "no cashews", "n": 3}} == item
    assert datetime(2026, 3, 4, 10, tzinfo=UTC) == one.note.update_time


def test_letta(samples):
    items = read(samples["letta"])
    assert [
        ("letta/clerk/human",),
        ("letta:clerk", "user", "I read crime."),
        ("letta:clerk", "assistant", "Noted."),
        ("p-1", "Borrowed five books in May"),
    ] == shown(items)
    assert ["it is the system's, or a tool's", "it says nothing to people"] == reasons(items)


def test_graphiti(samples):
    held, ended = read(samples["graphiti"])
    assert (None, datetime(2025, 11, 19, tzinfo=UTC)) == (held.draft.supersede_time, ended.draft.supersede_time)
    assert datetime(2025, 6, 1, tzinfo=UTC) == ended.draft.draft.event_time
    items = read(samples["graphiti:episodes"])
    assert [
        ("graphiti:mira", "user", "I can't eat cashews"),
        ("graphiti:mira", "assistant", "Noted."),
        ("graphiti:mira", "user", "The freezer is full."),
    ] == shown(items)
    assert ["it is data, and not said by anyone"] == reasons(items)


def test_lines_of_one_s_own(samples):
    items = read(samples["jsonl"])
    one, two, three, four = shown(items)
    assert ("1", "I keep bees") == one
    assert (("jsonl:t", "user", "hello"), ("plans/summer",), "I play the violin") == (two, three, four[1])
    assert shown(items) == shown(read(samples["jsonl"]))  # ids are the same each time


def test_a_session_that_is_still_in_the_log_of_its_database_is_read(tmp_path):
    path = tmp_path / "sessions.db"
    with closing(sqlite3.connect(path)) as con:
        con.execute("PRAGMA journal_mode = WAL")
        con.execute("CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id, message_data, created_at)")
        for n in range(2):
            item = json.dumps({"role": "user", "content": f"hello {n}"})
            con.execute("INSERT INTO agent_messages VALUES (?, 's', ?, NULL)", [n, item])
            con.commit()
        assert ["hello 0", "hello 1"] == [text for *_, text in shown(read(path))]


def test_messages_without_an_id_are_known_by_what_they_say(tmp_path):
    path, line = tmp_path / "own.jsonl", '{"type": "message", "thread": "t", "content": "hello"}'
    path.write_text(f"{line}\n{line}\n")
    ids = [item.draft.id for item in read(path)]
    path.write_text(f'"I keep bees"\n{line}\n{line}\n')
    assert (ids, 2) == ([item.draft.id for item in read(path) if isinstance(item, Said)], len(set(ids)))


def test_a_time_that_is_none_leaves_the_line_out_and_one_to_come_is_kept(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text(
        '{"content": "a b c", "create_time": "03/05/2024"}\n{"content": "d e f", "event_time": "2099-01-01"}\n'
        '{"content": "g h i", "supersede_time": "last year"}\n'
    )
    one, two, three = read(path, "jsonl")
    assert ["its create_time is no time", "its supersede_time is no time"] == reasons([one, three])
    assert datetime(2099, 1, 1, tzinfo=UTC) == two.draft.draft.event_time


def test_what_has_no_id_is_known_by_what_it_says(tmp_path):
    path = tmp_path / "edges.json"
    path.write_text(json.dumps([{"fact": "Ann sings"}, {"fact": "Ben runs"}]))
    one, two = read(path)
    assert one.draft.external_id != two.draft.external_id
