"""The pages of people, contested pairs, what was learnt, conversations and notes: what their forms do."""

from __future__ import annotations

import re

import pytest
from memory_client import MessageDraft

from tests.support import until
from tests.web_helpers import pressed, read, shown, undone, whose


@pytest.fixture
def alice(inspected, request):
    """A client of a user of this test's own."""
    with inspected.client(f"alice-{request.node.name[:60]}") as client:
        yield client


def test_people_are_drawn_with_their_links(site, alice):
    for text in ("my wife Sarah likes tea", "Tom and Sarah play chess", "My brother Tom lives in Porto"):
        alice.add(text)
    page = site.get("people", **whose(alice))
    [picture] = page.find("svg", class_="graph")
    labels = [one.text for one in picture.find("text")]
    assert {"Sarah", "Tom", "wife", "brother"} <= set(labels)
    assert 2 == len(picture.find("line", class_="relation"))
    assert 1 == len(picture.find("line", class_="together"))
    [both] = [one for one in page.find("li") if "1 memory" in one.words]
    assert {"Sarah", "Tom"} == {name.words for name in both.find("bdi")}


def test_a_person_is_renamed_joined_taken_apart_and_forgotten(site, alice):
    owner = alice.identity.user_id
    alice.add("my wife Sarah likes tea")
    alice.add("Sally Jones plays chess")
    sarah = alice.entity("Sarah").entity
    sally = alice.entity("Sally Jones").entity
    page = site.post(f"people/{sally.id}/merge", owner=owner, into=sarah.id)
    assert sarah.id == alice.entity("Sally Jones").entity.id
    joined = site.get(f"people/{sarah.id}", **whose(alice))
    assert "Take Sally Jones apart" in joined.buttons()
    undone(site, page)
    assert sarah.id != alice.entity("Sally Jones").entity.id
    page = site.post(f"people/{sarah.id}/rename", owner=owner, name="Sarah Smith")
    assert "Sarah Smith" == alice.entity(sarah.id).entity.name
    undone(site, page)
    assert "Sarah" == alice.entity(sarah.id).entity.name
    page = site.get(f"people/{sarah.id}/forget", with_messages="1", **whose(alice))
    assert "1 memory would be erased" in shown(page)
    assert 2 == len(alice.page().memories)
    pressed(site, page, "Erase for good")
    assert ["Sally Jones plays chess"] == [memory.content for memory in alice.page().memories]


@pytest.mark.parametrize(("choice", "left"), [("newer", "translator"), ("older", "teacher"), ("both", "both")])
def test_a_contested_pair_is_decided(site, alice, choice, left):
    owner = alice.identity.user_id
    alice.add("I work as a teacher")
    alice.add("I work as a translator")
    found = [one.words for one in site.get("search", q="What is my work?", **whose(alice)).find("li", class_="item")]
    assert ["contested by the newer: I work as a translator", "contested by the older: I work as a teacher"] == sorted(
        re.search(r"contested by the .*?: I work as a \w+", one)[0] for one in found
    )
    page = site.get("contested", **whose(alice))
    assert "Pair 1 of 1" in shown(page)
    [form] = page.find("form", class_="decide")
    fields = {one.attributes["name"]: one.attributes["value"] for one in form.find("input")}
    assert ["1", "2", "3"] == [button.attributes["data-key"] for button in form.find("button")]
    site.post("contested", owner=owner, **{**fields, "choice": choice})
    live = [memory.content for memory in alice.page().memories]
    assert len(live) == 2 if left == "both" else live == [f"I work as a {left}"]
    assert "No memories contradict" in shown(site.get("contested", **whose(alice)))


def test_pairs_that_are_settled_along_with_one_are_told(site, alice):
    for text in ("I work as a teacher", "I work as a translator", "I work as a carpenter"):
        alice.add(text)
    page = site.get("contested", **whose(alice))
    assert "Pair 1 of 3" in shown(page)
    [form] = page.find("form", class_="decide")
    fields = {one.attributes["name"]: one.attributes["value"] for one in form.find("input")}
    done = site.post("contested", owner=alice.identity.user_id, **{**fields, "choice": "newer"})
    assert "1 other pair of the one that ends is settled with it" in shown(done)
    assert "Pair 1 of 1" in shown(done)
    [left] = done.find("form", class_="decide")
    pair = {one.attributes["name"]: one.attributes["value"] for one in left.find("input")}
    reason = alice.get(pair["newer"]).judgement
    assert (reason.evidence == pair["older"]) == ("because" in shown(done)), "the reason is that of the pair"


def test_what_was_learnt_waits_for_review_and_stands_at_its_message(site, alice):
    with alice.conversation("cli:alice") as talk:
        talk.user("My sister Lena lives in Ghent")
        talk.assistant("Noted.")
    with alice.conversation("cli:other") as talk:
        talk.user("My cat is called Mitzi")
    owner = alice.identity.user_id
    site.post("jobs/run", owner="", job="extraction")
    waiting = until(lambda: len(alice.proposals(user_id=owner)) == 2 and alice.proposals(user_id=owner))
    lena = next(one for one in waiting if "Lena" in one.content)
    cat = next(one for one in waiting if "Mitzi" in one.content)
    assert "My sister Lena lives in Ghent" in shown(site.get("review"))
    for form in site.get("review").find("form", class_="decide"):  # Enter in its field presses its own first button
        assert 1 == len(form.find("input", name="id"))
        assert "chosen=" in form.find("input", name="back")[0].attributes["value"]
        assert "approve" == form.find("button")[0].attributes["value"]
    page = site.post("review", owner="", id=lena.id, choice="approve", content="")
    assert "approved, inserted: My sister Lena" in shown(page)
    drafts = {one.attributes["data-draft"] for one in page.find("input", name="content")}  # each in a form of its own
    assert {cat.id} == drafts & {cat.id, lena.id}
    page = site.post("review", owner="", id=cat.id, choice="reject", content="")
    assert "not proposed again: My cat is called Mitzi" in shown(page)
    assert ["My sister Lena lives in Ghent"] == [memory.content for memory in alice.page().memories]
    page = site.get("conversations/thread", id="cli:alice", **whose(alice))
    [first, second] = page.find("li", class_="item")
    assert "learnt: My sister Lena lives in Ghent" in first.words
    assert "learnt" not in second.words
    assert "cli:alice" in shown(site.get("conversations", **whose(alice)))


def test_a_note_that_is_changed_keeps_its_settings(site, alice):
    owner = alice.identity.user_id
    alice.put_note("a", "one", is_searched=True, expire_after_s=86_400)
    alice.put_note("b", {"dark": True}, expire_after_access_s=7200)
    before = alice.note("a").expire_time
    site.post("notes/put", owner=owner, path="a", text="two", revision="1")
    site.post("notes/put", owner=owner, path="b", text='{"dark": false}', revision="1")
    one, other = alice.note("a"), alice.note("b")
    assert ("two", True) == (one.text, one.is_searched)
    assert abs((one.expire_time - before).total_seconds()) < 60
    assert ({"dark": False}, 7200) == (other.value, other.expire_after_access_s)
    assert "not JSON" in shown(site.post("notes/put", owner=owner, status=400, path="b", text="{", revision="2"))


def test_a_note_is_the_one_whose_path_was_asked_for(site, alice):
    alice.put_note("runbook", "the host's")
    alice.put_note("runbook ", "another one")
    page = site.get("notes", **whose(alice))
    links = [one.attributes["href"] for one in page.find("a", class_="open")]
    told = {shown(read(site.http.get(f"{site.origin}{link}").text)).count("another one") > 0 for link in links}
    assert {True, False} == told
    pressed(site, site.get("notes/delete", path="runbook ", **whose(alice)), "Erase for good")
    assert ["runbook"] == [one.path for one in alice.all_notes()]


def test_who_wrote_something_is_shown_next_to_who_it_says_it_was(site, inspected, alice):
    chat = f"chat-{alice.identity.user_id[:40]}"
    with inspected.client("mallory", chat) as mallory:
        mallory.append("plans", [MessageDraft(content="I owe Mallory 5000", name="alice")], shared=True)
        mallory.set_summary("plans", "They agreed", shared=True)
    page = site.get("conversations/thread", id="plans", chat=chat, agent="default", shared="1")
    [item] = page.find("li", class_="item")
    assert {"alice", "mallory"} <= {name.words for name in item.find("bdi", class_="name")}
    assert "mallory" in [one.words for summary in page.find("summary") for one in summary.find("bdi")]


def test_a_conversation_is_erased_after_a_look(site, alice):
    alice.append("plans", [MessageDraft(content=f"Message {n} " + "long " * 600) for n in range(3)])
    page = site.get("conversations/thread", id="plans", **whose(alice))
    assert 3 == len([one for one in page.find("a") if one.words == "show all"])
    second = alice.messages("plans").messages[1]
    whole = site.get("conversations/message", id="plans", message=second.id, **whose(alice))
    assert f"Message 1 {'long ' * 600}".strip() in shown(whole)
    alice.set_working_memory("It is about the summer", thread_id="plans")
    page = site.get("conversations/delete", id="plans", **whose(alice))
    assert "3 messages would be erased" in shown(page)
    assert "its working memory" in shown(page)
    assert 3 == len(alice.messages("plans").messages)
    pressed(site, page, "Erase for good")
    assert () == alice.threads().threads


def test_notes_are_shown_written_and_erased_with_their_versions(site, alice):
    owner = alice.identity.user_id
    site.post("notes/put", owner=owner, path="plans/summer", text="\nTwo weeks", revision="0")
    site.post("notes/put", owner=owner, path="plans/summer", text="\nThree weeks", revision="1")
    note = alice.note("plans/summer")
    assert ("\nThree weeks", 2) == (note.text, note.revision)
    same = site.post("notes/put", owner=owner, path="plans/summer", text="\nThree weeks", revision="2")
    assert "it says that already" in shown(same)
    page = site.get("notes/one", path="plans/summer", **whose(alice))
    assert page.find("textarea", id="text")[0].text.endswith("\n\nThree weeks")  # HTML drops the first line's end
    assert "Two weeks" in shown(site.get("notes/one", path="plans/summer", revision="1", **whose(alice)))
    crossed = site.post("notes/put", owner=owner, status=409, path="plans/summer", text="late", revision="1")
    assert ("changed meanwhile" in shown(crossed), "late") == (True, crossed.find("textarea")[0].text.strip())
    there = site.post("notes/put", owner=owner, status=409, path="plans/summer", text="new", revision="0")
    assert ("already" in shown(there), "new") == (True, there.find("textarea", id="text")[0].text.strip())
    wrong = site.post("notes/put", owner=owner, status=400, path="/a//b", text="typed", revision="0")
    assert "typed" in wrong.find("textarea", id="text")[0].text
    old = site.get("notes/one", path="plans/summer", revision="1", **whose(alice))
    assert "an old one" in shown(old)
    assert "2" == old.find("input", name="revision")[0].attributes["value"]
    site.post("notes/put", owner=owner, path="plans/summer", text=old.find("textarea")[0].text, revision="2")
    assert "Two weeks" == alice.note("plans/summer").text.strip()
    alice.put_note("long", "word " * 2000)
    assert "show all" in shown(site.get("notes/one", path="long", **whose(alice)))
    assert "plans/summer" in shown(site.get("notes", prefix="plans/", **whose(alice)))
    page = site.get("notes/delete", path="plans/summer", **whose(alice))
    assert "with its 2 former versions" in shown(page)
    pressed(site, page, "Erase for good")
    assert ["long"] == [one.path for one in alice.all_notes()]
