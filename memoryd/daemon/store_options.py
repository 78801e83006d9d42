"""What the configuration says of where memories last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memoryd.daemon.config import Config
from memoryd.paths import Places
from memoryd.store.opening import ServerOptions, StoreOptions, StoreRefused

__all__ = ["file_options", "store_options"]


def store_options(config: Config, places: Places, **more: Any) -> StoreOptions:
    """Return the file of a store, or the server that holds it; `more` are other fields of StoreOptions."""
    kept = config.store
    server = None
    if kept.engine == "postgres":
        server = ServerOptions(
            kept.dsn,
            Path(kept.password_file) if kept.password_file else None,
            kept.pool,
            kept.prepare,
            kept.statement_timeout_s,
            kept.lock_timeout_s,
        )
    return StoreOptions(places.database, kept.memory_limit_bytes, server=server, **more)


def file_options(config: Config, places: Places, **more: Any) -> StoreOptions:
    """Return the file of a store, for what is done with files alone; StoreRefused for one on a server."""
    if config.store.engine == "postgres":
        raise StoreRefused(
            "the memories are in PostgreSQL (store.engine); this command is for files: see docs/postgres.md"
        )
    return store_options(config, places, **more)
