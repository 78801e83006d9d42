"""A file that is imported may come from anywhere: what is wrong with it is told, and costs neither time nor room."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import zipfile
from contextlib import closing

import pytest

from memoryd.cli.importers import source as sources
from memoryd.cli.importers.formats import EXPORT, format_of, reader_of
from memoryd.cli.importers.items import Kept, Said, Skipped, Statement
from memoryd.cli.importers.source import Damaged, Source
from memoryd.errors import InvalidArgument
from tests.import_helpers import read, reasons, shown
from tests.import_samples import make_samples
from tests.test_importers import NAMES

MUTATIONS = 12  # of each sample


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    return make_samples(tmp_path_factory.mktemp("samples"))


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


def database(path, *statements: str):
    with closing(sqlite3.connect(path)) as con, con:
        for statement in statements:
            con.execute(statement)
    return path


HISTORY = "memory_id, event, created_at, updated_at, is_deleted"


@pytest.mark.parametrize(
    ("columns", "row", "said"),
    [
        (f"{HISTORY}, new_memory TEXT AS (printf('%.*c', 200000000, 'x'))", "(memory_id) VALUES (1)", "computed"),
        ("memory_id", "VALUES (x'00ff')", "cannot be read"),
        ('"\x1b[31m"', "VALUES (1)", "cannot be read"),
    ],
)
def test_a_database_that_is_none_of_mem0_is_refused_in_plain_letters(tmp_path, columns, row, said):
    path = database(tmp_path / "history.db", f"CREATE TABLE history ({columns})", f"INSERT INTO history {row}")
    with pytest.raises(Damaged, match=said) as refused:
        read(path, "mem0")
    assert str(refused.value).isprintable()


def test_a_database_with_more_rows_than_room_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "SOME_ROWS", 0)
    monkeypatch.setattr(sources, "LEAST_ROW", 1 << 20)
    path = database(
        tmp_path / "history.db", f"CREATE TABLE history ({HISTORY}, new_memory)",
        "INSERT INTO history (memory_id, new_memory) VALUES ('a', 'I keep bees'), ('b', 'I sing')",
    )  # fmt: skip
    with pytest.raises(Damaged, match="more rows"):
        read(path, "mem0")


@pytest.mark.parametrize(
    "front",
    [
        "title: 2024-01-01", "title: !!timestamp x", "title: &a [*a]", "title: [1]", "permalink: {}", "- a",
        "title: *a",
        "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\ntitle: [*b, *b, *b, *b]",
        "<<: [&a {x: 1}, *a]", "\t: x", ": " * 3000,
    ],
)  # fmt: skip
def test_whatever_stands_above_a_page_is_read_as_texts_or_not_at_all(tmp_path, front):
    path = tmp_path / "page.md"
    path.write_text(f"---\n{front}\n---\n- [fact] Bees sing\n- [ ] a task\n")
    items = read(path, "basic-memory")
    assert ["page.md", "Bees sing"] == [one[-1] for one in shown(items)]


@pytest.mark.parametrize("line", ["- {}x", "- [a] x{}y", "- [a] x{}(y)", "- {}[[x]]", "- [a] {}((((", "---{}"])
def test_long_lines_of_spaces_take_no_time(tmp_path, line):
    path = tmp_path / "page.md"
    path.write_text("---\ntitle: x\n---\n" + f"{line.format(' ' * 60_000)}\n" * 4)  # cubic would take days
    assert "page.md" == read(path, "basic-memory")[0].note.draft.path


def test_what_is_no_file_is_left_out_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.md")
    assert ["it is no file"] == reasons(read(tmp_path, "markdown"))


def test_what_is_malformed_is_left_out_and_the_rest_is_read(tmp_path):
    path = tmp_path / "mem0.json"
    records = [
        {"id": "1", "memory": "I keep bees", "expiration_date": "9999-12-31"},
        {"id": "2", "memory": "x", "created_at": []},
        {"id": "3", "memory": "I sing", "categories": [{"a": 1}]},
    ]  # fmt: skip
    path.write_text(json.dumps(records))
    assert [("1", "I keep bees"), ("3", "I sing")] == shown(read(path))
    talk = {"mapping": {"a": {"message": {"content": {"content_type": [], "parts": ["x"]}, "author": {"role": []}}}}}
    path.write_text(
        json.dumps(
            [
                talk,
                {
                    "mapping": {
                        "a": {
                            "message": {
                                "author": {"role": "user"},
                                "content": {"content_type": "text", "parts": ["hello"]},
                            }
                        }
                    }
                },
            ]
        )
    )
    assert ["hello"] == [text for *_, text in shown(read(path))]


def test_what_is_for_a_tool_is_no_answer(tmp_path):
    path = tmp_path / "conversations.json"
    message = {
        "author": {"role": "assistant"},
        "recipient": "bio",
        "content": {"content_type": "text", "parts": ["User sings"]},
    }
    path.write_text(json.dumps([{"id": "t", "mapping": {"a": {"message": message}}}]))
    assert ["it is a tool's, or for one"] == reasons(read(path))


def test_a_branch_of_claude_s_that_was_left_is_left_out(tmp_path):
    path = tmp_path / "conversations.json"
    messages = [
        {"uuid": name, "sender": "human", "text": f"said {name}", "parent_message_uuid": parent}
        for name, parent in (("a", ""), ("b", "a"), ("c", "a"))
    ]
    path.write_text(json.dumps([{"uuid": "t", "current_leaf_message_uuid": "c", "chat_messages": messages}]))
    items = read(path)
    assert (["said a", "said c"], 1) == ([text for *_, text in shown(items)], len(reasons(items)))


def test_marks_of_windows_at_the_beginning_are_passed_over(tmp_path):
    for name, text in (
        ("a.json", '[{"id": "1", "memory": "I keep bees"}]'),
        ("b.jsonl", '"I keep bees"\n'),
        ("c.md", "hello"),
    ):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
        (item,) = read(tmp_path / name)
        assert "\ufeff" not in (item.note.draft.text if isinstance(item, Kept) else item.draft.draft.content)


def test_what_a_letta_agent_sends_is_what_it_says(tmp_path):
    path = tmp_path / "agent.af"
    call = {"function": {"name": "send_message", "arguments": '{"message": "Great stamps!"}'}}
    message = {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "thinking"}], "tool_calls": [call]}
    path.write_text(json.dumps({"agents": [{"name": "a", "messages": [message]}]}))
    assert [("letta:a", "assistant", "Great stamps!")] == shown(read(path))


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
    assert ["it is no object of JSON, and no text in quotes"] == reasons(read(lines, "jsonl"))
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
