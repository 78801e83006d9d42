"""
The pairs that the change reader is tuned and measured with.

`statements.tsv` holds an older statement a line, two newer ones that make it untrue now (told plainly, and in passing),
and three that do not (near it; of another or of another time; of another matter). `together.txt` holds groups of
statements about one person or thing that are all true at once, and `stores.txt` whole stores of one user each, of which
the same holds. The voices of tests/readers give what comes later, beside what it is about and what it is not, and what
is near each other in their stores. `strangers.tsv` is by people who knew neither these nor the rules, and only measured
with, as are the voices that are apart.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memoryd.embedding.packaged import builtin_encoder
from memoryd.embedding.readers.thresholds import LEAST_NEAR
from tests.readers.voices import ADDED, Later, Voice, voices

__all__ = [
    "Pair",
    "Statement",
    "added_pairs",
    "encoded",
    "groups_apart",
    "held_apart",
    "near_pairs",
    "pairs_of",
    "refining_pairs",
    "stores",
    "strangers_pairs",
    "training_pairs",
    "unread_pairs",
    "voices_apart",
    "voices_pairs",
]

FOLDER = Path(__file__).parent
KNOWLEDGE = FOLDER.parents[1] / "knowledge"
CHANGES, FIELDS = 2, 6
APART = 10  # every tenth line is held apart from training
GROUPS_APART = 6  # every sixth group, likewise
NEAR_PAIRS = 6  # of a statement of a store, the nearest ones
GRAMMAR_PAIRS = 600  # of changes.txt: more of one frame teach nothing
SEED = 0
PERHAPS = 0.7  # what is wanted where one would ask whether the older statement still holds
BESIDE_LATER, BESIDE_STORED = 2, 4  # statements that a new one is read beside, and that hold
HARDEST, OTHERS, OLD = 8000, 4000, 3000  # pairs of stores of which the model was surest, others, and of earlier phases


@dataclass(frozen=True, slots=True)
class Statement:
    """An older statement, what makes it untrue, and what does not."""

    old: str
    changes: tuple[str, ...]
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """An older statement, a newer one, and whether that makes the older one untrue now."""

    old: str
    new: str
    is_change: bool
    wanted_of_change: float = 1.0

    @property
    def wanted(self) -> float:
        """What the model is to say, 0–1."""
        return self.wanted_of_change if self.is_change else 0.0


def statements() -> list[Statement]:
    """Return the lines of statements.tsv."""
    rows = [line.split("\t") for line in (FOLDER / "statements.tsv").read_text(encoding="utf-8").splitlines()]
    assert all(len(row) == FIELDS for row in rows)
    return [Statement(row[0], tuple(row[1 : 1 + CHANGES]), tuple(row[1 + CHANGES :])) for row in rows]


def held_apart() -> list[Statement]:
    """Return the lines that nothing is trained with."""
    return statements()[::APART]


def pairs_of(known: list[Statement]) -> Iterator[Pair]:
    """Yield the pairs of each line."""
    for one in known:
        yield from (Pair(one.old, new, is_change=True) for new in one.changes)
        yield from (Pair(one.old, new, is_change=False) for new in one.others)


def _blocks(name: str) -> list[list[str]]:
    text = (FOLDER / name).read_text(encoding="utf-8").strip()
    return [block.split("\n") for block in text.split("\n\n")]


def groups() -> list[list[str]]:
    """Return the groups of together.txt."""
    return _blocks("together.txt")


def stores(*, apart: bool) -> list[list[str]]:
    """Return the stores that are held apart from training, or the others."""
    return [store for n, store in enumerate(_blocks("stores.txt")) if (n % GROUPS_APART == 0) is apart]


AT_ONCE = 64
Encode = Callable[[list[str]], NDArray[np.float32]]
_encoder = cache(builtin_encoder)


def encoded(texts: list[str]) -> NDArray[np.float32]:
    """Return vectors of the packaged encoder, some texts at a time."""
    cut = (texts[n : n + AT_ONCE] for n in range(0, len(texts), AT_ONCE))
    return np.concatenate([np.asarray(_encoder().encode(some, query=False)) for some in cut])


def near_pairs(known: Iterable[list[str]], encode: Encode, *, most: int) -> list[Pair]:
    """Return statements of stores with those of the same store that are nearest to them; all are true at once."""
    found = []
    for store in known:
        vectors = encode(store)
        near = vectors @ vectors.T
        for n, new in enumerate(store):
            nearest = [int(m) for m in np.argsort(-near[n]) if m != n and near[n, m] >= LEAST_NEAR][:most]
            found += [Pair(store[m], new, is_change=False) for m in nearest]
    return found


def groups_apart() -> list[Pair]:
    """Return the pairs of the groups that nothing is trained with; all of their statements are true at once."""
    return [
        Pair(old, new, is_change=False) for group in groups()[::GROUPS_APART] for old, new in permutations(group, 2)
    ]


def training_pairs() -> list[Pair]:
    """Return what the model is trained with: what is not held apart, chance pairs, and the read sets."""
    chance = random.Random(SEED)
    known = [one for n, one in enumerate(statements()) if n % APART]
    found = list(pairs_of(known))
    for n, one in enumerate(known):
        near = known[(n + chance.choice((-2, -1, 1, 2))) % len(known)]  # lines beside each other are of one matter
        found.append(Pair(one.old, chance.choice(near.changes), is_change=False))
        other = chance.choice(known)
        found.append(Pair(one.old, chance.choice((*other.changes, other.old)), is_change=False))
    for n, group in enumerate(groups()):
        together = list(permutations(group, 2)) if n % GROUPS_APART else []
        found += [Pair(old, new, is_change=False) for old, new in chance.sample(together, len(together) // 2)]
    grammar = list(_listed("changes.txt"))
    found += chance.sample(grammar, GRAMMAR_PAIRS)
    found += [*_listed("changes_apart.txt"), *_listed("changes_read.txt"), *_judged()]
    return found


def refining_pairs(encode: Encode) -> list[Pair]:
    """Return what it is refined with: what is near each other in whole stores, and as many of the others."""
    chance = random.Random(SEED)
    found = near_pairs(stores(apart=False), encode, most=NEAR_PAIRS)
    for n, one in enumerate(statements()):
        if n % APART:
            found.append(Pair(chance.choice(one.others), one.old, is_change=False))
    return found + chance.sample(training_pairs(), len(found))


def voices_apart(encode: Encode) -> dict[str, list[Pair]]:
    """Return the pairs of the voices that nothing is tuned with: of what comes later, and of whole stores."""
    known = [voice for voice in voices() if voice.is_apart]
    return {
        "voices, later": [pair for voice in known for pair in _later_pairs(voice, voice.later)],
        "voices, added": [pair for voice in known for pair in _later_pairs(voice, voice.later[-ADDED:])],
        "voices, stores": [pair for voice in known for pair in _older_pairs(voice, encode)],
    }


def added_pairs() -> list[Pair]:
    """Return the pairs of what was added to the voices that are tuned with; nothing is tuned with these pairs."""
    return [pair for voice in voices() if not voice.is_apart for pair in _later_pairs(voice, voice.later[-ADDED:])]


Score = Callable[[list[Pair]], NDArray[np.float32]]


def voices_pairs(encode: Encode, score: Score) -> list[Pair]:
    """Return what it is tuned with of voices: what comes later, what else is near that, and what is near in stores."""
    chance = random.Random(SEED)
    known = [voice for voice in voices() if not voice.is_apart]
    found = [pair for voice in known for pair in _later_pairs(voice, voice.later[:-ADDED])]
    found += [pair for voice in known for pair in _beside_later(voice, encode)]
    stored = [pair for voice in known for pair in _older_pairs(voice, encode)]
    order = np.argsort(-score(stored), kind="stable").tolist()
    others = order[HARDEST:]
    chosen = [*order[:HARDEST], *chance.sample(others, min(OTHERS, len(others)))]
    return [*found, *(stored[n] for n in chosen), *chance.sample(training_pairs(), OLD)]


def _later_pairs(voice: Voice, said: Iterable[Later]) -> Iterator[Pair]:
    for later in said:
        for place in later.old:
            wanted = PERHAPS if later.effect == "contests" else 1.0
            yield Pair(voice.store[place].text, later.text, later.effect != "both_hold", wanted)


def _beside_later(voice: Voice, encode: Encode) -> Iterator[Pair]:
    """Yield what comes later, but for what was added, with what is nearest to it and holds as before."""
    stored, said = encode([one.text for one in voice.store]), voice.later[:-ADDED]
    for later, vector in zip(said, encode([one.text for one in said]), strict=True):
        near = stored @ vector
        places = [int(n) for n in np.argsort(-near) if near[n] >= LEAST_NEAR and n not in later.old]
        yield from (Pair(voice.store[n].text, later.text, is_change=False) for n in places[:BESIDE_LATER])


def _older_pairs(voice: Voice, encode: Encode) -> Iterator[Pair]:
    """Yield each statement of a store with the older ones that are nearest to it; all hold at once."""
    vectors = encode([one.text for one in voice.store])
    for n, near in enumerate(vectors @ vectors.T):
        places = [int(m) for m in np.argsort(-near) if m < n and near[m] >= LEAST_NEAR]
        yield from (Pair(voice.store[m].text, voice.store[n].text, is_change=False) for m in places[:BESIDE_STORED])


def unread_pairs() -> list[Pair]:
    """Return the pairs of changes_unread.txt, by somebody else, with which nothing was trained."""
    return list(_listed("changes_unread.txt"))


def strangers_pairs() -> dict[str, list[Pair]]:
    """Return the pairs of strangers.tsv by who wrote them: people who knew neither the rules nor the other pairs."""
    found: dict[str, list[Pair]] = {}
    for line in (FOLDER / "strangers.tsv").read_text(encoding="utf-8").splitlines():
        writer, label, old, new = line.split("\t")
        found.setdefault(writer, []).append(Pair(old, new, is_change=label == "change"))
    return found


def _listed(name: str) -> Iterator[Pair]:
    for line in (KNOWLEDGE / name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            label, _, _, old, new = line.split("\t")
            yield Pair(old, new, is_change=label == "change")


def _judged() -> Iterator[Pair]:
    """Yield the pairs of pairs.txt that are certain."""
    section = ""
    for line in (KNOWLEDGE / "pairs.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif " | " in line and not line.startswith("#") and section in {"changed", "same", "both"}:
            old, _, new = line.removeprefix("!").partition("=>")[0].strip().partition(" | ")
            yield Pair(old.strip(), new.strip(), is_change=section == "changed")
