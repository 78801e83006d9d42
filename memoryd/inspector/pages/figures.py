"""How long calls take, how many there are, and what waits, while the inspector looked."""

from __future__ import annotations

from starlette.responses import Response

from memoryd.inspector.figures import PLOTS
from memoryd.inspector.view import View

FOLLOW_S = 5


async def _show(view: View) -> Response:
    figures = view.sources.figures
    return view.page(
        "figures.html",
        plots=[(plot.title, plot.unit, figures.lines(n)) for n, plot in enumerate(PLOTS)],
        times=figures.times,
        fault=figures.fault,
        follow_s=FOLLOW_S if view.asked("follow") else 0,
    )


ROUTES = (("GET", "figures", _show),)
