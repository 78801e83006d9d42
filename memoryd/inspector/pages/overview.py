"""The overview: what runs, how it fares, and whose memories there are."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from memoryd.inspector.view import View, Whose

OWNERS = 100  # that are listed


async def _show(view: View) -> Response:
    info, owners, jobs = await asyncio.gather(
        view.host.server_info(), view.host.list_owners(limit=OWNERS), view.host.jobs()
    )
    rows = [(owner, Whose(owner.agent_id, owner.user_id, owner.chat_id)) for owner in owners.owners]
    if rows and not view.session.whose.is_known:
        view.session.whose = rows[0][1]
    figures = view.sources.figures
    latest = figures.latest
    return view.page(
        "overview.html",
        info=info,
        rows=rows,
        owner_count=owners.owner_count,
        failed=[job for job in jobs if job.last_run is not None and job.last_run.state.value == "failed"],
        parked=sum(job.parked_count for job in jobs),
        lag_s=latest and latest.total("memoryd_learning_lag_seconds"),
        free_bytes=latest and latest.total("memoryd_disk_free_bytes"),
        most=max((owner.content_bytes for owner, _ in rows), default=0) or 1,
    )


ROUTES = (("GET", "", _show),)
