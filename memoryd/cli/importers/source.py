"""The file, archive or folder that is imported: opened with care, as it may come from anywhere."""

from __future__ import annotations

import codecs
import contextlib
import json
import lzma
import re
import sqlite3
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from memoryd.errors import EXIT_DAMAGED, InvalidArgument, StartupError

__all__ = ["Damaged", "Source", "depth_of"]

MOST_UNPACKED = 1 << 30  # bytes of one member of an archive
MOST_RATIO = 200  # of an archive: what a text of people never reaches
LEAST_UNPACKED = 10 << 20  # bytes up to which any ratio will do
MOST_DEPTH = 64  # of nested JSON
LONGEST_LINE = 10 << 20  # bytes
WHOLE = 64 << 20  # bytes of a file that is read at once
A_BIT = 1 << 20  # bytes of a long list that are read at once
LONGEST_VALUE = 64 << 20  # characters of one value of a list
A_TOKEN = 16  # characters within which a value may be cut off: a number, or an escape
COMPUTED = "SELECT 1 FROM sqlite_master WHERE type = 'view' OR (type = 'table' AND rootpage = 0)"
"""What computes its rows, maybe without an end."""
LEAST_ROW = 4  # bytes that a row takes
SOME_ROWS = 10_000  # of a log, which the size of the file does not count
SPACES = re.compile(r"\s*")
PACKED = (zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, OSError)
"""What a damaged archive brings about."""
SQLITE = b"SQLite format 3\0"


class Damaged(StartupError):
    """A file is cut or damaged; the message says where."""

    exit_code = EXIT_DAMAGED


@dataclass(frozen=True, slots=True)
class Source:
    """What is imported."""

    path: Path

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.path.is_dir()

    @property
    def is_archive(self) -> bool:
        """Whether it is a zip file."""
        return self.path.is_file() and zipfile.is_zipfile(self.path)

    @property
    def is_database(self) -> bool:
        """Whether it is a database of SQLite."""
        if not self.path.is_file():
            return False
        with self.path.open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE

    def names(self) -> list[str]:
        """Return the names of what an archive or a folder has; none of a file."""
        if self.is_folder:
            return sorted(path.name for path in self.path.iterdir())
        if not self.is_archive:
            return []
        with self._archive() as archive:
            return sorted(archive.namelist())

    def _archive(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.path)
        except (zipfile.BadZipFile, NotImplementedError) as error:
            raise Damaged(f"{self.path} is no whole zip file: {error}") from None

    @contextlib.contextmanager
    def opened(self, *patterns: str) -> Iterator[list[tuple[str, IO[bytes]]]]:
        """Open the file, or what in an archive or folder has one of these names; InvalidArgument where nothing has."""
        with contextlib.ExitStack() as stack:
            yield list(self._open(patterns, stack))

    def _open(self, patterns: tuple[str, ...], stack: contextlib.ExitStack) -> Iterator[tuple[str, IO[bytes]]]:
        if not self.is_folder and not self.is_archive:
            yield self.path.name, stack.enter_context(self.path.open("rb"))
            return
        found = False
        for name, open_it in self._members(stack):
            if any(PurePosixPath(name).match(pattern) for pattern in patterns):
                found = True
                yield name, stack.enter_context(open_it())
        if not found:
            raise InvalidArgument(f"{self.path} has no {' or '.join(patterns)}; name the file itself", field="file")

    def _members(self, stack: contextlib.ExitStack) -> Iterator[tuple[str, Any]]:
        if self.is_folder:
            for path in sorted(self.path.glob("*")):
                if path.is_file() and not path.is_symlink():
                    yield path.name, lambda path=path: path.open("rb")
            return
        archive = stack.enter_context(self._archive())
        for member in sorted(archive.infolist(), key=lambda one: one.filename):
            if not member.is_dir():
                yield member.filename, lambda member=member: self._member(archive, member)

    def _member(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
        """Open a member; Damaged for one that unpacks to more than any export has."""
        size, packed = member.file_size, max(1, member.compress_size)
        if size > MOST_UNPACKED or (size > LEAST_UNPACKED and size / packed > MOST_RATIO):
            raise Damaged(
                f"{self.path}: {member.filename!r} unpacks to {size} bytes from {packed}; unpack it yourself if that is"
                " right, and name the file"
            )
        try:
            return archive.open(member)
        except (RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
            raise Damaged(f"{self.path}: {member.filename!r} cannot be unpacked: {error}") from None

    def records(self, file: IO[bytes], *keys: str) -> Iterator[tuple[int, Any]]:
        """
        Yield the values of a JSON list, each with its number from 1 on; Damaged, once what stands before was read.

        A list is read bit by bit, however long it is. Of an object the lists under some keys are read, as a whole. None
        stands for a value that is nested too deep.
        """
        if self.begins_list(file):
            values: Iterable[Any] = _Values(file, str(self.path))
        else:
            value = self._parsed(file)
            if not isinstance(value, Mapping):
                raise Damaged(f"{self.path} is neither a list nor an object of JSON")
            values = (one for key in keys for one in (value[key] if isinstance(value.get(key), list) else ()))
        for number, value in enumerate(values, 1):
            yield number, value if depth_of(value) <= MOST_DEPTH else None

    def begins_list(self, file: IO[bytes]) -> bool:
        """Whether a file begins as a JSON list; it stands at its beginning again. Damaged."""
        try:
            beginning = file.read(1 << 16)
        except PACKED:
            raise Damaged(f"{self.path} is damaged") from None
        file.seek(0)
        return beginning.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")

    def whole(self) -> Any:
        """Return a whole JSON file; Damaged."""
        with self.path.open("rb") as file:
            value = self._parsed(file)
        if depth_of(value) > MOST_DEPTH:
            raise Damaged(f"{self.path} is nested more than {MOST_DEPTH} deep")
        return value

    def _parsed(self, file: IO[bytes]) -> Any:
        try:
            data = file.read(WHOLE + 1)
            if len(data) > WHOLE:
                raise Damaged(f"{self.path} has more than {WHOLE} bytes, and is no list")
            return json.loads(data.removeprefix(codecs.BOM_UTF8))
        except (ValueError, RecursionError, *PACKED):
            raise Damaged(
                f"{self.path} is no JSON, or cut or damaged; name its sort with --as if it is another"
            ) from None

    def lines(self) -> Iterator[tuple[int, Any]]:
        """Yield each JSON value with the number of its line; None for a line, or the rest of one, that is none."""
        with self.path.open("rb") as file:
            number = 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                if len(line) > LONGEST_LINE:
                    raise Damaged(f"{self.path}: line {number} has more than {LONGEST_LINE} bytes")
                if line.strip():
                    for value in _values_on(line):
                        yield number, value

    @contextlib.contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """Open a database of SQLite, to be read alone, with what its log holds; Damaged."""
        log = self.path.with_name(f"{self.path.name}-wal")
        has_log = log.exists() and log.stat().st_size > 0
        mode = "mode=ro" if has_log else "mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(f"{self.path.absolute().as_uri()}?{mode}", uri=True)) as con:
            con.text_factory = lambda data: data.decode("utf-8", "replace")
            con.row_factory = sqlite3.Row
            con.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_LINE)
            try:
                con.execute("PRAGMA trusted_schema = OFF")
                if any(con.execute(COMPUTED)):
                    raise Damaged(f"{self.path} has views or virtual tables, which are not read")
                yield con
            except (sqlite3.Error, IndexError, KeyError) as error:  # or a column is not there
                text = "".join(letter if letter.isprintable() else " " for letter in str(error))
                raise Damaged(f"{self.path} cannot be read: {text[:200]}") from None

    def rows(self, con: sqlite3.Connection, table: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table as they lie there; Damaged where they are more than the file has room for."""
        if any(column["hidden"] for column in con.execute(f"PRAGMA table_xinfo({table})")):
            raise Damaged(f"{self.path} has columns that are computed, which are not read")
        most = self.path.stat().st_size // LEAST_ROW + SOME_ROWS
        for count, row in enumerate(con.execute(f"SELECT * FROM {table}")):  # noqa: S608  a name of ours
            if count > most:
                raise Damaged(f"{self.path} has more rows than it has room for")
            yield dict(row)

    def tables(self) -> frozenset[str]:
        """Return the names of the tables of a database."""
        with self.database() as con:
            return frozenset(row["name"] for row in con.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))


def _values_on(line: bytes) -> list[Any]:
    """Return the JSON values of a line, also where two stand on it; a None for what is no JSON, or nested too deep."""
    decoder, values, at = json.JSONDecoder(), list[Any](), 0
    try:
        text = line.decode().strip()
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            values.append(value if depth_of(value) <= MOST_DEPTH else None)
            found = SPACES.match(text, at)
            at = at if found is None else found.end()
    except (ValueError, RecursionError):
        values.append(None)
    return values


def depth_of(value: object) -> int:
    """Return how deep lists and objects are nested; MOST_DEPTH + 1 stands for all that is more."""
    level, depth = [value], 0
    while level and depth <= MOST_DEPTH:
        inner: list[object] = []
        for one in level:
            if isinstance(one, Mapping):
                inner.extend(one.values())
            elif isinstance(one, list):
                inner.extend(one)
        level, depth = inner, depth + 1
    return depth


class _Values:
    """The values of a JSON list, read bit by bit."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name = file, name
        self._decoder, self._to_text = json.JSONDecoder(), codecs.getincrementaldecoder("utf-8")()
        self._text, self._at, self._is_over, self._count = "", 0, False, 0
        if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            file.seek(0)

    def __iter__(self) -> Iterator[Any]:
        self._skip("[")
        while self._skip("]" if not self._count else ",]") != "]":
            yield self._value()
            self._count += 1

    def _skip(self, expected: str) -> str:
        """Go past spaces and one of some marks, which is returned; before the first value there is none."""
        while self._begin() == len(self._text) and not self._is_over:
            self._more()
        mark = self._text[self._at : self._at + 1]
        if mark and mark in expected:
            self._at += 1
            return mark
        if expected == "]" and mark:
            return ""
        raise self._damaged()

    def _value(self) -> Any:
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._begin())
            except json.JSONDecodeError as error:
                is_cut = error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - A_TOKEN
                if self._is_over or not is_cut:
                    raise self._damaged() from None
            except RecursionError:
                raise self._damaged(" is nested too deep") from None
            except ValueError:  # a number of thousands of digits
                raise self._damaged() from None
            else:
                if end < len(self._text) or self._is_over:
                    self._at = end
                    return value
            self._more()

    def _begin(self) -> int:
        """Go past spaces, and return where that is."""
        found = SPACES.match(self._text, self._at)
        self._at = self._at if found is None else found.end()
        return self._at

    def _more(self) -> None:
        """Read on: as much again as there is of a long value, so that it is not tried too often."""
        kept = self._text[self._at :]
        if len(kept) > LONGEST_VALUE:
            raise self._damaged(" is too long")
        try:
            data = self._file.read(max(A_BIT, len(kept)))
            self._text, self._at = kept + self._to_text.decode(data, final=not data), 0
        except (UnicodeDecodeError, RuntimeError, *PACKED):
            raise self._damaged() from None
        self._is_over = not data

    def _damaged(self, why: str = " is cut or damaged") -> Damaged:
        return Damaged(f"{self._name}{why} after item {self._count}")
