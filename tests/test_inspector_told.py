"""What the pages of the inspector tell agrees: one page with another, a message with what was done, now with then."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import partial

import pytest

from memoryd.inspector.view import environment
from tests.support import until
from tests.web_helpers import contents, pressed, shown, undone, whose


@pytest.fixture
def alice(inspected, request):
    """A client of a user of this test's own."""
    with inspected.client(f"alice-{request.node.name[:60]}") as client:
        yield client


def test_of_a_user_in_a_chat_all_that_was_deleted_is_offered(site, inspected, alice):
    name, chat = alice.identity.user_id, f"team-{alice.identity.user_id[-30:]}"
    with inspected.client(name, chat_id=chat) as here:
        gone = [here.add("I keep bees").memory, here.add("The wiki is at wiki.example", shared=True).memory]
        here.add("I keep goats")
        for one in gone:
            here.delete(one.id)
    page = site.get("memories", user=name, chat=chat)
    assert "with 2 deleted that can still be taken back" in shown(page)
    assert {f"Take back {one.id[:8]}" for one in gone} <= page.buttons().keys()
    assert "’s own. To share it" in shown(page)
    assert "took back" in shown(pressed(site, page, f"Take back {gone[1].id[:8]}"))
    assert "The wiki is at wiki.example" in shown(site.get("memories", user=name, chat=chat))


def test_a_name_of_which_it_is_not_known_what_it_is_has_a_page_and_people_say_so(site, alice):
    alice.add("It rains", subjects=["Łukasz"])
    page = site.get("people", **whose(alice))
    assert "names of which it is not known what they are have a page too" in shown(page)
    assert "It rains" in shown(site.get(f"people/{alice.entity('Łukasz').entity.id}", **whose(alice)))


def test_an_answer_of_an_earlier_day_has_no_marks_of_today(site, alice):
    alice.add("I work as a teacher", tags=["work"])
    alice.add("I work as a translator")
    contested = alice.page().memories[1]
    words = partial(re.findall, r"\w+")
    badges = environment(datetime.now).get_template("parts.html").module.badges
    assert {"contested", "work"} == {"contested", "work"} & set(words(badges(contested)))
    assert {"work"} == {"contested", "work"} & set(words(badges(contested, then=True)))
    yesterday = datetime.now().astimezone().date() - timedelta(days=1)
    page = site.get("search", q="What is my work?", as_of=f"{yesterday}", **whose(alice))
    assert "As things were known at the end of that day" in shown(page)
    assert "As things were known" not in shown(site.get("search", q="What is my work?", **whose(alice)))


def test_what_a_confirmation_has_replaced_is_taken_back_with_one_button(site, alice):
    for job in ("baker", "pilot", "teacher"):
        alice.add(f"I work as a {job}")
    kept = next(one for one in alice.page().memories if "pilot" in one.content)
    page = pressed(site, site.get(f"memories/{kept.id}", **whose(alice)), "Confirm")
    assert "replaced 2 memories" in shown(page)
    assert ["I work as a pilot"] == contents(alice)
    pressed(site, page, "Take back what it replaced")
    assert [f"I work as a {job}" for job in ("baker", "pilot", "teacher")] == contents(alice)


def test_undo_of_a_decision_shows_the_pair_that_came_back(site, alice):
    for job in ("baker", "pilot", "teacher"):
        alice.add(f"I work as a {job}")
    for at in range(3):
        page = site.get("contested", at=at, **whose(alice))
        [form] = page.find("form", class_="decide")
        pair = {one.attributes["name"]: one.attributes["value"] for one in form.find("input")}
        again = undone(site, pressed(site, page, "The older holds 2", choice="older"))
        [form] = again.find("form", class_="decide")
        back = {one.attributes["name"]: one.attributes["value"] for one in form.find("input")}
        assert {pair["newer"], pair["older"]} == {back["newer"], back["older"]}


def test_a_timeline_of_several_pages_says_of_what_its_picture_is(site, alice):
    for n in range(101):
        alice.add(f"statement {n} of many")
    page = site.get("timeline", **whose(alice))
    assert "The picture shows what is on this page, 100 memories, and no others" in shown(page)
    assert "The picture shows" not in shown(
        site.get("timeline", since="2026-01-01", until="2026-01-02", **whose(alice))
    )


def test_what_is_found_by_its_id_says_so(site, alice):
    kept = alice.add("I keep bees").memory
    page = site.get("search", q=kept.id[:8], **whose(alice))
    assert "found by its id" in shown(page)
    assert not page.find("details", class_="legs")


def test_a_name_that_is_taken_is_told_above_the_form_that_joins(site, alice):
    alice.add("my friend Sarah likes tea")
    alice.add("my friend Nadia likes coffee")
    sarah = alice.entity("Sarah").entity
    page = pressed(site, site.get(f"people/{sarah.id}", **whose(alice)), "Rename", 400, name="Nadia")
    assert "Join the two below" in shown(page)
    assert "Nadia" == page.find("input", id="name")[0].attributes["value"]
    assert "Join" in page.buttons()


def test_an_undo_says_what_is_back_and_can_be_undone_itself(site, alice):
    kept = alice.add("my friend Sarah keeps bees", tags=["a"]).memory
    page = pressed(site, site.get(f"memories/{kept.id}", **whose(alice)), "Set", tags="b", category="")
    back = undone(site, page)
    assert "the former labels are back" in shown(back)
    assert ("a",) == alice.get(kept.id).tags
    pressed(site, back, "Redo")
    assert ("b",) == alice.get(kept.id).tags
    sarah = alice.entity("Sarah").entity
    page = pressed(site, site.get(f"people/{sarah.id}", **whose(alice)), "Rename", name="Sally")
    back = undone(site, page)
    assert "the name is Sarah again" in shown(back)
    assert "Redo" in back.buttons()


def test_bytes_of_a_run_are_as_people_write_them_and_before_stands_before_after(site):
    site.post("jobs/run", owner="", job="compaction")
    found = re.compile(r"before [\d.]+ [KM]iB, after [\d.]+ [KM]iB, purged meanwhile")
    for _ in range(200):
        if found.search(shown(site.get("jobs", job="compaction"))):
            return
    pytest.fail("the run has not ended, or its bytes are not told")


def test_a_mistake_in_other_words_is_told_above_what_waits(site, alice):
    with alice.conversation("cli:alice") as talk:
        talk.user("My sister Lena lives in Ghent")
    site.post("jobs/run", owner="", job="extraction")
    owner = alice.identity.user_id
    [one] = until(lambda: alice.proposals(user_id=owner))
    page = site.post("review", status=400, owner="", id=one.id, choice="approve", content=" \u0000")
    assert "“In other words”" in shown(page)
    assert "My sister Lena lives in Ghent" in shown(page)


def test_the_working_memory_of_a_user_stands_with_the_conversations(site, alice):
    assert "Working memory" not in shown(site.get("conversations", **whose(alice)))
    alice.set_working_memory("plans a trip to Lisbon")
    assert "plans a trip to Lisbon" in shown(site.get("conversations", **whose(alice)))


def test_a_long_memory_s_own_page_cuts_it_without_a_link_to_itself(site, alice):
    kept = alice.add("I keep bees. " * 500).memory
    page = site.get(f"memories/{kept.id}", **whose(alice))
    assert "show all" not in shown(page)
    assert "show all" in shown(site.get("memories", **whose(alice)))


def test_the_audit_log_says_that_there_may_be_more_where_it_is_cut(site, alice):
    alice.add("I keep bees")
    page = site.get("audit", rpc="AddMemory", user_id=alice.identity.user_id)
    assert "What is older than the end of the log" in shown(page)
    for _ in range(100):
        alice.stats()
    told = shown(site.get("audit", user_id=alice.identity.user_id))
    assert "The last 100" in told
    assert "goes further back" in told
