"""The notes of a client without a wire: the use cases, called as the service calls them."""

from __future__ import annotations

from dataclasses import replace

from memoryd.domain.notes.erase import delete_notes, move_notes
from memoryd.domain.notes.keep import get_note, list_notes, put_note
from memoryd.model.note import NoteDraft


class LocalNotes:
    """Methods as of `memory_client.AsyncNotes`."""

    async def put_note(self, path, content, *, shared=False, **more):
        draft = NoteDraft.of(path, content, **more)
        note, _ = await put_note(draft, self._caller, self.ports, shared=shared, now=self.clock())
        return note

    async def note(self, path, *, shared=False, revision=0):
        found, version = await get_note(
            path, self._caller, self.ports, shared=shared, now=self.clock(), revision=revision
        )
        others = [one for one in found.versions if one.revision != version.revision]
        return replace(found, versions=(version, *others))

    async def notes(self, prefix="", *, shared=False, **more):
        return await list_notes(self._caller, self.ports, shared=shared, now=self.clock(), prefix=prefix, **more)

    async def all_notes(self, prefix="", *, page_size=100, **more):
        token = ""
        while True:
            page = await self.notes(prefix, page_size=page_size, page_token=token, **more)
            for note in page.notes:
                yield note
            token = page.next_page_token
            if not token:
                return

    async def delete_notes(self, path, *, shared=False, **more):
        return await delete_notes(path, self._caller, self.ports, shared=shared, now=self.clock(), **more)

    async def move_note(self, path, new_path, *, shared=False, recursive=False):
        return await move_notes(
            path, new_path, self._caller, self.ports, shared=shared, now=self.clock(), recursive=recursive
        )
