"""The inspector while others write: nothing is erased, undone or mixed up that its user has not seen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from memory_client import (
    Draft,
    Filter,
    GrantSpec,
    Kind,
    MemoryClient,
    MessageDraft,
    Resolution,
    check_permissions,
)

from memoryd.errors import NotFound
from tests.support import until
from tests.web_helpers import csrf, pressed, read, shown, undone, whose

ERASE = "Erase for good"


@pytest.fixture
def alice(inspected, request):
    """A client of a user of this test's own."""
    with inspected.client(f"alice-{request.node.name[:60]}") as client:
        yield client


def hrefs(page) -> list[str]:
    return [one.attributes["href"] for one in page.find("a")]


def test_a_person_of_whom_more_is_known_meanwhile_is_shown_again_before_anything_goes(site, alice):
    alice.add("my friend Petra likes tea")
    petra = alice.entity("Petra").entity
    page = site.get(f"people/{petra.id}/forget", with_messages="1", **whose(alice))
    alice.add("Petra lives in Ghent")
    alice.append("t", [MessageDraft(content="Petra comes on Friday")])
    again = pressed(site, page, ERASE, 400)
    assert "nothing was erased" in shown(again)
    assert {"Petra lives in Ghent", "Petra comes on Friday"} <= {one.words for one in again.find("bdi")}
    assert (2, 1) == (len(alice.page().memories), len(alice.messages("t").messages))
    assert "2 memories are erased for good; messages: 1" in shown(pressed(site, again, ERASE))
    assert () == alice.page().memories


def test_a_conversation_that_went_on_is_shown_again_before_it_goes(site, alice):
    alice.append("t", [MessageDraft(content="We meet on Friday")])
    page = site.get("conversations/delete", id="t", **whose(alice))
    alice.append("t", [MessageDraft(content="No, on Monday")])
    again = pressed(site, page, ERASE, 400)
    assert "2 messages would be erased" in shown(again)
    assert 2 == len(alice.messages("t").messages)
    pressed(site, again, ERASE)
    assert () == alice.threads().threads


def test_a_note_that_was_changed_is_shown_again_before_it_goes(site, alice):
    alice.put_note("plan", "Two weeks")
    page = site.get("notes/delete", path="plan", **whose(alice))
    assert "Two weeks" in shown(page)
    alice.put_note("plan", "Three weeks")
    again = pressed(site, page, ERASE, 400)
    assert "Three weeks" in shown(again)
    assert "Three weeks" == alice.note("plan").text
    pressed(site, again, ERASE)
    assert [] == list(alice.all_notes())


def test_a_note_that_is_gone_leaves_what_was_typed_to_be_added(site, alice):
    alice.put_note("plan", "Two weeks")
    page = site.get("notes/one", path="plan", **whose(alice))
    alice.delete_notes("plan")
    lost = pressed(site, page, "Save", 404, text="Three weeks")
    assert "erased meanwhile" in shown(lost)
    typed = {name: lost.find("textarea", id="text")[0].text.strip() for name in ("text",)}
    path = lost.find("input", id="path")[0].attributes["value"]
    [add] = [one for one in lost.buttons() if one in {"Add", "Write", "Save", "Keep"}]
    pressed(site, lost, add, path=path, **typed)
    assert "Three weeks" == alice.note("plan").text


def test_what_a_grant_wrote_meanwhile_is_shown_before_it_goes_and_what_it_had_replaced_is_named(site, alice):
    alice.add("My favorite city is Rome")
    permissions = check_permissions(["full"])
    until = datetime.now(UTC) + timedelta(hours=8)
    spec = GrantSpec(user_id=alice.identity.user_id, permissions=permissions, expire_time=until)
    opened = alice.open_sandbox(spec)
    with MemoryClient(f"unix://{opened.directory}/memory.sock", user_id="", chat_id="", agent_id="") as inside:
        inside.add("The hotel is booked")
        page = site.get(f"grants/{opened.grant.id}/clean")
        inside.add("The train leaves at nine")
        again = pressed(site, page, "Clean up", 400)
        assert "nothing was erased" in shown(again)
        assert 3 == len(alice.page().memories)
        replaced = inside.add("My favorite city is Oslo, no longer Rome").superseded_ids
    page = site.get(f"grants/{opened.grant.id}/clean")
    assert bool(replaced) == ("They had replaced" in shown(page))
    assert all("My favorite city is Rome" in shown(page) for _ in replaced)
    pressed(site, page, "Clean up")


def test_a_correction_of_what_was_replaced_meanwhile_keeps_what_was_typed(site, alice):
    kept = alice.add("My gym is in Rua Velha").memory
    page = site.get(f"memories/{kept.id}", **whose(alice))
    heir = alice.correct(kept.id, "My gym is in Rua Nova").memory
    lost = pressed(site, page, "Correct", 400, content="My gym is in Rua Direita")
    assert "My gym is in Rua Direita" == lost.find("textarea", id="content")[0].text.strip()
    done = pressed(
        site, lost, "Correct what has replaced it", content=lost.find("textarea", id="content")[0].text.strip()
    )
    assert "corrected" in shown(done)
    assert ["My gym is in Rua Direita"] == [one.content for one in alice.page().memories]
    assert heir.id in alice.page().memories[0].supersedes


def test_who_erases_a_correction_is_told_that_the_former_words_stay(site, alice):
    kept = alice.add("My therapist is Dr. Blau").memory
    heir = alice.correct(kept.id, "My therapist is Dr. Roth").memory
    page = site.get(f"memories/{heir.id}/erase", **whose(alice))
    assert "My therapist is Dr. Blau" in shown(page)
    assert any(kept.id in link for link in hrefs(page))
    after = pressed(site, page, ERASE)
    assert "Nothing holds now" in shown(after)


def test_what_had_a_key_can_be_taken_back_once_its_successor_is_gone(site, alice):
    first = alice.add("The door code is in the drawer", key="door").memory
    second = alice.add("The door code is at the desk", key="door").memory
    assert "Take back the replacement" not in site.get(f"memories/{first.id}", **whose(alice)).buttons()
    alice.delete(second.id)
    pressed(site, site.get(f"memories/{first.id}", **whose(alice)), "Take back the replacement")
    assert [first.id] == [one.id for one in alice.page().memories]


def test_undo_leaves_what_others_have_set_meanwhile(site, alice):
    kept = alice.add("my wife Sarah likes tea").memory
    page = site.post(f"memories/{kept.id}/labels", owner=alice.identity.user_id, tags="one", category="")
    alice.update(kept.id, tags=["two", "three"])
    assert "have changed meanwhile" in shown(undone(site, page))
    assert ("two", "three") == alice.get(kept.id).tags
    sarah = alice.entity("Sarah").entity
    page = site.post(f"people/{sarah.id}/rename", owner=alice.identity.user_id, name="Helena")
    alice.rename_entity(sarah.id, "Magdalena")
    assert "stays" in shown(undone(site, page))
    assert "Magdalena" == alice.entity(sarah.id).entity.name


def test_undo_of_a_decision_opens_no_pair_that_was_decided_before(site, alice):
    for job in ("baker", "pilot", "teacher"):
        alice.add(f"I work as a {job}")
    page = site.get("contested", **whose(alice))
    assert "of 3" in shown(page)
    left = pressed(site, page, "Both hold 3", choice="both")
    assert "of 2" in shown(left)
    decided = pressed(site, left, "The older holds 2", choice="older")
    assert "Pair 2" not in shown(decided)
    undone(site, decided)
    assert "of 2" in shown(site.get("contested", **whose(alice)))


def test_long_lists_of_a_person_say_that_they_are_cut(site, alice):
    for start in (0, 65):
        alice.add_batch([Draft(content=f"Gustav has {n} bees in hive {n + 7}") for n in range(start, start + 65)])
    gustav = alice.entity("Gustav").entity
    count = gustav.mention_count
    page = site.get(f"people/{gustav.id}/forget", **whose(alice))
    assert f"These are 100 of the {count}" in shown(page)
    person = site.get(f"people/{gustav.id}", **whose(alice))
    assert f"of the {count}" in shown(person)


def test_with_more_people_than_a_list_holds_they_are_joined_by_name(site, alice):
    letters = "abcdefghij"
    names = [f"Bel{one}{other}rin" for one in letters for other in letters] + ["Zoltan", "Zsofia"]
    for start in range(0, len(names), 60):
        alice.add_batch([Draft(content=f"my friend {name} plays chess") for name in names[start : start + 60]])
    zoltan = alice.entity("Zoltan").entity
    page = site.get(f"people/{zoltan.id}", **whose(alice))
    assert page.find("input", id="into")
    pressed(site, page, "Join", into="Zsofia")
    assert alice.entity("Zoltan").entity.id == alice.entity("Zsofia").entity.id


def test_a_user_s_conversation_is_not_the_chat_s_of_that_name(site, inspected, alice):
    chat = f"{alice.identity.user_id}-room"
    alice.append("main", [MessageDraft(content="My own oven is broken")])
    alice.set_working_memory("The oven is looked at", thread_id="main")
    with inspected.client(alice.identity.user_id, chat_id=chat) as both:
        both.append("main", [MessageDraft(content="The team meets at nine")], shared=True)
        both.set_working_memory("The team is looked at", thread_id="main", shared=True)
    asked = {**whose(alice), "chat": chat, "prompt": "What is broken, and when do we meet?"}
    for place, said in (("own:main", "The oven is looked at"), ("chat:main", "The team is looked at")):
        page = site.get("context", thread=place, **asked)
        [chosen] = [one for one in page.find("option") if "selected" in one.attributes]
        assert (place, True, 1) == (chosen.attributes["value"], said in shown(page), shown(page).count("looked at"))


def test_pages_of_the_daemon_keep_whose_memory_is_looked_at(site, inspected, alice):
    alice.add("I keep bees")
    with inspected.client("wim-elsewhere") as other:
        other.add("I collect stamps")
    page = site.get("memories", **whose(alice))
    site.get("memories", agent="default", user="wim-elsewhere")
    [audit] = [link for link in hrefs(page) if "/audit" in link and "rpc=" not in link]
    told = site.http.get(f"{site.origin}{audit}").text
    assert alice.identity.user_id in told
    assert "wim-elsewhere" not in told.partition("<main")[0]


def test_a_fault_of_the_review_s_filter_is_told_in_its_words(site):
    page = site.get("review", 400, of_user="x" * 200)
    assert "“Of the user” is 200 bytes" in shown(page)


def digest_of(alice) -> str:
    """Let three statements have a digest, and return its id."""
    for text in ("The standup is at ten", "The red skis are in the shed", "The train to Ghent leaves at nine"):
        alice.add(text)
    alice.run_job("reflection")
    wanted = Filter(kinds=frozenset({Kind.REFLECTION}))
    return until(lambda: alice.page(filter=wanted).memories)[0].id


def test_a_digest_that_goes_with_a_memory_is_shown_before(site, alice):
    digest = digest_of(alice)
    skis = next(one for one in alice.page().memories if one.content == "The red skis are in the shed")
    page = site.get(f"memories/{skis.id}/erase", **whose(alice))
    assert "What was made of it goes too" in shown(page)
    assert any(digest in link for link in hrefs(page))
    alice.update(skis.id, tags=["sport"])
    again = pressed(site, page, ERASE, 400)
    assert alice.get(skis.id).tags == ("sport",)
    assert digest[:8] in shown(pressed(site, again, ERASE))
    with pytest.raises(NotFound):
        alice.get(digest)


def test_the_audit_page_tells_an_erasure_from_a_deletion(site, alice):
    kept, gone = (alice.add(f"I keep {what}").memory.id for what in ("bees", "goats"))
    alice.delete(kept)
    alice.delete(gone, purge=True)
    asked = {"rpc": "DeleteMemory", "user_id": alice.identity.user_id}
    until(lambda: len(site.get("audit", **asked).find("tr", class_="item")) == 2)
    told = [row.words for row in site.get("audit", **asked).find("tr", class_="item")]
    assert [True, False] == ["(purge)" in row for row in told]


def test_a_page_that_has_refused_a_form_can_be_left_and_come_back_to(site, alice):
    answer = site.http.post(
        f"{site.base}/memories", params=whose(alice), data={"csrf": csrf(site), "content": "é" * 5000}
    )
    assert 303 == answer.status_code
    for _ in range(2):
        page = read(site.http.get(f"{site.origin}{answer.headers['location']}").text)
        assert "é" * 5000 == page.find("textarea", id="content")[0].text.strip()
    assert "not kept any more" in shown(site.get("refused/none", 404))


def test_forms_and_links_of_the_daemon_s_pages_keep_whose_memory_is_looked_at(site, alice):
    alice.add("I keep bees")
    spec = GrantSpec(user_id=alice.identity.user_id, permissions=check_permissions(["full"]))
    grant_id = alice.open_sandbox(spec).grant.id
    for path, count in (("audit", 2), ("review", 2), (f"grants/{grant_id}", 3)):
        page = site.get(path, **whose(alice))
        kept = [form for form in page.find("form") if alice.identity.user_id in str(form.find("input", name="user"))]
        assert count == len(kept), path


def test_a_name_that_was_guessed_is_taken_apart(site, alice):
    alice.add("Bob Miller sends the invoices")
    alice.add("Bob plays chess")
    bob = alice.entity("Bob Miller").entity
    assert "Bob" in bob.aliases
    page = site.get(f"people/{bob.id}", **whose(alice))
    done = pressed(site, page, "Take Bob apart")
    assert "someone of their own" in shown(done)
    assert alice.entity("Bob Miller").entity.id != alice.entity(done_id(site, done)).entity.id


def done_id(site, page) -> str:
    """The id that the page of a person tells."""
    [told] = [one for one in page.find("div") if one.find("dt") and one.find("dt")[0].words == "Id"]
    return told.find("code")[0].words


def test_a_name_with_what_cannot_be_seen_is_refused_for_that(site, alice):
    alice.add("my wife Sarah likes tea")
    sarah = alice.entity("Sarah").entity
    page = site.post(f"people/{sarah.id}/rename", owner=alice.identity.user_id, status=400, name="Sar\u202eah")
    assert "“Name” holds U+202E, which cannot be seen" in shown(page)


def test_a_message_that_is_found_says_its_place(site, alice):
    alice.append("t", [MessageDraft(content="We meet in Lisbon")])
    said = alice.messages("t").messages[0]
    page = site.get("search", q="Lisbon", kind="episode", why_not=said.id[:8], **whose(alice))
    assert "among the hits, at place 1" in shown(page)


def test_what_a_clean_up_leaves_replaced_is_offered_to_be_taken_back(site, alice):
    kept = alice.add("My favorite city is Rome").memory
    spec = GrantSpec(user_id=alice.identity.user_id, permissions=check_permissions(["full"]))
    opened = alice.open_sandbox(spec)
    with MemoryClient(f"unix://{opened.directory}/memory.sock", user_id="", chat_id="", agent_id="") as inside:
        heir = inside.add("My favorite city is Oslo").memory
    alice.resolve_conflict(heir, kept.id, Resolution.SUPERSEDE)
    page = pressed(site, site.get(f"grants/{opened.grant.id}/clean"), "Clean up")
    assert "still replaced by what went: My favorite city is Rome" in shown(page)
    pressed(site, page, "Take back")
    assert [kept.id] == [one.id for one in alice.page().memories]
