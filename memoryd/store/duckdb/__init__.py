"""The store that lasts: one DuckDB file, one writer, and a guard for what DuckDB itself does not notice."""

from memoryd.store.duckdb.checking import check_database, migrate_database, repair_database
from memoryd.store.duckdb.downgrading import downgrade_database
from memoryd.store.duckdb.files import unreadable
from memoryd.store.duckdb.opening import Opened, open_database
from memoryd.store.duckdb.purges import noted_purge
from memoryd.store.duckdb.restoring import begin_history, history_id, prove_copy, rewrite_copy
from memoryd.store.duckdb.store import DuckDBStore

__all__ = [
    "DuckDBStore",
    "Opened",
    "begin_history",
    "check_database",
    "downgrade_database",
    "history_id",
    "migrate_database",
    "noted_purge",
    "open_database",
    "prove_copy",
    "repair_database",
    "rewrite_copy",
    "unreadable",
]
