"""What the pages of the inspector cost the server, for an owner of many memories."""

from __future__ import annotations

import re
import shutil
import statistics
import time

from memory_client import MessageDraft

from memoryd.inspector.view import PAGES
from tests.bench.report import row, scratch
from tests.bench.seed import fill
from tests.support import Daemon
from tests.web_helpers import inspecting

ROUNDS = 15
GOAL = "≤ 300"
PEOPLE = ("Sarah", "Tom", "Lena", "Mia", "Greta Olsen", "Amina Khan", "Ben", "Zoe", "Omar", "Ines")


def inspector(*, quick: bool) -> None:
    """Ask for each page in turns, for an owner of 100,000 memories; each time is what the server says it took."""
    folder = scratch()
    fill(folder / "memory.duckdb", {"k100": 10_000 if quick else 100_000})
    daemon = Daemon(folder, config="[metrics]\nenabled = true\n")
    daemon.start()
    with daemon.client("k100", timeout_s=120) as client:
        client.search("warm up")
        for n in range(40):
            client.add(f"{PEOPLE[n % 10]} and {PEOPLE[(n * 3 + 1) % 10]} met for lunch number {n}")
        kept = client.add("I work as a teacher").memory
        client.add("I work as a translator")
        for n in range(5):
            client.append("talk", [MessageDraft(content=f"Message {n} {m}") for m in range(100)])
            client.put_note(f"plans/{n}", "text " * 500)
    owner = {"agent": "default", "user": "k100"}
    asked = [(name, path, owner if of_owner else {}) for path, name, of_owner in PAGES]
    asked += [
        ("Search for something", "search", {"q": "lunch with Sarah", **owner}),
        ("Context of a thread", "context", {"prompt": "lunch", "thread": "talk", **owner}),
        ("One conversation", "conversations/thread", {"id": "talk", **owner}),
        ("One memory", f"memories/{kept.id}", owner),
        ("Memories, filtered", "memories", {"where": "score >= 3", **owner}),
    ]
    with inspecting(daemon) as site:
        took: dict[str, list[float]] = {name: [] for name, _, _ in asked}
        for _ in range(ROUNDS):
            for name, path, params in asked:
                answer = site.http.get(f"{site.base}/{path}", params=params or None)
                answer.raise_for_status()
                [spent] = re.findall(r"dur=([\d.]+)", answer.headers["server-timing"])
                took[name].append(float(spent))
                time.sleep(0.01)
    for name, values in took.items():
        row(f"{name}, an owner of 100,000", values, goal=GOAL)
    row("The slowest page, median", [max(statistics.median(values) for values in took.values())], goal=GOAL)
    daemon.stop()
    shutil.rmtree(folder)
