"""
The tables of words, which stand in the TOML files next to this module; each file is read once.

A table is named by its file and its place in it: `nouns.profession`, `verbs.end.stop`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from memoryd.knowledge.lexicon.spelling import stem

__all__ = ["Verb", "particles_of", "split", "stems", "table", "verb_of", "verbs", "words"]

_FILES = "memoryd.knowledge.lexicon"
MOST_FORMS = 2  # of a verb: the past and the participle
_NAME_OF_VERB = re.compile(r"[\w'-]+(?: (?:\* )?[\w'-]+)*")


@cache
def _file(name: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(resources.files(_FILES).joinpath(f"{name}.toml").read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"lexicon/{name}.toml: {error}") from error


def table(path: str) -> Any:
    """Return what stands at a place; KeyError where there is nothing."""
    name, *parts = path.split(".")
    found: Any = _file(name)
    for part in parts:
        found = found[part]
    return found


@cache
def words(path: str) -> tuple[str, ...]:
    """Return the words of a table in their order: those between spaces, or the phrases between slashes."""
    return split(table(path))


def split(listed: str) -> tuple[str, ...]:
    """Return the words of a text that stand between spaces, or between slashes where some are phrases."""
    parts = listed.split("/") if "/" in listed else listed.split()
    return tuple(" ".join(part.split()) for part in parts if part.strip())


@cache
def stems(path: str) -> frozenset[str]:
    """Return the stems of the words of a table."""
    return frozenset(stem(words(path)))


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb in one of its senses."""

    name: str
    """As it stands in the table, without the mark for its object: "give up"."""
    sense: str
    """The table that it stands in: "end.abandon"."""
    past: tuple[str, ...]
    participle: tuple[str, ...]
    particle: str
    """What stands behind each of its forms: "up"; empty for none."""
    splits: bool
    """Whether its object may stand before that: "gave it up"."""

    @property
    def done(self) -> tuple[str, ...]:
        """The forms that tell that it has been done, with the words behind the verb."""
        return tuple(f"{form} {self.particle}".strip() for form in dict.fromkeys((*self.past, *self.participle)))


@cache
def verbs(sense: str) -> tuple[Verb, ...]:
    """Return the verbs of a sense, and of all that begin with it: "end" has those of "end.stop"."""
    found = table(f"verbs.{sense}")
    return tuple(_verbs(sense, found))


def verb_of(form: str) -> Verb | None:
    """Return the verb of an end that a text in lower case is a form of; a form stands in one sense alone."""
    verb = _by_form().get(form)
    return verb if verb is not None and verb.sense.startswith("end") else None


@cache
def _by_form() -> Mapping[str, Verb]:
    """Return the verb of each form; ValueError for a form in two senses."""
    by_lemma: dict[str, Verb] = {}
    for verb in (verb for sense in table("verbs") for verb in verbs(sense)):
        for form in verb.done:
            if by_lemma.setdefault(form, verb) is not verb:
                raise ValueError(
                    f"lexicon/verbs.toml: {form!r} stands in [{by_lemma[form].sense}] and in [{verb.sense}]"
                )
    return by_lemma


def particles_of(sense: str) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return of the verbs whose object may stand in between their forms, and what stands behind it."""
    found: dict[tuple[str, ...], list[str]] = {}
    for verb in verbs(sense):
        if verb.splits:
            found.setdefault((*verb.past, *verb.participle), []).append(verb.particle)
    return [(tuple(dict.fromkeys(forms)), tuple(particles)) for forms, particles in found.items()]


def _verbs(sense: str, found: Mapping[str, Any]) -> Iterator[Verb]:
    for name, forms in found.items():
        if isinstance(forms, Mapping):
            yield from _verbs(f"{sense}.{name}", forms)
        else:
            yield _verb(sense, name, forms)


def _verb(sense: str, name: str, forms: Any) -> Verb:
    plain = name.replace("* ", "")
    if forms == "-":
        return Verb(plain, sense, (plain,), (), "", splits=False)
    base, _, particle = plain.partition(" ")
    is_name = _NAME_OF_VERB.fullmatch(name) is not None and name.count("*") <= 1
    if not (is_name and isinstance(forms, str) and len(forms.split()) <= MOST_FORMS):
        raise ValueError(
            f'lexicon/verbs.toml, [{sense}]: "{name}" = {forms!r}: words; one may be *, but not the last; then'
            " the past and the participle"
        )
    past, *participle = [form.split("/") for form in forms.split()] or [[regular(base)]]
    return Verb(plain, sense, tuple(past), tuple((participle or [past])[0]), particle, splits=plain != name)


def regular(base: str) -> str:
    """Return the past of a regular verb: "tried" of "try", "stopped" is none."""
    if base.endswith("e"):
        return f"{base}d"
    return f"{base[:-1]}ied" if re.search(r"[^aeiou]y$", base) else f"{base}ed"
