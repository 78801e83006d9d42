"""
Kill −9 a real daemon while it writes: what it acknowledged is found, and nothing is half there.

MEMORYD_KILLS sets how often (`make crash`: 500).
"""

from __future__ import annotations

import os
import random
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from memory_client import Draft, MemorydError

from tests.support import PATIENCE_S, Daemon

KILLS = int(os.environ.get("MEMORYD_KILLS", "10"))
AT_ONCE = 3  # daemons that are killed beside each other
CONFIG = '[embedding]\nprovider = "none"\n[memory]\nauto_gc = false\n'


class Writer(threading.Thread):
    """One user who adds, batches, replaces and deletes until the daemon is gone, and keeps account."""

    def __init__(self, daemon: Daemon, user: str, seed: int) -> None:
        super().__init__()
        self.user = user
        self._client = daemon.client(user, timeout_s=PATIENCE_S, wait_for_ready=False)
        self._random = random.Random(seed)
        self.acknowledged: dict[str, str] = {}
        self.deleted: set[str] = set()
        self.unsure: set[str] = set()
        self.batches: list[list[str]] = []
        self.sequence = 0

    def run(self) -> None:
        try:
            while True:
                self._step()
        except MemorydError:
            return
        finally:
            self._client.close()

    def _step(self) -> None:
        dice = self._random.random()
        self.sequence += 1
        text = f"{self.user} {uuid.uuid4()}"
        if dice < 0.5:
            self.acknowledged[self._client.add(text).memory.id] = text
        elif dice < 0.7:
            texts = [f"{text} item {n}" for n in range(8)]
            self.batches.append(texts)
            for result in self._client.add_batch([Draft(content=item) for item in texts]):
                self.acknowledged[result.memory.id] = result.memory.content
        elif dice < 0.85:
            result = self._client.add(text, key="the key")
            for old in result.superseded_ids:
                self.acknowledged.pop(old, None)
            self.acknowledged[result.memory.id] = text
            self.unsure = {result.memory.id}  # the next one under this key may be written and not acknowledged
        elif self.acknowledged:
            gone = self._random.choice(list(self.acknowledged))
            del self.acknowledged[gone]  # it may be gone although nobody said so
            self._client.delete(gone)
            self.deleted.add(gone)


def check(daemon: Daemon, writer: Writer) -> None:
    with daemon.client(writer.user) as client:
        found = {memory.id: memory.content for memory in client.pages(page_size=1000)}
    missing = writer.acknowledged.keys() - found.keys() - writer.unsure
    assert not missing, f"acknowledged and lost: {[writer.acknowledged[item] for item in missing]}"
    assert not writer.deleted & found.keys(), "deleted and back again"
    assert all(found[item] == text for item, text in writer.acknowledged.items() if item in found)
    everything = set(found.values())
    for texts in writer.batches:
        present = [text in everything for text in texts]
        known = [text for text in texts if text not in {*writer.acknowledged.values()}]
        if len(known) == len(texts):  # not acknowledged: all of it or nothing
            assert len(set(present)) == 1, "half a batch"


def kill_again_and_again(folder: Path, kills: int, seed: int) -> None:
    """Kill one daemon so often, each time while it writes, and look for what it had acknowledged."""
    folder.mkdir()
    daemon = Daemon(folder, config=CONFIG)
    dice = random.Random(seed)
    before: list[Writer] = []
    for kill in range(kills + 1):
        daemon.start()
        for writer in before:
            check(daemon, writer)
        if kill == kills:
            break
        before = [Writer(daemon, f"k{kill}u{n}", 3000 * seed + kill * 3 + n) for n in range(3)]
        for writer in before:
            writer.start()
        time.sleep(dice.uniform(0.02, 0.4))
        daemon.kill()
        for writer in before:
            writer.join()
    assert 0 == daemon.stop()


def test_what_was_acknowledged_survives_kill_9(folder):
    with ThreadPoolExecutor(AT_ONCE) as daemons:
        runs = [
            daemons.submit(kill_again_and_again, folder / str(n), len(range(n, KILLS, AT_ONCE)), 7 + n)
            for n in range(AT_ONCE)
        ]
        for one in runs:
            one.result()
