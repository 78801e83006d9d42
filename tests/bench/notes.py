"""What a note costs: to get one among ten and among a hundred thousand, and to put one."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from memoryd.model.limits import MAX_NOTES
from memoryd.model.scope import Owner, Scope
from memoryd.store.duckdb.note_writes import note_name
from tests.bench.report import one, scratch
from tests.bench.seed import fill
from tests.support import Daemon

CALLS = 400
TEXT_BYTES = 1000


def notes(*, quick: bool) -> None:
    """Get and put notes in turns in two daemons: one with ten, one with nearly as many as there may be."""
    counts = (10, MAX_NOTES // 10 if quick else MAX_NOTES - 2 * CALLS)
    folders, daemons = [scratch(), scratch()], []
    for folder, count in zip(folders, counts, strict=True):
        fill(folder / "memory.duckdb", {"k1": 10})
        _fill(folder / "memory.duckdb", count)
        daemons.append(Daemon(folder))
        daemons[-1].start()
    clients = [daemon.client("k1") for daemon in daemons]
    got: list[list[float]] = [[], []]
    put: list[list[float]] = [[], []]
    for n in range(CALLS):
        for which in (0, 1) if n % 2 else (1, 0):
            client = clients[which]
            got[which].append(_took(lambda: client.note(f"n{n % 10}")))  # noqa: B023  called at once
            put[which].append(_took(lambda: client.put_note(f"new/{n % 40}", f"text {n}")))  # noqa: B023
    for name, took in (("Get a note", got), ("Put a note", put)):
        few, many = map(statistics.median, took)
        one(f"{name} among ten", few, "ms")
        one(f"{name} among {counts[1]:,}", many / few, "× among ten", "≤ 1.1")
    for client, daemon, folder in zip(clients, daemons, folders, strict=True):
        client.close()
        daemon.stop()
        shutil.rmtree(folder)


def _took(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3


def _fill(database: Path, count: int) -> None:
    """Write notes n0, n1, … of one version each."""
    import duckdb

    owner = Owner("default", Scope(user_id="k1"))
    ids = [os.urandom(13).hex() for _ in range(count)]
    names = [note_name(owner, f"n{n}") for n in range(count)]
    told = [
        json.dumps({
            "id": one_id,
            "expire_after_access_s": 0,
            "versions": [[1, 1_790_000_000_000_000, TEXT_BYTES, False, "host", "", "", one_id]],
        })
        for one_id in ids
    ]  # fmt: skip
    with duckdb.connect(str(database)) as con:
        con.execute(
            "INSERT INTO notes SELECT unnest(?::VARCHAR[]), 'default', 'k1', NULL, unnest(?::VARCHAR[]),"
            " TIMESTAMP '2026-09-21', NULL, unnest(?::VARCHAR[]), ?, 1",
            [names, [f"n{n}" for n in range(count)], told, TEXT_BYTES],
        )
        con.execute(
            "INSERT INTO note_texts SELECT unnest(?::VARCHAR[]) || ':0', 'default', 'k1', NULL, repeat('x', ?), 1",
            [ids, TEXT_BYTES],
        )
