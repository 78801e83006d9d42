"""Jobs: what runs in the background, how it went, and what could not be learnt from."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from memoryd.inspector.drawing import size
from memoryd.inspector.view import View, number
from memoryd.model.work import Run

RUNS = 30
NAMES = {"transaction": "up to transaction"}
"""What is counted, in other words than its name."""


async def _show(view: View) -> Response:
    jobs, runs, parked = await asyncio.gather(
        view.host.jobs(), view.host.job_runs(job=view.asked("job"), page_size=RUNS), view.host.parked_threads()
    )
    return view.page("jobs.html", jobs=jobs, runs=runs, parked=parked, chosen=view.asked("job"), outcome=_outcome)


def _outcome(run: Run) -> list[str]:
    """Return in words what came of a run: what was before stands before what is after."""
    counts = sorted(run.counts.items(), key=lambda each: (not each[0].startswith("before"), each[0]))
    grew = run.counts.get("after_bytes", 0) > run.counts.get("before_bytes", 0)
    told = ["it grew, as a small database has little to give back"] if grew else []
    return told + [
        f"{name.removesuffix('_bytes')} {size(count)}"
        if name.endswith("_bytes")
        else f"{NAMES.get(name, name.replace('_', ' '))} {number(count)}"
        for name, count in counts
    ]


async def _run(view: View) -> Response:
    dry_run = bool(view.form.get("dry_run"))
    run = await view.host.run_job(view.form.get("job", ""), dry_run=dry_run)
    view.say(f"{run.job} {'is tried' if dry_run else 'runs'}; its run is below")
    return view.back("jobs", job=run.job)


async def _cancel(view: View) -> Response:
    run = await view.host.cancel_job_run(view.form.get("run", ""))
    is_asked = run.stop_requested and run.state.value == "running"
    view.say(f"the run of {run.job} is {'asked to stop, at another daemon' if is_asked else run.state.value}")
    return view.back("jobs", job=run.job)


async def _retry(view: View) -> Response:
    count = await view.host.retry_parked_threads()
    view.say(f"{count} threads are tried again")
    return view.back("jobs")


ROUTES = (
    ("GET", "jobs", _show),
    ("POST", "jobs/run", _run),
    ("POST", "jobs/cancel", _cancel),
    ("POST", "jobs/retry", _retry),
)
