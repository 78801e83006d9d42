"""Reading files of other systems, and what their items say."""

from __future__ import annotations

from memoryd.cli.importers.formats import format_of, reader_of
from memoryd.cli.importers.items import Kept, Said, Skipped, Statement
from memoryd.cli.importers.source import Source


def read(path, name: str = ""):
    source = Source(path)
    return list(reader_of(name or format_of(source))(source))


def shown(items) -> list[tuple]:
    """Return what items say: of a statement its id and text, of a message thread, role and text, of a note its path."""
    found = []
    for item in items:
        if isinstance(item, Statement):
            found.append((item.draft.external_id, item.draft.draft.content))
        elif isinstance(item, Said):
            found.append((item.thread_id, item.draft.role.value, item.draft.content))
        elif isinstance(item, Kept):
            found.append((item.note.draft.path,))
    return found


def reasons(items) -> list[str]:
    return sorted(item.reason for item in items if isinstance(item, Skipped))
