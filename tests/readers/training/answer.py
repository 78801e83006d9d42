"""
Training of the answer reader: of each question to a store what answers it, and what is nearest to it and does not.

It begins from the adapters of the change reader (of the one in the same folder, if any), which reads pairs already. A
second phase adds what people type that is no question to the store, with the statements that help, and a third the
notes of questions without an answer.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import jax
import numpy as np
import optax

from memoryd.embedding.readers.adapters import reader_tokenizer
from memoryd.embedding.readers.texts import asked_ids
from tests.readers.answer_pairs import Asked, asked_of, noted_of, with_notes_of
from tests.readers.training.encoder import WIDTH, Arrays, read_file, write_file
from tests.readers.training.fit import Examples, Phase, fit, logits_of, with_head
from tests.readers.voices import voices

__all__ = ["train"]

QUESTIONS, ALL, NOTES = Phase(1, 5e-4), Phase(1, 5e-4), Phase(4, 5e-4)
CHANGE = files("memoryd.embedding") / "data" / "readers" / "change.npz"
READ = 12  # of the nearest that are judged with …
EVERY = 4  # … of every so many questions; of so many pairs one is enough to begin the head with
SHARES = (0.5, 0.7, 0.9)


def _examples(pairs: list[Asked]) -> tuple[Examples, list[Asked]]:
    found = asked_ids(reader_tokenizer(), [(pair.question, pair.statement) for pair in pairs], cut=True)
    read = [(ids, pair) for ids, pair in zip(found, pairs, strict=True) if ids is not None]
    wanted = np.array([[pair.answers] for _, pair in read], np.float32)
    return Examples([ids for ids, _ in read], [(0, 1)] * len(read), wanted), [pair for _, pair in read]


def _loss(logits: jax.Array, wanted: jax.Array) -> jax.Array:
    return optax.sigmoid_binary_cross_entropy(logits[:, 0], wanted[:, 0])


def _report(logits: np.ndarray, pairs: list[Asked]) -> str:
    """Return how often what answers is first by nearness and by the reader, and the scores of the best."""
    by_question: dict[int, list[tuple[float, float, bool]]] = {}
    for logit, pair in zip(logits.tolist(), pairs, strict=True):
        by_question.setdefault(pair.number, []).append((logit, pair.nearness, pair.answers))
    answered = [some for some in by_question.values() if any(right for *_, right in some)]
    told = []
    for n, name in ((1, "nearness"), (0, "reader")):
        ranks = [[right for *_, right in sorted(some, key=lambda one: -one[n])].index(True) + 1 for some in answered]
        told.append(f"by {name} first {np.mean(np.array(ranks) == 1):.3f}, MRR {np.mean(1 / np.array(ranks)):.3f}")
    chances = [
        [1 / (1 + np.exp(-max(logit for logit, *_ in some))) for some in of]
        for of in (answered, [some for some in by_question.values() if not any(right for *_, right in some)])
    ]
    told += [
        f"{name}: {np.quantile(some, SHARES).round(2).tolist()}"
        for name, some in zip(("best of answered", "of others"), chances, strict=True)
    ]
    return "; ".join(told)


def train(out: Path, begun: Path | None = None) -> None:
    """Train, after each epoch write the file and say how it does on what is apart; `begun`: on from a file."""
    tuned_with, apart = ([voice for voice in voices() if voice.is_apart is is_apart] for is_apart in (False, True))
    tried = {
        name: _examples([pair for pair in pairs if pair.number % every == 0])
        for name, pairs, every in (
            ("questions", asked_of(apart, all_nearest=READ), EVERY),
            ("prompts", asked_of(apart, prompts=True, all_nearest=READ), 1),
            ("notes", noted_of(apart), EVERY),
        )
    }
    phases = (
        (QUESTIONS, lambda: list(asked_of(tuned_with))),
        (ALL, lambda: [pair for are in (False, True) for pair in asked_of(tuned_with, prompts=are, elsewhere=True)]),
        (NOTES, lambda: list(with_notes_of(tuned_with))),
    )

    def tell(tuned: Arrays) -> None:
        write_file(out, tuned)
        for name, (examples, pairs) in tried.items():
            print(f"  {name}: {_report(logits_of(tuned, examples)[:, 0], pairs)}", flush=True)

    if begun is None:
        beside = out.with_name("change.npz")
        adapters = read_file(beside if beside.is_file() else Path(str(CHANGE)))
        new = {**adapters, "head.weight": np.zeros((WIDTH, 1), np.float32), "head.bias": np.zeros(1, np.float32)}
        tuned = with_head(new, _examples(list(asked_of(tuned_with))[::EVERY])[0], _loss)
    else:
        tuned = read_file(begun)
    for phase, pairs in phases if begun is None else phases[-1:]:
        examples, read = _examples(pairs())
        print(f"{len(read)} pairs, {int(examples.wanted.sum())} answer or help", flush=True)
        fit(tuned, examples, phase, _loss, tell)
        tuned = read_file(out)
