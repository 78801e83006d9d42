"""
How stored text is written into a context.

Stored text is data: each of it is one line, an item of a list, so that it can open no heading, list or fence of its
own; and no tag in it can close the block that it stands in.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from memoryd.domain.retrieval.presentation import said_by
from memoryd.entities.directory import Directory
from memoryd.knowledge.grammar.names import MOST_NAME_CHARACTERS, MOST_NAME_WORDS
from memoryd.knowledge.grammar.times import has_relative_time
from memoryd.model.caller import Caller
from memoryd.model.context import ContextItem
from memoryd.model.conversation import CUT, SOURCES, Role, place_of, source_label, tool_label
from memoryd.model.memory import UNKNOWN, VOUCHED, Kind, Memory, ShownMemory
from memoryd.model.recalled_text import without_recalled
from memoryd.model.trust import Trust
from memoryd.model.validation import fold

__all__ = ["Line", "Shown", "memory_line", "message_line", "person_line", "text_lines"]

_HIDDEN_LETTERS = frozenset(
    "\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f"
)  # letters and marks that show nothing
_SPACES = re.compile(r"\s+")
_FENCE = re.compile(r"[`~]{3,}")
_MARK = re.compile(
    r"^(?:\d{1,9}(?=[.)](?:\s|$))|(?=[-+*](?:\s|$)|#{1,6}(?:\s|$)|(?:[-*_] *){3}|[\[|［【〔⟦〚❲⁅﹝｛]))"  # noqa: RUF001
)
"""Where a line begins: what opens a list, a heading, a rule, a label of ours or what looks like one, or a table."""
_NO_NAME = re.compile(r"[^\w '’@&+#-]|_{2,}")
_MARKS = re.compile(r"^\s*(?:(?:[-+*]|#{1,6}|>)(?:\s+|$))+")
"""What a line of a text of Markdown begins with, where it is no word of it."""
_WORD = re.compile(r"\w")
_BREAK = re.compile(r"\s*[\n\r\u2028\u2029]\s*")
LINE_BREAK = " ⏎ "  # stands for a line break of a message
MOST_OF_REMARK = 160  # characters of a newer statement that are shown with the one that it contests


def _is_hidden(letter: str) -> bool:
    """Whether a model would read what a person cannot see: formats, tags, variation selectors, controls."""
    if letter.isascii():
        return letter < " " or letter == "\x7f"
    if letter in _HIDDEN_LETTERS or "\ufe00" <= letter <= "\ufe0f" or "\U000e0000" <= letter <= "\U000e0fff":
        return True
    return unicodedata.category(letter) in {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}


class _Rendering(dict[int, str | None]):
    """What becomes of each letter, for str.translate; worked out when it is first met."""

    def __missing__(self, code: int) -> str | None:
        letter = chr(code)
        shown = None if _is_hidden(letter) else _ESCAPED.get(letter, letter)
        if len(self) < MOST_LETTERS:
            self[code] = shown
        return shown


MOST_LETTERS = 1 << 16
_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_rendering = _Rendering()


def _inert(text: str) -> str:
    """
    Return text on one line in which nothing can end the block or hide: no controls, no fences, no tags, no links.

    What begins like a heading, a list, a rule or one of our own labels gets a backslash, as Markdown has it.
    """
    flat = _SPACES.sub(" ", _SPACES.sub(" ", text).translate(_rendering)).strip()
    flat = _FENCE.sub(lambda run: run.group()[:2], flat)
    flat = _MARK.sub(lambda mark: mark.group() + "\\", flat)
    return flat.replace("](", "] (")  # no image that a renderer would fetch


def _on_one_line(text: str) -> str:
    """Return a text of several lines as one, each of them inert, with LINE_BREAK between them."""
    pieces = _BREAK.split(text.replace("⏎", " ").strip())
    return LINE_BREAK.join(filter(None, map(_inert, pieces)))


def _plain_name(text: str) -> str:
    """Return a name without what could make it more than one: no punctuation, no brackets, a name's length."""
    words = _NO_NAME.sub(" ", _inert(text)).split()[:MOST_NAME_WORDS]
    return " ".join(words)[:MOST_NAME_CHARACTERS].strip()


def _plain_speaker(said_by: str) -> str:
    """Return who said a memory, as a plain name; who vouches for that is never cut off."""
    speaker, vouched, voucher = said_by.rpartition(VOUCHED)
    return f"{_plain_name(speaker)}{VOUCHED}{_plain_name(voucher)}" if vouched else _plain_name(said_by)


def _date(time: datetime | None, zone: tzinfo | None) -> str:
    return "" if time is None else f"{time.astimezone(zone):%Y-%m-%d}"


def _label(*told: str) -> str:
    """Return who said something and when, as far as that is to be told: "[Bob, 2026-05-03] "."""
    known = ", ".join(part for part in told if part)
    return f"[{known}] " if known else ""


def _mark(trust: Trust) -> str:
    return "" if trust is Trust.HOST else f" [unverified: {trust.value}]"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a context: who and when, what is said, marks of doubt and low trust; and where it is from."""

    head: str
    body: str
    tail: str
    item: ContextItem
    place: tuple[int, int] = (0, 0)
    """Where it stands among the lines of its section that are chosen."""
    beside: tuple[str, str] | None = None
    """The key of the line next to which it stands, if it is not found by itself."""

    @property
    def key(self) -> tuple[str, str]:
        """Thread and id of a message; of what is none, its id."""
        return self.item.thread_id, self.item.id

    @property
    def is_cut(self) -> bool:
        """Whether not all is shown of what was said."""
        return CUT in self.body

    @property
    def text(self) -> str:
        """The line as it stands in the context."""
        return f"- {self.head}{self.body}{self.tail}"

    def cut(self, characters: int) -> Line:
        """Return it with so many characters of what is said, the mark of the cut among them."""
        if len(self.body) <= characters:
            return self
        return replace(self, body=self.body[: max(0, characters - 1)].rstrip("\\ ") + CUT)


def memory_line(memory: ShownMemory, zone: tzinfo | None = None, newer: ShownMemory | None = None) -> Line:
    """Return a memory, as it is presented, as a line: also who it is about, and what newer statement contests it."""
    about = f" (about {', '.join(map(_plain_name, memory.subjects))})" if memory.subjects else ""
    contested = " [contested]" if memory.contested_with else ""
    if newer is not None:
        contested = f" [contested by the newer: {_remark(newer, zone)}]"
    head = _label(_plain_speaker(memory.said_by), _date(memory.said_time, zone))
    item = ContextItem(
        memory.id, memory.kind, memory.trust, memory.source.thread_id, 0, memory.said_by, memory.event_time
    )
    return Line(head, _on_one_line(memory.content), f"{about}{contested}{_mark(memory.trust)}", item)


def _remark(memory: ShownMemory, zone: tzinfo | None) -> str:
    """Return the beginning of a memory within the line of another one: no bracket of it ends the remark."""
    text = _inert(_inert(memory.content[: 2 * MOST_OF_REMARK]).replace("[", "(").replace("]", ")"))
    text = text if len(text) <= MOST_OF_REMARK else text[:MOST_OF_REMARK].rstrip("\\ ") + CUT
    speaker = _plain_speaker(memory.said_by)
    return ", ".join(filter(None, (f"{speaker}: {text}" if speaker else text, _date(memory.create_time, zone))))


def message_line(
    memory: Memory, shown: Shown, *, place: int, dated: bool, beside: tuple[str, str] | None = None, remark: str = ""
) -> Line:
    """
    Return a message, as memory of kind EPISODE, as a line: the role comes first, so that no name can pose as one.

    A date is there where `dated` says so, and wherever a reader needs it: it is of another day, or tells a relative
    time. `remark` says why it states nothing.
    """
    role, name, text = memory.category, memory.source.speaker, without_recalled(memory.content)
    named = name if name != role else ""
    if role == Role.USER.value:
        who = _plain_speaker(said_by(memory, shown.caller))
        line = f"{role} {who}".strip()
    elif role == Role.TOOL.value:
        line = f"{role}:{_plain_name(named)}" if named else role
        text = text.removeprefix(tool_label(named))
    else:
        line = f"{role} {_plain_name(named)}".strip()
    if role != Role.USER.value and memory.trust is Trust.SANDBOX and memory.author not in {"", shown.caller.user_id}:
        line += f"{VOUCHED}{_plain_name(memory.author)} says"
    channel = memory.source.channel
    text = text.removeprefix(source_label(channel))
    day, today = _date(memory.event_time, shown.zone), _date(shown.now, shown.zone)
    head = _label(line, day if dated or day != today or has_relative_time(text) else "")
    if channel:
        plain = _plain_name(channel)
        head += _label(plain if plain.lower() in SOURCES else f'"{plain}"')
    thread_id, seq = place_of(memory.key)
    body = _on_one_line(text[: shown.most_characters])
    if len(text) > shown.most_characters:
        body += CUT
    item = ContextItem(memory.source.message_ids[0], memory.kind, memory.trust, thread_id, seq, line, memory.event_time)
    not_meant = f" [no statement: {remark}]" if remark else ""
    return Line(head, body, f"{not_meant}{_mark(memory.trust)}", item, (place, seq), beside)


@dataclass(frozen=True, slots=True)
class Shown:
    """Who messages are shown to, when, and how much of each."""

    caller: Caller
    now: datetime
    zone: tzinfo | None
    most_characters: int


def text_lines(text: str, item: ContextItem, shown: Shown, *, place: int = 0) -> list[Line]:
    """
    Return a text of several lines as lines, without the marks of lists, headings, quotes, rules and fences.

    Each says whose sandbox set the text, if it was not the reader's.
    """
    name = ""
    if item.trust is Trust.SANDBOX and item.speaker not in {"", shown.caller.user_id}:
        name = _plain_name(item.speaker) or UNKNOWN
    poses = name and fold(name) == fold(_plain_name(shown.caller.user_id or ""))
    head = _label(f"set by {'another user, ' if poses else ''}{name}") if name else ""
    item = replace(item, speaker=name)
    bodies = (_inert(_MARKS.sub("", line)) for line in without_recalled(text).splitlines())
    bodies_with_words = [body for body in bodies if _WORD.search(body)]
    return [Line(head, body, _mark(item.trust), item, (place, n)) for n, body in enumerate(bodies_with_words)]


def person_line(root: str, people: Directory) -> Line:
    """Return someone as a line: name, relations, what else they are called."""
    trust, aliases = _TRUSTS[people.trust_weight(root)], people.aliases(root)
    details = [*people.relations(root), *([f"also {', '.join(aliases)}"] if aliases else [])]
    text = f" ({_inert('; '.join(details))})" if details else ""
    return Line("", f"{_inert(people.name(root))}{text}", _mark(trust), ContextItem(root, Kind.FACT, trust))


_TRUSTS = {trust.weight: trust for trust in Trust}
