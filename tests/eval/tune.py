"""
`make tune DATA=folder`: the weights of the ranking, over all development sets together.

From the weights in use, each is changed alone, by the steps below; each set says what it gains. What all sets together
gain most from is taken, several at a time, as long as it helps. For each set in turn the same is done without it, and
the set is scored with what the others chose: that is what to expect of data that nobody has seen. Prints the tables of
docs/benchmarks.md; changes nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from memoryd.domain.retrieval.ranking import WEIGHTS, Weights
from memoryd.index.legs import Windows
from tests.eval.local import LocalSet
from tests.eval.scorer import scorer_of

SETS = ("locomo", "beam-100k", "lifebench", "cranfield", "precisionmembench", "letta-core")
MAIN = {"cranfield": "nDCG@10", "precisionmembench": "R@5"}  # of the others R@10
FACTORS = (0.0, 0.6, 0.8, 1.25, 1.6)
SCALARS = (
    "vector", "statement_vector", "inherited_vector", "words", "statement_words", "tokens", "statement_tokens",
    "clause", "member", "time", "speaker", "assistant", "answer", "asking", "event",
)  # fmt: skip
WINDOWS = ("before", "after_question", "after", "two_away", "gate_pieces")
LEAST_GAIN = 0.0005  # of the mean over all sets: less is chance
_held: dict[str, LocalSet] = {}


def _figures(job: tuple[str, str, str, Weights]) -> dict[str, float]:
    folder, cache, name, weights = job
    if name not in _held:
        _held[name] = LocalSet(name, scorer_of(Path(folder)), Path(cache) if cache else None)
    found = _held[name].score(weights=weights)
    return {"main": found[MAIN.get(name, "R@10")], "MRR": found["MRR"]}


def _worth(figures: Mapping[str, float]) -> float:
    return (figures["main"] + figures["MRR"]) / 2


def _changes(weights: Weights) -> list[tuple[str, Weights]]:
    """Return every change of one weight, with its name."""
    found = [
        (f"{name} × {factor}", replace(weights, **{name: round(getattr(weights, name) * factor, 4)}))
        for name in SCALARS
        for factor in FACTORS
    ]
    for of in ("word_windows", "token_windows"):
        windows: Windows = getattr(weights, of)
        for name in WINDOWS:
            for factor in (0.6, 0.8, 1.25):
                changed = replace(windows, **{name: round(getattr(windows, name) * factor, 4)})
                found.append((f"{of}.{name} × {factor}", replace(weights, **{of: changed})))
    return found


def _merged(base: Weights, chosen: Sequence[Weights]) -> Weights:
    """Return the weights with several changes at once."""
    for one in chosen:
        for name in (*SCALARS, "word_windows", "token_windows"):
            if getattr(one, name) != getattr(WEIGHTS, name):
                base = replace(base, **{name: getattr(one, name)})
    return base


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder that holds eval_retrieval.py")
    parser.add_argument("--sets", default=",".join(SETS), help="comma-separated names of its data sets")
    parser.add_argument("--cache", default="", help="folder that keeps embeddings between runs")
    parser.add_argument("--only", default="", help="comma-separated names of the weights to try; else all")
    parser.add_argument("--most", type=int, default=3, help="changes that are taken together")
    args = parser.parse_args()
    names = args.sets.split(",")
    scorer_of(args.data)
    with ProcessPoolExecutor(2) as pool:

        def figures(weights: Weights) -> dict[str, dict[str, float]]:
            jobs = [(str(args.data), args.cache, name, weights) for name in names]
            return dict(zip(names, pool.map(_figures, jobs), strict=True))

        base = figures(WEIGHTS)
        only = set(filter(None, args.only.split(",")))
        changes = [one for one in _changes(WEIGHTS) if not only or one[0].split(" × ")[0] in only]
        if not changes:
            parser.error(f"--only: no weight is called so; there are {', '.join(SCALARS)}")
        gains: list[tuple[str, Weights, dict[str, float]]] = []
        for n, (title, weights) in enumerate(changes):
            after = figures(weights)
            gains.append((title, weights, {name: _worth(after[name]) - _worth(base[name]) for name in names}))
            print(f"{n + 1}/{len(changes)} changes tried", end="\r", file=sys.stderr)
        print("| change | " + " | ".join(names) + " | mean |\n|---|" + "---:|" * (len(names) + 1))
        for title, _, gain in sorted(gains, key=lambda one: -sum(one[2].values())):
            mean = sum(gain.values()) / len(names)
            print(f"| {title} | " + " | ".join(f"{gain[name]:+.4f}" for name in names) + f" | {mean:+.4f} |")

        def chosen(using: Sequence[str]) -> Weights:
            found: dict[str, tuple[float, Weights]] = {}
            for title, weights, gain in gains:
                mean = sum(gain[name] for name in using) / len(using)
                key = title.split(" × ")[0].split(".")[0]
                if mean > max(LEAST_GAIN, found.get(key, (0.0, weights))[0]):
                    found[key] = (mean, weights)
            best = sorted(found.values(), key=lambda one: -one[0])[: args.most]
            return _merged(WEIGHTS, [weights for _, weights in best])

        print("\n| set | weights in use | chosen on the other sets | chosen on all |\n|---|---:|---:|---:|")
        on_all = figures(chosen(names))
        for name in names:
            alone = figures(chosen([one for one in names if one != name]))[name]
            cells = [f"{one['main']:.3f} / {one['MRR']:.3f}" for one in (base[name], alone, on_all[name])]
            print(f"| {name} | {' | '.join(cells)} |")
        print(f"\nchosen on all: {chosen(names)}")


if __name__ == "__main__":
    main()
