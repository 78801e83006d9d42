"""The statements of one transaction, in the order in which they lock; and what each is keyed by."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.model.scope import Owner
from memoryd.store.postgres.arrays import array_of

__all__ = [
    "MEMORIES",
    "MESSAGES",
    "NOTES",
    "Statement",
    "Statements",
    "head_of",
    "owner_columns",
    "owner_key",
    "packed",
]

MEMORIES, MESSAGES, NOTES = "memories", "messages", "notes"
"""The feeds, each with numbers of its own for each owner."""


class Statement(NamedTuple):
    """One statement and its parameters."""

    sql: str
    params: Sequence[Any]


class Statements(list[Statement]):
    """What a transaction does."""

    def add(self, sql: str, *params: Any) -> None:
        """Do this next."""
        self.append(Statement(sql, params))

    def put(
        self, table: str, table_rows: Sequence[Mapping[str, Any]], types: Mapping[str, str], tail: str = ""
    ) -> None:
        """Insert rows, at least one, of the same columns, by one statement for however many."""
        names = list(table_rows[0])
        columns = ", ".join(names)
        if len(table_rows) == 1:  # what is inserted one by one is planned once and kept
            marks = ", ".join(f"%s::{types.get(name, 'text')}" for name in names)
            self.add(f"INSERT INTO {table} ({columns}) VALUES ({marks}) {tail}", *table_rows[0].values())
            return
        arrays = ", ".join(f"%s::{types.get(name, 'text')}[]" for name in names)
        values = (array_of(types.get(name, "text"), [row[name] for row in table_rows]) for name in names)
        self.add(f"INSERT INTO {table} ({columns}) SELECT * FROM unnest({arrays}) {tail}", *values)


def owner_key(owner: Owner) -> uuid.UUID:
    """Return what every key of an owner's rows begins with: 128 bits of a digest of who that is."""
    named = json.dumps([owner.agent_id, owner.scope.user_id, owner.scope.chat_id])
    return uuid.UUID(bytes=hashlib.blake2b(named.encode(), digest_size=16).digest())


def owner_columns(owner: Owner) -> dict[str, Any]:
    """Return the columns that say whose a row is."""
    return {
        "owner_id": owner_key(owner),
        "agent_id": owner.agent_id,
        "user_id": owner.scope.user_id,
        "chat_id": owner.scope.chat_id,
    }


def head_of(feed: str) -> str:
    """Return the SQL of the number that the transaction has given an owner in a feed; its parameter is the key."""
    return f"(SELECT commit_seq FROM heads WHERE owner_id = %s AND feed = '{feed}')"


def packed(vector: NDArray[np.float32] | None) -> bytes | None:
    """Return a vector as its column holds it."""
    return None if vector is None else np.asarray(vector, dtype="<f4").tobytes()
