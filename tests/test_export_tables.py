"""An export as Parquet: every record is a row, no text becomes anything else, and nothing is left of a failure."""

from __future__ import annotations

import json
import os
import subprocess

import duckdb
from memory_client import MessageDraft

from tests.forking import run_command
from tests.support import BIN, PATIENCE_S, running

CONFIG = '[embedding]\nprovider = "none"\n[learning]\nextractor = "none"\n'
TEXTS = ["2026-11-01", "17", "true", "naïve 東京 🦊 \u202e", '{"a": 1}', "line\nline", "'; DROP TABLE x; --"]


def test_an_export_is_a_table_for_each_type(folder):
    def memoryd(*words: object) -> subprocess.CompletedProcess[str]:
        command = [BIN / "memoryd", *map(str, words), "--socket", str(daemon.socket)]
        env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        return run_command(command, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE_S)

    target = folder / "it's tables"
    with running(folder, config=CONFIG) as daemon, daemon.client() as memory:
        for n, text in enumerate(TEXTS):
            memory.add(f"note {n}: {text}", metadata={f"key{n}": text})
            memory.append("t", [MessageDraft(content=text)])
        ids = {one.id for one in memory.pages()}
        done = memoryd("export", "--format", "parquet", "-o", target, "--json")
        assert 0 == done.returncode, done.stderr
        counts = json.loads(done.stdout)["counts"]
        again = memoryd("export", "--format", "parquet", "-o", target)
        assert (2, True) == (again.returncode, "is there already" in again.stderr)
        assert 2 == memoryd("export", "--format", "parquet").returncode
    assert (len(TEXTS), len(TEXTS)) == (counts["memory"], counts["message"])
    read = duckdb.connect()

    def rows(sql: str, name: str):
        return read.execute(f"SELECT {sql} FROM read_parquet(?)", [str(target / f"{name}.parquet")]).fetchall()  # noqa: S608

    assert ids == {row[0] for row in rows("id", "memory")}
    assert TEXTS == [row[0] for row in rows("content", "message")]
    assert [("TIMESTAMP WITH TIME ZONE",)] == rows("DISTINCT typeof(create_time)", "memory")
    assert {f"{name}.parquet" for name in counts} == {path.name for path in target.iterdir()}
    assert {0o600} == {path.stat().st_mode & 0o777 for path in target.iterdir()}
    assert not list(folder.glob(".export-*"))
