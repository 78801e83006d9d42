"""Marks, leases and counters: what daemons note of work that is of no owner, as rows, and how they are written."""

from __future__ import annotations

from datetime import UTC, date, datetime

import duckdb

from memoryd.model.change import PURGE, ChangeSet
from memoryd.model.work import CounterName, Lease
from memoryd.store import rows
from memoryd.store.commits import check_counters, check_leases, check_marks

__all__ = ["counters_of", "leases_of", "marks_of", "write_marks"]

NO_DAY = date.min  # of what is counted over all time


def marks_of(con: duckdb.DuckDBPyConnection) -> dict[str, datetime]:
    """Return when things were done last, by name."""
    return {name: time.replace(tzinfo=UTC) for name, time in con.execute("SELECT name, time FROM marks").fetchall()}


def leases_of(con: duckdb.DuckDBPyConnection) -> dict[str, Lease]:
    """Return the leases that are taken, by name."""
    found = con.execute("SELECT name, holder, until FROM leases").fetchall()
    return {name: Lease(name, holder, until.replace(tzinfo=UTC)) for name, holder, until in found}


def counters_of(con: duckdb.DuckDBPyConnection) -> dict[CounterName, int]:
    """Return all that is counted."""
    found = con.execute("SELECT name, day, value FROM counters").fetchall()
    return {CounterName(name, None if day == NO_DAY else day): value for name, day, value in found}


def write_marks(con: duckdb.DuckDBPyConnection, change: ChangeSet) -> None:
    """Write marks, leases and counters; Contended where they are not as they were when the change was decided."""
    if change.marks_before:
        check_marks(change, marks_of(con))
    for name, time in change.marks.items():
        con.execute(
            # the mark of purges never goes back, and no two commits leave the same one
            "INSERT INTO marks VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET"
            " time = greatest(excluded.time, marks.time + INTERVAL 1 MICROSECOND)"
            if name == PURGE
            else "INSERT INTO marks VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET time = excluded.time",
            [name, rows.naive(time)],
        )
    for lease in change.freed_leases:
        con.execute("DELETE FROM leases WHERE name = ? AND holder = ?", [lease.name, lease.holder])
    if change.leases:
        check_leases(change, leases_of(con))
    for lease in change.leases:
        con.execute(
            "INSERT INTO leases VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET holder = excluded.holder,"
            " until = excluded.until",
            [lease.name, lease.holder, rows.naive(lease.until)],
        )
    if change.counters_before:
        check_counters(change, counters_of(con))
    for counter in change.forget_counters:
        con.execute("DELETE FROM counters WHERE name = ? AND day = ?", [counter.name, counter.day or NO_DAY])
    for counter, value in change.counters.items():
        con.execute(
            "INSERT INTO counters VALUES (?, ?, ?) ON CONFLICT (name, day) DO UPDATE SET value = excluded.value",
            [counter.name, counter.day or NO_DAY, value],
        )
