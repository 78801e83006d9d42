"""What the host may ask without saying who for: a memory by its whole id, and all that a user has with any agent."""

from __future__ import annotations

import json

import pytest
from memory_client import (
    Filter,
    GrantSpec,
    IdentityMissing,
    InvalidArgument,
    MemoryClient,
    NotFound,
    ScopeMismatch,
    State,
    check_permissions,
)

from tests.forking import run_command
from tests.support import BIN


@pytest.fixture
def host(world):
    """The host, acting for no one."""
    with MemoryClient(world.daemon.endpoint, user_id="", chat_id="", agent_id="") as client:
        yield client


def test_the_host_reads_and_changes_any_memory_by_its_whole_id(world, host, user):
    with world.admin(user, "c1") as client:
        mine = client.acting_for(user_id=user, agent_id="coder").add("I keep bees", tags=["t"]).memory
        ours = client.add("We meet on Mondays", shared=True).memory
    for memory in (mine, ours):
        assert host.get(memory.id).content == memory.content
        assert host.get(memory.id).owner == memory.owner
    assert host.update(mine.id, tags=["new"]).tags == ("new",)
    assert host.confirm(mine.id).memory.protected
    corrected = host.correct(mine.id, "I keep wasps")
    assert (corrected.memory.owner, corrected.superseded_ids) == (mine.owner, (mine.id,))
    assert [one.id for one in host.history(mine.id).memories] == [mine.id, corrected.memory.id]
    assert host.delete(ours.id).deleted_ids == (ours.id,)
    assert host.restore(ours.id).state is State.LIVE
    assert host.delete(ours.id, purge=True).deleted_ids == (ours.id,)
    with pytest.raises(NotFound):
        host.get(ours.id)
    assert host.delete(ours.id, allow_missing=True).deleted_ids == ()


def test_less_than_a_whole_id_and_other_calls_still_need_to_know_who_asks(world, host, user):
    with world.admin(user) as client:
        made = client.add("I keep bees").memory
    with pytest.raises(IdentityMissing, match="all 26 characters"):
        host.get(made.id[:20])
    with pytest.raises(NotFound):
        host.get("a" * 26)
    for call in (host.page, lambda: host.search("bees"), lambda: host.add("x"), host.stats):
        with pytest.raises(IdentityMissing):
            call()
    with pytest.raises(NotFound):
        host.acting_for(agent_id="another").get(made.id)
    with pytest.raises(NotFound):
        host.acting_for(user_id="bob").get(made.id)


def test_no_one_but_the_host_does_without_an_identity(world, user):
    with world.admin(user) as client:
        made = client.add("I keep bees").memory
    with world.inside(world.sandbox(user_id=f"{user}-other")) as inside:
        for call in (inside.get, inside.delete, inside.history, inside.confirm):
            with pytest.raises(NotFound):
                call(made.id)
    with world.inside(world.sandbox(user_id="", chat_ids=("c1", "c2"))) as inside, pytest.raises(IdentityMissing):
        inside.get(made.id)
    with world.client(world.shared, world.token(user_id=f"{user}-other")) as tokened, pytest.raises(NotFound):
        tokened.get(made.id)


def test_the_host_lists_what_a_user_has_with_every_agent(world, host, user):
    agents = ("default", "coder", "cook")
    with world.admin(user) as client:
        for n in range(9):
            client.acting_for(user_id=user, agent_id=agents[n % 3]).add(f"The fact number {n}", tags=[f"t{n % 2}"])
        client.acting_for(user_id=f"{user}-other", agent_id="cook").add("Something of another user")
    every = host.acting_for(user_id=user, agent_id="*")
    listed = list(every.pages(page_size=2))
    assert [memory.content for memory in listed] == [f"The fact number {n}" for n in reversed(range(9))]
    assert {memory.agent_id for memory in listed} == set(agents)
    assert len(list(every.pages(filter=Filter(tags=("t1",))))) == 4
    assert list(host.acting_for(user_id=f"{user}-none", agent_id="*").pages()) == []
    for call in (lambda: every.search("fact"), lambda: every.add("x"), every.stats, every.profile, every.forget_user):
        with pytest.raises(InvalidArgument, match="every agent"):
            call()
    for identity in ({"chat_id": "c1"}, {"user_id": user, "chat_id": "c1"}):
        with pytest.raises(InvalidArgument, match="no chat_id"):
            host.acting_for(agent_id="*", **identity).page()


def test_a_sandbox_is_of_one_agent(world, user):
    with pytest.raises(InvalidArgument, match="a grant is of one"):
        GrantSpec(agent_id="*", user_id=user, permissions=check_permissions(["full"]))
    with world.inside(world.sandbox(user_id=user), agent_id="*") as inside, pytest.raises(ScopeMismatch):
        inside.page()


def test_the_audit_log_names_whose_it_was(world, host, user):
    with world.admin(user) as client:
        made = client.add("I keep bees").memory
    host.delete(made.id)
    log = next(world.daemon.folder.glob("**/audit*"))
    path = log if log.is_file() else next(log.glob("*"))
    lines = [json.loads(line) for line in path.read_text().splitlines() if made.id in line]
    assert {line["user_id"] for line in lines if line["rpc"] == "DeleteMemory"} == {user}


def test_the_command_takes_a_whole_id_without_a_user(memory, daemon, user):

    made = json.loads(memory("add", "I keep bees", "--json")[1])["memory"]["id"]
    command = [BIN / "memory", "get", "--no-user", made, "--endpoint", daemon.endpoint]
    done = run_command(command, capture_output=True, text=True, check=False, env={"HOME": str(daemon.folder)})
    assert (done.returncode, "I keep bees" in done.stdout) == (0, True), done.stderr
