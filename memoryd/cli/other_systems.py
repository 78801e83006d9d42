"""What `memoryd import` does with the files of other systems: reads them, sends them, and tells what came of it."""

from __future__ import annotations

import argparse
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from memory_cli.output import as_json

from memoryd.cli.command import Client
from memoryd.errors import InvalidArgument
from memoryd.model import limits

if TYPE_CHECKING:
    from memoryd.cli.importers.items import Item
    from memoryd.model.imported import ImportReport, ImportResult

__all__ = ["bring_in", "owner_fields"]

AT_ONCE = 3  # calls under way, so that the model has work while others are committed
MOST_BYTES = 2 << 20  # of what is sent at once
MOST_WAITING = 64  # users and threads whose batches are not full yet
FIRST = 10  # places that are named of each reason
NAMED = ("user", "agent", "chat")

KINDS = {"Statement": "memory", "Said": "message", "Kept": "note"}
PLURALS = {"memory": "memories"}
OUTCOMES = {
    "stored": ("stored", "would store"),
    "known": ("known from before", "known from before"),
    "repeated": ("stated here already", "stated here already"),
    "kept": ("something else is here under that id or path, and stays", "something else is here, and stays"),
    "erased": ("erased here once, and stay erased", "erased here once, and stay erased"),
}
REJECTIONS = {
    "secret": "it holds a credential",
    "forgotten": "it was deleted here, and is not brought back",
    "expired": "it is past its time",
    "full": "the scope is full (memory.max_entries)",
    "disabled": "memory is switched off for the agent",
}


@dataclass(slots=True)
class Told:
    """What came of an import so far."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    """By kind and outcome."""
    reasons: dict[str, int] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict)
    """The first of each reason."""

    def leave_out(self, place: str, reason: str) -> None:
        """Note an item that is left out."""
        self.reasons[reason] += 1
        first = self.places.setdefault(reason, [])
        if len(first) < FIRST:
            first.append(place)

    def take(self, kind: str, place: str, result: ImportResult) -> None:
        """Note what became of an item."""
        self.counts.setdefault(kind, Counter())[result.outcome.value] += 1
        if result.rejection:
            self.leave_out(place, REJECTIONS.get(result.rejection, result.rejection))

    @property
    def total(self) -> int:
        """How many items were looked at."""
        return sum(self.reasons.values()) + sum(
            count for counts in self.counts.values() for name, count in counts.items() if name != "rejected"
        )


Owner = tuple[str, str, str]
"""User, agent and chat."""
Key = tuple[Owner, str, str]
"""Whose a batch is, its kind, and its thread."""


def owner_fields(texts: Sequence[str]) -> dict[str, str]:
    """Return which field of the file says who something is of; InvalidArgument for what is malformed."""
    fields = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in NAMED or not value:
            raise InvalidArgument(f"--map {text} must be user=FIELD, agent=FIELD or chat=FIELD", field="map")
        fields[name] = value
    return fields


class _Owners:
    """Says whose an item is: as the command says, or with --map as the file does."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._named: dict[str, str] = {name: getattr(args, name) or "" for name in NAMED}
        self._fields = owner_fields(args.map)
        self._first: dict[str, str] = {}
        if not (self._named["user"] or self._named["chat"] or {"user", "chat"} & self._fields.keys()):
            raise InvalidArgument(
                "say whose memory it becomes: --user NAME, or --map user=user_id to take it from the file", field="user"
            )

    def of(self, whose: Mapping[str, str]) -> Owner | str:
        """Return user, agent and chat of an item, or why it has none."""
        found = dict(self._named)
        for name, source in self._fields.items():
            found[name] = whose.get(source, "") or found[name]
        if not (found["user"] or found["chat"]):
            return "the file does not say whose it is; name a --user for such"
        if "user" not in self._fields and not found["chat"]:
            for source in ("user_id", "group_id"):
                first = self._first.setdefault(source, whose[source]) if source in whose else ""
                if first and whose[source] != first:
                    return f"it is of another user than the first, and the file has several: see --map user={source}"
        return found["user"], found["agent"], found["chat"]


def bring_in(client: Client, args: argparse.Namespace, show: Callable[[str], None]) -> int:
    """Import a file of another system; return the exit code."""
    from memoryd.cli.importers.formats import format_of, reader_of
    from memoryd.cli.importers.source import Source

    source = Source(args.file)
    name = args.format or format_of(source)
    owners, told = _Owners(args), Told()
    import_id = args.import_id or name
    with client(args) as memory, ExitStack() as stack:
        sender = stack.enter_context(_Sender(memory, import_id, told, args, show))
        for item in reader_of(name)(source):
            sender.take(item, owners)
    _tell(told, name, import_id, args)
    return 0


class _Sender:
    """Gathers items by owner, kind and thread, and sends them, of one thread in order."""

    def __init__(
        self, memory: Any, import_id: str, told: Told, args: argparse.Namespace, show: Callable[[str], None]
    ) -> None:
        self._memory, self._import_id, self._told, self._args, self._show = memory, import_id, told, args, show
        self._waiting: OrderedDict[Key, list[Item]] = OrderedDict()
        self._sizes: Counter[Key] = Counter()
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
        from memoryd.cli.importers.items import Said, Skipped

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
        if key in self._sent.values():  # of one thread one call after the other
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


# --- what came of it ---


def _tell(told: Told, name: str, import_id: str, args: argparse.Namespace) -> None:
    if args.json:
        left_out = {
            reason: {"count": count, "first": told.places[reason]} for reason, count in sorted(told.reasons.items())
        }
        print(
            as_json(
                {
                    "format": name,
                    "import_id": import_id,
                    "dry_run": args.dry_run,
                    "counts": {kind: dict(counts) for kind, counts in sorted(told.counts.items())},
                    "left_out": left_out,
                }
            )
        )
        return
    lines = list(_lines(told, dry_run=args.dry_run))
    print("\n".join(lines) if lines else f"nothing to import is in {args.file} (read as {name})")
    if told.counts.get("memory", Counter())["stored"] and not args.dry_run:
        print(
            f"how they stand to each other is judged now (memoryd jobs list); to undo it: memory delete --import-id"
            f" {import_id} --dry-run",
            file=sys.stderr,
        )


def _lines(told: Told, *, dry_run: bool) -> Iterator[str]:
    for outcome, words in OUTCOMES.items():
        found = {kind: counts[outcome] for kind, counts in sorted(told.counts.items()) if counts[outcome]}
        if found:
            yield f"{words[dry_run]}: {', '.join(_counted(kind, count) for kind, count in found.items())}"
    if told.reasons:
        yield "left out:"
    for reason, count in sorted(told.reasons.items(), key=lambda one: (-one[1], one[0])):
        more = "" if count <= FIRST else ", …"
        yield f"  {count} × {reason}: {'; '.join(told.places[reason])}{more}"


def _counted(kind: str, count: int) -> str:
    return f"{count} {kind if count == 1 else PLURALS.get(kind, f'{kind}s')}"
