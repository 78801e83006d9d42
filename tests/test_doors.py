"""TLS, token files, and the commands that give and take back."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from memory_client import (
    Caveats,
    Credentials,
    Draft,
    LimitExceeded,
    MemoryClient,
    Permission,
    Unauthenticated,
    Unavailable,
    attenuate,
)

from memoryd.identity.listeners import Listeners
from memoryd.v1 import memory_service_pb2 as pb
from memoryd.v1 import memory_service_pb2_grpc
from tests.doors import a_world, socket_of, spec
from tests.forking import run_command
from tests.grants_helpers import NO_MODEL, _Server, grant
from tests.support import PATIENCE_S, Daemon, running


def test_tcp_is_tls_or_nothing(world):
    plain = world.tcp.replace("127.0.0.1", "localhost")
    with socket.create_connection(tuple(world.tcp.rsplit(":", 1))) as raw:
        raw.settimeout(10)
        raw.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
        assert not raw.recv(100).startswith(b"\x00\x00")  # no HTTP/2 settings in the clear
    with world.client(plain, world.token()) as caller:
        assert "alice" == caller.whoami().user_id
    stranger = MemoryClient(world.tcp, user_id="", credentials=Credentials(token=world.token()), wait_for_ready=False)
    with stranger, pytest.raises(Unavailable, match="MEMORY_TLS_CA_FILE"):  # the system does not know who signed it
        stranger.whoami()


async def test_a_hundred_callers_share_a_connection_of_the_host(daemon):
    refused = []
    async with grpc.aio.insecure_channel(f"unix:{daemon.socket}", options=[("grpc.enable_retries", 0)]) as channel:
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)

        async def caller(n: int) -> None:
            for turn in range(12):
                try:
                    await stub.SearchMemories(pb.SearchMemoriesRequest(query=f"tea {n} {turn}", user_id="hundred"))
                except grpc.RpcError as error:
                    refused.append(error.details())

        await asyncio.gather(*(caller(n) for n in range(100)))
    assert [] == refused


def test_a_key_of_another_certificate_is_refused_at_the_start_and_not_taken_up_later(folder):
    import trustme

    other = trustme.CA().issue_cert("127.0.0.1")
    with a_world(folder) as world:
        cert = (folder / "cert.pem").read_bytes()
        other.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
        with world.client(world.tcp, world.token()) as caller:
            assert "alice" == caller.whoami().user_id  # the old pair serves on
        assert "certificate_not_renewed" in world.daemon.log.read_text()
        refused = run_command(world.daemon.command("check"), capture_output=True, text=True, check=False)
        assert (78, True) == (refused.returncode, "do not go together" in refused.stderr)
        (folder / "cert.pem").write_bytes(cert)


def test_a_client_without_a_certificate_is_not_let_in_where_one_is_asked_for(folder):
    import trustme

    with a_world(folder, client_ca=True) as world:
        token = world.token()
        with world.client(world.tcp, token) as bare, pytest.raises(Exception, match="MEMORY_TLS_CERTIFICATE_FILE"):
            bare.whoami()
        authority = trustme.CA()
        for name, pem in (("other", authority.issue_cert("me")),):
            pem.private_key_and_cert_chain_pem.write_to_path(str(folder / f"{name}.pem"))
        other = str(folder / "other.pem")
        shown = Credentials(token=token, ca_file=world.ca_file, certificate_file=other, key_file=other)
        with (
            MemoryClient(world.tcp, credentials=shown, wait_for_ready=False) as stranger,
            pytest.raises(Exception, match="reach|broke"),
        ):
            stranger.whoami()
        own = Credentials(
            token=token,
            ca_file=world.ca_file,
            certificate_file=str(folder / "cert.pem"),
            key_file=str(folder / "key.pem"),
        )
        with MemoryClient(world.tcp, user_id="", chat_id="", agent_id="", credentials=own) as known:
            assert "alice" == known.whoami().user_id


def test_a_renewed_certificate_is_taken_up_without_a_restart(folder):
    import trustme

    with a_world(folder) as world:
        authority = trustme.CA()
        renewed = authority.issue_cert("127.0.0.1")
        renewed.private_key_pem.write_to_path(str(folder / "key.pem"))
        renewed.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
        authority.cert_pem.write_to_path(str(folder / "ca2.pem"))
        shown = Credentials(token=world.token(), ca_file=str(folder / "ca2.pem"))
        with MemoryClient(world.tcp, user_id="", chat_id="", agent_id="", credentials=shown) as caller:
            assert "alice" == caller.whoami().user_id


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ('[tcp]\nlisten = "127.0.0.1:1"\n', "needs TLS"),
        ('[tcp]\nlisten = "nowhere"\ncertificate_file = "/no/c"\nkey_file = "/no/k"\n', "write host:port"),
        ('[tcp]\nlisten = "127.0.0.1:1"\ncertificate_file = "/no/c"\nkey_file = "/no/k"\n', "/no/c cannot be read"),
        ('[sandbox]\ndirectory = "/dev/null/x"\n', "sandbox.directory"),
        ('[shared]\nsocket = "/dev/null/x/s"\n', "shared.socket"),
    ],
)
def test_a_door_that_cannot_be_opened_is_refused_in_one_line(folder, config, says):
    daemon = Daemon(folder, config=NO_MODEL + config)
    ended = run_command(daemon.command("serve"), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert 78 == ended.returncode
    lines = [line for line in ended.stderr.splitlines() if line.startswith("memoryd:")]
    assert 1 == len(lines)
    assert says in lines[0]


def test_the_token_file_is_read_again_when_it_changes(world, folder):
    file = folder / "t"
    file.write_text(world.token(user_id="one"))
    shown = Credentials(token_file=str(file))
    with MemoryClient(world.shared, user_id="", chat_id="", agent_id="", credentials=shown) as caller:
        assert "one" == caller.whoami().user_id
        (folder / "new").write_text(world.token(user_id="two") + "\n")
        (folder / "new").replace(file)
        assert "two" == caller.whoami().user_id
        file.unlink()
        with pytest.raises(Unauthenticated, match="cannot be read"):
            caller.whoami()


def test_the_commands_give_take_and_clean_up(world, folder):
    def memoryd(*words: str, **more):
        command = world.daemon.command(*words)
        return run_command(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S, **more)

    opened = memoryd(
        "sandbox", "open", "--user", "eve", "--chat", "e1", "--allow", "search,add", "--ttl", "8h", "--json"
    )
    given = json.loads(opened.stdout)
    grant_id = given["grant"]["id"]
    assert (["add", "search"], ["e1"]) == (given["grant"]["permissions"], given["grant"]["chat_ids"])
    assert {"MEMORY_ENDPOINT", "MEMORY_USER_ID", "MEMORY_CHAT_ID"} == set(given["env"])
    assert {"docker", "podman", "bubblewrap", "systemd-nspawn"} == set(given["examples"])
    for example in given["examples"].values():
        assert given["directory"] in example
    text = memoryd("sandbox", "open", "--user", "eve", "--allow", "read-only", "--label", "runner").stdout
    assert "mount " in text
    assert "bwrap " in text
    assert "runner" in memoryd("sandbox", "list").stdout
    with MemoryClient(f"unix://{given['directory']}/memory.sock", user_id="", chat_id="", agent_id="") as inside:
        inside.add("planted by eve")
    assert "planted by eve" in memoryd("grant", "memories", grant_id[:10]).stdout
    assert "would delete 1 memories" in memoryd("grant", "forget", grant_id, "--dry-run").stdout
    assert "closed" in memoryd("sandbox", "close", grant_id[:10]).stdout
    assert "deleted 1 memories" in memoryd("grant", "forget", grant_id).stdout
    assert grant_id not in memoryd("sandbox", "list", "--json").stdout
    assert grant_id in memoryd("grant", "list", "--all", "--json").stdout

    file = folder / "t"
    issued = memoryd("token", "issue", "--user", "eve", "--allow", "full", "--ttl", "1h", "--out", str(file))
    assert (0, "") == (issued.returncode, issued.stdout)
    assert 0o400 == stat.S_IMODE(file.stat().st_mode)
    narrowed = memoryd("token", "attenuate", "--token-file", str(file), "--allow", "search", "--ttl", "5m").stdout
    inspected = memoryd("token", "inspect", "--token-file", "-", "--json", input=narrowed)
    found = json.loads(inspected.stdout)
    assert (True, ["search"], 2) == (found["valid"], found["grant"]["permissions"], len(found["caveats"]))
    assert "revoked" in memoryd("token", "revoke", "--token-file", str(file)).stdout
    assert "counts   no: grant" in memoryd("token", "inspect", "--token-file", str(file)).stdout
    assert "older" not in memoryd("token", "rotate").stdout.partition("verify")[0]
    assert "planted by eve" in memoryd("grant", "memories", grant_id, "--deleted").stdout
    before = memoryd("grant", "list", "--json").stdout
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to(file)
    for place in ("/no/such/t", str(folder), str(folder / "pipe"), str(folder / "link"), "/dev/null"):
        assert 2 == memoryd("token", "issue", "--user", "eve", "--allow", "full", "--out", place).returncode, place
    assert (folder / "pipe").is_fifo()
    assert (folder / "link").is_symlink()
    assert before == memoryd("grant", "list", "--json").stdout  # no token that nobody has
    several = memoryd("sandbox", "close", "aaaaaaaa", grant_id)
    assert (1, True, True) == (several.returncode, "closed" in several.stdout, "no grant" in several.stderr)
    for words, code in (
        (("token", "attenuate", "--token-file", str(file), "--via", "foo"), 2),
        (("token", "attenuate", "--token-file", str(file), "--ttl", "2020-01-01"), 2),
        (("sandbox", "open", "--user", "x", "--allow", "search", "--mount", "relative"), 2),
        (("sandbox", "close", "aaaaaaaa"), 1),
        (("sandbox", "open", "--allow", "search"), 2),
        (("sandbox", "open", "--user", "x", "--allow", "everything"), 2),
        (("token", "attenuate", "--token-file", str(file)), 2),
        (("token", "issue"), 2),
        (("grant",), 2),
    ):
        refused = memoryd(*words)
        assert code == refused.returncode, (words, refused.stderr)
        assert refused.stderr


def test_whoami_tells_a_sandbox_what_it_is(world):
    sandbox = world.sandbox("search", chat_ids=("w1",), quota={"writes_per_day": 5})
    env = {**os.environ, "MEMORY_ENDPOINT": socket_of(sandbox), "MEMORY_USER_ID": "alice", "MEMORY_CHAT_ID": "w1"}
    command = [sys.executable, "-m", "memory_cli.main", "whoami"]
    text = run_command(command, capture_output=True, text=True, check=True, env=env).stdout
    for line in ("door:      sandbox", "user_id:   alice", "chat_id:   w1", "may:       search"):
        assert line in text
    found = json.loads(run_command([*command, "--json"], capture_output=True, text=True, check=True, env=env).stdout)
    assert (sandbox.grant.id, ["search"], 5) == (
        found["grant_id"],
        found["permissions"],
        found["quota"]["writes_per_day"],
    )
    wrong = run_command(command, capture_output=True, text=True, check=False, env={**env, "MEMORY_USER_ID": "bob"})
    assert (4, 1) == (wrong.returncode, len(wrong.stderr.splitlines()))


def test_a_sandbox_cannot_leave_its_user_out(world):
    env = {**os.environ, "MEMORY_ENDPOINT": socket_of(world.sandbox()), "MEMORY_USER_ID": "alice"}
    words = [f"{os.path.dirname(sys.executable)}/memory", "list", "--no-user", "--chat", "c1"]
    done = run_command(words, env=env, capture_output=True, text=True, check=False)
    assert (2, "") == (done.returncode, done.stdout)
    assert "--no-user is for the host's admin socket" in done.stderr


def test_attenuating_in_a_sandbox_needs_nothing_but_the_client(world):
    narrow = attenuate(world.token(), Caveats(permissions=frozenset({Permission.SEARCH}), via="shared"))
    with world.client(world.shared, narrow) as caller:
        assert {Permission.SEARCH} == caller.whoami().permissions


def test_a_sandbox_that_floods_is_held_to_its_rate_and_others_are_not(world):
    flooder, victim = world.sandbox(user_id="f", quota={"calls_per_second": 5}), world.sandbox(user_id="v")
    refused = []

    def flood():
        with world.inside(flooder) as inside:
            for _ in range(60):
                try:
                    inside.stats()
                except LimitExceeded as error:
                    refused.append(error.limit)

    threads = [threading.Thread(target=flood) for _ in range(3)]
    for thread in threads:
        thread.start()
    with world.inside(victim) as inside:
        for _ in range(50):
            inside.stats()
    for thread in threads:
        thread.join()
    assert len(refused) > 120
    assert {"calls_per_second"} == set(refused)


def test_sandboxes_are_served_again_after_a_clean_stop(folder):
    with running(folder, config=NO_MODEL) as daemon, daemon.client() as host:
        sandbox = host.open_sandbox(spec(user_id="alice"))
        assert 0 == daemon.stop()
        assert os.path.isdir(sandbox.directory)
        daemon.start()
        with MemoryClient(socket_of(sandbox), user_id="", chat_id="", agent_id="") as inside:
            assert "alice" == inside.whoami().user_id


def test_gc_removes_ended_grants_of_which_nothing_is_stored(folder):
    config = NO_MODEL + "[sandbox]\nended_grace_days = 0.0\n"
    with running(folder, config=config) as daemon, daemon.client() as host:
        empty, used, live = (host.open_sandbox(spec(user_id="alice")) for _ in range(3))
        with MemoryClient(socket_of(used), user_id="", chat_id="", agent_id="") as inside:
            inside.add("still here")
        for box in (empty, used):
            host.revoke_grant(box.grant.id)
        assert 1 == host.run_gc(dry_run=True).grant_count
        assert 1 == host.run_gc().grant_count
        left = {status.grant.id for status in host.grants(include_ended=True).grants}
        assert {used.grant.id, live.grant.id} == left
        host.delete_grant_memories(used.grant.id, purge=True)
        assert 1 == host.run_gc().grant_count


async def test_a_socket_that_cannot_be_opened_at_a_start_keeps_its_directory_and_is_opened_later(folder):
    made = []

    class Failing(_Server):
        async def start(self):
            if not made:
                made.append(1)
                raise OSError(24, "Too many open files")

    def make(_, address):
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(address.removeprefix("unix:"))
        return Failing()

    listeners = Listeners(folder / "s", make, descriptor_limit=10_000)
    listeners.take()
    held = grant("a" * 26)
    (folder / "s" / held.id).mkdir(mode=0o755)
    inode = (folder / "s" / held.id).stat().st_ino
    with pytest.raises(Exception, match="Too many open files"):
        await listeners.open(held)
    assert inode == (folder / "s" / held.id).stat().st_ino
    os.unlink(folder / "s" / ".new" / held.id)
    await listeners.open(held)
    assert listeners.is_open(held.id)
    listeners.let_go()


def test_tokens_issued_at_once_all_count(world):
    with ThreadPoolExecutor(8) as pool:
        issued = list(pool.map(lambda _: world.token(), range(8)))
        with world.admin() as host:
            list(pool.map(lambda _: host.rotate_token_keys(), range(4)))
            assert [True] * 8 == [host.inspect_token(token).valid for token in issued]


def test_an_empty_token_file_is_no_token_and_no_word_of_the_host(world, folder):
    file = folder / "t"
    file.write_text("")
    shown = Credentials(token_file=str(file))
    with MemoryClient(world.daemon.endpoint, user_id="alice", credentials=shown) as caller:
        with pytest.raises(Unauthenticated, match="is empty"):
            caller.whoami()


def test_a_hosts_command_leaves_the_token_of_the_environment_alone(world, folder):
    file = folder / "t"
    file.write_text(world.token())
    env = {**os.environ, "MEMORY_TOKEN_FILE": str(file)}
    done = run_command(world.daemon.command("token", "inspect"), capture_output=True, text=True, check=False, env=env)
    assert (0, True) == (done.returncode, "counts   yes" in done.stdout)


def test_many_memories_of_a_grant_are_forgotten_together(world):
    sandbox = world.sandbox(user_id="many", chat_ids=(), quota={"calls_per_second": 0})
    with world.inside(sandbox) as inside:
        for n in range(30):
            inside.add_batch([Draft(content=f"poison {n} {k}") for k in range(100)])
    with world.daemon.client("many", timeout_s=300) as host:
        assert 3000 == host.delete_grant_memories(sandbox.grant.id).deleted_count
        assert () == host.page().memories
