"""Grants: who may do what, what came through each, and their end."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from memoryd.errors import NotFound
from memoryd.inspector.view import View
from memoryd.model.grant import GrantStatus, permission_names

PAGE_SIZE = 100


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


async def _preview(view: View) -> Response:
    gone, erased, written = await asyncio.gather(
        view.host.delete_grant_memories(view.part("id"), dry_run=True),
        view.host.delete_grant_memories(view.part("id"), dry_run=True, purge=True),
        view.host.grant_memories(view.part("id"), page_size=50, include_deleted=True),
    )
    return view.page(
        "clean_grant.html",
        gone=gone,
        erased_count=erased.deleted_count,
        grant_id=view.part("id"),
        memories=written.memories,
        more=bool(written.next_page_token),
    )


async def _clean(view: View) -> Response:
    purge = bool(view.form.get("purge"))
    gone = await view.host.delete_grant_memories(view.part("id"), purge=purge)
    count = "1 memory" if gone.deleted_count == 1 else f"{gone.deleted_count} memories"
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
