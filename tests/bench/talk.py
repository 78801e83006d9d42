"""Conversations: appending, searching meanwhile, and the context for a prompt."""

from __future__ import annotations

import multiprocessing
import shutil
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path

from memory_client import MemoryClient, MessageDraft, MessageSearch

from memoryd.model.change import ChangeSet, ConversationChange, NewMessage
from memoryd.model.conversation import Message, Role, Thread
from memoryd.model.scope import Owner, Scope
from memoryd.store.duckdb.changes import write
from memoryd.v1 import (
    context_service_pb2,
    context_service_pb2_grpc,
    conversation_service_pb2,
    conversation_service_pb2_grpc,
    memory_service_pb2,
    memory_service_pb2_grpc,
)
from tests.bench.report import one, quantile, row, rss_mb, scratch
from tests.bench.seed import BEGIN, fill, sentences
from tests.builders import open_database
from tests.support import Daemon

NO_MODEL = '[embedding]\nprovider = "none"\n'
THREADS = 1000
FLOODS = 20  # batches of texts of their own; then they come again with other numbers
MOST_PAGES = 300  # of a thread; each begins where the one before ended
LONG, SHORT = 55, 5  # messages of every tenth thread, and of the others: 10 on the average


def _ms(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3


def _drafts(texts: list[str]) -> list[MessageDraft]:
    return [MessageDraft(content=text, role=("user", "assistant")[n % 2]) for n, text in enumerate(texts)]


def _talk(client: MemoryClient, threads: int) -> None:
    """Store so many threads, with ten messages each on the average."""
    texts = iter(sentences(threads * 10, seed=77))
    for n in range(threads):
        client.append(f"thread-{n}", _drafts(list(islice(texts, SHORT if n % 10 else LONG))))


def _until_embedded(client: MemoryClient) -> float:
    began = time.perf_counter()
    while client.server_info().unembedded_message_count:
        time.sleep(0.2)
    return time.perf_counter() - began


def appends(count: int) -> None:
    """One message against one memory, both without embedding, in turns; then eight writers."""
    folder = scratch()
    daemon = Daemon(folder, config=NO_MODEL)
    daemon.start()
    texts = sentences(count, seed=3)
    adds, said = [], []
    with daemon.client("a") as client:
        _talk(client, 100)
        for n, text in enumerate(texts):
            adds.append(_ms(lambda text=text, n=n: client.add(f"{text} {n}")))
            said.append(_ms(lambda text=text, n=n: client.append("one", MessageDraft(content=f"{text} {n}"))))
    row("Add, no model", adds)
    row("AppendMessages of one, no model", said, goal="p50 ≤ 1.0 × Add")
    one("  ratio of the medians", statistics.median(said) / statistics.median(adds), "×", "≤ 1.0")

    def writer(number: int) -> list[float]:
        with daemon.client(f"w{number}") as client:
            return [_ms(lambda text=text: client.append("own", MessageDraft(content=text))) for text in texts[:100]]

    with ThreadPoolExecutor(8) as pool:
        many = [took for times in pool.map(writer, range(8)) for took in times]
    row("AppendMessages of one, eight writers", many, goal="p50 ≤ 2 × Add")
    one("  ratio of the medians", statistics.median(many) / statistics.median(adds), "×", "≤ 2")
    daemon.stop()
    shutil.rmtree(folder)


def _flood(endpoint: str, seconds: float, done: Event, told: Queue[tuple[float, int]]) -> None:
    """Append batches of 100 without pause; tell how many messages a second, and how many waited at the most."""
    texts = [sentences(100, seed=5000 + n) for n in range(FLOODS)]
    waiting, sent = [0], 0
    with MemoryClient(endpoint, user_id="talker", timeout_s=120) as talker:
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            drafts = _drafts([f"{text} {sent}" for text in texts[sent // 100 % FLOODS]])
            talker.append(f"thread-{sent // 100 % 50}", drafts)
            sent += 100
            if sent % 1000 == 0:
                waiting.append(talker.server_info().unembedded_message_count)
        told.put((sent / (time.perf_counter() - began), max(waiting)))
    done.set()


def batches(seconds: float) -> None:
    """Batches of 100 without pause, with the model; searches of another user meanwhile."""
    folder = scratch()
    fill(folder / "memory.duckdb", {"k10": 10_000})
    daemon = Daemon(folder)
    daemon.start()
    queries = sentences(600, seed=41)
    spawn = multiprocessing.get_context("spawn")  # in this process, it would hold up the one who measures
    done, told = spawn.Event(), spawn.Queue()
    with daemon.client("k10", timeout_s=60) as asker, daemon.client("talker", timeout_s=120) as talker:
        asker.search("warm up")
        quiet = [_ms(lambda query=query: asker.search(query)) for query in queries[:300]]
        flood = spawn.Process(target=_flood, args=(daemon.endpoint, seconds, done, told))
        flood.start()
        while not talker.threads(page_size=1).threads:  # until it has begun
            time.sleep(0.1)
        busy = []
        for query in queries[300:] * 50:
            if done.is_set():
                break
            busy.append(_ms(lambda query=query: asker.search(f"{query} b{len(busy)}")))
        rate, waited = told.get()
        flood.join()
        one("AppendMessages of 100 without pause", rate, "messages/s", "≥ 1,000")
        one("  most that waited for a vector", waited, "messages", "bounded")
        one("  embedded in the background after", _until_embedded(talker), "s")
    row("Search, quiet", quiet)
    row("Search beside appends of 100", busy, goal="p99 ≤ 2 × quiet p99")
    one("  ratio of the p99s", quantile(busy, 0.99) / quantile(quiet, 0.99), "×", "≤ 2")
    daemon.stop()
    shutil.rmtree(folder)


def _less_embedding(stub_call, request) -> tuple[float, float]:
    """Return (milliseconds of the call, milliseconds less its embedding)."""
    began = time.perf_counter()
    _, call = stub_call.with_call(request)
    took = (time.perf_counter() - began) * 1e3
    spent = next(int(value) for key, value in call.trailing_metadata() if key == "memoryd-embedding-us") / 1e3
    return took, took - spent


def contexts(count: int) -> None:
    """A context against a search, in turns: 10,000 memories and 10,000 messages in 1,000 threads."""
    folder = scratch()
    fill(folder / "memory.duckdb", {"k10": 10_000})
    daemon = Daemon(folder)
    daemon.start()
    with daemon.client("k10", timeout_s=120) as client:
        _talk(client, THREADS)
        _until_embedded(client)
        client.set_working_memory("finish the report\nask Bob")
        client.set_summary("thread-7", "They spoke of many things.")
        client.search_messages(MessageSearch(text="warm up"))
        client.context("warm up", thread_id="thread-7")
    queries = [f"{' '.join(text.split()[:8])} {n}" for n, text in enumerate(sentences(4 * count, seed=61))]
    taken: dict[str, list[tuple[float, float]]] = {"search": [], "context": [], "short": [], "long": [], "found": []}
    with daemon.channel() as channel:
        search = memory_service_pb2_grpc.MemoryServiceStub(channel).SearchMemories
        build = context_service_pb2_grpc.ContextServiceStub(channel).BuildContext
        found = conversation_service_pb2_grpc.ConversationServiceStub(channel).SearchMessages
        ask = context_service_pb2.BuildContextRequest
        for n in range(count):
            mine = queries[4 * n : 4 * n + 4]
            taken["search"].append(
                _less_embedding(search, memory_service_pb2.SearchMemoriesRequest(query=mine[0], user_id="k10"))
            )
            taken["context"].append(_less_embedding(build, ask(prompt=mine[1], user_id="k10", min_score=0.0)))
            for name, thread in (("short", 10 * n + 1), ("long", 10 * n)):
                whole = ask(prompt=f"{mine[2]} {name}", user_id="k10", thread_id=f"thread-{thread}", min_score=0.0)
                taken[name].append(_less_embedding(build, whole))
            asked = conversation_service_pb2.SearchMessagesRequest(query=mine[3], user_id="k10")
            taken["found"].append(_less_embedding(found, asked))
    for name, title in (
        ("search", "SearchMemories"),
        ("found", "SearchMessages"),
        ("context", "BuildContext without a thread"),
        ("short", f"BuildContext of a thread of {SHORT}"),
        ("long", f"BuildContext of a thread of {LONG}"),
    ):
        row(f"{title}, 10k + 10k in 1,000 threads: less its embedding", [less for _, less in taken[name]])
    medians = {name: statistics.median(less for _, less in pairs) for name, pairs in taken.items()}
    for name, size in (("short", SHORT), ("long", LONG)):
        one(f"  BuildContext of a thread of {size} to a search", medians[name] / medians["search"], "×", "≤ 3")
    daemon.stop()
    shutil.rmtree(folder)


def _long_thread(database: Path, count: int) -> None:
    """Write a thread of so many messages of user `long` beside a daemon that is not running."""
    opened = open_database(database, memory_limit_bytes=1 << 30)
    owner = Owner("default", Scope(user_id="long"))
    began = BEGIN
    thread = Thread(
        id="long", agent_id="default", scope=owner.scope, create_time=began, update_time=began,
        message_count=count, turn_count=count, last_seq=count, revision=1,
    )  # fmt: skip
    message = Message(
        id="x", agent_id="default", scope=owner.scope, thread_id="long", seq=1, session_id="s", role=Role.USER,
        content="we spoke of many things that day", create_time=began,
    )  # fmt: skip
    con = opened.connection
    con.execute("BEGIN")
    talk = ConversationChange(owner, messages=(NewMessage(message, "spoke mani thing day"),), threads=(thread,))
    write(con, [ChangeSet(conversation=talk)], opened.commit_seq + 1, ())
    con.execute("UPDATE commits SET commit_seq = ?", [count])
    con.execute(
        "INSERT INTO messages SELECT n * 128, thread, agent_id, user_id, chat_id, thread_id, 'm' || n, n, content,"
        " details, metadata, create_time + to_seconds(n), grant_id, text_bytes, terms, n"
        " FROM messages, (SELECT range AS n FROM range(2, ?)) ",
        [count + 1],
    )
    con.execute("COMMIT")
    con.execute("CHECKPOINT")
    opened.close()


def pages(count: int) -> None:
    """Pages of a thread at its end, in the middle and at its begin; and what the daemon takes for it."""
    folder = scratch()
    _long_thread(folder / "memory.duckdb", count)
    daemon = Daemon(folder, config=NO_MODEL)
    daemon.start()
    with daemon.client("long", timeout_s=120) as client:
        before = rss_mb(daemon.process.pid)
        token, taken = "", []
        for _ in range(min(count // 100, MOST_PAGES)):
            began = time.perf_counter()
            page = client.messages("long", page_size=100, page_token=token)
            taken.append((time.perf_counter() - began) * 1e3)
            token = page.next_page_token
        one(f"  resident memory after pages of a thread of {count:,}", rss_mb(daemon.process.pid) - before, "MB more")
    row(f"ListMessages(100), the last pages of {count:,}", taken[:30])
    row(f"ListMessages(100), {len(taken) - 30:,} to {len(taken):,} pages before them", taken[-30:], goal="as the last")
    daemon.stop()
    shutil.rmtree(folder)
