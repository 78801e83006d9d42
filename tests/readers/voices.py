"""
The texts that the readers are tuned and judged with: one file of `voices/` a person; their format is in voices.md.

Every score is of voices that nothing was tuned with (`is_apart`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

__all__ = [
    "ADDED",
    "EFFECTS",
    "KINDS",
    "LABELS",
    "Kept",
    "Later",
    "Prompt",
    "Question",
    "Statement",
    "Turn",
    "Voice",
    "faults",
    "voices",
]

FOLDER = Path(__file__).parent / "voices"
KINDS = {"direct", "indirect", "other_person", "when", "short", "long", "list", "why", "unanswerable"}
EFFECTS = {"replaces", "contests", "both_hold"}
LABELS = {"fact", "preference", "plan", "event", "instruction", "remember", "temporary"}
NOTES = 2  # of a question without an answer
APART = 5  # every fifth voice is judged with
ADDED = 7  # the last of what comes later: told otherwise than the rest, and nothing is tuned with it (voices.md)


@dataclass(frozen=True, slots=True)
class Statement:
    """A memory of somebody's store, and when it was stored."""

    text: str
    day: date


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody asks; the places of the statements that answer, best first, and of some near ones that do not."""

    text: str
    kind: str
    answers: tuple[int, ...]
    near: tuple[int, ...]
    notes: tuple[str, ...] = ()
    """Of a question that nothing answers: what would, had it been stored; plainly, and told in passing."""
    beside: str = ""
    """Of such a question: what is about the same matter, and does not answer."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What somebody types that asks for nothing stored, and the places of the statements that help with it."""

    text: str
    useful: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Later:
    """A statement that comes after the store, the places of those that it is about, and what becomes of them."""

    text: str
    day: date
    old: tuple[int, ...]
    effect: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A sentence of a turn that is worth keeping, what it is and about whom, and itself as it stands alone."""

    sentence: str
    label: str
    about: str
    alone: str


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody says; the first turn of a conversation may tell its day."""

    who: str
    text: str
    day: date | None
    kept: tuple[Kept, ...]


@dataclass(frozen=True, slots=True)
class Voice:
    """One person with a store, questions to it, what changes later, and some conversations."""

    id: str
    persona: str
    store: tuple[Statement, ...]
    questions: tuple[Question, ...]
    prompts: tuple[Prompt, ...]
    later: tuple[Later, ...]
    dialogue: tuple[Turn, ...]

    @property
    def is_apart(self) -> bool:
        """Whether nothing is tuned with it."""
        return hashlib.sha256(self.id.encode()).digest()[0] % APART == 0


@cache
def voices() -> tuple[Voice, ...]:
    """Return all voices, by id."""
    return tuple(_read(path) for path in sorted(FOLDER.glob("*.json")))


def _read(path: Path) -> Voice:
    told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return Voice(
        told["id"],
        told["persona"],
        tuple(Statement(one["text"], date.fromisoformat(one["date"])) for one in told["store"]),
        tuple(
            Question(
                one["q"],
                one["kind"],
                tuple(one["answers"]),
                tuple(one["near"]),
                tuple(one.get("notes", ())),
                one.get("beside", ""),
            )
            for one in told["questions"]
        ),
        tuple(Prompt(one["text"], tuple(one["useful"])) for one in told["prompts"]),
        tuple(
            Later(one["text"], date.fromisoformat(one["date"]), tuple(one["old"]), one["effect"])
            for one in told["later"]
        ),
        tuple(
            Turn(
                one["who"],
                one["text"],
                date.fromisoformat(one["date"]) if "date" in one else None,
                tuple(Kept(**kept) for kept in one.get("keep", ())),
            )
            for one in told["dialogue"]
        ),
    )


def faults(voice: Voice) -> Iterator[str]:
    """Yield what is wrong with a voice."""
    places = range(len(voice.store))
    texts = [one.text for one in voice.store]
    if len(set(texts)) < len(texts):
        yield "a statement is there twice"
    if any(one.day > other.day for one, other in pairwise(voice.store)):
        yield "the store is not in order of time"
    for question in voice.questions:
        named = (*question.answers, *question.near)
        if question.kind not in KINDS or any(place not in places for place in named):
            yield f"kind or places of {question.text!r}"
        if len(set(named)) < len(named) or not question.near:
            yield f"answers and near ones of {question.text!r}"
        if len(set(question.notes)) != (0 if question.answers else NOTES) or bool(question.beside) is bool(
            question.answers
        ):
            yield f"what is unanswerable has notes that would answer and one that would not: {question.text!r}"
        if (question.kind == "unanswerable") is bool(question.answers):
            yield f"what is unanswerable has no answers, and all else has: {question.text!r}"
    for prompt in voice.prompts:
        if len(set(prompt.useful)) < len(prompt.useful) or any(place not in places for place in prompt.useful):
            yield f"places of {prompt.text!r}"
    for later in voice.later:
        if later.effect not in EFFECTS or not later.old or any(place not in places for place in later.old):
            yield f"effect or places of {later.text!r}"
    yield from _faults_of_talk(voice)


def _faults_of_talk(voice: Voice) -> Iterator[str]:
    for turn in voice.dialogue:
        for kept in turn.kept:
            if kept.label not in LABELS or kept.sentence not in turn.text or not (kept.about and kept.alone):
                yield f"what is kept of {turn.text!r}"
            if turn.who == "assistant":
                yield f"nothing of an assistant is kept: {turn.text!r}"
