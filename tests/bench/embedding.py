"""What concerns the model: the two arithmetics of the packaged one, and embedding anew beside searches."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from pathlib import Path

from memoryd.embedding.packaged import builtin_encoder
from memoryd.v1 import memory_service_pb2 as pb
from memoryd.v1 import memory_service_pb2_grpc
from tests.bench.report import one, quantile, row
from tests.bench.seed import fill, sentences
from tests.support import Daemon

ROUNDS = 5


def encoders() -> None:
    """One query, and texts in pieces as the scheduler makes them; both arithmetics in turns."""
    encoder, in_float = builtin_encoder(), builtin_encoder(in_float=True)
    queries = [" ".join(text.split()[:8]) for text in sentences(60, seed=41)]
    texts = sorted(sentences(300, seed=42), key=len)
    took: dict[str, list[float]] = {"builtin": [], "builtin-float": []}
    rates: dict[str, list[float]] = {"builtin": [], "builtin-float": []}
    for _ in range(ROUNDS):
        for one_encoder, piece in ((encoder, 32), (in_float, 8)):
            for query in queries:
                began = time.perf_counter()
                one_encoder.encode([query], query=True)
                took[one_encoder.provider].append((time.perf_counter() - began) * 1e3)
            began = time.perf_counter()
            for n in range(0, len(texts), piece):
                one_encoder.encode(texts[n : n + piece], query=False)
            rates[one_encoder.provider].append(len(texts) / (time.perf_counter() - began))
    for name, values in took.items():
        row(f"One query of 8 words, {name}", values)
    one("  ratio of the medians", _ratio(took), "×", "≤ 0.35")
    for name, values in rates.items():
        one(f"Texts, {name}, one thread", statistics.median(values), "texts/s")
    one("  ratio of the medians", _ratio(rates), "×", "≥ 3")


def _ratio(values: dict[str, list[float]]) -> float:
    return statistics.median(values["builtin"]) / statistics.median(values["builtin-float"])


def reembedding(count: int) -> None:
    """Embed a scope anew after a change of model, while another user searches."""
    folder = Path(tempfile.mkdtemp(prefix="memoryd-bench-"))
    fill(folder / "memory.duckdb", {"k10": count, "k1": 1000})
    daemon = Daemon(folder, config="[embedding]\nprovider = 'builtin-float'\nreembed = false\n")
    daemon.start()
    quiet = _searches(daemon, 200, 51)
    daemon.stop()
    daemon = Daemon(folder, config="[embedding]\nprovider = 'builtin-float'\n")  # the slower arithmetic: the worse case
    daemon.start()
    began, before = time.perf_counter(), _pending(daemon)
    busy = _searches(daemon, 200, 52)
    done = before - _pending(daemon)
    rate = done / (time.perf_counter() - began)
    while _pending(daemon):
        time.sleep(0.1)
    whole = before / (time.perf_counter() - began)
    daemon.stop()
    row("Search, quiet", quiet)
    row("Search beside embedding anew", busy, goal="p99 ≤ 3 × quiet p99")
    one("  ratio of the p99s", quantile(busy, 0.99) / quantile(quiet, 0.99), "×", "≤ 3")
    one("Embedding anew beside searches", rate, "memories/s")
    one("Embedding anew, on the whole", whole, "memories/s")
    shutil.rmtree(folder)


def _pending(daemon: Daemon) -> int:
    with daemon.client() as client:
        return client.server_info().unembedded_count


def _searches(daemon: Daemon, count: int, seed: int) -> list[float]:
    took = []
    with daemon.channel() as channel:
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        stub.SearchMemories(pb.SearchMemoriesRequest(query="warm up", user_id="k1"))
        for text in sentences(count, seed=seed):
            began = time.perf_counter()
            stub.SearchMemories(pb.SearchMemoriesRequest(query=text, user_id="k1"))
            took.append((time.perf_counter() - began) * 1e3)
    return took
