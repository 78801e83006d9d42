"""Grants: who may do what, what came through each, and their end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.responses import Response

from memoryd.errors import NotFound
from memoryd.inspector.view import View, mark_of
from memoryd.model.grant import GrantStatus, permission_names
from memoryd.model.memory import ShownMemory

PAGE_SIZE = 100
MOST_REPLACED = 50  # that are shown
MOST_TOLD = 10  # that are offered to be taken back at once


async def _show(view: View) -> Response:
    page = await view.host.grants(
        page_size=PAGE_SIZE, page_token=view.asked("page"), include_ended=bool(view.asked("all"))
    )
    return view.page("grants.html", grants=page.grants, next_token=page.next_page_token, names=permission_names)


async def _status(view: View) -> GrantStatus:
    """Return the grant that the path names."""
    grant_id = view.part("id")
    status = None
    token = ""
    while status is None:
        grants = await view.host.grants(page_size=1000, page_token=token, include_ended=True)
        status = next((one for one in grants.grants if one.grant.id == grant_id), None)
        token = grants.next_page_token
        if not token:
            break
    if status is None:
        raise NotFound(f"there is no grant {grant_id[:40]!r}", field="grant_id")
    return status


async def _one(view: View) -> Response:
    status = await _status(view)
    written = await view.host.grant_memories(
        status.grant.id, page_size=50, page_token=view.asked("page"), include_deleted=bool(view.asked("deleted"))
    )
    return view.page(
        "grant.html",
        status=status,
        grant=status.grant,
        names=permission_names,
        memories=written.memories,
        next_token=written.next_page_token,
    )


async def _ask_to_revoke(view: View) -> Response:
    return view.page("revoke_grant.html", grant=(await _status(view)).grant)


async def _revoke(view: View) -> Response:
    grant = await view.host.revoke_grant(view.part("id"))
    view.say(f"revoked {grant.id[:8]}: {'its socket is closed' if grant.listener else 'its tokens count no longer'}")
    return view.to(view.item_url("grants", grant.id))


async def _replaced(view: View, ids: Sequence[str]) -> list[ShownMemory]:
    """Return the memories that those of the grant had replaced, as far as its user or its chats have them."""
    if not ids:
        return []
    grant = (await _status(view)).grant
    scopes = [{"user_id": grant.user_id, "chat_id": ""}] if grant.user_id else []
    scopes += [{"user_id": "", "chat_id": chat_id} for chat_id in grant.chat_ids]
    clients = [view.host.acting_for(agent_id=grant.agent_id, **scope) for scope in scopes]
    found = await asyncio.gather(*(client.get(one) for client in clients for one in ids), return_exceptions=True)
    return [memory for memory in found if isinstance(memory, ShownMemory)]


async def _preview(view: View) -> Response:
    """Show what a clean-up would do, also where another one was shown before."""
    gone, erased, written = await asyncio.gather(
        view.host.delete_grant_memories(view.part("id"), dry_run=True),
        view.host.delete_grant_memories(view.part("id"), dry_run=True, purge=True),
        view.host.grant_memories(view.part("id"), page_size=50, include_deleted=True),
    )
    return view.page(
        "clean_grant.html",
        gone=gone,
        replaced=await _replaced(view, gone.superseded_ids[:MOST_REPLACED]),
        mark=mark_of(gone.deleted_count, gone.superseded_ids, erased.deleted_count),
        erased_count=erased.deleted_count,
        grant_id=view.part("id"),
        memories=written.memories,
        more=bool(written.next_page_token),
    )


async def _clean(view: View) -> Response:
    purge = bool(view.form.get("purge"))
    seen, erased = await asyncio.gather(
        view.host.delete_grant_memories(view.part("id"), dry_run=True),
        view.host.delete_grant_memories(view.part("id"), dry_run=True, purge=True),
    )
    if not view.is_as_shown(mark_of(seen.deleted_count, seen.superseded_ids, erased.deleted_count)):
        return await _preview(view)
    gone = await view.host.delete_grant_memories(view.part("id"), purge=purge)
    here = view.item_url("grants", view.part("id"))
    count = "1 memory" if gone.deleted_count == 1 else f"{gone.deleted_count} memories"
    for one in await _replaced(view, gone.superseded_ids[:MOST_TOLD]):
        back = view.item_url(
            "memories", one.id, "restore",
            agent=one.agent_id, user=one.scope.user_id or "", chat=one.scope.chat_id or "",
        )  # fmt: skip
        view.say(f"still replaced by what went: {one.content[:200]}", undo=back, button="Take back", back=here)
    view.say(f"{'erased' if purge else 'deleted'} {count} that came through it; its messages and notes stay")
    return view.to(view.item_url("grants", view.part("id")))


ROUTES = (
    ("GET", "grants", _show),
    ("GET", "grants/{id}", _one),
    ("GET", "grants/{id}/revoke", _ask_to_revoke),
    ("POST", "grants/{id}/revoke", _revoke),
    ("GET", "grants/{id}/clean", _preview),
    ("POST", "grants/{id}/clean", _clean),
)
