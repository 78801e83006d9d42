"""
The ledger of purges: what was erased for good, kept apart from the database, so that an older copy can be cleaned.

A folder with two files. `purges.jsonl`: a header, then a line for each transaction that erases, with its number, the
number and time of the transaction, and digests of what went; a line is on disk before its transaction is committed, and
the store notes its number and its digest in that transaction. So a store that has noted less than the ledger says has
missed what comes after, and one that has noted another line of that number is of another history: after a restore the
first line says which history goes on from there. `key`: what the digests are made with; without it the lines name
nothing and no one.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from memoryd.errors import Unavailable
from memoryd.model.change import PURGE, ChangeSet
from memoryd.model.erasure import ErasedKind, ErasedThing, Erasures, Purged, erased_by
from memoryd.paths import read_regular
from memoryd.store.durable import sync_folder, write_file
from memoryd.store.lines import STEP_BYTES, Line, LineFile, read_line, sound_end, whole_lines
from memoryd.store.refusal import StoreRefused

__all__ = ["KEY", "LINES", "PurgeLedger", "PurgeMark", "check_ledger", "goes_on", "key_of"]

LINES, KEY = "purges.jsonl", "key"
FORMAT = 1
KEY_BYTES = 32
MARK_DIGITS = 16  # of a SHA-256: lines of one number that differ were written by two histories, not by an adversary


class PurgeMark(NamedTuple):
    """A line of a ledger that a store has carried out, with all before it."""

    number: int = 0
    """0: none yet."""
    digest: str = ""
    """Of the line; empty: not known."""


class PurgeLedger:
    """An open ledger, of one store; it is written by the store's writer alone."""

    def __init__(
        self,
        folder: Path,
        store_id: str,
        noted: PurgeMark,
        *,
        random_bytes: Callable[[int], bytes],
        history_id: str = "",
    ) -> None:
        """
        Open the ledger of a store that has noted some line of it, or begin it.

        Raises StoreRefused where the files are damaged, of another store or history, without their key, or missing of
        a store that was restored, whose history has an id.
        """
        self._path, self._noted, self._history_id = folder / LINES, noted.number, history_id
        self._digest, self._is_begun = noted.digest, False
        self.fault = ""
        """Why nothing more can be purged; empty: it can."""
        self.gap = ""
        """What it does not know; empty: nothing."""
        if history_id and not self._path.exists():
            raise StoreRefused(
                f"the store was restored from a backup, and {folder} holds no ledger of purges: copy the folder ledger"
                " of the backup there, or what was purged would come back"
            )
        try:
            if not folder.exists():
                folder.mkdir(mode=0o700, parents=True)
                sync_folder(folder.parent)
            is_new = not self._path.exists() or not self._path.stat().st_size
            self._key = _begun_key(folder / KEY, random_bytes) if is_new else key_of(folder / KEY)
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
        if not self._file.end:
            self._last, self._is_begun = self._noted, True
            self._append(
                {
                    "format": FORMAT,
                    "store_id": store_id,
                    "history": self._history_id,
                    "first": self._noted + 1,
                    "key": _key_check(self._key, store_id),
                }
            )
            sync_folder(self._path.parent)
            if self._noted:
                self.gap = f"{self._path} is new: it does not know the first {self._noted} purges"
            return
        header = _header(self._file.first(), self._path, self._key, store_id)
        if header["first"] > self._noted + 1:
            self.gap = f"{self._path} begins at purge {header['first']}; the database knows {self._noted} before it"
        last = next((line["purge"] for line, _ in self._file.backwards() if "purge" in line), header["first"] - 1)
        if last < self._noted:
            self.gap = f"{self._path} ends at purge {last}; the database knows {self._noted}: put the newer one back"
        self._last = max(last, self._noted)
        self._refuse_another_history(last)
        histories = (line["history"] for line, _ in self._file.backwards() if "history" in line)
        self._is_begun = not self._history_id or self._history_id == next(histories, header.get("history", ""))

    def _refuse_another_history(self, last: int) -> None:
        """Raise StoreRefused where the line that the store has noted is another one here."""
        if not self._digest or last < self._noted:
            return
        raw = next((raw for line, raw in self._file.backwards() if line.get("purge") == self._noted), b"")
        if raw and _mark_of(raw) != self._digest:
            raise StoreRefused(
                f"{self._path} is of another history of this store: it ends at purge {last}, the database at"
                f" {self._noted}, and that is another one here; put the ledger back that lay with this database"
            )

    def missed(self) -> Erasures:
        """Return what was erased after what the store has noted."""
        digests: set[str] = set()
        tombstones: dict[str, set[str]] = {}
        void: set[int] = set()
        for line, _ in self._file.backwards() if self._last > self._noted else ():
            if "void" in line:
                void.add(line["void"])
                continue
            if line.get("purge", 0) <= self._noted:
                break
            if "history" in line:
                continue
            if line["purge"] in void:
                continue
            digests.update(digest for some in line["erased"].values() for digest in some)
            for owner, some in line["tombstones"].items():
                tombstones.setdefault(owner, set()).update(some)
        return Erasures(
            self._key,
            frozenset(digests),
            {owner: frozenset(some) for owner, some in tombstones.items()},
        )

    @property
    def size(self) -> int:
        """Bytes of the file, which only grows."""
        return self._path.stat().st_size if self._path.exists() else 0

    def ever_erased(self) -> Purged:
        """Return all that the ledger knows was erased, and when; it reads the file. StoreRefused, OSError."""
        times: dict[str, datetime] = {}
        raw = whole_lines(self._path.read_bytes())
        lines = [read_line(one, self._path, number) for number, one in enumerate(raw, 1)]
        void = {line["void"] for line in lines if "void" in line}
        for line in lines:
            if line.get("purge") in void or not line.get("erased"):
                continue
            time = datetime.fromisoformat(line["time"]) if line["time"] else datetime.max.replace(tzinfo=UTC)
            times.update((digest, time) for some in line["erased"].values() for digest in some)
        return Purged(self._key, times)

    @property
    def is_behind(self) -> bool:
        """Whether the store has still to be cleaned of what it missed; nothing is written down meanwhile."""
        return self._last > self._noted or not self._is_begun

    @property
    def last(self) -> int:
        """The number of the last purge; 0: there was none."""
        return self._last

    @property
    def mark(self) -> PurgeMark:
        """What the store notes when it has carried out all of it."""
        return PurgeMark(self._last, self._digest)

    def catch_up(self) -> PurgeMark:
        """
        Take it that the store is clean of all that was missed, and return what it notes then; see `caught_up`.

        A history that begins with this store is written down. Raises Unavailable.
        """
        if not self._is_begun:
            self._digest = self._append({"purge": self._last + 1, "history": self._history_id})
            self._last, self._is_begun = self._last + 1, True
        else:
            self._digest = next((_mark_of(raw) for line, raw in self._file.backwards() if "purge" in line), "")
        return self.mark

    def caught_up(self) -> None:
        """Take it that the store has noted what `catch_up` returned."""
        self._noted = self._last

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
        self._digest = self._append({**line, "erased": erased, "tombstones": tombstones})
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

    def _append(self, line: Line) -> str:
        """Bring a line to the disk, and return the digest of it. Raises Unavailable."""
        if self.fault:
            raise Unavailable(f"nothing can be purged until memoryd starts again: {self.fault}")
        try:
            raw = self._file.write(line)
        except OSError as error:
            raise Unavailable(f"the ledger cannot be written ({error.strerror}); nothing was purged") from None
        try:
            self._file.sync()
        except OSError as error:  # what reaches the disk now is not known, and asking again would not tell
            self.fault = f"the ledger did not reach the disk ({error.strerror})"
            raise Unavailable(f"{self.fault}; nothing was purged") from None
        return _mark_of(raw)


def check_ledger(folder: Path, store_id: str, key: Callable[[], bytes | None] | None = None) -> int:
    """
    Read all lines of a ledger, and return how many there are; StoreRefused where it is not one of this store.

    `key` reads its key where that does not lie there in clear; None: whether it is the key of these lines is not known.
    """
    path = folder / LINES
    try:
        with read_regular(path) as file:
            raw = whole_lines(file.read())
    except OSError as error:
        raise StoreRefused(f"{error.filename or path} cannot be read: {error.strerror}") from None
    if not raw:
        raise StoreRefused(f"{path} is empty: without the ledger what was purged would come back")
    _header(raw[0], path, key() if key is not None else key_of(folder / KEY), store_id)
    for number, line in enumerate(raw[1:], 2):
        read_line(line, path, number)
    return len(raw)


def goes_on(ledger: Path, earlier: Path) -> bool:
    """
    Whether a ledger has the key of an earlier one, and all lines of it first. OSError.

    The first line has a digest by the key, which says so where one of the two keys does not lie there. What is torn at
    the end of the earlier one is no line.
    """
    keys, known = [folder / KEY for folder in (ledger, earlier)], earlier / LINES
    if all(key.exists() for key in keys) and keys[0].read_bytes() != keys[1].read_bytes():
        return False
    return not known.exists() or _begins_with(ledger / LINES, known, sound_end(known))


def _begins_with(path: Path, other: Path, left: int) -> bool:
    """Whether a file begins with so many bytes of another one."""
    with path.open("rb") as whole, other.open("rb") as begin:
        while left:
            wanted = begin.read(min(STEP_BYTES, left))
            if not wanted or whole.read(len(wanted)) != wanted:
                return False
            left -= len(wanted)
    return True


def _header(raw: bytes, path: Path, key: bytes | None, store_id: str) -> Line:
    """Return the first line of a ledger; StoreRefused where it is of another store, or has another key."""
    header = read_line(raw, path, 1)
    if header.get("format") != FORMAT or header.get("store_id") != store_id:
        raise StoreRefused(
            f"{path} is not the ledger of purges of this database ({store_id}); put the right one back, or move it"
            " away to begin a new one"
        )
    if key is not None and header["key"] != _key_check(key, store_id):
        raise StoreRefused(f"{path.with_name(KEY)} is not the key of {path}; put the right one back")
    return header


def _key_check(key: bytes, store_id: str) -> str:
    return hmac.new(key, store_id.encode(), hashlib.sha256).hexdigest()[:16]


def _mark_of(raw: bytes) -> str:
    """Return the digest of a line without its end."""
    return hashlib.sha256(raw).hexdigest()[:MARK_DIGITS]


def key_of(path: Path, data: bytes | None = None) -> bytes:
    """Return the key of a ledger from its file, or from what that held before it was encrypted. Raises StoreRefused."""
    try:
        if data is None:
            with read_regular(path) as file:
                data = file.read()
        key = bytes.fromhex(data.decode("ascii").strip())
    except FileNotFoundError:
        raise StoreRefused(
            f"{path} is missing, so no one can tell what the lines of {LINES} stand for; put it back, or move"
            f" {path.parent} away to begin a new ledger"
        ) from None
    except OSError as error:
        raise StoreRefused(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise StoreRefused(f"{path} is damaged: it holds no key of {KEY_BYTES} bytes; put the right one back")
    return key


def _begun_key(path: Path, random_bytes: Callable[[int], bytes]) -> bytes:
    """Return the key of a ledger that is begun: the one that is there, or a new one. Raises StoreRefused, OSError."""
    if not path.exists():
        write_file(path, f"{random_bytes(KEY_BYTES).hex()}\n".encode())
    return key_of(path)
