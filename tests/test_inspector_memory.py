"""The pages of one memory: what each shows, and what each of its forms does."""

from __future__ import annotations

import pytest
from memory_client import MessageDraft

from tests.support import until
from tests.web_helpers import read, shown, whose


@pytest.fixture
def alice(inspected, request):
    """A client of a user of this test's own."""
    with inspected.client(f"alice-{request.node.name[:60]}") as client:
        yield client


def test_a_memory_is_added_corrected_deleted_and_taken_back(site, alice):
    owner = alice.identity.user_id
    page = site.post("memories", owner=owner, content="I live in Ghent", kind="fact", tags="home, city", about="")
    [memory] = alice.page().memories
    assert (("home", "city"), True) == (memory.tags, f"inserted {memory.id[:8]}" in shown(page))
    page = site.post(f"memories/{memory.id}/correct", owner=owner, content="I live in Bruges")
    assert "corrected" in [word.words for why in page.find("p", class_="why") for word in why.find("b")]
    [now] = alice.page().memories
    assert "I live in Bruges" == now.content
    page = site.post(f"memories/{now.id}/delete", owner=owner)
    [undo] = [form for form in page.find("form") if form.find("button", data_key="u")]
    assert () == alice.page().memories
    restored = site.http.post(
        f"{site.origin}{undo.attributes['action']}",
        data={"csrf": undo.find("input", name="csrf")[0].attributes["value"]},
    )
    assert (303, ["I live in Bruges"]) == (restored.status_code, [m.content for m in alice.page().memories])
    page = site.post(f"memories/{now.id}/confirm", owner=owner)
    assert alice.get(now.id).protected
    page = site.post(f"memories/{now.id}/labels", owner=owner, tags="", category="place")
    assert ((), "place") == (alice.get(now.id).tags, alice.get(now.id).category)
    site.post(f"memories/{now.id}/delete", owner=owner, purge="1")
    with pytest.raises(Exception, match="not found|no memory"):
        alice.restore(now.id)


def test_what_was_typed_stays_when_it_is_refused(site, alice):
    owner = alice.identity.user_id
    token = "ghp_" + "x1Y2z3A4b5C6d7E8f9G0h1I2j3K4l5M6n7O8"
    page = site.post("memories", owner=owner, status=400, content="x" * 9000)
    assert "content is 9000 bytes" in shown(page)
    assert "x" * 9000 in page.find("textarea", id="content")[0].text
    page = site.post("memories", owner=owner, status=400, content=f"my token is {token} </textarea>")
    assert "It was not stored" in shown(page)
    kept = alice.add("I keep bees").memory
    page = site.post(f"memories/{kept.id}/correct", owner=owner, status=400, content="")
    assert "content" in shown(page)


def test_memories_are_filtered_and_paged(site, alice):
    for n in range(60):
        alice.add(f"Number {n} is mine", tags=["odd"] if n % 2 else [])
    page = site.get("memories", **whose(alice))
    assert 50 == len(page.find("li", class_="item"))
    [following] = page.find("a", rel="next")
    rest = read(site.http.get(f"{site.origin}{following.attributes['href']}").text)
    assert 10 == len(rest.find("li", class_="item"))
    assert 30 == len(site.get("memories", tag="odd", **whose(alice)).find("li", class_="item"))
    assert 0 == len(
        site.get("memories", since="2001-01-01", until="2001-01-02", **whose(alice)).find("li", class_="item")
    )
    assert "must be a day" in shown(site.get("memories", 400, since="yesterday", **whose(alice)))
    assert "filter.where" in shown(site.get("memories", 400, where="(", **whose(alice)))


def test_a_search_shows_its_legs_the_floor_and_why_not(site, alice):
    for text in ("I'm allergic to peanuts", "The printer is on the third floor", "Tom plays the violin"):
        alice.add(text)
    far = alice.add("Water boils at 100 degrees").memory
    page = site.get("search", q="What should I avoid eating?", why_not=far.id, **whose(alice))
    [first, *_] = page.find("li", class_="item")
    assert "I'm allergic to peanuts" in first.words
    assert {"meaning", "words"} & {cell.words for cell in first.find("th", scope="row")}
    assert first.find("svg", class_="bar")
    assert "Below the floor" in shown(page)
    assert f"Why not {far.id[:8]}" in shown(page).replace(" ?", "")
    assert "Nothing answers that" in shown(site.get("search", q="xyzzy", **whose(alice)))


def test_a_context_names_what_each_line_is_from(site, alice):
    kept = alice.add("I'm allergic to peanuts").memory
    alice.append("t", [MessageDraft(content="The oven is broken")])
    page = site.get("context", prompt="Plan a dinner", thread="t", tokens="500", **whose(alice))
    rows = {row.find("bdi")[0].words: row for row in page.find("tr", class_="item")}
    line = next(row for text, row in rows.items() if "peanuts" in text)
    assert f"/memories/{kept.id}?" in line.find("a")[0].attributes["href"]
    said = next(row for text, row in rows.items() if "oven" in text)
    assert "conversations/thread?" in said.find("a")[0].attributes["href"]
    assert "tokens" in shown(page)
    assert "tokens is 'many'" in shown(site.get("context", 400, prompt="x", tokens="many", **whose(alice)))


def test_a_timeline_tells_memories_and_sessions_by_day(site, alice):
    alice.add("My favorite color is red")
    alice.add("My favorite color is blue")
    alice.append("cli:alice", [MessageDraft(content="Hello")])
    page = site.get("timeline", **whose(alice))
    text = shown(page)
    assert "session in cli:alice" in text
    assert "replaced by" in text
    assert 3 == len(page.find("li", class_="item"))
    assert "Nothing came" in shown(site.get("timeline", until="2001-01-01", **whose(alice)))


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
    [undo] = [form for form in page.find("form") if form.find("button", data_key="u")]
    assert sarah.id == alice.entity("Sally Jones").entity.id
    token = undo.find("input", name="csrf")[0].attributes["value"]
    site.http.post(f"{site.origin}{undo.attributes['action']}", data={"csrf": token})
    assert sarah.id != alice.entity("Sally Jones").entity.id
    site.post(f"people/{sarah.id}/rename", owner=owner, name="Sarah Smith")
    assert "Sarah Smith" == alice.entity(sarah.id).entity.name
    page = site.post(f"people/{sarah.id}/forget", owner=owner)
    assert "1 memories would be erased" in shown(page)
    assert 2 == len(alice.page().memories)
    site.post(f"people/{sarah.id}/forget", owner=owner, sure="1")
    assert ["Sally Jones plays chess"] == [memory.content for memory in alice.page().memories]


@pytest.mark.parametrize(("choice", "left"), [("newer", "translator"), ("older", "teacher"), ("both", "both")])
def test_a_contested_pair_is_decided(site, alice, choice, left):
    owner = alice.identity.user_id
    alice.add("I work as a teacher")
    alice.add("I work as a translator")
    page = site.get("contested", **whose(alice))
    assert "Pair 1 of 1" in shown(page)
    [form] = page.find("form", class_="decide")
    fields = {one.attributes["name"]: one.attributes["value"] for one in form.find("input")}
    assert ["1", "2", "3"] == [button.attributes["data-key"] for button in form.find("button")]
    site.post("contested", owner=owner, **{**fields, "choice": choice})
    live = [memory.content for memory in alice.page().memories]
    assert len(live) == 2 if left == "both" else live == [f"I work as a {left}"]
    assert "No memories contradict" in shown(site.get("contested", **whose(alice)))


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
    site.post(f"review/{lena.id}", owner="", choice="approve", content="")
    site.post(f"review/{cat.id}", owner="", choice="reject")
    assert ["My sister Lena lives in Ghent"] == [memory.content for memory in alice.page().memories]
    page = site.get("conversations/thread", id="cli:alice", **whose(alice))
    [first, second] = page.find("li", class_="item")
    assert "learnt: My sister Lena lives in Ghent" in first.words
    assert "learnt" not in second.words
    assert "cli:alice" in shown(site.get("conversations", **whose(alice)))


def test_a_conversation_is_erased_after_a_look(site, alice):
    owner = alice.identity.user_id
    alice.append("plans", [MessageDraft(content=f"Message {n} " + "long " * 600) for n in range(3)])
    page = site.get("conversations/thread", id="plans", **whose(alice))
    assert 3 == len([one for one in page.find("a") if one.words == "show all"])
    whole = site.get("conversations/message", id="plans", seq="2", **whose(alice))
    assert "Message 2"[:7] in shown(whole)
    assert len("long " * 600) < len(shown(whole))
    page = site.post("conversations/delete", owner=owner, id="plans")
    assert "3 messages would be erased" in shown(page)
    assert 3 == len(alice.messages("plans").messages)
    site.post("conversations/delete", owner=owner, id="plans", sure="1")
    assert () == alice.threads().threads


def test_notes_are_shown_written_and_erased_with_their_versions(site, alice):
    owner = alice.identity.user_id
    site.post("notes/put", owner=owner, path="plans/summer", text="\nTwo weeks", revision="0")
    site.post("notes/put", owner=owner, path="plans/summer", text="\nThree weeks", revision="1")
    note = alice.note("plans/summer")
    assert ("\nThree weeks", 2) == (note.text, note.revision)
    page = site.get("notes/one", path="plans/summer", **whose(alice))
    assert page.find("textarea", id="text")[0].text.endswith("\n\nThree weeks")  # HTML drops the first line's end
    assert "Two weeks" in shown(site.get("notes/one", path="plans/summer", revision="1", **whose(alice)))
    crossed = site.post("notes/put", owner=owner, path="plans/summer", text="late", revision="1",
                        back=f"{site.base.removeprefix(site.origin)}/notes?agent=default&user={owner}")  # fmt: skip
    assert "revision" in shown(crossed)
    alice.put_note("long", "word " * 2000)
    assert "show all" in shown(site.get("notes/one", path="long", **whose(alice)))
    assert "plans/summer" in shown(site.get("notes", prefix="plans/", **whose(alice)))
    site.post("notes/delete", owner=owner, path="plans/summer", sure="1")
    assert ["long"] == [one.path for one in alice.all_notes()]
