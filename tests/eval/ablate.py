"""
`make ablate DATA=folder`: what each leg of the ranking is worth, whether scores are right, and what the floor keeps.

In indexes of this process, with the packaged model, on the development parts: every figure of docs/benchmarks.md that
needs more than one setting. `--charts FOLDER` draws the pictures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.retrieval.ranking import WEIGHTS, Ranked, Weights
from memoryd.domain.retrieval.relevance import above_floor, scores_of
from memoryd.index.legs import Windows
from tests.eval.local import LocalSet
from tests.eval.pictures import bars, curves, scatter
from tests.eval.scorer import scorer_of

SETS = ("locomo", "beam-100k", "lifebench", "cranfield", "precisionmembench", "letta-core")
ALONE = Windows(0.0, 0.0, 0.0, 0.0)
SETTINGS: dict[str, Weights] = {
    "all legs": WEIGHTS,
    "− vectors": replace(WEIGHTS, vector=0.0, statement_vector=0.0),
    "− words": replace(WEIGHTS, words=0.0),
    "− tokens": replace(WEIGHTS, tokens=0.0, statement_tokens=0.0, clause=0.0),
    "− what is inherited": replace(WEIGHTS, inherited_vector=0.0, word_windows=ALONE, token_windows=ALONE),
    "− time": replace(WEIGHTS, time=0.0),
    "− who spoke": replace(WEIGHTS, speaker=0.0),
    "− assistant": replace(WEIGHTS, assistant=0.0),
    "− sort of answer": replace(WEIGHTS, answer=0.0),
    "− questions": replace(WEIGHTS, asking=0.0),
    "− events": replace(WEIGHTS, event=0.0),
    "− clauses": replace(WEIGHTS, clause=0.0),
}
NO_MODEL = "no model"
DRAWN = ("all legs", "− tokens", "− what is inherited", NO_MODEL)
FOUND = 10
OTHERS = 3  # stores of others in which each question is asked
EDGES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.01)
_held: dict[str, LocalSet] = {}


def _set(folder: str, cache: str, name: str) -> LocalSet:
    if name not in _held:
        _held[name] = LocalSet(name, scorer_of(Path(folder)), Path(cache) if cache else None)
    return _held[name]


def _figures(job: tuple[str, str, str, str]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the figures of a set, and R@10 by category."""
    folder, cache, name, setting = job
    data = _set(folder, cache, name)
    found = data.report(with_model=False) if setting == NO_MODEL else data.report(weights=SETTINGS[setting])
    categories = {category: one["R@10"] for category, one in found["by_category"].items() if "R@10" in one}
    return {**found["headline"], "ms": found["latency_ms"]["p50"]}, categories


def _relevance(job: tuple[str, str, str]) -> dict[str, list[float]]:
    """Return scores of hits with whether they answer, and for each question what the floor and min_score keep."""
    data = _set(*job)
    scores: list[float] = []
    right: list[float] = []
    kept: list[float] = []
    whole: list[float] = []
    refused: list[float] = []
    names = list(data.indexes)
    for question in data.data.questions:
        gold = set(question.gold)
        ranked, ids = data.rank(question.conv, question.query)
        order = _best(ranked)
        hits = [ids[row] in gold for row in ranked.pools[0].rows[order].tolist()]
        scores += scores_of(ranked, order).tolist()
        right += map(float, hits)
        above = above_floor(ranked, order)
        whole.append(sum(hits) / len(gold))
        kept.append(sum(hit for hit, is_kept in zip(hits, above.tolist(), strict=True) if is_kept) / len(gold))
        at = names.index(question.conv)
        for step in range(1, min(OTHERS, len(names) - 1) + 1):
            other, _ = data.rank(names[(at + step) % len(names)], question.query)
            refused.append(float(not above_floor(other, _best(other)).any()))
    return {"scores": scores, "right": right, "kept": kept, "whole": whole, "refused": refused}


def _best(ranked: Ranked) -> NDArray[np.int64]:
    found: NDArray[np.int64] = np.argsort(-ranked.place, kind="stable")[:FOUND]
    return found


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def _table(found: Mapping[str, Mapping[str, Mapping[str, float]]], names: list[str]) -> None:
    print(f"| setting | {' | '.join(f'{name} R@10 / MRR' for name in names)} | ms a question of the first, median |")
    print("|---|" + "---:|" * (len(names) + 1))
    for setting, figures in found.items():
        cells = [f"{figures[name]['R@10']:.3f} / {figures[name]['MRR']:.3f}" for name in names]
        print(f"| {setting} | {' | '.join(cells)} | {figures[names[0]]['ms']:.1f} |")


def _reliability(found: Mapping[str, Mapping[str, list[float]]]) -> dict[str, list[tuple[float, float]]]:
    lines = {}
    for name, one in found.items():
        scores, right = np.array(one["scores"]), np.array(one["right"])
        points = []
        for low, high in pairwise(EDGES):
            some = (scores >= low) & (scores < high)
            if np.count_nonzero(some) >= 15:
                points.append((float(scores[some].mean()), float(right[some].mean())))
        lines[name] = points
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder that holds eval_retrieval.py")
    parser.add_argument("--sets", default=",".join(SETS), help="comma-separated names of its data sets")
    parser.add_argument("--cache", default="", help="folder that keeps embeddings between runs")
    parser.add_argument("--charts", type=Path, help="folder for the pictures")
    args = parser.parse_args()
    names: list[str] = args.sets.split(",")
    found: dict[str, dict[str, dict[str, float]]] = {}
    categories: dict[str, dict[str, float]] = {}
    with ProcessPoolExecutor(2) as pool:
        for setting in (*SETTINGS, NO_MODEL):
            jobs = [(str(args.data), args.cache, name, setting) for name in names]
            scored = dict(zip(names, pool.map(_figures, jobs), strict=True))
            found[setting] = {name: figures for name, (figures, _) in scored.items()}
            for name, (_, each) in scored.items() if setting in DRAWN else ():
                for category, recall in each.items():
                    categories.setdefault(f"{name} {category}", {})[setting] = recall
            print(f"{len(found)}/{len(SETTINGS) + 1} settings scored", end="\r", file=sys.stderr)
        places = [(str(args.data), args.cache, name) for name in names]
        relevance = dict(zip(names, pool.map(_relevance, places), strict=True))
    _table(found, names)
    print("\n| set | R@10 without the floor | with it | questions in others' stores that find nothing |")
    print("|---|" + "---:|" * 3)
    for name, one in relevance.items():
        others = f"{_mean(one['refused']):.3f} of {len(one['refused'])}" if one["refused"] else "–"
        print(f"| {name} | {_mean(one['whole']):.4f} | {_mean(one['kept']):.4f} | {others} |")
    lines = _reliability(relevance)
    print("\n| set | " + " | ".join(f"{low:g}–{high:g}" for low, high in pairwise(EDGES)) + " |")
    print("|---|" + "---:|" * (len(EDGES) - 1))
    for name, points in lines.items():
        cells = [
            next((f"{share:.2f}" for score, share in points if low <= score < high), "–")
            for low, high in pairwise(EDGES)
        ]
        print(f"| {name} | {' | '.join(cells)} |")
    if args.charts is not None:
        groups = {
            f"{name} {figure}": {setting: found[setting][name][figure] for setting in DRAWN}
            for name in names
            for figure in ("R@10", "MRR")
        }
        (args.charts / "retrieval.svg").write_text(bars(groups), encoding="utf-8")
        drawn = curves(lines, x="score", y="share of the hits that answered", diagonal=True)
        (args.charts / "relevance.svg").write_text(drawn, encoding="utf-8")
        (args.charts / "categories.svg").write_text(bars(categories), encoding="utf-8")
        figures = {setting: found[setting][names[0]] for setting in found}
        costs = {setting: (one["ms"], one["R@10"]) for setting, one in figures.items()}
        cost = scatter(costs, x=f"ms to rank a question of {names[0]}", y="R@10")
        (args.charts / "cost.svg").write_text(cost, encoding="utf-8")


if __name__ == "__main__":
    main()
