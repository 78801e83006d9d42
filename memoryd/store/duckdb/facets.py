"""Bringing the filter terms of stored memories up to those that filters of this version look up."""

from __future__ import annotations

from collections.abc import Callable

import duckdb

from memoryd.model import filter_terms
from memoryd.store import rows
from memoryd.store.duckdb import queries
from memoryd.store.duckdb.columns import columns_of

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
    con.execute("UPDATE meta SET value = '0' WHERE name = 'filter_terms'")  # whoever comes next starts over
    total, end = con.execute("SELECT count(*), coalesce(max(rowid), -1) + 1 FROM memories").fetchall()[0]
    select = queries.select_memories("(SELECT * FROM memories WHERE rowid >= ? AND rowid < ?)", "m.facets")
    done = 0
    for first in range(0, end, PAGE):  # by places in the table: in the order of ids each page would read all of it
        page = con.execute(select, [first, min(first + PAGE, end)]).fetchall()
        memories = [(rows.memory_of(row[:-1]), row[-1]) for row in page]
        changed = [
            {"id": memory.id, "facets": new} for memory, old in memories if (new := rows.facets_text(memory)) != old
        ]
        if changed:
            columns = columns_of(changed)  # noqa: F841  DuckDB finds it by its name
            con.execute("UPDATE memories SET facets = columns.facets FROM columns WHERE memories.id = columns.id")
        done += len(page)
        tell(done, total)
    con.execute("UPDATE meta SET value = ? WHERE name = 'filter_terms'", [str(filter_terms.VERSION)])
