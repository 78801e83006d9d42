"""Notes: what programs keep by name, with their former versions."""

from __future__ import annotations

from starlette.responses import Response

from memoryd.inspector.view import View

PAGE_SIZE = 100


async def _show(view: View) -> Response:
    if not view.whose.is_known:
        return view.page("choose.html")
    prefix = view.asked("prefix")
    page = await view.client.notes(prefix, shared=view.is_shared, page_size=PAGE_SIZE, page_token=view.asked("page"))
    return view.page("notes.html", notes=page.notes, next_token=page.next_page_token, prefix=prefix)


async def _one(view: View) -> Response:
    path, revision = view.asked("path"), view.number("revision")
    note = await view.client.note(path, shared=view.is_shared, revision=revision)
    return view.page("note.html", note=note, revision=revision or note.revision)


async def _put(view: View) -> Response:
    path = view.form.get("path", "")
    revision = view.form.get("revision", "")
    await view.client.put_note(
        path, view.form.get("text", ""), shared=view.is_shared,
        expected_revision=int(revision) if revision.isdecimal() else None,
    )  # fmt: skip
    view.say("the note is kept; its former versions are below it")
    return view.to(view.url("notes/one", path=path))


async def _delete(view: View) -> Response:
    path, sure = view.form.get("path", ""), bool(view.form.get("sure"))
    gone = await view.client.delete_notes(path, shared=view.is_shared, dry_run=not sure)
    if not sure:
        return view.page("delete_note.html", gone=gone, path=path)
    view.say(f"erased {gone.deleted_count} notes for good")
    return view.back("notes")


ROUTES = (
    ("GET", "notes", _show),
    ("GET", "notes/one", _one),
    ("POST", "notes/put", _put),
    ("POST", "notes/delete", _delete),
)
