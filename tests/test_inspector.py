"""The inspector as a browser without JavaScript meets it: who gets in, and the pages of the daemon."""

from __future__ import annotations

import re
import socket
import stat

import httpx
import pytest
from memory_client import GrantSpec, MemoryClient, MessageDraft, check_permissions

from memoryd.inspector.app import HEADERS
from memoryd.inspector.view import PAGES
from tests.doors import NO_MODEL
from tests.support import Daemon, running, until
from tests.web_helpers import csrf, hostile, inspecting, pressed, put_everywhere, read, shown, started, whose


@pytest.fixture
def alice(inspected, request):
    """A client of a user of this test's own."""
    with inspected.client(f"alice-{request.node.name[:60]}") as client:
        yield client


def test_the_link_works_once_and_nothing_without_it(inspected):
    with inspecting(inspected) as inspector:
        used = httpx.get(inspector.link)
        assert (403, True) == (used.status_code, "was used" in used.text)
        for path in ("", "/memories", "/static/style.css", "/figures"):
            assert 403 == httpx.get(f"{inspector.base}{path}/"[: -1 if path else None]).status_code
        assert 403 == httpx.get(inspector.origin).status_code
        assert 200 == inspector.http.get(f"{inspector.base}/").status_code


def test_looking_at_the_link_does_not_use_it_up(inspected):
    with started(inspected) as (link, _):
        assert link.startswith("http://127.0.0.1:")
        assert 403 == httpx.head(link).status_code
        assert 403 == httpx.get(link[:-1]).status_code
        assert 303 == httpx.get(link).status_code


def test_the_link_can_go_to_a_file_of_this_user_alone(inspected, tmp_path):
    place = tmp_path / "link"
    with started(inspected, "--link-file", str(place), says=False) as (_, process):
        link = until(lambda: place.exists() and place.read_text().startswith("http") and place.read_text().strip())
        assert (0o600, 303) == (stat.S_IMODE(place.stat().st_mode), httpx.get(link).status_code)
        process.terminate()
        assert "" == process.stdout.read()
    assert not place.exists()
    place.write_text("precious")
    with started(inspected, "--link-file", str(place)) as (said, process):
        assert ("", 2, "precious") == (said, process.wait(30), place.read_text())


def test_it_listens_on_a_unix_socket_too(inspected, tmp_path):
    path = tmp_path / "inspect.sock"
    with started(inspected, "--listen", f"unix:{path}") as (link, _):
        assert 0o600 == stat.S_IMODE(path.stat().st_mode)
        address = re.search(r"/enter/\S+", link)[0]
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as http:
            answer = http.get(f"http://localhost:8642{address}", follow_redirects=True)
            assert (200, "Overview") == (answer.status_code, read(answer.text).find("h1")[0].words)
    assert not path.exists()


def test_it_ends_in_good_order_whenever_it_is_told_to(inspected, tmp_path):
    path = tmp_path / "inspect.sock"
    with started(inspected, "--listen", f"unix:{path}") as (link, process):
        assert link
        process.terminate()  # as early as anyone can
        assert 0 == process.wait(30)
    assert not path.exists()


def test_another_address_of_loopback_is_served(inspected):
    with started(inspected, "--listen", "127.0.0.2:0") as (link, _):
        assert link.startswith("http://127.0.0.2:")
        assert 200 == httpx.get(link, follow_redirects=True).status_code


@pytest.mark.parametrize("where", ["0.0.0.0:0", "192.0.2.1:80", "example.com:80", "unix:relative"])
def test_it_listens_for_no_other_host(inspected, where):
    with started(inspected, "--listen", where) as (said, process):
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
    [cookie] = site.http.cookies.jar
    assert cookie.path == site.base.removeprefix(site.origin)  # so no other server of this machine is sent it
    assert cookie.has_nonstandard_attr("HttpOnly")
    assert cookie.get_nonstandard_attr("SameSite") == "lax"


def test_a_cookie_of_another_server_of_this_host_shuts_no_one_out(site):
    [ours] = site.http.cookies.jar
    for name in (ours.name[:8], "memoryd_inspector", "memoryd"):
        answer = site.http.get(f"{site.base}/", headers={"Cookie": f"{name}=x; {ours.name}={ours.value}"})
        assert 200 == answer.status_code


def test_no_address_answers_before_the_host_is_looked_at(site):
    answer = site.http.get(f"{site.base}/memories/", headers={"Host": "evil.example"})
    assert (403, HEADERS["Cache-Control"]) == (answer.status_code, answer.headers["cache-control"])
    assert 404 == site.http.get(f"{site.base}/memories/").status_code


def test_a_body_that_is_too_large_is_refused(site):
    answer = site.http.post(f"{site.base}/notes/put", headers={"Origin": site.origin}, content=b"x" * (5 << 20))
    assert 413 == answer.status_code


def test_idle_connections_of_others_shut_no_one_out(inspected):
    with started(inspected) as (link, _):
        host, port = link.split("/")[2].split(":")
        idle = [socket.create_connection((host, int(port))) for _ in range(560)]
        try:
            for _ in range(5):
                assert httpx.get(f"http://{host}:{port}/", timeout=20).status_code == 403
                idle.append(socket.create_connection((host, int(port))))
        finally:
            for one in idle:
                one.close()


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


def test_a_grant_shows_what_it_wrote_and_is_revoked_and_cleaned_up(site, alice):
    owner = alice.identity.user_id
    spec = GrantSpec(user_id=owner, permissions=check_permissions(["add"]), label="research agent")
    status = alice.open_sandbox(spec)
    with MemoryClient(f"unix://{status.directory}/memory.sock", user_id="", chat_id="", agent_id="") as inside:
        kept = inside.add("The hotel is booked").memory.id
    grant_id = status.grant.id
    assert "research agent" in shown(site.get("grants"))
    assert "The hotel is booked" in shown(site.get(f"grants/{grant_id}"))
    assert "Revoke grant" in shown(site.get(f"grants/{grant_id}/revoke"))
    assert "was revoked" in shown(site.post(f"grants/{grant_id}/revoke", owner=""))
    assert "1 memory that came through it is kept" in shown(site.get(f"grants/{grant_id}/clean"))
    assert 1 == len(alice.page().memories)
    assert "The hotel is booked" in shown(site.get(f"grants/{grant_id}/clean"))
    cleaned = pressed(site, site.get(f"grants/{grant_id}/clean"), "Clean up")
    assert "deleted 1 memory that came through it; its messages and notes stay" in shown(cleaned)
    assert () == alice.page().memories
    told = shown(site.get(f"grants/{grant_id}/clean"))
    assert "0 memories that came through it are kept" in told
    assert "1 memory would be erased if you say so" in told
    assert "The hotel is booked" in told
    page = site.get(f"grants/{grant_id}", deleted="1")
    [form] = [one for one in page.find("form") if f"Take back {kept[:8]}" in one.buttons()]
    fields = {one.attributes["name"]: one.attributes["value"] for one in form.find("input")}
    again = site.http.post(f"{site.origin}{form.attributes['action']}", data=fields, follow_redirects=True)
    assert f"took back {kept[:8]}" in again.text
    assert [kept] == [memory.id for memory in alice.page().memories]
    assert "there is no grant" in shown(site.get("grants/zzzzzzzz", 404))


def test_jobs_are_run_and_their_runs_are_told(site):
    page = site.post("jobs/run", owner="", job="gc", dry_run="1")
    assert "gc is tried" in shown(page)
    until(lambda: "done" in shown(site.get("jobs", job="gc")))
    assert "(tried)" in shown(site.get("jobs", job="gc"))
    assert "Runs of gc" in shown(site.get("jobs", job="gc"))
    buttons = site.get("jobs").buttons()
    assert {"Run gc", "Try gc", "Run compaction"} <= buttons.keys()
    assert "Try compaction" not in buttons


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
    assert "Nothing like that is in the end" in shown(site.get("audit", user_id="nobody-at-all"))
    followed = site.get("audit", follow="1", rpc="addmemory")
    assert not followed.find("main")[0].find("input"), "what is typed would be gone with the next look"
    assert "; only rpc" in shown(followed)
    metas = followed.find("meta")
    [refresh] = [one for one in metas if one.attributes.get("http-equiv") == "refresh"]
    assert "2" == refresh.attributes["content"]


def test_figures_are_plotted_while_someone_looks(site, alice):
    alice.search("anything")
    alice.add("I keep bees")
    alice.context("x")
    drawn = {"line-1", "line-2", "line-3"}

    def looks():
        page = site.get("figures")
        found = [one.attributes["class"].split()[1] for one in page.find("path", class_="line")]
        return page if drawn <= set(found) and len(found) > 11 else None

    page = until(looks)
    assert page, "a figure is not there"
    assert 8 == len(page.find("figure"))


@pytest.mark.parametrize(
    ("path", "params", "said"),
    [
        ("memories", {"until": "9999-12-31"}, "must be a day"), ("timeline", {"since": "0001-01-01"}, "must be a day"),
        ("context", {"prompt": "x", "tokens": "1" * 31}, "whole number"),
        ("context", {"prompt": "x", "tokens": "-1"}, "whole"), ("search", {"q": "x" * 9000}, "“Question” has 9000"),
        ("memories", {"tag": "x" * 500}, "“Tag” has 500"), ("notes/one", {"path": "x" * 900}, "“Path” "),
        ("people/" + "x" * 900, {}, "“Name” has 900"), ("memories", {"user": "x" * 900}, "“User” has 900"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_told_and_is_no_fault_of_the_server(site, alice, path, params, said):
    assert said in shown(site.get(path, 400, **{**whose(alice), **params}))


@pytest.mark.parametrize(
    ("path", "typed", "said"),
    [
        ("memories", {"where": "source = web"}, "“Metadata” must have a number, a text in quotes"),
        (
            "memories",
            {"since": "2026-05-02", "until": "2026-04-02"},
            "“Happened to” must be later than “Happened",
        ),
        ("timeline", {"since": "2026-05-02", "until": "2026-04-02"}, "“Stored to” must be later than “Stored from”"),
        ("people", {"name": "Nobody Iknow"}, "known as 'Nobody Iknow'"),
        ("search", {"q": "bees", "why_not": "zz"}, "“Why is this memory not found?” has 2 characters"),
        ("search", {"q": "bees", "why_not": "zzzzzzzzzz"}, "there is no memory zzzzzzzzzz"),
        ("context", {"prompt": "Plan a dinner", "tokens": "many"}, "“Budget in tokens” is 'many'"),
        ("conversations", {"prefix": "x" * 900}, "“Begins with” has 900"),
        ("notes", {"prefix": "x" * 900}, "“Path begins with” is 900"),
        ("review", {"of_user": "x" * 900}, "“Of the user” has 900"),
    ],
)
def test_a_mistake_in_a_form_is_told_over_it_and_what_was_typed_stays(site, alice, path, typed, said):
    alice.add("I keep bees")
    page = site.get(path, 400, **whose(alice), **typed)
    [alert] = page.find("div", role="alert")
    assert said in alert.words
    fields = {one.attributes.get("name"): one for one in page.find("main")[0].all()}
    for name, value in typed.items():
        assert value in {fields[name].attributes.get("value"), fields[name].text.strip()}, name
    assert "Nothing" not in shown(page)
    if "why_not" in typed:
        assert "I keep bees" in shown(page)


def sent(site, path, alice, referer, **fields):
    return site.http.post(
        f"{site.base}/{path}", params=whose(alice), headers={"Referer": referer},
        data={"csrf": csrf(site), **fields}, follow_redirects=True,
    )  # fmt: skip


def test_what_was_typed_into_a_form_that_is_refused_can_be_sent_again(site, alice):
    kept = alice.add("my wife Sarah likes Italian food").memory
    sarah = alice.entity("Sarah").entity
    page = str(httpx.URL(f"{site.base}/people/{sarah.id}", params=whose(alice)))
    for referer, leads in ((page, True), (f"{site.origin}/elsewhere", False), ("http://evil.example/", False)):
        answer = sent(site, f"people/{sarah.id}/rename", alice, referer, name="x" * 900)
        told = read(answer.text)
        assert (400, True) == (answer.status_code, "“Name” has 900" in shown(told))
        assert "x" * 900 == told.find("input", id="name")[0].attributes["value"]
        assert leads == bool(told.find("a", href=page.removeprefix(site.origin)))
    labels = f"memories/{kept.id}/labels"
    answer = sent(site, labels, alice, page, tags="alpha\n" + "b" * 80, category="food", a_line="1")
    told = read(answer.text)
    assert "“Tags” (number 2) is 80 bytes" in shown(told)
    [form] = told.find("main")[0].find("form")
    fields = {one.attributes["name"]: one.attributes["value"] for one in form.find("input")}
    assert ("alpha\n" + "b" * 80, "food") == (form.find("textarea")[0].text.lstrip("\n"), fields["category"])
    done = site.http.post(f"{site.origin}{form.attributes['action']}", data={**fields, "tags": "alpha"})
    assert done.status_code == 303
    assert (("alpha",), "food") == ((again := alice.get(kept.id)).tags, again.category)


def test_a_button_that_is_refused_leads_back_to_its_page(site, alice):
    page = f"{site.base}/grants"
    answer = sent(site, "jobs/run", alice, page, job="none")
    assert (200, page) == (answer.status_code, str(answer.url).partition("?")[0])
    assert "job is 'none'" in shown(read(answer.text))


def test_without_a_daemon_the_command_says_so_and_a_page_too(folder, tmp_path):
    daemon = Daemon(folder)
    with started(daemon) as (said, process):
        assert ("", 1) == (said, process.wait(30))
    with running(folder, config='[embedding]\nprovider = "none"\n') as daemon, inspecting(daemon) as inspector:
        assert "No backup is written" in shown(inspector.get("backups"))
        assert until(lambda: "metrics.enabled" in shown(inspector.get("figures")))
        token = csrf(inspector)
        daemon.kill()
        assert "daemon is away" in shown(inspector.get("", 503))
        told = inspector.http.post(
            f"{inspector.base}/memories?user=alice",
            data={"csrf": token, "content": "I keep bees", "kind": "event"}, follow_redirects=True,
        )  # fmt: skip
        again = read(told.text)
        assert (503, "I keep bees") == (told.status_code, again.find("textarea")[0].text.strip())
        assert "event" == again.find("input", name="kind")[0].attributes["value"]


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
