"""Helpers that build only what matters to a rule."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path

import numpy as np
from memory_client import AsyncMemoryClient

from memoryd.daemon.config import Config, ReadersConfig
from memoryd.daemon.servers import Servers, make_server
from memoryd.daemon.wiring import make_ports
from memoryd.domain.completion import run_to_completion
from memoryd.domain.context.build import build_context
from memoryd.domain.conversation.search import search_everything
from memoryd.domain.forgetting import forget, sweep
from memoryd.domain.forgetting.everything import forget_user
from memoryd.domain.people import decide, profiles
from memoryd.domain.people.forget import forget_person
from memoryd.domain.retrieval import browse
from memoryd.domain.retrieval.history import history
from memoryd.domain.retrieval.profile import profile_of
from memoryd.domain.retrieval.recall import recall
from memoryd.domain.scopes import Scopes
from memoryd.domain.writing import add, restore
from memoryd.domain.writing.confirm import confirm
from memoryd.domain.writing.update import update
from memoryd.embedding.scheduler import ScheduledEmbedder
from memoryd.identity.grants import Grants
from memoryd.index.analysis import analyse, indexed_memory
from memoryd.knowledge.text_traits import stored_traits
from memoryd.model.caller import Caller
from memoryd.model.change import Entry
from memoryd.model.context import ContextRequest
from memoryd.model.grant import Door, Quota
from memoryd.model.memory import Draft, Memory, Outcome, ShownMemory, Source
from memoryd.model.memory_columns import row_of
from memoryd.model.memory_update import MemoryUpdate
from memoryd.model.query import Filter, Query
from memoryd.model.receipt import AddReceipt, StatementOutcome
from memoryd.model.scope import Scope, Visibility
from memoryd.store import duckdb, opening
from memoryd.store.base import Store
from memoryd.store.memories import MemorySelector, Vectors
from memoryd.store.opening import StoreOptions
from tests.local_conversations import LocalConversations
from tests.local_notes import LocalNotes
from tests.postgres_server import binaries, open_postgres
from tests.shared_store import InTurns, view_of
from tests.support import PATIENCE_S

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
ALICE = Scope(user_id="alice")
BOB = Scope(user_id="bob")
TEAM = Scope(chat_id="team")
MEMORY_LIMIT = 256 << 20
_numbers = itertools.count(1)


def memory(content: str = "a statement", *, scope: Scope = ALICE, agent_id: str = "default", **more) -> Memory:
    n = next(_numbers)
    created = more.pop("create_time", NOW + timedelta(milliseconds=n))
    return Memory(
        id=more.pop("id", hashlib.sha256(str(n).encode()).hexdigest()[:26]),
        agent_id=agent_id,
        scope=scope,
        content=content,
        create_time=created,
        event_time=more.pop("event_time", created),
        **more,
    )


def shown(content: str = "a statement", *, said_by: str = "", said_time: datetime | None = None, **more) -> ShownMemory:
    return memory(content, **more).shown(NOW, said_by=said_by, said_time=said_time)


def entry(content: str | Memory = "a statement", **more) -> Entry:
    made = content if isinstance(content, Memory) else memory(content, **more)
    terms = " ".join(analyse(indexed_memory(made)))
    vector = HashEncoder().encode([made.content], query=False)[0]
    return Entry(made, terms, vector, HashEncoder.fingerprint, traits=stored_traits(made))


async def stored(store, made: Memory) -> Entry | None:
    """Return a memory as it is stored, with its vectors."""
    return next(iter(await store.memories.entries(made.owner, [made.id], Vectors.ALL)), None)


async def located(store, memory_id: str) -> Memory | None:
    """Return the memory of an id, of any owner, in any state."""
    return next(iter(await store.memories.scan(MemorySelector(ids=(memory_id,)), limit=1)), None)


async def traces_in(store, text: str) -> list[str]:
    """Return where a text stands in a store."""
    if store.files is not None:
        return await store.files.traces(text)
    held = (f"{row_of(entry.memory)} {entry.terms}" for entry in store._state.entries.values())
    return ["memories.content"] if any(text in told for told in held) else []


def with_ports(ports, **changed):
    """Return ports with other parts, wherever among them each stands."""
    for name, value in changed.items():
        group = next((one for one in ("guards", "readers", "shared") if hasattr(getattr(ports, one), name)), None)
        more = {name: value} if group is None else {group: replace(getattr(ports, group), **{name: value})}
        ports = replace(ports, **more)
    return ports


def added(memory: Memory, *superseded_ids: str) -> AddReceipt:
    return AddReceipt((StatementOutcome(Outcome.INSERTED, memory.owner, memory.id, superseded_ids),))


def visible_to(scope: Scope, *, chat_id: str | None = None) -> Visibility:
    return Visibility("default", scope.user_id, chat_id or scope.chat_id)


class HashEncoder:
    """An encoder of bags of words: texts that share words are similar, and nothing else is."""

    provider = "hash"
    fingerprint = "hash-of-words-32"
    dimensions = 32
    local = True

    def encode(self, texts: Sequence[str], *, query: bool) -> np.ndarray:
        rows = np.full((len(texts), self.dimensions), 0.01, dtype=np.float32)
        for n, text in enumerate(texts):
            for word in text.lower().split():
                rows[n, int(hashlib.md5(word.encode()).hexdigest(), 16) % self.dimensions] += 1  # noqa: S324
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def cost(self, text: str) -> int:
        return len(text.split())


open_database = partial(duckdb.open_database, random_bytes=os.urandom)


def open_store(path: Path | None, *, min_free_bytes: int = 0, journal=None, ledger=None, spool=None, **more):
    options = StoreOptions(path, MEMORY_LIMIT, min_free_bytes, ledger, spool)
    return opening.open_store(options, random_bytes=os.urandom, open_journal=lambda: journal, **more)


STORES = ["ram", "duckdb", *(["pg"] if binaries() else [])]
"""The kinds of stores that there are here."""


def open_kind(kind: str, folder: Path) -> Store:
    """Open a store of a kind for a test; `wire` is over DuckDB, which begins as a copy of a fresh database."""
    if kind == "ram":
        return ram_store()
    if kind == "pg":
        return open_postgres(folder)
    if not (folder / "memory.duckdb").exists():
        for name, data in _fresh_files().items():
            (folder / name).write_bytes(data)
    return open_duckdb(folder)


@cache
def _fresh_files() -> dict[str, bytes]:
    """The files of a database in which nothing is stored: to make the tables takes longer than most tests."""
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(1) as aside:  # where no loop runs
        aside.submit(lambda: asyncio.run(open_duckdb(Path(made)).close())).result()
        return {path.name: path.read_bytes() for path in Path(made).iterdir()}


def ram_store():
    return open_store(None)


def open_duckdb(folder: Path, **more):
    return open_store(folder / "memory.duckdb", **more)


class Local(LocalConversations, LocalNotes):
    """The use cases without a wire, with the methods of the client."""

    def __init__(
        self, ports, clock, *, user_id: str = "", chat_id: str = "", agent_id: str = "", grant_id: str = "", **quota
    ) -> None:
        self.ports, self.clock = ports, clock
        self._identity = {"agent_id": agent_id, "user_id": user_id, "chat_id": chat_id}
        self._grant = {"grant_id": grant_id, "quota": Quota(**quota)}

    def acting_for(self, *, user_id: str = "", chat_id: str = "", agent_id: str = "") -> Local:
        return Local(self.ports, self.clock, user_id=user_id, chat_id=chat_id, agent_id=agent_id)

    @property
    def _caller(self) -> Caller:
        return Caller(**self._identity, **self._grant)

    async def add(self, content: str, *, request_id: str = "", **more):
        draft = Draft(content=content, **{k: tuple(v) if isinstance(v, list) else v for k, v in more.items()})
        work = add.add(draft, self._caller, self.ports, now=self.clock(), request_id=request_id)
        return await run_to_completion(work)  # as the gate does it with every method that writes

    async def add_batch(self, drafts, *, request_id: str = ""):
        work = add.add_batch(drafts, self._caller, self.ports, now=self.clock(), request_id=request_id)
        return await run_to_completion(work)

    async def search(  # noqa: PLR0913  as the client has it
        self,
        query,
        *,
        limit=0,
        filter=Filter(),  # noqa: B008
        min_score=None,
        explain=False,
        as_of=None,
        why_not="",
        without_recall=False,
    ):
        asked = Query(
            text=query,
            limit=limit,
            filter=replace(filter, as_of=as_of),
            min_score=min_score,
            explain=explain,
            why_not=why_not,
            without_recall=without_recall,
        )
        look = search_everything if asked.asks_for_notes else recall
        return await look(asked, self._caller, self.ports, now=self.clock())

    async def page(self, *, page_size=0, page_token="", filter=Filter()):  # noqa: B008
        return await browse.page(
            self._caller, self.ports, wanted=filter, page_size=page_size, page_token=page_token, now=self.clock()
        )

    async def get(self, memory_id):
        return await browse.get(memory_id, self._caller, self.ports, now=self.clock())

    async def delete(self, memory_id, *, allow_missing=False, purge=False, request_id=""):
        return await forget.forget(
            memory_id,
            self._caller,
            self.ports,
            now=self.clock(),
            missing_ok=allow_missing,
            purge=purge,
            request_id=request_id,
        )

    async def restore(self, memory_id, *, request_id=""):
        return await restore.restore(memory_id, self._caller, self.ports, now=self.clock(), request_id=request_id)

    async def delete_matching(  # noqa: PLR0913  as the client
        self, *, filter=Filter(), text="", source=None, grant_id="", shared=None, dry_run=False, purge=False,  # noqa: B008
        request_id="",
    ):  # fmt: skip
        match = sweep.Match(
            filter=replace(filter, include_expired=True, include_superseded=True),
            text=text, source=source or Source(), grant_id=grant_id, shared=shared,
        )  # fmt: skip
        return await sweep.forget_matching(
            match, self._caller, self.ports, now=self.clock(), dry_run=dry_run, purge=purge, request_id=request_id
        )

    async def history(self, memory_id):
        return await history(memory_id, self._caller, self.ports, now=self.clock())

    async def correct(self, memory_id, content, *, request_id=""):
        return await add.correct(memory_id, content, self._caller, self.ports, now=self.clock(), request_id=request_id)

    async def confirm(self, memory_id, *, protect=True):
        return await confirm(memory_id, self._caller, self.ports, protect=protect, now=self.clock())

    async def update(self, memory_id, **given):
        values = {name: None if value == "never" else value for name, value in given.items()}
        wanted = MemoryUpdate(mask=frozenset(given), **values)
        return await update(memory_id, wanted, self._caller, self.ports, now=self.clock())

    async def people(self, *, page_size=0, page_token=""):
        return await profiles.list_people(
            self._caller, self.ports, page_size=page_size, page_token=page_token, now=self.clock()
        )

    async def entity(self, name, *, limit=0):
        return await profiles.get_entity(name, self._caller, self.ports, limit=limit, now=self.clock())

    async def rename_entity(self, name, new_name):
        return await decide.rename(name, new_name, self._caller, self.ports, now=self.clock())

    async def set_entity_type(self, name, given):
        return await decide.set_type(name, given, self._caller, self.ports, now=self.clock())

    async def merge_entities(self, name, into):
        return await decide.merge(name, into, self._caller, self.ports, now=self.clock())

    async def unmerge_entity(self, entity_id):
        return await decide.unmerge(entity_id, self._caller, self.ports, now=self.clock())

    async def forget_person(self, name, **more):
        return await forget_person(name, self._caller, self.ports, now=self.clock(), **{"dry_run": False, **more})

    async def forget_user(self, *, dry_run=False):
        return await forget_user(self._caller, self.ports, now=self.clock(), dry_run=dry_run)

    async def profile(self):
        return await profile_of(self._caller, Scopes(self.ports), self.clock())

    async def stats(self):
        return await browse.stats(self._caller, self.ports.store, now=self.clock())

    async def context(self, prompt, **more):
        asked = ContextRequest(
            prompt=prompt, **{name: tuple(value) if isinstance(value, list) else value for name, value in more.items()}
        )
        return await build_context(asked, self._caller, self.ports, now=self.clock())


@asynccontextmanager
async def ports_over(store, config: Config | None = None, *, encoder=None, close=True):
    """Ports over a store, with the hash encoder or another one, and without the readers of people and of answers."""
    embedder = ScheduledEmbedder(encoder or HashEncoder(), workers=1)
    ports = await make_ports(config or Config(readers=ReadersConfig(people="none", answer="none")), store, embedder)
    try:
        yield ports
    finally:
        embedder.close()
        ports.close()
        if close:
            await store.close()


def servers_over(ports, folder: Path, clock, *, config: Config | None = None, audit=None, grants=None) -> Servers:
    """Every door of a daemon over these ports; none is open yet."""

    async def describe():
        return {"version": "test"}

    return Servers(
        config or Config(),
        ports,
        grants or Grants(ports.store, [], [], time.monotonic, os.urandom, today=clock().date()),
        audit,
        store_id="test",
        sandboxes=folder / "sandboxes",
        clock=clock,
        describe=describe,
    )


@asynccontextmanager
async def backend(kind: str, folder: Path, clock, config: Config | None = None, *, store: Store | None = None):
    """
    A client for user alice: `ram`, `duckdb`, or `wire`, the real client on a real socket over DuckDB; or over a store.

    With `two-ram`, `two-duckdb` and `two-pg`, each call goes to the other one of two daemons before one store.
    """
    store = store or open_kind(kind.removeprefix("two-"), folder)
    if kind.startswith("two-"):
        async with ports_over(view_of(store), config) as one, ports_over(view_of(store), config) as other:
            yield InTurns([Local(ports, clock, user_id="alice") for ports in (one, other)])
        await store.close()
        return
    async with ports_over(store, config) as ports:
        if kind != "wire":
            yield Local(ports, clock, user_id="alice")
            return
        server = make_server(256, 512)
        doors = servers_over(ports, folder, clock)
        server.add_generic_rpc_handlers((doors.gate(Door.ADMIN),))
        socket = folder / "s"
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        client = AsyncMemoryClient(f"unix://{socket}", user_id="alice", chat_id="", agent_id="", timeout_s=PATIENCE_S)
        try:
            yield client
        finally:
            await client.close()
            await server.stop(0)


def run(work):
    """Run a coroutine to its end."""
    return asyncio.run(work)
