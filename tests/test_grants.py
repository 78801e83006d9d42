"""What a grant allows, how much of it, and what becomes of its memories; the sockets that go with it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from memory_client import (
    Credentials,
    Draft,
    Filter,
    GrantNotFound,
    LimitExceeded,
    MemoryClient,
    MemorydError,
    MessageDraft,
    Outcome,
    Unauthenticated,
    Unavailable,
)

from memoryd.domain.writing.add import add
from memoryd.identity.listeners import Listeners
from memoryd.identity.socket_lease import SocketRefused
from memoryd.model.caller import Caller
from memoryd.model.grant import Quota
from tests.builders import NOW, ports_over, ram_store
from tests.doors import socket_of, spec
from tests.grants_helpers import NO_MODEL, _Server, grant
from tests.support import Daemon, until


def test_what_is_over_the_stored_quota_is_rejected_item_by_item_and_said_again_the_same(world):
    sandbox = world.sandbox(user_id="xeno", chat_ids=("x1",), quota={"stored_memories": 3})
    with world.inside(sandbox) as inside:
        results = inside.add_batch(
            [Draft(content=f"fact {n}", shared=n % 2 == 1) for n in range(5)] + [Draft(content="fact 0")],
            request_id="00000000-0000-0000-0000-000000000007",
        )
        again = inside.add_batch(
            [Draft(content=f"fact {n}", shared=n % 2 == 1) for n in range(5)] + [Draft(content="fact 0")],
            request_id="00000000-0000-0000-0000-000000000007",
        )
        expected = [Outcome.INSERTED] * 3 + [Outcome.REJECTED] * 2 + [Outcome.REINFORCED]
        assert expected == [result.outcome for result in results] == [result.outcome for result in again]
        assert ["quota"] * 2 == [r.rejection for r in results if r.outcome is Outcome.REJECTED]
        assert 3 == inside.whoami().usage.stored_memories
        inside.delete(results[0].memory.id)
        assert Outcome.REJECTED is inside.add("one more").outcome  # it can still be restored
        inside.delete(results[1].memory.id, purge=True)
        assert Outcome.INSERTED is inside.add("one more").outcome


def test_bytes_are_counted_too(world):
    sandbox = world.sandbox(user_id="yara", chat_ids=(), quota={"stored_bytes": 10})
    with world.inside(sandbox) as inside:
        assert [Outcome.INSERTED, Outcome.REJECTED, Outcome.INSERTED] == [
            inside.add(content).outcome for content in ("12345", "123456", "éé1")
        ]
        assert 10 == inside.whoami().usage.stored_bytes


def test_labels_and_metadata_count_and_so_does_what_is_added_to_a_memory(world):
    sandbox = world.sandbox(user_id="yve", chat_ids=(), quota={"stored_bytes": 20})
    with world.inside(sandbox) as inside:
        assert Outcome.INSERTED is inside.add("12345", tags=["67"], metadata={"8": "90"}).outcome
        assert 10 == inside.whoami().usage.stored_bytes
        assert Outcome.REINFORCED is inside.add("12345", tags=["abcde"]).outcome
        assert 15 == inside.whoami().usage.stored_bytes
        assert Outcome.REJECTED is inside.add("12345", tags=["fghijk"]).outcome
        assert Outcome.REJECTED is inside.add("another").outcome
        assert Outcome.REINFORCED is inside.add("12345").outcome
        assert 15 == inside.whoami().usage.stored_bytes


def test_what_a_correction_replaces_is_not_counted_twice(world):
    sandbox = world.sandbox(user_id="yan", chat_ids=(), quota={"stored_bytes": 24})
    with world.inside(sandbox) as inside:
        known = inside.add("1234567890").memory
        assert Outcome.SUPERSEDED is inside.correct(known.id, "123456789012").outcome
        assert 22 == inside.whoami().usage.stored_bytes


def test_a_long_message_is_as_many_writes_as_it_has_16_kib_also_once_it_is_erased(world):
    sandbox = world.sandbox("append", "delete", user_id="lon", chat_ids=(), quota={"writes_per_day": 20})
    with world.inside(sandbox) as inside:
        inside.append("t", [MessageDraft(content="hello")])
        inside.append("t", [MessageDraft(content="x " * 100_000)])
        assert 1 + 13 == inside.whoami().usage.writes_today
        inside.delete_thread("t")
        with pytest.raises(LimitExceeded, match="writes a day"):
            inside.append("t", [MessageDraft(content="x " * 100_000)])
        assert 1 + 13 + 1 == inside.whoami().usage.writes_today


def test_grants_and_what_is_stored_of_them_outlive_a_kill(folder):
    daemon = Daemon(folder, config=NO_MODEL)
    daemon.start()
    with daemon.client() as host:
        sandbox = host.open_sandbox(spec(user_id="alice", quota={"stored_memories": 2, "writes_per_day": 3}))
        token = host.issue_token(sandbox.grant.id, via=sandbox.grant.id).token
        closed = host.open_sandbox(spec(user_id="alice"))
        host.revoke_grant(closed.grant.id)
    inode = os.stat(sandbox.directory).st_ino  # a mount holds on to the directory, whatever its name leads to
    with MemoryClient(socket_of(sandbox), user_id="", chat_id="", agent_id="") as inside:
        inside.add("one")
        inside.add("two")
    daemon.kill()
    daemon.start()
    try:
        assert inode == os.stat(sandbox.directory).st_ino
        assert not os.path.exists(closed.directory)
        with MemoryClient(
            socket_of(sandbox), user_id="", chat_id="", agent_id="", credentials=Credentials(token=token)
        ) as inside:
            usage = inside.whoami().usage
            assert (2, 2, 6) == (usage.writes_today, usage.stored_memories, usage.stored_bytes)
            assert Outcome.REJECTED is inside.add("three").outcome
            with pytest.raises(LimitExceeded, match="writes a day"):
                inside.add("four")
            assert ["two", "one"] == [memory.content for memory in inside.pages()]
    finally:
        daemon.stop()


def test_the_socket_of_a_sandbox_is_opened_by_its_host_alone(folder):
    daemon = Daemon(folder, config=NO_MODEL + '[sandbox]\nhost_id = "left"\n')
    daemon.start()
    try:
        with daemon.client() as host:
            sandbox = host.open_sandbox(spec(user_id="alice"))
        for host_id, is_open in (("right", False), ("left", True)):
            daemon.stop()
            (folder / "memoryd.toml").write_text(NO_MODEL + f'[sandbox]\nhost_id = "{host_id}"\n')
            daemon.start()
            with daemon.client() as host:
                (listed,) = host.grants().grants
            assert (sandbox.directory if is_open else "") == listed.directory
            served = [json.loads(line) for line in daemon.log.read_text().splitlines() if '"serving"' in line][-1]
            assert (int(is_open), int(not is_open)) == (served["sandboxes"], served["elsewhere"])
            assert os.path.isdir(sandbox.directory)  # a mount holds on to it
    finally:
        daemon.stop()


def test_a_grants_memories_are_listed_and_removed_together(world):
    sandbox = world.sandbox(user_id="zoe", chat_ids=("z1",))
    other = world.sandbox(user_id="zoe", chat_ids=("z1",))
    with world.inside(sandbox) as inside, world.inside(other) as beside, world.admin("zoe", "z1") as host:
        good = host.add("said by the host").memory
        theirs = beside.add("size 40", key="shoes").memory
        bad = [inside.add(f"poison {n}", shared=n % 2 == 0).memory for n in range(5)]
        bad.append(inside.add("size 99", key="shoes").memory)  # replaces what another sandbox said
        expected = [memory.id for memory in reversed(bad)]
        assert expected[:4] == [m.id for m in host.grant_memories(sandbox.grant.id, page_size=4).memories]
        token = host.grant_memories(sandbox.grant.id, page_size=4).next_page_token
        rest = host.grant_memories(sandbox.grant.id, page_size=4, page_token=token)
        assert (expected[4:], "") == ([m.id for m in rest.memories], rest.next_page_token)

        dry = host.delete_grant_memories(sandbox.grant.id, dry_run=True)
        assert (6, (theirs.id,), None, True) == (
            dry.deleted_count, dry.superseded_ids, dry.purge_time, dry.dry_run
        )  # fmt: skip
        assert 6 == len(host.grant_memories(sandbox.grant.id).memories)
        gone = host.delete_grant_memories(sandbox.grant.id)
        assert 6 == gone.deleted_count
        assert gone.purge_time is not None
        assert [good.id] == [memory.id for memory in host.pages()]
        assert theirs.id == host.restore(gone.superseded_ids[0]).id
        host.restore(bad[0].id)
        assert 6 == host.delete_grant_memories(sandbox.grant.id, purge=True).deleted_count
        assert 0 == host.delete_grant_memories(sandbox.grant.id, purge=True).deleted_count
        everything = Filter(include_superseded=True, include_expired=True)
        assert {good.id, theirs.id} == {memory.id for memory in host.pages(filter=everything)}
        with pytest.raises(GrantNotFound):
            host.delete_grant_memories("a" * 26)


def test_a_socket_is_open_to_all_in_a_directory_that_only_a_mount_leads_to(world):
    sandbox = world.sandbox()
    modes = [stat.S_IMODE(os.lstat(path).st_mode) for path in (
        os.path.dirname(sandbox.directory), sandbox.directory, f"{sandbox.directory}/memory.sock"
    )]  # fmt: skip
    assert [0o700, 0o755, 0o666] == modes
    assert ["memory.sock"] == os.listdir(sandbox.directory)


def test_closing_cuts_the_calls_that_are_under_way(world):
    sandbox = world.sandbox()
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(f"{sandbox.directory}/memory.sock")
        raw.settimeout(10)
        raw.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
        assert raw.recv(9)
        with world.admin() as host:
            host.revoke_grant(sandbox.grant.id)
        while raw.recv(4096):
            pass  # what was sent before the end
    assert not os.path.exists(sandbox.directory)
    with world.inside(sandbox) as inside, pytest.raises(Unavailable, match="was closed or has expired"):
        inside.whoami()


@pytest.mark.parametrize("door", ["sandbox", "shared"])
def test_nothing_is_stored_through_a_grant_once_it_is_revoked(world, door):
    sandbox = world.sandbox(user_id=f"rev{door}", chat_ids=(), quota={"calls_per_second": 0})
    with world.admin() as host:
        token = host.issue_token(sandbox.grant.id).token
    done = []

    def offer(n: int) -> None:
        where = socket_of(sandbox) if door == "sandbox" else world.shared
        with world.client(where, token) as caller:
            try:
                caller.add_batch([Draft(content=f"batch {n} item {k}") for k in range(100)])
            except MemorydError as error:
                done.append(error.reason)
            else:
                done.append("OK")

    threads = [threading.Thread(target=offer, args=(n,)) for n in range(30)]
    for thread in threads:
        thread.start()
    time.sleep(0.15)
    with world.admin() as host:
        host.revoke_grant(sandbox.grant.id)
        stored = host.delete_grant_memories(sandbox.grant.id, purge=True).deleted_count
        for thread in threads:
            thread.join()
        assert () == host.grant_memories(sandbox.grant.id).memories
        assert 0 == stored % 100
        assert 30 == len(done)
        assert len([end for end in done if end == "OK"]) * 100 <= stored


def test_an_expired_grant_serves_nobody_and_its_socket_goes(world):
    end = datetime.now(UTC) + timedelta(seconds=4)
    sandbox = world.sandbox(expire_time=end)
    with world.inside(sandbox) as inside:
        assert sandbox.grant.id == inside.whoami().grant_id
        time.sleep(max(0.0, (end - datetime.now(UTC)).total_seconds()) + 0.01)
        with pytest.raises((Unauthenticated, Unavailable)):
            inside.whoami()
        until(lambda: not os.path.exists(sandbox.directory))
    assert not os.path.exists(sandbox.directory)
    with world.admin() as host, pytest.raises(Exception, match="expired"):
        host.issue_token(sandbox.grant.id)


def test_a_listener_without_descriptors_for_it_is_refused_and_leaves_nothing(folder):
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1500, 1500)); {_SERVE}"
    daemon = Daemon(folder, config=NO_MODEL)
    command = [sys.executable, "-c", limited, *daemon.command("serve")[3:]]
    with daemon.log.open("ab") as log:
        daemon.process = subprocess.Popen(command, stdout=log, stderr=log)
    until(daemon.socket.exists)
    try:
        with daemon.client() as host:
            wide = spec(user_id="alice", quota={"connections": 200})
            made = host.open_sandbox(wide)
            with pytest.raises(LimitExceeded, match="file descriptors") as caught:
                host.open_sandbox(wide)
            assert "descriptors" == caught.value.limit
            assert [made.grant.id] == [status.grant.id for status in host.grants(include_ended=True).grants]
            host.revoke_grant(made.grant.id)
            host.open_sandbox(wide)
    finally:
        daemon.stop()


_SERVE = "import sys; from memoryd.__main__ import main; sys.exit(main())"


def test_a_directory_that_others_may_enter_is_refused(folder):
    for name, mode in (("open", 0o755), ("writable", 0o770)):
        (folder / name).mkdir()
        (folder / name).chmod(mode)
        with pytest.raises(SocketRefused, match="this user alone"):
            Listeners(folder / name, lambda *_: _Server(), descriptor_limit=10_000).take()
    (folder / "real").mkdir(mode=0o700)
    (folder / "link").symlink_to(folder / "real")
    with pytest.raises(SocketRefused):
        Listeners(folder / "link", lambda *_: _Server(), descriptor_limit=10_000).take()
    with pytest.raises(SocketRefused, match="too long"):
        Listeners(folder / ("x" * 90), lambda *_: _Server(), descriptor_limit=10_000).take()


def test_one_daemon_a_directory(folder):
    first = Listeners(folder / "s", lambda *_: _Server(), descriptor_limit=10_000)
    first.take()
    with pytest.raises(SocketRefused, match="another memoryd"):
        Listeners(folder / "s", lambda *_: _Server(), descriptor_limit=10_000).take()
    first.let_go()
    Listeners(folder / "s", lambda *_: _Server(), descriptor_limit=10_000).take()


async def test_what_lies_in_the_place_of_a_socket_is_replaced_and_no_link_is_followed(folder):
    def make(_, address):
        path = address.removeprefix("unix:")
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path)
        return _Server()

    listeners = Listeners(folder / "s", make, descriptor_limit=10_000)
    listeners.take()
    victim = folder / "victim"
    victim.write_text("mine")
    victim.chmod(0o600)
    held = grant("a" * 26)
    (folder / "s" / held.id).mkdir(mode=0o700)
    (folder / "s" / held.id / "memory.sock").symlink_to(victim)
    await listeners.open(held)
    assert stat.S_ISSOCK(os.lstat(folder / "s" / held.id / "memory.sock").st_mode)
    assert ("mine", 0o600) == (victim.read_text(), stat.S_IMODE(victim.stat().st_mode))
    elsewhere = grant("b" * 26)
    (folder / "s" / elsewhere.id).symlink_to(folder)
    with pytest.raises(Exception, match="no directory of this user"):
        await listeners.open(elsewhere)
    (folder / "s" / "notes").mkdir()
    (folder / "s" / ("c" * 26)).mkdir()
    listeners.forget_others({held.id})
    assert ["a" * 26, "b" * 26, "notes"] == sorted(n for n in os.listdir(folder / "s") if not n.startswith("."))
    await listeners.close(held.id, forget=True)
    listeners.let_go()


async def test_the_places_of_a_grant_count_in_all_of_its_scopes_together(monkeypatch):
    async with ports_over(ram_store()) as ports:
        commit = ports.store.commits.write

        async def slowly(*changes):
            await asyncio.sleep(0.02)
            return await commit(*changes)

        monkeypatch.setattr(ports.store.commits, "write", slowly)
        asks = Caller(user_id="alice", chat_id="team", grant_id="g1", quota=Quota(stored_memories=1))
        drafts = [Draft(content=f"statement {n}", shared=bool(n % 2)) for n in range(8)]
        told = await asyncio.gather(*(add(draft, asks, ports, now=NOW) for draft in drafts))
        assert [Outcome.INSERTED, *[Outcome.REJECTED] * 7] == sorted((one.outcome for one in told), key=str)
        assert 1 == (await ports.store.grants.usage("g1", NOW.date())).stored_memories
