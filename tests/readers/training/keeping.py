"""Training of the keeping reader: the sentences of voices that are not apart."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from memoryd.embedding.readers.adapters import reader_tokenizer
from memoryd.embedding.readers.keeping import LABELS, NONE, OUTPUTS
from memoryd.embedding.readers.texts import after_ids
from tests.readers.keeping.sentences import CLEAR, Said, clearness, sentences_of, statements_of
from tests.readers.training.encoder import Arrays, beginning, frozen, read_file, write_file
from tests.readers.training.fit import Examples, Phase, fit, logits_of, with_head
from tests.readers.voices import voices

__all__ = ["train"]

PHASE = Phase(3, 1e-3)
PRECISIONS = (0.8, 0.9, 0.95)


def _examples(said: list[Said]) -> tuple[Examples, list[Said]]:
    found = after_ids(reader_tokenizer(), [(one.before, one.sentence) for one in said])
    read = [(ids, one) for ids, one in zip(found, said, strict=True) if ids is not None]
    wanted, clear = np.zeros((len(read), OUTPUTS), np.float32), clearness()
    for n, (_, one) in enumerate(read):
        wanted[n, -1] = CLEAR[clear.get(one.sentence, "")]
        wanted[n, [LABELS.index(one.label)] if one.label else slice(1, len(LABELS))] = 1
    return Examples([ids for ids, _ in read], [(0, len(ids)) for ids, _ in read], wanted), [one for _, one in read]


def _loss(logits: jax.Array, wanted: jax.Array) -> jax.Array:
    shares = jax.nn.log_softmax(logits[:, :-1], axis=1)
    worth = -jax.nn.logsumexp(shares, axis=1, b=wanted[:, :-1])  # of several that are right, any
    clear = optax.sigmoid_binary_cross_entropy(logits[:, -1], wanted[:, -1])
    return worth + jnp.where(wanted[:, -1] >= 0, clear, 0)


def train(out: Path, begun: Path | None = None) -> None:
    """Train, say after each epoch how well it does on what is apart, and write the file; `begun`: on from a file."""
    tuned_with = [voice for voice in voices() if not voice.is_apart]
    examples, _ = _examples([*sentences_of(tuned_with), *statements_of(tuned_with)])
    apart, said = _examples(list(sentences_of(voice for voice in voices() if voice.is_apart)))
    kept = np.array([one.label != NONE for one in said])
    print(f"{len(examples.ids)} sentences, {int((examples.wanted[:, 0] == 0).sum())} to keep; apart {len(said)}")

    def tell(tuned: Arrays) -> None:
        logits = logits_of(tuned, apart)
        shares = np.asarray(jax.nn.softmax(jnp.asarray(logits[:, :-1]), axis=1))
        right = (shares[kept, 1:].argmax(axis=1) == apart.wanted[kept, 1:-1].argmax(axis=1)).mean()
        print(f"  {_curve(1 - shares[:, 0], kept)}; label right {right:.3f}", flush=True)
        is_told = np.isin(apart.wanted[:, -1], (0, 1))
        clear = 1 / (1 + np.exp(-logits[is_told, -1]))
        print(f"  clear: {_curve(clear, apart.wanted[is_told, -1] == 1)}", flush=True)

    new = beginning(frozen(), OUTPUTS)
    tuned = with_head(new, examples, _loss) if begun is None else read_file(begun)
    tell(tuned)
    write_file(out, fit(tuned, examples, PHASE, _loss, tell))


def _curve(scores: np.ndarray, is_kept: np.ndarray) -> str:
    """Return the average precision, and the recall at some precisions with the score from which on it is had."""
    order = np.argsort(-scores)
    found = np.cumsum(is_kept[order])
    precision, recall = found / np.arange(1, len(order) + 1), found / is_kept.sum()
    told = [f"average precision {(precision * is_kept[order]).sum() / is_kept.sum():.3f}"]
    for least in PRECISIONS:
        good = np.flatnonzero(precision >= least)
        if len(good):
            told.append(f"{least:.2f} at recall {recall[good[-1]]:.3f} (≥ {scores[order][good[-1]]:.2f})")
    return ", ".join(told)
