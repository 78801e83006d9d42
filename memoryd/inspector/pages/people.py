"""The people of an owner, as a picture and as a table, and what can be said of one."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import combinations

from memory_client import EntityType
from starlette.responses import Response

from memoryd.errors import InvalidArgument
from memoryd.inspector.graph import Person, drawn
from memoryd.inspector.view import View, mark_of
from memoryd.model.reports import ForgottenPerson

IN_PICTURE = 24  # people; more would cover each other
READ = 30  # memories of each that are looked through for who is named together
PAGE_SIZE = 100
TYPES = [kind.value for kind in EntityType if kind not in {EntityType.EMAIL, EntityType.URL}]


async def _show(view: View) -> Response:
    if view.typed("name"):
        with view.asking(name="Who is called"):
            found = await view.client.entity(view.typed("name"), limit=1)
            return view.to(view.item_url("people", found.entity.id))
    page = await view.client.people(page_size=PAGE_SIZE, page_token=view.asked("page"))
    pictured = page.people[:IN_PICTURE] if not view.asked("page") else ()
    known = await asyncio.gather(*(view.client.entity(person.id, limit=READ) for person in pictured))
    pairs: dict[tuple[str, str], set[str]] = {}
    ids = {person.id for person in pictured}
    for one in known:
        for memory in one.memories:
            named = sorted({ref.id for ref in memory.entities} & ids)
            for pair in combinations(named, 2):
                pairs.setdefault(pair, set()).add(memory.id)
    together = Counter({pair: len(memories) for pair, memories in pairs.items()})
    picture = None
    if pictured:
        points = [
            Person(one.id, one.name, view.item_url("people", one.id), ", ".join(one.relations), one.mention_count)
            for one in pictured
        ]
        picture = drawn(view.whose.name, points, together)
    names = {person.id: person.name for person in pictured}
    return view.page(
        "people.html",
        people=page.people,
        next_token=page.next_page_token,
        picture=picture,
        together=[(names[one], names[other], count) for (one, other), count in together.most_common(20)],
        in_picture=len(pictured),
        read=READ,
    )


async def _one(view: View, status: int = 200, error: str = "") -> Response:
    found = await view.client.entity(view.part("id"), limit=100)
    others = await view.client.people(page_size=PAGE_SIZE)
    return view.page(
        "person.html",
        status,
        error=error,
        person=found.entity,
        memories=found.memories,
        others=[other for other in others.people if other.id != found.entity.id],
        more_people=bool(others.next_page_token),
        types=TYPES,
    )


async def _show_one(view: View) -> Response:
    return await _one(view)


def _told_and_button(view: View) -> tuple[str, str]:
    """Return how a change is told, and what the button is called that takes it back."""
    if not view.form.get("undoes"):
        return "now", "Undo"
    return "again", "Undo" if view.form.get("was") == "Redo" else "Redo"


async def _rename(view: View) -> Response:
    former = (await view.client.entity(view.part("id"), limit=1)).entity
    if (changed := view.form.get("undoes", "")) and changed != former.name:
        view.say(f"the name is {former.name} meanwhile, and stays", tone="fault")
        return view.to(view.item_url("people", former.id))
    try:
        entity = await view.client.rename_entity(former.id, view.form.get("name", ""))
    except InvalidArgument as error:
        if " is called " not in error.message:
            raise
        taken = "Someone else has that name. Join the two below if they are one, else take a fuller name."
        return await _one(view, 400, taken)
    undo = view.item_url("people", entity.id, "rename")
    again, button = _told_and_button(view)
    told = f"the name is {entity.name} {again}"
    view.say(told, undo=undo, button=button, name=former.name, undoes=entity.name, was=button)
    return view.to(view.item_url("people", entity.id))


async def _set_type(view: View) -> Response:
    wanted = view.form.get("type", "")
    if wanted not in TYPES:
        raise InvalidArgument(f"type is {wanted[:40]!r}; it must be one of {', '.join(TYPES)}", field="type")
    former = (await view.client.entity(view.part("id"), limit=1)).entity
    if (changed := view.form.get("undoes", "")) and changed != former.type.value:
        view.say(f"the type is {former.type.value} meanwhile, and stays", tone="fault")
        return view.to(view.item_url("people", former.id))
    entity = await view.client.set_entity_type(former.id, EntityType(wanted))
    again, button = _told_and_button(view)
    undo = view.item_url("people", entity.id, "type") if former.type.value in TYPES else ""
    told = f"the type is {entity.type.value} {again}"
    view.say(told, undo=undo, button=button, type=former.type.value, undoes=entity.type.value, was=button)
    return view.to(view.item_url("people", entity.id))


async def _merge(view: View) -> Response:
    done = await view.client.merge_entities(view.part("id"), view.form.get("into", ""))
    view.say("the two are one now", undo=view.item_url("people", done.merged_id, "unmerge"))
    return view.to(view.item_url("people", done.entity.id))


async def _unmerge(view: View) -> Response:
    entity = await view.client.unmerge_entity(view.part("id"))
    view.say("the two are apart again")
    return view.to(view.item_url("people", entity.id))


async def _part(view: View) -> Response:
    """Take a name apart that was only guessed to be the same one's."""
    alias = view.form.get("alias", "")
    entity = await view.client.unmerge_entity(alias)
    view.say(f"{alias} is someone of their own now")
    return view.to(view.item_url("people", entity.id))


async def _preview(view: View) -> Response:
    return await _asked(view, with_messages=bool(view.asked("with_messages")))


def _mark(told: ForgottenPerson) -> str:
    """Return a mark of what would be erased with a person."""
    return mark_of(told.purged_count, told.purged_ids, told.message_count, told.message_ids, told.note_paths,
                   told.thread_ids, told.in_working_memory)  # fmt: skip


async def _asked(view: View, *, with_messages: bool) -> Response:
    told = await view.client.forget_person(view.part("id"), with_messages=with_messages, dry_run=True)
    names = [name.casefold() for name in (told.entity.name, *told.entity.aliases)]
    waiting = await view.host.proposals(user_id=view.whose.user_id, chat_id=view.whose.chat_id, page_size=1000)
    return view.page(
        "forget_person.html",
        told=told,
        with_messages=with_messages,
        mark=_mark(told),
        waiting=[one for one in waiting if any(name in one.content.casefold() for name in names)],
    )


async def _forget(view: View) -> Response:
    with_messages = bool(view.form.get("with_messages"))
    seen = await view.client.forget_person(view.part("id"), with_messages=with_messages, dry_run=True)
    if not view.is_as_shown(_mark(seen)):
        return await _asked(view, with_messages=with_messages)
    told = await view.client.forget_person(view.part("id"), with_messages=with_messages)
    memories = "1 memory is" if told.purged_count == 1 else f"{told.purged_count} memories are"
    also = {
        "messages": told.message_count, "notes that named them, or former versions of them": len(told.note_paths),
        "conversations whose summary or working memory is emptied": len(told.thread_ids),
        "working memory of the user or chat, emptied": int(told.in_working_memory),
    }  # fmt: skip
    said = "".join(f"; {what}: {count}" for what, count in also.items() if count and told.with_messages)
    view.say(f"forgot {told.entity.name}: {memories} erased for good{said}")
    return view.back("people")


ROUTES = (
    ("GET", "people", _show),
    ("GET", "people/{id}", _show_one),
    ("POST", "people/{id}/rename", _rename),
    ("POST", "people/{id}/type", _set_type),
    ("POST", "people/{id}/merge", _merge),
    ("POST", "people/{id}/unmerge", _unmerge),
    ("POST", "people/{id}/part", _part),
    ("GET", "people/{id}/forget", _preview),
    ("POST", "people/{id}/forget", _forget),
)
