"""The inspector as a browser without JavaScript meets it: who gets in, what each page shows, what each form does."""

from __future__ import annotations

import re
import stat
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from memory_client import GrantSpec, MessageDraft, check_permissions

from memoryd.inspector.app import HEADERS
from memoryd.inspector.drawing import lines
from memoryd.inspector.entry import Entry
from memoryd.inspector.figures import Figures, Reading, parse, quantile
from memoryd.inspector.graph import Person, drawn
from memoryd.inspector.shown_text import MOST_SHOWN, as_block, as_line, in_words
from memoryd.inspector.view import PAGES
from tests.doors import NO_MODEL
from tests.support import Daemon, running, short_folder, until
from tests.web_helpers import Inspector, hostile, inspecting, put_everywhere, read, started

CONFIG = '[metrics]\nenabled = true\n[memory]\nextraction_review = true\n[backup]\ndirectory = "{folder}"\n'
OWNER = {"agent": "default", "user": "alice"}


@pytest.fixture(scope="module")
def served():
    with short_folder() as folder, short_folder() as backups:
        with running(folder, config=CONFIG.format(folder=backups)) as daemon:
            yield daemon


@pytest.fixture(scope="module")
def site(served):
    with inspecting(served) as inspector:
        yield inspector


@pytest.fixture
def alice(served, request):
    """A client of a user of this test's own."""
    with served.client(f"alice-{request.node.name[:60]}") as client:
        yield client


def whose(client) -> dict[str, str]:
    return {"agent": "default", "user": client.identity.user_id}


def shown(page) -> str:
    [main] = page.find("main")
    return main.words


def test_the_link_works_once_and_nothing_without_it(served):
    with inspecting(served) as inspector:
        used = httpx.get(inspector.link)
        assert (403, True) == (used.status_code, "was used" in used.text)
        for path in ("", "/memories", "/static/style.css", "/figures"):
            assert 403 == httpx.get(f"{inspector.base}{path}/"[: -1 if path else None]).status_code
        assert 403 == httpx.get(inspector.origin).status_code
        assert 200 == inspector.http.get(f"{inspector.base}/").status_code


def test_looking_at_the_link_does_not_use_it_up(served):
    with started(served) as (link, _):
        assert link.startswith("http://127.0.0.1:")
        assert 403 == httpx.head(link).status_code
        assert 403 == httpx.get(link[:-1]).status_code
        assert 303 == httpx.get(link).status_code


def test_the_link_can_go_to_a_file_of_this_user_alone(served, tmp_path):
    place = tmp_path / "link"
    place.write_text("old")
    place.chmod(0o644)
    with started(served, "--link-file", str(place), says=False) as (_, process):
        link = until(lambda: place.exists() and place.read_text().startswith("http") and place.read_text().strip())
        assert (0o600, 303) == (stat.S_IMODE(place.stat().st_mode), httpx.get(link).status_code)
        process.terminate()
        assert "" == process.stdout.read()


def test_it_listens_on_a_unix_socket_too(served, tmp_path):
    path = tmp_path / "inspect.sock"
    with started(served, "--listen", f"unix:{path}") as (link, _):
        assert 0o600 == stat.S_IMODE(path.stat().st_mode)
        address = re.search(r"/enter/\S+", link)[0]
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as http:
            answer = http.get(f"http://localhost:8642{address}", follow_redirects=True)
            assert (200, "Overview") == (answer.status_code, read(answer.text).find("h1")[0].words)
    assert not path.exists()


@pytest.mark.parametrize("where", ["0.0.0.0:0", "192.0.2.1:80", "example.com:80", "unix:relative"])
def test_it_listens_for_no_other_host(served, where):
    with started(served, "--listen", where) as (said, process):
        assert ("", 2) == (said, process.wait(30))


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"}, {"Host": "127.0.0.1.evil.example"}, {"Host": "127.0.0.1:1"}, {"Host": "127.0.0.1"},
        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1"},
    ],
)  # fmt: skip
def test_a_request_that_another_page_could_cause_is_refused(site, headers):
    assert 403 == site.http.get(f"{site.base}/", headers=headers).status_code
    assert 403 == site.http.post(f"{site.base}/jobs/run", headers=headers, data={"job": "gc"}).status_code


def test_a_form_needs_the_token_of_this_run(site, alice):
    kept = alice.add("I keep bees").memory
    for token in ("", "x" * 32, "é"):
        answer = site.http.post(
            f"{site.base}/memories/{kept.id}/delete", params=whose(alice), data={"csrf": token},
            headers={"Origin": site.origin},
        )  # fmt: skip
        assert 400 == answer.status_code
    crossed = site.http.post(f"{site.base}/jobs/run", headers={"Sec-Fetch-Site": "same-site"}, data={"job": "gc"})
    assert 403 == crossed.status_code
    assert [kept.id] == [memory.id for memory in alice.pages()]


def test_every_answer_says_that_nothing_else_may_run(site):
    for path in ("", "memories", "nothing/there", "static/style.css", "static/app.py", "memories/zzzzzzzz?user=alice"):
        headers = site.http.get(f"{site.base}/{path}").headers
        assert HEADERS.items() <= dict(zip(HEADERS, [headers.get(name, "") for name in HEADERS], strict=True)).items()
        assert "unsafe" not in headers["content-security-policy"]
    assert {"HttpOnly", "SameSite=strict"} <= {part.strip() for part in _cookie(site).split(";")}


def _cookie(site: Inspector) -> str:
    [cookie] = site.http.cookies.jar
    assert cookie.path == site.base.removeprefix(site.origin)  # so no other server of this machine is sent it
    return "; ".join(["HttpOnly" if cookie.has_nonstandard_attr("HttpOnly") else "", "SameSite=strict"])


def test_a_body_that_is_too_large_is_refused(site):
    answer = site.http.post(f"{site.base}/notes/put", headers={"Origin": site.origin}, content=b"x" * (5 << 20))
    assert 413 == answer.status_code


def test_every_page_is_there_and_has_one_heading(site, alice):
    alice.add("my wife Sarah likes Italian food")
    for path, name, of_owner in PAGES:
        page = site.get(path, **(whose(alice) if of_owner else {}))
        assert 1 == len(page.find("h1")), name
        current = [one.words for one in page.find("a") if one.attributes.get("aria-current") == "page"]
        assert [name] == current
        for field in page.find("input") + page.find("textarea") + page.find("select"):
            if field.attributes.get("type") not in {"hidden", "checkbox"}:
                assert page.find("label", for_=field.attributes["id"]), field.attributes


def test_a_page_of_an_owner_asks_whose_it_shall_show(site):
    assert "Choose one in the overview" in shown(site.get("memories"))
    assert "choose whose memory" in shown(site.get("memories/abcdefgh", 400))


def test_the_overview_tells_who_has_how_much(site, alice):
    alice.add("I keep bees")
    alice.append("t", [MessageDraft(content="Hello")])
    page = site.get("")
    [row] = [row for row in page.find("tr") if alice.identity.user_id[:40] in row.words]
    assert ["1", "+1", "1", "+1"] == [cell.words for cell in row.find("td", class_="n")][:4]


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


def test_a_grant_shows_what_it_wrote_and_is_revoked_and_cleaned_up(site, served, alice):
    owner = alice.identity.user_id
    spec = GrantSpec(user_id=owner, permissions=check_permissions(["add"]), label="research agent")
    status = alice.open_sandbox(spec)
    from memory_client import MemoryClient

    with MemoryClient(f"unix://{status.directory}/memory.sock", user_id="", chat_id="", agent_id="") as inside:
        inside.add("The hotel is booked")
    grant_id = status.grant.id
    assert "research agent" in shown(site.get("grants"))
    assert "The hotel is booked" in shown(site.get(f"grants/{grant_id}"))
    assert "was revoked" in shown(site.post(f"grants/{grant_id}/revoke", owner=""))
    assert "1 memories came through it" in shown(site.post(f"grants/{grant_id}/clean", owner=""))
    site.post(f"grants/{grant_id}/clean", owner="", sure="1")
    assert () == alice.page().memories
    assert "there is no grant" in shown(site.get("grants/zzzzzzzz", 404))


def test_jobs_are_run_and_their_runs_are_told(site):
    page = site.post("jobs/run", owner="", job="gc", dry_run="1")
    assert "gc is tried" in shown(page)
    until(lambda: "done" in shown(site.get("jobs", job="gc")))
    assert "(tried)" in shown(site.get("jobs", job="gc"))
    assert "Runs of gc" in shown(site.get("jobs", job="gc"))


def test_backups_are_shown_with_their_proof(site, alice):
    alice.add("I keep bees")
    page = until(lambda: (found := site.get("backups")).find("tr", class_="item") and found)
    assert "not yet" in shown(page)
    site.post("jobs/run", owner="", job="backup")
    assert until(lambda: "up to" in shown(site.get("backups")))


def test_the_end_of_the_audit_log_is_shown_filtered_and_followed(site, alice):
    kept = alice.add("I keep bees").memory
    rows = site.get("audit", user_id=alice.identity.user_id, rpc="addmemory").find("tr", class_="item")
    assert 1 == len(rows)
    assert kept.id[:8] in rows[0].words
    assert 1 == len(site.get("audit", id=kept.id, outcome="OK").find("tr", class_="item"))
    assert "nothing like that" in shown(site.get("audit", user_id="nobody-at-all"))
    metas = site.get("audit", follow="1").find("meta")
    [refresh] = [one for one in metas if one.attributes.get("http-equiv") == "refresh"]
    assert "2" == refresh.attributes["content"]


def test_figures_are_plotted_since_the_start(site, alice):
    alice.search("anything")
    page = until(lambda: (found := site.get("figures")).find("path", class_="line") and found)
    assert page.find("svg", class_="plot")


def test_without_a_daemon_the_command_says_so_and_a_page_too(folder, tmp_path):
    daemon = Daemon(folder)
    with started(daemon) as (said, process):
        assert ("", 1) == (said, process.wait(30))
    with running(folder, config='[embedding]\nprovider = "none"\n') as daemon, inspecting(daemon) as inspector:
        assert "No backup is written" in shown(inspector.get("backups"))
        assert until(lambda: "metrics.enabled" in shown(inspector.get("figures")))
        daemon.kill()
        assert "daemon is away" in shown(inspector.get("", 503))


def test_hostile_texts_are_shown_as_data_on_every_page(folder):
    with running(folder, config=NO_MODEL) as daemon, daemon.client("alice") as alice, inspecting(daemon) as site:
        look_at_hostile(site, alice)


def look_at_hostile(site, alice) -> None:
    texts = hostile(100)  # a browser sees 300 in test_inspector_browser
    put = put_everywhere(alice, texts)
    assert min(put.values()) > 30, put
    mine = whose(alice)
    pages = [
        *_all(site, "memories", mine), *_all(site, "notes", mine), *_all(site, "timeline", mine),
        *_all(site, "people", mine), *_all(site, "conversations/thread", {"id": "talk", **mine}),
        site.get("search", q=texts[0], **mine), site.get("context", prompt="x", thread="talk", **mine),
        site.get("contested", **mine), site.get("conversations", **mine), site.get("audit"), site.get(""),
    ]  # fmt: skip
    for page in pages:
        for letter in "\u202e\u202d\u2066\u2067\u2068\u202b\x1b\u200b\ufeff":
            assert all(letter not in one.text for one in page.all() if one.tag != "textarea"), letter
    for text in texts[:25]:
        site.get("search", q=text, **mine)
        if len(text) < 60:
            site.get("memories", tag=text, **mine)
    told = " ".join(shown(page) for page in pages)
    assert "U+202E" in told
    assert "<script>window.pwned = 1</script>" in told


def _all(site, path: str, params: dict[str, str]):
    """All pages of a list, one after the other."""
    page = site.get(path, **params)
    while True:
        yield page
        following = page.find("a", data_key="n")
        if not following:
            return
        page = read(site.http.get(f"{site.origin}{following[0].attributes['href']}").text)


def test_marks_stand_for_what_cannot_be_seen():
    assert '<bdi class="text">a<span class="mark" title="U+202E right-to-left override">U+202E</span>b</bdi>' == str(
        as_block("a\u202eb")
    )
    assert "<b>" not in as_block("<b>\u200b")
    assert "می\u200cخواهم" in as_block("می\u200cخواهم")
    assert "👨\u200d👩\u200d👧" in as_line("👨\u200d👩\u200d👧")
    assert 52 == as_block("a" + "\u0301" * 60).count("mark")
    assert "a\nb\tc" in as_block("a\nb\tc")
    assert "U+000A" in as_line("a\nb")
    assert "a[U+202E]<b" == in_words("a\u202e<b", 40)
    assert "…</bdi>" == str(as_block("x" * (MOST_SHOWN + 1), MOST_SHOWN))[-7:]
    assert "…" not in as_block("x" * MOST_SHOWN, MOST_SHOWN)


def test_a_picture_holds_names_as_text():
    people = [Person("a", '</text><script>"', "/x?a=1&b=2", "\u202ewife", 3), Person("b", "Tom", "/y")]
    picture = str(drawn("<alice>", people, {("a", "b"): 2}))
    assert "<script" not in picture
    assert "/x?a=1&amp;b=2" in picture
    assert "[U+202E]wife" in picture
    assert picture == str(drawn("<alice>", people, {("a", "b"): 2}))
    numbers = [float(one) for one in re.findall(r'c[xy]="(-?\d+)"', picture)]
    assert all(0 <= number <= 760 for number in numbers)


def test_figures_are_read_and_their_quantiles_are_those_of_prometheus():
    text = 'a_bucket{le="0.1"} 2\na_bucket{le="1.0"} 4\na_bucket{le="+Inf"} 4\nb{x="q\\"}"} 3\n# HELP\nbroken{\n'
    found = parse(text)
    assert 3 == found["b", (("x", 'q\\"}'),)]
    reading = Reading(datetime.now(UTC), found)
    assert [(0.1, 2.0), (1.0, 4.0), (float("inf"), 4.0)] == reading.buckets("a")
    assert 0.05 == quantile([], reading.buckets("a"), 0.25)
    assert 0.55 == pytest.approx(quantile([], reading.buckets("a"), 0.75))
    assert quantile(reading.buckets("a"), reading.buckets("a"), 0.5) is None
    figures = Figures()
    now = datetime.now(UTC)
    for n, value in enumerate((1.0, 4.0, 2.0)):  # the last: it was started again
        figures.readings.append(Reading(now + timedelta(seconds=5 * n), {("c", ()): value}))
    assert [0.6, None] == figures.rates("c")
    assert [4.0, 2.0] == figures.levels("c")


def test_a_plot_has_a_scale_and_gaps():
    times = [datetime.now(UTC) + timedelta(seconds=n) for n in range(4)]
    picture = str(lines(times, [("a", [1.0, None, 3.0, 7.0]), ("<b>", [0.0] * 4)], "ms", "how long"))
    assert "10 ms" in picture
    assert "<b>" not in picture
    [path] = re.findall(r'line-1" d="([^"]+)"', picture)
    assert 2 == path.count("M")
    assert "Nothing was measured" in lines(times[:1], [("a", [1.0])], "", "")


def test_a_host_of_a_request_is_ours_or_not():
    entry = Entry(8642)
    for host, ours in (
        ("127.0.0.1:8642", True), ("localhost:8642", True), ("[::1]:8642", True), ("127.0.0.1", False),
        ("localhost.evil:8642", False), ("", False), ("127.0.0.1:86420", False), ("[::1]", False),
    ):  # fmt: skip
        assert ours == entry.is_ours(host), host
    assert Entry(None).is_ours("localhost:1")
    assert Entry(None).is_ours("localhost")
    assert not Entry(None).is_ours("evil")
