"""What the engine on a PostgreSQL server costs next to DuckDB: CPU of client and server, in turns within one run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count

import numpy as np
import psycopg

from memoryd.index.scope import ScopeIndex
from memoryd.knowledge.text_traits import stored_traits
from memoryd.model.batch import VectorsWanted
from memoryd.model.change import ChangeSet, ConversationChange, Entry, NewMessage, RecordedRequest
from memoryd.model.conversation import Message, Role, Session, SessionState, Thread
from memoryd.model.memory import Memory, Outcome
from memoryd.model.query import Filter
from memoryd.model.receipt import AddReceipt, StatementOutcome
from memoryd.model.scope import Owner, Scope, Visibility
from memoryd.store.base import Store
from memoryd.store.postgres import PostgresStore, Settings, open_database
from tests.bench.report import one, scratch
from tests.bench.seed import sentences
from tests.builders import open_duckdb
from tests.postgres_server import Server, server

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DIMENSIONS, FINGERPRINT, GRANT = 384, "fp", "g" * 26
TURNS, A_TURN = 4, 100
_numbers = count()
_rng = np.random.default_rng(1)
_texts = sentences(4096)
_traits: dict[str, str] = {}


@dataclass
class Side:
    """One of the two stores."""

    store: Store
    server: Server | None = None

    def cpu_s(self) -> float:
        """CPU seconds so far of this process and of the server, if this store has one."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime + (self.server.cpu_s() if self.server else 0.0)


def postgres(*, quick: bool) -> None:
    """Measure commits, appends, batches, loads and searches beyond memory on both, in turns."""
    folder = scratch()
    with server(settings="shared_buffers = '256MB'\n") as held:
        settings = Settings(held.database())
        asyncio.run(_measure(folder, held, settings, sizes=(10_000,) if quick else (10_000, 100_000)))
    shutil.rmtree(folder)


async def _measure(folder, held: Server, settings: Settings, sizes: tuple[int, ...]) -> None:
    store = PostgresStore(settings, open_database(settings, random_bytes=os.urandom))
    sides = {"DuckDB": Side(open_duckdb(folder)), "PostgreSQL": Side(store, held)}
    for side in sides.values():
        await _fill(side.store, "warm", 300)
    await _ratio("CPU of a commit (memory, vector, request, usage)", sides, _commits, "≤ 0.5")
    await _ratio("CPU of an append (2 messages, thread, session, request, usage)", sides, _appends, "≤ 0.4")
    await _ratio("CPU of a batch of 100, a row", sides, _batches, "≤ 1.2")
    for size in sizes:
        for side in sides.values():
            await _fill(side.store, f"l{size}", size, batch=1000)
        await _ratio(f"CPU of a load of {size:,}", sides, lambda side, _, size=size: _load(side, size), "≤ 1.15")
    await _ratio("CPU of a search beyond memory, 10,000", sides, lambda side, _: _nearest(side.store, sizes[0]), "≤ 5")
    _disk(settings)
    for side in sides.values():
        await side.store.close()


async def _ratio(name: str, sides: dict[str, Side], work, goal: str) -> None:
    """Do some work on each in turns, which returns how many times it was done, and print what the medians say."""
    spent: dict[str, list[float]] = {name: [] for name in sides}
    took: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(TURNS):
        for which, side in sides.items() if turn % 2 else [*sides.items()][::-1]:
            before, began = side.cpu_s(), time.perf_counter()
            done = await work(side, turn)
            took[which].append((time.perf_counter() - began) / done * 1e3)
            spent[which].append((side.cpu_s() - before) / done * 1e3)
    duckdb, other = (statistics.median(spent[which]) for which in sides)
    one(f"{name}: DuckDB", duckdb, "ms CPU")
    one(f"{name}: PostgreSQL, client and server", other / duckdb, "× DuckDB", goal)
    one(
        f"{name}: PostgreSQL, wall",
        statistics.median(took["PostgreSQL"]) / statistics.median(took["DuckDB"]),
        "× DuckDB",
    )


def _owner(name: str) -> Owner:
    return Owner("default", Scope(user_id=name))


def _entry(name: str) -> Entry:
    n = next(_numbers)
    content = _texts[n % len(_texts)]
    vector = _rng.standard_normal(DIMENSIONS).astype(np.float32)
    made = Memory(
        id=os.urandom(13).hex(), agent_id="default", scope=Scope(user_id=name), content=content, grant_id=GRANT,
        create_time=BEGIN + timedelta(milliseconds=n), event_time=BEGIN,
    )  # fmt: skip
    tokens = _rng.integers(0, 255, 17 * 128, dtype=np.uint8).tobytes()
    if content not in _traits:
        _traits[content] = stored_traits(made)
    return Entry(made, content, vector / np.linalg.norm(vector), FINGERPRINT, tokens, traits=_traits[content])


def _request(name: str, *entries: Entry) -> RecordedRequest:
    owner = _owner(name)
    told = tuple(StatementOutcome(Outcome.INSERTED, owner, entry.memory.id) for entry in entries)
    return RecordedRequest(owner, "AddMemory", os.urandom(8).hex(), "h" * 32, AddReceipt(told), BEGIN)


async def _add(store: Store, name: str, entries: tuple[Entry, ...]) -> None:
    seen = (await store.commits.memories.head(_owner(name))).commit_seq
    await store.commits.write(ChangeSet(inserts=entries, request=_request(name, *entries), based_on=seen))


async def _fill(store: Store, name: str, size: int, *, batch: int = 100) -> None:
    for _ in range(0, size, batch):
        await _add(store, name, tuple(_entry(name) for _ in range(batch)))


async def _commits(side: Side, turn: int) -> int:
    for _ in range(A_TURN):
        await _add(side.store, f"c{turn}", (_entry(f"c{turn}"),))
    return A_TURN


async def _appends(side: Side, turn: int) -> int:
    name = f"a{turn}"
    owner = _owner(name)
    for n in range(A_TURN):
        first, time_ = 1 + 2 * n, BEGIN + timedelta(seconds=n)
        messages = [
            Message(
                id=os.urandom(13).hex(), agent_id="default", scope=owner.scope, thread_id="t", seq=seq, session_id="s",
                role=Role.USER, content=_texts[next(_numbers) % len(_texts)], create_time=time_, grant_id=GRANT,
            )
            for seq in (first, first + 1)
        ]  # fmt: skip
        thread = Thread(
            id="t", agent_id="default", scope=owner.scope, create_time=BEGIN, update_time=time_, session_id="s",
            revision=n + 1, last_seq=first + 1, message_count=first + 1,
        )  # fmt: skip
        session = Session(
            id="s", agent_id="default", scope=owner.scope, thread_id="t", start_time=BEGIN, update_time=time_,
            state=SessionState.OPEN, last_seq=first + 1,
        )  # fmt: skip
        said = tuple(NewMessage(message, message.content) for message in messages)
        talk = ConversationChange(owner, messages=said, threads=(thread,), sessions=(session,))
        await side.store.commits.write(ChangeSet(conversation=talk, request=_request(name)))
    return A_TURN


async def _batches(side: Side, turn: int) -> int:
    await _fill(side.store, f"b{turn}", 1000)
    return 1000


async def _load(side: Side, size: int) -> int:
    def build(snapshot) -> int:
        wanted = VectorsWanted(DIMENSIONS, FINGERPRINT, tokens=False)
        index = ScopeIndex(
            snapshot.read(wanted), dimensions=DIMENSIONS, fingerprint=FINGERPRINT, entities=snapshot.entities,
            tombstones=snapshot.tombstones, with_tokens=False, is_large=False,
        )  # fmt: skip
        return index.count

    feed = side.store.commits.memories
    loaded = await asyncio.get_running_loop().run_in_executor(None, feed.snapshot, _owner(f"l{size}"), build)
    assert loaded == size
    return 1


async def _nearest(store: Store, size: int) -> int:
    visible = Visibility("default", f"l{size}", None)
    for _ in range(5):
        vector = _rng.standard_normal(DIMENSIONS).astype(np.float32)
        query = vector / np.linalg.norm(vector)
        assert await store.memories.nearest(visible, query, FINGERPRINT, Filter(), now=BEGIN, limit=20)
    return 5


def _disk(settings: Settings) -> None:
    with _connected(settings) as con:
        con.execute("VACUUM ANALYZE")
        [(size, indexes, rows)] = con.execute(
            "SELECT pg_total_relation_size('memories'), pg_indexes_size('memories'), (SELECT count(*) FROM memories)"
        ).fetchall()
    one("Disk of a memory with its vectors on PostgreSQL", size / rows / 1024, "KiB")
    one("of it indexes", indexes / rows / 1024, "KiB")


@contextlib.contextmanager
def _connected(settings: Settings) -> Iterator[psycopg.Connection]:
    with psycopg.connect(settings.dsn, autocommit=True, **settings.parameters) as con:
        yield con
