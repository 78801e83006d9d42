"""The audit log: who did what to which memories, before it is acknowledged, and never what they say."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

import grpc
import pytest
from memory_client import Draft, NotFound, PermissionDenied, Unavailable

from memoryd.audit.log import AuditLog
from memoryd.audit.reading import audit_files, read_audit
from memoryd.cli.audit import _rpc
from memoryd.daemon.schedule import JOBS
from memoryd.daemon.servers import SERVICES
from memoryd.errors import Unavailable as NotWritten
from memoryd.model.call_context import CallContext
from memoryd.model.change import ChangeSet
from memoryd.model.times import rfc3339
from tests.builders import entry
from tests.doors import a_world
from tests.support import Daemon, running
from tests.test_cli import BIN

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
NO_MODEL = '[embedding]\nprovider = "none"\n'


def made_call(n: int = 0, **more) -> CallContext:
    given = {"time": NOW + timedelta(seconds=n), "call": f"call{n}", "rpc": "AddMemory", "door": "sandbox"}
    return CallContext(**{**given, **more})


def records(path, **options):
    return list(read_audit(path, **options))


def test_a_line_says_who_what_and_which_and_nothing_empty(folder):
    log = AuditLog(folder / "a.jsonl")
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
            "time": rfc3339(NOW), "call": "call0", "door": "sandbox", "listener": "g", "grant_id": "g",
            "token_id": "t", "agent_id": "x", "user_id": "u", "chat_id": "c", "rpc": "AddMemory", "outcome": "OK",
            "ids": ["m1", "m2"],
        },
        {
            "time": rfc3339(NOW + timedelta(seconds=1)), "call": "call1", "door": "sandbox", "rpc": "AddMemory",
            "outcome": "NOT_FOUND", "reason": "MEMORY_NOT_FOUND",
        },
    ] == records(folder / "a.jsonl")  # fmt: skip
    assert 0o600 == (folder / "a.jsonl").stat().st_mode & 0o777


def test_a_write_is_recorded_before_its_commit_and_once(folder):
    log = AuditLog(folder / "a.jsonl")
    made, change = made_call(), ChangeSet(inserts=(entry("secret words"),))
    flushed = log.record([(change, made), (ChangeSet(), None)])
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


def test_a_commit_waits_until_its_line_is_on_disk_and_a_disk_that_fails_stops_the_next(folder, monkeypatch):
    log = AuditLog(folder / "a.jsonl")
    work = [(ChangeSet(inserts=(entry("x"),)), made_call())]
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
        work = [(ChangeSet(inserts=(entry("x"),)), made_call())]
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
    log.record([(ChangeSet(inserts=(entry("x"),)), made_call())])()
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


# --- of a daemon ---


def test_every_call_is_there_with_its_outcome_and_no_content(folder):
    with a_world(folder) as world:
        sandbox = world.sandbox("search", "add", "delete", "get")
        grant_id = sandbox.grant.id
        with world.inside(sandbox) as inside:
            made = inside.add("xylophone under the bed").memory
            both = inside.add_batch([Draft(content="one xylophone"), Draft(content="two xylophones")])
            inside.search("where is the xylophone")
            inside.delete(made.id)
            with pytest.raises(NotFound):
                inside.get("a" * 26)
            with pytest.raises(PermissionDenied):
                inside.page()
        with pytest.raises(grpc.RpcError):
            world.channel(world.shared).unary_unary("/memoryd.v1.MemoryService/GetMemory")(b"", timeout=9)
        path = folder / "audit.jsonl"
        text = path.read_text()
        found = [(r["rpc"], r["outcome"], r.get("ids", [])) for r in records(path) if r.get("grant_id") == grant_id]
        ids = [result.memory.id for result in both]
        assert [
            ("AddMemory", "OK", [made.id]),
            ("BatchAddMemories", "OK", ids),
            ("SearchMemories", "OK"),
            ("DeleteMemory", "OK", [made.id]),
            ("GetMemory", "NOT_FOUND", []),
            ("ListMemories", "PERMISSION_DENIED", []),
        ] == [row[:2] if row[0] == "SearchMemories" else row for row in found]
        assert {made.id, *ids} == set(found[2][2])
        assert [("shared", "UNAUTHENTICATED")] == [
            (r["door"], r["outcome"]) for r in records(path) if r["door"] == "shared"
        ]
        assert "xylophone" not in text
        with world.admin() as host:
            issued = host.issue_token(grant_id, via=grant_id)
            host.delete_grant_memories(grant_id)
        assert issued.token_id in [r.get("token_id") for r in records(path) if r["rpc"] == "IssueToken"]
        cleaned = [r["ids"] for r in records(path) if r["rpc"] == "DeleteGrantMemories"]
        assert [sorted(ids), [grant_id]] == [sorted(cleaned[0]), cleaned[1]]
        opened = [r for r in records(path) if r["rpc"] == "OpenSandbox"]
        assert [[grant_id]] == [r["ids"] for r in opened]


def test_no_log_holds_a_token_or_a_word_of_content(folder):
    with a_world(folder, config=NO_MODEL + '[daemon]\nlog_level = "debug"\n') as world:
        token = world.token()
        with world.client(world.shared, token) as caller:
            caller.add("marmalade")
            caller.search("marmalade")
        with world.client(world.tcp, token[:-4] + "AAAA") as caller, pytest.raises(Exception, match="genuine"):
            caller.search("marmalade")
        with world.admin() as host:
            host.inspect_token(token)
        for text in (world.daemon.log.read_text(), (folder / "audit.jsonl").read_text()):
            assert "marmalade" not in text
            assert token not in text
            assert token[:-4] not in text


def test_nothing_acknowledged_is_missing_from_it_after_a_kill(folder):
    daemon = Daemon(folder, config=NO_MODEL)
    daemon.start()
    acknowledged: list[str] = []

    def write():
        try:
            with daemon.client(timeout_s=5) as client:
                for n in range(100_000):
                    acknowledged.append(client.add(f"statement {n}").memory.id)
        except Exception:  # noqa: BLE001, S110  the daemon was killed in mid-call
            pass

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(1.5)
    daemon.kill()
    for thread in threads:
        thread.join()
    written = {item for record in records(folder / "audit.jsonl") for item in record.get("ids", [])}
    assert len(acknowledged) > 50
    assert set(acknowledged) <= written
    daemon.start()
    daemon.stop()


def test_writes_are_refused_and_reads_go_on_while_it_cannot_be_written(folder):
    blocked = folder / "audit"
    blocked.write_text("in the way")
    config = NO_MODEL + f'[audit]\npath = "{blocked}/audit.jsonl"\n'
    with running(folder, config=config) as daemon, daemon.client() as client:
        with pytest.raises(Unavailable, match="audit log cannot be written"):
            client.add("tea")
        assert () == client.page().memories
        blocked.unlink()
        client.add("tea")
        assert ["tea"] == [memory.content for memory in client.page().memories]
        assert "audit_not_written" in daemon.log.read_text()


def test_the_log_tells_what_was_only_tried_and_what_was_erased(daemon, user):
    with daemon.client(user) as memory:
        first, second = (memory.add(f"the boat number {n} of {user}").memory.id for n in (1, 2))
        memory.delete_matching(text="the boat", dry_run=True)
        memory.delete(first)
        memory.delete(second, purge=True)
        memory.add(f"my friend Zed likes {user}")
        memory.forget_person("Zed", dry_run=True)
        memory.forget_person("Zed")
    done = subprocess.run(
        [BIN / "memoryd", "audit", "--data-dir", daemon.folder, "--user", user, "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = [json.loads(line) for line in done.stdout.splitlines()]
    flags = [(r["rpc"], r.get("dry_run", False), r.get("purge", False)) for r in told if r["rpc"] != "AddMemory"]
    assert [
        ("DeleteMemories", True, False),
        ("DeleteMemory", False, False),
        ("DeleteMemory", False, True),
        ("ForgetPerson", True, False),
        ("ForgetPerson", False, True),
    ] == flags
    shown = subprocess.run(
        [BIN / "memoryd", "audit", "--data-dir", daemon.folder, "--user", user, "--rpc", "forgetperson"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert ["ForgetPerson (dry run)", "ForgetPerson (purge)"] == [line.split("  ")[3] for line in shown.splitlines()]


def test_every_method_that_is_served_can_be_asked_for():
    served = {method.name for service in SERVICES for method in service.methods}
    for name in (*served, *JOBS):
        assert name == _rpc(name.upper())
    with pytest.raises(argparse.ArgumentTypeError, match="did you mean ForgetPerson"):
        _rpc("ForgetPersons")


def test_memoryd_audit_filters(folder):
    with a_world(folder) as world:
        sandbox = world.sandbox("search", "add")
        with world.inside(sandbox) as inside:
            made = inside.add("tea").memory
            with pytest.raises(PermissionDenied):
                inside.get(made.id)

        def audit(*words: str) -> list[dict]:
            command = world.daemon.command("audit", "--json", *words)
            found = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
            return [json.loads(line) for line in found.stdout.splitlines()]

        grant = sandbox.grant.id
        assert ["AddMemory"] == [r["rpc"] for r in audit("--id", made.id[:8])]
        assert ["GetMemory"] == [r["rpc"] for r in audit("--outcome", "refused", "--grant", grant[:8])]
        assert ["AddMemory"] == [r["rpc"] for r in audit("--rpc", "AddMemory", "--user", "alice", "--door", "sandbox")]
        assert ["AddMemory"] == [r["rpc"] for r in audit("--rpc", "addmemory", "--user", "alice")]
        assert {"OpenSandbox", "AddMemory", "GetMemory"} == {r["rpc"] for r in audit("--grant", grant)}
        assert [] == audit("--since", "2099-01-01")
        for words in (
            ["--outcome", "refsed"],
            ["--door", "foo"],
            ["--rpc", "Search"],
            ["--since", "1h", "--until", "2h"],
        ):
            refused = subprocess.run(world.daemon.command("audit", *words), capture_output=True, check=False)
            assert 2 == refused.returncode, words
        assert [] == audit("--until", "2001-01-01")
        assert 1 == len(audit("--limit", "1"))
        shown = subprocess.run(
            world.daemon.command("audit", "--outcome", "refused"), capture_output=True, text=True, check=True
        ).stdout
        assert "GetMemory  PERMISSION_DENIED (PERMISSION_DENIED)" in shown
        wrong = subprocess.run(
            [sys.executable, "-m", "memoryd", "audit", "--data-dir", str(folder / "nowhere")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (2, 1) == (wrong.returncode, len(wrong.stderr.splitlines()))
