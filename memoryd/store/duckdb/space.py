"""The free space of the disk, and how much of it a commit needs: what takes back goes on longest."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from memoryd.errors import Unavailable
from memoryd.model.change import PURGE, ChangeSet
from memoryd.store.duckdb.files import beside
from memoryd.store.duckdb.reserve import RESERVE, Reserve

__all__ = ["LEAST_FREE_BYTES", "FreeSpace", "needed_bytes"]

LEAST_FREE_BYTES = 1 << 20  # without it nothing is written, not even a delete


class FreeSpace:
    """The space of the disk that a database lies on."""

    def __init__(self, path: Path, min_free_bytes: int) -> None:
        """Below min_free_bytes nothing is added; a delete may use what is kept back for it next to the database."""
        self._path, self.min_free_bytes = path, min_free_bytes
        self._reserve = Reserve(beside(path, RESERVE), min_free_bytes)

    @property
    def bytes(self) -> int:
        """How much is free; OSError where the file system does not answer."""
        return shutil.disk_usage(self._path.parent).free

    @property
    def known_bytes(self) -> int | None:
        """How much is free; None where the file system does not answer."""
        try:
            return self.bytes
        except OSError:
            return None

    def has_room(self, size: int = 0) -> bool:
        """Whether so much can be taken, and what must stay free is free; not where the disk does not answer."""
        free = self.known_bytes
        return free is not None and free >= self.min_free_bytes + size

    @property
    def is_short(self) -> bool:
        """Whether so little is left that what can wait has to stop, before anybody is refused a change."""
        free = self.known_bytes
        return free is not None and free < max(self.min_free_bytes // 2, LEAST_FREE_BYTES)

    @property
    def warning(self) -> str:
        """What is refused for want of space, and what to do; empty where there is enough."""
        try:
            free = self.bytes
        except OSError as error:
            return f"the disk of {self._path.parent} does not tell its free space ({error.strerror})"
        if free >= max(self.min_free_bytes, LEAST_FREE_BYTES):
            return ""
        return (
            f"the disk of {self._path.parent} has {free >> 20} MiB free: below {self.min_free_bytes >> 20} MiB"
            " (store.min_free_bytes) nothing is added; free some space"
        )

    def keep_reserve(self) -> None:
        """Keep space back for deletes, where there is enough."""
        self._reserve.take(self.bytes)

    def check(self, commits: Sequence[Sequence[ChangeSet]]) -> None:
        """Raise Unavailable where commits do not fit; what is kept back is given up for those that take back."""
        free, needed = self.bytes, needed_bytes(commits, self.min_free_bytes)
        if free < needed <= LEAST_FREE_BYTES:
            self._reserve.release()
            free = self.bytes
        if free < needed:
            raise Unavailable(
                f"the disk has {free >> 20} MiB free and memoryd keeps {needed >> 20} MiB (store.min_free_bytes);"
                " nothing was written; free some space"
            )


def needed_bytes(commits: Sequence[Sequence[ChangeSet]], min_free_bytes: int) -> int:
    """Return how many bytes must be free for commits to be written together."""
    changes = [change for together in commits for change in together]
    if any(_grows(change) or any(grant.revoke_time is None for grant in change.grants) for change in changes):
        return min_free_bytes
    if all(any(map(_takes_back, together)) for together in commits):
        return min(min_free_bytes, LEAST_FREE_BYTES)
    return min_free_bytes // 4  # what is changed goes on longer than what is added


def _grows(change: ChangeSet) -> bool:
    """Whether a change adds texts or vectors; one that erases writes what is left of a thread, which is less."""
    talk = change.conversation
    if talk is None:
        return bool(change.inserts or change.embeddings or any(note.texts for note in change.notes))
    told = talk.messages or talk.embeddings or ((talk.threads or talk.working_memory) and not _erases(change))
    return bool(change.inserts or change.embeddings or told)


def _erases(change: ChangeSet) -> bool:
    """Whether a change erases for good."""
    return bool(PURGE in change.marks or change.erased or change.purge_owner is not None or change.purges)


def _takes_back(change: ChangeSet) -> bool:
    """Whether a change takes something back: memories, messages, people, or what a grant allows."""
    taken = change.grants or change.forget_grants or change.forget_entities or change.tombstones or change.decided
    talk = change.conversation
    said = talk is not None and (talk.purge_messages or talk.purge_threads or talk.purge_all)
    gone = _erases(change) or any(entry.memory.delete_time is not None for entry in change.updates)
    return bool(taken or said or gone)
