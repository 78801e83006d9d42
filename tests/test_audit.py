"""The audit log: who did what to which memories, before it is acknowledged, and never what they say."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from memoryd.audit import reading
from memoryd.audit.log import AuditLog
from memoryd.audit.reading import audit_files, last_records, read_audit
from memoryd.errors import Unavailable as NotWritten
from memoryd.model.call_context import CallContext
from memoryd.model.change import ChangeSet
from memoryd.model.times import rfc3339
from tests.audit_helpers import records
from tests.builders import entry

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


def made_call(n: int = 0, **more) -> CallContext:
    given = {"time": NOW + timedelta(seconds=n), "call": f"call{n}", "rpc": "AddMemory", "door": "sandbox"}
    return CallContext(**{**given, **more})


def test_a_line_says_who_what_and_which_and_nothing_empty(folder):
    log = AuditLog(folder / "a.jsonl", daemon_id="d1")
    made = made_call(
        grant_id="g",
        listener="g",
        token_id="t",  # noqa: S106  an id
        agent_id="x",
        user_id="u",
        chat_id="c",
        ids=["m1", "m2"],
    )
    log.note(made, "OK")
    log.note(made_call(1), "NOT_FOUND", "MEMORY_NOT_FOUND")
    log.close()
    assert [
        {
            "time": rfc3339(NOW), "call": "call0", "daemon": "d1", "door": "sandbox", "listener": "g", "grant_id": "g",
            "token_id": "t", "agent_id": "x", "user_id": "u", "chat_id": "c", "rpc": "AddMemory", "outcome": "OK",
            "ids": ["m1", "m2"],
        },
        {
            "time": rfc3339(NOW + timedelta(seconds=1)), "call": "call1", "daemon": "d1", "door": "sandbox",
            "rpc": "AddMemory",
            "outcome": "NOT_FOUND", "reason": "MEMORY_NOT_FOUND",
        },
    ] == records(folder / "a.jsonl")  # fmt: skip
    assert 0o600 == (folder / "a.jsonl").stat().st_mode & 0o777


def test_a_write_is_recorded_before_its_commit_and_once(folder):
    log = AuditLog(folder / "a.jsonl")
    made, change = made_call(), ChangeSet(inserts=(entry("secret words"),))
    flushed = log.record([([change], made), ([ChangeSet()], None)])
    assert [list(change.ids)] == [record["ids"] for record in records(folder / "a.jsonl")]
    flushed()
    made.ids.extend(change.ids)
    log.note(made, "OK")
    assert 1 == len(records(folder / "a.jsonl"))
    log.note(made_call(0, recorded=made.recorded, ids=["g1"], token_id="t1"), "OK")  # noqa: S106  an id: said after all
    assert (["g1"], "t1") == (records(folder / "a.jsonl")[1]["ids"], records(folder / "a.jsonl")[1]["token_id"])
    assert "secret words" not in (folder / "a.jsonl").read_text()
    log.note(made, "UNAVAILABLE", "UNAVAILABLE")  # the commit failed after all: that is said too
    assert ["OK", "OK", "UNAVAILABLE"] == [record["outcome"] for record in records(folder / "a.jsonl")]
    log.close()


def test_a_long_page_is_audited_by_its_first_ids_and_its_count(folder):
    log = AuditLog(folder / "a.jsonl")
    log.note(made_call(ids=[f"m{n}" for n in range(250)]), "OK")
    (record,) = records(folder / "a.jsonl")
    assert (10, 250) == (len(record["ids"]), record["id_count"])
    log.close()


def test_refusals_that_repeat_are_one_line_with_their_count(folder):
    log = AuditLog(folder / "a.jsonl")
    for n in range(5000):
        log.note(made_call(0, time=NOW + timedelta(microseconds=n)), "RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED")
    log.note(made_call(0, rpc="GetMemory"), "NOT_FOUND", "MEMORY_NOT_FOUND")
    log.note(made_call(2), "RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED")
    log.note(made_call(3), "OK")
    log.close()
    found = [(record["rpc"], record["outcome"], record.get("repeated", 0)) for record in records(folder / "a.jsonl")]
    assert [
        ("AddMemory", "RESOURCE_EXHAUSTED", 0),
        ("GetMemory", "NOT_FOUND", 0),
        ("AddMemory", "RESOURCE_EXHAUSTED", 4999),
        ("AddMemory", "RESOURCE_EXHAUSTED", 0),
        ("AddMemory", "OK", 0),
    ] == found


def test_who_was_refused_is_told_apart_and_counts_do_not_wait_for_the_next_refusal(folder):
    log = AuditLog(folder / "a.jsonl")
    for user in ("alice", "bob", "alice", "bob", "bob"):
        log.note(made_call(0, user_id=user), "NOT_FOUND", "MEMORY_NOT_FOUND")
    log.tell_repeats(NOW + timedelta(seconds=0.5))
    assert 2 == len(records(folder / "a.jsonl"))
    log.tell_repeats(NOW + timedelta(seconds=1))
    found = [(record["user_id"], record.get("repeated", 0)) for record in records(folder / "a.jsonl")]
    assert [("alice", 0), ("bob", 0), ("alice", 1), ("bob", 2)] == found
    log.close()


def test_what_a_grant_reads_within_a_minute_is_two_lines_with_their_count_and_ids(folder):
    log = AuditLog(folder / "a.jsonl")
    for n in range(1000):
        read = made_call(0, rpc="GetMemory", grant_id="g", ids=[f"m{n % 400}"], time=NOW + timedelta(milliseconds=n))
        log.note(read, "OK")
    log.note(made_call(0, rpc="GetMemory", grant_id="g", user_id="bob", ids=["b"]), "OK")
    log.note(made_call(0, rpc="GetMemory", ids=["h"]), "OK")
    log.note(made_call(0, rpc="GetMemory", ids=["h"]), "OK")  # the host's, one by one
    log.tell_repeats(NOW + timedelta(seconds=59))
    assert [["m0"], ["b"], ["h"], ["h"]] == [record["ids"] for record in records(folder / "a.jsonl")]
    log.tell_repeats(NOW + timedelta(seconds=61))
    told = records(folder / "a.jsonl")[4:]
    assert [("GetMemory", "OK", "g", 999, 999), *[("GetMemory", "OK", "g", 0, 0)] * 3] == [
        (one["rpc"], one["outcome"], one["grant_id"], one.get("repeated", 0), one.get("id_count", 0)) for one in told
    ]
    assert {f"m{n}" for n in range(400)} == {one for record in told for one in record["ids"]}  # none is left out
    assert all(len(record["ids"]) <= 100 for record in told)
    log.note(made_call(70, rpc="GetMemory", grant_id="g", ids=["m1"]), "OK")
    assert ["m1"] == records(folder / "a.jsonl")[-1]["ids"]
    log.close()


def test_counts_that_cannot_be_written_are_told_later_and_a_clock_set_back_ends_them(folder, monkeypatch):
    log = AuditLog(folder / "a.jsonl")
    for n in range(5):
        log.note(made_call(n, rpc="GetMemory", grant_id="g", ids=[f"m{n}"]), "OK")
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda *_: 0)
        log.tell_repeats(NOW + timedelta(seconds=70))
    assert 1 == len(records(folder / "a.jsonl"))
    log.tell_repeats(NOW + timedelta(seconds=71))
    assert 4 == records(folder / "a.jsonl")[1]["repeated"]
    for _ in range(3):
        log.note(made_call(80, rpc="GetMemory", grant_id="g"), "OK")
    log.tell_repeats(NOW - timedelta(hours=1))
    assert 2 == records(folder / "a.jsonl")[3]["repeated"]
    log.close()


def test_writes_through_a_grant_are_told_one_by_one_and_what_is_left_at_the_end_is_told(folder):
    log = AuditLog(folder / "a.jsonl")
    for n in range(3):
        made, change = made_call(0, grant_id="g"), ChangeSet(inserts=(entry(f"text {n}"),))
        log.record([([change], made)])()
        log.note(made, "OK")
    for dry_run in (True, False, True):
        log.note(made_call(0, rpc="DeleteMemories", grant_id="g", dry_run=dry_run), "OK")
    log.close()
    told = [(one["rpc"], one.get("dry_run", False), one.get("repeated", 0)) for one in records(folder / "a.jsonl")]
    assert [("AddMemory", False, 0)] * 3 == told[:3]
    assert [("DeleteMemories", True, 0), ("DeleteMemories", False, 0), ("DeleteMemories", True, 1)] == told[3:]


def test_a_commit_waits_until_its_line_is_on_disk_and_a_disk_that_fails_stops_the_next(folder, monkeypatch):
    log = AuditLog(folder / "a.jsonl")
    work = [([ChangeSet(inserts=(entry("x"),))], made_call())]
    slow, synced = threading.Event(), []

    def sync(handle: int) -> None:
        assert slow.wait(10)
        synced.append(handle)

    monkeypatch.setattr(os, "fdatasync", sync)
    flushed = log.record(work)
    waiting = threading.Thread(target=flushed)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    slow.set()
    waiting.join(10)
    assert 1 == len(synced)

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    log.record(work)()  # what is committed by now is acknowledged
    with pytest.raises(NotWritten, match="on disk"):
        log.record(work)
    monkeypatch.setattr(os, "fdatasync", sync)
    log.record(work)()
    log.close()


def test_a_full_file_is_put_aside_and_the_oldest_go(folder):
    log = AuditLog(folder / "a.jsonl", max_bytes=4096, keep_files=2)
    for n in range(400):
        log.note(made_call(n), "OK")
    log.close()
    files = audit_files(folder / "a.jsonl")
    assert 3 == len(files)
    assert all(file.stat().st_size <= 4096 for file in files)
    calls = [record["call"] for record in records(folder / "a.jsonl")]
    assert [f"call{n}" for n in range(400 - len(calls), 400)] == calls


def test_a_torn_line_is_skipped_and_the_next_is_whole(folder):
    path = folder / "a.jsonl"
    AuditLog(path).note(made_call(0), "OK")
    with path.open("ab") as file:
        file.write(b'{"time": "2026-')
    log = AuditLog(path)
    log.note(made_call(1), "OK")
    log.close()
    assert ["call0", "call1"] == [record["call"] for record in records(path)]


def test_what_cannot_be_written_down_is_refused_unless_the_operator_says_otherwise(folder):
    faults = []
    (folder / "file").write_text("in the way")
    for required in (True, False):
        log = AuditLog(folder / "file" / "a.jsonl", required=required, on_fault=faults.append)
        work = [([ChangeSet(inserts=(entry("x"),))], made_call())]
        if required:
            with pytest.raises(NotWritten, match="audit log cannot be written"):
                log.record(work)
            with pytest.raises(NotWritten):
                log.check_writable()
        else:
            log.record(work)()
            log.check_writable()
        log.note(made_call(), "OK")
        log.close()
    assert 2 == len(faults)


def test_it_writes_again_by_itself(folder):
    (folder / "d").write_text("in the way")
    log = AuditLog(folder / "d" / "a.jsonl")
    with pytest.raises(NotWritten):
        log.check_writable()
    (folder / "d").unlink()
    log.check_writable()
    log.record([([ChangeSet(inserts=(entry("x"),))], made_call())])()
    assert 1 == len(records(folder / "d" / "a.jsonl"))
    log.close()


def test_a_link_in_its_place_is_not_followed(folder):
    (folder / "target").write_text("")
    (folder / "a.jsonl").symlink_to(folder / "target")
    log = AuditLog(folder / "a.jsonl")
    with pytest.raises(NotWritten):
        log.check_writable()
    log.close()
    assert "" == (folder / "target").read_text()


def test_following_goes_on_over_a_rotation(folder):
    path = folder / "a.jsonl"
    log = AuditLog(path, max_bytes=4096)
    seen: list[str] = []
    enough = threading.Event()

    def follow():
        for record in read_audit(path, follow=True, pause_s=0.01):
            seen.append(record["call"])
            if len(seen) == 100:
                enough.set()
                return

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    for n in range(100):
        log.note(made_call(n), "OK")
        time.sleep(0.001)
    assert enough.wait(10)
    thread.join()
    assert [f"call{n}" for n in range(100)] == seen
    assert len(audit_files(path)) > 1
    log.close()


def test_the_last_records_are_read_from_the_end_over_blocks_and_files(folder, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK", 64)  # so that lines lie over several blocks
    path = folder / "a.jsonl"
    old = folder / "a-20261101T000000Z.jsonl"
    old.write_text("".join(f'{{"n": {n}, "text": "{"x" * (n % 90)}"}}\n' for n in range(100)))
    path.write_text("".join(f'{{"n": {n}}}\n' for n in range(100, 130)) + '{"n": 130')  # the last is being written
    every = [record["n"] for record in last_records(path, 1000, lambda _: True)]
    assert list(range(129, -1, -1)) == every == [record["n"] for record in read_audit(path)][::-1]
    assert [129, 128] == [record["n"] for record in last_records(path, 2, lambda _: True)]
    assert [90, 80] == [record["n"] for record in last_records(path, 2, lambda record: record["n"] in {80, 90})]
    near = last_records(path, 1000, lambda _: True, most_bytes=200)
    assert 129 == near[0]["n"]
    assert 5 < len(near) < 30
    with path.open("a") as file:
        file.write(", broken\n[1]\n")
    assert [129] == [record["n"] for record in last_records(path, 1, lambda _: True)]
    assert [] == last_records(folder / "none.jsonl", 5, lambda _: True)
