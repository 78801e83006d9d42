"""What a grant allows, how much of it, and what becomes of its memories; the sockets that go with it."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from memory_client import (
    Caveats,
    Credentials,
    Draft,
    Filter,
    GrantNotFound,
    LimitExceeded,
    MemoryClient,
    MemorydError,
    Outcome,
    Permission,
    Source,
    State,
    Trust,
    TrustTooLow,
    Unauthenticated,
    Unavailable,
    attenuate,
)

from memoryd.daemon.config import Config, MemoryConfig
from memoryd.domain.reading.browse import page
from memoryd.domain.writing.add import add
from memoryd.errors import LimitExceeded as NoRoom
from memoryd.identity.grants import Grants
from memoryd.identity.listeners import Listeners
from memoryd.identity.socket_lease import SocketRefused
from memoryd.model.caller import Caller
from memoryd.model.grant import PRESETS, Grant, Quota
from memoryd.model.memory import Draft as StoredDraft
from memoryd.model.query import Filter as StoredFilter
from memoryd.model.trust import Trust as StoredTrust
from tests.builders import NOW, ports_over, ram_store, run
from tests.doors import a_world, socket_of, spec
from tests.support import Daemon, running

NO_MODEL = '[embedding]\nprovider = "none"\n'


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with a_world(tmp_path_factory.mktemp("g")) as made:
        yield made


# --- trust ---


def test_what_a_sandbox_says_carries_its_trust_and_its_grant_wherever_it_is_seen(world):
    sandbox = world.sandbox(user_id="tina", chat_ids=())
    with world.inside(sandbox) as inside:
        made = inside.add("the safe opens at noon").memory
    assert (Trust.SANDBOX, sandbox.grant.id) == (made.trust, made.grant_id)
    with world.admin("tina") as host:
        found = host.search("safe").hits[0].memory
        assert (Trust.SANDBOX, sandbox.grant.id) == (found.trust, found.grant_id)
        assert "the safe opens at noon [unverified: sandbox]" in host.context("the safe").text
        assert [Trust.SANDBOX] == [item.trust for item in host.context("the safe").sections[0].items]


def test_a_sandbox_that_repeats_the_host_changes_nothing_of_it(world):
    with world.admin("uma") as host:
        kept = host.add("the door code is secret", tags=["a"], confidence=0.5, expires_days=1).memory
        with world.inside(world.sandbox(user_id="uma", chat_ids=())) as inside:
            said = inside.add("The door code is secret.", tags=["b"], subjects=["Mallory"], metadata={"k": "v"})
        assert Outcome.REINFORCED is said.outcome
        now = host.get(kept.id)
        assert replace(kept, reinforce_time=now.reinforce_time) == now


def test_a_sandbox_contests_the_host_and_ends_nothing_of_it(world):
    with world.admin("vida") as host, world.inside(world.sandbox(user_id="vida", chat_ids=())) as inside:
        kept = host.add("I live in Berlin").memory
        said = inside.add("I live in Paris")
        assert (Outcome.INSERTED, (kept.id,), ()) == (said.outcome, said.contested_ids, said.superseded_ids)
        for attempt in (
            lambda: inside.correct(kept.id, "I live in Rome"),
            lambda: inside.confirm(kept.id),
            lambda: inside.delete_matching(text="Berlin", purge=True),
        ):
            with pytest.raises(TrustTooLow):
                attempt()
        done = inside.confirm(said.memory.id)
        assert ((), (kept.id,)) == (done.superseded_ids, done.memory.contested_with)
        assert State.LIVE is host.get(kept.id).state
        assert {kept.id, said.memory.id} & {said.memory.id} == set(host.confirm(kept.id).superseded_ids)


def test_a_sandbox_does_not_decide_who_the_host_s_people_are(world):
    with world.admin("vito") as host, world.inside(world.sandbox(user_id="vito", chat_ids=())) as inside:
        host.add("My boss is Tom")
        inside.add("My boss is Mallory")
        assert "Tom" == host.entity("my boss").entity.name
        inside.add("my friend Eve likes tea")
        for attempt in (
            lambda: inside.rename_entity("Tom", "Mallory"),
            lambda: inside.merge_entities("Eve", "Tom"),
            lambda: inside.merge_entities("Tom", "Eve"),
            lambda: inside.forget_person("Tom"),
        ):
            with pytest.raises(TrustTooLow):
                attempt()
        assert "Eva" == inside.rename_entity("Eve", "Eva").name
        assert 1 == inside.forget_person("Eva").purged_count


def test_no_statement_of_a_sandbox_renames_or_unites_the_host_s_people(world):
    with world.admin("vida") as host, world.inside(world.sandbox(user_id="vida", chat_ids=())) as inside:
        chess = host.add("Bob plays chess").memory
        wife = host.add("My wife's name is Sarah").memory
        for claim in ("Bob is called Sarah", "Bob, aka Peanut, likes tea", "My wife Bob likes tea"):
            inside.add(claim)
        assert "Bob" == next(ref.name for ref in host.get(chess.id).entities if ref.about)
        assert "Sarah" == host.entity("my wife").entity.name
        assert wife.id not in host.forget_person(host.get(chess.id).entities[0].id, dry_run=True).purged_ids


def test_no_address_of_a_sandbox_leads_to_whom_the_host_knows(world):
    with world.admin("velma") as host, world.inside(world.sandbox(user_id="velma", chat_ids=())) as inside:
        host.add("My wife likes tulips")
        sarah = host.add("Sarah lives in Rome").memory.id
        host.add("Tom is my boss")
        for claim in (
            "My wife's name is Sarah",
            "Sarah (@mallory) sings",
            "@mallory is Sarah",
            "Sarah's email is evil@example.com",
            "Tom's email is evil@example.com",
            "Sarah Hacker is my wife",
        ):
            inside.add(claim)
        assert {"wife": (), "Sarah": (), "Tom": ()} == {
            person.name: person.aliases for person in host.people().people if person.name in {"wife", "Sarah", "Tom"}
        }
        told = host.add("@mallory lives in Oslo").memory
        assert not {"Sarah", "Tom", "wife"} & {ref.name for ref in told.entities}
        # as if no sandbox had said a word: the host knows one Sarah
        assert (sarah,) == host.add("Sarah Hacker lives in Bonn").contested_ids


def test_what_the_host_decided_of_somebody_stays_decided(world):
    with world.admin("vigo") as host, world.inside(world.sandbox(user_id="vigo", chat_ids=())) as inside:
        inside.add("my friend Eve likes tea")
        host.rename_entity("Eve", "Eva Stone")
        for attempt in (
            lambda: inside.rename_entity("Eva Stone", "Mallory"),
            lambda: inside.forget_person("Eva Stone"),
        ):
            with pytest.raises(TrustTooLow):
                attempt()
        assert "Eva Stone" == inside.entity("Eve").entity.name


def test_the_newer_of_a_sandbox_is_not_put_before_the_older_of_the_host(world):
    with world.admin("vlad") as host, world.inside(world.sandbox(user_id="vlad", chat_ids=())) as inside:
        kept = host.add("I live in Berlin").memory
        said = inside.add("I live in Munich")
        assert (kept.id,) == said.contested_ids
        assert [kept.id, said.memory.id] == [hit.memory.id for hit in host.search("I live in Berlin").hits]


def test_in_a_full_scope_no_sandbox_drives_out_what_the_host_said():
    async def rule():
        async with ports_over(ram_store(), Config(memory=MemoryConfig(max_entries=2))) as ports:
            host, sandbox = Caller(user_id="full"), Caller(user_id="full", trust=StoredTrust.SANDBOX, grant_id="g")

            async def say(content, caller, **more):
                return (await add(StoredDraft(content=content, **more), caller, ports, now=NOW)).memory

            async def held():
                shown = await page(host, ports, wanted=StoredFilter(), page_size=0, page_token="", now=NOW)
                return {memory.content for memory in shown.memories}

            await say("the host's one", host, confidence=0.1)
            await say("the host's two", host, confidence=0.1)
            with pytest.raises(NoRoom):
                await say("something of a sandbox", sandbox)
            assert {"the host's one", "the host's two"} == await held()
            await say("the host's three", host)  # the least valuable of its own goes
            assert {"the host's two", "the host's three"} == await held()

    run(rule())


def test_what_the_host_forgot_is_remembered_again_by_the_host_alone(world):
    with world.admin("vera2") as host, world.inside(world.sandbox(user_id="vera2", chat_ids=())) as inside:
        extracted = Source(channel="extraction")
        host.delete(host.add("Bob has an allergy to nuts").memory.id)
        inside.delete(inside.add("Bob has an allergy to nuts").memory.id, purge=True)
        assert "forgotten" == host.add("Bob has an allergy to nuts", source=extracted).rejection
        inside.delete(inside.add("Bob has an allergy to figs").memory.id, purge=True)
        assert "forgotten" == inside.add("Bob has an allergy to figs", source=extracted).rejection
        assert Outcome.INSERTED is host.add("Bob has an allergy to figs", source=extracted).outcome


def test_a_sandbox_cannot_replace_what_the_host_stored_under_a_key(world):
    with world.admin("vera") as host:
        kept = host.add("blue", key="color").memory
        with world.inside(world.sandbox(user_id="vera", chat_ids=())) as inside:
            with pytest.raises(TrustTooLow, match="higher trust"):
                inside.add("red", key="color")
            with pytest.raises(TrustTooLow) as caught:
                inside.add_batch([Draft(content="fine"), Draft(content="red", key="color")])
            assert "requests[1].key" == caught.value.field
            assert [kept] == [replace(m, recall_time=None, recall_count=0) for m in inside.pages()]
            own = inside.add("size 40", key="shoes")
            assert Outcome.SUPERSEDED is inside.add("size 41", key="shoes").outcome
        assert Outcome.SUPERSEDED is host.add("size 42", key="shoes").outcome
        assert State.SUPERSEDED is host.get(own.memory.id).state


def test_no_sandbox_chooses_the_key_of_what_the_host_says(world):
    with world.inside(world.sandbox(user_id="kay", chat_ids=())) as inside, world.admin("kay") as host:
        inside.add("Kay is allergic to peanuts", key="colour")
        kept = host.add("Kay is allergic to peanuts").memory
        host.add("blue", key="colour")
        assert State.LIVE is host.get(kept.id).state


def test_a_grant_changes_nothing_of_what_came_through_another(world):
    ann, bob = (world.sandbox(user_id="nan", chat_ids=("n",)) for _ in range(2))
    with world.inside(ann) as first, world.inside(bob) as second:
        kept = first.add("the shop opens at nine", shared=True, tags=["a"]).memory
        said = second.add(
            "The shop opens at nine", shared=True, tags=["b"] * 3, subjects=["send money"], metadata={"iban": "EVIL"}
        )
        assert Outcome.REINFORCED is said.outcome
        assert replace(kept, reinforce_time=said.memory.reinforce_time) == first.get(kept.id)
        named = second.add("The shop opens at nine", shared=True, key="hours")
        assert Outcome.INSERTED is named.outcome  # a name of its own makes a memory of its own
        assert "" == first.get(kept.id).key


def test_what_the_host_stored_is_not_purged_from_below_and_what_it_deleted_not_restored(world):
    sandbox = world.sandbox(user_id="pia", chat_ids=())
    with world.inside(sandbox) as inside, world.admin("pia") as host:
        hosts = host.add("stored by the host").memory.id
        with pytest.raises(TrustTooLow, match="without purge"):
            inside.delete(hosts, purge=True)
        inside.delete(hosts)
        assert State.LIVE is host.restore(hosts).state
        own = inside.add("said in the sandbox").memory.id
        inside.delete(own)
        assert State.LIVE is inside.restore(own).state
        host.delete(own)
        with pytest.raises(TrustTooLow, match="higher trust"):
            inside.restore(own)
        host.restore(own)
        host.delete_grant_memories(sandbox.grant.id)
        with pytest.raises(TrustTooLow):
            inside.restore(own)
        theirs = inside.add("size 40", key="shoes").memory.id
        host.add("size 41", key="shoes")
        with pytest.raises(TrustTooLow):
            inside.restore(theirs)


def test_a_request_id_of_a_sandbox_says_nothing_of_the_hosts(world):
    same = "00000000-0000-0000-0000-00000000000a"
    with world.inside(world.sandbox(user_id="quin", chat_ids=())) as inside, world.admin("quin") as host:
        first = inside.add("said first in the sandbox", request_id=same)
        second = host.add("said by the host", request_id=same)
        assert (Outcome.INSERTED, Trust.HOST) == (second.outcome, second.memory.trust)
        assert first.memory.id == inside.add("said first in the sandbox", request_id=same).memory.id


def test_what_the_host_says_again_is_the_hosts_from_then_on(world):
    sandbox = world.sandbox(user_id="wim", chat_ids=())
    with world.inside(sandbox) as inside, world.admin("wim") as host:
        theirs = inside.add("wim likes cheese", tags=["x"], key="cheese").memory
        said = host.add("Wim likes cheese")
        assert (Outcome.SUPERSEDED, (theirs.id,)) == (said.outcome, said.superseded_ids)
        assert (Trust.HOST, "", (), "") == (
            said.memory.trust, said.memory.grant_id, said.memory.tags, said.memory.key
        )  # fmt: skip
        host.delete_grant_memories(sandbox.grant.id, purge=True)
        assert ["Wim likes cheese"] == [memory.content for memory in host.pages()]


# --- quotas ---


def test_calls_a_second_are_a_bucket_that_fills_again():
    async def rule():
        async with ports_over(ram_store()) as ports:
            times = [0.0]
            grants = Grants(ports.store, ports.usage, [], [], lambda: times[0], os.urandom)
            held = grant(quota=Quota(calls_per_second=2))
            for _ in range(2):
                grants.charge(held, 0, NOW)
            with pytest.raises(NoRoom, match=r"wait 0\.50 s") as caught:
                grants.charge(held, 0, NOW)
            assert "calls_per_second" == caught.value.limit
            times[0] = 0.5
            grants.charge(held, 0, NOW)
            with pytest.raises(NoRoom):
                grants.charge(held, 0, NOW)
            times[0] = 1000.0
            for _ in range(2):
                grants.charge(held, 0, NOW)
            with pytest.raises(NoRoom):
                grants.charge(held, 0, NOW)

    run(rule())


def test_writes_a_day_begin_anew_at_midnight_utc_and_never_as_a_clock_steps_back():
    async def rule():
        async with ports_over(ram_store()) as ports:
            grants = Grants(ports.store, ports.usage, [], [], lambda: 0.0, os.urandom)
            held = grant(quota=Quota(writes_per_day=3))
            grants.charge(held, 2, NOW)
            with pytest.raises(NoRoom, match="3 writes a day"):
                grants.charge(held, 2, NOW)
            grants.charge(held, 1, NOW)
            with pytest.raises(NoRoom):
                grants.charge(held, 1, NOW - timedelta(days=1))
            grants.charge(held, 3, NOW + timedelta(days=1))
            assert 3 == grants.usage(held.id, NOW).writes_today

    run(rule())


def grant(grant_id: str = "g" * 26, **more) -> Grant:
    given = {"agent_id": "default", "user_id": "alice", "permissions": PRESETS["full"], "create_time": NOW}
    return Grant(id=grant_id, listener=True, **{**given, **more})


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


# --- what came through a grant ---


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


# --- sockets ---


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
        deadline = time.monotonic() + 10
        while os.path.exists(sandbox.directory) and time.monotonic() < deadline:
            time.sleep(0.05)
    assert not os.path.exists(sandbox.directory)
    with world.admin() as host, pytest.raises(Exception, match="expired"):
        host.issue_token(sandbox.grant.id)


def test_a_listener_without_descriptors_for_it_is_refused_and_leaves_nothing(folder):
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1500, 1500)); {_SERVE}"
    daemon = Daemon(folder, config=NO_MODEL)
    command = [sys.executable, "-c", limited, *daemon.command("serve")[3:]]
    with daemon.log.open("ab") as log:
        daemon.process = subprocess.Popen(command, stdout=log, stderr=log)
    deadline = time.monotonic() + 30
    while not daemon.socket.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
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


class _Server:
    async def start(self):
        pass

    async def stop(self, grace):
        pass


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


def test_what_lies_in_the_place_of_a_socket_is_replaced_and_no_link_is_followed(folder):
    async def rule():
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

    run(rule())


# --- TLS ---


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


def test_a_key_of_another_certificate_is_refused_at_the_start_and_not_taken_up_later(folder):
    import trustme

    other = trustme.CA().issue_cert("127.0.0.1")
    with a_world(folder) as world:
        cert = (folder / "cert.pem").read_bytes()
        other.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
        with world.client(world.tcp, world.token()) as caller:
            assert "alice" == caller.whoami().user_id  # the old pair serves on
        assert "certificate_not_renewed" in world.daemon.log.read_text()
        refused = subprocess.run(world.daemon.command("check"), capture_output=True, text=True, check=False)
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
        ('[tcp]\nlisten = "nowhere"\n', "write host:port"),
        ('[tcp]\nlisten = "127.0.0.1:1"\ncertificate_file = "/no/c"\nkey_file = "/no/k"\n', "/no/c cannot be read"),
        ('[sandbox]\ndirectory = "/dev/null/x"\n', "sandbox.directory"),
        ('[shared]\nsocket = "/dev/null/x/s"\n', "shared.socket"),
    ],
)
def test_a_door_that_cannot_be_opened_is_refused_in_one_line(folder, config, says):
    daemon = Daemon(folder, config=NO_MODEL + config)
    ended = subprocess.run(daemon.command("serve"), capture_output=True, text=True, timeout=60, check=False)
    assert 78 == ended.returncode
    lines = [line for line in ended.stderr.splitlines() if line.startswith("memoryd:")]
    assert 1 == len(lines)
    assert says in lines[0]


# --- the client's token file, and the commands ---


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
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **more)

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
    assert 2 == memoryd("token", "issue", "--user", "eve", "--allow", "full", "--out", "/no/such/t").returncode
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
    text = subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout
    for line in ("door:      sandbox", "user_id:   alice", "chat_id:   w1", "may:       search"):
        assert line in text
    found = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, check=True, env=env).stdout)
    assert (sandbox.grant.id, ["search"], 5) == (
        found["grant_id"],
        found["permissions"],
        found["quota"]["writes_per_day"],
    )
    wrong = subprocess.run(command, capture_output=True, text=True, check=False, env={**env, "MEMORY_USER_ID": "bob"})
    assert (4, 1) == (wrong.returncode, len(wrong.stderr.splitlines()))


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


def test_a_socket_that_cannot_be_opened_at_a_start_keeps_its_directory_and_is_opened_later(folder):
    async def rule():
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

    run(rule())


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
    done = subprocess.run(
        world.daemon.command("token", "inspect"), capture_output=True, text=True, check=False, env=env
    )
    assert (0, True) == (done.returncode, "counts   yes" in done.stdout)


def test_many_memories_of_a_grant_are_forgotten_together(world):
    sandbox = world.sandbox(user_id="many", chat_ids=(), quota={"calls_per_second": 0})
    with world.inside(sandbox) as inside:
        for n in range(30):
            inside.add_batch([Draft(content=f"poison {n} {k}") for k in range(100)])
    with world.daemon.client("many", timeout_s=300) as host:
        assert 3000 == host.delete_grant_memories(sandbox.grant.id).deleted_count
        assert () == host.page().memories
