"""Work in the background, runs, proposals, marks, leases and counters, as statements."""

from __future__ import annotations

import uuid
from datetime import date

from memoryd.model.change import PURGE, ChangeSet
from memoryd.model.work import RunState
from memoryd.store import rows
from memoryd.store.postgres.heads import locked
from memoryd.store.postgres.skew import Skew
from memoryd.store.postgres.statements import Statements, owner_columns, owner_key
from memoryd.store.work import MOST_RUNS
from memoryd.store.work_rows import PROPOSAL_COLUMNS, proposal_row, run_row, work_details

__all__ = ["NO_DAY", "purge_work", "write_work"]

NO_DAY = date.min  # of what is counted over all time
MARKED = "someone else has run the job"
LEASED = "someone else has leased it"
COUNTED = "another daemon has done this work meanwhile"


def write_work(statements: Statements, change: ChangeSet, skew: Skew) -> None:
    """Write how far work has come; the server raises where marks, leases or counters are not as they were."""
    for work in sorted(change.work, key=lambda one: (repr(one.owner), one.kind, one.thread_id)):
        owned = owner_columns(work.owner)
        row = {
            **owned, "kind": work.kind, "thread_id": work.thread_id, "state": work.state.value,
            "due_time": rows.naive(work.due_time), "seq": work.seq, "details": work_details(work),
        }  # fmt: skip
        statements.add(
            f"INSERT INTO work AS w ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})"
            " ON CONFLICT (owner_id, kind, thread_id) DO UPDATE SET state = excluded.state,"
            " due_time = excluded.due_time, seq = greatest(w.seq, excluded.seq), details = excluded.details",
            *row.values(),
        )
    for proposal in change.proposals:
        values = [owner_key(proposal.owner), *proposal_row(proposal)]
        statements.add(
            f"INSERT INTO proposals (owner_id, {PROPOSAL_COLUMNS}) VALUES ({', '.join(['%s'] * len(values))})", *values
        )
    for proposal in change.decided:
        key = owner_key(proposal.owner)
        statements.add("DELETE FROM proposals WHERE owner_id = %s AND id = %s", key, proposal.id)
    _write_marks(statements, change, skew)
    _write_runs(statements, change)


def _write_runs(statements: Statements, change: ChangeSet) -> None:
    for run_id in change.stop_runs:
        statements.add(
            "UPDATE runs SET details = jsonb_set(details::jsonb, '{stop_requested}', 'true')::text"
            " WHERE id = %s AND state = %s",
            run_id, RunState.RUNNING.value,
        )  # fmt: skip
    for run in change.runs:
        statements.add(
            "INSERT INTO runs VALUES (%s, %s, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET state = excluded.state,"
            " details = excluded.details",
            *run_row(run),
        )
        if run.state is not RunState.RUNNING:
            statements.add(
                "DELETE FROM runs WHERE job = %s AND id NOT IN"
                f" (SELECT id FROM runs WHERE job = %s ORDER BY start_time DESC, id LIMIT {MOST_RUNS})",
                run.job, run.job,
            )  # fmt: skip


def _write_marks(statements: Statements, change: ChangeSet, skew: Skew) -> None:
    if change.marks_before or change.leases or change.counters_before:  # rare; also what is not there yet is locked
        statements.add(locked("work"))
    for name, before in change.marks_before.items():
        _check(statements, "SELECT time FROM marks WHERE name = %s", "timestamp", MARKED, [name, rows.naive(before)])
    for name, time in change.marks.items():
        # the mark of purges never goes back, and no two commits leave the same one
        later = "greatest(excluded.time, m.time + interval '1 microsecond')" if name == PURGE else "excluded.time"
        statements.add(
            f"INSERT INTO marks AS m VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET time = {later}",
            name, rows.naive(time),
        )  # fmt: skip
    for lease in change.freed_leases:
        statements.add("DELETE FROM leases WHERE name = %s AND holder = %s", lease.name, lease.holder)
    for lease in change.leases:
        if lease.name in change.leases_before:
            held = change.leases_before[lease.name]
            until = None if held is None else rows.naive(skew.stored(held).until)
            holder = None if held is None else held.holder
            _check(statements, "SELECT until FROM leases WHERE name = %s", "timestamp", LEASED, [lease.name, until])
            _check(statements, "SELECT holder FROM leases WHERE name = %s", "text", LEASED, [lease.name, holder])
        else:
            _check(statements, "SELECT holder FROM leases WHERE name = %s", "text", LEASED, [lease.name, lease.holder])
        statements.add(
            "INSERT INTO leases VALUES (%s, %s, %s) ON CONFLICT (name) DO UPDATE SET holder = excluded.holder,"
            " until = excluded.until",
            lease.name, lease.holder, rows.naive(skew.stored(lease).until),
        )  # fmt: skip
    counted = "SELECT value FROM counters WHERE name = %s AND day = %s"
    for counter, value in change.counters_before.items():
        _check(statements, counted, "bigint", COUNTED, [counter.name, counter.day or NO_DAY, value])
    for counter in change.forget_counters:
        day = counter.day or NO_DAY
        statements.add("DELETE FROM counters WHERE name = %s AND day = %s", counter.name, day)
    for counter, value in change.counters.items():
        statements.add(
            "INSERT INTO counters VALUES (%s, %s, %s) ON CONFLICT (name, day) DO UPDATE SET value = excluded.value",
            counter.name, counter.day or NO_DAY, value,
        )  # fmt: skip


def _check(statements: Statements, select: str, kind: str, fault: str, params: list[object]) -> None:
    """Let the server raise where what a query returns is not as it was; that is the last parameter."""
    statements.add(
        f"SELECT CASE WHEN ({select}) IS NOT DISTINCT FROM %s::{kind} THEN 0 ELSE contended('{fault}') END", *params
    )


def purge_work(statements: Statements, key: uuid.UUID) -> None:
    """Erase what is to be done for an owner, and what waits to be approved."""
    for table in ("work", "proposals"):
        statements.add(f"DELETE FROM {table} WHERE owner_id = %s", key)
