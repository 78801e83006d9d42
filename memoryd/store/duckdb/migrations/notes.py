"""Steps that made the tables of notes what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

__all__ = ["notes"]


def notes(con: duckdb.DuckDBPyConnection) -> None:
    """Create notes, with what is told of their versions, and the pieces of all texts: zstd packs each well alone."""
    owner = "agent_id VARCHAR NOT NULL, user_id VARCHAR, chat_id VARCHAR"
    con.execute(f"""
        CREATE TABLE notes (
            name VARCHAR PRIMARY KEY,
            id VARCHAR NOT NULL,
            {owner},
            path VARCHAR NOT NULL,
            create_time TIMESTAMP NOT NULL,
            expire_time TIMESTAMP,
            details VARCHAR NOT NULL,
            text_bytes BIGINT NOT NULL,
            is_searched BOOLEAN NOT NULL,
            fingerprint VARCHAR NOT NULL,
            vector BLOB,
            token_vectors BLOB,
            window_vectors BLOB,
            commit_seq BIGINT NOT NULL
        )""")
    con.execute(f"""
        CREATE TABLE note_texts (
            key VARCHAR PRIMARY KEY,
            {owner},
            text VARCHAR NOT NULL USING COMPRESSION 'zstd',
            commit_seq BIGINT NOT NULL
        )""")
