"""Updating through doors and by the command: who may, what it counts to, and what is said."""

from __future__ import annotations

import json

import pytest
from memory_client import LimitExceeded, PermissionDenied, TrustTooLow


def test_a_sandbox_changes_no_label_of_the_host_and_none_of_another_user_in_a_chat(world, user):
    with world.admin(user, "c1") as host:
        of_host = host.add("I keep bees", tags=["host"]).memory
        shared = host.add("We meet on Mondays", tags=["host"], shared=True).memory
    alice = world.sandbox("full", user_id=user, chat_ids=("c1",))
    bob = world.sandbox("full", user_id=f"{user}-bob", chat_ids=("c1",))
    with world.inside(alice) as mine, world.inside(bob) as theirs:
        for memory in (of_host, shared):
            with pytest.raises(TrustTooLow):
                mine.update(memory.id, tags=["mine"])
        said = mine.add("The office is in Leeds", shared=True, tags=["mine"]).memory
        with pytest.raises(TrustTooLow, match="another user's"):
            theirs.update(said.id, tags=["theirs"])
        assert mine.update(said.id, tags=["still", "mine"]).tags == ("still", "mine")
    with world.admin(user, "c1") as host:
        assert host.get(of_host.id).tags == ("host",)
        assert host.update(said.id, tags=["host"]).tags == ("host",)
        assert host.get(said.id).trust.value == "sandbox"


def test_to_set_an_end_takes_the_permission_to_delete(world, user):
    sandbox = world.sandbox("add", "correct", user_id=user)
    with world.inside(sandbox) as client:
        made = client.add("I keep bees").memory
        assert client.update(made.id, tags=["t"]).id == made.id
        with pytest.raises(PermissionDenied, match="delete"):
            client.update(made.id, expire_time="never")


def test_who_may_not_read_is_shown_no_text(world, user):
    with world.inside(world.sandbox("add", "correct", user_id=user)) as client:
        made = client.add("I keep bees").memory
        shown = client.update(made.id, tags=["t"])
        assert (shown.id, shown.content) == (made.id, "")


def test_what_labels_take_counts_to_the_grant(world, user):
    with world.inside(world.sandbox("full", user_id=user)) as client:
        made = client.add("I keep bees").memory
        before = client.whoami().usage.stored_bytes
        client.update(made.id, metadata={"k": "v" * 999})
        assert client.whoami().usage.stored_bytes == before + 1000
        client.update(made.id, metadata={})
        assert client.whoami().usage.stored_bytes == before


def test_labels_do_not_grow_past_the_quota_of_a_grant(world, user):
    with world.inside(world.sandbox("full", user_id=user, quota={"stored_bytes": 2000})) as client:
        made = client.add("I keep bees").memory
        with pytest.raises(LimitExceeded, match="2000 bytes"):
            client.update(made.id, metadata={str(n): "v" * 1000 for n in range(3)})
        assert client.update(made.id, metadata={"k": "v" * 1000}).id == made.id
        assert client.update(made.id, metadata={"k": "v"}).id == made.id


def test_labels_of_another_grant_only_shrink(world, user):
    with world.inside(world.sandbox("full", user_id=user, quota={"stored_bytes": 10_000})) as one:
        made = one.add("I keep bees", tags=["long", "short"]).memory
        used = one.whoami().usage.stored_bytes
        with world.inside(world.sandbox("correct", user_id=user)) as other:
            with pytest.raises(TrustTooLow, match="only shrink"):
                other.update(made.id, metadata={"k": "v" * 1000})
            other.update(made.id, tags=["short"])
        assert one.whoami().usage.stored_bytes < used
        assert one.get(made.id).tags == ("short",)


def test_the_command(memory):
    code, out, _ = memory("add", "I keep bees", "--tag", "old", "--json")
    made = json.loads(out)["memory"]["id"]
    assert memory("update", made, "--tag", "new", "--meta", "source=letter", "--expires", "2w") == (
        0, f"updated {made[:8]}\n", "",
    )  # fmt: skip
    shown = json.loads(memory("get", made, "--json")[1])
    shown = shown.get("memories", [shown])[0]
    assert (shown["tags"], shown["metadata"], bool(shown["expire_time"])) == (["new"], {"source": "letter"}, True)
    code, out, _ = memory("update", made, "--clear", "tags", "--clear", "expires", "--json")
    assert (code, json.loads(out)["tags"], json.loads(out)["expire_time"]) == (0, [], None)
    for words, said in (
        ((), "say what to set"), (("--tag", "x", "--clear", "tags"), "takes away what another option sets"),
        (("--clear", "content"), "invalid choice"), (("--expires", "2020-01-01"), "future"),
    ):  # fmt: skip
        code, out, err = memory("update", made, *words)
        assert (code, out) == (2, ""), words
        assert said in err
    assert memory("update", "aaaaaaaa", "--tag", "x")[0] == 3
