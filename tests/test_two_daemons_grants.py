"""Several daemons before one store: who may do what is the same at each of them, at once."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from memory_client import AsyncMemoryClient, Credentials, GrantSpec, check_permissions

from memoryd.daemon.servers import make_server
from memoryd.errors import GrantNotFound, Unauthenticated, Unavailable
from memoryd.identity.authentication import Door
from memoryd.identity.grants import Grants
from tests.builders import NOW, STORES, Local, open_kind, ports_over, servers_over, with_ports
from tests.grants_helpers import grant
from tests.shared_store import comes_between, view_of

LATER = NOW + timedelta(hours=1)


@pytest.fixture(params=STORES)
async def store(request, folder):
    opened = open_kind(request.param, folder)
    yield opened
    await opened.close()


@pytest.fixture
async def daemons(store):
    """Ports of three daemons, each with a copy of the grants of its own."""
    async with AsyncExitStack() as stack:
        views = [view_of(store) for _ in range(3)]
        copies = [Grants(view, [], [], lambda: 0.0, os.urandom, today=NOW.date()) for view in views]
        made = [await stack.enter_async_context(ports_over(view)) for view in views]
        yield [with_ports(ports, grants=copy) for ports, copy in zip(made, copies, strict=True)]


def grants_of(daemons) -> list[Grants]:
    return [ports.guards.grants for ports in daemons]


async def test_a_grant_of_one_is_known_to_all_and_its_end_too(daemons):
    one, other, third = grants_of(daemons)
    held = grant()
    await one.save(held)
    heads = [await copy.refresh() for copy in (one, other, third)]
    assert [heads[0]] * 3 == heads
    assert other.get(held.id) == third.find(held.id[:8]) == held
    assert await other.admit(held.id, NOW) == heads[0]
    await other.revoke(held, NOW)
    for copy in (one, other, third):
        with pytest.raises(Unauthenticated, match="was revoked"):
            await copy.admit(held.id, NOW)
    assert NOW == (await third.revoke(held, LATER)).revoke_time  # it stays as it was revoked first
    await third.forget([held.id])
    with pytest.raises(Unauthenticated, match="there is no grant"):
        await one.admit(held.id, NOW)
    with pytest.raises(GrantNotFound):
        await other.revoke(held, NOW)


async def test_what_all_change_at_once_is_all_there(daemons, store):
    copies = grants_of(daemons)
    made = [grant(f"g{n:02}" + "x" * 23) for n in range(60)]
    await asyncio.gather(*(copies[n % 3].save(one) for n, one in enumerate(made)))
    await asyncio.gather(*(copies[(n + 1) % 3].revoke(one, NOW) for n, one in enumerate(made[:40])))
    for copy in copies:
        await copy.refresh()
        assert {one.id for one in made} == {one.id for one in copy.all()}
        assert {one.id for one in made[:40]} == {one.id for one in copy.all() if one.revoke_time}
    assert 60 == len(await store.grants.all())


@pytest.mark.parametrize("change", ["revoke", "save"])
async def test_what_is_under_way_at_one_while_another_revokes_is_not_written(daemons, clock, change):
    one, other, _ = daemons
    held = grant(user_id="alice")
    await one.guards.grants.save(held)
    inside = Local(other, clock, user_id="alice", grant_id=held.id)
    work = one.guards.grants
    done = comes_between(
        other.store, lambda: work.revoke(held, NOW) if change == "revoke" else work.save(grant("h" * 26))
    )
    if change == "revoke":
        with pytest.raises(Unauthenticated, match="nothing was written"):
            await inside.add("the team ships on Friday")
    else:  # another grant is none of its business: it is decided again, and written
        await inside.add("the team ships on Friday")
    assert [True] == done
    host = Local(one, clock, user_id="alice")
    assert (change == "save") == bool((await host.page()).memories)


async def test_the_first_key_is_one_and_the_same(daemons, store):
    copies = grants_of(daemons)
    keys = await asyncio.gather(*(copy.signing_key(NOW) for copy in copies))
    assert 1 == len({key.id for key in keys}) == len(await store.grants.token_keys())
    for copy in copies:
        await copy.refresh()
        assert copy.key(keys[0].id) == keys[0]


async def test_keys_that_two_make_at_once_both_count_and_dropped_ones_nowhere(daemons, store):
    one, other, third = grants_of(daemons)
    first = await one.signing_key(NOW)
    await asyncio.gather(*(copy.rotate_keys(NOW, drop_older=False) for copy in (one, other)))
    assert 3 == len(await store.grants.token_keys())
    await third.refresh()
    assert third.key(first.id) == first
    [left] = await other.rotate_keys(LATER, drop_older=True)
    for copy in (one, third):
        await copy.refresh()
        assert (None, left) == (copy.key(first.id), copy.key(left.id))
        assert left == await copy.signing_key(LATER)


async def test_a_revocation_that_could_not_be_written_leaves_the_grant_as_it_is(daemons):
    one, other, _ = daemons
    held = grant()
    await one.guards.grants.save(held)
    write = one.store.commits.write

    async def full(*changes):
        raise Unavailable("the disk is full")

    one.store.commits.write = full
    with pytest.raises(Unavailable):
        await one.guards.grants.revoke(held, NOW)
    one.store.commits.write = write
    for ports in (one, other):
        await ports.guards.grants.admit(held.id, NOW)
    await other.guards.grants.revoke(held, NOW)
    with pytest.raises(Unauthenticated):
        await one.guards.grants.admit(held.id, NOW)


@asynccontextmanager
async def served(ports, folder, clock, door):
    """The address of one door of a daemon."""
    server = make_server(256, 512)
    server.add_generic_rpc_handlers((servers_over(ports, folder, clock, grants=ports.guards.grants).gate(door),))
    socket = folder / f"{door.value}-{id(ports)}"
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    try:
        yield f"unix://{socket}"
    finally:
        await server.stop(0)


async def test_a_token_of_one_daemon_counts_at_the_door_of_another_until_either_revokes_it(daemons, folder, clock):
    one, other, third = daemons
    async with AsyncExitStack() as stack:
        doors = [
            await stack.enter_async_context(served(ports, folder, clock, door))
            for ports, door in ((one, Door.ADMIN), (other, Door.SHARED), (third, Door.ADMIN))
        ]
        host, last = (AsyncMemoryClient(doors[n], user_id="alice", chat_id="", agent_id="") for n in (0, 2))
        spec = GrantSpec(user_id="alice", permissions=check_permissions(["add", "list"]))
        token = (await host.issue_token(spec)).token
        inside = AsyncMemoryClient(
            doors[1], user_id="", chat_id="", agent_id="", credentials=Credentials(token=token), wait_for_ready=False
        )
        for client in (host, last, inside):
            stack.push_async_callback(client.close)
        await inside.add("the team ships on Friday")
        assert 1 == len((await inside.page()).memories)
        [status] = (await last.grants()).grants
        assert status.grant.permissions == spec.permissions
        await last.revoke_grant(status.grant.id)
        for call in (inside.page, lambda: inside.add("and again")):
            with pytest.raises(Unauthenticated, match="was revoked"):
                await call()
        assert 1 == len((await host.page()).memories)


async def test_what_did_not_change_stays_the_same_object_so_tokens_are_not_verified_again(daemons):
    one, other, _ = grants_of(daemons)
    first, second = grant(), grant("h" * 26)
    await one.save(first)
    await other.refresh()
    known = other.get(first.id)
    await one.save(second)
    await other.refresh()
    assert known is other.get(first.id)
    assert other.get(second.id) == second
    await one.save(replace(second, label="renamed"))
    await other.refresh()
    assert "renamed" == other.get(second.id).label
