"""Steps that made the tables of requests what they are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import duckdb

__all__ = ["receipts"]


def receipts(con: duckdb.DuckDBPyConnection) -> None:
    """Keep the ids that receipts of requests name in a table of their own, with their owners."""
    con.execute("""
        CREATE TABLE request_ids (
            request VARCHAR NOT NULL,
            place BIGINT NOT NULL,
            rank BIGINT NOT NULL,
            agent_id VARCHAR NOT NULL,
            user_id VARCHAR,
            chat_id VARCHAR,
            thread_id VARCHAR NOT NULL,
            id VARCHAR NOT NULL
        )""")
    held = [(name, json.loads(answer)) for name, answer in con.execute("SELECT name, answer FROM requests").fetchall()]
    if not held:
        return
    ids = [one for _, answer in held for memory_id, _, more in answer["outcomes"] for one in (memory_id, *more)]
    found = con.execute(
        "SELECT id, agent_id, user_id, chat_id FROM memories WHERE id IN (SELECT unnest(?::VARCHAR[]))", [ids]
    ).fetchall()
    owners = {memory_id: owner for memory_id, *owner in found}
    threads = {
        f"thread:{name}": place
        for name, *place in con.execute("SELECT name, agent_id, user_id, chat_id, thread_id FROM threads").fetchall()
    }
    changed: dict[str, list[str]] = {"name": [], "answer": []}
    rows: list[list[Any]] = []
    gone: list[str] = []
    for name, answer in held:
        try:
            body, named = _receipt_of(answer, owners, threads)
        except (ValueError, IndexError):  # a message was erased whose id was like another part of the answer
            gone.append(name)
            continue
        if not named and any(memory_id for memory_id, _, _ in answer["outcomes"]):
            gone.append(name)  # what it is about is gone
            continue
        changed["name"].append(name)
        changed["answer"].append(json.dumps(body))
        rows += ([name, *row] for row in named)
    con.execute("DELETE FROM requests WHERE name IN (SELECT unnest(?::VARCHAR[]))", [gone])
    columns = {name: np.array(values, dtype=object) for name, values in changed.items()}  # noqa: F841  DuckDB finds it
    con.execute("UPDATE requests SET answer = columns.answer FROM columns WHERE requests.name = columns.name")
    if rows:  # at once: a statement a row takes .7 ms
        kinds = ("VARCHAR", "BIGINT", "BIGINT", *["VARCHAR"] * 5)
        select = ", ".join(f"unnest(?::{kind}[])" for kind in kinds)
        con.execute(f"INSERT INTO request_ids SELECT {select}", [list(column) for column in zip(*rows, strict=True)])


def _receipt_of(
    answer: dict[str, Any], owners: Mapping[str, Sequence[Any]], threads: Mapping[str, Sequence[Any]]
) -> tuple[dict[str, Any], list[list[Any]]]:
    """Return what a receipt holds besides ids, and the ids, each with its place, rank, owner and thread."""
    outcomes = answer["outcomes"]
    body: dict[str, Any] = {"payload_hash": answer["payload_hash"]}
    named: list[list[Any]] = []
    for place, (one_id, outcome, more) in enumerate(outcomes):
        if outcome is None and more:  # a message: its thread, seq, time, whether it was masked, its session
            if one_id and more[0] in threads:
                named.append([place, 0, *threads[more[0]], one_id])
            continue
        replaced = more if outcome in {"inserted", "superseded"} else []
        named += [
            [place, rank, *owners[memory_id], "", memory_id]
            for rank, memory_id in enumerate((one_id, *replaced))
            if memory_id in owners
        ]
    if outcomes and outcomes[0][1] is None and outcomes[0][2]:
        told = [[int(seq), int(created), masked == "1"] for _, _, (_, seq, created, masked, _) in outcomes]
        return {**body, "kind": "append", "session_id": outcomes[0][2][4], "messages": told}, named
    if any(outcome is None for _, outcome, _ in outcomes):
        return {**body, "kind": "memories"}, named
    told = [
        [outcome, more if outcome == "reinforced" else [], "".join(more) if outcome == "rejected" else None]
        for _, outcome, more in outcomes
    ]
    return {**body, "kind": "add", "statements": told}, named
