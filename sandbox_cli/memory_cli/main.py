"""Runs a command: the identity from the environment, the work by the client, the outcome as an exit code."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from memory_cli.output import as_json, day, hit_line, list_json, memory_line, moment, one_line, shortest_ids, size
from memory_cli.parser import make_parser, refuse_empty

# The client, and with it gRPC, is imported once a command needs it: --help and completion stay instant.

__all__ = ["main"]

EXIT_CODES = {
    "INVALID_ARGUMENT": 2,
    "NOT_FOUND": 3,
    "PERMISSION_DENIED": 4,
    "UNAUTHENTICATED": 4,
    "RESOURCE_EXHAUSTED": 5,
    "UNAVAILABLE": 6,
    "DEADLINE_EXCEEDED": 6,
    "ABORTED": 7,
    "DATA_LOSS": 8,
}
DECLINED = 4
PAGE = 1000


def _client(args: argparse.Namespace) -> Any:
    from memory_client import MemoryClient
    from memory_client.endpoint import is_admin

    client = MemoryClient(
        args.endpoint,
        user_id=args.user,
        chat_id=args.chat,
        agent_id=args.agent,
        timeout_s=args.timeout,
        wait_for_ready=False,
    )
    identity = client.identity
    token = os.environ.get("MEMORY_TOKEN_FILE") or os.environ.get("MEMORY_TOKEN")
    if is_admin(client.target) and not identity.user_id and not token:
        client = client.acting_for(user_id=_login(), chat_id=identity.chat_id, agent_id=identity.agent_id)
    return client


def _login() -> str:
    """Return the login name; empty where there is none, as in some containers."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _text(words: Sequence[str]) -> str:
    if list(words) != ["-"]:
        return " ".join(words)
    if sys.stdin is None:
        raise _Usage("standard input is closed")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").rstrip("\r\n")
    except OSError as error:
        raise _Usage(f"cannot read standard input: {error.strerror}") from None


class _Declined(Exception):
    """The statement was well-formed, but policy declines it."""


class _Usage(Exception):
    """What was asked for makes no sense."""


def _mapping(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise _Usage("--meta names a key twice")
    return mapping


def _filter(args: argparse.Namespace) -> Any:
    from memory_client import Filter, Kind

    return Filter(
        kinds=frozenset(Kind(kind) for kind in args.kind),
        subjects=tuple(args.about),
        tags=tuple(args.tag),
        metadata=_mapping(args.meta),
        category=args.category,
        event_time_from=args.since,
        event_time_to=args.until,
        include_expired=args.include_expired,
        include_superseded=args.include_superseded,
    )


def _is_filtered(args: argparse.Namespace) -> bool:
    """Whether a filter leaves something out."""
    return any((args.about, args.tag, args.kind, args.meta, args.category, args.since, args.until))


def _missing(legs: Sequence[Any]) -> None:
    if legs:
        print(f"memory: searched without: {', '.join(leg.value for leg in legs)}", file=sys.stderr)


def _add(client: Any, args: argparse.Namespace) -> None:
    from memory_client import Kind, Source

    days = args.expires if isinstance(args.expires, float) else None
    until = args.expires if isinstance(args.expires, datetime) else None
    result = client.add(
        _text(args.text),
        kind=Kind(args.kind),
        shared=args.shared,
        subjects=args.about,
        tags=args.tag,
        category=args.category,
        metadata=_mapping(args.meta),
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
        raise _Declined(result.rejection)
    if args.json:
        return
    print(_outcome(result))


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count} memories"


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
    return line


def _search(client: Any, args: argparse.Namespace) -> None:
    found = client.search(
        _text(args.query), limit=args.limit, filter=_filter(args), min_score=args.min_score, explain=args.explain
    )
    _missing(found.unavailable_legs)
    if args.json:
        print(as_json(found))
        return
    known = shortest_ids(hit.memory.id for hit in found.hits)
    for hit in found.hits:
        print(hit_line(hit, known[hit.memory.id]))
        for leg in hit.explanation:
            place = f"rank {leg.rank}" if leg.rank else "not found"
            print(f"       {leg.leg.value}: {leg.score:.3f} × {leg.weight} ({place})")
    if not found.hits:
        print("nothing found", file=sys.stderr)


def _list(client: Any, args: argparse.Namespace) -> None:
    if args.limit < 1:
        raise _Usage(f"--limit is {args.limit}; it must be at least 1")
    memories: list[Any] = []
    token, wanted = "", _filter(args)
    while True:
        size = PAGE if args.all else min(PAGE, args.limit - len(memories))
        page = client.page(page_size=size, page_token=token, filter=wanted)
        memories.extend(page.memories)
        token = page.next_page_token
        if not token or (not args.all and len(memories) >= args.limit):
            break
    if args.json:
        print(list_json("memories", memories, more=bool(token)))
        return
    known = shortest_ids(memory.id for memory in memories)
    for memory in memories:
        print(memory_line(memory, known[memory.id]))
    if not memories:
        print("nothing like that is remembered" if _is_filtered(args) else "nothing is remembered yet", file=sys.stderr)
    if token:
        print(f"… more: memory list --limit {2 * args.limit}, or --all", file=sys.stderr)


def _show(memory: Any, args: argparse.Namespace) -> None:
    if args.json:
        print(as_json(memory))
        return
    rows = {
        "id": memory.id,
        "text": one_line(memory.content),
        "kind": memory.kind.value,
        "state": memory.state.value,
        "scope": f"chat {memory.scope.chat_id}" if memory.scope.chat_id else f"user {memory.scope.user_id}",
        "about": ", ".join(memory.subjects),
        "tags": ", ".join(memory.tags),
        "category": memory.category,
        "metadata": ", ".join(f"{key}={value}" for key, value in memory.metadata.items()),
        "key": memory.key,
        "speaker": memory.source.speaker,
        "said by": memory.said_by,
        "channel": memory.source.channel,
        "confidence": f"{memory.confidence:.2f}",
        "trust": memory.trust.value,
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


def _get(client: Any, args: argparse.Namespace) -> None:
    _show(client.get(args.id), args)


def _undelete(client: Any, args: argparse.Namespace) -> None:
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
        done = _each(args.id, do)
    except _Partly as partly:
        if args.json and partly.done:
            print(list_json(name, partly.done))
        raise
    if args.json:
        print(list_json(name, done))


def _each(ids: Sequence[str], do: Callable[[str], Any]) -> list[Any]:
    """Do something to each id; what fails is said at once, the rest is done, and the first error comes last."""
    from memory_client import MemorydError

    done, first = [], None
    for memory_id in ids:
        try:
            done.append(do(memory_id))
        except MemorydError as error:
            if first is not None or len(ids) > 1:
                print(f"memory: {one_line(memory_id)}: {one_line(error.message)}", file=sys.stderr)
            first = first or error
    if first is not None:
        raise _Partly(first, done, said=len(ids) > 1)
    return done


class _Partly(Exception):
    """Some of several things failed."""

    def __init__(self, error: Any, done: list[Any], *, said: bool) -> None:
        super().__init__(str(error))
        self.error, self.done, self.said = error, done, said


def _delete(client: Any, args: argparse.Namespace) -> None:
    from memory_client import Deleted, NotFound

    if not args.id:
        _delete_matching(client, args)
        return
    if _filter_named(args):
        raise _Usage("give ids, or say which ones by a filter, not both")

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
    return any(texts) or args.shared is not None or _is_filtered(args)


def _delete_matching(client: Any, args: argparse.Namespace) -> None:
    from memory_client import Source

    if not _filter_named(args):
        raise _Usage("name ids, or say which memories shall go: --matching, --about, --tag, --since, …")
    gone = client.delete_matching(
        filter=_filter(args),
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
    _backups(gone.backups)


def _backups(backups: Sequence[str]) -> None:
    if backups:
        print(f"memory: copies that may still hold it: {', '.join(backups)}", file=sys.stderr)


def _correct(client: Any, args: argparse.Namespace) -> None:
    result = client.correct(args.id, _text(args.text))
    if args.json:
        print(as_json(result))
    if result.memory is None:
        raise _Declined(result.rejection)
    if not args.json:
        print(_outcome(result))


def _confirm(client: Any, args: argparse.Namespace) -> None:
    def confirm(memory_id: str) -> Any:
        done = client.confirm(memory_id, protect=not args.no_protect)
        if not args.json:
            known = shortest_ids([done.memory.id, *done.superseded_ids])
            replaced = ", ".join(known[item] for item in done.superseded_ids)
            print(f"confirmed {known[done.memory.id]}" + (f" (replaces {replaced})" if replaced else ""))
        return done

    _report(args, confirm, "confirmed")


def _history(client: Any, args: argparse.Namespace) -> None:
    found = client.history(args.id)
    if args.json:
        print(as_json(found))
        return
    known = shortest_ids([memory.id for memory in found.memories] + list(found.missing_ids))
    for memory in found.memories:
        print(memory_line(memory, known[memory.id]))
        if memory.supersede_time is not None:
            heir = known.get(memory.superseded_by, memory.superseded_by[:8]) or "what was purged since"
            print(f"          replaced by {heir} on {moment(memory.supersede_time)}")
        if memory.contested_with:
            print(f"          contests {', '.join(item[:8] for item in memory.contested_with)}")
        if memory.judgement is not None:
            print(f"          {one_line(memory.judgement.rule)}: {one_line(memory.judgement.reason)}")
    for item in found.missing_ids:
        print(f"{known[item]}  deleted, or not shown")


def _people(client: Any, args: argparse.Namespace) -> None:
    if args.limit < 1:
        raise _Usage(f"--limit is {args.limit}; it must be at least 1")
    people: list[Any] = []
    token = ""
    while True:
        page = client.people(page_size=PAGE if args.all else min(PAGE, args.limit - len(people)), page_token=token)
        people.extend(page.people)
        token = page.next_page_token
        if not token or (not args.all and len(people) >= args.limit):
            break
    if args.json:
        print(list_json("people", people, more=bool(token)))
        return
    for entity in people:
        print(_entity_line(entity))
    if not people:
        print("nobody is known yet", file=sys.stderr)
    if token:
        print(f"… more: memory people --limit {2 * args.limit}, or --all", file=sys.stderr)


def _entity_line(entity: Any) -> str:
    details = [", ".join(map(one_line, entity.relations))]
    if entity.aliases:
        details.append(f"also {', '.join(map(one_line, entity.aliases))}")
    details.append(_memories(entity.mention_count))
    return f"{one_line(entity.name)} ({'; '.join(detail for detail in details if detail)})"


def _person(client: Any, args: argparse.Namespace) -> None:
    changes = args.rename is not None or args.merge_into is not None or args.unmerge
    if changes and len(args.name) > 1:
        raise _Usage(f"name one, in quotes if it has several words: '{' '.join(args.name)}'")
    name = " ".join(args.name)
    if args.rename is not None:
        _changed(client.rename_entity(name, args.rename), args, "renamed")
    elif args.merge_into is not None:
        merged = client.merge_entities(name, args.merge_into)
        if args.json:
            print(as_json(merged))
        else:
            print(f"merged into {_entity_line(merged.entity)}; to undo: memory person --unmerge {merged.merged_id}")
    elif args.unmerge:
        _changed(client.unmerge_entity(name), args, "taken out")
    else:
        found = client.entity(name, limit=args.limit)
        if args.json:
            print(as_json(found))
            return
        print(_entity_line(found.entity))
        print(f"{found.entity.type.value}, id {found.entity.id}")
        known = shortest_ids(memory.id for memory in found.memories)
        for memory in found.memories:
            print(memory_line(memory, known[memory.id]))


def _changed(entity: Any, args: argparse.Namespace, verb: str) -> None:
    print(as_json(entity) if args.json else f"{verb}: {_entity_line(entity)}")


def _forget(client: Any, args: argparse.Namespace) -> None:
    previews = _previews(client, args.name)
    if args.dry_run:
        _tell_forgotten(list(previews.values()), list(previews.values()), args)
        return
    if not args.yes:
        if sys.stdin is None or not sys.stdin.isatty():
            raise _Usage("this cannot be undone; look with --dry-run first, then say --yes")
        for preview in previews.values():
            _tell_one(preview, preview)
        print("erase this for good? [y/N] ", end="")
        sys.stdout.flush()
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise _Usage("nothing was erased")
    receipts = [client.forget_person(name) for name in previews]
    _tell_forgotten(receipts, list(previews.values()), args)


def _previews(client: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return by name what would go; whoever is not known exactly ends it all, before anything is erased."""
    from memory_client import MemorydError

    previews: dict[str, Any] = {}
    for name in names:
        preview = client.forget_person(name, dry_run=True)
        if not any((preview.entity.id, preview.purged_ids) == (p.entity.id, p.purged_ids) for p in previews.values()):
            previews[name] = preview
    if len(names) > 1:
        whole = " ".join(names)
        try:
            known = client.forget_person(whole, dry_run=True).entity
        except MemorydError:  # it is no name, as it should be
            return previews
        raise _Usage(f"{one_line(known.name)} is one name; write '{one_line(whole)}' in quotes")
    return previews


def _tell_forgotten(receipts: Sequence[Any], previews: Sequence[Any], args: argparse.Namespace) -> None:
    if args.json:
        print(list_json("people", receipts))
        return
    for receipt, preview in zip(receipts, previews, strict=True):
        _tell_one(receipt, preview)
    _backups(receipts[0].backups)


def _tell_one(receipt: Any, preview: Any) -> None:
    """Say what goes, or went, in the words of the preview."""
    lines = {memory.id: memory_line(memory, memory.id) for memory in (*preview.memories, *preview.mentioning_memories)}
    verb = "would erase" if receipt.dry_run else "erased"
    whom = f"{one_line(receipt.entity.name)} ({receipt.entity.id})"
    if receipt.purged_count:
        print(f"{verb} {_memories(receipt.purged_count)} about {whom} for good")
    else:
        print(f"no memory is about {whom}, so none {'would be' if receipt.dry_run else 'was'} erased")
    for item in receipt.purged_ids:
        print(f"  {lines.get(item, item)}")
    if receipt.mentioning_ids:
        print(f"left: {_memories(len(receipt.mentioning_ids))} that only mention the name, or one like it:")
        for item in receipt.mentioning_ids:
            print(f"  {lines.get(item, item)}")


def _context(client: Any, args: argparse.Namespace) -> None:
    built = client.context(
        _text(args.prompt), max_tokens=args.max_tokens, max_memories=args.max_memories, min_score=args.min_score
    )
    _missing(built.unavailable_legs)
    if args.json:
        print(as_json(built))
    else:
        print(_shown(built.text) if sys.stdout.isatty() else built.text, end="")


def _shown(text: str) -> str:
    """Return text of several lines for a terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)


def _stats(client: Any, args: argparse.Namespace) -> None:
    stats = client.stats()
    if args.json:
        print(as_json(stats))
        return
    for item in stats.counts:
        print(
            f"{item.count:>8}  {item.state.value:<11} {item.kind.value:<11} {'shared' if item.shared else 'personal'}"
        )
    print(f"{sum(item.count for item in stats.counts):>8}  in all, {size(stats.content_bytes)} of text")


def _amount(name: str, value: float) -> str:
    return size(int(value)) if name.endswith("_bytes") else f"{value:g}" if value % 1 else f"{int(value)}"


def _whoami(client: Any, args: argparse.Namespace) -> None:
    from memoryd.model.grant import permission_names

    who = client.whoami()
    if args.json:
        print(as_json({"endpoint": client.target, **{item.name: getattr(who, item.name) for item in fields(who)}}))
        return
    used = {
        "writes_per_day": who.usage.writes_today,
        "stored_memories": who.usage.stored_memories,
        "stored_bytes": who.usage.stored_bytes,
    }
    quota = {item.name: getattr(who.quota, item.name) for item in fields(who.quota)}
    limits = [
        f"{name} {_amount(name, used[name])} of {_amount(name, limit)}"
        if name in used
        else f"{name} {_amount(name, limit)}"
        for name, limit in quota.items()
        if limit
    ]
    rows = {
        "endpoint": client.target,
        "door": who.door.value,
        "agent_id": who.agent_id,
        "user_id": who.user_id,
        "chat_id": who.chat_id,
        "chat_ids": ", ".join(who.chat_ids),
        "may": ", ".join(permission_names(who.permissions)) or "nothing",
        "grant_id": who.grant_id,
        "until": who.expire_time and moment(who.expire_time),
        "limits": ", ".join(limits),
    }
    for name, value in rows.items():
        if value or name in {"user_id", "chat_id"}:
            print(f"{name + ':':<10} {one_line(value) if value else '-'}")


COMMANDS: dict[str, Callable[[Any, argparse.Namespace], None]] = {
    "add": _add,
    "search": _search,
    "list": _list,
    "get": _get,
    "delete": _delete,
    "undelete": _undelete,
    "correct": _correct,
    "confirm": _confirm,
    "history": _history,
    "people": _people,
    "person": _person,
    "forget": _forget,
    "context": _context,
    "stats": _stats,
    "whoami": _whoami,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; errors go to standard error in one line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    parser = make_parser()
    words = sys.argv[1:] if argv is None else argv
    refuse_empty(parser, words)
    args = parser.parse_args(words)
    code = 0
    try:
        code = _run(parser, args)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()  # the reader has gone; that is no error
    except OSError as error:
        _discard_output()
        print(f"memory: cannot write: {error.strerror}", file=sys.stderr)
        return code or 1
    except KeyboardInterrupt:
        return 130
    return code


def _discard_output() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not stumble over it at its end."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(parser: argparse.ArgumentParser, args: argparse.Namespace) -> int:
    if args.command == "completion":
        from memory_cli.completion import script

        print(script(parser, args.shell), end="")
        return 0
    from memory_client import MemorydError

    try:
        with _client(args) as client:
            COMMANDS[args.command](client, args)
    except _Partly as partly:
        return _failed(partly.error, said=partly.said)
    except MemorydError as error:
        return _failed(error)
    except _Declined as reason:
        print(f"memory: rejected: {one_line(str(reason))}; nothing was stored", file=sys.stderr)
        return DECLINED
    except _Usage as usage:
        print(f"memory: {usage}", file=sys.stderr)
        return 2
    except UnicodeDecodeError:
        print("memory: standard input is not UTF-8 text", file=sys.stderr)
        return 2
    return 0


def _failed(error: Any, *, said: bool = False) -> int:
    if not said:
        print(f"memory: {one_line(error.message)}", file=sys.stderr)
    return EXIT_CODES.get(error.code, 1)


if __name__ == "__main__":
    sys.exit(main())
