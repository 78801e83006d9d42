"""What a sandbox says, and what it cannot do to what the host says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from memory_client import (
    Draft,
    MessageDraft,
    Outcome,
    Source,
    State,
    Trust,
    TrustTooLow,
)

from memoryd.daemon.config import Config, MemoryConfig
from memoryd.domain.retrieval.browse import page
from memoryd.domain.writing.add import add
from memoryd.errors import LimitExceeded as NoRoom
from memoryd.model.caller import Caller
from memoryd.model.memory import Draft as StoredDraft
from memoryd.model.query import Filter as StoredFilter
from memoryd.model.trust import Trust as StoredTrust
from tests.builders import NOW, ports_over, ram_store


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
        assert ("tags", "subjects", "metadata") == said.untaken_fields
        with world.inside(world.sandbox("add", user_id="uma", chat_ids=())) as adds:
            told = adds.add("The door code is secret", tags=["a"])  # whether it has that tag is not for it to know
        host.add("My sister is called Mariana Lopez")
        with world.inside(world.sandbox("add", user_id="uma", chat_ids=())) as adds:
            named = adds.add("something of hers", subjects=["sister"]).memory
        assert "Mariana" not in repr(named)
        assert (("tags",), kept.id, "") == (told.untaken_fields, told.memory.id, told.memory.content)
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


async def test_in_a_full_scope_no_sandbox_drives_out_what_the_host_said():
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
        theirs = inside.add("wim likes cheese", tags=["x"]).memory
        said = host.add("Wim likes cheese")
        assert (Outcome.SUPERSEDED, (theirs.id,)) == (said.outcome, said.superseded_ids)
        assert (Trust.HOST, "", (), "") == (
            said.memory.trust, said.memory.grant_id, said.memory.tags, said.memory.key
        )  # fmt: skip
        host.delete_grant_memories(sandbox.grant.id, purge=True)
        assert ["Wim likes cheese"] == [memory.content for memory in host.pages()]


def test_who_may_delete_and_not_read_is_shown_no_text(world):
    with world.admin("yan") as host:
        kept = host.add("The safe of my wife Sarah opens with a blue key", tags=["hush"], metadata={"k": "blue"}).memory
        box = world.sandbox("delete", user_id="yan", chat_ids=())
        reader = world.sandbox("delete", "list", user_id="yan", chat_ids=())
        with world.inside(box) as inside, world.inside(reader) as reading:
            told = [
                inside.delete_matching(text="safe", dry_run=True),
                inside.forget_person("Sarah", dry_run=True),
                inside.delete(kept.id),
                inside.restore(kept.id),
            ]
            said = " ".join(map(repr, told)).lower()
            assert [] == [word for word in ("blue", "opens", "wife", "hush") if word in said]
            assert [kept.id] == [memory.id for memory in told[0].memories] == [told[3].id]
            assert "blue key" in reading.delete_matching(text="safe", dry_run=True).memories[0].content
        assert "blue key" in host.get(kept.id).content


def test_among_users_of_a_chat_a_sandbox_deletes_and_only_the_host_purges(world):
    alice, bob = (world.sandbox(user_id=user, chat_ids=("kin",)) for user in ("zed", "zoe"))
    with (
        world.inside(alice, chat_id="kin") as mine, world.inside(bob, chat_id="kin") as theirs,
        world.admin("zed", "kin") as host,
    ):  # fmt: skip
        said = theirs.add("Our cousin Ottilie sells boats", shared=True).memory.id
        theirs.append("boats", MessageDraft(content="Ottilie sells boats"), shared=True)
        for attempt in (
            lambda: mine.delete(said, purge=True),
            lambda: mine.delete_matching(text="sells boats", purge=True),
            lambda: mine.forget_person("Ottilie"),
            lambda: mine.delete_thread("boats", shared=True),
            lambda: mine.delete_thread("boats", shared=True, with_memories=True),
            lambda: mine.delete_messages("boats", after_seq=0, shared=True),
            lambda: mine.delete_messages("boats", after_seq=0, shared=True, dry_run=True),
        ):
            with pytest.raises(TrustTooLow):
                attempt()
        mine.delete(said)
        assert State.LIVE is theirs.restore(said).state
        own = mine.add("Ottilie lives in Bergen", shared=True).memory.id
        assert [own] == list(mine.delete(own, purge=True).deleted_ids)
        own = mine.append("boats", MessageDraft(content="I row"), shared=True).messages[0].id
        assert (own,) == mine.delete_messages("boats", [own], shared=True).message_ids
        theirs.delete_thread("boats", shared=True)
        assert [said] == list(host.delete(said, purge=True).deleted_ids)
