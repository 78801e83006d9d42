"""
How the schema came to be: numbered steps, each recorded in the transaction that takes it.

A step is never edited once released; the next change is a new step. Primary keys are the only indexes: secondary ones
gave wrong answers after a crash in earlier releases of DuckDB.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import duckdb

from memoryd.store.duckdb.migrations.conversations import (
    authors_of_texts,
    conversations,
    grants_of_texts,
    long_texts,
)
from memoryd.store.duckdb.migrations.memories import (
    filter_terms,
    first_tables,
    grants,
    knowledge,
    places,
    token_vectors,
    traits,
    unlink,
    usage,
    window_vectors,
)
from memoryd.store.duckdb.migrations.notes import notes
from memoryd.store.duckdb.migrations.requests import receipts
from memoryd.store.duckdb.migrations.work import marks, proposals, work

__all__ = ["MIGRATIONS", "Migration", "migrate"]

SECRET_BYTES = 32  # of the key that signs page tokens
Migration = Callable[[duckdb.DuckDBPyConnection], None]


def meta_tables(con: duckdb.DuckDBPyConnection, store_id: str, secret: bytes) -> None:
    """Create what says which store it is, and how far it has come: step 0, in the transaction of step 1."""
    con.execute("CREATE TABLE meta (name VARCHAR PRIMARY KEY, value VARCHAR NOT NULL)")
    con.execute("CREATE TABLE commits (commit_seq BIGINT NOT NULL, newest_create_time TIMESTAMP)")
    con.execute("INSERT INTO commits VALUES (0, NULL)")
    con.execute(
        "INSERT INTO meta VALUES ('store_id', ?), ('secret', ?), ('schema_version', '0')", [store_id, secret.hex()]
    )


MIGRATIONS: tuple[Migration, ...] = (
    first_tables, grants, knowledge, unlink, usage, conversations, token_vectors, traits,
    places, work, proposals, grants_of_texts, window_vectors, authors_of_texts, filter_terms, marks, receipts,
    long_texts, notes,
)  # fmt: skip


def migrate(
    con: duckdb.DuckDBPyConnection,
    version: int,
    migrations: tuple[Migration, ...],
    *,
    store_id: str,
    random_bytes: Callable[[int], bytes],
) -> None:
    """Bring a database of a schema version (0: it is empty) up to the last one, each step in its transaction."""
    for number in range(version, len(migrations)):
        con.execute("BEGIN")
        try:
            if number == 0:
                meta_tables(con, store_id, random_bytes(SECRET_BYTES))
            migrations[number](con)
            con.execute("UPDATE meta SET value = ? WHERE name = 'schema_version'", [str(number + 1)])
            con.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(
                duckdb.Error
            ):  # on a full disk there is none to roll back; the first error is told
                con.execute("ROLLBACK")
            raise
