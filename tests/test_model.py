"""Values check themselves: what is at a limit passes, one more is refused, and the field is named."""

from __future__ import annotations

import time
from dataclasses import fields
from datetime import UTC, datetime

import pytest

from memoryd.errors import IdentityMissing, InvalidArgument, LimitExceeded, MemorydError, by_reason
from memoryd.model import limits
from memoryd.model.caller import Caller
from memoryd.model.change import ChangeSet, ConversationChange, Embedding, RecordedRequest, Tombstone
from memoryd.model.conversation import WorkingMemory
from memoryd.model.entity import Entity
from memoryd.model.erasure import ErasedKind, ErasedThing
from memoryd.model.grant import TokenKey
from memoryd.model.learnt import Proposal
from memoryd.model.memory import Draft, Source
from memoryd.model.note import Note
from memoryd.model.note_change import NoteChange
from memoryd.model.query import Filter, Query
from memoryd.model.receipt import AddReceipt
from memoryd.model.scope import Owner, Scope
from memoryd.model.trust import Trust
from memoryd.model.validation import check_text, text_digest
from memoryd.model.work import CounterName, Lease, Run, RunState, Work
from memoryd.v1 import error_reason_pb2
from tests.builders import BOB, NOW, TEAM, entry, memory
from tests.conformance.store_helpers import grant


@pytest.mark.parametrize(
    ("field", "fits", "too_much"),
    [
        ("content", "x" * limits.MAX_CONTENT_BYTES, "x" * (limits.MAX_CONTENT_BYTES + 1)),
        ("content", "ü" * (limits.MAX_CONTENT_BYTES // 2), "ü" * (limits.MAX_CONTENT_BYTES // 2) + "x"),
        ("key", "k" * limits.MAX_ID_BYTES, "k" * (limits.MAX_ID_BYTES + 1)),
        ("category", "c" * limits.MAX_CATEGORY_BYTES, "c" * (limits.MAX_CATEGORY_BYTES + 1)),
        ("tags", tuple(map(str, range(limits.MAX_TAGS))), tuple(map(str, range(limits.MAX_TAGS + 1)))),
        ("tags", ("t" * limits.MAX_TAG_BYTES,), ("t" * (limits.MAX_TAG_BYTES + 1),)),
        ("subjects", tuple(map(str, range(limits.MAX_SUBJECTS))), tuple(map(str, range(limits.MAX_SUBJECTS + 1)))),
        ("subjects", ("s" * limits.MAX_SUBJECT_BYTES,), ("s" * (limits.MAX_SUBJECT_BYTES + 1),)),
        (
            "metadata",
            {str(n): "" for n in range(limits.MAX_METADATA_KEYS)},
            {str(n): "" for n in range(limits.MAX_METADATA_KEYS + 1)},
        ),
        ("metadata", {"k" * limits.MAX_METADATA_KEY_BYTES: ""}, {"k" * (limits.MAX_METADATA_KEY_BYTES + 1): ""}),
        ("metadata", {"k": "v" * limits.MAX_METADATA_VALUE_BYTES}, {"k": "v" * (limits.MAX_METADATA_VALUE_BYTES + 1)}),
        ("metadata", {str(n): "v" * 1023 for n in range(8)}, {str(n): "v" * 1024 for n in range(8)}),
    ],
)
def test_a_limit_is_what_passes_and_one_more_is_refused(field, fits, too_much):
    Draft(**{"content": "x", field: fits})
    with pytest.raises(LimitExceeded) as caught:
        Draft(**{"content": "x", field: too_much})
    assert caught.value.field.startswith(field)
    assert caught.value.limit


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content", ""),
        ("content", " \n\t\u2003"),
        ("content", "a\0b"),
        ("content", "lone \ud800 surrogate"),
        ("tags", ("",)),
        ("subjects", (" ",)),
        ("metadata", {"": "v"}),
        ("metadata", {"k": "\0"}),
        ("key", "a\nb"),
        ("key", " a"),
        ("confidence", 1.01),
        ("confidence", -0.01),
        ("confidence", float("nan")),
        ("decay_rate", -1.0),
        ("decay_rate", float("inf")),
        ("expires_days", 0.0),
        ("expires_days", -1.0),
        ("expires_days", float("nan")),
        ("expires_days", 1e9),
        ("event_time", datetime(2026, 1, 1)),  # noqa: DTZ001  without a zone, which is the point
        ("expire_time", datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_malformed_field_is_named(field, value):
    with pytest.raises(InvalidArgument) as caught:
        Draft(**{"content": "x", field: value})
    assert caught.value.field.startswith(field)


def test_text_is_kept_in_nfc():
    assert "é" == Draft(content="e\u0301").content


@pytest.mark.parametrize("marks", ["\u0301", "\u0301\u0316", "\U0001d165", "\u0301\U0001e944"])
def test_combining_marks_are_bounded_before_they_are_sorted(marks):
    assert 31 == len(check_text("q" + "\u0301" * 30, "content", limit=1000))
    began = time.process_time()
    with pytest.raises(InvalidArgument, match="more than 30 combining marks"):
        check_text("q" + marks * 60_000, "prompt", limit=256 * 1024)
    assert time.process_time() - began < 1  # sorting them takes half a minute


def test_emojis_and_letters_in_a_row_are_no_marks():
    for letter in ("\U0001f600", "\U0001d400", "\U00010330"):  # a smile, a bold A, a letter of Gothic
        assert 100 == len(check_text(letter * 100, "content", limit=1000))


def test_expires_days_and_expire_time_exclude_each_other():
    with pytest.raises(InvalidArgument):
        Draft(content="x", expires_days=1, expire_time=datetime(2030, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(("user", "chat"), [(None, None), ("u", "c"), ("", ""), ("", None)])
def test_a_scope_of_both_or_neither_cannot_exist(user, chat):
    with pytest.raises(InvalidArgument):
        Scope(user, chat)


def test_a_caller_is_somebody():
    with pytest.raises(IdentityMissing):
        Caller()
    assert "default" == Caller(agent_id="", user_id="u").agent_id


def test_a_range_of_time_is_not_empty():
    at = datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(InvalidArgument):
        Filter(event_time_from=at, event_time_to=at)


def test_zero_means_the_default():
    assert limits.DEFAULT_SEARCH_LIMIT == Query(text="x", limit=0).limit


def test_a_source_is_bounded():
    Draft(content="x", source=Source(message_ids=("m",) * limits.MAX_SOURCE_MESSAGES))
    with pytest.raises(LimitExceeded):
        Draft(content="x", source=Source(message_ids=("m",) * (limits.MAX_SOURCE_MESSAGES + 1)))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("I like tea.", "i LIKE  tea", True),
        ("Ｉ like tea", "I like tea!", True),
        ("I like tea", "I do not like tea", False),
        ("...", "!", False),
        ("is it?", "is it", False),
    ],
)
def test_statements_are_the_same_but_for_case_spacing_width_and_a_full_stop(one, other, same):
    assert same == (text_digest(one) == text_digest(other))


def test_every_reason_of_the_contract_has_its_error_and_back():
    reasons = {name.removeprefix("ERROR_REASON_") for name in error_reason_pb2.ErrorReason.keys()} - {"UNSPECIFIED"}  # noqa: SIM118
    for reason in reasons:
        assert reason == by_reason(reason).reason
    assert by_reason("FROM_THE_FUTURE") is None


def test_an_error_inside_a_batch_names_the_item():
    error = LimitExceeded("too long", field="content", limit="content").within("requests[3]")
    assert ("requests[3].content", "content", "requests[3]: too long") == (error.field, error.limit, str(error))
    assert isinstance(error, MemorydError)


def test_statements_of_nothing_but_marks_cost_no_time():
    import time

    began = time.process_time()
    for _ in range(100):
        text_digest("." * 8190 + "x")
        text_digest("! " * 4095)
    assert time.process_time() - began < 2  # it was 28 s; no figure of speed, only of the order


def proposal(owner: Owner) -> Proposal:
    return Proposal(
        id="p" * 26, agent_id=owner.agent_id, scope=owner.scope, thread_id="t", message_ids=("m" * 26,), content="tea",
        create_time=NOW, trust=Trust.HOST,
    )  # fmt: skip


def test_a_change_of_several_owners_is_split_and_nothing_of_it_is_lost():
    mine, ours, gone = entry("mine"), entry("ours", scope=TEAM), entry("gone", scope=BOB)
    of_alice, of_team = mine.memory.owner, ours.memory.owner
    request = RecordedRequest(of_alice, "AddMemory", "r", "h", AddReceipt(), NOW)
    whole = ChangeSet(
        inserts=(mine,), updates=(ours,), purges=(gone.memory,), request=request, forget_requests_before=NOW,
        entities=(Entity("e" * 26, of_team, NOW, Trust.HOST),),
        forget_entities=(Entity("f" * 26, of_alice, NOW, Trust.HOST),), tombstones=(Tombstone(of_alice, b"t"),),
        lift=(Tombstone(of_team, b"l"),), marks={"gc": NOW}, marks_before={"gc": None},
        grants=(grant(),), forget_grants=("g",), token_keys=(TokenKey("k", b"s" * 32, NOW),), drop_keys=("l",),
        embeddings=(Embedding(of_alice, "m" * 26, mine.vector, "f"),),
        counters={CounterName("messages:f"): 7}, counters_before={CounterName("messages:f"): 3},
        forget_counters=(CounterName("messages:g"),), message_vectors_of="f",
        leases=(Lease("gc", "r", NOW),), leases_before={"gc": None}, freed_leases=(Lease("decay", "r", NOW),),
        runs=(Run(id="r", job="gc", state=RunState.DONE, start_time=NOW),), stop_runs=("s",),
        work=(Work(kind="extraction", owner=of_alice, thread_id="t", due_time=NOW),),
        proposals=(proposal(of_alice),), decided=(proposal(of_team),),
        rebuild=of_team,
        purge_owner=of_team,
        erased=(ErasedThing(ErasedKind.ENTITY, of_alice, id="f" * 26),),
        notes=(
            NoteChange(None, Note(id="n" * 26, agent_id="default", scope=of_alice.scope, path="n", create_time=NOW)),
        ),
        conversation=ConversationChange(of_alice, working_memory=WorkingMemory("tea")),
    )  # fmt: skip
    of_bob = gone.memory.owner
    split = whole.by_owner({of_alice: 7, of_bob: 8})
    assert {of_alice: 7, of_bob: 8, of_team: None, None: None} == {change.owner: change.based_on for change in split}
    assert split[0] == split[0].by_owner({of_alice: 7, of_team: 9})[0]
    split = whole.by_owner()
    assert [1, 1, 1, 0] == [len(change.owners) for change in split]
    assert all(change.is_of_one and (change,) == change.by_owner() for change in split)
    for part in (one for one in fields(ChangeSet) if one.name not in {"based_on", "grants_seen"}):
        empty = getattr(ChangeSet(), part.name)
        held = [value for change in split if (value := getattr(change, part.name)) != empty]
        assert [getattr(whole, part.name)] == held, part.name
    assert set(whole.ids) == {touched for change in split for touched in change.ids}


@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        ({"author": "victim"}, {"author": "Victim"}, False),
        ({"author": "victim"}, {"author": "victim"}, True),
        ({"author": "straße"}, {"author": "strasse"}, False),
        ({"author": "", "source": Source(speaker="Bob")}, {"author": "", "source": Source(speaker="bob")}, True),
        ({"author": "bob"}, {"author": "", "source": Source(speaker="Bob")}, True),
    ],
)
def test_two_users_whose_ids_differ_in_case_are_two_speakers(one, other, is_one):
    first, second = (memory(scope=TEAM, trust=Trust.HOST, **more) for more in (one, other))
    assert is_one is first.is_told_as(second)
    assert is_one is second.is_told_as(first)
