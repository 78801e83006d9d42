"""Killed, and its data directory deleted, again and again: what was acknowledged some seconds before is restored."""

from __future__ import annotations

import os
import random
import shutil
import sys
import threading
import time
from pathlib import Path

from memory_client import MemorydError, MessageDraft

from tests.forking import run_command
from tests.support import PATIENCE_S, Daemon, running, short_folder

KILLS = int(os.environ.get("MEMORYD_DISK_KILLS", "2"))
WRITERS = 3
LEAST_S = 10.0
"""What was acknowledged so long before the disk was lost has to be there."""
CONFIG = '[embedding]\nprovider = "none"\n[backup]\ndirectory = "{}"\nship_s = 1\n'


class Writer(threading.Thread):
    """Appends messages and notes when each was acknowledged."""

    def __init__(self, daemon: Daemon, round_: int, number: int, ended: threading.Event) -> None:
        super().__init__(daemon=True)
        self.daemon_of, self.round, self.number, self.ended = daemon, round_, number, ended
        self.acknowledged: list[tuple[str, float]] = []

    def run(self) -> None:
        n = 0
        with self.daemon_of.client(timeout_s=3) as memory:
            while not self.ended.is_set():
                text = f"{self.round}:{self.number}:{n} " + "x" * (n % 900)
                try:
                    memory.append(f"t{self.number}", [MessageDraft(content=text)])
                except MemorydError:
                    return
                self.acknowledged.append((text.split()[0], time.monotonic()))
                n += 1


def stored(daemon: Daemon) -> list[str]:
    """Return the first word of every message, in the order of each thread."""
    words: list[str] = []
    with daemon.client(timeout_s=PATIENCE_S) as memory:
        for number in range(WRITERS):
            token, pages = "", []
            while True:
                try:
                    page = memory.messages(f"t{number}", page_size=1000, page_token=token)
                except MemorydError:
                    break
                pages.insert(0, [message.content.split()[0] for message in page.messages])
                token = page.next_page_token
                if not token:
                    break
            words += [word for some in pages for word in some]
    return words


def restored(backup: Path, target: Path) -> None:
    """Restore the newest history; one that was lost before its first image was whole leaves it to the one before."""
    newest = sorted(backup.glob("*/*/manifest.jsonl"), key=lambda path: -path.stat().st_mtime)
    env = {name: value for name, value in os.environ.items() if not name.startswith("MEMORYD_")}
    for history in dict.fromkeys(manifest.parent.parent for manifest in newest):
        command = [sys.executable, "-m", "memoryd", "restore", str(history), "--data-dir", str(target)]
        done = run_command(command, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        if "none is complete" not in done.stderr:
            break
    assert 0 == done.returncode, done.stderr


def test_nothing_that_was_acknowledged_some_seconds_before_is_lost_with_the_disk(folder):
    backup, rng = folder / "backup", random.Random(5)
    backup.mkdir()
    known: list[str] = []
    worst_s = 0.0
    with short_folder() as disk:
        place = disk / "d0"
        place.mkdir()
        for round_ in range(KILLS):
            daemon = Daemon(place, config=CONFIG.format(backup))
            daemon.start()
            ended = threading.Event()
            writers = [Writer(daemon, round_, number, ended) for number in range(WRITERS)]
            for writer in writers:
                writer.start()
            time.sleep(rng.uniform(1.0, 6.0))
            lost_at = time.monotonic()
            daemon.kill()
            shutil.rmtree(place)
            ended.set()
            for writer in writers:
                writer.join(PATIENCE_S)
            place = disk / f"d{round_ + 1}"
            restored(backup, place)
            with running(place) as daemon:
                words = stored(daemon)
            assert len(words) == len(set(words))
            assert set(known) <= set(words)
            new = [(text, at) for writer in writers for text, at in writer.acknowledged]
            ages = [lost_at - at for text, at in new if text not in set(words)]
            worst_s = max([worst_s, *ages])
            assert worst_s < LEAST_S, f"what was acknowledged {worst_s:.1f} s before is lost"
            known = words
        print(f"{KILLS} lost disks, {len(known)} messages restored; the oldest lost one was {worst_s:.1f} s old")
    assert known
