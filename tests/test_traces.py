"""Spans of calls at a real collector on loopback; without one, the id of a trace in the log, and nothing else."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_client import InvalidArgument
from memory_client.tracing import trace_metadata
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.sdk.trace import TracerProvider

from memoryd.model.traces import TraceParent, read_traceparent
from tests.doors import a_world
from tests.forking import run_command
from tests.support import BIN, running, short_folder, until

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CONFIG = '[embedding]\nprovider = "none"\n[daemon]\nlog_level = "debug"\n'


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.raw: list[bytes] = []
        self.spans: list = []
        self._lock = threading.Lock()

    def Export(self, request, context):  # noqa: N802  the contract's name
        with self._lock:
            self.raw.append(request.SerializeToString())
            self.spans += [s for r in request.resource_spans for scope in r.scope_spans for s in scope.spans]
        return trace_service_pb2.ExportTraceServiceResponse()


@pytest.fixture(scope="module")
def collector():
    server, kept = grpc.server(ThreadPoolExecutor(2)), Collector()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(kept, server)
    kept.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield kept
    server.stop(0)


def test_calls_of_a_sampled_trace_are_spans_of_it_and_hold_nothing_of_what_is_said(collector):
    config = CONFIG + f'[traces]\nendpoint = "http://127.0.0.1:{collector.port}"\n'
    with short_folder() as place, a_world(place, config=config) as world:
        with TracerProvider().get_tracer("test").start_as_current_span("asked") as span:
            parent = span.get_span_context()
            with world.admin("heliotrope") as memory:
                memory.add("Anna likes tea")
                with pytest.raises(InvalidArgument):
                    memory.search("")
            sandbox = world.sandbox("search", user_id="heliotrope")
            with world.inside(sandbox) as inside:
                inside.search("tea")
        with world.admin("heliotrope") as memory:
            memory.search("tea")  # of no trace, and traces.ratio is 0
    until(lambda: len(collector.spans) >= 3)
    by_method = {span.name: span for span in collector.spans}
    assert {"AddMemory", "SearchMemories", "OpenSandbox"} == set(by_method)
    assert 3 == len(collector.spans)
    for span in collector.spans:
        assert (parent.trace_id, parent.span_id) == (
            int.from_bytes(span.trace_id, "big"),
            int.from_bytes(span.parent_span_id, "big"),
        )
        assert 0 < span.end_time_unix_nano - span.start_time_unix_nano < 60e9
    told = {a.key: a.value.string_value for a in by_method["SearchMemories"].attributes}
    assert ("INVALID_ARGUMENT", "admin") == (told["rpc.response.status_code"], told["memoryd.door"])
    assert not [raw for raw in collector.raw if b"Anna" in raw or b"tea" in raw or b"heliotrope" in raw]


def test_without_a_collector_the_log_has_the_trace_of_a_call(folder):
    with running(folder, config=CONFIG) as daemon:
        env = {
            "PATH": os.environ["PATH"], "HOME": "/", "MEMORY_ENDPOINT": daemon.endpoint, "MEMORY_USER_ID": "alice",
            "TRACEPARENT": f"00-{TRACE}-{SPAN}-01",
        }  # fmt: skip
        for words in (["add", "I like tea"], ["get", "aaaaaaaa"]):
            run_command([BIN / "memory", *words], env=env, capture_output=True, check=False)
        env["TRACEPARENT"] = "rubbish\n"
        run_command([BIN / "memory", "list"], env=env, capture_output=True, check=True)
    lines = [json.loads(line) for line in daemon.log.read_text().splitlines() if line.startswith("{")]
    traced = {line["event"]: line.get("trace_id") for line in lines if "call" in line}
    assert {"AddMemory": TRACE, "GetMemory": TRACE, "ListMemories": None} == {
        name: traced[name] for name in ("AddMemory", "GetMemory", "ListMemories")
    }


def test_a_collector_that_is_away_is_told_in_the_log_and_keeps_nobody_waiting(folder):
    config = CONFIG + '[traces]\nendpoint = "unix:///nowhere/otlp.sock"\nratio = 1.0\n'
    with running(folder, config=config) as daemon, daemon.client() as memory:
        memory.add("I like tea")
        assert 0 == daemon.stop()
    lines = [json.loads(line) for line in daemon.log.read_text().splitlines()]
    assert 1 == len([line for line in lines if line["event"] == "spans_not_sent"])


def test_an_endpoint_that_is_none_is_told_by_check(folder):
    env = {"PATH": os.environ["PATH"], "HOME": "/", "MEMORYD_TRACES_ENDPOINT": "collector:4317"}
    env |= {"MEMORYD_EMBEDDING_PROVIDER": "none"}
    told = run_command([BIN / "memoryd", "check", "--data-dir", folder], env=env, capture_output=True, check=False)
    assert 78 == told.returncode
    assert b"traces.endpoint is 'collector:4317'; write http://127.0.0.1:4317" in told.stderr


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"00-{TRACE}-{SPAN}-01", TraceParent(TRACE, SPAN, sampled=True)),
        (f"00-{TRACE}-{SPAN}-00", TraceParent(TRACE, SPAN, sampled=False)),
        (f"00-{TRACE}-{SPAN}-03", TraceParent(TRACE, SPAN, sampled=True)),
        (f"01-{TRACE}-{SPAN}-01-what-comes-later", TraceParent(TRACE, SPAN, sampled=True)),
        (f"00-{TRACE}-{SPAN}-01-more", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-{SPAN}-01", None),
        (f"00-{TRACE}-{SPAN}-1", None),
        ("", None),
    ],
)
def test_a_header_is_read_as_w3c_trace_context_says(text, found):
    assert found == read_traceparent(text)


@given(st.text(max_size=80))
def test_any_text_is_read_or_is_no_header(text):
    found = read_traceparent(text)
    assert found is None or len(found.trace_id) == 32


def test_the_client_tells_the_span_that_goes_on(monkeypatch):
    monkeypatch.delenv("TRACEPARENT", raising=False)
    assert () == trace_metadata()
    monkeypatch.setenv("TRACEPARENT", f"00-{TRACE}-{SPAN}-01")
    assert (("traceparent", f"00-{TRACE}-{SPAN}-01"),) == trace_metadata()
    with TracerProvider().get_tracer("test").start_as_current_span("asked"):
        now = trace.get_current_span().get_span_context()
        assert trace_metadata() == (
            ("traceparent", f"00-{now.trace_id:032x}-{now.span_id:016x}-{now.trace_flags:02x}"),
        )
