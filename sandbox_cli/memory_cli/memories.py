"""What the command does with memories: add, search, list, delete, correct, context."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from memory_cli.common import Declined, Partly, Usage, listed, tell_backups, text_of
from memory_cli.filters import filter_of, is_filtered, mapping
from memory_cli.output import (
    as_json,
    day,
    error_json,
    hit_line,
    leg_lines,
    list_json,
    memory_line,
    miss_lines,
    moment,
    one_line,
    shortest_ids,
)
from memory_cli.unmatched import unmatched

__all__ = ["add", "confirm", "context", "correct", "delete", "get", "list_memories", "search", "undelete"]


def _missing(legs: Sequence[Any]) -> None:
    names = [leg.value for leg in legs]
    if "vector" in names:  # without it there are no tokens either
        print("memory: searched by words alone, as there are no vectors now", file=sys.stderr)
    elif names:
        print(f"memory: searched without: {', '.join(names)}", file=sys.stderr)


def add(client: Any, args: argparse.Namespace) -> None:
    """Remember a statement."""
    from memory_client import Kind, Source

    days = args.expires if isinstance(args.expires, float) else None
    until = args.expires if isinstance(args.expires, datetime) else None
    result = client.add(
        text_of(args.text),
        kind=Kind(args.kind),
        shared=args.shared,
        subjects=args.about,
        tags=args.tag,
        category=args.category,
        metadata=mapping(args.meta),
        key=args.key,
        source=Source(speaker=args.speaker, channel="cli"),
        event_time=args.at,
        confidence=args.confidence,
        expires_days=days,
        expire_time=until,
        request_id=args.request_id,
    )
    if args.json:
        print(as_json(result))
    if result.memory is None:
        raise Declined(result.rejection)
    if args.json:
        return
    print(_outcome(result))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _outcome(result: Any) -> str:
    """Return what became of a statement, in one line."""
    known = shortest_ids([result.memory.id, *result.superseded_ids, *result.contested_ids])
    line = f"{result.outcome.value} {known[result.memory.id]}"
    if result.superseded_ids:
        line += f" (replaces {', '.join(known[item] for item in result.superseded_ids)})"
    if result.contested_ids:
        line += f" (contests {', '.join(known[item] for item in result.contested_ids)}: memory history tells why)"
    if result.untaken_fields:
        line += f" (kept as it was, as you may not change it: {', '.join(result.untaken_fields)})"
    return line


def search(client: Any, args: argparse.Namespace) -> None:
    """Find what answers a question."""
    result = client.search(
        text_of(args.query),
        limit=args.limit,
        filter=filter_of(args),
        min_score=args.min_score,
        explain=args.explain,
        as_of=args.as_of,
        why_not=args.why_not,
    )
    _missing(result.unavailable_legs)
    if args.json:
        print(as_json(result))
        return
    known = shortest_ids(hit.memory.id for hit in result.hits)
    for hit in result.hits:
        print(hit_line(hit, known[hit.memory.id]))
        for line in leg_lines(hit.explanation):
            print(line)
    if result.miss is not None:
        print("\n".join(miss_lines(result.miss)))
    if not result.hits:
        by_words = any(leg.value == "vector" for leg in result.unavailable_legs)
        hint = "" if args.min_score is not None else "; --min-score 0 shows also what is no answer"
        hint = "; ask in the words that were stored" if by_words else hint
        fault = unmatched(client, args)
        print(f"nothing found{f': {fault}' if fault else hint}", file=sys.stderr)


def list_memories(client: Any, args: argparse.Namespace) -> None:
    """List what is remembered."""
    if args.limit < 1:
        raise Usage(f"--limit is {args.limit}; it must be at least 1")
    if args.deleted and (is_filtered(args) or args.include_expired or args.include_superseded):
        raise Usage("--deleted lists all that was deleted, and takes no filter")
    whose = client.identity
    deleted = partial(
        client.deleted_memories, whose.user_id, chat_id="" if whose.user_id else whose.chat_id, agent_id=whose.agent_id
    )
    page = deleted if args.deleted else partial(client.page, filter=filter_of(args))
    memories, more = listed(page, "memories", args)
    if args.json:
        print(list_json("memories", memories, more=more))
        return
    known = shortest_ids(memory.id for memory in memories)
    for memory in memories:
        print(memory_line(memory, known[memory.id]))
    if not memories and args.deleted:
        print("nothing is deleted that can be taken back", file=sys.stderr)
    elif not memories:
        fault = unmatched(client, args)
        nothing = "nothing like that is remembered" if is_filtered(args) else "nothing is remembered yet"
        print(f"{nothing}: {fault}" if fault else nothing, file=sys.stderr)
    if more:
        print(f"… more: the same with --limit {2 * args.limit}, or with --all", file=sys.stderr)


def profile(client: Any, args: argparse.Namespace) -> None:
    """Show what is always true of the user."""
    items = client.profile()
    if args.json:
        print(list_json("items", items, more=False))
        return
    known = shortest_ids(item.memory.id for item in items)
    for item in items:
        print(f"{item.topic:<11}  {memory_line(item.memory, known[item.memory.id])}")
    if not items:
        print("nothing is known yet that is always true of this user", file=sys.stderr)


def _show(memory: Any, args: argparse.Namespace) -> None:
    if args.json:
        print(as_json(memory))
        return
    from memoryd.model.validation import metadata_text

    rows = {
        "id": memory.id,
        "text": one_line(memory.content),
        "kind": memory.kind.value,
        "state": memory.state.value,
        "scope": f"chat {memory.scope.chat_id}" if memory.scope.chat_id else f"user {memory.scope.user_id}",
        "about": ", ".join(memory.subjects),
        "tags": ", ".join(memory.tags),
        "category": memory.category,
        "metadata": ", ".join(f"{key}={metadata_text(value)}" for key, value in memory.metadata.items()),
        "key": memory.key,
        "speaker": memory.source.speaker,
        "said by": memory.said_by,
        "channel": memory.source.channel,
        "confidence": f"{memory.confidence:.2f}",
        "trust": memory.trust.value,
        "imported by": memory.import_id,
        "known there": memory.external_id,
        "created": moment(memory.create_time),
        "happened": moment(memory.event_time),
        "reinforced": memory.reinforce_time and moment(memory.reinforce_time),
        "expires": memory.expire_time and moment(memory.expire_time),
        "replaced": memory.supersede_time and moment(memory.supersede_time),
        "recalled": memory.recall_time and f"{_times(memory.recall_count)}, last {moment(memory.recall_time)}",
        "replaces": ", ".join(memory.supersedes),
        "replaced by": memory.superseded_by,
        "contests": ", ".join(memory.contested_with),
        "protected": "yes" if memory.protected else "",
        "because": memory.judgement and f"{memory.judgement.rule}: {memory.judgement.reason}",
        "names": ", ".join(ref.name for ref in memory.entities if not ref.about),
    }
    for name, value in rows.items():
        if value:
            print(f"{name + ':':<13}{one_line(str(value))}")


def get(client: Any, args: argparse.Namespace) -> None:
    """Show one memory."""
    _show(client.get(args.id), args)


def undelete(client: Any, args: argparse.Namespace) -> None:
    """Take back a delete, or a replacement."""

    def restore(memory_id: str) -> Any:
        memory = client.restore(memory_id)
        if not args.json:
            known = shortest_ids([memory.id, *([memory.superseded_by] if memory.superseded_by else [])])
            heir = known.get(memory.superseded_by)
            still = f"; it is still replaced by {heir}: undelete it again to undo that too" if heir else ""
            print(f"restored {known[memory.id]}{still}")
        return memory

    _report(args, restore, "memories")


def _report(args: argparse.Namespace, do: Callable[[str], Any], name: str) -> None:
    """Do something to each id, and print as JSON, under a name, what was done, also where some of it failed."""
    try:
        done = _each(args.id, do, in_json=args.json)
    except Partly as partly:
        if args.json and partly.done:
            print(list_json(name, partly.done))
        raise
    if args.json:
        print(list_json(name, done))


def _each(ids: Sequence[str], do: Callable[[str], Any], *, in_json: bool) -> list[Any]:
    """Do something to each id; what fails is said at once, the rest is done, and the first error comes last."""
    from memory_client import MemorydError

    done, first = [], None
    for memory_id in ids:
        try:
            done.append(do(memory_id))
        except MemorydError as error:
            if first is not None or len(ids) > 1:
                text = f"memory: {one_line(memory_id)}: {one_line(error.message)}"
                print(error_json(error) if in_json else text, file=sys.stderr)
            first = first or error
    if first is not None:
        raise Partly(first, done, said=len(ids) > 1)
    return done


def delete(client: Any, args: argparse.Namespace) -> None:
    """Forget memories."""
    from memory_client import Deleted, NotFound

    if not args.id:
        _delete_matching(client, args)
        return
    if _filter_named(args):
        raise Usage("give ids, or say which ones by a filter, not both")

    def look(memory_id: str) -> Any:
        try:
            memory = client.get(memory_id)
        except NotFound:
            if not args.allow_missing:
                raise
            return Deleted(())
        if not args.json:
            print(f"would delete {memory_line(memory, shortest_ids([memory.id])[memory.id])}")
        return Deleted((memory.id,))

    def delete(memory_id: str) -> Any:
        deleted = client.delete(memory_id, allow_missing=args.allow_missing, purge=args.now)
        if not args.json:
            until = f", can be taken back until {day(deleted.purge_time)}" if deleted.purge_time else " for good"
            for item in deleted.deleted_ids:
                print(f"deleted {item[:8]}{until}")
            if not deleted.deleted_ids:
                print(f"not there: {one_line(memory_id)}")
        return deleted

    _report(args, look if args.dry_run else delete, "deleted")


def _filter_named(args: argparse.Namespace) -> bool:
    """Whether a delete says by anything but ids what shall go."""
    texts = (args.matching, args.speaker, args.channel, args.thread, args.session, args.grant)
    return any(texts) or args.shared is not None or is_filtered(args)


def _delete_matching(client: Any, args: argparse.Namespace) -> None:
    from memory_client import Source

    if not _filter_named(args):
        raise Usage("name ids, or say which memories shall go: --matching, --about, --tag, --since, …")
    gone = client.delete_matching(
        filter=filter_of(args),
        text=args.matching,
        source=Source(speaker=args.speaker, channel=args.channel, thread_id=args.thread, session_id=args.session),
        grant_id=args.grant,
        shared=args.shared,
        dry_run=args.dry_run,
        purge=args.now,
    )
    if args.json:
        print(as_json(gone))
        return
    if args.dry_run:
        known = shortest_ids(gone.deleted_ids)
        for memory in gone.memories:
            print(f"would delete {memory_line(memory, known[memory.id])}")
        if gone.deleted_count > len(gone.memories):
            print(f"… and {gone.deleted_count - len(gone.memories)} more", file=sys.stderr)
        print(f"{gone.deleted_count} would be deleted", file=sys.stderr)
        return
    until = f", can be taken back until {day(gone.purge_time)}" if gone.purge_time else " for good"
    for item in gone.deleted_ids:
        print(f"deleted {item[:8]}{until}")
    print(f"{gone.deleted_count} deleted", file=sys.stderr)
    tell_backups(gone.backups)


def correct(client: Any, args: argparse.Namespace) -> None:
    """Replace what a memory says."""
    result = client.correct(args.id, text_of(args.text))
    if args.json:
        print(as_json(result))
    if result.memory is None:
        raise Declined(result.rejection)
    if not args.json:
        print(_outcome(result))


def confirm(client: Any, args: argparse.Namespace) -> None:
    """Say that memories are true."""

    def confirm(memory_id: str) -> Any:
        done = client.confirm(memory_id, protect=not args.no_protect)
        if not args.json:
            known = shortest_ids([done.memory.id, *done.superseded_ids])
            replaced = ", ".join(known[item] for item in done.superseded_ids)
            print(f"confirmed {known[done.memory.id]}" + (f" (replaces {replaced})" if replaced else ""))
        return done

    _report(args, confirm, "confirmed")


def context(client: Any, args: argparse.Namespace) -> None:
    """Write the block of text that a prompt needs."""
    if not args.prompt and not args.thread and not args.section:
        raise Usage("say what the user said, or name a --thread")
    built = client.context(
        text_of(args.prompt) if args.prompt else "",
        max_tokens=args.max_tokens,
        max_memories=args.max_memories,
        min_score=args.min_score,
        thread_id=args.thread,
        shared=args.shared,
        max_recent_messages=args.recent,
        max_recalled_messages=args.recalled,
        exclude_thread_ids=args.exclude_thread,
        exclude_session_ids=args.exclude_session,
        sections=args.section,
        tokenizer=args.tokenizer,
    )
    _missing(built.unavailable_legs)
    if built.left_out_ids:
        count, ids = len(built.left_out_ids), " ".join(left_out_id[:8] for left_out_id in built.left_out_ids)
        print(f"memory: {count} found and left out, as none answers: {ids}; --min-score 0 shows all", file=sys.stderr)
    if args.json:
        print(as_json(built))
    else:
        print(_shown(built.text) if sys.stdout.isatty() else built.text, end="")


def _shown(text: str) -> str:
    """Return text of several lines for a terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)
