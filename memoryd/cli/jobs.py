"""What `memoryd` shows and begins of the daemon's own work: jobs, consolidate, reflect."""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from typing import Any

from memory_cli.common import at_least_one
from memory_cli.output import as_json, list_json, moment, one_line

from memoryd.cli.command import Client, add_command
from memoryd.model.work import Run, RunState

__all__ = ["add_job_commands"]

TICK_S = 0.5
BAR = 40  # characters
ENDED_WELL = frozenset([RunState.DONE, RunState.CANCELLED])


def add_job_commands(commands: Any, common: argparse.ArgumentParser, client: Client) -> None:
    """Add the commands to a parser; `client` opens a client of the running daemon."""
    command = partial(add_command, common=common, client=client)

    def runs(parser: Any) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only tell what it would do")
        parser.add_argument("--no-wait", action="store_true", help="begin, and return at once")

    jobs = commands.add_parser(
        "jobs",
        help="the daemon's own work: what runs when, and how it went",
        description="Show, start, and cancel the daemon's own work.",
        epilog="examples:\n  memoryd jobs list\n  memoryd jobs run decay --dry-run\n  memoryd jobs retry\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = jobs.add_subparsers(dest="action", metavar="ACTION", required=True)
    command(actions, "list", "list the jobs, and the threads that could not be learnt from",
            "  memoryd jobs list\n  memoryd jobs list --json\n", _list)  # fmt: skip
    show = command(actions, "show", "show the last runs of a job, or one run",
                   "  memoryd jobs show decay\n  memoryd jobs show k3j5x2abcdefghijklmnopqrst\n", _show)  # fmt: skip
    show.add_argument("what", metavar="JOB|RUN", help="a job, or the id of a run")
    show.add_argument("-n", "--limit", metavar="N", type=at_least_one, default=20, help="how many runs (20)")
    run = command(actions, "run", "run a job now; it goes on if you stop watching",
                  "  memoryd jobs run extraction\n  memoryd jobs run decay --dry-run\n", _run)  # fmt: skip
    run.add_argument("job", metavar="JOB", help="see: memoryd jobs list")
    runs(run)
    retry = command(actions, "retry", "try again the threads that could not be learnt from",
                    "  memoryd jobs retry\n  memoryd jobs retry --thread cli:alice --user alice\n", _retry)  # fmt: skip
    retry.add_argument("--thread", metavar="KEY", default="", help="only this thread")
    retry.add_argument("--user", metavar="ID", default="", help="only those of this user")
    retry.add_argument("--chat", metavar="ID", default="", help="only those of this chat")
    retry.add_argument("--agent", metavar="ID", default="", help="only those of this agent")
    cancel = command(actions, "cancel", "end a run; what it has done stays done",
                     "  memoryd jobs cancel k3j5x2abcdefghijklmnopqrst\n", _cancel)  # fmt: skip
    cancel.add_argument("run_id", metavar="RUN", help="the id of the run, or its job")
    for name, job, summary in (
        ("consolidate", "consolidation", "learn from all that waits, and end the sessions that were learnt from"),
        ("reflect", "reflection", "sum up the last seven days of each user and chat"),
    ):
        parser = command(commands, name, summary, f"  memoryd {name} --dry-run\n  memoryd {name}\n", _run)
        parser.set_defaults(job=job)
        runs(parser)


def _list(client: Client, args: argparse.Namespace) -> int:
    with client(args) as memory:
        jobs, parked = memory.jobs(), memory.parked_threads(page_size=1000)
    if args.json:
        print(as_json({"jobs": jobs, "parked_threads": parked}))
        return 0
    width = max((len(job.name) for job in jobs), default=3)
    print(f"{'job':<{width}} {'last run':<36} next")
    for job in jobs:
        last = "-" if job.last_run is None else f"{moment(job.last_run.start_time)} {_how(job.last_run)}"
        following = "-" if job.next_time is None else moment(job.next_time)
        print(f"{job.name:<{width}} {last:<36} {following}")
        counts = ((job.waiting_count, "waiting"), (job.parked_count, "parked"))
        if any(count for count, _ in counts):
            print(f"{'':<{width}} {', '.join(f'{count} {what}' for count, what in counts if count)}")
    for work in parked:
        where = f"user {work.user_id}" if work.user_id else f"chat {work.chat_id}"
        when = "" if work.fail_time is None else f", last {moment(work.fail_time)}"
        named = f"thread {one_line(work.thread_id)} of {one_line(where)}"
        print(
            f"parked: {named}: failed {work.attempts} {'time' if work.attempts == 1 else 'times'}{when}: {work.error}"
        )
    if parked:
        print("when the cause is gone: memoryd jobs retry", file=sys.stderr)
    return 0


def _how(run: Run) -> str:
    if run.state is RunState.RUNNING:
        far = f" {run.done_count}/{run.total_count}" if run.total_count else ""
        return f"running{far}{', asked to stop' if run.stop_requested else ''}"
    state = run.state.value + (" (dry run)" if run.dry_run else "")
    return state if run.end_time is None else f"{state} in {(run.end_time - run.start_time).total_seconds():.1f} s"


def _came_of(run: Run) -> str:
    """Return what came of a run in words; of one that was cut short, how far it had come."""
    counted = ", ".join(f"{name} {count}" for name, count in sorted(run.counts.items()) if count)
    if run.state is RunState.DONE:
        return counted or "nothing to do"
    text = f"{run.done_count} of {run.total_count} done" if run.total_count else "what it has done stays done"
    return f"{text}, {counted}" if counted else text


def _tell(run: Run) -> None:
    more = f": {run.error}" if run.error else f": {_came_of(run)}" if run.end_time else ""
    print(f"{run.id}  {run.job}  {moment(run.start_time)}  {_how(run)}{more}")


def _show(client: Client, args: argparse.Namespace) -> int:
    with client(args) as memory:
        names = [job.name for job in memory.jobs()]
        is_job = args.what in names
        runs = memory.job_runs(job=args.what, page_size=args.limit) if is_job else [memory.job_run(args.what)]
    if args.json:
        print(list_json("runs", runs) if is_job else as_json(runs[0]))
        return 0
    for run in runs:
        _tell(run)
    if not runs:
        print(f"{args.what} has not run yet", file=sys.stderr)
    return 0


def _run(client: Client, args: argparse.Namespace) -> int:
    with client(args) as memory:
        run = memory.run_job(args.job, dry_run=args.dry_run)
        while run.state is RunState.RUNNING and not args.no_wait:
            _draw(run)
            time.sleep(TICK_S)
            run = memory.job_run(run.id)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    if args.json:
        print(as_json(run))
    else:
        _tell(run)
    return 0 if run.state in ENDED_WELL or (args.no_wait and run.state is RunState.RUNNING) else 1


def _draw(run: Run) -> None:
    """Draw a bar on a terminal; elsewhere nothing."""
    if not sys.stderr.isatty():
        return
    share = run.done_count / run.total_count if run.total_count else 0.0
    text = f"{run.done_count}/{run.total_count}" if run.total_count else "…"
    print(f"\r\033[K{run.job} [{'#' * round(BAR * share):<{BAR}}] {text}", end="", file=sys.stderr, flush=True)


def _retry(client: Client, args: argparse.Namespace) -> int:
    with client(args) as memory:
        count = memory.retry_parked_threads(args.thread, agent_id=args.agent, user_id=args.user, chat_id=args.chat)
    if args.json:
        print(as_json({"retried_count": count}))
    else:
        text = "1 thread is tried again" if count == 1 else f"{count} threads are tried again"
        print(text if count else "no thread is parked")
    return 0


def _cancel(client: Client, args: argparse.Namespace) -> int:
    with client(args) as memory:
        running = {job.name: job.last_run for job in memory.jobs() if job.last_run is not None}
        current = running.get(args.run_id)
        if current is not None and current.state is not RunState.RUNNING:
            print(f"{args.run_id} does not run; its last run: {_how(current)}", file=sys.stderr)
            return 1
        run = memory.cancel_job_run(args.run_id if current is None else current.id)
    if args.json:
        print(as_json(run))
    else:
        _tell(run)
    return 0
