"""A process without memory for another thread goes on with those that it has, and says so of what it cannot do."""

from __future__ import annotations

import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from memory_client import LimitExceeded, MessageDraft

from memoryd.turns import are_exhausted, started
from tests.support import running


def test_a_pool_has_its_threads_before_it_is_asked():
    before = threading.active_count()
    with started(ThreadPoolExecutor(5), 5) as pool:
        assert before + 5 == threading.active_count()
        assert [1, 2, 3] == list(pool.map(abs, (-1, -2, -3)))
        assert before + 5 == threading.active_count()


def test_only_want_of_memory_or_threads_is_exhaustion():
    assert are_exhausted(MemoryError())
    assert are_exhausted(RuntimeError("can't start new thread"))
    assert not are_exhausted(RuntimeError("something else"))


def test_without_address_space_calls_go_on_or_are_refused_in_a_way_that_may_be_tried_again(folder):
    with running(folder, config='[embedding]\nprovider = "none"\n') as daemon:
        client = daemon.client()
        added = client.add("I like tea").memory
        size = next(
            line for line in Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines() if "VmSize" in line
        )
        limit = int(size.split()[1]) * 1024 + (4 << 20)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        for n in range(12):
            try:
                client.append("t", [MessageDraft(content=f"hello {n} " + "x" * 20_000)])
                client.search("tea")
            except LimitExceeded as error:  # of memory, of the database or of the process
                assert error.limit in {"memory", "store_memory"}  # noqa: PT017  some are served
        resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        client.append("t", [MessageDraft(content="at last")])
        assert added.id == client.get(added.id).id
        assert "at last" == client.messages("t", page_size=1).messages[0].content
