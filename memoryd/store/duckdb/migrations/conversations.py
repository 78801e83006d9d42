"""Steps that made the tables of conversations what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

__all__ = ["authors_of_texts", "conversations", "grants_of_texts"]


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
