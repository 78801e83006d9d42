"""Steps that made the tables of conversations what they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from memoryd.store.duckdb.long_texts import MAX_ROW_BYTES, divided
from memoryd.store.duckdb.rows import columns_of

if TYPE_CHECKING:
    import duckdb

__all__ = ["authors_of_texts", "conversations", "grants_of_texts", "long_texts"]

VECTOR = 2048  # rows that DuckDB handles at once
AT_ONCE = 32  # rows with long texts that are read at a time


def conversations(con: duckdb.DuckDBPyConnection) -> None:
    """
    Create threads, sessions, messages and their vectors, working memories, and the cursors of background work.

    `messages.number` rises over the store, so that windows of it are found by zone maps; `thread` is a number for a
    thread, as numbers compare fast. Vectors lie apart: a message is never written again once it is embedded.
    """
    owner = "agent_id VARCHAR NOT NULL, user_id VARCHAR, chat_id VARCHAR"
    con.execute(f"""
        CREATE TABLE threads (
            name VARCHAR PRIMARY KEY,
            {owner},
            thread_id VARCHAR NOT NULL,
            create_time TIMESTAMP NOT NULL,
            update_time TIMESTAMP NOT NULL,
            session_id VARCHAR NOT NULL,
            revision BIGINT NOT NULL,
            details VARCHAR NOT NULL,
            commit_seq BIGINT NOT NULL
        )""")
    con.execute(f"""
        CREATE TABLE sessions (
            name VARCHAR PRIMARY KEY,
            {owner},
            thread_id VARCHAR NOT NULL,
            session_id VARCHAR NOT NULL,
            state VARCHAR NOT NULL,
            start_time TIMESTAMP NOT NULL,
            details VARCHAR NOT NULL
        )""")
    con.execute(f"""
        CREATE TABLE messages (
            number BIGINT NOT NULL,
            thread BIGINT NOT NULL,
            {owner},
            thread_id VARCHAR NOT NULL,
            id VARCHAR NOT NULL,
            seq BIGINT NOT NULL,
            content VARCHAR NOT NULL,
            details VARCHAR NOT NULL,
            metadata VARCHAR NOT NULL,
            create_time TIMESTAMP NOT NULL,
            grant_id VARCHAR NOT NULL,
            text_bytes BIGINT NOT NULL,
            terms VARCHAR NOT NULL,
            commit_seq BIGINT NOT NULL
        )""")
    con.execute(f"""
        CREATE TABLE message_vectors (
            id VARCHAR NOT NULL,
            thread BIGINT NOT NULL,
            {owner},
            thread_id VARCHAR NOT NULL,
            fingerprint VARCHAR NOT NULL,
            commit_seq BIGINT NOT NULL
        )""")
    con.execute(f"""
        CREATE TABLE working_memories (
            name VARCHAR PRIMARY KEY, {owner}, text VARCHAR NOT NULL, update_time TIMESTAMP NOT NULL,
            trust VARCHAR NOT NULL
        )""")
    con.execute("CREATE TABLE cursors (name VARCHAR PRIMARY KEY, value BIGINT NOT NULL)")


def grants_of_texts(con: duckdb.DuckDBPyConnection) -> None:
    """Note through which grant a working memory was set; of earlier ones it is not known, and they count for none."""
    con.execute("ALTER TABLE working_memories ADD COLUMN grant_id VARCHAR DEFAULT ''")


def authors_of_texts(con: duckdb.DuckDBPyConnection) -> None:
    """Note whose call set the working memory of a chat; of earlier ones it is not known."""
    con.execute("ALTER TABLE working_memories ADD COLUMN author VARCHAR DEFAULT ''")


def long_texts(con: duckdb.DuckDBPyConnection) -> None:
    """
    Move the long texts of messages into pieces; see `long_texts.py`.

    A table of its own takes the rows, a few at a time where they are long: DuckDB reads all rows of a vector at once,
    also those that were deleted.
    """
    con.execute("""
        CREATE TABLE long_texts (
            number BIGINT NOT NULL,
            thread BIGINT NOT NULL,
            agent_id VARCHAR NOT NULL,
            user_id VARCHAR,
            chat_id VARCHAR,
            thread_id VARCHAR NOT NULL,
            id VARCHAR NOT NULL,
            name VARCHAR NOT NULL,
            piece BIGINT NOT NULL,
            text VARCHAR NOT NULL,
            commit_seq BIGINT NOT NULL
        )""")
    con.execute("ALTER TABLE messages ADD COLUMN piece_count BIGINT DEFAULT 0")
    found = con.execute(f"SELECT rowid FROM messages WHERE text_bytes > {MAX_ROW_BYTES}").fetchall()
    if not found:
        return
    ((made,),) = con.execute("SELECT sql FROM duckdb_tables() WHERE table_name = 'messages'").fetchall()
    con.execute(made.replace("messages", "moved", 1))
    ((last,),) = con.execute("SELECT max(rowid) FROM messages").fetchall()
    for start, end, has_long in _slices({place // VECTOR for (place,) in found}, last):
        rows = f"FROM messages WHERE rowid >= {start} AND rowid < {end}"
        if has_long:
            _move(con, rows)
        else:
            con.execute(f"INSERT INTO moved SELECT * {rows}")
    con.execute("DROP TABLE messages")
    con.execute("ALTER TABLE moved RENAME TO messages")


def _move(con: duckdb.DuckDBPyConnection, source: str) -> None:
    """Write some messages to the new table, and their long texts in pieces."""
    cursor = con.execute(f"SELECT * {source}")
    names = [column[0] for column in cursor.description or ()]
    found = [divided(dict(zip(names, values, strict=True))) for values in cursor.fetchall()]
    for table, made in (("moved", [row for row, _ in found]), ("long_texts", [p for _, some in found for p in some])):
        if made:
            columns = columns_of(made)  # noqa: F841  DuckDB finds it by its name
            con.execute(f"INSERT INTO {table} BY NAME SELECT * FROM columns")


def _slices(vectors: Collection[int], last: int) -> Iterator[tuple[int, int, bool]]:
    """Yield the first place of some rows, the place after their last, and whether they may have long texts."""
    near = {vector + n for vector in vectors for n in (-1, 0, 1)}  # a row group that is not full moves those after it
    for has_long, some in groupby(range(last // VECTOR + 1), key=near.__contains__):
        places = list(some)
        step = AT_ONCE if has_long else VECTOR * len(places)
        for start in range(places[0] * VECTOR, (places[-1] + 1) * VECTOR, step):
            yield start, start + step, has_long
