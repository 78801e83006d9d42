"""The wire, the schema and the failures, with a real model: `make test-llm`."""

from __future__ import annotations

import json
import socket
import time

import pytest
from memory_client import MessageDraft

from memoryd.learning.judgement import PROMPT, SCHEMA
from memoryd.learning.language_model import prompt_of
from memoryd.llm.endpoint import ChatEndpoint, ChatUnavailable
from tests.builders import run
from tests.llm.exchanges import EXCHANGES
from tests.llm.server import MODEL, served
from tests.support import running

WAIT_S = 240


@pytest.fixture
def port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_reply_keeps_to_its_schema_and_counts_its_tokens(folder):
    with served(log=folder / "model.log") as url:

        async def ask():
            endpoint = ChatEndpoint(url, MODEL, max_output_tokens=60)
            pair = json.dumps({"older": {"text": "I live in Porto"}, "newer": {"text": "I have moved to Lisbon"}})
            try:
                return await endpoint.ask(prompt_of(PROMPT), pair, SCHEMA)
            finally:
                await endpoint.close()

        reply = run(ask())
        assert json.loads(reply.text)["verdict"] in {"replaces", "both", "unsure"}
        assert reply.prompt_tokens > 100
        assert reply.completion_tokens > 3


def test_an_answer_that_takes_too_long_is_left(folder):
    with served(log=folder / "model.log") as url:

        async def ask():
            endpoint = ChatEndpoint(url, MODEL, max_output_tokens=2000, timeout_s=0.5)
            try:
                return await endpoint.ask("Write a long story.", "Of a dragon.")
            finally:
                await endpoint.close()

        with pytest.raises(ChatUnavailable, match=r"within 0\.5 s"):
            run(ask())


def test_a_daemon_learns_from_it_over_its_death_and_loses_nothing(folder, port):
    """The model's server is killed as the daemon asks it; when it is back, every thread is read."""
    config = f"""[embedding]\nprovider = "none"\n[learning]\nwait_s = 0\nextractor = "openai"
[llm]\nurl = "http://127.0.0.1:{port}/v1"\nmodel = "{MODEL}"\nmax_output_tokens = 300\n"""
    with running(folder, config=config) as daemon, daemon.client() as memory:
        with served(port, folder / "model.log"):
            for n, lines in enumerate(EXCHANGES):
                roles = {"u": "user", "a": "assistant", "t": "tool"}
                memory.append(f"t{n}", [MessageDraft(content=line[3:], role=roles[line[0]]) for line in lines])
            _until(lambda: _job(memory).waiting_count)
            _until(lambda: _job(memory).waiting_count <= len(EXCHANGES) - 3)
        assert _job(memory).waiting_count
        _until(lambda: memory.server_info().warnings)
        with served(port, folder / "model.log"):
            _until(lambda: not _job(memory).waiting_count)
        assert not _job(memory).parked_count
        held = memory.page(page_size=100).memories
        assert held
        assert not [one for one in held if "payments" in one.content or "administrator" in one.content]
        by_model = [one for one in held if one.metadata]
        print(f"{len(by_model)} of {len(held)} memories by the model:", *(one.content for one in by_model), sep="\n  ")


def _job(memory):
    return {job.name: job for job in memory.jobs()}["llm_extraction"]


def _until(done) -> None:
    deadline = time.monotonic() + WAIT_S
    while not done():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.5)
