"""
Claude's memory tool over notes: `MemoryTool(client)`, or `AsyncMemoryTool`, among the tools of a tool runner.

`/memories/plan.md` is the note `memories/plan.md` of the client's user, with its last ten versions: `memory note
memories/plan.md` shows it. Answers are worded as those of the library's own tool, which keeps files.
"""

from __future__ import annotations

import posixpath
import unicodedata
from typing import TYPE_CHECKING, Any

from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool

from memory_client.adapters.plans import Plan, arun, ask, every_note, run
from memoryd.errors import Conflict, MemorydError, NoteNotFound

if TYPE_CHECKING:
    from memory_client import AsyncMemoryClient, MemoryClient
    from memoryd.model.note import Note

__all__ = ["AsyncMemoryTool", "MemoryTool"]

ROOT = "/memories"
MOST_FILES = 10_000  # that one listing looks at
MOST_LINES = 999_999
BOTH_ENDS = 2  # of a range
LEVELS = 2  # of a directory that is viewed
WIDTH = 6  # of a line's number
AROUND = 2  # lines shown before and after one that was changed
DIRECTORY = "4K"  # a directory has no size of its own here
KIBI = 1024


class MemoryTool(BetaAbstractMemoryTool):
    """The tool for plain code; every refusal is a ToolError, which the model reads."""

    def __init__(self, client: MemoryClient, **more: Any) -> None:
        """Keep the files of the client's user; `cache_control` as of the library's tool."""
        super().__init__(**more)
        self._client = client

    def view(self, command: Any) -> str:
        """Return what a file says, or what a directory holds."""
        return run(self._client, _told(_view(command)))

    def create(self, command: Any) -> str:
        """Make a file that is not there yet."""
        return run(self._client, _told(_create(command)))

    def str_replace(self, command: Any) -> str:
        """Replace the one place in a file that says something."""
        return run(self._client, _told(_str_replace(command)))

    def insert(self, command: Any) -> str:
        """Insert text after a line."""
        return run(self._client, _told(_insert(command)))

    def delete(self, command: Any) -> str:
        """Erase a file, or a directory with all below it, for good."""
        return run(self._client, _told(_delete(command)))

    def rename(self, command: Any) -> str:
        """Give a file or a directory another path, where nothing is."""
        return run(self._client, _told(_rename(command)))

    def clear_all_memory(self) -> str:
        """Erase all files of the user."""
        return run(self._client, _told(_clear()))


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The tool for asyncio; as MemoryTool."""

    def __init__(self, client: AsyncMemoryClient, **more: Any) -> None:
        """Keep the files of the client's user; `cache_control` as of the library's tool."""
        super().__init__(**more)
        self._client = client

    async def view(self, command: Any) -> str:
        """Return what a file says, or what a directory holds."""
        return await arun(self._client, _told(_view(command)))

    async def create(self, command: Any) -> str:
        """Make a file that is not there yet."""
        return await arun(self._client, _told(_create(command)))

    async def str_replace(self, command: Any) -> str:
        """Replace the one place in a file that says something."""
        return await arun(self._client, _told(_str_replace(command)))

    async def insert(self, command: Any) -> str:
        """Insert text after a line."""
        return await arun(self._client, _told(_insert(command)))

    async def delete(self, command: Any) -> str:
        """Erase a file, or a directory with all below it, for good."""
        return await arun(self._client, _told(_delete(command)))

    async def rename(self, command: Any) -> str:
        """Give a file or a directory another path, where nothing is."""
        return await arun(self._client, _told(_rename(command)))

    async def clear_all_memory(self) -> str:
        """Erase all files of the user."""
        return await arun(self._client, _told(_clear()))


def _told(plan: Plan[str]) -> Plan[str]:
    """Let what the daemon refuses be told to the model."""
    try:
        return (yield from plan)
    except Conflict:
        raise ToolError("The file was changed meanwhile; view it again.") from None
    except MemorydError as error:
        raise ToolError(f"{error.reason}: {error.message}") from None


def _path(given: str) -> str:
    """Return the path of a note, as memories/plan.md; ToolError for one that is not below /memories."""
    if given != ROOT and not given.startswith(f"{ROOT}/"):
        raise ToolError(f"Path must start with {ROOT}, got: {given}")
    path = posixpath.normpath(given)
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ToolError(f"Path {given} would escape {ROOT} directory")
    return path.removeprefix("/")


def _note(path: str) -> Plan[Note | None]:
    try:
        note: Note = yield from ask("note", path)
    except NoteNotFound:
        return None
    return note


def _is_directory(path: str) -> Plan[bool]:
    page = yield from ask("notes", f"{path}/", page_size=1)
    return path == ROOT[1:] or bool(page.notes)


def _file(given: str) -> Plan[Note]:
    """Return a file; ToolError where there is none, or a directory."""
    path = _path(given)
    note = yield from _note(path)
    if note is None:
        if (yield from _is_directory(path)):
            raise ToolError(f"The path {given} is not a file.")
        raise ToolError(f"The path {given} does not exist. Please provide a valid path.")
    return note


def _view(command: Any) -> Plan[str]:
    path = _path(command.path)
    note = None if path == ROOT[1:] else (yield from _note(path))
    if note is None:
        if not (yield from _is_directory(path)):
            raise ToolError(f"The path {command.path} does not exist. Please provide a valid path.")
        return (yield from _view_directory(command.path, path))
    lines = note.text.split("\n")
    if len(lines) > MOST_LINES:
        raise ToolError(f"File {command.path} exceeds maximum line limit of 999,999 lines.")
    first, last = 1, len(lines)
    if command.view_range and len(command.view_range) == BOTH_ENDS:
        first = max(1, command.view_range[0])
        last = last if command.view_range[1] == -1 else command.view_range[1]
    shown = "\n".join(_numbered(lines[first - 1 : last], first))
    return f"Here's the content of {command.path} with line numbers:\n{shown}"


def _view_directory(given: str, path: str) -> Plan[str]:
    notes = yield from every_note(f"{path}/", MOST_FILES)
    sizes: dict[tuple[str, ...], str] = {}
    for note in notes:
        parts = note.path.removeprefix(f"{path}/").split("/")
        if any(part.startswith(".") for part in parts[:LEVELS]):
            continue
        for level in range(1, min(len(parts), LEVELS + 1)):
            sizes.setdefault((*parts[:level],), DIRECTORY)
        if len(parts) <= LEVELS:
            sizes[*parts,] = _size(note.now.text_bytes)
    directories = {
        (*parts[:level],)
        for parts in (note.path.removeprefix(f"{path}/").split("/") for note in notes)
        for level in range(1, len(parts))
    }
    lines = [f"{DIRECTORY}\t{given}"]
    for parts in sorted(sizes):
        end = "/" if parts in directories else ""
        lines.append(f"{sizes[parts]}\t{given}/{'/'.join(parts)}{end}")
    listed = "\n".join(lines)
    return f"Here're the files and directories up to 2 levels deep in {given}, excluding hidden items:\n{listed}"


def _create(command: Any) -> Plan[str]:
    path = _path(command.path)
    exists = ToolError(f"File {command.path} already exists")
    if (yield from _is_directory(path)):
        raise exists
    yield from _refuse_file_above(path)
    try:
        yield from ask("put_note", path, command.file_text, expected_revision=0)
    except Conflict:
        raise exists from None
    return f"File created successfully at: {command.path}"


def _refuse_file_above(path: str) -> Plan[None]:
    """Raise ToolError where a part of a path is a file."""
    parts = path.split("/")
    for level in range(2, len(parts)):
        if (yield from _note("/".join(parts[:level]))) is not None:
            raise ToolError(f"The path /{'/'.join(parts[:level])} is a file, not a directory.")


def _str_replace(command: Any) -> Plan[str]:
    note = yield from _file(command.path)
    text, old = note.text, unicodedata.normalize("NFC", command.old_str)  # as a note keeps it
    count = text.count(old) if old else 0
    if not count:
        raise ToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}.")
    if count > 1:
        lines, at = [], text.find(old)
        while at != -1:
            lines.append(str(text.count("\n", 0, at) + 1))
            at = text.find(old, at + 1)
        raise ToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {', '.join(lines)}."
            " Please ensure it is unique"
        )
    changed = text.replace(old, command.new_str)
    yield from ask("put_note", note.path, changed, expected_revision=note.revision)
    line = text.count("\n", 0, text.find(old))
    lines = changed.split("\n")
    first = max(0, line - AROUND)
    shown = "\n".join(_numbered(lines[first : line + AROUND + 1], first + 1))
    return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{shown}"


def _insert(command: Any) -> Plan[str]:
    note = yield from _file(command.path)
    lines = note.text.split("\n")
    if not lines[-1]:
        lines.pop()
    if not 0 <= command.insert_line <= len(lines):
        raise ToolError(
            f"Invalid `insert_line` parameter: {command.insert_line}. It should be within the range [0, {len(lines)}]."
        )
    lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
    text = "\n".join(lines)
    yield from ask("put_note", note.path, text if text.endswith("\n") else f"{text}\n", expected_revision=note.revision)
    return f"The file {command.path} has been edited."


def _delete(command: Any) -> Plan[str]:
    path = _path(command.path)
    if path == ROOT[1:]:
        raise ToolError(f"Cannot delete the {ROOT} directory itself")
    is_file = (yield from _note(path)) is not None
    if not is_file and not (yield from _is_directory(path)):
        raise ToolError(f"The path {command.path} does not exist")
    yield from ask("delete_notes", path, recursive=not is_file, missing_ok=True)
    return f"Successfully deleted {command.path}"


def _rename(command: Any) -> Plan[str]:
    old, new = _path(command.old_path), _path(command.new_path)
    if old == ROOT[1:]:
        raise ToolError(f"Cannot rename the {ROOT} directory itself")
    exists = ToolError(f"The destination {command.new_path} already exists")
    if (yield from _is_directory(new)) or (yield from _note(new)) is not None:
        raise exists
    is_file = (yield from _note(old)) is not None
    if not is_file and not (yield from _is_directory(old)):
        raise ToolError(f"The path {command.old_path} does not exist")
    yield from _refuse_file_above(new)
    try:
        yield from ask("move_note", old, new, recursive=not is_file)
    except Conflict:
        raise exists from None
    return f"Successfully renamed {command.old_path} to {command.new_path}"


def _clear() -> Plan[str]:
    yield from ask("delete_notes", ROOT[1:], recursive=True, missing_ok=True)
    return "All memory cleared"


def _numbered(lines: list[str], first: int) -> list[str]:
    return [f"{number:>{WIDTH}}\t{line}" for number, line in enumerate(lines, first)]


def _size(count: int) -> str:
    """Return a number of bytes as the library's tool writes it: 0B, 12B, 1.5K."""
    value, unit = float(count), "B"
    for unit in ("B", "K", "M", "G"):
        if value < KIBI or unit == "G":
            break
        value /= KIBI
    return f"{value:.0f}{unit}" if value == int(value) else f"{value:.1f}{unit}"
