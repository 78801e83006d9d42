"""Where a memory comes from, and what became of it: why, history."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from memory_cli.output import as_json, memory_line, moment, one_line, shortest_ids

__all__ = ["history", "why"]


def history(client: Any, args: argparse.Namespace) -> None:
    """Show what a memory replaced, and what replaced it."""
    chain = client.history(args.id)
    if args.json:
        print(as_json(chain))
        return
    known = shortest_ids([memory.id for memory in chain.memories] + list(chain.missing_ids))
    for memory in chain.memories:
        print(memory_line(memory, known[memory.id]))
        if memory.supersede_time is not None:
            heir = known.get(memory.superseded_by, memory.superseded_by[:8]) or "what was purged since"
            print(f"          replaced by {heir} on {moment(memory.supersede_time)}")
        if memory.contested_with:
            print(f"          contests {', '.join(item[:8] for item in memory.contested_with)}")
        if memory.judgement is not None:
            print(f"          {one_line(memory.judgement.rule)}: {one_line(memory.judgement.reason)}")
    for item in chain.missing_ids:
        print(f"{known[item]}  deleted, or not shown")


def why(client: Any, args: argparse.Namespace) -> None:
    """Show where a memory comes from: who learnt it, and the messages that say so."""
    from memoryd.errors import PermissionDenied, ThreadNotFound

    memory = client.get(args.id)
    source = memory.source
    messages: Sequence[Any] = ()
    unread = ""
    if source.message_ids and source.thread_id:
        shared = memory.scope.chat_id is not None
        try:
            messages = client.messages(source.thread_id, shared=shared, message_ids=source.message_ids).messages
        except ThreadNotFound:
            unread = "its conversation is no longer stored"
        except PermissionDenied:
            unread = "you may not read messages here"
    if args.json:
        print(as_json({"memory": memory, "messages": messages}))
        return
    print(memory_line(memory, memory.id[: len(args.id)]))
    print(f"          {_origin(memory)}")
    for message in messages:
        speaker = one_line(message.speaker or "user")
        print(f"          {moment(message.create_time)}  {speaker}: {one_line(message.content)}")
    gone = len(source.message_ids) - len(messages)
    if unread:
        print(f"          {unread}", file=sys.stderr)
    elif gone and source.thread_id:
        print(f"          {gone} of its messages {'is' if gone == 1 else 'are'} no longer stored", file=sys.stderr)


def _origin(memory: Any) -> str:
    """Return how a memory came to be, in words."""
    channels = {"extraction": "learnt from what was said", "reflection": "summed up from memories", "": "added by call"}
    channel = memory.source.channel
    text = channels.get(channel, f"added through {one_line(channel)}")
    by = memory.metadata.get("extractor") or memory.metadata.get("written_by")
    where = f" in {one_line(memory.source.thread_id)}" if memory.source.thread_id else ""
    return f"{text}{where} by {one_line(by)}" if by else f"{text}{where}"
