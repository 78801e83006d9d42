"""
`make eval SETS=curves`: what each reader finds and how much of it is right, from one threshold to the next.

Read in this process, of the voices that nothing is tuned with; drawn as docs/readers.svg and docs/answers.svg.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.retrieval.answers_read import NEAR, OF_EACH
from memoryd.embedding.readers.answer import answer_reader
from memoryd.embedding.readers.change import builtin_reader
from memoryd.embedding.readers.keeping import NONE, keeping_reader
from memoryd.embedding.readers.people import PeopleFinder
from memoryd.embedding.readers.thresholds import ANSWERING, CLEAR, CONTESTED, KEPT, LEAST_NEAR, NAMED
from tests.eval.pictures import curves
from tests.readers.answer_pairs import asked_of, noted_of
from tests.readers.change.pairs import encoded, voices_apart
from tests.readers.keeping.sentences import clearness, sentences_of
from tests.readers.people.names import common_words, named_of
from tests.readers.voices import Voice, voices

__all__ = ["draw"]

PICTURES = Path(__file__).parents[2] / "docs"
IN_USE = {ANSWERING, CLEAR, CONTESTED, KEPT, NAMED}
FROM = tuple(sorted({0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95} | IN_USE))
EVERY = 4  # question with an answer is read

Bools = NDArray[np.bool_]
Scores = NDArray[np.float64]


def _changes() -> tuple[Scores, Bools]:
    pairs = voices_apart(encoded)["voices, later"]
    near = np.einsum("nd,nd->n", encoded([pair.old for pair in pairs]), encoded([pair.new for pair in pairs]))
    reader = builtin_reader()
    scores = np.array(asyncio.run(reader.read([(pair.old, pair.new) for pair in pairs])))
    reader.close()
    return np.where(near >= LEAST_NEAR, scores, 0), np.array([pair.is_change for pair in pairs])


def _keeping(apart: Sequence[Voice]) -> dict[str, tuple[Scores, Bools]]:
    said, reader, labels = list(sentences_of(apart)), keeping_reader(), clearness()
    worth = asyncio.run(reader.read([(one.before, one.sentence) for one in said]))
    kept = np.array([one.kept for one in worth]), np.array([one.label != NONE for one in said])
    told = [one.sentence for one in said if labels.get(one.sentence) in {"clear", "unclear"}]
    alone = asyncio.run(reader.read([("", sentence) for sentence in told]))
    reader.close()
    return {
        f"worth keeping ({KEPT})": kept,
        f"understood alone ({CLEAR})": (
            np.array([one.clear for one in alone]),
            np.array([labels[sentence] == "clear" for sentence in told]),
        ),
    }


def _people(apart: Sequence[Voice]) -> tuple[Scores, Bools]:
    finder = PeopleFinder()
    found = [
        (word.named, named.words[word.start, word.end])
        for named in named_of(apart, common_words(voices()))
        for word in finder.read(named.text)
        if (word.start, word.end) in named.words
    ]
    scores, is_named = zip(*found, strict=True)
    return np.array(scores), np.array(is_named)


def _best_answers(apart: Sequence[Voice]) -> dict[str, Scores]:
    """Return by kind of question what the answer reader says of the best of those that it reads."""
    reader = answer_reader()
    pairs = {
        "questions": [one for one in asked_of(apart, all_nearest=OF_EACH) if one.number % EVERY == 0],
        "notes": list(noted_of(apart)),
        "prompts": list(asked_of(apart, prompts=True, all_nearest=OF_EACH)),
    }
    best: dict[str, dict[int, float]] = {}
    answered: dict[tuple[str, int], bool] = {}
    for kind, some in pairs.items():
        read = asyncio.run(reader.read([(one.question, one.statement) for one in some]))
        for one, value in zip(some, read, strict=True):
            answered[kind, one.number] = answered.get((kind, one.number), False) or one.answers
            of = best.setdefault(kind, {})
            is_shown = one.nearness >= NEAR or value is None  # whatever is read of it
            of[one.number] = max(of.get(one.number, 0.0), 1.0 if is_shown else value)
    reader.close()

    def of(kind: str, *, is_answered: bool) -> Scores:
        return np.array([value for n, value in best[kind].items() if answered[kind, n] is is_answered])

    return {
        "with an answer": of("questions", is_answered=True),
        "without": of("questions", is_answered=False),
        "answered by a note": of("notes", is_answered=True),
        "with a note beside": of("notes", is_answered=False),
        "prompts with help": of("prompts", is_answered=True),
        "prompts without": of("prompts", is_answered=False),
    }


def _points(scores: Scores, is_right: Bools) -> list[tuple[float, float]]:
    """Return the share that is found, and that of what is found that is right, by threshold."""
    found = [scores >= least for least in FROM]
    return [(float(some[is_right].mean()), float(is_right[some].mean())) for some in found if some.any()]


def _printed(title: str, lines: Mapping[str, Iterable[tuple[float, float]]]) -> None:
    print(f"{title}, from {', '.join(f'{least:g}' for least in FROM)} on:")
    for name, points in lines.items():
        print(f"  {name}: " + " ".join(f"{x:.2f}/{y:.2f}" for x, y in points))


def draw(some: Sequence[Voice], *, to_docs: bool = True) -> None:
    """Print the curves of the readers that judge, and draw them."""
    lines = {f"changes ({CONTESTED})": _changes(), **_keeping(some), f"words of names ({NAMED})": _people(some)}
    drawn = {name: _points(*one) for name, one in lines.items()}
    _printed("found/right", drawn)
    pictures = {"readers.svg": curves(drawn, x="of what there is, found", y="of what is found, right")}
    best = _best_answers(some)

    def gate(shown: str, hidden: str) -> list[tuple[float, float]]:
        return [(float((best[shown] >= least).mean()), float((best[hidden] < least).mean())) for least in FROM]

    doors = {
        f"questions to a store ({ANSWERING})": gate("with an answer", "without"),
        "a note that answers, or none": gate("answered by a note", "without"),
        "a note that answers, or one beside": gate("answered by a note", "with a note beside"),
        "prompts": gate("prompts with help", "prompts without"),
    }
    _printed("shown/left empty", doors)
    pictures["answers.svg"] = curves(doors, x="with an answer: something shown", y="without: nothing shown")
    for name, picture in pictures.items() if to_docs else ():
        (PICTURES / name).write_text(picture, encoding="utf-8")
        print(f"drawn in {PICTURES.name}/{name}", file=sys.stderr)
