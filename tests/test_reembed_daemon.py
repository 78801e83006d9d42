"""Embedding anew as its users run it: a daemon with another model, kills, and the command."""

from __future__ import annotations

import asyncio
import json
import time

import duckdb
import numpy as np

from memoryd.embedding.readers.retrieval import retrieval_encoder
from memoryd.model.memory import Draft
from memoryd.model.results import Leg
from tests.builders import open_duckdb
from tests.forking import run_command
from tests.index_helpers import OWNER
from tests.support import PATIENCE_S, Daemon, running, until
from tests.test_reembed import vectors_of

OTHER_MODEL = "[embedding]\ndimensions = 128\n"
NO_MODEL = '[embedding]\nprovider = "none"\n'


def until_embedded(client):
    until(lambda: not client.server_info().unembedded_count, pause_s=0.02)
    return client.server_info()


def test_a_daemon_with_another_model_embeds_anew_in_the_background_and_back_again(folder):
    with running(folder) as daemon, daemon.client() as host:
        host.add("I like tea")
        assert 0 == host.server_info().unembedded_count
    for config in (OTHER_MODEL, NO_MODEL, "[embedding]\nprovider = 'builtin-float'\n", "[embedding]\n"):
        with running(folder, config=config) as daemon, daemon.client() as host:
            info = until_embedded(host)
            assert () == info.warnings
            legs = host.search("something hot to drink").unavailable_legs
            assert ([Leg.VECTOR] if config == NO_MODEL else []) == list(legs)
            assert "I like tea" == host.search("tea").hits[0].memory.content
            if config != NO_MODEL:
                assert host.search("something hot to drink").hits[0].similarity > 0.2
            host.add(f"I like {['coffee', 'cocoa', 'water', 'milk'][host.server_info().memory_count - 1]}")
    connection = duckdb.connect(str(daemon.database), read_only=True)
    assert [(5, 5, 0)] == connection.execute(
        "SELECT count(*), count(vector_384), count(vector_128) FROM memories"
    ).fetchall()
    connection.close()


def test_it_goes_on_after_a_kill_and_each_memory_ends_with_its_vector(folder):
    texts = [f"{'very ' * (n % 9)}short statement {n} of many about tea" for n in range(700)]
    with running(folder, config=NO_MODEL) as daemon, daemon.client() as host:
        for n in range(0, len(texts), 100):
            host.add_batch([Draft(content=text) for text in texts[n : n + 100]])
        count = host.server_info().memory_count
    daemon = Daemon(folder, config="[embedding]\n")
    left, kills = count, 0
    while left and kills < 20:
        daemon.start()
        with daemon.client() as host:
            deadline = time.monotonic() + PATIENCE_S
            while time.monotonic() < deadline and (found := host.server_info().unembedded_count) == left:
                time.sleep(0.005)
        daemon.kill()
        left, kills = found, kills + 1
    assert 0 == left
    assert kills > 1
    store = open_duckdb(folder)
    made = asyncio.run(vectors_of(store, OWNER))
    asyncio.run(store.close())
    assert count == len(made)
    encoder = retrieval_encoder()
    assert {encoder.fingerprint} == {fingerprint for fingerprint, _ in made.values()}
    expected = encoder.encode(list(made), query=False)
    assert np.array_equal(expected, np.stack([vector for _, vector in made.values()]))


def test_the_command_shows_begins_and_waits(folder):
    def memoryd(*words):
        told = run_command(daemon.command(*words), capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        assert "Traceback" not in told.stderr
        return told

    with running(folder, config=NO_MODEL) as daemon, daemon.client() as host:
        host.add_batch([Draft(content=f"statement {n} about tea") for n in range(5)])
        assert "nothing to do" in memoryd("reembed").stdout  # there is no model
    with running(folder, config="[embedding]\nreembed = false\n") as daemon, daemon.client() as host:
        assert "run: memoryd reembed" in host.server_info().warnings[0]
        assert "5 memories have no vector" in memoryd("status").stdout
        assert "0 memories embedded, 5 to go" == memoryd("reembed", "--dry-run").stdout.strip()
        assert 5 == host.server_info().unembedded_count
        told = memoryd("reembed", "--json")
        assert 0 == told.returncode
        assert (5, 0, False) == tuple(
            json.loads(told.stdout)[name] for name in ("embedded_count", "pending_count", "running")
        )
        assert () == host.server_info().warnings
        assert host.search("something hot to drink").hits[0].similarity > 0.2
    log = daemon.log.read_text()
    assert "reembedded" in log
    assert "statement 3" not in log
