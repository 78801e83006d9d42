"""What is always true of the user stands in every context, whatever is asked, and nobody else's does."""

from __future__ import annotations

from memoryd.model.memory import Draft, Kind, Source
from memoryd.model.message_draft import MessageDraft

TOLD = ["I'm vegetarian", "I hate coriander", "I have a hazelnut allergy", "My name is Robert", "Call me Bo"]


def told(items) -> list[tuple[str, str]]:
    return [(item.topic, item.memory.content) for item in items]


def shown(built) -> list[str]:
    return [line[2:] for s in built.sections if s.name == "profile" for line in s.text.splitlines()[2:]]


async def test_every_context_begins_with_what_is_always_true_of_the_user(memory):
    await memory.add_batch([Draft(content=text) for text in [*TOLD, "We walked along the river on Sunday"]])
    await memory.add("Never book Ryanair for me")
    wanted = ["My name is Robert", "Call me Bo", "I have a hazelnut allergy", "Never book Ryanair for me"]
    wanted += ["I'm vegetarian", "I hate coriander"]
    topics = ["name", "address", "health", "instruction", "diet", "dislike"]
    assert list(zip(topics, wanted, strict=True)) == told(await memory.profile())
    for prompt in ("", "zebra crossings of the harbour"):
        built = await memory.context(prompt, min_score=0.99)
        assert ("profile", wanted) == (built.sections[0].name, shown(built))
        assert built.sections[0].text.startswith("## Always true\n")


async def test_of_a_name_and_a_home_the_newest_counts_and_what_was_relevant_is_not_told_twice(memory, clock):
    await memory.add("I live in Porto")
    clock.pass_days(1)
    await memory.add("We moved to Ghent")
    await memory.add("I'm allergic to penicillin")
    assert [("health", "I'm allergic to penicillin"), ("home", "We moved to Ghent")] == told(await memory.profile())
    built = await memory.context("penicillin", min_score=0.2)
    assert "penicillin" in next(s.text for s in built.sections if s.name == "relevant_memory")
    assert 1 == built.text.count("penicillin")


async def test_others_are_told_where_the_prompt_names_them_and_never_as_the_user(memory):
    await memory.add("My sister Nadia is allergic to nuts")
    await memory.add("Anna is vegan", subjects=["Anna"])
    await memory.add("I eat no meat, I'm vegetarian", subjects=["Anna"])
    assert [] == await memory.profile()
    assert [] == shown(await memory.context("a table for two", min_score=0.99))
    assert ["My sister Nadia is allergic to nuts (about Nadia)"] == shown(
        await memory.context("a cake for Nadia", min_score=0.99)
    )


async def test_what_another_says_in_a_chat_is_not_the_user_s_own(memory):
    bob = memory.acting_for(user_id="bob", chat_id="team")
    alice = memory.acting_for(user_id="alice", chat_id="team")
    await bob.add("I'm vegan", shared=True)
    assert [] == await alice.profile()
    await alice.add("I'm diabetic", shared=True)
    assert ["I'm diabetic"] == [text for _, text in told(await alice.profile())]
    assert [] == [text for _, text in told(await bob.profile()) if "diabetic" in text]


async def test_events_episodes_hidden_and_expired_statements_are_of_no_profile(memory, clock):
    await memory.add("I have the flu and can't eat", kind=Kind.EVENT)
    gone = (await memory.add("I am blind")).memory
    await memory.delete(gone.id)
    await memory.add("I'm pregnant", expires_days=1)
    await memory.append("t", MessageDraft(content="I'm deaf"))
    assert [("health", "I'm pregnant")] == told(await memory.profile())
    clock.pass_days(2)
    assert [] == await memory.profile()


async def test_a_category_says_that_a_statement_is_of_the_profile(memory):
    await memory.add("nothing with sesame, ever", category="Allergies")
    assert [("health", "nothing with sesame, ever")] == told(await memory.profile())


async def test_the_profile_takes_at_most_its_share(memory):
    await memory.add_batch([Draft(content=f"I'm allergic to fruit number {n}" + " and nuts" * 20) for n in range(30)])
    built = await memory.context("", max_tokens=1000)
    assert 0 < len(shown(built)) < 30
    assert built.token_count <= 160


async def test_a_name_beside_something_else_hides_nothing_and_is_not_hidden(memory, clock):
    await memory.add("My name is Alice and I'm allergic to penicillin")
    clock.pass_days(1)
    await memory.add("My name is Alice Smith")
    await memory.add("My pronouns are she/her")
    await memory.add("Call me Al")
    told_now = [text for _, text in told(await memory.profile())]
    assert {"My name is Alice and I'm allergic to penicillin", "My pronouns are she/her", "Call me Al"} <= {*told_now}


async def test_a_broad_category_only_marks_a_statement(memory):
    for text in ("I'm allergic to penicillin", "I live in Oslo", "collects stamps"):
        await memory.add(text, category="personal_details")
    wanted = [
        ("health", "I'm allergic to penicillin"),
        ("home", "I live in Oslo"),
        ("personal", "collects stamps"),
    ]
    assert wanted == told(await memory.profile())


async def test_an_excluded_session_leaves_what_was_true_before_it(memory, clock):
    await memory.add("Ich wohne in Bern", source=Source(session_id="s0"))
    clock.pass_days(1)
    await memory.add("I live in Oslo", source=Source(session_id="s1"))
    assert ["I live in Oslo"] == shown(await memory.context(""))
    assert ["Ich wohne in Bern"] == shown(await memory.context("", exclude_session_ids=["s1"]))


async def test_what_a_newer_statement_contests_says_so(memory, clock):
    await memory.add("I live in Oslo")
    clock.pass_days(1)
    newer = await memory.add("I left Oslo")
    assert newer.contested_ids
    (line,) = shown(await memory.context("", sections=["profile"]))
    assert line.startswith("I live in Oslo [contested by the newer: I left Oslo")
