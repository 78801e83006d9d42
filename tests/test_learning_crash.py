"""A week of conversation, told twice with `kill -9` in between, leaves the memories that it leaves when told once."""

from __future__ import annotations

import os
import random
import time

from memory_client import Filter, MemorydError, MessageDraft

from tests.support import PATIENCE_S, Daemon

KILLS = int(os.environ.get("MEMORYD_LEARNING_KILLS", "2"))
LEARNING = '[embedding]\nprovider = "none"\n[store]\nmin_free_bytes = 0\n[learning]\nwait_s = 0\n'
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
USERS = ["alice", "bob"]
SAID = [
    ["I live in {town}", "I have a dog called {name}", "ok thanks", "what's the weather like?"],
    ["I work at {firm} as a nurse", "I don't eat {food}", "I love {food}"],
    ["Remember that my sister {name} is allergic to nuts", "I run every {day}", "that's great"],
    ["Where do you live?", "Porto, since May", "I moved to {town}"],
    ["I hate {food}", "My favorite colour is green", "My boss is {name}"],
    ["I quit my job at {firm}", "I'm learning {tongue}", "I'm tired"],
    ["Don't forget that my passport expires in March 2031", "I like {food} now", "I have two kids"],
]


def week(user: str) -> list[tuple[str, str, list[MessageDraft]]]:
    """Thread, request and messages, in the order in which they were said."""
    rng = random.Random(user)
    told = []
    for day, lines in zip(DAYS, SAID, strict=True):
        filled = [
            line.format(
                town=rng.choice(["Oslo", "Leeds", "Turin"]), name=rng.choice(["Ada", "Rex", "Uma"]),
                firm=rng.choice(["Bosch", "Etsy"]), food=rng.choice(["olives", "tofu", "beetroot"]), day=day,
                tongue=rng.choice(["Greek", "Danish"]),
            )
            for line in lines
        ]  # fmt: skip
        for n, text in enumerate(filled):
            role = "assistant" if text.startswith("Where") else "user"
            told.append((f"{user} {day}", f"{user}-{day}-{n}", [MessageDraft(role=role, content=text)]))
    return told


def tell(daemon: Daemon, user: str, rng: random.Random | None = None, kills: set[int] = frozenset()) -> None:
    """Say the week, each message until it is acknowledged; the daemon is killed at some of them."""
    for n, (thread_id, request_id, messages) in enumerate(week(user)):
        if n in kills:
            time.sleep(rng.uniform(0, 0.6))
            daemon.kill()
            daemon.start()
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                with daemon.client(user_id=user, timeout_s=5) as memory:
                    memory.append(thread_id, messages, request_id=request_id)
                break
            except MemorydError:
                assert time.monotonic() < until
                time.sleep(0.05)


def learnt(daemon: Daemon) -> list[tuple]:
    """Everything that is known in the end, without what differs by chance: ids and times."""
    with daemon.client() as admin:
        for job in ("extraction", "consolidation"):
            run = admin.run_job(job)
            while admin.job_run(run.id).end_time is None:
                time.sleep(0.02)
    found = []
    for user in USERS:
        with daemon.client(user_id=user) as memory:
            said = {m.id: (t.id, m.content) for t in memory.all_threads() for m in memory.all_messages(t.id)}
            for one in memory.pages(filter=Filter(include_superseded=True)):
                sources = sorted(said[message_id] for message_id in one.source.message_ids)
                found.append(
                    (
                        user,
                        one.content,
                        bool(one.superseded_by),
                        one.category,
                        one.kind,
                        round(one.confidence, 3),
                        tuple(sources),
                    )
                )
    return sorted(found)


def test_told_twice_with_kills_in_between_the_same_is_known(folder):
    quiet, killed = folder / "quiet", folder / "killed"
    quiet.mkdir()
    killed.mkdir()
    daemon = Daemon(quiet, config=LEARNING)
    daemon.start()
    for user in USERS:
        tell(daemon, user)
        wanted = learnt(daemon)
    daemon.stop()
    assert len(wanted) > 20
    rng = random.Random(11)
    daemon = Daemon(killed, config=LEARNING)
    daemon.start()
    count = len(week(USERS[0]))
    for user in USERS:
        for _ in range(2):
            tell(daemon, user, rng, set(rng.sample(range(count), KILLS)))
        learnt(daemon)
    found = learnt(daemon)
    daemon.stop()
    assert wanted == found
