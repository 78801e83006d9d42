"""Fills a database with many memories without embedding them: random unit vectors, sentences of a skewed vocabulary."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from memoryd.daemon.wiring import new_id
from memoryd.embedding.readers.retrieval import retrieval_encoder
from memoryd.index.analysis import analyse, indexed_memory
from memoryd.model.change import ChangeSet, Entry
from memoryd.model.embedding import TOKEN_DIMENSIONS
from memoryd.model.memory import Kind, Memory, Source
from memoryd.model.scope import Scope
from memoryd.store.duckdb.vectors import VectorColumns
from memoryd.store.duckdb.writer import write
from tests.builders import open_database

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
A_SESSION = 20  # messages


@cache
def _vocabulary() -> list[str]:
    """Return the whole words of the packaged model's tokenizer, in a fixed random order."""
    tokenizer = json.loads((files("memoryd.embedding") / "data" / "tokenizer.json").read_bytes())
    words = [word for word in tokenizer["model"]["vocab"] if word.isascii() and word.isalpha() and len(word) > 2]
    random.Random(1).shuffle(words)
    return words


def sentences(count: int, seed: int = 1) -> list[str]:
    """
    Return sentences of 8 to 19 content words whose frequencies follow the law of Zipf and Mandelbrot.

    The commonest word is in 8 % of the sentences, as the commonest content words of a dialogue are.
    """
    vocabulary = _vocabulary()
    rng = np.random.default_rng(seed)
    lengths = rng.integers(8, 20, count)
    weights = 1 / (np.arange(len(vocabulary)) + 30.0) ** 1.05
    picks = rng.choice(len(vocabulary), int(lengths.sum()), p=weights / weights.sum())
    ends = np.cumsum(lengths)
    return [" ".join(vocabulary[n] for n in picks[end - size : end]) for size, end in zip(lengths, ends, strict=True)]


def fill(database: Path, scopes: dict[str, int], *, others: int = 0, vectors: bool = True, said: bool = False) -> None:
    """
    Write `count` memories for each user, and `others` spread over a thousand other users.

    Each has the vectors of as many tokens as words. With `said` they are of kind EPISODE, in sessions of 20 by two
    speakers, an hour each.
    """
    encoder = retrieval_encoder() if vectors else None  # what a daemon embeds with unless it is told otherwise
    opened = open_database(database, memory_limit_bytes=1 << 30)
    rng = np.random.default_rng(2)
    stamp = BEGIN
    columns = VectorColumns(opened.connection)
    for user, count in scopes.items():
        texts = sentences(count, seed=len(user) + count)
        for start in range(0, count, 5000):
            entries = []
            for n, text in enumerate(texts[start : start + 5000]):
                stamp += timedelta(milliseconds=1)
                number = start + n
                source = Source(("ann", "bob")[number % 2], session_id=f"s{number // A_SESSION}") if said else Source()
                memory = Memory(
                    id=new_id(),
                    agent_id="default",
                    scope=Scope(user_id=user),
                    content=f"{text} {number}",
                    create_time=stamp,
                    event_time=BEGIN + timedelta(hours=number // A_SESSION, seconds=n) if said else stamp,
                    kind=Kind.EPISODE if said else Kind.FACT,
                    source=source,
                )
                vector, tokens = None, b""
                if encoder is not None:
                    size = (text.count(" ") + 2, TOKEN_DIMENSIONS)
                    tokens = rng.normal(0, 13, size).round().clip(-127, 127).astype(np.int8).tobytes()
                    vector = rng.standard_normal(encoder.dimensions).astype(np.float32)
                    vector /= np.linalg.norm(vector)
                terms = " ".join(analyse(indexed_memory(memory)))
                entries.append(Entry(memory, terms, vector, encoder.fingerprint if encoder else "", tokens))
            if encoder is not None:
                columns.ensure(opened.connection, encoder.dimensions)
            opened.connection.execute("BEGIN")
            write(opened.connection, [ChangeSet(inserts=tuple(entries))], opened.commit_seq, columns.dimensions)
            opened.connection.execute("COMMIT")
    if others:
        fingerprint = encoder.fingerprint if encoder else ""
        opened.connection.execute("CREATE TEMP TABLE sample AS SELECT * FROM memories ORDER BY create_time LIMIT 1000")
        opened.connection.execute("SET preserve_insertion_order = false")
        for start in range(0, others, 100_000):
            opened.connection.execute(
                "INSERT INTO memories BY NAME SELECT s.* EXCLUDE (at) REPLACE ("
                " lower(substr(md5(random()::VARCHAR) || md5(random()::VARCHAR), 1, 26)) AS id,"
                " 'other' || (n % 1000) AS user_id, ? AS fingerprint,"
                " create_time + INTERVAL 1 DAY + to_microseconds(n) AS create_time)"
                " FROM (SELECT range AS n FROM range(?, ?)) JOIN (SELECT *, row_number() OVER ()"
                " AS at FROM sample) AS s ON s.at = n % 1000 + 1",
                [fingerprint, start, min(others, start + 100_000)],
            )
            opened.connection.execute("CHECKPOINT")
    opened.connection.execute("CHECKPOINT")
    opened.close()
