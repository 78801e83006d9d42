"""Backups, each with its proof."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from memoryd.inspector.view import View
from memoryd.store.refusal import StoreRefused


async def _show(view: View) -> Response:
    info = await view.host.server_info()
    fault = ""
    chains = []
    if info.backup_path:
        try:
            chains = list(await asyncio.to_thread(view.sources.backups, info.backup_path))
        except (OSError, StoreRefused) as error:
            fault = str(error)
    return view.page("backups.html", info=info, chains=chains, fault=fault)


ROUTES = (("GET", "backups", _show),)
