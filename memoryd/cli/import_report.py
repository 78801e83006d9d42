"""What came of an import from another system, counted and told."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from shlex import quote
from threading import Lock
from typing import TYPE_CHECKING

from memory_cli.output import as_json

if TYPE_CHECKING:
    from memoryd.model.imported import ImportResult

__all__ = ["KINDS", "NAMED", "Told", "tell"]

MOST_REASONS = 100
OTHER = "other reasons"
FIRST = 10  # places that are named of each reason
NAMED = ("user", "agent", "chat")
KINDS = {"Statement": "memory", "Said": "message", "Kept": "note"}
PLURALS = {"memory": "memories"}
OUTCOMES = {
    "stored": ("stored", "would store"),
    "known": ("known from before", "known from before"),
    "repeated": ("stated here already", "stated here already"),
    "erased": ("erased here once, and stay erased", "erased here once, and stay erased"),
}
KEPT = "another text is here under its id, key or path, and stays"
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
    masked_count: int = 0
    masked: list[str] = field(default_factory=list)
    """Messages that are stored with a credential masked, and the places of the first of them."""
    total: int = 0
    """How many items were looked at."""
    reasons: dict[str, int] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)
    """The first of each reason."""
    _lock: Lock = field(default_factory=Lock)

    def leave_out(self, place: str, reason: str) -> None:
        """Note an item that is left out."""
        with self._lock:
            self.total += 1
            reason = reason if reason in self.reasons or len(self.reasons) < MOST_REASONS else OTHER
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
            first = self.places.setdefault(reason, [])
            if len(first) < FIRST:
                first.append(place)

    def take(self, kind: str, place: str, result: ImportResult) -> None:
        """Note what became of an item."""
        with self._lock:
            if result.masked:
                self.masked_count += 1
                if len(self.masked) < FIRST:
                    self.masked.append(place)
            self.counts.setdefault(kind, Counter())[result.outcome.value] += 1
            self.total += not result.rejection and result.outcome.value != "kept"
        if result.rejection:
            self.leave_out(place, REJECTIONS.get(result.rejection, result.rejection))
        elif result.outcome.value == "kept":
            self.leave_out(place, KEPT)


def tell(told: Told, name: str, import_id: str, args: argparse.Namespace) -> None:
    """Print what came of an import, and how it is undone."""
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
                    "masked": {"count": told.masked_count, "first": told.masked},
                }
            )
        )
        return
    lines = list(_lines(told, dry_run=args.dry_run))
    print("\n".join(lines) if lines else f"nothing to import is in {args.file}", flush=True)
    print(f"read as {name}", file=sys.stderr)
    if args.dry_run:
        return
    who = "".join(f" --{name} {quote(getattr(args, name))}" for name in NAMED if getattr(args, name))
    if told.counts.get("memory", Counter())["stored"]:
        print(
            "how they stand to each other is judged in some seconds (memoryd jobs show imports); to undo it, which is"
            f" for good: memory delete --import-id {quote(import_id)}{who} --dry-run",
            file=sys.stderr,
        )
    if told.counts.get("message", Counter())["stored"]:
        print(
            f"to undo a conversation and what was learnt from it: memory threads{who} --delete THREAD --with-memories",
            file=sys.stderr,
        )


def _lines(told: Told, *, dry_run: bool) -> Iterator[str]:
    for outcome, words in OUTCOMES.items():
        found = {kind: counts[outcome] for kind, counts in sorted(told.counts.items()) if counts[outcome]}
        if found:
            yield f"{words[dry_run]}: {', '.join(_counted(kind, count) for kind, count in found.items())}"
    if told.masked_count:
        more = "" if told.masked_count <= FIRST else ", …"
        yield f"a credential is masked in {told.masked_count}: {'; '.join(told.masked)}{more}"
    if told.reasons:
        yield "left out:"
    for reason, count in sorted(told.reasons.items(), key=lambda one: (-one[1], one[0])):
        more = "" if count <= FIRST else ", …"
        yield f"  {count} × {reason}: {'; '.join(told.places[reason])}{more}"


def _counted(kind: str, count: int) -> str:
    return f"{count} {kind if count == 1 else PLURALS.get(kind, f'{kind}s')}"
