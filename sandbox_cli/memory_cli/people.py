"""What the command does with people: list, show, rename, merge, forget."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from memory_cli.common import Usage, count_of, erased_counts, listed, tell_backups
from memory_cli.output import as_json, list_json, memory_line, moment, one_line, shortest_ids

__all__ = ["forget", "people", "person"]


def people(client: Any, args: argparse.Namespace) -> None:
    """List who is known."""
    if args.limit < 1:
        raise Usage(f"--limit is {args.limit}; it must be at least 1")
    found, more = listed(client.people, "people", args)
    if args.json:
        print(list_json("people", found, more=more))
        return
    for entity in found:
        print(_entity_line(entity))
    if not found:
        print("no one is known yet", file=sys.stderr)
    if more:
        print(f"… more: memory people --limit {2 * args.limit}, or --all", file=sys.stderr)


def _entity_line(entity: Any) -> str:
    details = [", ".join(map(one_line, entity.relations))]
    if entity.aliases:
        details.append(f"also {', '.join(map(one_line, entity.aliases))}")
    details.append(count_of(entity.mention_count))
    return f"{one_line(entity.name)} ({'; '.join(detail for detail in details if detail)})"


def person(client: Any, args: argparse.Namespace) -> None:
    """Show someone, or decide who they are."""
    changes = args.unmerge or any(change is not None for change in (args.rename, args.type, args.merge_into))
    if changes and len(args.name) > 1:
        raise Usage(f"name one, in quotes if it has several words: '{' '.join(args.name)}'")
    name = " ".join(args.name)
    if args.rename is not None:
        _changed(client.rename_entity(name, args.rename), args, "renamed")
    elif args.type is not None:
        from memory_client import EntityType

        changed = client.set_entity_type(name, EntityType(args.type))
        _changed(changed, args, f"set to {changed.type.value}")
    elif args.merge_into is not None:
        merged = client.merge_entities(name, args.merge_into)
        if args.json:
            print(as_json(merged))
        else:
            print(f"merged into {_entity_line(merged.entity)}; to undo: memory person --unmerge {merged.merged_id}")
    elif args.unmerge:
        _changed(client.unmerge_entity(name), args, "taken out")
    else:
        result = client.entity(name, limit=args.limit)
        if args.json:
            print(as_json(result))
            return
        print(_entity_line(result.entity))
        print(f"{result.entity.type.value}, id {result.entity.id}")
        known = shortest_ids(memory.id for memory in result.memories)
        for memory in result.memories:
            print(memory_line(memory, known[memory.id]))


def _changed(entity: Any, args: argparse.Namespace, verb: str) -> None:
    print(as_json(entity) if args.json else f"{verb}: {_entity_line(entity)}")


def forget(client: Any, args: argparse.Namespace) -> None:
    """Erase all that is known about people, or all that the user has."""
    if args.everything:
        if args.name or args.with_messages:
            raise Usage("--everything stands alone; it takes no name")
        _forget_everything(client, args)
        return
    if not args.name:
        raise Usage("say who to forget, or --everything")
    previews = _previews(client, args.name)
    if args.dry_run:
        _tell_forgotten(list(previews.values()), list(previews.values()), args)
        return
    if not args.yes:
        if sys.stdin is None or not sys.stdin.isatty():
            raise Usage("this cannot be undone; look with --dry-run first, then say --yes")
        for preview in previews.values():
            _tell_one(preview, preview, with_messages=args.with_messages)
        print("erase this for good? [y/N] ", end="")
        sys.stdout.flush()
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise Usage("nothing was erased")
    receipts = [client.forget_person(name, with_messages=args.with_messages) for name in previews]
    _tell_forgotten(receipts, list(previews.values()), args)


def _previews(client: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return a receipt for each name without erasing; a name that is not known exactly ends the command."""
    from memory_client import MemorydError

    previews: dict[str, Any] = {}
    for name in names:
        preview = client.forget_person(name, dry_run=True)
        known = [(one.entity.id or one.entity.name, one.purged_ids) for one in previews.values()]
        if (preview.entity.id or preview.entity.name, preview.purged_ids) not in known:
            previews[name] = preview
    if len(names) > 1:
        whole = " ".join(names)
        try:
            known = client.forget_person(whole, dry_run=True).entity
        except MemorydError:  # it is no name, as it should be
            return previews
        raise Usage(f"{one_line(known.name)} is one name; write '{one_line(whole)}' in quotes")
    return previews


def _tell_forgotten(receipts: Sequence[Any], previews: Sequence[Any], args: argparse.Namespace) -> None:
    if args.json:
        print(list_json("people", receipts))
        return
    for receipt, preview in zip(receipts, previews, strict=True):
        _tell_one(receipt, preview, with_messages=args.with_messages)
    tell_backups(receipts[0].backups)


def _forget_everything(client: Any, args: argparse.Namespace) -> None:
    seen = client.forget_user(dry_run=True)
    if not args.dry_run and not args.yes:
        if sys.stdin is None or not sys.stdin.isatty():
            raise Usage("this cannot be undone; look with --dry-run first, then say --yes")
        print(f"erase {erased_counts(seen)}, for good? [y/N] ", end="")
        sys.stdout.flush()
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise Usage("nothing was erased")
    erased = seen if args.dry_run else client.forget_user()
    if args.json:
        print(as_json(erased))
        return
    print(f"{'would erase' if erased.dry_run else 'erased'} {erased_counts(erased)}")
    tell_backups(erased.backups)


def _tell_said(receipt: Any, *, with_messages: bool) -> None:
    """Say what conversations hold of someone, and whether that goes."""
    count = receipt.message_count
    places = ["1 message" if count == 1 else f"{count} messages"] if count else []
    places += [f"the summary or working memory of {one_line(thread)}" for thread in receipt.thread_ids]
    places += ["the working memory"] * receipt.in_working_memory
    places += [f"the note {one_line(path)}" for path in receipt.note_paths]
    if not places:
        return
    if with_messages:
        print(f"{'would erase' if receipt.dry_run else 'erased'} with that name: {', '.join(places)}")
        for message in receipt.messages:
            print(f"  {one_line(message.thread_id)} {message.seq}  {moment(message.create_time)}  "
                  f"{message.role.value}: {one_line(message.content)[:200]}")  # fmt: skip
    else:
        print(f"left, with that name: {', '.join(places)} (--with-messages erases them)")


def _tell_one(receipt: Any, preview: Any, *, with_messages: bool) -> None:
    """Say what goes, or went, in the words of the preview."""
    lines = {memory.id: memory_line(memory, memory.id) for memory in (*preview.memories, *preview.mentioning_memories)}
    verb = "would erase" if receipt.dry_run else "erased"
    named = one_line(receipt.entity.name) + (f" ({receipt.entity.id})" if receipt.entity.id else "")
    if receipt.purged_count:
        print(f"{verb} {count_of(receipt.purged_count)} about {named} for good")
    else:
        print(f"no memory is about {named}, so none {'would be' if receipt.dry_run else 'was'} erased")
    for item in receipt.purged_ids:
        print(f"  {lines.get(item, item)}")
    if receipt.mentioning_ids:
        left = len(receipt.mentioning_ids)
        print(f"left: {count_of(left)} that only {'mentions' if left == 1 else 'mention'} the name, or one like it:")
        for item in receipt.mentioning_ids:
            print(f"  {lines.get(item, item)}")
    _tell_said(receipt, with_messages=with_messages)
