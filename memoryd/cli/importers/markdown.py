"""Markdown files as notes: CLAUDE.md, AGENTS.md, folders, the memory of Claude Code, and basic-memory."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from memoryd.cli.importers.items import (
    CLAUDE,
    Item,
    Kept,
    Skipped,
    Statement,
    digest,
    kept,
    label,
    plain,
    stated,
    time_of,
)
from memoryd.cli.importers.source import Damaged, Source
from memoryd.model import limits

__all__ = ["read", "read_basic_memory", "read_claude_code"]

SUFFIXES = frozenset({".md", ".markdown", ".mdx"})
MOST_FILES = 100_000
LONGEST_FRONT = 16 << 10  # characters above the text in which its title stands
LONGEST_ITEM = 4096  # characters of an observation; a longer line stands in the note alone
TAG = re.compile(r"(?<!\S)#([\w/-]{1,60})")
TASKS = frozenset({"", " ", "x", "X", "-", "/"})


def read(source: Source) -> Iterator[Item]:
    """Yield each file as a note of its path."""
    for _, item in _notes(source, ""):
        yield item


def read_claude_code(source: Source) -> Iterator[Item]:
    """Yield each file of Claude Code's memory as a note where Claude's memory tool finds it."""
    for _, item in _notes(source, CLAUDE):
        yield item


def read_basic_memory(source: Source) -> Iterator[Item]:
    """Yield each note of basic-memory as a note, and its observations and relations as statements."""
    for text, item in _notes(source, "", by_permalink=True):
        yield item
        if text is not None and isinstance(item, Kept):
            made = item.note.update_time or datetime.now(UTC) - timedelta(hours=1)
            for n, statement in enumerate(_observations(text, item.place)):
                if isinstance(statement, Statement):  # what stands later in the file was said later
                    draft = replace(statement.draft, create_time=made + timedelta(microseconds=n))
                    yield replace(statement, draft=draft)
                else:
                    yield statement


def _notes(source: Source, below: str, *, by_permalink: bool = False) -> Iterator[tuple[str | None, Item]]:
    """Yield each file as a note, with its text; None in place of the text where it is left out."""
    for path, name in _files(source):
        place = f"file {label(name, 200)}"
        text, reason = _text_of(path)
        if text is None:
            yield None, Skipped(place=place, reason=reason)
            continue
        permalink = _front_matter(text)[0].get("permalink", "") if by_permalink else ""
        target = f"{permalink}.md" if permalink.strip("/ ") else name
        changed = time_of(path.stat().st_mtime)
        for item in kept(below + target.strip("/"), text, place, create_time=changed, update_time=changed):
            yield None if isinstance(item, Skipped) else text, item


def _text_of(path: Path) -> tuple[str | None, str]:
    """Return the text of a file, or None and why it has none; no link is followed, and no pipe waited for."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None, "it is no file"
            data = file.read(limits.MAX_NOTE_BYTES + 4)
    except OSError as error:
        is_link = error.errno == errno.ELOOP
        return None, "it is a link" if is_link else f"it cannot be read: {error.strerror}"
    if len(data) > limits.MAX_NOTE_BYTES:
        return None, "its text is larger than memoryd takes"
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError:
        return None, "it is no text in UTF-8"


def _files(source: Source) -> Iterator[tuple[Path, str]]:
    """Yield the Markdown files, each with its path in the folder; hidden folders are passed over."""
    if not source.is_folder:
        yield source.path, source.path.name
        return
    count = 0
    for folder, folders, names in os.walk(source.path):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        for name in sorted(names):
            path = Path(folder, name)
            if path.suffix.lower() not in SUFFIXES:
                continue
            count += 1
            if count > MOST_FILES:
                raise Damaged(f"{source.path} has more than {MOST_FILES} files; name a part of it")
            yield path, path.relative_to(source.path).as_posix()


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    """Return what stands above a text in YAML, its texts alone, and the rest; nothing where it is none."""
    if not text.startswith("---"):
        return {}, text
    end = text.find("\n---", 3, LONGEST_FRONT)
    if end < 0:
        return {}, text
    try:
        value = yaml.load(text[text.find("\n") : end], yaml.BaseLoader)  # noqa: S506  it makes texts, lists, objects
    except (yaml.YAMLError, ValueError, RecursionError):
        value = None
    found = value.items() if isinstance(value, dict) else ()
    return {key: one for key, one in found if isinstance(key, str) and isinstance(one, str)}, text[end + 4 :]


# --- basic-memory ---


def _observations(text: str, place: str) -> Iterator[Item]:
    front, body = _front_matter(text)
    title = label(front.get("title") or front.get("permalink") or "", 100)
    fenced = False
    for line in map(str.strip, body.splitlines()):
        fenced ^= line.startswith("```")
        if fenced or len(line) > LONGEST_ITEM or line[:2] not in {"- ", "* "}:
            continue
        said = line[2:].strip()
        how, link, rest = said.partition("[[")
        other, closed, _ = rest.partition("]]")
        if link and closed:
            yield from _relation(how, other, title, place)
        elif said.startswith("[") and "]" in said:
            category, _, statement = said[1:].partition("]")
            yield from _observation(category, statement.strip(), title, place)


def _relation(how: str, other: str, title: str, place: str) -> Iterator[Item]:
    how = how.strip().strip('"').replace("_", " ").strip() or "relates to"
    other = label(other.partition("|")[0], 100).strip()
    yield from stated(
        f"{title} {how} {other}".strip(),
        f"relation:{digest(title, how, other)}",
        place,
        subjects=tuple(dict.fromkeys(filter(None, (title, other)))),
    )


def _observation(category: str, text: str, title: str, place: str) -> Iterator[Item]:
    if category in TASKS:
        return  # a task, which stands in the note
    said, context = text, ""
    if text.endswith(")") and "(" in text:
        said, _, context = text[:-1].rpartition("(")
    tags = tuple(dict.fromkeys(TAG.findall(said)))
    said = " ".join(TAG.sub("", said).split())
    if not said:
        yield Skipped(place=place, reason="an observation is empty")
        return
    yield from stated(
        said,
        f"observation:{digest(title, category, said)}",
        place,
        subjects=(title,) if title else (),
        tags=tags,
        category=plain(category).strip(),
        metadata={"context": context},
    )
