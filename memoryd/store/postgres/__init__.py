"""Memories in PostgreSQL: any number of daemons before one server."""

from memoryd.store.postgres.connect import Settings
from memoryd.store.postgres.opening import check_database, open_database
from memoryd.store.postgres.store import PostgresStore

__all__ = ["PostgresStore", "Settings", "check_database", "open_database"]
