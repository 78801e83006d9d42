"""The audit log of a running daemon, and the command that reads it."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time

import grpc
import pytest
from memory_client import Draft, MessageDraft, NotFound, PermissionDenied, Unavailable

from memoryd.cli.audit import _rpc
from memoryd.daemon.schedule import JOBS
from memoryd.daemon.servers import SERVICES
from tests.audit_helpers import records
from tests.doors import a_world
from tests.forking import run_command
from tests.support import PATIENCE_S, Daemon, running
from tests.test_cli import BIN

NO_MODEL = '[embedding]\nprovider = "none"\n'


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
            world.channel(world.shared).unary_unary("/memoryd.v1.MemoryService/GetMemory")(b"", timeout=PATIENCE_S)
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


def test_it_tells_for_whom_the_daemon_learnt(folder):
    with running(folder, config=f"{NO_MODEL}[learning]\nwait_s = 3600\n") as daemon:
        for user in ("alice", "bob"):
            with daemon.client(user) as client:
                client.append("t", [MessageDraft(content="I'm vegan"), MessageDraft(content="what is new?")])
        with daemon.client() as host:
            run = host.run_job("extraction")
            while host.job_run(run.id).end_time is None:
                time.sleep(0.05)
        lines = [one for one in records(folder / "audit.jsonl") if one["rpc"] == "extraction" and one.get("ids")]
        learnt = {one.get("user_id", ""): one["ids"] for one in lines}
        with daemon.client("alice") as client:
            held = [one.id for one in client.page().memories]
    assert (["alice", "bob"], held) == (sorted(learnt), learnt["alice"])
    assert "extraction" == _rpc("Extraction")


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
    patience = time.monotonic() + PATIENCE_S  # on a busy machine
    while len(acknowledged) <= 50 and time.monotonic() < patience:
        time.sleep(0.05)
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
    done = run_command(
        [BIN / "memoryd", "audit", "--data-dir", daemon.folder, "--user", user, "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)["records"]
    flags = [(r["rpc"], r.get("dry_run", False), r.get("purge", False)) for r in told if r["rpc"] != "AddMemory"]
    assert [
        ("DeleteMemories", True, False),
        ("DeleteMemory", False, False),
        ("DeleteMemory", False, True),
        ("ForgetPerson", True, False),
        ("ForgetPerson", False, True),
    ] == flags
    shown = run_command(
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
            found = run_command(command, capture_output=True, text=True, check=True, env={**os.environ})
            told = json.loads(found.stdout)
            assert {"records", "more"} == set(told)
            return told["records"]

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
            refused = run_command(world.daemon.command("audit", *words), capture_output=True, check=False)
            assert 2 == refused.returncode, words
        assert [] == audit("--until", "2001-01-01")
        assert 1 == len(audit("--limit", "1"))
        shown = run_command(
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
