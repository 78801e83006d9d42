"""What `memoryd import` does with the files of other systems: reads them, sends them, and tells what came of it."""

from __future__ import annotations

import argparse
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from memoryd.cli.command import Client
from memoryd.cli.import_report import KINDS, NAMED, Told, tell
from memoryd.errors import InvalidArgument, MemorydError
from memoryd.model import limits
from memoryd.model.validation import check_id

if TYPE_CHECKING:
    from memoryd.cli.importers.items import Item, Kept
    from memoryd.model.imported import ImportReport

__all__ = ["bring_in", "owner_fields"]

AT_ONCE = 3  # calls under way, so that the model has work while others are committed
MOST_BYTES = 2 << 20  # of what is sent at once
MOST_WAITING = 64  # users and threads whose batches are not full yet
OWNED = frozenset({"mem0", "graphiti", "jsonl"})
"""The formats that may say whose an item is."""

Owner = tuple[str, str, str]
"""User, agent and chat."""
Key = tuple[Owner, str, str]
"""Whose a batch is, its kind, and its thread."""


def owner_fields(texts: Sequence[str]) -> dict[str, str]:
    """Return which field of the file says who something is of; InvalidArgument for what is malformed."""
    from memoryd.cli.importers.items import OWNERS

    fields = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in NAMED or value not in OWNERS:
            raise InvalidArgument(
                f"--map {text} must be user=FIELD, agent=FIELD or chat=FIELD; FIELD is one of {', '.join(OWNERS)}",
                field="map",
            )
        fields[name] = value
    return fields


class _Owners:
    """Says whose an item is: as the command says, or with --map as the file does."""

    def __init__(self, args: argparse.Namespace, users: Collection[str]) -> None:
        """Take the users that the file names; InvalidArgument where it is not clear whose its items are."""
        self._named: dict[str, str] = {name: getattr(args, name) or "" for name in NAMED}
        self._fields = owner_fields(args.map)
        self._is_of_several = len(users) > 1
        maps_owner = bool({"user", "chat"} & self._fields.keys())
        if args.shared and not (self._named["chat"] or "chat" in self._fields):
            raise InvalidArgument("--shared needs the chat: --chat ID", field="chat")
        if self._named["chat"] and not (args.shared or self._named["user"] or "user" in self._fields):
            raise InvalidArgument("--chat needs --shared, for what the chat keeps, or a --user as well", field="shared")
        if not (self._named["user"] or self._named["chat"] or maps_owner):
            raise InvalidArgument(
                "say whose memory it becomes: --user NAME, or --map user=user_id to take it from the file", field="user"
            )
        if self._is_of_several and not maps_owner and self._named["user"] not in users:
            some = ", ".join(sorted(users)[:5])
            raise InvalidArgument(
                f"{args.file} is of {len(users)} users ({some}): take one of them with --user, or each with --map"
                " user=user_id",
                field="user",
            )

    def of(self, whose: Mapping[str, str]) -> Owner | str:
        """Return user, agent and chat of an item, or why it has none."""
        found = dict(self._named)
        for name, source in self._fields.items():
            if source not in whose and (whose or not found[name]):
                return f"it has no {source} that says whose it is"
            found[name] = whose.get(source) or found[name]
            try:
                check_id(found[name], name)
            except MemorydError:
                return f"its {source} is not valid"
        if self._is_of_several and "user" not in self._fields:
            told = user_of(whose)
            if told != found["user"]:
                return "it is of another user, or of one that is not named; --map user=user_id takes each to its own"
        return found["user"], found["agent"], found["chat"]


def user_of(whose: Mapping[str, str]) -> str:
    """Return the user that the file names for an item; "" for none."""
    return whose.get("user_id") or whose.get("group_id") or ""


def _users_in(items: Iterator[Item]) -> set[str]:
    """Return the users that a file names; of a damaged one those that stand before the damage."""
    from memoryd.cli.importers.source import Damaged

    users: set[str] = set()
    with suppress(Damaged):
        for item in items:
            users.add(user_of(item.whose))
    return users - {""}


def bring_in(client: Client, args: argparse.Namespace, show: Callable[[str], None]) -> int:
    """Import a file of another system; return the exit code."""
    from memoryd.cli.importers.formats import format_of, reader_of
    from memoryd.cli.importers.source import Source

    if str(args.file) == "-":
        raise InvalidArgument("standard input is no file of another system: name one", field="file")
    source = Source(args.file)
    if not args.file.exists():
        raise InvalidArgument(f"there is no file {args.file}", field="file")
    name = args.format or format_of(source)
    read = reader_of(name)
    owners = _Owners(args, _users_in(read(source)) if name in OWNED else ())
    told, import_id = Told(), args.import_id or name
    try:
        with client(args) as memory, _Sender(memory, import_id, told, args, show) as sender:
            for item in read(source):
                sender.take(item, owners)
    except BaseException:
        if told.total:
            tell(told, name, import_id, args)
            print(
                "it did not come to its end: what is told above is done; begin it again, and it goes on",
                file=sys.stderr,
            )
        raise
    tell(told, name, import_id, args)
    return 1 if told.reasons and not told.counts else 0  # nothing of it is what it was taken for


class _Sender:
    """Gathers items by owner, kind and thread, and sends them, of one thread in order."""

    def __init__(
        self, memory: Any, import_id: str, told: Told, args: argparse.Namespace, show: Callable[[str], None]
    ) -> None:
        self._memory, self._import_id, self._told, self._args, self._show = memory, import_id, told, args, show
        self._waiting: OrderedDict[Key, list[Item]] = OrderedDict()
        self._sizes: Counter[Key] = Counter()
        self._began, self._undated = datetime.now(UTC) - timedelta(minutes=1), 0
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._sent: OrderedDict[Future[None], Key] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if error is None or isinstance(error, Exception):  # what was read before a fault is stored all the same
                for key in list(self._waiting):
                    self._flush(key)
                self._settle(0)
        finally:
            self._pool.shutdown(cancel_futures=True)

    def take(self, item: Item, owners: _Owners) -> None:
        """Take an item, and send what is full."""
        from memoryd.cli.importers.items import Kept, Said, Skipped, Statement

        if isinstance(item, Kept) and self._args.prefix:
            item = _below(item, self._args.prefix)
        if isinstance(item, Skipped):
            self._told.leave_out(item.place, item.reason)
            return
        owner = owners.of(item.whose)
        if isinstance(owner, str):
            self._told.leave_out(item.place, owner)
            return
        thread = item.thread_id if isinstance(item, Said) else ""
        key = (owner, type(item).__name__, thread)
        batch = self._waiting.setdefault(key, [])
        named = _id_of(item)
        if any(_id_of(other) == named for other in batch):
            self._told.leave_out(item.place, "it comes twice in the file")
            return
        size = _size_of(item)
        if batch and self._sizes[key] + size > MOST_BYTES:
            self._flush(key)
            batch = self._waiting.setdefault(key, [])
        if isinstance(item, Statement) and item.draft.create_time is None:
            self._undated += 1  # what has no time keeps its order
            made = self._began + timedelta(microseconds=self._undated)
            made = min(made, item.draft.supersede_time or made)
            item = replace(item, draft=replace(item.draft, create_time=made))
        batch.append(item)
        self._sizes[key] += size
        self._waiting.move_to_end(key)
        if len(batch) == limits.MAX_BATCH:
            self._flush(key)
        elif len(self._waiting) > MOST_WAITING:
            self._flush(next(iter(self._waiting)))

    def _flush(self, key: Key) -> None:
        items = self._waiting.pop(key)
        self._sizes.pop(key, None)
        if key[2] and key in self._sent.values():  # of one thread one call after the other
            self._settle(0)
        self._settle(2 * AT_ONCE)
        self._sent[self._pool.submit(self._send, key, items)] = key

    def _settle(self, most: int) -> None:
        """Wait until no more calls than so many are under way; raise what one of them met."""
        while len(self._sent) > most:
            future, _ = self._sent.popitem(last=False)
            future.result()
            self._show(f"{self._told.total} items")

    def _send(self, key: Key, items: Sequence[Item]) -> None:
        """Send items; one that the daemon finds malformed is left out, and the others come."""
        left = list(items)
        while left:
            try:
                report = self._call(key, left)
            except InvalidArgument as error:
                n = _place_in(error.field)
                if n is None and key[2]:  # its thread
                    for item in left:
                        self._told.leave_out(item.place, f"its {error.field or 'thread'} is not valid")
                    return
                if n is None or n >= len(left):
                    raise
                self._told.leave_out(
                    left.pop(n).place, f"its {error.field.partition('].')[2]} is none that memoryd keeps"
                )
                continue
            for item, result in zip(left, report.results, strict=True):
                self._told.take(KINDS[type(item).__name__], item.place, result)
            return

    def _call(self, key: Key, items: Sequence[Any]) -> ImportReport:
        (user, agent, chat), kind, thread = key
        memory = self._memory.acting_for(user_id=user, chat_id=chat, agent_id=agent)
        more = {"dry_run": self._args.dry_run}
        report: ImportReport
        if kind == "Statement":
            drafts = [item.draft for item in items]
            if self._args.shared:
                drafts = [replace(draft, draft=replace(draft.draft, shared=True)) for draft in drafts]
            report = memory.import_memories(drafts, import_id=self._import_id, **more)
        elif kind == "Said":
            drafts = [item.draft for item in items]
            report = memory.import_messages(thread, drafts, shared=self._args.shared, **more)
        else:
            report = memory.import_notes([item.note for item in items], shared=self._args.shared, **more)
        return report


def _below(item: Kept, prefix: str) -> Item:
    """Return a note below a path; of Claude's memory below its folder."""
    from memoryd.cli.importers.items import CLAUDE, Skipped

    draft = item.note.draft
    root = CLAUDE if draft.path.startswith(CLAUDE) else ""
    path = f"{root}{prefix.strip('/')}/{draft.path.removeprefix(root)}"
    try:
        return replace(item, note=replace(item.note, draft=replace(draft, path=path)))
    except MemorydError:
        return Skipped(place=item.place, whose=item.whose, reason="its path is not valid below the prefix")


def _place_in(name: str) -> int | None:
    """Return the number in the name of a field, memories[3].memory.content."""
    number = name.partition("[")[2].partition("]")[0]
    return int(number) if number.isdecimal() else None


def _id_of(item: Any) -> str:
    if hasattr(item, "note"):
        return str(item.note.draft.path)
    return str(item.draft.id if hasattr(item, "thread_id") else item.draft.external_id)


def _size_of(item: Any) -> int:
    """Return about how many bytes an item takes in a call."""
    if hasattr(item, "note"):
        return len(item.note.draft.text.encode()) + 1024
    if hasattr(item, "thread_id"):
        return len(item.draft.content.encode()) + len(item.draft.metadata) + 1024
    return len(item.draft.draft.content.encode()) + 1024
