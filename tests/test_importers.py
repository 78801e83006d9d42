"""Files of other systems are read as documented, and whatever is wrong with one is told."""

from __future__ import annotations

import json
import random
import sqlite3
import zipfile
from contextlib import closing
from datetime import UTC, datetime

import pytest
from memory_client.adapters.langgraph_items import item_path

from memoryd.cli.importers import source as sources
from memoryd.cli.importers.formats import EXPORT, FORMATS, format_of, reader_of
from memoryd.cli.importers.items import Kept, Said, Skipped, Statement
from memoryd.cli.importers.source import Damaged, Source
from memoryd.cli.imports import OTHERS
from memoryd.errors import InvalidArgument
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


def read(path, name: str = ""):
    source = Source(path)
    return list(reader_of(name or format_of(source))(source))


def shown(items) -> list[tuple]:
    """Return what items say: of a statement its id and text, of a message thread, role and text, of a note its path."""
    found = []
    for item in items:
        if isinstance(item, Statement):
            found.append((item.draft.external_id, item.draft.draft.content))
        elif isinstance(item, Said):
            found.append((item.thread_id, item.draft.role.value, item.draft.content))
        elif isinstance(item, Kept):
            found.append((item.note.draft.path,))
    return found


def reasons(items) -> list[str]:
    return sorted(item.reason for item in items if isinstance(item, Skipped))


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
        "it has no message", "it is a tool's", "it is hidden, or the system's",
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
    assert ("health", {"linked": '["x", 3]', "run_id": "spring-menu"}) == (draft.category, dict(draft.metadata))
    assert (datetime(2025, 6, 1, 9, tzinfo=UTC), datetime(2025, 11, 20, 7, 10, tzinfo=UTC), ("home", "city")) == (
        two.draft.create_time, two.draft.draft.event_time, two.draft.draft.tags,
    )  # fmt: skip
    assert datetime(2026, 7, 1, tzinfo=UTC) == three.draft.draft.expire_time


def test_the_history_of_mem0(samples):
    items = read(samples["mem0:history"])
    assert [
        ("m-2#0", "Lives in Bodø"), ("m-2", "Lives in Tromsø"), ("mem0:user_id=mira&run_id=r", "user", "No cashews"),
    ] == shown(items)  # fmt: skip
    old, new, message, _ = sorted(items, key=lambda item: isinstance(item, Skipped))
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
    assert ["it is a link", "it is no text in UTF-8", "its text is larger than memoryd keeps"] == reasons(items)


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
    assert ["it is damaged, or no item that memoryd keeps"] == reasons(items)


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
    assert (("t", "user", "hello"), ("plans/summer",), "I play the violin") == (two, three, four[1])
    assert shown(items) == shown(read(samples["jsonl"]))  # ids are the same each time


# --- what is wrong ---


def test_what_is_not_clear_is_asked(tmp_path):
    for name, data in (("a.json", "[]"), ("b.jsonl", '{"a": 1}\n'), ("c.bin", "\0\1"), ("d.json", "")):
        (tmp_path / name).write_text(data)
        with pytest.raises(InvalidArgument, match="--as"):
            format_of(Source(tmp_path / name))
    (tmp_path / "e.jsonl").write_text('{"type": "header", "format": 1}\n')
    assert EXPORT == format_of(Source(tmp_path / "e.jsonl"))
    with pytest.raises(InvalidArgument, match="no file"):
        format_of(Source(tmp_path / "none"))


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LEAST_UNPACKED", 1 << 16)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", "[" + " " * (1 << 20))
    with pytest.raises(Damaged, match="unpacks to"):
        read(path, "chatgpt")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.json", "[]")
    with pytest.raises(InvalidArgument, match=r"has no conversations\.json"):
        read(path, "chatgpt")


def test_a_database_that_computes_its_rows_is_refused(tmp_path):
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as con, con:
        con.execute(
            "CREATE VIEW history AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x FROM n"
        )
    with pytest.raises(Damaged, match="views"):
        read(path, "mem0")


def test_depth_and_endless_lines_are_refused(tmp_path, monkeypatch):
    deep = tmp_path / "deep.json"
    deep.write_text('[{"mapping": {}, "x": ' + "[" * 100_000 + "]" * 100_000 + "}]")
    with pytest.raises(Damaged, match="nested too deep after item 0"):
        read(deep, "chatgpt")
    deep.write_text('[{"mapping": {}, "x": ' + "[" * 100 + "]" * 100 + "}]")
    assert ["it is no conversation"] == reasons(read(deep, "chatgpt"))
    deep.write_text("[" * 1_000_000)
    with pytest.raises(Damaged):
        read(deep, "chatgpt")
    lines = tmp_path / "deep.jsonl"
    lines.write_text("[" * 100_000 + "\n" + '"I keep bees"\n')
    assert ["it is no object of JSON"] == reasons(read(lines, "jsonl"))
    monkeypatch.setattr(sources, "LONGEST_LINE", 1000)
    lines.write_text('"' + "x" * 2000)
    with pytest.raises(Damaged, match="line 1 has more than"):
        read(lines, "jsonl")


def test_of_a_file_that_is_cut_what_stands_before_is_read(samples, tmp_path):
    data = samples["claude"].read_bytes()
    path = tmp_path / "cut.json"
    path.write_bytes(data[: data.index(b'"talk-2"') + 20])
    found = []
    with pytest.raises(Damaged, match="cut or damaged after item 1"):
        found.extend(reader_of("claude")(Source(path)))
    assert 3 == len(shown(found))


WRONG = [
    None,
    True,
    -1,
    1e300,
    "",
    "x" * 10_000,
    "\ud800",
    "\0\u202e<script>",
    [],
    {},
    [None],
    {"a": {"b": []}},
    "🌱" * 3000,
]


def mutated(value, rng):
    """Return a value of JSON with something in it replaced, left out, or put in twice."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        others = {name: one for name, one in value.items() if name != key}
        return others if rng.random() < 0.2 else {**others, key: mutated(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        n = rng.randrange(len(value))
        return [*value[:n], mutated(value[n], rng), *value[n if rng.random() < 0.3 else n + 1 :]]
    return rng.choice(WRONG)


def mutate(path, target, rng) -> None:
    data = path.read_bytes()
    way = rng.randrange(4)
    if way == 0:
        data = data[: rng.randrange(len(data))]
    elif way == 1:
        changed = bytearray(data)
        for _ in range(rng.randrange(1, 20)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        data = bytes(changed)
    elif path.suffix in {".json", ".af"}:
        data = json.dumps(mutated(json.loads(data), rng)).encode()
    elif path.suffix == ".jsonl":
        lines = data.splitlines()
        n = rng.randrange(len(lines))
        try:
            lines[n] = json.dumps(mutated(json.loads(lines[n] or b"{}"), rng)).encode()
        except ValueError:
            lines[n] = lines[n][::-1]
        data = b"\n".join(lines)
    else:
        at = rng.randrange(len(data))
        data = data[:at] + data[at // 2 : at] + data[at:]
    target.write_bytes(data)


@pytest.mark.parametrize("name", NAMES)
def test_a_mutated_file_is_read_or_refused(samples, tmp_path, name):
    path = samples[name]
    path = path / "MEMORY.md" if path.is_dir() else path
    for seed in range(MUTATIONS):
        target = tmp_path / f"{seed}{path.suffix}"
        mutate(path, target, random.Random(seed))
        for chosen in (name.partition(":")[0], ""):
            try:
                items = read(target, chosen)
            except (Damaged, InvalidArgument):
                continue
            assert all(isinstance(item, Statement | Said | Kept | Skipped) for item in items)
            assert all(item.place.isprintable() for item in items)
