"""Killed while many write: every message that was acknowledged is there, once and in order."""

from __future__ import annotations

import os
import random
import threading
import time

from memory_client import MemorydError, MessageDraft

from tests.support import PATIENCE_S, Daemon

KILLS = int(os.environ.get("MEMORYD_TALK_KILLS", "2"))
THREADS, WRITERS = 24, 8


class Writer(threading.Thread):
    """Appends numbered messages to threads of its choice, each until it is acknowledged."""

    def __init__(self, daemon: Daemon, number: int, ended: threading.Event) -> None:
        super().__init__(daemon=True)
        self.endpoint, self.number, self.ended = daemon, number, ended
        self.acknowledged: list[tuple[str, str]] = []
        self.rng = random.Random(number)

    def run(self) -> None:
        n = 0
        while not self.ended.is_set():
            thread_id = f"t{self.rng.randrange(THREADS)}"
            texts = [f"{self.number}:{n}:{part}" for part in range(self.rng.choice((1, 1, 2, 5)))]
            while not self._append(thread_id, texts, f"{self.number}-{n}"):
                if self.ended.is_set():
                    return
                time.sleep(0.02)
            self.acknowledged += [(thread_id, text) for text in texts]
            n += 1

    def _append(self, thread_id: str, texts: list[str], request_id: str) -> bool:
        try:
            with self.endpoint.client(timeout_s=3) as memory:
                memory.append(thread_id, [MessageDraft(content=text) for text in texts], request_id=request_id)
        except MemorydError:
            return False
        return True


def test_killed_while_many_write_no_message_is_lost_doubled_or_out_of_order(folder):
    daemon = Daemon(folder, config="[store]\nmin_free_bytes = 0\n")
    daemon.start()
    ended = threading.Event()
    writers = [Writer(daemon, number, ended) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    rng = random.Random(7)
    for _ in range(KILLS):
        time.sleep(rng.uniform(0.5, 1.5))
        daemon.kill()
        daemon.start()
    time.sleep(0.5)
    ended.set()
    for writer in writers:
        writer.join(30)
    try:
        with daemon.client() as memory:
            stored = {thread.id: [*memory.all_messages(thread.id)][::-1] for thread in memory.all_threads()}
            deadline = time.monotonic() + PATIENCE_S
            while memory.server_info().unembedded_message_count:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            for thread_id, messages in stored.items():
                thread = memory.thread(thread_id)
                assert [message.seq for message in messages] == list(range(1, thread.last_seq + 1))
                assert thread.message_count == len(messages)
    finally:
        daemon.stop()
    texts = [message.content for messages in stored.values() for message in messages]
    assert len(texts) == len(set(texts))
    acknowledged = [one for writer in writers for one in writer.acknowledged]
    assert len(acknowledged) > 10  # some hundreds where the machine does nothing else
    assert not {*acknowledged} - {(thread_id, m.content) for thread_id, messages in stored.items() for m in messages}
    for messages in stored.values():
        of_writer: dict[str, list[tuple[int, int]]] = {}
        for message in messages:
            number, n, part = message.content.split(":")
            of_writer.setdefault(number, []).append((int(n), int(part)))
        assert all(places == sorted(places) for places in of_writer.values())
