"""Messages and values: what a later version adds is kept, and nothing is validated on the way back."""

from __future__ import annotations

import pickle
from copy import copy
from datetime import UTC, datetime

import memory_client
import pytest
from memory_cli.output import as_json

from memoryd.errors import InvalidArgument, LimitExceeded
from memoryd.model import limits
from memoryd.model.conversation import Message, Role
from memoryd.model.entity import EntityType
from memoryd.model.grant import Door, Permission, permission_names
from memoryd.model.memory import Draft, Kind, Outcome, Source, State
from memoryd.model.memory_columns import memory_of, row_of
from memoryd.model.results import Leg
from memoryd.model.scope import Scope
from memoryd.model.talk import MessageHit
from memoryd.model.trust import Trust
from memoryd.v1 import entity_pb2, grant_pb2, memory_pb2
from memoryd.wire.conversation import message_hit_from_pb, message_hit_to_pb
from memoryd.wire.entity import profile_from_pb
from memoryd.wire.grant import DOOR, PERMISSION, permissions_from_pb, permissions_to_pb
from memoryd.wire.memory import (
    KIND,
    LEG,
    OUTCOME,
    STATE,
    TRUST,
    memory_from_pb,
    memory_to_pb,
    result_from_pb,
)
from tests.builders import NOW, memory, shown

LATER = 77  # a code that no enum has


def message(**more) -> memory_pb2.Memory:
    return memory_pb2.Memory(id="a" * 26, agent_id="x", scope=memory_pb2.Scope(user_id="alice"), content="c", **more)


@pytest.mark.parametrize(
    ("codes", "enum"), [(KIND, Kind), (STATE, State), (TRUST, Trust), (OUTCOME, Outcome), (LEG, Leg), (DOOR, Door)]
)
def test_a_code_of_a_later_version_is_kept_and_is_no_member(codes, enum):
    stranger = codes.from_pb(LATER)
    assert (f"unknown_{LATER}", LATER) == (stranger.value, codes.to_pb(stranger))
    assert stranger == codes.from_pb(LATER)
    assert {stranger} == {codes.from_pb(LATER), copy(stranger), pickle.loads(pickle.dumps(stranger))}  # noqa: S301  ours
    assert stranger != codes.from_pb(LATER + 1)
    assert -3 == codes.to_pb(codes.from_pb(-3))
    assert stranger not in list(enum)
    assert all(codes.from_pb(codes.to_pb(member)) is member for member in enum)
    assert codes.known(LATER) is None


def test_a_memory_of_a_later_version_says_what_it_is_and_goes_back_unchanged():
    sent = message(kind=LATER, state=LATER, trust=LATER)
    known = memory_from_pb(sent)
    assert [f"unknown_{LATER}"] * 3 == [known.kind.value, known.state.value, known.trust.value]
    assert Trust.SANDBOX.outranks(known.trust)
    back = memory_to_pb(known)
    assert (LATER, LATER, LATER) == (back.kind, back.state, back.trust)
    assert f'"kind": "unknown_{LATER}"' in as_json(known)


def test_other_answers_of_a_later_version_are_told_too():
    assert f"unknown_{LATER}" == result_from_pb(memory_pb2.AddResult(outcome=LATER)).outcome.value
    entity = entity_pb2.Entity(id="e" * 26, type=LATER, scope=memory_pb2.Scope(user_id="alice"))
    assert EntityType.stranger(LATER) == profile_from_pb(entity).type
    held = permissions_from_pb([grant_pb2.PERMISSION_ADD, LATER])
    assert ["add", f"unknown_{LATER}"] == permission_names(held)
    assert [grant_pb2.PERMISSION_ADD, LATER] == permissions_to_pb(held)
    assert [PERMISSION.to_pb(one) for one in Permission] == permissions_to_pb(frozenset(Permission))


def test_what_a_message_leaves_out_is_the_default_and_nothing_of_a_later_version():
    said = memory_from_pb(message())
    assert (Kind.FACT, State.LIVE, Trust.SANDBOX) == (said.kind, said.state, said.trust)


def test_what_a_caller_sends_must_be_known():
    with pytest.raises(InvalidArgument, match="kind"):
        Draft(content="x", kind=Kind.stranger(LATER))
    assert Permission.stranger(LATER) not in list(Permission)


def test_a_lowered_limit_refuses_what_comes_and_nothing_that_is_there(monkeypatch):
    long = Source(speaker="s" * 100, message_ids=tuple(f"m{n}" for n in range(50)))
    stored = memory("content " * 50, source=long, subjects=("a" * 100,), tags=("t" * 60,), metadata={"k": "v" * 900})
    row, sent = row_of(stored), memory_to_pb(stored.shown(NOW))
    for name in ("MAX_ID_BYTES", "MAX_SOURCE_MESSAGES", "MAX_CONTENT_BYTES", "MAX_TAG_BYTES", "MAX_SUBJECT_BYTES"):
        monkeypatch.setattr(limits, name, 10)
    read = memory_of(stored.owner, row)
    assert stored.source == read.source == memory_from_pb(sent).source
    assert (stored.tags, stored.subjects) == (read.tags, read.subjects)
    with pytest.raises(LimitExceeded, match="source"):
        Draft(content="x", source=long)


def test_a_memory_is_made_of_its_message_again():
    made = shown("c", create_time=datetime(2026, 1, 1, tzinfo=UTC), said_by="Ann", said_time=NOW)
    assert isinstance(made, memory_client.Memory)
    assert made == memory_from_pb(memory_to_pb(made))


def test_a_hit_among_messages_is_made_of_its_message_again():
    said = Message(
        id="m1", agent_id="x", scope=Scope("alice"), thread_id="t", seq=3, session_id="s", role=Role.USER,
        content="tea", create_time=datetime(2026, 5, 3, tzinfo=UTC), name="Ann",
    )  # fmt: skip
    hit = MessageHit(said, 0.5, 0.25, 0.125, (said,), (said, said), said_by_other=True, same_ids=("m2", "m3"))
    assert hit == message_hit_from_pb(message_hit_to_pb(hit))
