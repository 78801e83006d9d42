"""Messages with long texts hold no one else up: their texts lie in pieces, and each read puts them together again."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_client import MessageDraft, MessageSearch, ToolCall

from memoryd.model.change import NewMessage
from memoryd.model.conversation import Message, Role
from memoryd.model.conversation import ToolCall as Call
from memoryd.model.scope import Owner
from memoryd.store.conversations import MessageSelector, numbered
from memoryd.store.duckdb import long_texts as pieces
from memoryd.store.duckdb.conversation_rows import MESSAGE_COLUMNS, message_of, message_row
from memoryd.store.duckdb.migrations import MIGRATIONS, long_texts
from tests.builders import ALICE, MEMORY_LIMIT, NOW, Local, open_database, open_duckdb, ports_over, ram_store, traces_in

MEBIBYTE = 1 << 20
HERON = MessageSearch(text="heron", top_k=5, before=2, after=2)
TEXTS = st.builds(
    lambda text, times: (text * times)[:100_000],
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9),
    st.integers(1, 3_000),
)


def said(seq: int, **texts) -> Message:
    return Message(
        id=f"m{seq}", agent_id="default", scope=ALICE, thread_id="t", seq=seq, session_id="s", role=Role.ASSISTANT,
        create_time=NOW, **{"content": "hello", **texts},
    )  # fmt: skip


def row_of(message: Message, *, terms: str = "") -> dict:
    return message_row(NewMessage(message, terms, ""), numbered(message.seq, 0), message.seq)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(TEXTS, st.lists(TEXTS, max_size=3), TEXTS, TEXTS)
def test_a_message_is_the_same_after_it_was_in_pieces_and_no_row_is_long(content, arguments, metadata, terms):
    calls = tuple(Call(f"tool {n}", argument, str(n)) for n, argument in enumerate(arguments))
    message = said(1, content=content, tool_calls=calls, metadata=metadata)
    row, made = pieces.divided(row_of(message, terms=terms))
    assert all(len(row[name].encode()) <= pieces.MAX_ROW_BYTES for name in ("content", "details", "metadata", "terms"))
    assert all(len(piece["text"].encode()) <= 4 * pieces.PIECE_CHARACTERS for piece in made)
    held = [(piece["number"], piece["name"], piece["piece"], piece["text"]) for piece in made][::-1]
    (whole,) = pieces.whole(lambda *_: held, [tuple(row[name] for name in MESSAGE_COLUMNS)], MESSAGE_COLUMNS)
    assert message == message_of(whole)
    kept = row["terms"] or pieces.texts_of(held).get(row["number"], {}).get("terms", "")
    assert terms == kept
    if held:
        assert pieces.whole(lambda *_: held[1:], [tuple(row.get(n) for n in MESSAGE_COLUMNS)], MESSAGE_COLUMNS) is None


async def long_thread(memory: Local) -> list[Message]:
    trace = json.dumps({"steps": [f"step {n}: done" for n in range(2_000)]})
    name = "Zebedee Quillfeather"
    across = "y" * (pieces.PIECE_CHARACTERS * 3 - 4) + f" {name} " + "y" * 20_000
    await memory.append("t", [MessageDraft(content="the heron nests at the lake")])
    await memory.append("t", [MessageDraft(content="the pike " * 2_000, metadata=trace)])
    await memory.append("t", [MessageDraft(role="assistant", tool_calls=(ToolCall("note", across, "1"),))])
    await memory.append("t", [MessageDraft(content="short again", metadata=json.dumps({"note": "z" * 9_000}))])
    return list((await memory.messages("t", page_size=10)).messages)


@pytest.mark.parametrize("kind", ["ram", "duckdb"])
async def test_long_messages_are_read_found_and_forgotten_as_any(kind, folder, clock):
    async with ports_over(open_duckdb(folder) if kind == "duckdb" else ram_store()) as ports:
        memory = Local(ports, clock, user_id="alice")
        first, pike, call, last = await long_thread(memory)
        assert ("the pike " * 2_000, 2_000) == (pike.content, len(json.loads(pike.metadata)["steps"]))
        assert "y Zebedee Quillfeather y" in call.tool_calls[0].arguments
        assert [first, pike, call, last] == list((await memory.messages("t", page_size=4)).messages)
        hits = (await memory.search_messages(MessageSearch(text="the pike", top_k=1, before=1, after=2))).hits
        assert [pike] == [hit.message for hit in hits]
        assert ([first], [call, last]) == (list(hits[0].before), list(hits[0].after))
        read = await ports.store.conversations.numbered(0, limit=10)
        assert [(m.content, m.tool_calls) for _, m in read] == [
            (m.content, m.tool_calls) for m in (first, pike, call, last)
        ]
        sizes = await ports.store.owners.sizes(limit=5)
        assert sum(len(m.content.encode()) for m in (first, pike, call, last)) == sizes.owners[0].content_bytes
        forgotten = await memory.forget_person("Zebedee Quillfeather", with_messages=True)
        assert 1 == forgotten.message_count
        assert [first, pike, last] == list((await memory.messages("t", page_size=10)).messages)


async def test_a_text_that_stands_in_two_pieces_leaves_a_trace_until_it_is_erased(folder, clock):
    async with ports_over(open_duckdb(folder)) as ports:
        memory = Local(ports, clock, user_id="alice")
        await long_thread(memory)
        for text in ("Zebedee", "Quillfeather", "Zebedee Quillfeather", " Zebedee Quillfeather " + "y" * 9_000):
            assert "long_texts.text" in await traces_in(ports.store, text)
        assert not await traces_in(ports.store, "Zebedee Quillfeathers")
        await memory.delete_thread("t")
        assert not await traces_in(ports.store, "Zebedee")
        counted = await ports.store._writer.run(lambda con: con.execute("SELECT count(*) FROM long_texts").fetchall())
        assert [(0,)] == counted


async def test_a_message_that_is_erased_while_it_is_read_is_left_out(folder, clock):
    async with ports_over(open_duckdb(folder)) as ports:
        memory, conversations = Local(ports, clock, user_id="alice"), ports.store.conversations
        _, *_, last = await long_thread(memory)
        selector = MessageSelector(owner=Owner("default", ALICE), thread_id="t", limit=10)
        stale = conversations._selected(MESSAGE_COLUMNS, selector, 10)
        await memory.forget_person("Zebedee Quillfeather", with_messages=True)
        answers = [stale, conversations._selected(MESSAGE_COLUMNS, selector, 10)]
        found = conversations._whole(lambda: answers.pop(0))
        assert ([1, 2, last.seq], []) == ([message.seq for message in found], answers)


async def test_many_of_one_user_leave_searches_of_others_purges_and_compactions_as_they_are(folder, clock):
    async with ports_over(open_duckdb(folder)) as ports:
        eve, bob = (Local(ports, clock, user_id=user_id) for user_id in ("eve", "bob"))
        await bob.append("b", [MessageDraft(content="the heron of Zebedee nests at the lake")])
        await eve.append("t", [MessageDraft(content="hello", metadata=json.dumps({"steps": "x" * 1_000_000}))])
        await many(ports, 255)
        await bob.append("b", [MessageDraft(content="it nests there in May")])
        for _ in range(2):
            assert (
                "the heron of Zebedee nests at the lake" == (await bob.search_messages(HERON)).hits[0].message.content
            )
            assert 2 == len((await bob.messages("b")).messages)
            assert 4 == len(await ports.store.conversations.numbered(0, limit=4))
            await ports.store.files.compact()
        assert 1 == (await bob.forget_person("Zebedee", with_messages=True)).message_count
        assert 1_000_000 < sum(len(m.metadata) for m in (await eve.messages("t", page_size=4)).messages)
        await eve.delete_thread("t")


async def many(ports, count: int) -> None:
    """Write the first message of thread t again and again, with its pieces."""
    for n in range(1, count, 15):
        for table, more in (("messages", ", m.seq + i AS seq"), ("long_texts", "")):
            again = f"m.* REPLACE (m.id || i AS id, m.number + i AS number{more})"
            first = f"number = (SELECT min(number) FROM {table} WHERE thread_id = 't')"  # noqa: S608  our own names
            sql = f"INSERT INTO {table} SELECT {again} FROM {table} m, range({n}, {n + 15}) r(i) WHERE {first}"  # noqa: S608
            await ports.store._writer.run(lambda con, sql=sql: con.execute(sql))


def test_long_messages_of_an_older_store_are_moved_into_pieces_within_the_usual_memory(folder):
    path = folder / "memory.duckdb"
    before = MIGRATIONS[: MIGRATIONS.index(long_texts)]
    opened = open_database(path, memory_limit_bytes=MEMORY_LIMIT, migrations=before)
    wanted = {}
    for seq in range(1, 260):
        message = said(
            seq, metadata=f"{seq} " * (MEBIBYTE // 5) if seq % 4 else "", content="pike " * (seq % 3 * 2_000 + 1)
        )
        row = row_of(message)
        opened.connection.execute(
            f"INSERT INTO messages ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",  # noqa: S608  our own names
            list(row.values()),
        )
        wanted[row["number"]] = message
    opened.close()
    opened = open_database(path, memory_limit_bytes=MEMORY_LIMIT)
    con = opened.connection
    assert (8192, 8192) > con.execute("SELECT max(strlen(metadata)), max(strlen(content)) FROM messages").fetchall()[0]
    held = con.execute(f"SELECT {', '.join(MESSAGE_COLUMNS)} FROM messages ORDER BY number").fetchall()  # noqa: S608
    for start in range(0, len(held), 20):
        some = pieces.whole(
            lambda sql, params: con.execute(sql, params).fetchall(), held[start : start + 20], MESSAGE_COLUMNS
        )
        for row in some:
            assert wanted.pop(row[MESSAGE_COLUMNS.index("number")]) == message_of(row)
    assert not wanted
    opened.close()
