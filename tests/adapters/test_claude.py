"""Claude's memory tool over a real daemon, held against the library's own, which keeps files: equal answers."""

from __future__ import annotations

import re

import pytest
from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool
from memory_client import AsyncMemoryClient
from memory_client.adapters.claude import AsyncMemoryTool, MemoryTool

KEY = "sk-ant-api03-" + "A1b2C3d4E5f6G7h8" * 6


def create(path, text):
    return {"command": "create", "path": path, "file_text": text}


def view(path, *between):
    return {"command": "view", "path": path, **({"view_range": [*between]} if between else {})}


def replace(path, old, new):
    return {"command": "str_replace", "path": path, "old_str": old, "new_str": new}


def insert(path, line, text):
    return {"command": "insert", "path": path, "insert_line": line, "insert_text": text}


def delete(path):
    return {"command": "delete", "path": path}


def rename(old, new):
    return {"command": "rename", "old_path": old, "new_path": new}


COMMANDS = [
    view("/memories"),
    create("/memories/plan.md", "one\ntwo\nthree\n"),
    create("/memories/plan.md", "again"),
    view("/memories/plan.md"),
    view("/memories/plan.md", 2, 3),
    view("/memories/plan.md", 2, -1),
    view("/memories/plan.md", 0, 1),
    view("/memories/plan.md", 9, 12),
    create("/memories/empty.txt", ""),
    view("/memories/empty.txt"),
    create("/memories/people/ann/birthday.txt", "12 May"),
    create("/memories/people/bob.txt", "Bob likes 日本 and <script>alert(1)</script>" * 30),
    create("/memories/.hidden/secret.txt", "x"),
    create("/memories/deep/a/b/c/d.txt", "deep"),
    view("/memories"),
    view("/memories/people"),
    view("/memories/people/"),
    view("/memories/deep"),
    view("/memories/none"),
    view("/memories/plan.md/x"),
    replace("/memories/plan.md", "two", "TWO\n2"),
    replace("/memories/plan.md", "nothing of it", "x"),
    replace("/memories/plan.md", "o", "0"),
    replace("/memories/none.md", "a", "b"),
    replace("/memories/people", "a", "b"),
    replace("/memories/people/ann/birthday.txt", "12 May", ""),
    view("/memories/people/ann/birthday.txt"),
    insert("/memories/plan.md", 0, "zero"),
    insert("/memories/plan.md", 2, "between\n\n"),
    insert("/memories/plan.md", 99, "never"),
    insert("/memories/plan.md", -1, "never"),
    insert("/memories/none.md", 0, "never"),
    insert("/memories/empty.txt", 0, "first"),
    view("/memories/plan.md"),
    view("/memories/empty.txt"),
    rename("/memories/plan.md", "/memories/archive/2026/plan.md"),
    rename("/memories/none.md", "/memories/x.md"),
    rename("/memories/empty.txt", "/memories/people/bob.txt"),
    rename("/memories/people", "/memories/folks"),
    view("/memories/folks"),
    view("/memories/people"),
    rename("/memories", "/memories/x"),
    rename("/memories/folks", "/memories/deep"),
    delete("/memories/folks/bob.txt"),
    delete("/memories/folks/bob.txt"),
    delete("/memories/deep"),
    view("/memories/deep"),
    delete("/memories"),
    view("/memories/archive/../archive/2026/plan.md"),
    view("/memories/../etc/passwd"),
    view("/etc/passwd"),
    create("/memories/../../x", "never"),
    create("memories/x", "never"),
    create("/memories", "never"),
    create("/memories/archive", "never"),
    view("/memories"),
]


def answer(tool, command):
    try:
        return told(tool.call(command))
    except ToolError as error:
        return "refused: " + told(str(error))


def told(text: str) -> str:
    """An answer without the sizes of directories, which a file system makes up."""
    return re.sub(r"^[\d.]+[BKMG]\t(\S+/|/memories\S*)$", r"-\t\1", text, count=0, flags=re.MULTILINE)


def test_every_command_is_answered_as_by_the_library_itself(daemon, user, tmp_path):
    own = BetaLocalFilesystemMemoryTool(str(tmp_path))
    with daemon.client(user) as client:
        tool = MemoryTool(client)
        for command in COMMANDS:
            assert answer(tool, command) == answer(own, command), command
        assert tool.clear_all_memory() == own.clear_all_memory()
        assert answer(tool, view("/memories")) == answer(own, view("/memories"))
        assert list(client.all_notes()) == []
        assert tool.to_dict() == own.to_dict()


async def test_the_asynchronous_tool_says_the_same(daemon, user, tmp_path):
    own = BetaLocalFilesystemMemoryTool(str(tmp_path))
    client = AsyncMemoryClient(daemon.endpoint, user_id=user, chat_id="", agent_id="")
    tool = AsyncMemoryTool(client)
    for command in COMMANDS:
        try:
            said = told(await tool.call(command))
        except ToolError as error:
            said = "refused: " + told(str(error))
        assert said == answer(own, command), command
    assert await tool.clear_all_memory() == "All memory cleared"
    await client.close()


def test_what_the_daemon_refuses_is_told_to_the_model_and_changes_nothing(daemon, user):
    with daemon.client(user) as client:
        tool = MemoryTool(client)
        tool.call(create("/memories/a.md", "kept"))
        for command in (
            create("/memories/key.md", f"my key is {KEY}"),
            replace("/memories/a.md", "kept", f"my key is {KEY}"),
            insert("/memories/a.md", 0, f"my key is {KEY}"),
            create("/memories/large.md", "x" * 300_000),
            create("/memories/" + "n" * 600, "x"),
            create("/memories/\u202eevil", "x"),
            create("/memories/nul\0", "x"),
            create("/memories/nul.md", "a\0b"),
            create("/memories/a.md/below", "x"),
            rename("/memories/a.md", "/memories/a.md/below"),
            replace("/memories/a.md", "", "x"),
        ):
            with pytest.raises(ToolError) as refused:
                tool.call(command)
            assert KEY not in str(refused.value)
            assert [(note.path, note.text) for note in client.all_notes(with_content=True)] == [
                ("memories/a.md", "kept")
            ]


def test_words_are_found_in_any_form_of_unicode(daemon, user):
    with daemon.client(user) as client:
        tool = MemoryTool(client)
        tool.call(create("/memories/a.md", "Zoe\u0301 likes tea"))
        tool.call(replace("/memories/a.md", "Zoe\u0301", "Ann"))
        assert client.note("memories/a.md").text == "Ann likes tea"


def test_a_file_that_changed_meanwhile_is_not_overwritten(daemon, user, monkeypatch):
    with daemon.client(user) as client, daemon.client(user) as other:
        tool = MemoryTool(client)
        tool.call(create("/memories/a.md", "one"))
        put = client.put_note

        def put_later(path, content, **more):
            other.put_note(path, "theirs")
            return put(path, content, **more)

        monkeypatch.setattr(client, "put_note", put_later)
        with pytest.raises(ToolError, match="changed meanwhile"):
            tool.call(replace("/memories/a.md", "one", "mine"))
        assert client.note("memories/a.md").text == "theirs"
        assert client.note("memories/a.md", revision=1).text == "one"  # and the former text is there for undo


def test_while_the_daemon_is_away_the_model_is_told(tmp_path):
    from memory_client import MemoryClient

    with MemoryClient(f"unix://{tmp_path}/none.sock", user_id="alice", timeout_s=1) as client:
        with pytest.raises(ToolError, match="^UNAVAILABLE: "):
            MemoryTool(client).call(view("/memories"))
