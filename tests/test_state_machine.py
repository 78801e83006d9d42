"""A random life of memoryd, with restarts and pages of random size, beside the reference store."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from memory_client import Draft, Filter, MemorydError

from memoryd.daemon.config import Config
from memoryd.daemon.wiring import make_ports
from memoryd.domain.forgetting.collect import collect
from memoryd.domain.writing.reembed import Reembedder
from memoryd.embedding.scheduler import ScheduledEmbedder
from memoryd.model.commits import Head
from memoryd.store.memories import MemorySelector
from memoryd.store.recent import RecentChanges
from tests.builders import NOW, HashEncoder, Local, open_duckdb, ram_store

WORDS = st.sampled_from(["red", "blue", "green", "Red.", "tea", "green tea", "黑猫"])
PEOPLE = st.sampled_from([("alice", ""), ("alice", "team"), ("bob", "team"), ("", "team")])
GRANTS = st.sampled_from(["", "g1", "g2"])
FILTERS = st.builds(
    Filter, tags=st.sampled_from([(), ("t",)]), include_expired=st.booleans(), include_superseded=st.booleans()
)


class OtherEncoder(HashEncoder):
    """Another model."""

    fingerprint = "other-40"
    dimensions = 40


class Life(RuleBasedStateMachine):
    """Everything is done to both; both must answer the same."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.now = NOW
        self.numbers = {"ram": 0, "duckdb": 0}
        self.ports = {}
        self.known: list[str] = []
        self.encoder = HashEncoder()
        self._open("ram", ram_store())
        self._open("duckdb", open_duckdb(self.folder))

    def _open(self, name, store) -> None:
        def new_id():
            self.numbers[name] += 1
            return f"{self.numbers[name]:08d}" + "a" * 18

        ports = self.loop.run_until_complete(make_ports(Config(), store, self._embedder(), new_id=new_id))
        self.ports[name] = ports

    def _embedder(self):
        return ScheduledEmbedder(self.encoder, workers=1)

    def _close(self, name) -> None:
        ports = self.ports[name]
        ports.embedder.close()
        ports.indexes.close()
        self.loop.run_until_complete(ports.store.close())

    def _both(self, person, do, *, grant_id=""):
        answers = []
        for name in ("ram", "duckdb"):
            through = {"user_id": person[0], "chat_id": person[1], "grant_id": grant_id, "stored_memories": 40}
            local = Local(self.ports[name], lambda: self.now, **through)
            try:
                answers.append(self.loop.run_until_complete(do(local)))
            except MemorydError as error:
                answers.append((type(error), str(error)))
        assert answers[0] == answers[1]
        return answers[0]

    @rule(person=PEOPLE, text=WORDS, shared=st.booleans(), key=st.sampled_from(["", "", "k"]),
          days=st.sampled_from([None, None, 2.0]), tags=st.sampled_from([[], ["t"]]), grant_id=GRANTS)  # fmt: skip
    def add(self, person, text, shared, key, days, tags, grant_id):
        result = self._both(
            person,
            lambda m: m.add(text, shared=shared, key=key, expires_days=days, tags=tags, confidence=0.5),
            grant_id=grant_id,
        )
        if not isinstance(result, tuple):
            self.known.append(result.memory.id)

    @rule(person=PEOPLE, texts=st.lists(WORDS, min_size=1, max_size=4), grant_id=GRANTS)
    def add_batch(self, person, texts, grant_id):
        results = self._both(
            person,
            lambda m: m.add_batch([Draft(content=t, key="k" if t == "tea" else "") for t in texts]),
            grant_id=grant_id,
        )
        if isinstance(results, list):
            self.known += [result.memory.id for result in results]

    @rule(person=PEOPLE, place=st.integers(0, 30), purge=st.booleans())
    def delete(self, person, place, purge):
        if self.known:
            self._both(person, lambda m: m.delete(self.known[place % len(self.known)], purge=purge))

    @rule(person=PEOPLE, place=st.integers(0, 30))
    def restore(self, person, place):
        if self.known:
            self._both(person, lambda m: m.restore(self.known[place % len(self.known)]))

    @rule(person=PEOPLE, query=WORDS, limit=st.integers(1, 5), wanted=FILTERS)
    def search(self, person, query, limit, wanted):
        self._both(person, lambda m: m.search(query, limit=limit, filter=wanted))

    @rule(person=PEOPLE, size=st.integers(1, 4), wanted=FILTERS)
    def page_through(self, person, size, wanted):
        async def whole(memory):
            joined, token = [], ""
            while True:
                page = await memory.page(page_size=size, page_token=token, filter=wanted)
                joined += page.memories
                token = page.next_page_token
                if not token:
                    one = await memory.page(page_size=1000, filter=wanted)
                    assert list(one.memories) == joined
                    return joined

        self._both(person, whole)

    @rule(days=st.sampled_from([0.5, 1.0, 40.0, 200.0, -3.0]))
    def time_passes(self, days):
        self.now += timedelta(days=days)

    @rule()
    def collect_garbage(self):
        reports = [self.loop.run_until_complete(collect(ports, now=self.now)) for ports in self.ports.values()]
        assert reports[0] == reports[1]

    @rule()
    def restart(self):
        self._close("duckdb")
        self._open("duckdb", open_duckdb(self.folder))
        ram = self.ports["ram"].store  # it forgets what the other one does: which owner has come how far
        ram.commits.memories._recent = RecentChanges(Head(ram._state.seq, ram._state.newest))

    @rule(encoder=st.sampled_from([HashEncoder(), OtherEncoder()]), pages=st.integers(0, 4))
    def change_model(self, encoder, pages):
        """Another model, and as much of embedding anew as was done before the next thing happened."""
        self.encoder = encoder
        self.ports["ram"].embedder.close()
        self.ports["ram"].indexes.close()
        self._open("ram", self.ports["ram"].store)
        self.restart()
        for ports in self.ports.values():
            self.loop.run_until_complete(self._embed_pages(ports, pages))

    async def _embed_pages(self, ports, pages):
        reembedder = Reembedder(ports, lambda: self.now, lambda *_: None)
        for _ in range(pages):
            page = await ports.store.memories.scan(MemorySelector(not_fingerprint=self.encoder.fingerprint), limit=3)
            if page:
                purges = {memory.owner: await reembedder._purge_seq(memory.owner) for memory in page}
                await reembedder._write(await reembedder._embedded(page), purges)

    @invariant()
    def vectors_agree(self):
        infos = [self.loop.run_until_complete(ports.store.info()) for ports in self.ports.values()]
        assert dict(infos[0].fingerprints) == dict(infos[1].fingerprints)
        for entry in self.ports["ram"].store._state.entries.values():
            made = {HashEncoder.fingerprint: HashEncoder(), OtherEncoder.fingerprint: OtherEncoder()}[entry.fingerprint]
            assert np.allclose(made.encode([entry.memory.content], query=False)[0], entry.vector, atol=1e-6)

    @invariant()
    def counts_agree(self):
        for person in (("alice", "team"), ("bob", "")):
            self._both(person, lambda m: m.stats())

    @invariant()
    def usage_of_grants_agrees(self):
        for grant_id in ("g1", "g2"):
            for day in (self.now.date(), NOW.date()):
                scanned, counted = (
                    self.loop.run_until_complete(ports.store.grants.usage(grant_id, day))
                    for ports in self.ports.values()
                )
                assert scanned == counted

    @invariant()
    def nothing_names_what_is_purged(self):
        memories = {entry.memory.id: entry.memory for entry in self.ports["ram"].store._state.entries.values()}
        for memory in memories.values():
            evidence = {memory.judgement.evidence} if memory.judgement is not None else set()
            links = {*memory.contested_with, *memory.supersedes, memory.superseded_by, *evidence} - {""}
            assert links <= memories.keys()
        assert {
            memory_id
            for ports in self.ports.values()
            for noted in ports.shared.recalls._noted.values()
            for memory_id in noted
        } <= memories.keys()

    def teardown(self):
        for name in self.ports:
            self._close(name)
        self.loop.close()
        shutil.rmtree(self.folder)


Life.TestCase.settings = settings(
    max_examples=5 if settings().derandomize else 50,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking takes minutes; the steps are printed whole
)
test_the_life_of_memoryd = Life.TestCase
