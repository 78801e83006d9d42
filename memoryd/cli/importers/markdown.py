"""Markdown files as notes: CLAUDE.md, AGENTS.md, folders, the memory of Claude Code, and basic-memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from memoryd.cli.importers.items import Item, Skipped, digest, kept, label, plain, stated, time_of
from memoryd.cli.importers.source import Damaged, Source
from memoryd.model import limits

__all__ = ["read", "read_basic_memory", "read_claude_code"]

SUFFIXES = frozenset({".md", ".markdown", ".mdx"})
CLAUDE = "memories/"
"""Where Claude's memory tool looks, so that what Claude Code kept is found by it."""
MOST_FILES = 100_000
FRONT = re.compile(r"\A---\s*\n(.{0,16384}?)\n---\s*(?:\n|\Z)", re.DOTALL)
OBSERVATION = re.compile(r"^\s*[-*]\s+\[([^\]\n]{1,60})\]\s+(.+?)\s*$")
RELATION = re.compile(r"^\s*[-*]\s+(.*?)\s*\[\[([^\]\n]{1,200})\]\]")
TAG = re.compile(r"(?<!\S)#([\w/-]{1,60})")
CONTEXT = re.compile(r"\s*\(([^()]{1,200})\)\s*$")
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
        if text is not None:
            yield from _observations(text, item.place)


def _notes(source: Source, below: str, *, by_permalink: bool = False) -> Iterator[tuple[str | None, Item]]:
    """Yield each file as a note, with its text; None in place of the text where it is left out."""
    for path, name in _files(source):
        place = f"file {label(name, 200)}"
        if path.is_symlink():
            yield None, Skipped(place=place, reason="it is a link")
            continue
        try:
            status = path.stat()
            text = path.read_text(encoding="utf-8") if status.st_size <= limits.MAX_NOTE_BYTES else None
        except UnicodeDecodeError:
            yield None, Skipped(place=place, reason="it is no text in UTF-8")
            continue
        except OSError as error:
            yield None, Skipped(place=place, reason=f"it cannot be read: {error.strerror}")
            continue
        if text is None:
            yield None, Skipped(place=place, reason="its text is larger than memoryd keeps")
            continue
        permalink = _front_matter(text).get("permalink") if by_permalink else None
        target = f"{permalink}.md" if isinstance(permalink, str) and permalink.strip("/ ") else name
        changed = time_of(status.st_mtime)
        for item in kept(below + target.strip("/"), text, place, create_time=changed, update_time=changed):
            yield None if isinstance(item, Skipped) else text, item


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


def _front_matter(text: str) -> dict[str, Any]:
    """Return what stands above the text in YAML; nothing where it is none."""
    found = FRONT.match(text)
    try:
        value = yaml.safe_load(found[1]) if found else None
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


# --- basic-memory ---


def _observations(text: str, place: str) -> Iterator[Item]:
    front = _front_matter(text)
    title = label(front.get("title") or front.get("permalink") or "", 100)
    body = FRONT.sub("", text)
    fenced = False
    for line in body.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced:
            continue
        observation, relation = OBSERVATION.match(line), RELATION.match(line)
        if observation and "[[" not in line:
            yield from _observation(observation[1], observation[2], title, place)
        elif relation:
            how = relation[1].strip().strip('"').strip() or "relates to"
            other = label(relation[2], 100)
            yield from stated(
                f"{title} {how} {other}".strip(),
                f"relation:{digest(title, how, other)}",
                place,
                subjects=tuple(dict.fromkeys(filter(None, (title, other)))),
            )


def _observation(category: str, text: str, title: str, place: str) -> Iterator[Item]:
    if category in TASKS:
        return  # a task, which stands in the note
    context = CONTEXT.search(text)
    said = CONTEXT.sub("", text) if context else text
    tags = tuple(dict.fromkeys(TAG.findall(said)))
    said = re.sub(r"\s{2,}", " ", TAG.sub("", said)).strip()
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
        metadata={"context": context[1]} if context else {},
    )
