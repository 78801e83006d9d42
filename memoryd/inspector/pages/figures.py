"""How long calls take, how many there are, and what waits, since the inspector was started."""

from __future__ import annotations

from starlette.responses import Response

from memoryd.inspector.view import View

METHODS = ("SearchMemories", "AddMemory", "BuildContext")
QUEUES = ("writer", "store_read", "embed_query", "embed_document")
FOLLOW_S = 5


async def _show(view: View) -> Response:
    figures = view.sources.figures
    plots = [
        (
            "How long calls took, of 95 in 100",
            "ms",
            [(name, figures.quantiles(0.95, rpc_method=name)) for name in METHODS],
        ),
        (
            "Calls a second",
            "",
            [(name, figures.rates("rpc_server_call_duration_seconds_count", rpc_method=name)) for name in METHODS],
        ),
        (
            "What waits for a thread",
            "",
            [(name.replace("_", " "), figures.levels("memoryd_queue_depth", queue=name)) for name in QUEUES],
        ),
        (
            "How long a transaction took, of 95 in 100",
            "ms",
            [("commit", figures.quantiles(0.95, "memoryd_writer_commit_seconds"))],
        ),
        (
            "The longest wait for the event loop in the last minute",
            "ms",
            [("event loop", figures.levels("memoryd_loop_lag_max_seconds", 1e3))],
        ),
        (
            "What has no vector yet",
            "",
            [(kind, figures.levels("memoryd_unembedded", kind=kind)) for kind in ("memory", "message")],
        ),
        ("Memories that are stored", "", [("memories", figures.levels("memoryd_memories"))]),
        ("Bytes of the database", "B", [("bytes", figures.levels("memoryd_store_bytes"))]),
    ]
    return view.page(
        "figures.html",
        plots=plots,
        times=figures.times,
        fault=figures.fault,
        follow_s=FOLLOW_S if view.asked("follow") else 0,
    )


ROUTES = (("GET", "figures", _show),)
