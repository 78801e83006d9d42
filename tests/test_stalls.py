"""Processes that stand still: the daemon, a client that does not read its answers, and calls without any time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from memory_client import MessageDraft, TimedOut

from memoryd.v1 import memory_service_pb2, memory_service_pb2_grpc
from tests.support import PATIENCE_S, running, until

NO_MODEL = '[embedding]\nprovider = "none"\n'
STANDS_S = 2.0
READS = """
import sys, threading
from memory_client import MemoryClient

with MemoryClient(sys.argv[1], user_id="alice", agent_id="") as memory:
    memory.server_info()
    for _ in range(24):
        threading.Thread(target=memory.messages, args=("t",), kwargs={"page_size": 1000}, daemon=True).start()
    print("asked", flush=True)
    threading.Event().wait()
"""


def test_a_daemon_that_stood_still_goes_on_and_keeps_what_it_was_told(folder):
    with running(folder, config=NO_MODEL) as daemon, ThreadPoolExecutor(8) as pool:
        with daemon.client() as patient, daemon.client(timeout_s=0.3) as hasty:
            before = patient.add("I like tea").memory
            os.kill(daemon.process.pid, signal.SIGSTOP)
            with pytest.raises(TimedOut):
                hasty.search("tea")
            waiting = [pool.submit(patient.add, f"note {n} of the day") for n in range(8)]
            time.sleep(STANDS_S)
            assert not any(call.done() for call in waiting)
            os.kill(daemon.process.pid, signal.SIGCONT)
            added = {call.result(PATIENCE_S).memory.id for call in waiting}
            assert {before.id, *added} == {memory.id for memory in patient.pages()}
        daemon.kill()
        daemon.start()
        with daemon.client() as client:
            assert {before.id, *added} == {memory.id for memory in client.pages()}


def test_a_client_that_does_not_read_keeps_no_one_else_waiting_and_no_answers_for_ever(folder):
    with running(folder, config=NO_MODEL) as daemon, daemon.client() as client:
        for n in range(8):
            client.append("t", [MessageDraft(content=f"{n} {k} " + "x" * 100_000) for k in range(10)])
        files = f"/proc/{daemon.process.pid}/fd"
        before = len(os.listdir(files))
        call = [sys.executable, "-c", READS, daemon.endpoint]
        with subprocess.Popen(call, stdout=subprocess.PIPE) as reader:
            try:
                assert reader.stdout.readline() == b"asked\n"
                assert len(os.listdir(files)) > before
                reader.send_signal(signal.SIGSTOP)
                with daemon.client(timeout_s=PATIENCE_S) as other:
                    for n in range(20):
                        other.add(f"I like tea number {n}")
                        assert 1 <= len(other.messages("t", page_size=1).messages)
            finally:
                reader.kill()
        assert until(lambda: len(os.listdir(files)) <= before)


def test_a_call_without_any_time_is_told_so_and_is_whole_or_not_at_all(folder):
    with running(folder, config=NO_MODEL) as daemon, daemon.client() as client, daemon.channel() as channel:
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        first = client.add("I like tea").memory
        request = memory_service_pb2.AddMemoryRequest(user_id="alice", content="I like coffee")
        for timeout_s in (0.0, 1e-9):
            with pytest.raises(grpc.RpcError) as refused:
                stub.AddMemory(request, timeout=timeout_s)
            assert grpc.StatusCode.DEADLINE_EXCEEDED == refused.value.code()
        assert {"I like tea"} <= {memory.content for memory in client.pages()} <= {"I like tea", "I like coffee"}
        client.delete(first.id, purge=True)
        assert client.add("I like coffee").memory.content == "I like coffee"
