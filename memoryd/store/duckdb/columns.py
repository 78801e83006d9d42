"""The columns of DuckDB's tables: how it reads them as plain values, and how many rows are handed to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoryd.model.change import Entry
from memoryd.model.memory_columns import COLUMNS, PLAIN_DETAILS, RECALL_COLUMNS
from memoryd.store import rows
from memoryd.store.duckdb.vectors import column_of

__all__ = ["MEMORY_COLUMNS", "columns_of", "entry_row", "plain"]

_NUMBERS = {
    "commit_seq", "recall_count", "text_bytes", "number", "thread", "seq", "place", "rank", "piece",
    "piece_count",
}  # fmt: skip


def plain(name: str, table: str = "") -> str:
    """Return the SQL that reads one of the COLUMNS as a plain value; `table` ends with a dot."""
    if name == "details":
        return f"nullif({table}details, '{PLAIN_DETAILS}')"
    return f"epoch_us({table}{name})" if name.endswith("_time") else f"{table}{name}"


MEMORY_COLUMNS = tuple(
    [f"m.{name}" for name in ("agent_id", "user_id", "chat_id")]
    + [plain(name, "u." if name in RECALL_COLUMNS else "m.") for name in COLUMNS]
)
"""What `memory_of` reads of `memories` as m and `uses` as u, as SQL."""


def entry_row(entry: Entry, commit_seq: int) -> dict[str, Any]:
    """Return an entry as column → value, with its vectors."""
    return {
        **rows.entry_row(entry, commit_seq),
        **({} if entry.vector is None else {column_of(len(entry.vector)): entry.vector}),
        **({"token_vectors": entry.tokens} if entry.tokens else {}),
        **({"window_vectors": entry.windows} if entry.windows else {}),
    }


def columns_of(made: Sequence[dict[str, Any]]) -> dict[str, NDArray[Any]]:
    """Return rows as arrays that DuckDB scans in place; of text and vectors one object an element."""
    columns: dict[str, NDArray[Any]] = {}
    for name in made[0]:
        values = [row[name] for row in made]
        if name.endswith("_time"):
            columns[name] = np.array(values, dtype="datetime64[us]")
        elif name in _NUMBERS:
            columns[name] = np.array(values, dtype=np.int64)
        else:
            columns[name] = np.empty(len(values), dtype=object)
            for n, value in enumerate(values):
                columns[name][n] = value
    return columns
