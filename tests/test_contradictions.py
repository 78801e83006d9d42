"""Changes that no rule reads are contested soon after by a small model, which retires nothing."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta

import pytest

from memoryd.daemon.jobs import Progress
from memoryd.domain.writing.add import add
from memoryd.domain.writing.contest import contested_both
from memoryd.embedding.packaged import builtin_encoder
from memoryd.embedding.readers import adapters
from memoryd.embedding.readers.change import builtin_reader
from memoryd.learning import contradictions
from memoryd.learning.conflicts import resolve_conflict
from memoryd.learning.contradictions import CONTRADICTION_JOB, Contradictions, suspects
from memoryd.model.call_context import current_call
from memoryd.model.caller import Caller
from memoryd.model.learnt import Resolution
from memoryd.model.limits import MAX_CONTESTED
from memoryd.model.memory import Draft, Judgement, State
from memoryd.model.trust import Trust
from tests.builders import Local, open_duckdb, ports_over, ram_store
from tests.builders import memory as memory_of
from tests.forking import run_command
from tests.shared_store import StoreView
from tests.support import BIN, PATIENCE_S, Daemon
from tests.test_instances import SHAPES, instance

OLD, NEW = "I rent a flat in Leeds", "We handed back the keys of the flat in Leeds on Friday"
BESIDE = ["My sister likes Leeds", "I have a cat called Miso", "I stopped eating sugar"]


@pytest.fixture(scope="module")
def encoder():
    return builtin_encoder()


@pytest.fixture(params=["ram", "duckdb"])
async def ports(request, folder, encoder):
    store = ram_store() if request.param == "ram" else open_duckdb(folder)
    async with ports_over(store, encoder=encoder) as made:
        yield made


@pytest.fixture
async def in_ram(encoder):
    async with ports_over(ram_store(), encoder=encoder) as made:
        yield made


def reading(ports, clock) -> Contradictions:
    return Contradictions(ports, ports.readers.change_reader, clock, pytest.fail)


async def said(memory: Local, clock, *texts: str, **more) -> list[str]:
    """Add statements a minute apart; return their ids."""
    ids = []
    for text in texts:
        ids.append((await memory.add(text, **more)).memory.id)
        clock.now += timedelta(minutes=1)
    return ids


async def test_a_change_that_no_rule_reads_is_contested_and_nothing_beside_it(ports, clock):
    memory, reader = Local(ports, clock, user_id="alice"), reading(ports, clock)
    assert {} == await reader.step()
    old, *others = await said(memory, clock, OLD, *BESIDE)
    (new,) = await said(memory, clock, NEW)
    assert () == (await memory.get(old)).contested_with  # no rule reads it
    counts = await reader.step()
    assert (5, 1) == (counts["statements"], counts["contested"])
    older, newer = await memory.get(old), await memory.get(new)
    assert ((new,), (old,)) == (older.contested_with, newer.contested_with)
    assert ("model", new, State.LIVE) == (older.judgement.rule, older.judgement.evidence, older.state_at(clock()))
    assert ("model", old) == (newer.judgement.rule, newer.judgement.evidence)
    assert [()] * 3 == [(await memory.get(one)).contested_with for one in others]
    (run,) = await ports.store.work.runs(job=CONTRADICTION_JOB, limit=9)
    assert (5, dict(counts)) == (run.done_count, dict(run.counts))
    assert {} == await reader.step()


async def test_what_a_daemon_left_the_next_one_reads_also_after_a_wrong_clock(ports, clock):
    memory = Local(ports, clock, user_id="alice")
    await reading(ports, clock).step()
    old, _ = await said(memory, clock, OLD, NEW)  # it ended before it read them
    assert 1 == (await reading(ports, clock).step())["contested"]
    assert 0 == (await reading(ports, clock).step())["contested"]
    clock.now += timedelta(days=400)
    ahead = reading(ports, clock)
    other = Local(ports, clock, user_id="bob")
    await said(other, clock, OLD)
    assert 3 == (await ahead.step())["statements"]  # with those of the minutes before the last step
    clock.now -= timedelta(days=400)
    late = reading(ports, clock)
    await late.step()
    await said(other, clock, NEW)
    assert (1, 1) == ((counts := await late.step())["statements"], counts["contested"])
    assert 1 == len((await memory.get(old)).contested_with)


async def test_of_two_daemons_one_contests(in_ram, clock, encoder):
    one, other = StoreView(in_ram.store), StoreView(in_ram.store)
    async with (
        ports_over(one, encoder=encoder, close=False) as mine,
        ports_over(other, encoder=encoder, close=False) as theirs,
    ):
        await reading(mine, clock).step()
        await said(Local(mine, clock, user_id="alice"), clock, OLD, NEW)
        counts = await asyncio.gather(reading(mine, clock).step(), reading(theirs, clock).step())
        assert [2, 2] == [count["statements"] for count in counts]
        assert 1 == sum(count["contested"] for count in counts)


async def test_nothing_is_contested_for_another_speaker_owner_key_or_what_is_gone(in_ram, clock):
    reader = reading(in_ram, clock)
    asking = Local(in_ram, clock, user_id="frank")
    await said(asking, clock, OLD, f"{NEW}, right?")
    for user_id, older, newer in (
        ("alice", {"key": "home"}, {"key": "flat"}),
        ("bob", {"subjects": ["Tom"]}, {"subjects": ["Anna"]}),
    ):
        memory = Local(in_ram, clock, user_id=user_id)
        await said(memory, clock, OLD, **older)
        await said(memory, clock, NEW, **newer)
    await said(Local(in_ram, clock, user_id="carol"), clock, OLD)
    await said(Local(in_ram, clock, user_id="dave"), clock, NEW)
    gone = Local(in_ram, clock, user_id="erin")
    (old,) = await said(gone, clock, OLD)
    await gone.delete(old)
    await said(gone, clock, NEW)
    counts = await reader.step()
    assert (9, 0) == (counts["statements"], counts["contested"])


async def test_what_somebody_decided_stands(in_ram, clock):
    memory, reader = Local(in_ram, clock, user_id="alice"), reading(in_ram, clock)
    old, new = await said(memory, clock, OLD, NEW)
    assert 1 == (await reader.step())["contested"]
    caller = Caller(user_id="alice")
    await resolve_conflict(new, old, Resolution.KEEP_BOTH, caller, in_ram, now=clock(), reason="two flats")
    kept = await memory.get(old)
    assert ("kept", "two flats", new) == (kept.judgement.rule, kept.judgement.reason, kept.judgement.evidence)
    assert 0 == (await reading(in_ram, clock).step())["contested"]
    other = Local(in_ram, clock, user_id="bob")
    await said(other, clock, OLD, NEW, OLD)  # it is said again
    assert 0 == (await reader.step())["contested"]


async def test_the_audit_tells_what_was_contested_and_for_whom(in_ram, clock):
    calls = []
    in_ram.store.commits.memories.follow(lambda applied: calls.append((current_call(), applied.change.updates)))
    reader = reading(in_ram, clock)
    ids = await said(Local(in_ram, clock, chat_id="team"), clock, OLD, NEW, shared=True)
    await reader.step()
    ((call, updates),) = [(call, updates) for call, updates in calls if updates]
    assert ("daemon", CONTRADICTION_JOB, "team") == (call.door, call.rpc, call.chat_id)
    assert {*ids} == {entry.memory.id for entry in updates}


async def test_a_statement_that_is_deleted_while_it_is_read_stays_so(in_ram, clock):
    memory, reader = Local(in_ram, clock, user_id="alice"), reading(in_ram, clock)
    old, new = await said(memory, clock, OLD, NEW)
    scores = in_ram.readers.change_reader.read

    async def slowly(pairs):
        await memory.delete(old)
        return await scores(pairs)

    in_ram.readers.change_reader.read = slowly
    counts = await reader.step()
    assert (1, 0) == (counts["pairs"], counts["contested"])
    assert () == (await memory.get(new)).contested_with


async def test_a_text_that_cannot_be_read_keeps_no_other_from_it(in_ram, clock):
    told: list[str] = []
    memory = Local(in_ram, clock, user_id="alice")
    reader = Contradictions(in_ram, in_ram.readers.change_reader, clock, told.append)
    await said(memory, clock, "The bees are in the garden", "The bees in the garden are bad", OLD, NEW)
    scores = in_ram.readers.change_reader.read

    async def breaking(pairs):
        if any("bad" in newer for _, newer in pairs):
            raise ValueError("bad")
        return await scores(pairs)

    in_ram.readers.change_reader.read = breaking
    counts = await reader.step()
    assert (4, 1, 1) == (counts["statements"], counts["failed"], counts["contested"])
    assert {"ValueError"} == {*told}
    assert {} == await reader.step()


async def test_a_model_that_fails_for_a_while_loses_no_statement(in_ram, clock):
    memory = Local(in_ram, clock, user_id="alice")
    reader = Contradictions(in_ram, in_ram.readers.change_reader, clock, lambda _: None)
    await said(memory, clock, OLD, NEW)
    scores = in_ram.readers.change_reader.read

    async def failing(pairs):
        raise MemoryError

    in_ram.readers.change_reader.read = failing
    with pytest.raises(MemoryError):
        await reader.step()
    in_ram.readers.change_reader.read = scores
    assert 1 == (await reader.step())["contested"]


def test_a_statement_contests_as_many_as_there_is_room_for():
    why = Judgement("model", "because")
    new = replace(memory_of("new"), contested_with=("a", "b", "c"))
    full = replace(memory_of("full"), contested_with=tuple("abcde"))
    host = replace(memory_of("host"), trust=Trust.HOST, contested_with=tuple("abc"))
    sandbox = replace(new, trust=Trust.SANDBOX, contested_with=())
    free = [memory_of(f"free {n}") for n in range(9)]
    marked, rivals = contested_both(new, [(one, why) for one in (full, *free)])
    assert MAX_CONTESTED == len(marked.contested_with)
    assert [one.content for one in free[:2]] == [one.content for one in rivals]
    assert all((new.id,) == one.contested_with for one in rivals)
    assert (sandbox, []) == contested_both(sandbox, [(host, why)])


async def test_a_job_reads_at_once_and_a_dry_run_counts(in_ram, clock):
    memory, reader = Local(in_ram, clock, user_id="alice"), reading(in_ram, clock)
    old, _ = await said(memory, clock, OLD, NEW)
    assert {"statements": 2} == await reader.everything(Progress(clock(), dry_run=True))
    assert () == (await memory.get(old)).contested_with
    progress = Progress(clock())
    assert 1 == (await reader.everything(progress))["contested"]
    assert (2, 2) == (progress.done_count, progress.total_count)
    assert {} == await reader.everything(Progress(clock()))


async def test_owners_take_turns_and_who_stores_too_fast_is_not_read_to_the_end(in_ram, clock, monkeypatch):
    monkeypatch.setattr(contradictions, "MOST_WAITING", 3)
    monkeypatch.setattr(contradictions, "A_TURN", 1)
    reader = reading(in_ram, clock)
    await reader.step()
    await said(Local(in_ram, clock, user_id="alice"), clock, "I like tea", "My desk is of oak", *BESIDE)
    await said(Local(in_ram, clock, user_id="bob"), clock, "I keep bees")
    asked: list[str] = []
    entries = in_ram.store.memories.entries

    async def noted(owner, ids):
        asked.append(owner.scope.user_id)
        return await entries(owner, ids)

    monkeypatch.setattr(in_ram.store.memories, "entries", noted)
    await reader.step()
    assert ["alice", "bob", "alice", "alice"] == asked


async def test_it_gives_way_while_messages_are_read_and_a_job_does_not(in_ram, clock):
    busy = [True]
    memory = Local(in_ram, clock, user_id="alice")
    reader = Contradictions(in_ram, in_ram.readers.change_reader, clock, pytest.fail, is_busy=lambda: busy[0])
    old, new = await said(memory, clock, OLD, NEW)
    assert {} == await reader.step()
    assert await reader.read_until() is None  # it is not done
    busy[0] = False
    assert 1 == (await reader.step())["contested"]
    busy[0] = True
    await said(Local(in_ram, clock, user_id="bob"), clock, OLD, NEW)
    assert 1 == (await reader.everything(Progress(clock())))["contested"]
    assert (new,) == (await memory.get(old)).contested_with


async def test_to_read_again_adds_no_mark(in_ram, clock):
    memory = Local(in_ram, clock, user_id="alice")
    await reading(in_ram, clock).step()
    await said(memory, clock, OLD, "I live in my flat in Leeds", "My flat in Leeds is home", "I have a flat in Leeds")
    await reading(in_ram, clock).step()
    (new,) = await said(memory, clock, NEW)
    counts = [(await reading(in_ram, clock).step())["contested"] for _ in range(3)]
    assert [2, 0, 0] == counts
    assert 2 == len((await memory.get(new)).contested_with)


async def test_a_sandbox_takes_no_mark_from_the_host(in_ram, clock):
    memory, reader = Local(in_ram, clock, user_id="alice"), reading(in_ram, clock)
    (old,) = await said(memory, clock, OLD)
    sandbox = Caller(user_id="alice", trust=Trust.SANDBOX, grant_id="g" * 26)
    for n in range(6):
        await add(Draft(content=f"The keys of the flat in Leeds hang by door {n}"), sandbox, in_ram, now=clock())
        clock.now += timedelta(seconds=1)
    (new,) = await said(memory, clock, NEW)
    await reader.step()
    assert old in (await memory.get(new)).contested_with


async def test_statements_of_one_shape_do_not_contest_each_other(in_ram, clock):
    reader = reading(in_ram, clock)
    for shape, (statement, _) in SHAPES.items():
        memory = Local(in_ram, clock, user_id=shape)
        await said(memory, clock, *(instance(n, statement) for n in range(12)))
    counts = await reader.step()
    assert (12 * len(SHAPES), 0) == (counts["statements"], counts["contested"])


async def test_who_is_named_as_a_successor_tells_nobody_apart(in_ram, clock):
    memory, reader = Local(in_ram, clock, user_id="alice"), reading(in_ram, clock)
    old, new = await said(
        memory, clock, "Priya is our product owner", "Priya said goodbye on Friday, Tom runs the backlog since"
    )
    await reader.step()
    assert (new,) == (await memory.get(old)).contested_with


async def test_a_statement_is_read_beside_what_is_near_it_however_much_came_after_it(in_ram, clock, monkeypatch):
    monkeypatch.setattr(contradictions, "NEAREST", 20)
    memory = Local(in_ram, clock, user_id="alice")
    hives = await said(
        memory, clock, *(f"I keep bee hive number {n} in the garden" for n in range(9)), "Prague is a city"
    )
    dead = await said(memory, clock, "The bees in the garden died this winter")
    await said(memory, clock, *(f"The bees in the garden died in winter {n}" for n in range(1990, 2020)))
    ((newer, others),) = await suspects([await memory.get(dead[0])], in_ram, now=clock())
    assert (dead[0], contradictions.MOST_BESIDE) == (newer.id, len(others))
    assert {one.id for one in others} <= {*hives}


def test_a_daemon_that_is_killed_before_it_has_read_reads_after_its_start(folder):
    daemon = Daemon(folder)
    daemon.start()

    def run(*words: str) -> str:
        command = [BIN / "memoryd", *words, "--socket", daemon.endpoint.removeprefix("unix:")]
        return run_command(command, capture_output=True, text=True, check=True).stdout

    run("jobs", "run", "contradictions")
    with daemon.client() as memory:
        old, new = memory.add(OLD).memory.id, memory.add(NEW).memory.id
    daemon.kill()
    daemon.start()
    with daemon.client() as memory:
        run("jobs", "run", "contradictions")
        assert (new,) == tuple(memory.get(old).contested_with)
        assert "contradictions" in run("jobs", "list")
        found = json.loads(run("jobs", "show", "contradictions", "--json"))
        assert 1 == sum(int(one.get("counts", {}).get("contested", 0)) for one in found["runs"])
    daemon.stop()


async def test_a_model_that_cannot_be_loaded_is_told_of_and_keeps_nothing_else(in_ram, clock, monkeypatch):
    for n, found in enumerate((b"", b"PK" + bytes(99))):
        monkeypatch.setattr(adapters, "data_file", lambda _, data=found: data)
        told: list[str] = []
        reader = Contradictions(in_ram, builtin_reader(), clock, told.append)
        await said(Local(in_ram, clock, user_id=f"u{n}"), clock, OLD, NEW)
        await asyncio.wait_for(reader.serve(), timeout=PATIENCE_S)
        await said(Local(in_ram, clock, user_id=f"u{n}"), clock, "It goes on")
        assert {"statements": 0} == await reader.everything(Progress(clock(), dry_run=True))  # nothing piles up
        assert "cannot be read" in reader.fault
        assert [reader.fault] == told
        assert await reader.read_until() is None
