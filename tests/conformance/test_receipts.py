"""What every store keeps of requests that were carried out, and what a purge takes out of it."""

from __future__ import annotations

from dataclasses import replace

from memoryd.model.change import ChangeSet, ConversationChange, NewMessage, RecordedRequest
from memoryd.model.conversation import Message, Role, Thread
from memoryd.model.memory import Outcome
from memoryd.model.receipt import AddReceipt, AppendReceipt, MemoriesReceipt, Rejection, StatementOutcome
from memoryd.model.scope import Owner
from memoryd.model.talk import AppendedMessage
from tests.builders import ALICE, BOB, NOW, TEAM, added, entry, memory

MINE, THEIRS, OURS = (Owner("default", scope) for scope in (ALICE, BOB, TEAM))


async def noted(store, receipt, *, owner=MINE, request_id="r", **more):
    request = RecordedRequest(owner, "A", request_id, "h", receipt, NOW)
    await store.commits.write(ChangeSet(request=request, **more))
    return request


async def kept(store, request):
    found = await store.commits.recorded(request.owner, request.method, request.request_id)
    return None if found is None else found.receipt


def message(message_id: str, owner: Owner = MINE, seq: int = 1) -> Message:
    return Message(
        id=message_id, agent_id=owner.agent_id, scope=owner.scope, thread_id="t", seq=seq, session_id="s",
        role=Role.USER, content="hello", create_time=NOW,
    )  # fmt: skip


def thread(owner: Owner = MINE) -> Thread:
    return Thread(id="t", agent_id="default", scope=owner.scope, create_time=NOW, update_time=NOW, revision=1)


async def appended(store, owner, *ids):
    said = tuple(NewMessage(message(one, owner, n + 1)) for n, one in enumerate(ids))
    talk = ConversationChange(owner, messages=said, threads=(thread(owner),))
    told = tuple(AppendedMessage(one.id, one.seq, NOW, masked=one.seq == 2) for one in (new.message for new in said))
    return await noted(store, AppendReceipt(owner, "t", "s", told), owner=owner, conversation=talk)


async def test_every_sort_of_receipt_comes_back_as_it_was(store):
    statements = (
        StatementOutcome(Outcome.INSERTED, MINE, "a" * 26, ("b" * 26, "c" * 26)),
        StatementOutcome(Outcome.REINFORCED, OURS, "d" * 26, untaken_fields=("tags",)),
        *map(StatementOutcome.rejected, Rejection),
        StatementOutcome(Outcome.SUPERSEDED, MINE, "e" * 26),
    )
    for n, receipt in enumerate((AddReceipt(statements), AddReceipt(), MemoriesReceipt.of([memory(), memory()]))):
        assert receipt == await kept(store, await noted(store, receipt, request_id=f"r{n}"))
    request = await appended(store, MINE, "m1", "m2")
    assert request.receipt == await kept(store, request)


async def test_what_is_purged_leaves_the_receipts_that_name_it(store):
    gone, other, old = entry("gone"), entry("other"), entry("old")
    await store.commits.write(ChangeSet(inserts=(gone, other, old)))
    both = added(gone.memory, old.memory.id).statements + added(other.memory).statements
    first = await noted(store, AddReceipt(both), request_id="both")
    alone = await noted(store, added(gone.memory, old.memory.id), request_id="alone")
    await store.commits.write(ChangeSet(purges=(gone.memory,)))
    left = AddReceipt((replace(both[0], memory_id=""), both[1]))
    assert [left, None] == [await kept(store, first), await kept(store, alone)]
    await store.commits.write(ChangeSet(purges=(old.memory,)))
    assert ((), other.memory.id) == (
        (await kept(store, first)).statements[0].superseded_ids, (await kept(store, first)).statements[1].memory_id,
    )  # fmt: skip
    await store.commits.write(ChangeSet(purges=(other.memory,)))
    assert await kept(store, first) is None


async def test_messages_of_the_same_ids_in_other_scopes_stay_in_their_receipts(store):
    mine, theirs = await appended(store, MINE, "m1", "m2"), await appended(store, THEIRS, "m1", "m2")
    await store.commits.write(ChangeSet(conversation=ConversationChange(MINE, purge_messages=(message("m1"),))))
    assert ["", "m2"] == [one.id for one in (await kept(store, mine)).messages]
    assert theirs.receipt == await kept(store, theirs)
    await store.commits.write(ChangeSet(conversation=ConversationChange(MINE, purge_threads=(thread(),))))
    assert [None, theirs.receipt] == [await kept(store, mine), await kept(store, theirs)]


async def test_a_receipt_of_another_owner_that_names_what_a_purged_one_had_goes_with_it(store):
    ours, mine = entry("ours", scope=TEAM), entry("mine")
    await store.commits.write(*ChangeSet(inserts=(ours, mine)).by_owner())
    of_both = AddReceipt(added(ours.memory).statements + added(mine.memory).statements)
    both = await noted(store, of_both, request_id="both")
    alone = await noted(store, added(ours.memory), request_id="alone")
    await store.commits.write(ChangeSet(purge_owner=OURS))
    assert ["", mine.memory.id] == [one.memory_id for one in (await kept(store, both)).statements]
    assert await kept(store, alone) is None


async def test_old_requests_are_forgotten_with_the_ids_that_they_name(store):
    made = entry("kept")
    request = await noted(store, added(made.memory), inserts=(made,))
    await store.commits.write(ChangeSet(forget_requests_before=NOW))
    assert await kept(store, request) is not None
    await store.commits.write(ChangeSet(forget_requests_before=NOW.replace(year=2027)))
    assert await kept(store, request) is None
    again = await noted(store, MemoriesReceipt.of([memory()]))  # nothing of the first one comes into it
    assert again.receipt == await kept(store, again)
