"""Between the values of `context` and the messages of the contract; shared by the service and the client."""

from __future__ import annotations

from typing import Any

from memoryd.model.context import BuiltContext, ContextItem, ContextRequest, ContextSection
from memoryd.v1 import context_service_pb2 as pb
from memoryd.wire.memory import KIND, TRUST, legs_from_pb, legs_to_pb, set_time, time_from_pb

__all__ = ["context_from_pb", "context_to_pb", "request_from_pb", "request_to_pb"]

_PLAIN = (
    "prompt", "max_tokens", "max_memories", "thread_id", "shared", "max_recent_messages", "max_recalled_messages",
    "tokenizer",
)  # fmt: skip
_LISTS = ("exclude_thread_ids", "exclude_session_ids", "sections")
_OF_ITEM = ("id", "thread_id", "seq", "speaker")


def request_to_pb(asked: ContextRequest) -> pb.BuildContextRequest:
    """Return what is asked as message, without who asks."""
    return pb.BuildContextRequest(
        min_score=asked.min_score, **{name: getattr(asked, name) for name in (*_PLAIN, *_LISTS)}
    )


def request_from_pb(message: pb.BuildContextRequest) -> ContextRequest:
    """Return a message as what is asked, checked."""
    return ContextRequest(
        min_score=message.min_score if message.HasField("min_score") else None,
        **{name: getattr(message, name) for name in _PLAIN},
        **_lists(message),
    )


def _lists(message: Any) -> dict[str, Any]:
    return {name: tuple(getattr(message, name)) for name in _LISTS}


def _item_to_pb(item: ContextItem) -> pb.ContextItem:
    answer = pb.ContextItem(
        kind=KIND.to_pb(item.kind), trust=TRUST.to_pb(item.trust), **{name: getattr(item, name) for name in _OF_ITEM}
    )
    set_time(answer, "time", item.time)
    return answer


def _item_from_pb(message: Any) -> ContextItem:
    return ContextItem(
        kind=KIND.from_pb(message.kind),
        trust=TRUST.from_pb(message.trust),
        time=time_from_pb(message, "time"),
        **{name: getattr(message, name) for name in _OF_ITEM},
    )


def context_to_pb(built: BuiltContext) -> pb.BuildContextResponse:
    """Return a context as message."""
    return pb.BuildContextResponse(
        text=built.text,
        sections=[
            pb.ContextSection(name=section.name, text=section.text, items=map(_item_to_pb, section.items))
            for section in built.sections
        ],
        token_count=built.token_count,
        skipped_count=built.skipped_count,
        unavailable_legs=legs_to_pb(built.unavailable_legs),
        left_out_ids=built.left_out_ids,
    )


def context_from_pb(message: pb.BuildContextResponse) -> BuiltContext:
    """Return a message as context."""
    return BuiltContext(
        message.text,
        tuple(
            ContextSection(section.name, section.text, tuple(map(_item_from_pb, section.items)))
            for section in message.sections
        ),
        message.token_count,
        message.skipped_count,
        legs_from_pb(message.unavailable_legs),
        left_out_ids=tuple(message.left_out_ids),
    )
