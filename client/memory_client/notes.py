# Generated from aio_notes.py by `make client`: change that file instead.
"""The plain client's methods for notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from memory_client.endpoint import Identity
from memory_client.late import Late

if TYPE_CHECKING:
    from memory_client import note_calls
    from memory_client.calls import Call
    from memoryd.model import note as note_values
    from memoryd.model.note import DeletedNotes, MovedNotes, Note, NotePage
else:
    note_calls, note_values = Late("memory_client.note_calls"), Late("memoryd.model.note")

__all__ = ["Notes"]

T = TypeVar("T")


class Notes:
    """
    One method an RPC of NoteService: named texts or JSON values, by path.

    A note is one of the user; with `shared`, of the chat.
    """

    identity: Identity

    def _send(self, call: Call[T]) -> T:
        raise NotImplementedError

    def put_note(
        self,
        path: str,
        content: Any,
        *,
        shared: bool = False,
        expire_after_s: int = 0,
        expire_after_access_s: int = 0,
        is_searched: bool = False,
        expected_revision: int | None = None,
    ) -> Note:
        """
        Put a note: a text, or any other value as JSON; return it without its content.

        It expires so many seconds after it was put, or was last read; 0 means never. With expected_revision it is put
        only where it has that revision, 0: where there is none; else Conflict. With is_searched `search` finds it where
        its filter names Kind.NOTE.
        """
        draft = note_values.NoteDraft.of(
            path,
            content,
            expire_after_s=expire_after_s,
            expire_after_access_s=expire_after_access_s,
            is_searched=is_searched,
            expected_revision=expected_revision,
        )
        return self._send(note_calls.put_note(self.identity, draft, shared=shared))

    def note(self, path: str, *, shared: bool = False, revision: int = 0) -> Note:
        """Return a note, or one of its last ten versions: `text`, and `value` where it is JSON; NoteNotFound."""
        return self._send(note_calls.get_note(self.identity, path, shared=shared, revision=revision))

    def notes(
        self,
        prefix: str = "",
        *,
        shared: bool = False,
        page_size: int = 0,
        page_token: str = "",
        with_content: bool = False,
    ) -> NotePage:
        """Return one page of the notes whose path begins so, by path; page_size 0 means 20."""
        call = note_calls.list_notes(
            self.identity,
            prefix,
            shared=shared,
            page_size=page_size,
            page_token=page_token,
            with_content=with_content,
        )
        return self._send(call)

    def all_notes(
        self, prefix: str = "", *, shared: bool = False, page_size: int = 100, with_content: bool = False
    ) -> Iterator[Note]:
        """Yield every note whose path begins so, by path, fetching page after page."""
        token = ""
        while True:
            page = self.notes(
                prefix, shared=shared, page_size=page_size, page_token=token, with_content=with_content
            )
            for note in page.notes:
                yield note
            token = page.next_page_token
            if not token:
                return

    def delete_notes(
        self,
        path: str,
        *,
        shared: bool = False,
        recursive: bool = False,
        missing_ok: bool = False,
        dry_run: bool = False,
    ) -> DeletedNotes:
        """Erase a note for good, recursive also all below its path ("": all); with dry_run only tell what goes."""
        call = note_calls.delete_notes(
            self.identity, path, shared=shared, recursive=recursive, missing_ok=missing_ok, dry_run=dry_run
        )
        return self._send(call)

    def move_note(self, path: str, new_path: str, *, shared: bool = False, recursive: bool = False) -> MovedNotes:
        """Give a note another path, recursive also all below it; its versions go with it."""
        call = note_calls.move_note(self.identity, path, new_path, shared=shared, recursive=recursive)
        return self._send(call)
