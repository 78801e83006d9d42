"""What the tests of pages share: the inspector over a real daemon, a strict reader of HTML, and hostile texts."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest
from memory_client import MessageDraft, Source

from memoryd.errors import MemorydError
from memoryd.model.validation import text_digest
from tests.forking import Forked, begin_command
from tests.support import PATIENCE_S, Daemon

CHROMIUM = Path("/usr/bin/chromium")
VOID = {"meta", "link", "input", "br"}
SCRIPTS = [
    "<script>window.pwned = 1</script>", '"><img src=x onerror="window.pwned=1">', "'><svg onload=window.pwned=1>",
    "</textarea><script>window.pwned=1</script>", "</bdi></li></ol><h1>gone</h1>", "<!-- ", "-->", "]]>", "<![CDATA[",
    "{{ 7 * 7 }}", "{% include 'base.html' %}", "${7*7}", "javascript:window.pwned=1", "&lt;b&gt;&amp;&#x41;",
    "<style>*{display:none}</style>", "<base href=//evil>", "<meta http-equiv=refresh content=0>",
    "<form action=//evil>", '" autofocus onfocus="window.pwned=1', "' onmouseover='window.pwned=1",
    "`onclick=window.pwned=1`", "<b", "</main>", "%3Cscript%3E", "\\u003cscript\\u003e", "../../etc/passwd",
    "?user=bob&csrf=x", "#m1", "a" * 8000, "W" * 300,
]  # fmt: skip
TURNS = [
    "\u202eevil \u2066text", "\u202d\u202e\u2067x", "\u200f\u200fabc", "שלום עולם", "مرحبا بالعالم (one) [two]",
    "a\u2069\u2069b", "\u2068\u2067\u2066\u202eabc", "\u202bשלום\u202c", "\u061cabc", "אבג 123 (def)",
]  # fmt: skip
CHARACTERS = [
    "a\x1b[31mred\x1b[0m", "a\u0085b", "a\u2028b\u2029c", "a\u00adb", "a\u200bb", "\ufeffa", "a\u0301" * 40,
    "Z" + "\u0335" * 60, "\U000e0041\U000e0042tags", "👨\u200d👩\u200d👧", "🏴\U000e0067\U000e0062\U000e007f",
    "می\u200cخواهم", "\ufdd0x", "\ue000private", "a\tb", "line\nline\n\nline", " lead", "trail ", "𝒳𝒴", "ﷺ" * 50,
    "\u3164", "a\u115fb", "ｆｕｌｌ", "\u0e33" * 30,
]  # fmt: skip


def hostile(count: int = 300) -> list[str]:
    """So many texts, all of them different: each as it is, then two joined."""
    single = [*SCRIPTS, *TURNS, *CHARACTERS]
    pairs = (f"{one} {other}" for one, other in itertools.product(SCRIPTS[:26], [*TURNS, *CHARACTERS]))
    return list(dict.fromkeys(itertools.islice(itertools.chain(single, pairs), count)))


def ways_in(client, text: str):
    """The calls that put a text into every field that may hold it."""
    short, name = text[:60], text_digest(text)[:12]
    return {
        "memory": lambda: client.add(text),
        "label": lambda: client.add(f"about {name}", tags=[short], category=short, metadata={short: text[:900]}),
        "person": lambda: client.add(f"of {name}", subjects=[short], source=Source(speaker=short, channel=short)),
        "note": lambda: client.put_note(text[:80].replace("/", "|"), text),
        "message": lambda: client.append("talk", [MessageDraft(content=text)]),
        "speaker": lambda: client.append("talk", [MessageDraft(content="x", name=short, input_source=short)]),
    }


def put_everywhere(client, texts) -> dict[str, int]:
    """Put texts into every field, and tell how many each has taken."""
    put = dict.fromkeys(ways_in(client, ""), 0)
    for text in texts:
        for field_name, give in ways_in(client, text).items():
            with suppress(MemorydError):  # a field that does not take such a text
                give()
                put[field_name] += 1
    return put


@dataclass
class Element:
    """One element of a page."""

    tag: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def all(self) -> Iterator[Element]:
        yield self
        for child in self.children:
            yield from child.all()

    def find(self, tag: str = "", **wanted: str) -> list[Element]:
        named = {name.rstrip("_").replace("_", "-"): value for name, value in wanted.items()}
        return [
            one
            for one in self.all()
            if (not tag or one.tag == tag)
            and all(value in one.attributes.get(name, "").split(" ") for name, value in named.items())
        ]

    def buttons(self) -> dict[str, Element]:
        """The buttons by what they are called."""
        return {one.attributes.get("aria-label", one.words): one for one in self.find("button")}

    @property
    def words(self) -> str:
        return " ".join(" ".join(one.text for one in self.all()).split())


class Reader(HTMLParser):
    """Reads a page whose elements must be closed in order, and may do nothing by themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag, attributes):
        named = {name: value or "" for name, value in attributes}
        assert len(named) == len(attributes), f"{tag} has an attribute twice"
        assert not [name for name in named if name.startswith("on") or name in {"style", "srcdoc", "formaction"}], named
        element = Element(tag, named)
        self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert tag == self._open[-1].tag, f"</{tag}> ends <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data):
        self._open[-1].text += data

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data}")


def read(page: str) -> Element:
    """Read a page, and see that nothing in it runs or comes from elsewhere."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert [reader.root] == reader._open, "an element is not closed"
    [script] = reader.root.find("script")
    assert script.attributes["src"].endswith("/static/keys.js")
    assert script.text == ""
    assert not [one for one in reader.root.all() if one.tag in {"img", "iframe", "object", "embed", "style", "base"}]
    for one in reader.root.all():
        for name in ("href", "src", "action"):
            assert one.attributes.get(name, "/").startswith(("/", "#")), one.attributes
    return reader.root


def whose(client) -> dict[str, str]:
    """What names a client's user in the address of a page."""
    return {"agent": "default", "user": client.identity.user_id}


def shown(page: Element) -> str:
    """The words of a page, without its frame."""
    [main] = page.find("main")
    return main.words


@dataclass
class Inspector:
    """A run of memoryd inspect, and the browser that has used its link."""

    http: httpx.Client
    origin: str
    base: str
    link: str
    process: subprocess.Popen | Forked

    def get(self, page: str, status: int = 200, /, **params: str) -> Element:
        answer = self.http.get(f"{self.base}/{page}", params=params or None)
        assert status == answer.status_code, answer.text
        return read(answer.text)

    def post(self, page: str, /, *, status: int = 200, owner: str = "alice", **fields: str) -> Element:
        """Send a form as its page does, and read the page that follows."""
        params = {"agent": "default", "user": owner} if owner else None
        answer = self.http.post(
            f"{self.base}/{page}", params=params, data={"csrf": csrf(self), **fields}, headers={"Origin": self.origin},
            follow_redirects=True,
        )  # fmt: skip
        assert status == answer.status_code, answer.text
        return read(answer.text)


def contents(client) -> list[str]:
    """What an owner's memories say, in order."""
    return sorted(one.content for one in client.page().memories)


def csrf(site: Inspector) -> str:
    """The token of its forms."""
    return site.get("jobs").find("input", name="csrf")[0].attributes["value"]


def pressed(site: Inspector, page: Element, button: str, status: int = 200, /, **more: str) -> Element:
    """Send the form of a page that has a button, with more fields, and read the page that follows."""
    [form] = [one for one in page.find("form") if button in one.buttons()]
    fields = {one.attributes["name"]: one.attributes["value"] for one in form.find("input", type="hidden")}
    answer = site.http.post(
        f"{site.origin}{form.attributes['action']}",
        data={**fields, **more}, headers={"Origin": site.origin}, follow_redirects=True,
    )  # fmt: skip
    assert status == answer.status_code, answer.text
    return read(answer.text)


def undone(site: Inspector, page: Element) -> Element:
    """Send the form that takes back what a page tells."""
    return pressed(site, page, "Undo")


@contextmanager
def started(daemon: Daemon, *more: str, says: bool = True) -> Iterator[tuple[str, subprocess.Popen | Forked]]:
    """Run the command, and give the link that it prints."""
    words = [sys.executable, "-m", "memoryd", "inspect", "--socket", str(daemon.socket), *more]
    with begin_command(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process.stdout.readline().strip() if says else "", process
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


@contextmanager
def inspecting(daemon: Daemon) -> Iterator[Inspector]:
    """Run the inspector, and use its link."""
    with started(daemon) as (link, process), httpx.Client(timeout=PATIENCE_S) as http:
        answer = http.get(link)
        assert 303 == answer.status_code, answer.text
        origin = link.partition("/enter/")[0]
        yield Inspector(http, origin, f"{origin}{answer.headers['location'].rstrip('/')}", link, process)


@contextmanager
def chromium():
    """Debian's browser, driven by Playwright; where it is not installed the test is left out."""
    if not CHROMIUM.exists():
        pytest.skip("needs chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=str(CHROMIUM),
            args=[
                "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
                "--disable-component-update", "--disable-sync",
            ],
        )  # fmt: skip
        try:
            yield browser
        finally:
            browser.close()
