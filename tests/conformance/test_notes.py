"""Notes: what is put by a path is there by that path, as it was put, until it goes."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta

import pytest
from memory_client import (
    Conflict,
    Filter,
    InvalidArgument,
    Kind,
    LimitExceeded,
    NoteNotFound,
    PageTokenInvalid,
)

from memoryd.model import limits

TEXTS = (
    "", " ", "a\nb\r\n\tc", "x" * 256 * 1024, "é" * 20_000, "日本語 " * 3000, "\u202eevil\u2066", "<script>\x1b[31m",
    "😀" * 5000,
)  # fmt: skip
VALUES = ({}, [], None, 0, -1.5, True, {"a": [1, {"b": None}]}, "", ["\u2028", "\\u0000"], {"": {"": ""}}, 10**20)


async def every(memory, prefix: str = "", *, page_size: int = 100, **more) -> list:
    notes, token = [], ""
    while True:
        page = await memory.notes(prefix, page_size=page_size, page_token=token, **more)
        notes += page.notes
        token = page.next_page_token
        if not token:
            return notes


async def paths(memory, prefix: str = "", **more) -> list[str]:
    return [note.path for note in await every(memory, prefix, **more)]


async def test_a_search_looks_below_a_path_alone(memory):
    for path in ("a", "a/b", "a/b/c", "ab", "b/a"):
        await memory.put_note(path, "the bees are on the roof", is_searched=True)
    await memory.add("the bees are on the roof")
    kinds = frozenset({Kind.NOTE})
    for prefix, below in (("a", {"a", "a/b", "a/b/c"}), ("a/b/", {"a/b", "a/b/c"}), ("c", set()), ("a/b/c", {"a/b/c"})):
        found = await memory.search("bees", filter=Filter(kinds=kinds, path_prefix=prefix), min_score=0.0)
        assert {hit.memory.key for hit in found.hits} == below, prefix
    assert (await memory.page(filter=Filter(path_prefix="a"))).memories == ()
    assert (await memory.search("bees", filter=Filter(path_prefix="a"), min_score=0.0)).hits == ()


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
async def test_a_text_comes_back_as_it_was_put(memory, text):
    put = await memory.put_note("plans/summer", text)
    found = await memory.note("plans/summer")
    assert (text, text, False, 1) == (found.text, found.value, found.now.is_json, found.revision)
    assert (put.id, len(text.encode()), put.create_time) == (found.id, found.now.text_bytes, found.update_time)


@pytest.mark.parametrize("value", VALUES, ids=repr)
async def test_a_value_comes_back_as_it_was_put(memory, value):
    await memory.put_note("v", {"of": value} if isinstance(value, str) else value)
    found = (await memory.note("v")).value
    assert value == (found["of"] if isinstance(value, str) else found)


async def test_a_note_has_versions_of_which_ten_are_kept(memory, clock):
    begun = clock.now
    for n in range(1, 14):
        put = await memory.put_note("n", f"text {n}")
        assert (n, begun) == (put.revision, put.create_time)
        clock.now += timedelta(minutes=1)
    found = await memory.note("n")
    assert ("text 13", 13) == (found.text, found.revision)
    assert list(range(13, 3, -1)) == [version.revision for version in found.versions]
    assert ["text 4", "text 12"] == [(await memory.note("n", revision=n)).text for n in (4, 12)]
    for revision in (1, 3, 14):
        with pytest.raises(NoteNotFound, match="4, 5, 6, 7, 8, 9, 10, 11, 12, 13 are"):
            await memory.note("n", revision=revision)
    back = await memory.put_note("n", (await memory.note("n", revision=5)).text)
    assert (14, "text 5") == (back.revision, (await memory.note("n")).text)


async def test_what_it_says_already_makes_no_version(memory, clock):
    await memory.put_note("n", {"a": 1})
    clock.now += timedelta(hours=1)
    assert 1 == (await memory.put_note("n", {"a": 1})).revision
    assert 2 == (await memory.put_note("n", '{"a": 1}')).revision, "a text is no value"


async def test_it_is_put_over_the_revision_that_is_expected(memory):
    with pytest.raises(Conflict, match="revision 0, not 1"):
        await memory.put_note("n", "a", expected_revision=1)
    assert 1 == (await memory.put_note("n", "a", expected_revision=0)).revision
    with pytest.raises(Conflict, match="revision 1, not 0"):
        await memory.put_note("n", "b", expected_revision=0)
    assert 2 == (await memory.put_note("n", "b", expected_revision=1)).revision
    done = await asyncio.gather(
        *(memory.put_note("n", f"c{n}", expected_revision=2) for n in range(8)), return_exceptions=True
    )
    assert (1, 7) == (sum(not isinstance(one, Exception) for one in done), sum(isinstance(o, Conflict) for o in done))
    assert 3 == (await memory.note("n")).revision


async def test_notes_are_listed_by_path_below_a_prefix_in_pages(memory):
    all_paths = [f"{a}/{b}" for a in ("a", "a b", "ä", "B", "日") for b in range(7)]
    for path in random.Random(3).sample(all_paths, len(all_paths)):
        await memory.put_note(path, path)
    assert sorted(all_paths) == await paths(memory, page_size=4)
    assert sorted(p for p in all_paths if p.startswith("a/")) == await paths(memory, "a/", page_size=3)
    assert [] == await paths(memory, "nothing")
    page = await memory.notes("a", page_size=3)
    assert ["", "", ""] == [note.text for note in page.notes]
    with pytest.raises(PageTokenInvalid):
        await memory.notes("b", page_size=3, page_token=page.next_page_token)
    told = [(note.path, note.text) for note in await every(memory, "a", page_size=5, with_content=True)]
    assert [(path, path) for path in sorted(all_paths) if path.startswith("a")] == told


async def test_a_page_with_contents_is_no_longer_than_an_answer(memory):
    for n in range(9):
        await memory.put_note(f"n{n}", "x" * limits.MAX_NOTE_BYTES)
    page = await memory.notes(with_content=True)
    assert (4, True) == (len(page.notes), bool(page.next_page_token))
    assert 9 == len(await every(memory, with_content=True))


async def test_an_erased_note_is_gone_with_all_that_it_was(memory):
    await memory.put_note("a", "old")
    await memory.put_note("a", "new")
    for path in ("a/b", "a/c/d", "ab", "z"):
        await memory.put_note(path, path)
    seen = await memory.delete_notes("a", recursive=True, dry_run=True)
    assert (("a", "a/b", "a/c/d"), 3, True) == (seen.paths, seen.deleted_count, seen.dry_run)
    assert 1 == (await memory.delete_notes("a")).deleted_count
    for revision in (0, 1):
        with pytest.raises(NoteNotFound, match="no note 'a'"):
            await memory.note("a", revision=revision)
    assert 2 == (await memory.delete_notes("a", recursive=True)).deleted_count
    with pytest.raises(NoteNotFound):
        await memory.delete_notes("a", recursive=True)
    assert 0 == (await memory.delete_notes("a", missing_ok=True)).deleted_count
    again = await memory.put_note("a", "again")
    assert (1, 1) == (again.revision, len(again.versions))
    assert ["a", "ab", "z"] == await paths(memory)
    assert 3 == (await memory.delete_notes("", recursive=True)).deleted_count
    assert [] == await paths(memory)


async def test_a_moved_note_keeps_what_it_is(memory, clock):
    first = await memory.put_note("a/b", "old")
    clock.now += timedelta(hours=1)
    await memory.put_note("a/b", "new")
    await memory.put_note("a/c", "c")
    await memory.put_note("taken", "t")
    assert ("x/b",) == (await memory.move_note("a/b", "x/b")).paths
    found = await memory.note("x/b")
    assert (first.id, first.create_time, 2, "new") == (found.id, found.create_time, found.revision, found.text)
    assert "old" == (await memory.note("x/b", revision=1)).text
    with pytest.raises(NoteNotFound):
        await memory.note("a/b")
    with pytest.raises(Conflict, match="'taken' already"):
        await memory.move_note("x/b", "taken")
    for wrong in ("x/b", "x/b/c"):
        with pytest.raises(InvalidArgument, match="new_path"):
            await memory.move_note("x/b", wrong, recursive=True)
    assert ("x/b/c",) == (await memory.move_note("x/b", "x/b/c")).paths
    await memory.put_note("x", "itself")
    assert ("y/z", "y/z/b/c") == (await memory.move_note("x", "y/z", recursive=True)).paths
    assert ["a/c", "taken", "y/z", "y/z/b/c"] == await paths(memory)
    await memory.put_note("a/b", "another")
    assert 1 == (await memory.note("a/b")).revision
    await memory.put_note("y/q", "in the way")
    with pytest.raises(Conflict):
        await memory.move_note("a", "y", recursive=True) if await memory.put_note("y/c", "c") else None
    assert ["a/b", "a/c"] == await paths(memory, "a/"), "all of them move, or none"


async def test_it_expires_after_it_was_put_or_after_it_was_read(memory, clock):
    await memory.put_note("put", "a", expire_after_s=100)
    await memory.put_note("read", "b", expire_after_access_s=100)
    await memory.put_note("stays", "c")
    clock.now += timedelta(seconds=60)
    assert "b" == (await memory.note("read")).text
    clock.now += timedelta(seconds=60)
    assert "b" == (await memory.note("read")).text
    with pytest.raises(NoteNotFound):
        await memory.note("put")
    assert ["read", "stays"] == await paths(memory)
    with pytest.raises(NoteNotFound):
        await memory.delete_notes("put")
    with pytest.raises(Conflict):
        await memory.put_note("put", "new", expected_revision=1)
    again = await memory.put_note("put", "new", expected_revision=0)
    assert (1, None) == (again.revision, again.expire_time)
    clock.now += timedelta(seconds=60)
    assert ["put", "read", "stays"] == await paths(memory, with_content=True), "which reads it"
    clock.now += timedelta(seconds=60)
    assert "b" == (await memory.note("read")).text
    clock.now += timedelta(seconds=101)
    assert ["put", "stays"] == await paths(memory)
    await memory.put_note("stays", "c", expire_after_s=10)
    await memory.put_note("target", "x", expire_after_s=10)
    clock.now += timedelta(seconds=11)
    assert ("target",) == (await memory.move_note("put", "target")).paths, "what has expired is in no one's way"
    assert "new" == (await memory.note("target")).text


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "a/../b",
        "./a",
        "a\nb",
        "a\x00",
        "\x1b[31m",
        " ",
        "a\ud800",
        "a\u202eb",
        "a\u2028",
        "\u200b",
        "a\x9b",
    ],
)  # fmt: skip
async def test_a_path_that_is_none_is_refused(memory, path):
    for call in (
        lambda: memory.put_note(path, "x"), lambda: memory.note(path), lambda: memory.delete_notes(path),
        lambda: memory.move_note(path, "b"), lambda: memory.move_note("b", path),
    ):  # fmt: skip
        with pytest.raises(InvalidArgument):
            await call()
    assert [] == await paths(memory)


async def test_paths_are_one_where_they_look_the_same_and_else_apart(memory):
    await memory.put_note("caf\u00e9", "one")
    await memory.put_note("cafe\u0301", "two")
    await memory.put_note("Caf\u00e9", "another")
    assert ["Caf\u00e9", "caf\u00e9"] == await paths(memory)
    assert "two" == (await memory.note("caf\u00e9")).text
    for path in ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "👩\u200d🔬/lab", "a b", "%_*?"):
        await memory.put_note(path, path)
        assert path == (await memory.note(path)).text
    await memory.put_note("p" * limits.MAX_PATH_BYTES, "long")
    with pytest.raises(LimitExceeded, match="the limit is 512"):
        await memory.put_note("p" * (limits.MAX_PATH_BYTES + 1), "x")


async def test_what_is_too_large_or_no_json_or_holds_a_credential_is_refused_and_nothing_is_stored(memory):
    credential = "my password is hunter2-Falcon"
    for content, error in (
        ("x" * (limits.MAX_NOTE_BYTES + 1), LimitExceeded), ({"a": "x" * limits.MAX_NOTE_BYTES}, LimitExceeded),
        ({"a": float("nan")}, InvalidArgument), ({"a": object()}, InvalidArgument), (credential, InvalidArgument),
        ({"password": "hunter2-Falcon9"}, InvalidArgument), ("word " * 4000 + credential, InvalidArgument),
    ):  # fmt: skip
        with pytest.raises(error):
            await memory.put_note("n", content)
    for more in (
        {"expire_after_s": -1},
        {"expire_after_access_s": 10**12},
        {"expire_after_access_s": 59},
        {"expected_revision": -1},
    ):
        with pytest.raises((InvalidArgument, LimitExceeded)):
            await memory.put_note("n", "x", **more)
    assert [] == await paths(memory)


async def test_notes_are_of_one_scope_and_nothing_else_shows_them(memory):
    bob, chat = memory.acting_for(user_id="bob"), memory.acting_for(user_id="alice", chat_id="c")
    other = memory.acting_for(user_id="alice", agent_id="other")
    await memory.put_note("n", "the harbour is closed on Sundays")
    await bob.put_note("n", "bob's")
    await chat.put_note("n", "the chat's", shared=True)
    assert ["the harbour is closed on Sundays", "bob's", "the chat's"] == [
        (await memory.note("n")).text, (await bob.note("n")).text, (await chat.note("n", shared=True)).text,
    ]  # fmt: skip
    with pytest.raises(NoteNotFound):
        await other.note("n")
    with pytest.raises(InvalidArgument):
        await memory.put_note("n", "x", shared=True)
    assert "alice" == (await chat.note("n", shared=True)).now.author
    assert "" == (await memory.note("n")).now.author
    assert () == (await memory.search("harbour", min_score=0.0)).hits
    assert () == (await memory.page()).memories
    assert "harbour" not in (await memory.context("harbour", min_score=0.0)).text


async def test_all_of_a_user_goes_with_the_user(memory):
    await memory.put_note("a", "x")
    await memory.put_note("a", "y")
    await memory.put_note("b", "z")
    chat = memory.acting_for(user_id="alice", chat_id="c")
    await chat.put_note("n", "the chat's", shared=True)
    assert 2 == (await memory.forget_user(dry_run=True)).note_count
    assert 2 == (await memory.forget_user()).note_count
    assert [] == await paths(memory)
    assert 1 == (await memory.put_note("a", "new")).revision
    assert ["n"] == [note.path for note in (await chat.notes(shared=True)).notes]


async def test_what_names_a_person_goes_with_what_was_said_of_them(memory):
    await memory.add("Bob Miller likes tea")
    await memory.put_note("now", "ask Bob Miller about the boat")
    await memory.put_note("before", "call bob  miller")
    await memory.put_note("before", "call someone")
    await memory.put_note("people/Bob Miller", "a friend")
    await memory.put_note("other", "Bobby Millerson, and Bob's tea")
    seen = await memory.forget_person("Bob Miller", with_messages=True, dry_run=True)
    assert {"before", "now", "people/Bob Miller"} == set(seen.note_paths)
    await memory.forget_person("Bob Miller", with_messages=True)
    assert ["before", "other"] == await paths(memory)
    assert [2] == [version.revision for version in (await memory.note("before")).versions]


async def found(memory, query: str, *kinds: Kind, **more) -> list[str]:
    result = await memory.search(query, filter=Filter(kinds=frozenset(kinds or {Kind.NOTE})), min_score=0.0, **more)
    return [hit.memory.key or hit.memory.content for hit in result.hits if hit.lexical > 0]


async def test_a_note_that_is_searched_is_found_where_notes_are_asked_for(memory, clock):
    await memory.add("The harbour master is called Ines")
    await memory.put_note("plans/harbour", "we sail at nine", is_searched=True)
    await memory.put_note("plans/sailing", "meet at the harbour gate", is_searched=True)
    await memory.put_note("quiet", "the harbour is closed on Sundays")
    assert {"plans/harbour", "plans/sailing"} == set(await found(memory, "harbour"))
    assert ["The harbour master is called Ines"] == [
        hit.memory.content for hit in (await memory.search("harbour", min_score=0.0)).hits
    ]
    both = await found(memory, "harbour", Kind.NOTE, Kind.FACT)
    assert {"plans/harbour", "plans/sailing", "The harbour master is called Ines"} == set(both)
    (hit,) = (await memory.search("gate", filter=Filter(kinds=frozenset({Kind.NOTE})))).hits
    assert ("plans/sailing\nmeet at the harbour gate", Kind.NOTE) == (hit.memory.content, hit.memory.kind)
    assert (await memory.note("plans/sailing")).id == hit.memory.id
    await memory.put_note("plans/sailing", "meet at the lighthouse", is_searched=True)
    await memory.put_note("quiet", "the harbour is closed on Sundays", is_searched=True)
    await memory.move_note("plans/harbour", "old/harbour")
    assert {"old/harbour", "quiet"} == set(await found(memory, "harbour"))
    assert ["plans/sailing"] == await found(memory, "lighthouse")
    assert [] == await found(memory, "gate")
    await memory.put_note("quiet", "the harbour is closed on Sundays")
    await memory.delete_notes("old/harbour")
    assert [] == await found(memory, "harbour")
    bob = memory.acting_for(user_id="bob")
    assert [] == await found(bob, "lighthouse")
    await memory.put_note("soon", "the ferry to Oslo", is_searched=True, expire_after_access_s=100)
    clock.now += timedelta(seconds=90)
    await memory.note("soon")
    clock.now += timedelta(seconds=90)
    assert ["soon"] == await found(memory, "ferry")
    clock.now += timedelta(seconds=20)
    assert [] == await found(memory, "ferry")
    await memory.forget_user()
    assert [] == await found(memory, "lighthouse")


async def test_a_long_note_is_found_by_the_words_of_its_beginning(memory):
    text = "the boat leaves at nine. " * 1000 + "saffron " + "x" * 8000 + " walnut"
    await memory.put_note("long", text, is_searched=True)
    assert ["long"] == await found(memory, "saffron")
    assert [] == await found(memory, "walnut"), "it stands behind what is looked at"


async def test_no_memory_is_a_note(memory):
    with pytest.raises(InvalidArgument, match="put_note"):
        await memory.add("x", kind="note")
