"""Steps that made the tables of work in the background what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

__all__ = ["marks", "proposals", "work"]


def work(con: duckdb.DuckDBPyConnection) -> None:
    """Create how far work in the background has come in threads, and the runs of jobs."""
    con.execute("""
        CREATE TABLE work (
            name VARCHAR PRIMARY KEY,
            kind VARCHAR NOT NULL,
            agent_id VARCHAR NOT NULL,
            user_id VARCHAR,
            chat_id VARCHAR,
            thread_id VARCHAR NOT NULL,
            state VARCHAR NOT NULL,
            due_time TIMESTAMP NOT NULL,
            seq BIGINT NOT NULL,
            details VARCHAR NOT NULL
        )""")
    con.execute("""
        CREATE TABLE runs (
            id VARCHAR PRIMARY KEY, job VARCHAR NOT NULL, state VARCHAR NOT NULL, start_time TIMESTAMP NOT NULL,
            details VARCHAR NOT NULL
        )""")


def proposals(con: duckdb.DuckDBPyConnection) -> None:
    """Create what was learnt and waits to be approved."""
    con.execute("""
        CREATE TABLE proposals (
            id VARCHAR PRIMARY KEY,
            agent_id VARCHAR NOT NULL,
            user_id VARCHAR,
            chat_id VARCHAR,
            thread_id VARCHAR NOT NULL,
            message_ids VARCHAR NOT NULL,
            content VARCHAR NOT NULL,
            create_time TIMESTAMP NOT NULL,
            details VARCHAR NOT NULL
        )""")


def marks(con: duckdb.DuckDBPyConnection) -> None:
    """
    Keep apart what the tables `jobs` and `cursors` held together: marks, leases, and counters with their day.

    No one knows the holder of a lease that was taken before: it ends when it would have ended.
    """
    con.execute("CREATE TABLE marks (name VARCHAR PRIMARY KEY, time TIMESTAMP NOT NULL)")
    con.execute("CREATE TABLE leases (name VARCHAR PRIMARY KEY, holder VARCHAR NOT NULL, until TIMESTAMP NOT NULL)")
    con.execute(
        "CREATE TABLE counters (name VARCHAR NOT NULL, day DATE NOT NULL, value BIGINT NOT NULL,"
        " PRIMARY KEY (name, day))"
    )
    con.execute(
        "INSERT INTO leases SELECT replace(name, ' leased until', ''), '', run_time FROM jobs"
        " WHERE ends_with(name, ' leased until')"
    )
    con.execute("INSERT INTO marks SELECT * FROM jobs WHERE NOT ends_with(name, ' leased until')")
    con.execute(
        "INSERT INTO marks SELECT name, make_timestamp(value) FROM cursors"
        " WHERE name IN ('contradictions_read', 'llm_judged')"
    )
    con.execute(
        "INSERT INTO counters SELECT name, DATE '0001-01-01', value FROM cursors"
        " WHERE name <> 'contradictions_read' AND (NOT starts_with(name, 'llm_') OR name = 'llm_learning')"
    )
    con.execute(  # the day was a number itself: days since 0001-01-01, which is 1
        "INSERT INTO counters SELECT c.name, DATE '0001-01-01' + (d.value - 1)::INTEGER, c.value"
        " FROM cursors AS c, cursors AS d"
        " WHERE d.name = 'llm_day' AND c.name IN ('llm_tokens', 'llm_cost', 'llm_calls')"
    )
    con.execute("DROP TABLE jobs")
    con.execute("DROP TABLE cursors")
