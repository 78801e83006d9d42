"""Steps that made the tables of memories, people and grants what they are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "filter_terms",
    "first_tables",
    "grants",
    "knowledge",
    "places",
    "token_vectors",
    "traits",
    "unlink",
    "usage",
    "window_vectors",
]


def first_tables(con: duckdb.DuckDBPyConnection) -> None:
    """
    Create memories, how they are used, and the requests that made them.

    What a query compares has a column; the rest of a memory is `details`, a JSON object with the names of the contract
    (a statement's cost rises with its columns: 37 took 3.4 ms of CPU an insert, 20 take half). `facets` holds what
    filters ask for, each as a JSON string between unit separators. Vectors get a column next to it once there are any;
    see vectors.py.
    """
    con.execute("""
        CREATE TABLE memories (
            id VARCHAR PRIMARY KEY,
            agent_id VARCHAR NOT NULL,
            user_id VARCHAR,
            chat_id VARCHAR,
            content VARCHAR NOT NULL,
            text_digest VARCHAR NOT NULL,
            kind VARCHAR NOT NULL,
            key VARCHAR NOT NULL,
            facets VARCHAR NOT NULL,
            details VARCHAR NOT NULL,
            create_time TIMESTAMP NOT NULL,
            event_time TIMESTAMP NOT NULL,
            expire_time TIMESTAMP,
            supersede_time TIMESTAMP,
            delete_time TIMESTAMP,
            purge_time TIMESTAMP,
            terms VARCHAR NOT NULL,
            fingerprint VARCHAR NOT NULL,
            commit_seq BIGINT NOT NULL
        )""")
    con.execute("""
        CREATE TABLE uses (
            memory_id VARCHAR PRIMARY KEY,
            recall_time TIMESTAMP NOT NULL,
            recall_count BIGINT NOT NULL
        )""")
    con.execute("""
        CREATE TABLE requests (
            name VARCHAR PRIMARY KEY,
            answer VARCHAR NOT NULL,
            create_time TIMESTAMP NOT NULL
        )""")


def grants(con: duckdb.DuckDBPyConnection) -> None:
    """
    Create grants and the keys of tokens; give memories the grant that they came through.

    No memory came through one so far.
    """
    con.execute("ALTER TABLE memories ADD COLUMN grant_id VARCHAR DEFAULT ''")
    con.execute("ALTER TABLE memories ADD COLUMN text_bytes BIGINT DEFAULT 0")
    con.execute("""
        CREATE TABLE grants (
            id VARCHAR PRIMARY KEY,
            details VARCHAR NOT NULL,
            create_time TIMESTAMP NOT NULL
        )""")
    con.execute("""
        CREATE TABLE token_keys (
            id VARCHAR PRIMARY KEY,
            secret VARCHAR NOT NULL,
            create_time TIMESTAMP NOT NULL
        )""")


def knowledge(con: duckdb.DuckDBPyConnection) -> None:
    """
    Create what was decided of entities, what must not be learnt again, when jobs ran; tell the host's recalls apart.

    Recalls so far count as the host's: there is no telling.
    """
    con.execute("""
        CREATE TABLE entities (
            id VARCHAR PRIMARY KEY,
            agent_id VARCHAR NOT NULL,
            user_id VARCHAR,
            chat_id VARCHAR,
            details VARCHAR NOT NULL,
            create_time TIMESTAMP NOT NULL
        )""")
    con.execute("""
        CREATE TABLE tombstones (
            digest VARCHAR PRIMARY KEY,
            agent_id VARCHAR NOT NULL,
            user_id VARCHAR,
            chat_id VARCHAR
        )""")
    con.execute("CREATE TABLE jobs (name VARCHAR PRIMARY KEY, run_time TIMESTAMP NOT NULL)")
    con.execute("ALTER TABLE uses ADD COLUMN trusted_recall_time TIMESTAMP")
    con.execute("UPDATE uses SET trusted_recall_time = recall_time")


def unlink(con: duckdb.DuckDBPyConnection) -> None:
    """Take the ids of purged memories out of their neighbours; delete given names of entities that no memory names."""
    known = {memory_id for (memory_id,) in con.execute("SELECT id FROM memories").fetchall()}
    linked = con.execute(
        "SELECT id, details, delete_time IS NOT NULL, supersede_time IS NOT NULL FROM memories"
        " WHERE contains(details, 'supersede') OR contains(details, 'contested_with') OR contains(details, 'evidence')"
    ).fetchall()
    changed: dict[str, list[str]] = {"id": [], "details": []}
    for memory_id, text, is_deleted, is_superseded in linked:
        kept = _unlinked(json.loads(text), known, is_deleted=is_deleted, is_superseded=is_superseded)
        if kept != text:
            changed["id"].append(memory_id)
            changed["details"].append(kept)
    if changed["id"]:
        columns = {name: np.array(values, dtype=object) for name, values in changed.items()}  # noqa: F841  DuckDB finds it
        con.execute("UPDATE memories SET details = columns.details FROM columns WHERE memories.id = columns.id")
    con.execute("DELETE FROM uses WHERE memory_id NOT IN (SELECT id FROM memories)")
    con.execute(  # what went may lie in the file yet; nothing went where nothing ever was
        "INSERT OR REPLACE INTO jobs SELECT 'purge', now()::TIMESTAMP"
        " WHERE (SELECT max(commit_seq) FROM commits) > 0 OR EXISTS (FROM memories)"
    )
    rows = {entity: json.loads(text) for entity, text in con.execute("SELECT id, details FROM entities").fetchall()}
    if rows:
        _forget_unnamed(con, rows)


def _unlinked(details: dict[str, Any], known: Collection[str], *, is_deleted: bool, is_superseded: bool) -> str:
    for name in ("supersedes", "contested_with"):
        if name in details:
            details[name] = [link for link in details[name] if link in known]
    if details.get("superseded_by", "") not in known:
        details.pop("superseded_by", None)
    judgement = details.get("judgement")
    if judgement and judgement["evidence"] and judgement["evidence"] not in known:
        judgement["evidence"] = next(iter(details.get("contested_with", ())), "")
    if judgement and not is_superseded and (is_deleted or not details.get("contested_with")):
        del details["judgement"]
    values = {name: value for name, value in details.items() if value or value == 0}
    return json.dumps(values, ensure_ascii=False)


def _forget_unnamed(con: duckdb.DuckDBPyConnection, rows: dict[str, dict[str, Any]]) -> None:
    """Drop what was decided of entities that no memory names, by any of the ids that are one with theirs."""
    told = con.execute("SELECT details FROM memories WHERE contains(details, 'mentions')").fetchall()
    mentions = [mention for (text,) in told for mention in json.loads(text).get("mentions", ())]
    named = {one for mention in mentions for one in (mention[0], mention[-1])}
    pairs = [(entity, row["merged_into"]) for entity, row in rows.items() if row.get("merged_into")]
    while more := {one for pair in pairs if named.intersection(pair) for one in pair} - named:
        named |= more
    for entity, row in rows.items():
        apart = [one for one in row.get("apart", ()) if one in named]
        if entity not in named:
            con.execute("DELETE FROM entities WHERE id = ?", [entity])
        elif apart != row.get("apart", []):
            kept = json.dumps({**row, "apart": apart}, ensure_ascii=False)
            con.execute("UPDATE entities SET details = ? WHERE id = ?", [kept, entity])


def usage(con: duckdb.DuckDBPyConnection) -> None:
    """Create what came through each grant, by owner and day of creation, and count what is there."""
    con.execute("""
        CREATE TABLE usage (
            name VARCHAR PRIMARY KEY,
            grant_id VARCHAR NOT NULL,
            day DATE NOT NULL,
            stored_memories BIGINT NOT NULL,
            stored_bytes BIGINT NOT NULL
        )""")
    counted = con.execute(
        "SELECT agent_id, user_id, chat_id, grant_id, create_time::DATE, count(*), sum(text_bytes)::BIGINT"
        " FROM memories WHERE grant_id <> '' GROUP BY ALL"
    ).fetchall()
    if not counted:
        return
    keys = ([agent_id, user_id, chat_id, one, day.isoformat()] for agent_id, user_id, chat_id, one, day, *_ in counted)
    names = [hashlib.blake2b(json.dumps(key).encode(), digest_size=16).hexdigest() for key in keys]
    _, _, _, *columns = zip(*counted, strict=True)
    con.execute(  # at once: a statement a row takes 1.3 ms
        "INSERT INTO usage SELECT unnest(?::VARCHAR[]), unnest(?::VARCHAR[]), unnest(?::DATE[]),"
        " unnest(?::BIGINT[]), unnest(?::BIGINT[])",
        [names, *map(list, columns)],
    )


def token_vectors(con: duckdb.DuckDBPyConnection) -> None:
    """Give memories and messages the vectors of their tokens; see `model.embedding`."""
    con.execute("ALTER TABLE memories ADD COLUMN token_vectors BLOB")
    con.execute("ALTER TABLE message_vectors ADD COLUMN token_vectors BLOB")


def traits(con: duckdb.DuckDBPyConnection) -> None:
    """Give memories and messages what ranking reads of their texts; empty: read it at each load."""
    con.execute("ALTER TABLE memories ADD COLUMN traits VARCHAR DEFAULT ''")
    con.execute("ALTER TABLE messages ADD COLUMN traits VARCHAR DEFAULT ''")


def places(con: duckdb.DuckDBPyConnection) -> None:
    """List memories of kind EPISODE under their threads and sessions, as those are that were stored of late."""
    rows = con.execute("SELECT id, facets, details FROM memories WHERE kind = 'episode'").fetchall()
    changed: dict[str, list[str]] = {"id": [], "facets": []}
    for memory_id, facets, details in rows:
        source = json.loads(details).get("source") or {}
        terms = [f"{name}:{source[f'{name}_id']}" for name in ("thread", "session") if source.get(f"{name}_id")]
        known = [text for text in facets.split("\x1f") if text]
        new = [text for term in terms if (text := json.dumps(term, ensure_ascii=False)) not in known]
        if new:
            changed["id"].append(memory_id)
            changed["facets"].append("\x1f".join(["", *known, *new, ""]))
    if changed["id"]:
        columns = {name: np.array(values, dtype=object) for name, values in changed.items()}  # noqa: F841  DuckDB finds it
        con.execute("UPDATE memories SET facets = columns.facets FROM columns WHERE memories.id = columns.id")


def window_vectors(con: duckdb.DuckDBPyConnection) -> None:
    """
    Give long texts the vectors of their later windows; see `model.embedding`.

    Those of a message lie in rows of their own, some windows each. Memories that are long get their vectors anew in the
    background, and are found by their words until then; messages keep theirs meanwhile.
    """
    con.execute("ALTER TABLE memories ADD COLUMN window_vectors BLOB")
    con.execute("ALTER TABLE message_vectors ADD COLUMN window_vectors BLOB")
    con.execute("UPDATE memories SET fingerprint = '' WHERE fingerprint <> '' AND strlen(content) > 1000")


def filter_terms(con: duckdb.DuckDBPyConnection) -> None:
    """Note which version of filter terms `memories.facets` holds; see `facets.py`."""
    con.execute("INSERT INTO meta VALUES ('filter_terms', '1')")
