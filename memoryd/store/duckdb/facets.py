"""Bringing the filter terms of stored memories up to those that filters of this version look up."""

from __future__ import annotations

from collections.abc import Callable

import duckdb

from memoryd.model import filter_terms
from memoryd.store.duckdb import rows

__all__ = ["Tell", "refresh_filter_terms"]

PAGE = 2048  # memories of one transaction
Tell = Callable[[int, int], None]
"""Is told how many memories of how many have their terms, while they are written anew."""


def refresh_filter_terms(con: duckdb.DuckDBPyConnection, tell: Tell) -> None:
    """
    Write the filter terms of all memories anew, if those of an older version are stored.

    Page by page; the version is noted after the last one, so that after a crash all are written again.
    """
    noted = con.execute("SELECT value FROM meta WHERE name = 'filter_terms'").fetchall()
    stored = int(noted[0][0]) if noted else filter_terms.VERSION  # none in a schema of before, which is not served
    if stored == filter_terms.VERSION:
        return
    total = int(con.execute("SELECT count(*) FROM memories").fetchall()[0][0])
    select = f"SELECT {', '.join(rows.MEMORY_COLUMNS)}, NULL, NULL, NULL, facets FROM memories"
    done, last = 0, ""
    while page := con.execute(f"{select} WHERE id > ? ORDER BY id LIMIT {PAGE}", [last]).fetchall():
        memories = [(rows.memory_of(row[:-1]), row[-1]) for row in page]
        changed = [
            {"id": memory.id, "facets": new} for memory, old in memories if (new := rows.facets_text(memory)) != old
        ]
        if changed:
            columns = rows.columns_of(changed)  # noqa: F841  DuckDB finds it by its name
            con.execute("UPDATE memories SET facets = columns.facets FROM columns WHERE memories.id = columns.id")
        done, last = done + len(page), page[-1][0]
        tell(done, total)
    con.execute("UPDATE meta SET value = ? WHERE name = 'filter_terms'", [str(filter_terms.VERSION)])
