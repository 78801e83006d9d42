"""The store that lasts: one DuckDB file, one writer, and a guard for what DuckDB itself does not notice."""

from memoryd.store.duckdb.damage import read_everything
from memoryd.store.duckdb.opening import Opened, StoreInUse, StoreRefused, open_store, unreadable
from memoryd.store.duckdb.store import DuckDBStore

__all__ = ["DuckDBStore", "Opened", "StoreInUse", "StoreRefused", "open_store", "read_everything", "unreadable"]
