"""Each kind of fault on each file: what a daemon answers, how it ends, and that it breaks no promise."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from memory_client import InternalError, MemoryClient, MemorydError, MessageDraft, NotFound, ThreadNotFound, Unavailable

from tests.faults import FaultControl, FaultKind
from tests.support import PATIENCE_S, Daemon, until

__all__ = ["TARGETS", "Row", "try_faults"]

TARGETS = {
    "store": "*/memory.duckdb",
    "log": "*/memory.duckdb.wal",
    "side file": "*/memory.duckdb.seq",
    "ledger": "*/d/*/purges.jsonl",
    "audit": "*/audit.jsonl",
    "compaction": "*/memory.duckdb.compact",
    "backup, manifest": "*/manifest.jsonl",
    "backup, log": "*/log-*",
}
CONFIG = """[embedding]
provider = "none"
[readers]
keeping = "none"
people = "none"
answer = "none"
[learning]
extractor = "none"
[store]
min_free_bytes = 1048576
[backup]
directory = "{}"
ship_s = 1
[schedule]
compaction = ""
backup = ""
"""
ENDED_FATAL = 70
Call = Callable[[], object]


@dataclass(slots=True)
class Row:
    """What came of one fault on one file."""

    target: str
    kind: FaultKind
    hits: int = 0
    answered: int = 0
    refused: int = 0
    """With the word that nothing was written."""
    unknown: int = 0
    exit_code: int | None = None
    """None: the daemon went on."""
    broken: list[str] = field(default_factory=list)
    """Promises that were not kept."""


class Campaign:
    """One daemon, and what it has acknowledged."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.control = FaultControl(folder)
        (folder / "backup").mkdir()
        place = folder / "d"
        place.mkdir()
        self.daemon = Daemon(place, config=CONFIG.format(folder / "backup"), env=self.control.env)
        self.there: set[str] = set()
        self.gone: set[str] = set()
        self.said: list[str] = []
        self.unsaid: set[str] = set()
        self.unadded: set[str] = set()
        self._number = 0

    def try_fault(self, target: str, kind: FaultKind) -> Row:
        """Call under a fault, end it, and compare."""
        row = Row(target, kind)
        with self.daemon.client(timeout_s=PATIENCE_S, wait_for_ready=False) as memory:
            old = [memory.add(self._text()).memory.id for _ in range(3)]
            self.there.update(old)
            with self.control.fault(kind, TARGETS[target]):
                self._call_under_fault(memory, old, row)
                row.hits = self.control.hits
        row.exit_code = self._settle()
        if row.exit_code not in {None, ENDED_FATAL}:
            row.broken.append(f"it ended with {row.exit_code}")
        self._compare(row)
        self.daemon.kill()
        self.daemon.start()
        self._compare(row)
        self._write_again(row)
        return row

    def _text(self) -> str:
        self._number += 1
        return f"statement {self._number} of the campaign"

    def _call_under_fault(self, memory: MemoryClient, old: list[str], row: Row) -> None:
        def add() -> None:
            text = self._text()
            try:
                self.there.add(memory.add(text).memory.id)
            except Unavailable:
                self.unadded.add(text)
                raise

        def append() -> None:
            text = self._text()
            try:
                memory.append("t", [MessageDraft(content=text)])
            except Unavailable:
                self.unsaid.add(text)
                raise
            self.said.append(text)

        def purge() -> None:
            self.there.discard(old[0])  # whatever is answered: an answer that is lost may have been carried out
            memory.delete(old[0], purge=True)
            self.gone.add(old[0])

        def delete() -> None:
            self.there.discard(old[1])
            memory.delete(old[1])
            self.gone.add(old[1])

        calls: list[Call] = [
            add,
            append,
            purge,
            delete,
            add,
            lambda: memory.search("campaign"),
            memory.compact_store,
            add,
        ]
        for call in calls:
            try:
                call()
                row.answered += 1
            except Unavailable:
                row.refused += 1
            except MemorydError as error:
                row.unknown += 1
                if isinstance(error, InternalError) and "the commit failed" not in str(error):
                    row.broken.append(f"INTERNAL: {error}")
        if row.target.startswith("backup"):
            until(lambda: self.control.hits > 0)  # with a shipment

    def _settle(self) -> int | None:
        """Start the daemon again where it has ended, as its supervisor would."""
        process = self.daemon.process
        assert process is not None
        until(lambda: process.poll() is not None or self._serves())
        code = process.poll()
        if code is not None:
            self.daemon.start()
        return code

    def _serves(self) -> bool:
        try:
            with self.daemon.client(timeout_s=5, wait_for_ready=False) as memory:
                memory.search("campaign")
        except MemorydError:
            return False
        time.sleep(0.2)  # one that is about to end has still answered
        process = self.daemon.process
        return process is not None and process.poll() is None

    def _compare(self, row: Row) -> None:
        with self.daemon.client(timeout_s=PATIENCE_S, wait_for_ready=False) as memory:
            stored = list(memory.pages(page_size=1000))
            found = {one.id for one in stored}
            row.broken += [f"{one.id} was refused and is there" for one in stored if one.content in self.unadded]
            row.broken += [f"{one} is lost" for one in sorted(self.there - found)]
            row.broken += [f"{one} came back" for one in sorted(self.gone & found)]
            for one in sorted(self.gone & found):
                try:
                    memory.get(one)
                except NotFound:
                    row.broken.append(f"{one} is listed and cannot be read")
            try:
                texts = [message.content for message in memory.all_messages("t")][::-1]
            except ThreadNotFound:
                texts = []
            row.broken += [f"message {text!r} is lost" for text in self.said if text not in texts]
            row.broken += [f"message {text!r} was refused and is there" for text in self.unsaid if text in texts]
            if len(texts) != len(set(texts)):
                row.broken.append("a message is there twice")

    def _write_again(self, row: Row) -> None:
        try:
            with self.daemon.client(timeout_s=PATIENCE_S, wait_for_ready=False) as memory:
                self.there.add(memory.add(self._text()).memory.id)
        except MemorydError as error:
            row.broken.append(f"after a restart nothing can be written: {error}")


def try_faults(folder: Path, faults: Iterable[tuple[str, FaultKind]]) -> list[Row]:
    """Try each kind of fault on its file in turn, with one daemon; it is killed after each."""
    campaign = Campaign(folder)
    campaign.daemon.start()
    try:
        return [campaign.try_fault(target, kind) for target, kind in faults]
    finally:
        campaign.daemon.kill()
