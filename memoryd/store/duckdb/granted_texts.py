"""Summaries and working memories that came through a grant, as they count to its quota."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memoryd.model.grant import GrantText
from memoryd.store.conversation_rows import THREAD_COLUMNS, WORKING_COLUMNS, thread_of, working_memory_of

if TYPE_CHECKING:
    import duckdb

__all__ = ["texts_of_threads", "texts_of_working_memories"]


def texts_of_threads(con: duckdb.DuckDBPyConnection, where: str, params: Sequence[object]) -> list[GrantText]:
    """Return what of some threads counts to the quotas of grants."""
    rows = con.execute(
        f"SELECT {', '.join(THREAD_COLUMNS)} FROM threads WHERE {where} AND contains(details, '_grant_id')", params
    ).fetchall()
    return [text for row in rows for text in thread_of(row).texts]


def texts_of_working_memories(con: duckdb.DuckDBPyConnection, where: str, params: Sequence[object]) -> list[GrantText]:
    """Return what of some working memories of users and chats counts to the quotas of grants."""
    rows = con.execute(
        f"SELECT {', '.join(WORKING_COLUMNS)} FROM working_memories WHERE {where} AND grant_id <> ''", params
    ).fetchall()
    return [text for row in rows for text in working_memory_of(row).texts]
