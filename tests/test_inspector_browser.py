"""The inspector in a real browser: by mouse and by keys, on every width, in light and dark, and with hostile texts."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from memory_client import GrantSpec, MemoryClient, check_permissions

from memoryd.inspector.view import PAGES
from tests.doors import NO_MODEL
from tests.support import PATIENCE_S, running, short_folder, until
from tests.web_helpers import chromium, hostile, put_everywhere, started

AXE = Path(__file__).parent.parent / ".venv-web" / "page" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]
CONFIG = '[metrics]\nenabled = true\n[backup]\ndirectory = "{folder}"\n'
OWNER = "agent=default&user=alice"
STATEMENTS = [
    "I'm allergic to peanuts", "my wife Sarah likes Italian food", "Sarah's birthday is on 3 May",
    "My brother Tom lives in Porto", "Tom and Sarah play chess on Sundays", "My favorite color is red",
    "My favorite color is blue", "I work as a teacher", "I work as a translator", "my doctor is Dr. Amina Khan",
    "I prefer tea in the morning", "Our dog is called Biscuit", "my boss Greta Olsen wants the report every Friday",
    "Greta and Tom studied together in Oslo", "My daughter Mia plays the violin", "Mia and Sarah like skating",
    "We want to move to Lisbon next spring", "I don't eat fish", "my sister Lena lives in Ghent",
]  # fmt: skip


def fill(daemon) -> None:
    """Let a memory be as one of a person."""
    with daemon.client("alice") as alice:
        for text in STATEMENTS:
            alice.add(text)
        alice.add("Always answer in metric units", tags=["style"])
        alice.put_note("plans/summer", "Two weeks in the Azores.")
        alice.put_note("plans/summer", "Three weeks in the Azores.\nBook the ferry before May.")
        with alice.conversation("cli:alice") as talk:
            talk.user("The oven is broken, only the stove works")
            talk.assistant("Noted: stove only.")
            talk.user("I started running three times a week")
            talk.assistant("Great habit.")
        alice.run_job("extraction")
        until = datetime.now(UTC) + timedelta(hours=8)
        permissions = check_permissions(["append-only"])
        spec = GrantSpec(user_id="alice", permissions=permissions, label="research agent", expire_time=until)
        opened = alice.open_sandbox(spec)
    with MemoryClient(f"unix://{opened.directory}/memory.sock", user_id="", chat_id="", agent_id="") as inside:
        inside.add("The hotel in Lisbon is booked for three nights")
    with daemon.client("bob") as bob:
        bob.add("Project Atlas ships in June")


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def shown_daemon():
    with short_folder() as folder, short_folder() as backups:
        with running(folder, config=CONFIG.format(folder=backups)) as daemon:
            fill(daemon)
            yield daemon


class Visit:
    """What a browser saw: where it asked for something, and what its console told."""

    def __init__(self, page, base: str) -> None:
        self.page, self.base = page, base
        self.elsewhere: list[str] = []
        self.told: list[str] = []
        origin = "/".join(base.split("/")[:3])
        page.on("request", lambda one: self.elsewhere.append(one.url) if not one.url.startswith(origin) else None)
        page.on("console", lambda one: self.told.append(one.text))
        page.on("pageerror", lambda one: self.told.append(str(one)))
        page.on("dialog", lambda one: self.told.append(one.message))

    def to(self, path: str):
        self.page.goto(f"{self.base}/{path}")
        return self.page

    def press(self, key: str) -> None:
        """Press a key once the page can take it: its script comes after its text."""
        self.page.wait_for_load_state("load")
        self.page.keyboard.press(key)


@contextmanager
def _entered(browser, daemon):
    with started(daemon) as (link, _):
        context = browser.new_context()
        page = context.new_page()
        page.goto(link)
        yield page.url.rstrip("/"), context.storage_state()
        context.close()


@pytest.fixture(scope="module")
def entered(browser, shown_daemon):
    with _entered(browser, shown_daemon) as state:
        yield state


@pytest.fixture
def visit(browser, entered):
    with _visit(browser, entered) as made:
        yield made


@contextmanager
def _visit(browser, entered, **more):
    base, state = entered
    context = browser.new_context(storage_state=state, **{"viewport": {"width": 1280, "height": 850}, **more})
    context.set_default_timeout(PATIENCE_S * 1000)
    made = Visit(context.new_page(), base)
    yield made
    context.close()
    assert ([], []) == (made.elsewhere, made.told)


def addresses(owner: str = OWNER) -> list[str]:
    lists = [f"{path}?{owner}" if of_owner else path for path, _, of_owner in PAGES]
    return [
        *lists,
        f"search?{owner}&q=What+should+I+avoid+eating",
        f"context?{owner}&prompt=Plan+a+dinner&thread=cli:alice",
        f"conversations/thread?{owner}&id=cli:alice",
        f"notes/one?{owner}&path=plans/summer",
    ]


def test_what_is_stored_is_found_corrected_and_undone_by_mouse(visit):
    page = visit.to("")
    page.get_by_role("link", name="alice", exact=True).click()
    page.get_by_label("Search this memory").fill("What should I avoid eating?")
    page.get_by_role("button", name="Search").click()
    assert "I don't eat fish" in page.locator("ol.cards").first.inner_text()
    page.locator("li.item", has_text="I prefer tea").locator("a.id").click()
    page.locator("summary", has_text="Correct").click()
    page.get_by_label("What it should say").fill("I prefer coffee in the morning")
    page.get_by_role("button", name="Correct").click()
    assert "I prefer coffee" in page.locator("article").inner_text()
    page.get_by_role("button", name="Undo").click()
    assert "I prefer tea" in page.locator("article").inner_text()


def test_everything_can_be_done_by_keys(visit):
    page = visit.to(f"memories?{OWNER}")
    visit.press("/")
    page.keyboard.type("Who plays chess?")
    visit.press("Enter")
    page.wait_for_url("**/search?*")
    visit.press("j")
    visit.press("Enter")
    page.wait_for_url("**/memories/*")
    assert "chess" in page.locator("article").inner_text()
    visit.press("d")
    page.get_by_role("button", name="Undo").wait_for()
    visit.press("u")
    page.get_by_role("status").get_by_text("took back").wait_for()
    visit.to(f"contested?{OWNER}")
    visit.press("1")
    page.get_by_text("the newer one holds").wait_for()
    visit.press("u")
    page.get_by_role("status").get_by_text("took back").wait_for()
    visit.press("?")
    assert page.locator("#keys").get_attribute("open") is not None


@pytest.mark.parametrize(("chosen", "item"), [("2", 2), ("999", -1)])
def test_who_has_decided_one_of_several_goes_on_from_there(visit, chosen, item):
    page = visit.to(f"memories?{OWNER}&chosen={chosen}")
    focused = page.evaluate(
        "() => { const all = [...document.querySelectorAll('.item')];"
        " return [all.length, all.findIndex((one) => one.contains(document.activeElement))] }"
    )
    assert focused == [focused[0], range(focused[0])[item]]


def test_tab_reaches_every_control(visit):
    page = visit.to(f"memories?{OWNER}")
    wanted = page.locator("a:visible, button:visible, input:visible, select:visible, summary:visible").count()
    reached = set()
    for _ in range(wanted + 20):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => [...document.querySelectorAll('*')].indexOf(document.activeElement)"))
    assert wanted <= len(reached - {-1, 0, 1})


def test_it_works_without_scripts(browser, entered):
    with _visit(browser, entered, java_script_enabled=False) as visit:
        page = visit.to(f"memories?{OWNER}")
        page.get_by_text("Add a memory").click()
        page.get_by_label("Statement").fill("I collect stamps")
        page.get_by_role("button", name="Add").click()
        assert "stored" in page.locator(".said").inner_text()
        page.get_by_role("button", name="Undo").click()
        assert "took back" in page.locator(".said").inner_text()


@pytest.mark.parametrize("width", [360, 768, 1600])
def test_no_page_is_wider_than_the_window(browser, entered, width):
    with _visit(browser, entered, viewport={"width": width, "height": 800}, color_scheme="dark") as visit:
        for path in [
            *addresses(),
            f"conversations/thread?{OWNER}&id=cli:alice",
            f"notes/one?{OWNER}&path=plans/summer",
        ]:
            page = visit.to(path)
            assert width >= page.evaluate("document.documentElement.scrollWidth"), path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser, entered, scheme):
    if not AXE.exists():
        pytest.skip("needs axe-core")
    source = AXE.read_text(encoding="utf-8")
    with _visit(browser, entered, color_scheme=scheme) as visit:
        for path in [
            *addresses(),
            f"conversations/thread?{OWNER}&id=cli:alice",
            f"notes/one?{OWNER}&path=plans/summer",
        ]:
            page = visit.to(path)
            page.evaluate("() => document.querySelectorAll('main details').forEach((one) => { one.open = true })")
            page.evaluate(source)
            found = page.evaluate(
                "() => axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice']})"
            )
            grave = [
                (path, one["id"], one["nodes"][0]["html"])
                for one in found["violations"]
                if one["impact"] in {"serious", "critical"}
            ]
            assert [] == grave


def test_hostile_texts_run_nothing_end_nothing_and_turn_nothing(browser, folder):
    with running(folder, config=NO_MODEL) as daemon:
        with daemon.client("mallory") as mallory:
            texts = hostile()
            assert 300 == len(texts)
            assert min(put_everywhere(mallory, texts).values()) > 80
        with _entered(browser, daemon) as state, _visit(browser, state) as visit:
            look_at_hostile(visit)


def look_at_hostile(visit) -> None:
    owner = "agent=default&user=mallory"
    for path in (
        f"memories?{owner}", f"memories?{owner}&tag=x", f"notes?{owner}", f"timeline?{owner}", f"people?{owner}",
        f"conversations/thread?{owner}&id=talk", f"search?{owner}&q=script",
        f"context?{owner}&prompt=x&thread=talk", "audit",
    ):  # fmt: skip
        page = visit.to(path)
        while True:
            assert page.evaluate("window.pwned === undefined")
            assert 1 == page.locator("main").count() == page.locator("footer").count()
            assert 0 == page.locator("img, iframe, object, embed, main script, main style, base").count()
            # a line of one item stands in the order in which it was written, and within its own item
            turned = page.evaluate(
                """() => [...document.querySelectorAll('main .meta')].filter((line) => {
                  const link = line.querySelector('a.id'), time = line.querySelector('time');
                  if (!link || !time) return false;
                  const one = link.getBoundingClientRect(), other = time.getBoundingClientRect();
                  const linkFirst = link.compareDocumentPosition(time) === 4;
                  return Math.abs(one.top - other.top) < 8 && linkFirst === (one.left >= other.left);
                }).length"""
            )
            assert 0 == turned, page.url
            outside = page.evaluate(
                """() => [...document.querySelectorAll('main .item')].filter((item) => {
                  const box = item.getBoundingClientRect();
                  return [...item.querySelectorAll('.text, .name')].some((text) => {
                    const own = text.getBoundingClientRect();
                    return own.right > box.right + 1 || own.left < box.left - 1;
                  }) && !item.closest('.wide');
                }).length"""
            )
            assert 0 == outside, page.url
            following = page.locator("main a[data-key=n]")
            if following.count() == 0:
                break
            following.first.click()
            page.wait_for_load_state()


PICTURES = {
    "inspector": f"search?{OWNER}&q=What+should+I+avoid+eating",
    "inspector-people": f"people?{OWNER}",
    "inspector-conversation": f"conversations/thread?{OWNER}&id=cli:alice",
    "inspector-context": f"context?{OWNER}&prompt=Plan+a+dinner&thread=cli:alice",
    "inspector-figures": "figures",
}


def test_pictures_of_the_pages_are_drawn(browser, entered, shown_daemon, tmp_path):
    """With MEMORYD_SCREENSHOTS=docs those of the documentation."""
    folder = Path(os.environ.get("MEMORYD_SCREENSHOTS") or tmp_path)
    dark = {"inspector-conversation", "inspector-figures"}
    with shown_daemon.client("alice") as alice:
        for n in range(300 if folder != tmp_path else 1):  # so that the plots of the documentation show something
            alice.search(f"What is number {n}?")
            if n % 7 == 3:
                alice.add(f"Number {n} is mine")
                alice.context("Plan a dinner")
                time.sleep(n % 5 * 0.3)
    for name, path in PICTURES.items():
        scheme = "dark" if name in dark else "light"
        with _visit(browser, entered, color_scheme=scheme, viewport={"width": 1200, "height": 760}) as visit:
            page = visit.to(path)
            if name == "inspector-figures":
                until(lambda page=page: page.reload() and page.locator("path.line").count() > 3)
            page.screenshot(path=str(folder / f"{name}.png"))
        assert (folder / f"{name}.png").stat().st_size > 10_000
