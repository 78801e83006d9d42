"""What an import costs next to the model alone, the job that judges it, and the room that a large file takes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from memoryd.embedding.packaged import builtin_encoder
from tests.bench.report import one, scratch
from tests.bench.seed import sentences
from tests.support import BIN, Daemon

BATCH = 100
READ = """
import resource, sys
from pathlib import Path
from memoryd.cli.importers.formats import reader_of
from memoryd.cli.importers.source import Source
count = sum(1 for _ in reader_of("chatgpt")(Source(Path(sys.argv[1]))))
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def imports(*, quick: bool) -> None:
    """Import memories by the command, judge them, and read a large export of ChatGPT."""
    folder = scratch()
    count = 2_000 if quick else 20_000
    texts = sentences(count, seed=11)
    alone = _embedded_alone(texts[: min(count, 4_000)])
    lines = [{"id": str(n), "content": text, "create_time": 1_600_000_000 + n} for n, text in enumerate(texts)]
    path = folder / "own.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    daemon = Daemon(folder)
    daemon.start()
    socket = daemon.endpoint.removeprefix("unix://")
    command = [BIN / "memoryd", "import", path, "--user", "k1", "--as", "jsonl", "--socket", socket, "--json"]
    for name, goal in (("Import of memories", "≥ 0.8"), ("The same once more, when all are known", "")):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        one(f"{name}, {count:,}", count / (time.perf_counter() - began) / alone, "× the model alone", goal)
    with daemon.client("k1") as client:
        began = time.perf_counter()
        run = client.run_job("imports")
        while run.state.value == "running":
            time.sleep(0.2)
            run = client.job_run(run.id)
        one("Judging them", run.done_count / (time.perf_counter() - began), "/s")
    daemon.stop()
    size = _large_export(folder / "conversations.json", (50 if quick else 500) << 20)
    done = subprocess.run(
        [sys.executable, "-c", READ, folder / "conversations.json"], check=True, capture_output=True, text=True
    )
    one(f"Reading an export of ChatGPT of {size >> 20} MB", float(done.stdout.split()[1]), "MB resident", "≤ 300")
    shutil.rmtree(folder)


def _embedded_alone(texts: list[str]) -> float:
    """Return how many texts the model takes a second in this process, with a thread for each of two cores."""
    encoder = builtin_encoder()
    batches = [texts[n : n + BATCH] for n in range(0, len(texts), BATCH)]
    encoder.encode(batches[0], query=False)
    with ThreadPoolExecutor(2) as pool:
        began = time.perf_counter()
        list(pool.map(lambda batch: encoder.encode(batch, query=False), batches))
    rate = len(texts) / (time.perf_counter() - began)
    one("The model alone, in batches of 100", rate, "texts/s")
    return rate


def _large_export(path: Path, size: int) -> int:
    """Write an export of so many bytes, in conversations of twenty messages, and return its size."""
    texts = sentences(2_000, seed=12)
    with path.open("w") as file:
        file.write("[")
        for talk in range(1 << 30):
            nodes = {
                str(n): {
                    "message": {
                        "author": {"role": ("user", "assistant")[n % 2]},
                        "create_time": 1_600_000_000 + talk,
                        "content": {"content_type": "text", "parts": [texts[(talk + n) % len(texts)] * 4]},
                    },
                    "parent": str(n - 1) if n else None,
                    "children": [str(n + 1)] if n < 19 else [],
                }
                for n in range(20)
            }
            file.write(json.dumps({"id": f"t{talk}", "mapping": nodes, "current_node": "19"}))
            if file.tell() > size:
                break
            file.write(",")
        file.write("]")
    return path.stat().st_size
