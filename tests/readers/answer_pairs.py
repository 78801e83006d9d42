"""Pairs of a question and a statement, of the voices: what the answer reader is tuned and judged with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from memoryd.embedding.readers.retrieval import retrieval_encoder
from tests.readers.voices import Voice

__all__ = ["Asked", "asked_of", "noted_of", "with_notes_of"]

OTHER = 37  # voices further on is the other store
NEAREST, NAMED = 2, 1  # of what does not answer: nearest by its vector, and named as near
MOST_RIGHT = 2  # statements of a store that answer
FEW = 4  # of the questions with an answer every so many
NEAR_NOTES = 5  # statements that are judged beside a note


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, a statement, whether it answers, and how near the two are."""

    number: int
    """Of the question."""
    question: str
    statement: str
    answers: bool
    nearness: float


def asked_of(
    some: Iterable[Voice], *, prompts: bool = False, elsewhere: bool = False, all_nearest: int = 0
) -> Iterator[Asked]:
    """
    Yield pairs to train with; or of each question the nearest, best first, as a search has them.

    `prompts`: of what people type that is no question instead. `elsewhere`: with the nearest of another store in place
    of the second nearest, as whoever writes down questions without an answer asks for other things than with one: what
    is read must be the statement.
    """
    encoder, number, known = retrieval_encoder(), 0, list(some)
    stores = [encoder.encode([one.text for one in voice.store], query=False) for voice in known]
    for n, voice in enumerate(known):
        other = (n + OTHER) % len(known)
        wanted = (
            [(one.text, one.useful, ()) for one in voice.prompts]
            if prompts
            else [(one.text, one.answers, one.near) for one in voice.questions]
        )
        for (text, right, named), vector in zip(
            wanted, encoder.encode([text for text, *_ in wanted], query=True), strict=True
        ):
            number += 1
            row = stores[n] @ vector
            near = np.argsort(-row).tolist()
            wrong = [place for place in near if place not in right][: NEAREST - elsewhere]
            for place in dict.fromkeys(near[:all_nearest] or [*right, *wrong, *named[:NAMED]]):
                yield Asked(number, text, voice.store[place].text, place in right, float(row[place]))
            if elsewhere:
                far = stores[other] @ vector
                yield Asked(number, text, known[other].store[int(far.argmax())].text, answers=False, nearness=far.max())


def with_notes_of(voices: Iterable[Voice]) -> Iterator[Asked]:
    """
    Yield pairs of which the kind of question tells nothing.

    Whoever writes down questions without an answer asks for other things than with one (names, codes, blood types): so
    here these are answered too, by notes. What does not answer is a statement of the store, a note for something else,
    or a statement of another store.
    """
    encoder, known = retrieval_encoder(), list(voices)
    stores = [encoder.encode([one.text for one in voice.store], query=False) for voice in known]
    number = 0
    for n, voice in enumerate(known):
        other = (n + OTHER) % len(known)
        notes = [(one.text, note) for one in voice.questions for note in one.notes]
        noted = encoder.encode([note for _, note in notes], query=False)
        asked = [
            (one.text, one.answers, one.notes) for k, one in enumerate(voice.questions) if one.notes or not k % FEW
        ]
        asked += [(one.text, one.useful, ()) for one in voice.prompts[::2]]
        for (text, right, told), vector in zip(
            asked, encoder.encode([text for text, *_ in asked], query=True), strict=True
        ):
            number += 1
            near = [place for place in np.argsort(-(stores[n] @ vector)).tolist() if place not in right]
            beside = [place for place in np.argsort(-(noted @ vector)).tolist() if notes[place][0] != text]
            pairs = [*((note, True) for note in told), *((voice.store[one].text, True) for one in right[:MOST_RIGHT])]
            pairs += [(voice.store[place].text, False) for place in near[:NEAREST]]
            pairs += [(notes[place][1], False) for place in beside[:1]]
            if number % 2:
                pairs.append((known[other].store[int((stores[other] @ vector).argmax())].text, False))
            for statement, answers in pairs:
                yield Asked(number, text, statement, answers, 0.0)


def noted_of(some: Iterable[Voice]) -> Iterator[Asked]:
    """Yield of each question without an answer what is nearest, with a note, and with what is beside instead."""
    encoder, number = retrieval_encoder(), 0
    for voice in some:
        stored = encoder.encode([one.text for one in voice.store], query=False)
        asked = [(one, told) for one in voice.questions if one.notes for told in (*one.notes, one.beside)]
        vectors = encoder.encode([one.text for one, _ in asked], query=True)
        noted = encoder.encode([told for _, told in asked], query=False)
        for (question, told), vector, note in zip(asked, vectors, noted, strict=True):
            number += 1
            yield Asked(number, question.text, told, told in question.notes, float(note @ vector))
            row = stored @ vector
            for place in np.argsort(-row)[:NEAR_NOTES].tolist():
                yield Asked(number, question.text, voice.store[place].text, answers=False, nearness=float(row[place]))
