"""A database of each schema, as the commit that wrote it left it: all that must be there still is."""

from __future__ import annotations

import hashlib
import json
import lzma
from pathlib import Path

import pytest
from memory_client import Message

from memoryd.store.duckdb.migrations import MIGRATIONS
from memoryd.store.opening import StoreOptions, check_store
from tests.builders import MEMORY_LIMIT, NOW, Local, open_duckdb, ports_over

RELEASES = Path(__file__).parent / "releases"
SCHEMAS = range(1, len(MIGRATIONS) + 1)


def unpacked(schema: int, folder: Path) -> dict:
    """Put the database of a schema into a folder, with its side file, and return what must be there."""
    wanted = json.loads((RELEASES / f"schema-{schema:02d}.json").read_text())
    packed = RELEASES / f"schema-{schema:02d}.duckdb.xz"
    assert packed.stat().st_size < 300_000
    (folder / "memory.duckdb").write_bytes(lzma.decompress(packed.read_bytes()))
    (folder / "memory.duckdb.seq").write_bytes(bytes.fromhex(wanted["side_file"]))
    return wanted


def digests(message: Message) -> dict[str, str]:
    """Return what tells the texts of a long message apart from any other."""
    texts = {"content": message.content, "arguments": message.tool_calls[0].arguments, "metadata": message.metadata}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}


async def versions_of(path: str, client: Local) -> list[str]:
    """Return what tells the versions of a note apart from any other, the newest first."""
    texts = [await client.note(path, revision=one.revision) for one in (await client.note(path)).versions]
    return [hashlib.sha256(note.text.encode()).hexdigest() for note in texts]


@pytest.mark.parametrize("schema", SCHEMAS)
async def test_a_database_of_every_schema_opens_with_all_that_it_held(folder, schema):
    wanted = unpacked(schema, folder)
    told = check_store(StoreOptions(folder / "memory.duckdb", MEMORY_LIMIT))
    assert (schema, schema < len(MIGRATIONS)) == (told.schema_version, told.migrates)
    store = open_duckdb(folder, ledger=folder / "ledger")
    async with ports_over(store) as ports:
        client = Local(ports, lambda: NOW, user_id="alice", chat_id="c1")
        live = sorted((m.id, m.content) for m in (await client.page(page_size=500)).memories)
        assert live == [(memory["id"], memory["content"]) for memory in wanted["live"]]
        assert wanted["memories"] == (await store.info()).memory_count
        for memory_id in wanted["deleted"]:
            assert memory_id not in {one for one, _ in live}
        found = await client.search("the boats of Lyon are worth a visit")
        assert "note 1: the boats of Lyon are worth a visit" == found.hits[0].memory.content
        if wanted["messages"]:
            messages = (await client.messages("trip", page_size=100)).messages
            texts = [message for message in messages if len(message.content) < 100]
            assert wanted["messages"] == [{"id": m.id, "role": m.role.value, "content": m.content} for m in texts]
            assert ([wanted["long"]] if "long" in wanted else []) == [digests(m) for m in messages if m not in texts]
            assert "They plan a trip to Lyon." == (await client.thread("trip")).summary
        assert wanted.get("notes", {}) == {
            note.path: await versions_of(note.path, client) async for note in client.all_notes()
        }
        await client.put_note("new", "a note")
        added = await client.add("I moved to Oslo")
        assert added.memory.id in {m.id for m in (await client.page(page_size=500)).memories}
        await client.delete(wanted["live"][0]["id"], purge=True)
        traces = await store.files.traces(wanted["live"][0]["id"])
        assert all(":" in place for place in traces), traces  # of the copy from before the migration alone
    again = check_store(StoreOptions(folder / "memory.duckdb", MEMORY_LIMIT))
    assert (len(MIGRATIONS), False) == (again.schema_version, again.migrates)
