"""
The ledger of purges: what was erased for good, kept apart from the database, so that an older copy can be cleaned.

A folder with two files. `purges.jsonl`: a header, then a line for each transaction that erases, with its number, the
number and time of the transaction, and digests of what went; a line is on disk before its transaction is committed, and
the store notes its number in that transaction. So a store that has noted less than the ledger says has missed what
comes after. `key`: what the digests are made with; without it the lines name nothing and no one.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from memoryd.errors import Unavailable
from memoryd.model.change import PURGE, ChangeSet
from memoryd.model.erasure import ErasedKind, ErasedThing, Erasures, erased_by
from memoryd.store.durable import sync_folder, write_file
from memoryd.store.lines import Line, LineFile, read_line
from memoryd.store.refusal import StoreRefused

__all__ = ["KEY", "LINES", "PurgeLedger"]

LINES, KEY = "purges.jsonl", "key"
FORMAT = 1
KEY_BYTES = 32


class PurgeLedger:
    """An open ledger, of one store; it is written by the store's writer alone."""

    def __init__(
        self,
        folder: Path,
        store_id: str,
        noted: int,
        *,
        random_bytes: Callable[[int], bytes],
        must_exist: bool = False,
    ) -> None:
        """
        Open the ledger of a store that has noted so many purges, or begin it.

        Raises StoreRefused where the files are damaged, of another store, without their key, or missing of a store that
        must have one.
        """
        self._path, self._noted = folder / LINES, noted
        self._lines: list[bytes] = []
        self.fault = ""
        """Why nothing more can be purged; empty: it can."""
        self.gap = ""
        """What it does not know; empty: nothing."""
        if must_exist and not self._path.exists():
            raise StoreRefused(
                f"the store was restored from a backup, and {folder} holds no ledger of purges: copy the folder ledger"
                " of the backup there, or what was purged would come back"
            )
        try:
            if not folder.exists():
                folder.mkdir(mode=0o700, parents=True)
                sync_folder(folder.parent)
            is_new = not self._path.exists() or not self._path.stat().st_size
            self._key = _key_of(folder / KEY, random_bytes, is_new=is_new)
            self._file = LineFile(self._path)
        except OSError as error:
            raise StoreRefused(f"the ledger of purges in {folder} cannot be opened: {error.strerror}") from None
        try:
            self._begin(store_id)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError | Unavailable):
                raise StoreRefused(f"the ledger of purges in {folder} cannot be used: {error}") from None
            raise

    def _begin(self, store_id: str) -> None:
        self._lines, self._file.lines = self._file.lines, []
        if not self._lines:
            self._last = self._noted
            self._append(
                {"format": FORMAT, "store_id": store_id, "first": self._noted + 1, "key": self._key_check(store_id)}
            )
            sync_folder(self._path.parent)
            if self._noted:
                self.gap = f"{self._path} is new: it does not know the first {self._noted} purges"
            return
        header = read_line(self._lines[0], self._path, 1)
        if header.get("format") != FORMAT or header.get("store_id") != store_id:
            raise StoreRefused(
                f"{self._path} is not the ledger of purges of this database ({store_id}); put the right one back, or"
                " move it away to begin a new one"
            )
        if header["key"] != self._key_check(store_id):
            raise StoreRefused(f"{self._path.with_name(KEY)} is not the key of {self._path}; put the right one back")
        if header["first"] > self._noted + 1:
            self.gap = f"{self._path} begins at purge {header['first']}; the database knows {self._noted} before it"
        last = next((line["purge"] for line in self._from_the_end() if "purge" in line), header["first"] - 1)
        if last < self._noted:
            self.gap = f"{self._path} ends at purge {last}; the database knows {self._noted}: put the newer one back"
        self._last = max(last, self._noted)
        if not self.is_behind:
            self._lines = []

    def _key_check(self, store_id: str) -> str:
        return hmac.new(self._key, store_id.encode(), hashlib.sha256).hexdigest()[:16]

    def missed(self) -> Erasures:
        """Return what was erased after what the store has noted."""
        digests: set[str] = set()
        tombstones: dict[str, set[str]] = {}
        void: set[int] = set()
        for line in self._from_the_end() if self._last > self._noted else ():
            if "void" in line:
                void.add(line["void"])
                continue
            if line.get("purge", 0) <= self._noted:
                break
            if line["purge"] in void:
                continue
            digests.update(digest for some in line["erased"].values() for digest in some)
            for owner, some in line["tombstones"].items():
                tombstones.setdefault(owner, set()).update(some)
        return Erasures(
            self._key,
            frozenset(digests),
            {owner: frozenset(some) for owner, some in tombstones.items()},
            self._last,
        )

    @property
    def is_behind(self) -> bool:
        """Whether the store has still to be cleaned of what it missed; nothing is written down meanwhile."""
        return self._last > self._noted

    @property
    def last(self) -> int:
        """The number of the last purge; 0: there was none."""
        return self._last

    def caught_up(self) -> None:
        """Take it that the store is clean of all that was missed."""
        self._noted, self._lines = self._last, []

    def record(self, changes: Sequence[ChangeSet], transaction: int) -> int:
        """
        Write down what changes erase, on disk before this returns; return the number of the purge, 0: there is none.

        Raises Unavailable where it cannot be written: then nothing may be erased.
        """
        things = [thing for change in changes for thing in erased_by(change)]
        if not things or self.is_behind:
            return 0
        tombstones: dict[str, list[str]] = {}
        for stone in (stone for change in changes for stone in change.tombstones):
            owner = ErasedThing(ErasedKind.OWNER, stone.owner).digest(self._key)
            tombstones.setdefault(owner, []).append(stone.digest.hex())
        erased: dict[str, list[str]] = {}
        for thing in things:
            erased.setdefault(thing.kind.value, []).append(thing.digest(self._key))
        times = [change.marks[PURGE] for change in changes if PURGE in change.marks]
        line = {"purge": self._last + 1, "transaction": transaction, "time": max(times).isoformat() if times else ""}
        self._append({**line, "erased": erased, "tombstones": tombstones})
        self._last += 1
        self._noted = self._last
        return self._last

    def void(self, purge: int) -> None:
        """Note that a purge which was written down was not carried out; without that the next start carries it out."""
        with contextlib.suppress(Unavailable):
            self._append({"void": purge})

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _from_the_end(self) -> Iterator[Line]:
        """Yield the lines that were there at the start, the last one first, without the header."""
        for number in range(len(self._lines), 1, -1):
            yield read_line(self._lines[number - 1], self._path, number)

    def _append(self, line: Line) -> None:
        if self.fault:
            raise Unavailable(f"nothing can be purged until memoryd starts again: {self.fault}")
        try:
            self._file.write(line)
        except OSError as error:
            raise Unavailable(f"the ledger cannot be written ({error.strerror}); nothing was purged") from None
        try:
            self._file.sync()
        except OSError as error:  # what reaches the disk now is not known, and asking again would not tell
            self.fault = f"the ledger did not reach the disk ({error.strerror})"
            raise Unavailable(f"{self.fault}; nothing was purged") from None


def _key_of(path: Path, random_bytes: Callable[[int], bytes], *, is_new: bool) -> bytes:
    """Return the key of a ledger; a new one gets one. Raises StoreRefused, OSError."""
    try:
        key = bytes.fromhex(path.read_text().strip())
    except FileNotFoundError:
        if not is_new:
            raise StoreRefused(
                f"{path} is missing, so no one can tell what the lines of {LINES} stand for; put it back, or move"
                f" {path.parent} away to begin a new ledger"
            ) from None
        key = random_bytes(KEY_BYTES)
        write_file(path, f"{key.hex()}\n".encode())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise StoreRefused(f"{path} is damaged: it holds no key of {KEY_BYTES} bytes; put the right one back")
    return key
