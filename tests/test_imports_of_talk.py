"""Messages and notes of other systems come in once, with their times, and what was erased here stays erased."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memoryd.domain.conversation.threads import ThreadKey
from memoryd.domain.transfer.import_messages import import_messages
from memoryd.domain.transfer.import_notes import import_notes
from memoryd.errors import InvalidArgument
from memoryd.model.imported import ImportedNote
from memoryd.model.memory import Kind
from memoryd.model.message_draft import MessageDraft
from memoryd.model.note import NoteDraft
from memoryd.model.query import Filter
from memoryd.model.trust import Trust
from tests.builders import NOW, Local

DAY = timedelta(days=1)
PASSWORD = "my password is hunter2-Zq81"  # noqa: S105  a made-up one


@pytest.fixture
def memory(alice):
    return alice


async def talk(memory: Local, *drafts: MessageDraft, dry_run: bool = False) -> list[str]:
    key = ThreadKey("chatgpt:1", shared=False)
    done = await import_messages(key, drafts, memory._caller, memory.ports, now=memory.clock(), dry_run=dry_run)
    return [result.rejection or result.outcome.value for result in done.results]


def said(n: int, text: str = "") -> MessageDraft:
    return MessageDraft(content=text or f"message {n}", id=f"m{n}", create_time=NOW - DAY + timedelta(minutes=n))


async def test_messages_come_once_with_their_times_and_what_was_erased_stays_erased(memory):
    assert ["stored"] * 3 == await talk(memory, *map(said, range(3)), dry_run=True)
    assert ["stored"] * 3 == await talk(memory, *map(said, range(3)))
    assert ["known", "known", "known", "stored"] == await talk(memory, *map(said, range(4)))
    assert ["kept"] == await talk(memory, said(1, "something else"))
    page = (await memory.messages("chatgpt:1")).messages
    assert [NOW - DAY + timedelta(minutes=n) for n in range(4)] == [one.create_time for one in page]
    assert {Trust.IMPORTED} == {one.trust for one in page}
    if memory.ports.store.files is None:
        return
    await memory.delete_messages("chatgpt:1", ["m1"])
    assert ["known", "erased", "known"] == await talk(memory, *map(said, range(3)))
    await memory.delete_thread("chatgpt:1")
    assert ["erased"] * 3 == await talk(memory, *map(said, range(3)))
    memory.clock.now += DAY
    later = MessageDraft(content="said since", id="m9", create_time=memory.clock() - timedelta(hours=1))
    assert ["erased", "stored"] == await talk(memory, said(1), later)


async def test_a_dry_run_refuses_what_an_import_would(memory):
    for dry_run in (True, False):
        with pytest.raises(InvalidArgument):
            await talk(memory, MessageDraft(content="hello", id=f"ghp_{'a1B2' * 9}"), dry_run=dry_run)


async def test_a_credential_in_a_message_is_masked_and_the_message_is_known_again(memory):
    assert ["stored"] == await talk(memory, said(1, PASSWORD))
    (message,) = (await memory.messages("chatgpt:1")).messages
    assert "hunter2" not in message.content
    assert ["known"] == await talk(memory, said(1, PASSWORD))


@pytest.mark.parametrize("drafts", [[], [MessageDraft(content="no id")], [said(1), said(1)], [said(3 * 24 * 60)]])
async def test_malformed_messages_are_refused(memory, drafts):
    with pytest.raises(InvalidArgument):
        await talk(memory, *drafts)
    assert () == (await memory.threads()).threads


async def kept(memory: Local, *notes: ImportedNote, dry_run: bool = False) -> list[str]:
    done = await import_notes(notes, memory._caller, memory.ports, shared=False, now=memory.clock(), dry_run=dry_run)
    return [result.rejection or result.outcome.value for result in done.results]


def noted(path: str, content: object, **more) -> ImportedNote:
    return ImportedNote(draft=NoteDraft.of(path, content, **more), create_time=NOW - 9 * DAY, update_time=NOW - 3 * DAY)


async def test_notes_come_where_the_path_is_free_with_their_times(memory):
    items = [noted("plans/summer", "by train to Rome", is_searched=True), noted("prefs", {"color": "red"})]
    assert ["stored", "stored"] == await kept(memory, *items, dry_run=True)
    assert [] == [note.path async for note in memory.all_notes()]
    assert ["stored", "stored"] == await kept(memory, *items)
    note = await memory.note("plans/summer")
    assert (NOW - 9 * DAY, NOW - 3 * DAY, Trust.IMPORTED) == (note.create_time, note.update_time, note.now.trust)
    found = await memory.search("a journey by train", filter=Filter(kinds=frozenset({Kind.NOTE})), min_score=0.0)
    assert "plans/summer" in [hit.memory.key for hit in found.hits]
    await memory.put_note("prefs", {"color": "blue"})
    assert ["known", "kept", "secret"] == await kept(memory, *items, noted("secret", PASSWORD))
    await memory.move_note("plans/summer", "plans/winter")
    assert ["known"] == await kept(memory, items[0])
    if memory.ports.store.files is not None:
        await memory.delete_notes("plans/winter")
        assert ["erased"] == await kept(memory, items[0])
    await memory.put_note("plans/summer", "at home")
    assert ["kept"] == await kept(memory, items[0])


async def test_a_note_that_someone_has_deleted_does_not_come_back_and_an_expired_one_does(memory):
    await memory.put_note("p", "for a minute", expire_after_s=60)
    memory.clock.now += timedelta(minutes=2)
    assert ["stored"] == await kept(memory, noted("p", "from before"))
    assert "from before" == (await memory.note("p")).text
    await memory.put_note("q", "by hand")
    assert ["known"] == await kept(memory, noted("q", "by hand"))
    await memory.delete_notes("q")
    if memory.ports.store.files is not None:
        assert ["erased"] == await kept(memory, noted("q", "by hand"))


@pytest.mark.parametrize("notes", [[], [noted("a", "b"), noted("a", "c")]])
async def test_malformed_notes_are_refused(memory, notes):
    with pytest.raises(InvalidArgument):
        await kept(memory, *notes)
