"""The store that lasts: one DuckDB file, one writer, and a guard for what DuckDB itself does not notice."""

from memoryd.store.duckdb.opening import Opened, check_database, open_database, unreadable
from memoryd.store.duckdb.store import DuckDBStore

__all__ = ["DuckDBStore", "Opened", "check_database", "open_database", "unreadable"]
