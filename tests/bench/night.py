"""A night's work, measured: what a day has said is learnt from, what is old fades, all beside somebody's searches."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import socket
import threading
import time

from memory_client import MemoryClient, MessageDraft

from memoryd.v1 import memory_service_pb2_grpc
from tests.bench.knowledge import NAMES, PLACES, THINGS
from tests.bench.report import cpu_s, one, quantile, row, scratch
from tests.bench.seed import fill, sentences
from tests.llm_endpoint import chat_endpoint
from tests.support import Daemon

USERS, A_THREAD, A_BATCH = 100, 100, 50
CONFIG = "[learning]\nwait_s = 86400\n[memory]\nauto_gc = false\n"
JOBS = ("extraction", "consolidation", "enrichment", "decay", "gc")
LATER = ("contradictions", "reflection", "compaction")
TELLING = (
    "I live in {place} and I work from home on Mondays",
    "I love {thing} but I don't like {other}",
    "my sister {name} lives in {place}",
    "Remember that {name} is allergic to nuts",
    "I have a dog called {name}",
)
ASKING = (
    "can you rewrite the second paragraph so that it is shorter?",
    "ok thanks, that works",
    "what's the best way to get from {place} to the airport?",
    "the build fails with an error in the third step, why?",
    "write me a short poem about {thing} for a card",
    "I think that {place} might be nice in spring, what do you think?",
    "hm, not quite. can you try again with {thing} instead",
    "tell me more about {thing}",
)


def conversation(count: int, seed: int) -> list[MessageDraft]:
    """So many messages of a user and an assistant; of the user's one in ten says something of them."""
    dice = random.Random(seed)
    replies = sentences(count // 2, seed=seed)
    said = []
    for n in range(count // 2):
        form = dice.choice(TELLING if n % 10 == 0 else ASKING)
        names = {"place": dice.choice(PLACES), "name": dice.choice(NAMES)}
        thing, other = dice.sample(THINGS, 2)
        said.append(MessageDraft(content=form.format(thing=thing, other=other, **names)))
        said.append(MessageDraft(role="assistant", content=f"{replies[n]}. {replies[-n]}."))
    return said


def night(*, quick: bool) -> None:
    """100,000 memories and 100,000 unread messages of a hundred users (a tenth with `quick`)."""
    from tests.bench.__main__ import timed_search

    each = 100 if quick else 1000
    folder = scratch()
    fill(folder / "memory.duckdb", {f"u{n}": each for n in range(USERS)} | {"searcher": 2000})
    daemon = Daemon(folder, config=CONFIG)
    daemon.start()
    for user in range(USERS):
        with daemon.client(f"u{user}", timeout_s=300) as client:
            said = conversation(each, seed=user)
            for start in range(0, each, A_BATCH):
                client.append(f"t{start // A_THREAD}", said[start : start + A_BATCH])
    with daemon.client(timeout_s=600) as host, daemon.channel() as channel:
        while host.server_info().unembedded_message_count:
            time.sleep(1)
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        queries = sentences(40_000, seed=9)
        quiet = [timed_search(stub, f"{query} q", "searcher")[0] for query in queries[:1000]]
        # the searches cost CPU as well: what one costs is taken off
        before, asked = cpu_s(daemon.process.pid), 500
        for query in queries[1000 : 1000 + asked]:
            timed_search(stub, f"{query} c", "searcher")
        a_search = (cpu_s(daemon.process.pid) - before) / asked
        busy: list[float] = []
        nightly: list[float] = []
        thread = threading.Thread(target=_jobs, args=(daemon, host, busy, nightly, a_search, USERS * each))
        thread.start()
        while thread.is_alive():
            busy.append(timed_search(stub, f"{queries[2000 + len(busy) % 38_000]} b", "searcher")[0])
            time.sleep(0.02)
        thread.join()
    row("  Search of another user, quiet", quiet)
    row("  Search of another user during the night's jobs", nightly)
    one("  ratio of the p99s", quantile(nightly, 0.99) / quantile(quiet, 0.99), "×", "≤ 2")
    row("  Search of another user during contradictions and the week's jobs", busy[len(nightly) :])
    daemon.stop()
    shutil.rmtree(folder)


def _jobs(
    daemon: Daemon, host: MemoryClient, searches: list[float], nightly: list[float], a_search: float, size: int
) -> None:
    """Run the night's jobs in order, then what comes later; print the daemon's CPU for each, less the searches."""
    whole = 0.0
    for job in JOBS + LATER:
        before, asked = cpu_s(daemon.process.pid), len(searches)
        run = host.run_job(job)
        while (run := host.job_run(run.id)).end_time is None:
            time.sleep(0.1)
        took = cpu_s(daemon.process.pid) - before - (len(searches) - asked) * a_search
        counts = ", ".join(f"{name} {count}" for name, count in sorted(run.counts.items()) if count)
        one(f"  {job}: CPU of the daemon less the searches ({counts or 'nothing to do'})", took, "s")
        whole += took
        if job == JOBS[-1]:
            nightly += searches
            one(f"A night over {size:,} memories and {size:,} unread messages: CPU", whole, "s", "≤ 60")


WAYS = ("hang", "drip", "die", "flood", 503, b"{" * 100_000)


def _serve(port: int, way: str | int | bytes) -> None:
    with chat_endpoint(port) as chat:
        chat.answer = way
        threading.Event().wait()


def endpoint() -> None:
    """Searches while a language model hangs, dies, floods or is refused, with 200 threads that wait for it."""
    from tests.bench.__main__ import timed_search

    folder = scratch()
    fill(folder / "memory.duckdb", {"searcher": 2000})
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    model = f'[llm]\nurl = "http://127.0.0.1:{port}/v1"\nmodel = "m"\ntimeout_s = 1.0\n'
    daemon = Daemon(folder, config=f'[learning]\nwait_s = 86400\nextractor = "openai"\njudge = "openai"\n{model}')
    daemon.start()
    spawn = multiprocessing.get_context("spawn")  # in this process, it would hold up the one who measures
    with daemon.client("said", timeout_s=300) as client, daemon.channel() as channel:
        for n in range(200):
            client.append(f"t{n}", conversation(20, seed=n))
        while client.server_info().unembedded_message_count:
            time.sleep(0.2)
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        queries = iter(sentences(40_000, seed=9))
        for way in WAYS:
            quiet = [timed_search(stub, f"{next(queries)} q", "searcher")[0] for _ in range(1000)]
            server = spawn.Process(target=_serve, args=(port, way))
            server.start()
            busy: list[float] = []
            until = time.monotonic() + 15
            while time.monotonic() < until:
                run = client.run_job("llm_extraction")
                while client.job_run(run.id).end_time is None:
                    busy += [timed_search(stub, f"{next(queries)} b", "searcher")[0] for _ in range(20)]
            server.terminate()
            server.join()
            name = way if isinstance(way, str | int) else "no JSON"
            ratio = quantile(busy, 0.99) / quantile(quiet, 0.99)
            one(f"  an endpoint that answers so: {name}: ratio of the p99s of {len(busy)} searches", ratio, "×", "≤ 2")
    daemon.stop()
    shutil.rmtree(folder)
