"""An export as tables: a Parquet file for each type of record, written by DuckDB."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import duckdb

__all__ = ["write_tables"]

MOST_LINE_BYTES = 1 << 28
ABOUT = frozenset({"header", "end"})  # lines that speak of the export


def write_tables(lines: Path, folder: Path) -> dict[str, int]:
    """
    Write what an export holds to `TYPE.parquet` files of a new folder; return how many rows each has.

    The columns are the fields of the lines, as DuckDB reads them from JSON: what has fields is a struct. Text is never
    taken for a time; the times of a record itself are times (UTC), those in structs are text.
    """
    folder.mkdir(mode=0o700)
    counts: Counter[str] = Counter()
    with ExitStack() as stack, lines.open("rb") as file:
        parts: dict[str, IO[bytes]] = {}
        for line in file:
            name = str(json.loads(line)["type"])
            if name in ABOUT:
                continue
            if name not in parts:
                parts[name] = stack.enter_context(lines.with_name(f"{name}.jsonl").open("wb"))
            parts[name].write(line)
            counts[name] += 1
    with duckdb.connect() as connection:
        connection.execute("SET autoinstall_known_extensions = false")
        for name in sorted(counts):
            target = folder / f"{name}.parquet"
            connection.execute(f"CREATE OR REPLACE VIEW lines AS {_reading(lines.with_name(f'{name}.jsonl'))}")
            described = connection.execute("DESCRIBE lines").fetchall()
            times = [f"{column}::TIMESTAMPTZ AS {column}" for column, *_ in described if column.endswith("_time")]
            replaced = f"REPLACE ({', '.join(times)})" if times else ""
            rows = f"SELECT * EXCLUDE (type) {replaced} FROM lines"  # noqa: S608  names of our own fields
            connection.execute(f"COPY ({rows}) TO {_quoted(target)} (FORMAT parquet)")
            target.chmod(0o600)
    return dict(sorted(counts.items()))


def _reading(path: Path) -> str:
    options = {
        "format": "'newline_delimited'",
        "sample_size": "-1",  # all lines, as a field may be of one line alone
        "dateformat": "'none'",
        "timestampformat": "'none'",
        "convert_strings_to_integers": "false",
        "maximum_object_size": str(MOST_LINE_BYTES),
    }
    told = ", ".join(f"{name} = {value}" for name, value in options.items())
    return f"SELECT * FROM read_json({_quoted(path)}, {told})"  # noqa: S608  of a path that is quoted


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
