"""The site is made of docs/: every page is there, says who it is for, and leads only to what exists."""

from __future__ import annotations

import functools
import http.server
import os
import re
import shutil
import subprocess
import threading
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import memory_client
import pytest
from markdown_it import MarkdownIt

from tests.support import BIN
from tests.web_helpers import chromium

ROOT = Path(__file__).parent.parent
SITE = ROOT / "deploy" / "site"
KINDS = {"Tutorials": "Tutorial", "How-to guides": "How-to", "Reference": "Reference", "Explanation": "Explanation"}
TOP = {
    "index.html": "README.md",
    "changelog.html": "CHANGELOG.md",
    "contributing.html": "CONTRIBUTING.md",
    "scope.html": "SCOPE.md",
}
COUNTED = {"li", "table", "tr", "pre", "h1", "h2", "h3", "h4", "img", "em", "strong"}


class Seen(HTMLParser):
    """What of a page matters here: ids, links, what it loads, and the marks of its article."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.marks: Counter[str] = Counter()
        self.inside = False
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        held = dict(attrs)
        self.ids |= {held[name] for name in ("id", "name") if held.get(name)}
        self.inside |= tag == "article"
        self.marks[tag] += self.inside and tag in COUNTED
        if tag == "a" and held.get("href"):
            self.links.append(held["href"])
        elif tag == "link" and held.get("rel") not in {"next", "prev", "canonical"}:
            self.loads.append(held["href"])
        elif held.get("src"):
            self.loads.append(held["src"])

    def handle_endtag(self, tag):
        self.inside &= tag != "article"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that writes no line for each."""

    def log_message(self, *_):
        """Say nothing."""


def build(site: Path, target: Path) -> subprocess.CompletedProcess[str]:
    command = [f"{BIN}/mkdocs", "build", "-f", str(site / "mkdocs.yml"), "-d", str(target)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(SITE, folder)
    assert 0 == done.returncode, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(built) -> dict[Path, Seen]:
    return {path: Seen(path) for path in sorted(built.rglob("*.html"))}


def test_every_page_of_the_documentation_is_there(built):
    for path in (ROOT / "docs").rglob("*.md"):
        name = path.relative_to(ROOT / "docs").with_suffix(".html")
        assert (built / name).exists(), name


def test_every_link_leads_somewhere(pages):
    for path, seen in pages.items():
        for link in {*seen.links, *seen.loads}:
            target = urlsplit(link)
            if target.scheme or path.name == "404.html":  # which is served for any path, so its links are absolute
                continue
            there = (path.parent / unquote(target.path)).resolve() if target.path else path
            there = there / "index.html" if there.is_dir() else there
            assert there.exists(), (path.name, link)
            if target.fragment and there in pages:
                assert unquote(target.fragment) in pages[there].ids, (path.name, link)


def test_no_page_loads_anything_from_elsewhere(pages):
    assert len(pages) > 90
    for path, seen in pages.items():
        assert seen.loads
        assert [] == [one for one in seen.loads if urlsplit(one).netloc], path.name


def test_a_page_has_the_shape_that_it_has_on_a_forge(built, pages):
    """The site's Markdown is another dialect: a list or a table that it does not see would be one long line."""
    common = MarkdownIt("commonmark").enable("table")
    for path, seen in pages.items():
        name = str(path.relative_to(built))
        source = ROOT / TOP.get(name, f"docs/{name.removesuffix('.html')}.md")
        if not source.exists() or source.name == "python.md":  # which is made of docstrings
            continue
        wanted = Counter(re.findall(r"<([a-z0-9]+)\b", common.render(source.read_text(encoding="utf-8"))))
        assert {tag: wanted[tag] for tag in COUNTED} == {tag: seen.marks[tag] for tag in COUNTED}, name


def entries(lines: list[str]) -> list[tuple[str, str]]:
    """The pages of the navigation, each with the name of the part at the top that it is in."""
    found, part = [], ""
    for line in lines[lines.index("nav:") + 1 :]:
        heading = re.fullmatch(r"  - ([^:]+):", line)
        page = re.search(r": ([\w/-]+\.md)$", line)
        part = heading[1] if heading else part
        found += [(part, page[1])] if page else []
    return found


def test_each_page_says_what_it_is_and_for_whom():
    told = {page: part for part, page in entries((SITE / "mkdocs.yml").read_text(encoding="utf-8").splitlines())}
    tops = {page.removesuffix(".html") + ".md": name for page, name in TOP.items()}
    for path in (ROOT / "docs").rglob("*.md"):
        told.setdefault(str(path.relative_to(ROOT / "docs")), "Explanation")  # a decision
    told.pop("index.md")  # the README begins with it
    for page, part in told.items():
        path = ROOT / tops[page] if page in tops else ROOT / "docs" / page
        assert re.match(rf"# [^\n]+\n\n\*{KINDS[part]} for [^*\n]+\.\*\n\n", path.read_text(encoding="utf-8")), page


def test_every_name_of_the_python_client_is_described(built):
    ids = Seen(built / "reference" / "python.html").ids
    held = {name for kind in memory_client.MemoryClient.__mro__[:-1] for name in vars(kind) if not name.startswith("_")}
    twins = {"AsyncMemoryClient", "AsyncConversation"}
    assert [] == sorted(name for name in {*memory_client.__all__} - twins if f"memory_client.{name}" not in ids)
    assert [] == sorted(name for name in held if f"memory_client.MemoryClient.{name}" not in ids)


def test_broken_links_fail(tmp_path):
    for name in ("memoryd", "client", "sandbox_cli"):
        (tmp_path / name).symlink_to(ROOT / name)
    for path in ROOT.glob("*.md"):
        shutil.copy(path, tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copytree(SITE, tmp_path / "deploy" / "site")
    links = ["no-such-page.md", "search.md#no-such-heading", "../no-such-file.toml"]
    page = tmp_path / "docs" / "doors.md"
    page.write_text(page.read_text(encoding="utf-8") + "".join(f"\n[broken]({link})\n" for link in links))

    done = build(tmp_path / "deploy" / "site", tmp_path / "built")

    assert 0 != done.returncode
    told = done.stdout + done.stderr
    assert [] == [link for link in links if link.removeprefix("../") not in told]


def test_a_search_finds_a_heading_and_asks_no_other_host(built):
    handler = functools.partial(Quiet, directory=built)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, chromium() as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        asked: list[str] = []
        here = f"http://127.0.0.1:{server.server_port}/"
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{here}architecture.html")
        page.get_by_role("textbox", name="Search").type("glossary", delay=20)
        results = page.locator(".md-search-result__link")
        results.first.wait_for()
        found = [result.get_attribute("href") for result in results.all()]
        server.shutdown()
    assert f"{here}architecture.html?h=glossary#glossary" in found
    assert asked
    assert [] == [url for url in asked if not url.startswith((here, f"blob:{here}"))]
