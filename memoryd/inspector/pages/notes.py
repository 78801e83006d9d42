"""Notes: what programs keep by name, with their former versions."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from starlette.responses import Response

from memoryd.errors import Conflict, InvalidArgument, LimitExceeded, NotFound
from memoryd.inspector.shown_text import MOST_PART
from memoryd.inspector.view import View, in_words_of, mark_of, sent_as
from memoryd.model.note import Note, NotePage

PAGE_SIZE = 100


async def _list(view: View, status: int = 0, error: str = "") -> Response:
    prefix, token = view.asked("prefix"), view.asked("page")
    page = NotePage(())
    with view.asking(prefix="Path begins with"):
        page = await view.client.notes(prefix, shared=view.is_shared, page_size=PAGE_SIZE, page_token=token)
    return view.page(
        "notes.html", status, notes=page.notes, next_token=page.next_page_token, prefix=prefix, error=error
    )


async def _one(view: View, path: str = "", status: int = 200, error: str = "") -> Response:
    path = path or view.asked("path")
    revision, part = view.number("revision"), max(0, view.number("part"))
    note = await view.client.note(path, shared=view.is_shared, revision=revision)
    newest = note if not revision else await view.client.note(path, shared=view.is_shared)
    return view.page(
        "note.html", status, note=note, newest=newest, revision=revision or newest.revision, part=part,
        part_size=MOST_PART, error=error,
    )  # fmt: skip


async def _shown(view: View) -> Response:
    return await _one(view)


async def _add(view: View) -> Response:
    """Write a new note; what was typed stays where it is refused."""
    path = view.form.get("path", "")
    try:
        await view.client.put_note(path, view.form.get("text", ""), shared=view.is_shared, expected_revision=0)
    except Conflict:
        return await _list(view, 409, f"There is a note {path} already; open it to change it.")
    except (InvalidArgument, LimitExceeded) as error:
        return await _list(view, 400, in_words_of(error))
    view.say("the note is kept")
    return view.to(view.url("notes/one", path=path))


async def _change(view: View) -> Response:
    """Change a note; when it expires, and whether searches find it, stays as it is."""
    path, text = view.form.get("path", ""), view.form.get("text", "")
    kept = await view.client.note(path, shared=view.is_shared)
    if text == sent_as(kept.text):
        view.say("it says that already")
        return view.to(view.url("notes/one", path=path))
    if "\r\n" in kept.text and "\n" not in kept.text.replace("\r\n", ""):
        text = text.replace("\n", "\r\n")  # the ends of lines stay as they are
    try:
        content = _content(text, is_json=kept.now.is_json)
        put = await view.client.put_note(path, content, shared=view.is_shared, **_settings(kept, view.sources.now()))
    except ValueError:
        return await _one(view, path, 400, "That is not JSON.")
    except Conflict:
        return await _one(view, path, 409, "It was changed meanwhile: below is what it says now, and what you typed.")
    except (InvalidArgument, LimitExceeded) as error:
        return await _one(view, path, 400, in_words_of(error))
    changed = put.revision != kept.revision
    view.say("the note is kept; its former versions are below it" if changed else "it says that already")
    return view.to(view.url("notes/one", path=path))


def _content(text: str, *, is_json: bool) -> Any:
    """Return what is put; ValueError for what is no JSON, InvalidArgument for a text where a value was."""
    content = json.loads(text) if is_json else text
    if is_json and isinstance(content, str):
        raise InvalidArgument("a text in quotes alone is kept as text; write an object, a list or a number")
    return content


def _settings(kept: Note, now: datetime) -> dict[str, Any]:
    """Return with what a note is put again, so that all but its text stays."""
    expires: dict[str, Any] = {}
    if kept.expire_after_access_s:
        expires["expire_after_access_s"] = kept.expire_after_access_s
    elif kept.expire_time is not None:
        expires["expire_after_s"] = max(1, round((kept.expire_time - now).total_seconds()))
    return {"is_searched": kept.is_searched, "expected_revision": kept.revision, **expires}


async def _put(view: View) -> Response:
    if view.form.get("revision", "") == "0":
        return await _add(view)
    wanted = view.form.get("revision", "")
    try:
        kept = await view.client.note(view.form.get("path", ""), shared=view.is_shared)
    except NotFound:
        return await _list(view, 404, "The note was erased meanwhile. What you typed is below; add it to keep it.")
    if wanted != str(kept.revision):
        message = "It was changed meanwhile: below is what it says now, and what you typed."
        return await _one(view, kept.path, 409, message)
    return await _change(view)


async def _preview(view: View) -> Response:
    return await _asked(view, view.asked("path"))


async def _asked(view: View, path: str) -> Response:
    gone = await view.client.delete_notes(path, shared=view.is_shared, dry_run=True)
    note = await view.client.note(path, shared=view.is_shared)
    return view.page("delete_note.html", gone=gone, path=path, note=note, mark=mark_of(note.revision, note.id))


async def _delete(view: View) -> Response:
    path = view.form.get("path", "")
    note = await view.client.note(path, shared=view.is_shared)
    if not view.is_as_shown(mark_of(note.revision, note.id)):
        return await _asked(view, path)
    gone = await view.client.delete_notes(path, shared=view.is_shared)
    view.say("erased the note for good" if gone.deleted_count == 1 else f"erased {gone.deleted_count} notes for good")
    return view.back("notes")


ROUTES = (
    ("GET", "notes", _list),
    ("GET", "notes/one", _shown),
    ("POST", "notes/put", _put),
    ("GET", "notes/delete", _preview),
    ("POST", "notes/delete", _delete),
)
