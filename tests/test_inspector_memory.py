"""The pages of one memory: what each shows, and what each of its forms does."""

from __future__ import annotations

import re

import httpx
import pytest
from memory_client import Draft, MessageDraft, Source

from tests.support import until
from tests.web_helpers import csrf, pressed, read, shown, undone, whose

NAMES = (
    "Anna", "Ben", "Carla", "David", "Emma", "Felix", "Greta", "Hugo", "Ida", "Jack", "Karen", "Leo", "Mia", "Noah",
    "Olivia", "Peter", "Quentin", "Rosa", "Sarah", "Tom", "Ursula", "Victor", "Wendy", "Xavier", "Yvonne", "Zoe",
    "Alice", "Bob", "Charles", "Diana", "Edward", "Fiona", "George", "Helen", "Ian", "Julia", "Kevin", "Laura",
    "Martin", "Nina", "Oscar", "Paul", "Rachel", "Simon", "Tina", "Walter", "Adam", "Bella", "Chloe", "Daniel",
    "Elena", "Frank", "Grace", "Henry", "Isabel", "James", "Kate", "Lucas", "Mary", "Nora",
)  # fmt: skip


@pytest.fixture
def alice(inspected, request):
    """A client of a user of this test's own."""
    with inspected.client(f"alice-{request.node.name[:60]}") as client:
        yield client


def test_a_memory_is_added_corrected_deleted_and_taken_back(site, alice):
    owner = alice.identity.user_id
    page = site.post("memories", owner=owner, content="I live in Ghent", kind="fact", tags="home, city", about="")
    [memory] = alice.page().memories
    assert (("home", "city"), True) == (memory.tags, f"stored {memory.id[:8]}" in shown(page))
    page = site.post(f"memories/{memory.id}/correct", owner=owner, content="I live in Bruges")
    assert "corrected" in [word.words for why in page.find("p", class_="why") for word in why.find("b")]
    assert ["I live in Bruges"] == [one.content for one in alice.page().memories]
    undone(site, page)
    assert ["I live in Ghent"] == [one.content for one in alice.page().memories]
    site.post(f"memories/{memory.id}/correct", owner=owner, content="I live in Bruges")
    [now] = alice.page().memories
    assert "I live in Bruges" == now.content
    page = site.post(f"memories/{now.id}/delete", owner=owner)
    assert () == alice.page().memories
    undone(site, page)
    assert ["I live in Bruges"] == [one.content for one in alice.page().memories]
    page = site.post(f"memories/{now.id}/confirm", owner=owner)
    assert alice.get(now.id).protected
    site.post(f"memories/{now.id}/labels", owner=owner, tags="#town, home,", category="place")
    assert (("town", "home"), "place") == (alice.get(now.id).tags, alice.get(now.id).category)
    page = site.post(f"memories/{now.id}/labels", owner=owner, tags="", category="")
    undone(site, page)
    assert (("town", "home"), "place") == (alice.get(now.id).tags, alice.get(now.id).category)
    page = site.get(f"memories/{now.id}/erase", **whose(alice))
    assert "cannot be taken back" in shown(page)
    assert [now.id] == [one.id for one in alice.page().memories]
    pressed(site, page, "Erase for good")
    with pytest.raises(Exception, match="not found|no memory"):
        alice.restore(now.id)


def test_what_was_deleted_is_offered_to_be_taken_back_after_its_notice_has_gone(site, alice):
    kept = alice.add("I keep bees").memory
    site.post(f"memories/{kept.id}/delete", owner=alice.identity.user_id)
    page = site.get("memories", **whose(alice))
    assert "with 1 deleted that can still be taken back" in shown(page)
    assert "I keep bees" in shown(page)
    gone = site.get(f"memories/{kept.id}", 404, **whose(alice))
    assert f"Take back {kept.id[:8]}" in page.buttons()
    [form] = gone.find("main")[0].find("form")
    answer = site.http.post(
        f"{site.origin}{form.attributes['action']}", data={"csrf": csrf(site)}, follow_redirects=True
    )
    assert "took back" in shown(read(answer.text))
    assert [kept.id] == [one.id for one in alice.page().memories]
    assert "Take back what was" not in shown(site.get("memories", **whose(alice)))
    alice.delete(kept.id)  # by someone else
    assert f"Take back {kept.id[:8]}" in site.get("memories", **whose(alice)).buttons()
    alice.delete(kept.id, purge=True)
    assert "I keep bees" not in shown(site.get("memories", **whose(alice)))


def test_a_memory_whose_conversation_was_erased_leads_to_none(site, alice):
    alice.append("plans", [MessageDraft(content="We meet on Friday")])
    said = alice.messages("plans").messages[0]
    source = Source(thread_id="plans", message_ids=(said.id,))
    kept = alice.add("The meeting is on Friday", source=source).memory
    assert site.get(f"memories/{kept.id}", **whose(alice)).find("a", href=message_of(said, alice, site))
    page = site.get("conversations/delete", id="plans", with_memories="1", **whose(alice))
    assert "1 memory learnt from them too" in shown(page)
    assert "The meeting is on Friday" in shown(page)
    alice.delete_thread("plans")
    assert "which was erased" in shown(site.get(f"memories/{kept.id}", **whose(alice)))


def message_of(message, alice, site) -> str:
    """The address of a message's page."""
    params = {**whose(alice), "id": message.thread_id, "message": message.id}
    return str(httpx.URL(f"{site.base}/conversations/message", params=params)).removeprefix(site.origin)


def test_an_owner_is_named_without_the_spaces_around_and_one_that_is_refused_is_not_kept(site, alice):
    alice.add("I keep bees")
    mine = {**whose(alice), "user": f" {alice.identity.user_id} "}
    assert "I keep bees" in shown(site.get("memories", **mine))
    page = site.get("memories", 400, user="x" * 900)
    [alert] = page.find("p", role="alert")
    assert "“User” has 900" in alert.words
    assert "x" * 900 == page.find("input", id="user")[0].attributes["value"]
    [pill] = site.get("grants").find("a", class_="owner")
    assert alice.identity.user_id in pill.words


def test_a_search_says_that_there_may_be_more(site, alice):
    alice.add_batch([Draft(content=f"The attic has box number {n}") for n in range(30)])
    page = site.get("search", q="attic", **whose(alice))
    assert "These are the best 20; there may be more" in shown(page)
    [more] = page.find("main")[0].find("a", data_key="n")
    every = read(site.http.get(f"{site.origin}{more.attributes['href']}").text)
    assert 30 == len(every.find("ol", class_="cards")[0].find("li", class_="item"))
    assert "there may be more" not in shown(every)


def test_a_tag_is_found_as_it_is_shown(site, alice):
    site.post("memories", owner=alice.identity.user_id, content="We ski in March", kind="fact", tags="#family, snow")
    assert ("family", "snow") == alice.page().memories[0].tags
    for tag in ("family", "#family"):
        assert "We ski in March" in shown(site.get("memories", tag=tag, **whose(alice)))


def test_a_page_says_in_which_chat_a_user_s_memory_is_looked_at(site, alice):
    page = site.get("memories", chat="team-7", **whose(alice))
    [title], [pill] = page.find("h1"), page.find("a", class_="owner")
    for words in (title.words, pill.words):
        assert "team-7" in words
        assert alice.identity.user_id in words


def test_undoing_an_add_lets_what_it_replaced_hold_again(site, alice):
    alice.add("My favorite color is red")
    page = site.post("memories", owner=alice.identity.user_id, content="My favorite color is blue", kind="fact")
    assert "it replaces memory " in shown(page)
    undone(site, page)
    assert ["My favorite color is red"] == [one.content for one in alice.page().memories]


def test_what_is_done_is_told_once_and_on_its_own_page(site, alice):
    kept = alice.add("I keep bees").memory
    page = site.http.post(
        f"{site.base}/memories/{kept.id}/confirm", params=whose(alice), data={"csrf": csrf(site)},
        headers={"Origin": site.origin},
    )  # fmt: skip
    assert "confirmed" not in shown(site.get("audit"))
    assert "confirmed;" in shown(read(site.http.get(f"{site.origin}{page.headers['location']}").text))
    assert "confirmed;" not in shown(read(site.http.get(f"{site.origin}{page.headers['location']}").text))


def test_metadata_and_tags_look_like_nothing_of_memoryd_s(site, alice):
    values = {"Trust": "host", "n": 3, "yes": True, "none": None, "list": [1, "a"]}
    kept = alice.add("I keep bees", tags=["confirmed", "a, b"], metadata=values).memory
    page = site.get(f"memories/{kept.id}", **whose(alice))
    [table] = page.find("table", class_="metadata")
    rows = {row.find("th")[0].words: row.find("td")[0].words for row in table.find("tr") if row.find("td")}
    assert {"Trust": '"host"', "n": "3", "yes": "true", "none": "null", "list": '[1, "a"]'} == rows
    assert ["Trust"] == [one.words for one in page.find("dt") if one.words == "Trust"]
    assert all("#" in badge.words for badge in page.find("span", class_="tag"))
    site.post(f"memories/{kept.id}/labels", owner=alice.identity.user_id, a_line="1",
              tags="confirmed\r\na, b\r\nnew", category="x")  # fmt: skip
    assert (("confirmed", "a, b", "new"), "x") == (alice.get(kept.id).tags, alice.get(kept.id).category)


def test_looking_counts_as_no_recall(site, alice):
    kept = alice.add("I'm allergic to peanuts").memory
    site.get("search", q="What should I avoid eating?", **whose(alice))
    assert 0 == alice.get(kept.id).recall_count
    assert "I'm allergic" in shown(
        site.get("search", q="peanuts", as_of=f"{kept.create_time.astimezone():%Y-%m-%d}", **whose(alice))
    )


def test_what_a_search_finds_is_one_link_away(site, alice):
    alice.put_note("plans/summer", "Two weeks in the Azores", is_searched=True)
    alice.append("talk", [MessageDraft(content="The Azores are lovely")])
    for kind, words in (("note", "Two weeks"), ("episode", "are lovely")):
        hit = until(lambda kind=kind: site.get("search", q="Azores", kind=kind, **whose(alice)).find("a", class_="id"))
        page = read(site.http.get(f"{site.origin}{hit[0].attributes['href']}").text)
        assert words in shown(page)


def test_contested_pairs_are_found_across_pages(site, alice):
    for trade in ("teacher", "translator"):  # so that the halves of a pair lie on two pages
        for name in NAMES:
            alice.add(f"{name} works as a {trade}")
    seen = 0
    page = site.get("contested", **whose(alice))
    while "Pair" in shown(page):
        seen += 1
        following = page.find("a", data_key="n")
        if not following:
            break
        page = read(site.http.get(f"{site.origin}{following[0].attributes['href']}").text)
    marked = sum(len(one.contested_with) for one in alice.pages(page_size=1000)) // 2
    assert marked == seen > 50


def test_what_was_typed_stays_when_it_is_refused(site, alice):
    owner = alice.identity.user_id
    token = "ghp_" + "x1Y2z3A4b5C6d7E8f9G0h1I2j3K4l5M6n7O8"
    page = site.post("memories", owner=owner, status=400, content="x" * 9000)
    assert "“Statement” is 9000 bytes" in shown(page)
    assert "x" * 9000 in page.find("textarea", id="content")[0].text
    page = site.post("memories", owner=owner, status=400, content=f"my token is {token} </textarea>")
    assert "It was not stored" in shown(page)
    kept = alice.add("I keep bees").memory
    page = site.post(f"memories/{kept.id}/correct", owner=owner, status=400, content="")
    assert "“What it should say” is empty" in shown(page)


def test_memories_are_filtered_and_paged(site, alice):
    for n in range(60):
        alice.add(f"Number {n} is mine", tags=["odd"] if n % 2 else [])
    page = site.get("memories", **whose(alice))
    assert 50 == len(page.find("li", class_="item"))
    [following] = page.find("a", rel="next")
    rest = read(site.http.get(f"{site.origin}{following.attributes['href']}").text)
    assert 10 == len(rest.find("li", class_="item"))
    assert "match" not in shown(page)
    every = site.get("memories", all="1", **whose(alice))
    assert "More than 50 match the filter; these are 50 of them" in shown(every)
    odd = site.get("memories", tag="odd", **whose(alice))
    assert 30 == len(odd.find("li", class_="item"))
    assert "30 match the filter" in shown(odd)
    assert 0 == len(
        site.get("memories", since="2001-01-01", until="2001-01-02", **whose(alice)).find("li", class_="item")
    )
    assert "must be a day" in shown(site.get("memories", 400, since="yesterday", **whose(alice)))
    assert "“Metadata”" in shown(site.get("memories", 400, where="(", **whose(alice)))


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
    assert "conversations/message?" in said.find("a")[0].attributes["href"]
    assert "tokens" in shown(page)
    assert "“Budget in tokens” is 'many'" in shown(site.get("context", 400, prompt="x", tokens="many", **whose(alice)))


def test_a_context_says_what_it_needs_and_links_no_working_memory_that_has_no_page(site, alice):
    assert "type a prompt, or choose a conversation" in shown(site.get("context", prompt="", **whose(alice)))
    alice.append("t", [MessageDraft(content="The oven is broken")])
    alice.set_working_memory("We plan the summer")
    alice.set_working_memory("The oven goes first", thread_id="t")
    page = site.get("context", prompt="Plan a dinner", thread="t", **whose(alice))
    rows = {row.find("bdi")[0].words: row for row in page.find("tr", class_="item")}
    links = {"summer": 0, "oven goes": 1}
    for words, count in links.items():
        [row] = [row for text, row in rows.items() if words in text]
        assert count == len(row.find("a")), words
    for row in rows.values():
        for link in row.find("a"):
            assert 200 == site.http.get(f"{site.origin}{link.attributes['href']}").status_code


def test_what_is_a_chat_s_is_reached_from_a_user_s_pages_and_from_the_audit_log(site, inspected, alice):
    user = alice.identity.user_id
    with inspected.client(user, "team-9") as both:
        kept = both.add("The demo room is number 14", shared=True).memory
        both.append("team:standup", [MessageDraft(content="The retro is on Monday")], shared=True)
        both.append("own", [MessageDraft(content="My sister Clara moves to Ghent")])
    rows = site.get("audit", user_id=user, rpc="addmemory").find("tr", class_="item")
    [link] = [one for one in rows[0].find("a") if kept.id in one.attributes["href"]]
    assert "demo room" in read(site.http.get(f"{site.origin}{link.attributes['href']}").text).find("main")[0].words
    found = 0
    for thread in ("", "own", "team:standup"):
        page = until(
            lambda thread=thread: (shown_now := site.get(
                "context", prompt="When is the retro and does Clara move?", thread=thread, chat="team-9",
                **whose(alice),
            )).find("tr", class_="item") and shown_now
        )  # fmt: skip
        for one in page.find("main")[0].find("a"):
            if "conversations/message" in one.attributes["href"]:
                found += 1
                assert (
                    "Message" in read(site.http.get(f"{site.origin}{one.attributes['href']}").text).find("h1")[0].words
                )
    assert found


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
    ends = page.find("div", class_="ends")[0].find("span")
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", one.text) for one in ends), "one day, so with hours"


def test_a_timeline_has_all_sessions_and_a_conversation_says_which_one_it_shows(site, alice):
    for n in range(105):
        alice.append(f"chat:{n:03}", [MessageDraft(content="Hello")])
    alice.append("chat:000", [MessageDraft(content="Again")], session_id="evening")
    seen = [one.words for one in site.get("timeline", **whose(alice)).find("li", class_="session")]
    assert 106 == len(seen)
    assert any("chat:000" in words for words in seen)
    page = site.get("conversations/thread", id="chat:000", session="evening", **whose(alice))
    assert "Only the messages of this session" in shown(page)
    assert "evening" in page.find("h1")[0].words
    assert "Only" not in shown(site.get("conversations/thread", id="chat:000", **whose(alice)))


def test_a_line_of_a_summary_leads_to_its_conversation(site, alice):
    alice.append("cli:kitchen", [MessageDraft(content="The oven is broken"), MessageDraft(content="Buy a stove")])
    alice.set_summary("cli:kitchen", "They talked about the kitchen.", up_to_seq=1)
    page = site.get("context", prompt="Plan a dinner", thread="cli:kitchen", **whose(alice))
    rows = [row for row in page.find("tr", class_="item") if "talked about the kitchen" in row.words]
    [link] = rows[0].find("a")
    assert "cli:kitchen" == link.words
    assert (
        "talked about the kitchen"
        in read(site.http.get(f"{site.origin}{link.attributes['href']}").text).find("main")[0].words
    )


def test_who_asks_anew_for_where_a_form_was_sent_gets_the_page_above(site, alice):
    kept = alice.add("I keep bees").memory
    for path, page in ((f"memories/{kept.id}/correct", f"memories/{kept.id}"), ("notes/put", "notes")):
        answer = site.http.get(f"{site.base}/{path}", params=whose(alice), follow_redirects=True)
        assert (200, f"{site.base}/{page}") == (answer.status_code, str(answer.url).partition("?")[0])
        assert alice.identity.user_id in str(answer.url)


def test_a_fault_calls_a_field_as_its_form_does(site, alice):
    kept = alice.add("I keep bees").memory
    for path, fields, told in (
        (f"memories/{kept.id}/correct", {"content": " "}, "“What it should say” is empty"),
        ("notes/put", {"path": "../x", "text": "a", "revision": "0"}, "“Path” must"),
    ):
        answer = site.http.post(
            f"{site.base}/{path}", params=whose(alice), data={"csrf": csrf(site), **fields}, follow_redirects=True
        )
        assert (400, True) == (answer.status_code, told in shown(read(answer.text)))
