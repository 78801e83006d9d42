"""
How the schema came to be: numbered steps, each recorded in the transaction that takes it.

A step is never edited once released; the next change is a new step. Primary keys are the only indexes: secondary ones
gave wrong answers after a crash in earlier releases of DuckDB.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

__all__ = ["MIGRATIONS", "Migration"]

Migration = Callable[["duckdb.DuckDBPyConnection"], None]


def first_tables(con: duckdb.DuckDBPyConnection) -> None:
    """
    Create memories, how they are used, and the requests that made them.

    What a query compares has a column; the rest of a memory is `details`, a JSON object with the names of the contract
    (a statement's cost rises with its columns: 37 took 3.4 ms of CPU an insert, 20 take half). `facets` holds what
    filters ask for, each as a JSON string between unit separators. Vectors get a column beside it once there are any;
    see vectors.py.
    """
    con.execute("""
        CREATE TABLE memories (
            id VARCHAR PRIMARY KEY,
            agent_id VARCHAR NOT NULL,
            user_id VARCHAR,
            chat_id VARCHAR,
            content VARCHAR NOT NULL,
            text_digest VARCHAR NOT NULL,
            kind VARCHAR NOT NULL,
            key VARCHAR NOT NULL,
            facets VARCHAR NOT NULL,
            details VARCHAR NOT NULL,
            create_time TIMESTAMP NOT NULL,
            event_time TIMESTAMP NOT NULL,
            expire_time TIMESTAMP,
            supersede_time TIMESTAMP,
            delete_time TIMESTAMP,
            purge_time TIMESTAMP,
            terms VARCHAR NOT NULL,
            fingerprint VARCHAR NOT NULL,
            commit_seq BIGINT NOT NULL
        )""")
    con.execute("""
        CREATE TABLE uses (
            memory_id VARCHAR PRIMARY KEY,
            recall_time TIMESTAMP NOT NULL,
            recall_count BIGINT NOT NULL
        )""")
    con.execute("""
        CREATE TABLE requests (
            name VARCHAR PRIMARY KEY,
            answer VARCHAR NOT NULL,
            create_time TIMESTAMP NOT NULL
        )""")


def grants(con: duckdb.DuckDBPyConnection) -> None:
    """
    Create grants and the keys of tokens; give memories the grant that they came through.

    No memory came through one so far.
    """
    con.execute("ALTER TABLE memories ADD COLUMN grant_id VARCHAR DEFAULT ''")
    con.execute("ALTER TABLE memories ADD COLUMN text_bytes BIGINT DEFAULT 0")
    con.execute("""
        CREATE TABLE grants (
            id VARCHAR PRIMARY KEY,
            details VARCHAR NOT NULL,
            create_time TIMESTAMP NOT NULL
        )""")
    con.execute("""
        CREATE TABLE token_keys (
            id VARCHAR PRIMARY KEY,
            secret VARCHAR NOT NULL,
            create_time TIMESTAMP NOT NULL
        )""")


def knowledge(con: duckdb.DuckDBPyConnection) -> None:
    """
    Create what was decided of entities, what shall not be learnt again, when jobs ran; tell the host's recalls apart.

    Recalls so far count as the host's: there is no telling.
    """
    con.execute("""
        CREATE TABLE entities (
            id VARCHAR PRIMARY KEY,
            agent_id VARCHAR NOT NULL,
            user_id VARCHAR,
            chat_id VARCHAR,
            details VARCHAR NOT NULL,
            create_time TIMESTAMP NOT NULL
        )""")
    con.execute("""
        CREATE TABLE tombstones (
            digest VARCHAR PRIMARY KEY,
            agent_id VARCHAR NOT NULL,
            user_id VARCHAR,
            chat_id VARCHAR
        )""")
    con.execute("CREATE TABLE jobs (name VARCHAR PRIMARY KEY, run_time TIMESTAMP NOT NULL)")
    con.execute("ALTER TABLE uses ADD COLUMN trusted_recall_time TIMESTAMP")
    con.execute("UPDATE uses SET trusted_recall_time = recall_time")


def unlink(con: duckdb.DuckDBPyConnection) -> None:
    """Take the ids of purged memories out of those that they were linked to, and the names of whom nobody names."""
    known = {memory_id for (memory_id,) in con.execute("SELECT id FROM memories").fetchall()}
    linked = con.execute(
        "SELECT id, details FROM memories WHERE"
        " contains(details, '\"supersede') OR contains(details, '\"contested_with') OR contains(details, '\"evidence')"
    ).fetchall()
    for memory_id, text in linked:
        details = json.loads(text)
        for name in ("supersedes", "contested_with"):
            details[name] = [link for link in details.get(name, ()) if link in known]
        if details.get("superseded_by") not in known:
            details["superseded_by"] = ""
        judgement = details.get("judgement")
        if judgement and judgement["evidence"] not in known:
            judgement["evidence"] = next(iter(details["contested_with"]), "")
        kept = json.dumps({name: value for name, value in details.items() if value or value == 0}, ensure_ascii=False)
        if kept != text:
            con.execute("UPDATE memories SET details = ? WHERE id = ?", [kept, memory_id])
    con.execute("DELETE FROM uses WHERE memory_id NOT IN (SELECT id FROM memories)")
    rows = {entity: json.loads(text) for entity, text in con.execute("SELECT id, details FROM entities").fetchall()}
    named = {
        entity
        for entity in {*rows, *(row.get("merged_into", "") for row in rows.values())} - {""}
        if con.execute("SELECT 1 FROM memories WHERE contains(facets, ?) LIMIT 1", [f"entity:{entity}"]).fetchall()
    }
    while more := {n for n, row in rows.items() if row.get("merged_into") in named} - named:
        named |= more
    while more := {row["merged_into"] for n, row in rows.items() if n in named and row.get("merged_into")} - named:
        named |= more
    for entity in rows.keys() - named:
        con.execute("DELETE FROM entities WHERE id = ?", [entity])


MIGRATIONS: tuple[Migration, ...] = (first_tables, grants, knowledge, unlink)
