"""Steps that made the tables of conversations what they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memoryd.store.duckdb.columns import columns_of
from memoryd.store.duckdb.long_texts import MAX_ROW_BYTES, divided

if TYPE_CHECKING:
    import duckdb

__all__ = ["authors_of_texts", "conversations", "grants_of_texts", "long_texts"]

VECTOR = 2048  # rows that DuckDB handles at once
AT_ONCE_BYTES = 16 << 20  # of texts that are moved at a time
MAY_BE_LONG = MAX_ROW_BYTES // 4  # bytes of a text whose words may be too long for a row


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

    A checkpoint with zstd takes a twentieth of the time of what DuckDB would choose (dict_fsst): 0.2 s for 40 MB.

    A table of its own takes the rows, some MiB at a time where they are long: in their old one they would be read with
    what was deleted near them.
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
            text VARCHAR USING COMPRESSION zstd NOT NULL,
            commit_seq BIGINT NOT NULL
        )""")
    con.execute("ALTER TABLE messages ADD COLUMN piece_count BIGINT DEFAULT 0")
    ((made,),) = con.execute("SELECT sql FROM duckdb_tables() WHERE table_name = 'messages'").fetchall()
    sizes = con.execute("SELECT rowid AS place, text_bytes FROM messages ORDER BY place").fetchnumpy()
    places, text_bytes = (np.asarray(sizes[name], dtype=np.int64) for name in ("place", "text_bytes"))
    if not (text_bytes > MAY_BE_LONG).any():
        return
    con.execute(made.replace("messages", "moved", 1))
    for start, end, may_be_long in _slices(places, text_bytes):
        rows = f"messages WHERE rowid >= {start} AND rowid < {end}"
        if may_be_long:
            _move(con, rows)
        else:
            con.execute(f"INSERT INTO moved SELECT * FROM {rows}")
    con.execute("DROP TABLE messages")
    con.execute("ALTER TABLE moved RENAME TO messages")


def _move(con: duckdb.DuckDBPyConnection, source: str) -> None:
    """Write some messages to the new table, and their long texts in pieces; one long column is read at a time."""
    columns = ("content", "details", "metadata", "terms")
    cursor = con.execute(f"SELECT rowid, * EXCLUDE ({', '.join(columns)}) FROM {source}")
    names = [column[0] for column in cursor.description or ()]
    rows = {values[0]: dict(zip(names[1:], values[1:], strict=True)) for values in cursor.fetchall()}
    for name in columns:
        for place, text in con.execute(f"SELECT rowid, {name} FROM {source}").fetchall():
            rows[place][name] = text
    found = [divided(rows[place]) for place in sorted(rows)]
    for table, made in (("moved", [row for row, _ in found]), ("long_texts", [p for _, some in found for p in some])):
        if made:
            columns_of_rows = columns_of(made)  # noqa: F841  DuckDB finds it by its name
            con.execute(f"INSERT INTO {table} BY NAME SELECT * FROM columns_of_rows")


def _slices(places: NDArray[np.int64], text_bytes: NDArray[np.int64]) -> Iterator[tuple[int, int, bool]]:
    """Yield where some rows begin, where they end, and whether they may have long texts: then some MiB of them."""
    vectors = places // VECTOR
    long = np.unique(vectors[text_bytes > MAY_BE_LONG])
    near = np.isin(vectors, np.concatenate([long - 1, long, long + 1]))  # a row group that is not full moves the next
    start = 0
    while start < len(places):
        if near[start]:
            fitting = int(np.searchsorted(np.cumsum(text_bytes[start : start + VECTOR]), AT_ONCE_BYTES))
            others = np.flatnonzero(~near[start : start + max(1, fitting)])
        else:
            fitting, others = len(places), np.flatnonzero(near[start:])
        end = min(start + max(1, fitting), start + int(others[0]) if len(others) else len(places))
        yield int(places[start]), int(places[end - 1]) + 1, bool(near[start])
        start = end
