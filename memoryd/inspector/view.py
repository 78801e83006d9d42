"""One request to a page: whose memory it shows, the form that came with it, and how an answer is made."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from memoryd.errors import InvalidArgument, LimitExceeded, MemorydError, NotFound
from memoryd.inspector import drawing, times
from memoryd.inspector.shown_text import as_block, as_line, beginning, in_words, is_cut, marked
from memoryd.model.memory import Kind, ShownMemory
from memoryd.web.bodies import whole_body

if TYPE_CHECKING:
    from memory_client import AsyncMemoryClient

    from memoryd.inspector.entry import Entry
    from memoryd.inspector.sources import Sources

__all__ = [
    "LABELS", "OWNER_FIELDS", "PAGES", "Session", "View", "Whose", "environment", "in_words_of", "mark_of", "sent_as",
]  # fmt: skip

MOST_FORM = 4 << 20  # bytes: a note of 256 KiB, each byte written as three, and more
FOLDER = Path(__file__).parent
MOST_FIELDS = 100  # of a form
MOST_DIGITS = 9  # of a number
OWNER_FIELDS = frozenset({"agent_id", "user_id", "chat_id"})
MOST_SAID = 20  # pages that are still to tell something
_keys = count(1)
SMALL_SCORE = 0.01  # below it two digits say nothing
MOST_IN_WORDS = 80  # characters of a title or an option
LABELS = {
    "content": "Statement", "text": "Text", "about": "About", "tags": "Tags", "category": "Category", "name": "Name",
    "new_name": "Name", "path": "Path", "user_id": "User", "chat_id": "Chat", "agent_id": "Agent",
}  # fmt: skip
"""The fields of forms that take typed texts, as a fault calls them."""

PAGES = (
    ("", "Overview", False),
    ("memories", "Memories", True),
    ("search", "Search", True),
    ("context", "Context", True),
    ("timeline", "Timeline", True),
    ("people", "People", True),
    ("contested", "Contested", True),
    ("conversations", "Conversations", True),
    ("notes", "Notes", True),
    ("review", "Review", False),
    ("grants", "Grants", False),
    ("jobs", "Jobs", False),
    ("backups", "Backups", False),
    ("audit", "Audit", False),
    ("figures", "Figures", False),
)
"""The pages in their order: the path, the name, and whether it shows one owner."""


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose memory a page shows: with which agent a user's own, or a chat's."""

    agent_id: str = ""
    user_id: str = ""
    chat_id: str = ""

    @property
    def is_known(self) -> bool:
        """Whether a user or a chat is named."""
        return bool(self.user_id or self.chat_id)

    @property
    def name(self) -> str:
        """How it is called."""
        return self.user_id or self.chat_id

    @property
    def place(self) -> str:
        """The chat in which a user's memory is looked at, if any: what is shared there counts too."""
        return self.chat_id if self.user_id else ""

    @property
    def params(self) -> dict[str, str]:
        """What names it in the address of a page."""
        named = {"agent": self.agent_id, "user": self.user_id, "chat": self.chat_id}
        return {name: value for name, value in named.items() if value}


@dataclass(frozen=True, slots=True)
class Said:
    """What the next page tells of what was just done, and how it is taken back."""

    text: str
    tone: str = "done"
    undo: str = ""
    """The path that takes it back, as a form that is sent; empty: nothing does."""
    fields: Mapping[str, str] = field(default_factory=dict)
    button: str = "Undo"


@dataclass
class Session:
    """What is kept between the requests of the one browser."""

    refused: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    """The pages that have answered forms which were refused, with their status: at most MOST_SAID."""
    said: dict[str, list[Said]] = field(default_factory=dict)
    """By what the address of the page names that shall tell it."""
    whose: Whose = Whose()
    """Who was looked at last."""


def in_words_of(error: MemorydError, labels: Mapping[str, str] = LABELS) -> str:
    """Return what is wrong with a form, where it can with the labels of its fields instead of their names."""
    text = error.message
    label = labels.get(re.sub(r"^(filter|scope)\.|\[\d+\]$", "", error.field), "")
    if label.endswith("s") and (place := re.search(r"\[(\d+)\]$", error.field)):
        text = text.replace(error.field, f"{error.field} (number {int(place[1]) + 1})", 1)
    if label and text.startswith(error.field):
        text = f"“{label}”{text.removeprefix(error.field)}"
    for name, other in labels.items():
        if "_" in name:  # no word of the sentence around it
            text = re.sub(rf"\b{name}\b", f"“{other}”", text)
    return text


def sent_as(text: str) -> str:
    """Return a text as a form sends it back where no one has changed it: a browser has one end of a line."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def mark_of(*told: object) -> str:
    """Return a mark of what a page tells, by which a form says what its user has seen."""
    return hashlib.blake2b(repr(told).encode(), digest_size=16).hexdigest()


def number(value: int) -> str:
    """Return a number with thin spaces between its thousands."""
    return f"{value:,}".replace(",", "\u202f")


def _count(value: int, one: str, many: str = "") -> str:
    """Return a number with what it counts: `1 memory`, `2 memories`."""
    return f"{number(value)} {one if value == 1 else many or f'{one}s'}"


def _owner(whose: Whose) -> Markup:
    """Return whose memory is shown, in words."""
    if not whose.place:
        return as_line(whose.name)
    return Markup("{} in {}").format(as_line(whose.name), as_line(whose.place))


def environment(now: Callable[[], datetime]) -> Environment:
    """Return the templates; every value is escaped."""
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "block": as_block,
        "beginning": lambda text: as_block(beginning(text), text),
        "is_cut": is_cut,
        "line": as_line,
        "tojson_text": lambda value: json.dumps(value, ensure_ascii=False),
        "count": _count,
        "audit_time": times.audit_time,
        "owner": _owner,
        "words": lambda text: in_words(text, MOST_IN_WORDS),
        "marked": marked,
        "bytes": drawing.size,
        "moment": times.moment,
        "ago": lambda time: times.ago(time, now()),
        "number": number,
        "score": lambda value: f"{value:.2f}" if value >= SMALL_SCORE else f"{value:.4f}",
    }
    made.globals |= {"drawing": drawing, "pages": PAGES, "zone": lambda: times.zone(now())}
    return made


class View:
    """A request, and what its page needs."""

    def __init__(
        self,
        request: Request,
        *,
        client: AsyncMemoryClient,
        entry: Entry,
        session: Session,
        sources: Sources,
        templates: Environment,
    ) -> None:
        """Take a request in; its form is read by `read_form`."""
        self.request = request
        self.host = client
        self.entry = entry
        self.session = session
        self.sources = sources
        self.form: dict[str, str] = {}
        self.is_form = False
        """Whether it is a form of this process that was sent."""
        self.is_refused = False
        """Whether what the form of the page asks for cannot be asked."""
        self._said: list[Said] = []
        self._templates = templates
        asked = request.query_params
        self.whose = Whose(*(asked.get(name, "").strip() for name in ("agent", "user", "chat")))

    @property
    def client(self) -> AsyncMemoryClient:
        """A client that acts for the owner that the page shows."""
        whose = self.whose
        if not whose.is_known:
            raise InvalidArgument("choose whose memory to show", field="user_id")
        return self.host.acting_for(user_id=whose.user_id, chat_id=whose.chat_id, agent_id=whose.agent_id)

    @property
    def is_shared(self) -> bool:
        """Whether it shows what is a chat's."""
        return not self.whose.user_id

    def asked(self, name: str, default: str = "") -> str:
        """Return a parameter of the address."""
        return self.request.query_params.get(name, default)

    def typed(self, name: str) -> str:
        """Return what was typed into a field of the address, without the spaces around it."""
        return self.asked(name).strip()

    def number(self, name: str, default: int = 0) -> int:
        """Return a parameter as a number; InvalidArgument for what is none."""
        text = self.typed(name)
        if not text:
            return default
        if not (text.isascii() and text.isdecimal()) or len(text) > MOST_DIGITS:
            raise InvalidArgument(f"{name} is {text[:40]!r}; it must be a whole number without a sign", field=name)
        return int(text)

    def part(self, name: str) -> str:
        """Return a part of the path."""
        return str(self.request.path_params[name])

    @contextmanager
    def asking(self, **labels: str) -> Iterator[None]:
        """Let the page tell what is wrong with its form, by the labels of its fields, where that cannot be asked."""
        try:
            yield
        except (InvalidArgument, LimitExceeded, NotFound) as error:
            if error.field in OWNER_FIELDS - labels.keys():
                raise  # not the form of this page is wrong
            self.is_refused = True
            self.say(in_words_of(error, labels), tone="fault")

    async def read_form(self) -> None:
        """Read the form; Refused for one that is too large, InvalidArgument for one that this process did not make."""
        body = await whole_body(self.request.receive, MOST_FORM)
        try:
            pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
        except ValueError:
            raise InvalidArgument(f"a form has at most {MOST_FIELDS} fields") from None
        self.form = {name: value.replace("\r\n", "\n") for name, value in pairs}
        if not self.entry.is_form_ours(self.form.get("csrf", "")):
            raise InvalidArgument("the form is not one of this run of memoryd inspect; load the page again")
        self.is_form = True

    @property
    def typed_texts(self) -> dict[str, str]:
        """What was typed into the form that was sent, by the name of its field."""
        return {name: value for name, value in self.form.items() if name in LABELS and value}

    def url(self, page: str, /, **params: Any) -> str:
        """Return the address of a page, for the owner that this one shows unless another is named."""
        whose = {} if "user" in params or "chat" in params else self.whose.params
        given = {**whose, **{name: value for name, value in params.items() if value not in {None, ""}}}
        path = "/".join(quote(part, safe="") for part in page.split("/"))
        return f"{self.entry.base}/{path}" + (f"?{urlencode(given)}" if given else "")

    def item_url(self, page: str, item_id: str, action: str = "", /, **params: Any) -> str:
        """Return the address of one thing, whatever its id is, or of what is done with it."""
        path, _, query = self.url(page, **params).partition("?")
        return f"{path}/{quote(item_id, safe='')}{action and '/'}{action}" + (f"?{query}" if query else "")

    def memory_url(self, memory: ShownMemory) -> str:
        """Return the address of a memory; of a message or a note that a search has found, its own."""
        if memory.kind is Kind.NOTE:
            return self.url("notes/one", path=memory.key)
        if memory.kind is Kind.EPISODE:
            return self.source_url(memory)
        return self.item_url("memories", memory.id)

    def source_url(self, memory: ShownMemory) -> str:
        """Return the address of the message that a memory was learnt from, else of its conversation."""
        shared = 1 if memory.scope.chat_id else ""
        thread_id = memory.source.thread_id
        if memory.source.message_ids:
            return self.url("conversations/message", id=thread_id, message=memory.source.message_ids[0], shared=shared)
        return self.url("conversations/thread", id=thread_id, shared=shared)

    def same(self, **params: Any) -> str:
        """Return this page's address with other parameters; "" takes one away."""
        given = {**dict(self.request.query_params.items()), "said": "", **params}
        kept = {name: value for name, value in given.items() if value not in {None, ""}}
        return self.request.url.path + (f"?{urlencode(kept)}" if kept else "")

    def is_as_shown(self, mark: str) -> bool:
        """
        Whether what a form would erase is what its page has shown; `mark` is that of what it would show now.

        Where it is not, the page says so, and is to be shown again.
        """
        if self.form.get("shown", "") == mark:
            return True
        self.is_refused = True
        self.say("it has changed since it was shown: nothing was erased. This is what would go now", tone="fault")
        return False

    def say(self, text: str, *, tone: str = "done", undo: str = "", button: str = "Undo", **fields: str) -> None:
        """Let the page that follows tell what was done, and offer to take it back by a button."""
        self._said.append(Said(text, tone, undo, fields, button))

    def back(self, page: str, /, **params: Any) -> Response:
        """Send the browser to a page after a form."""
        return self.to(self.url(page, **params))

    def to(self, address: str) -> Response:
        """Send the browser to an address of `url`, `item_url` or `same` after a form, and let it tell what was said."""
        if self._said:
            key = f"{next(_keys)}"
            self.session.said[key] = self._said
            for old in list(self.session.said)[:-MOST_SAID]:
                del self.session.said[old]
            path, _, query = address.partition("?")
            pairs = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name != "said"]
            address = f"{path}?{urlencode([*pairs, ('said', key)])}"
        return RedirectResponse(address, 303)

    def came_from(self, otherwise: str) -> str:
        """Return the page that a form names as the one it stood on, if it is one of ours."""
        back = self.form.get("back", "")
        return back if back.startswith(f"{self.entry.base}/") else otherwise

    @property
    def form_stood_on(self) -> str:
        """The page of ours that a form was on, as it or the browser says; empty: that is not known."""
        asked_from = urlsplit(self.request.headers.get("referer", ""))
        address = asked_from.path + (f"?{asked_from.query}" if asked_from.query else "")
        return self.came_from(address if address.startswith(f"{self.entry.base}/") else "")

    def keep_refused(self, answer: Response) -> Response:
        """Send the browser to a page that has refused its form, so that it can be left and come back to."""
        key = f"{next(_keys)}"
        self.session.refused[key] = bytes(answer.body), answer.status_code
        for old in list(self.session.refused)[:-MOST_SAID]:
            del self.session.refused[old]
        return RedirectResponse(self.item_url("refused", key), 303)

    def page(self, template: str, status: int = 0, /, **values: Any) -> HTMLResponse:
        """Return a page; whose memory it shows is looked at next time too."""
        if self.whose.is_known and status < 400:  # noqa: PLR2004
            self.session.whose = self.whose
        said = [*self.session.said.pop(self.asked("said"), []), *self._said]
        text = self._templates.get_template(template).render(
            view=self,
            url=self.url,
            item_url=self.item_url,
            same=self.same,
            whose=self.whose,
            last=self.session.whose,
            csrf=self.entry.csrf,
            base=self.entry.base,
            said=said,
            form=self.form,
            **values,
        )
        return HTMLResponse(text, status or (400 if self.is_refused else 200))
